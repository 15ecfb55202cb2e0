"""The parts of Algorithm 1 as the paper has them, for tests of what is around them."""

from typing import Any

import groupwise as gw

PLAIN: dict[str, Any] = {
    "learner": gw.learners.Ridge(),
    "aggregator": gw.aggregators.AdaNormalHedge(),
}
