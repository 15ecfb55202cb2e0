"""The paper's tables, cell by cell."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import NamedTuple


class PublishedRow(NamedTuple):
    """A line of a published table; the regrets are mean and standard deviation over ten seeds.

    The regrets are measured against `best_loss`, which the paper computes on all but the last
    row of the group: exact regrets are a little lower, most visibly on small groups.
    """

    group: str
    size: int
    baseline_regret: tuple[float, float]
    algorithm_regret: tuple[float, float]
    best_loss: float


def published() -> dict[tuple[str, str], tuple[PublishedRow, ...]]:
    """The published tables by experiment and order.

    >>> published()["medical", "sorted"][0]
    PublishedRow(group='young', size=574, baseline_regret=(0.82, 0.09), \
algorithm_regret=(-1.09, 0.07), best_loss=5.4)
    """
    stored = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return {
        (experiment, order): tuple(
            PublishedRow(group, size, tuple(baseline), tuple(algorithm), best)
            for group, size, baseline, algorithm, best in rows
        )
        for experiment, orders in stored["tables"].items()
        for order, rows in orders.items()
    }
