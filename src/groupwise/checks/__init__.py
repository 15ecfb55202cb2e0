"""Checks that every learner and aggregator passes, yours included.

    groupwise.checks.check_learner(MyLearner())
    groupwise.checks.check_aggregator(MyAggregator())

Both return nothing where all is well, and raise :class:`CheckFailed` saying what is not.
"""

from groupwise.checks.aggregators import AGGREGATOR_CHECKS, check_aggregator
from groupwise.checks.bench import CheckFailed
from groupwise.checks.learners import LEARNER_CHECKS, check_learner

__all__ = [
    "AGGREGATOR_CHECKS",
    "LEARNER_CHECKS",
    "CheckFailed",
    "check_aggregator",
    "check_learner",
]
