"""Runs over several seeds as one table row per group, next to the published row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from groupwise.datasets import published
from groupwise.reproduce.run import Run
from groupwise.arrays import Vector

Pair = tuple[float, float]


class Figures(NamedTuple):
    """What a line of the paper's tables says; regrets are mean and population deviation."""

    baseline_regret: Pair
    algorithm_regret: Pair
    best_in_hindsight_loss: float

    def cells(self) -> tuple[float | Pair, ...]:
        """As a table shows them."""
        return self.baseline_regret, self.algorithm_regret, self.best_in_hindsight_loss

    def flat(self) -> Iterator[float]:
        """All five figures."""
        yield from self.baseline_regret
        yield from self.algorithm_regret
        yield self.best_in_hindsight_loss

    def to_dict(self) -> dict[str, Any]:
        """For files: pairs as lists."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self._asdict().items()
        }


@dataclass(frozen=True)
class Row:
    """A group: in the paper's convention, exactly, and as published (where it is)."""

    group: str
    size: int
    found: Figures
    exact: Figures
    published: Figures | None

    def deviations(self) -> Figures | None:
        """How far what was found is from what was published."""
        if self.published is None:
            return None
        d = [a - b for a, b in zip(self.found.flat(), self.published.flat(), strict=True)]
        return Figures((d[0], d[1]), (d[2], d[3]), d[4])

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "group": self.group,
            "size": self.size,
            **self.found.to_dict(),
            "exact": self.exact.to_dict(),
            "published": None if self.published is None else self.published.to_dict(),
        }


def summarise(experiment: str, order: str, runs: Sequence[Run]) -> tuple[Row, ...]:
    """The rows of one table.

    The paper's regret subtracts the least-squares loss on all but the group's last row; the exact
    one that on all its rows.
    """
    loss, baseline, best, short = (
        np.array(values)
        for values in zip(
            *(
                (r.loss[:, -1], r.baseline_loss[:, -1], r.best_loss[:, -1], r.published_best)
                for r in runs
            ),
            strict=True,
        )
    )
    sizes = runs[0].rounds[:, -1].tolist()
    printed = {
        row.group: Figures(row.baseline_regret, row.algorithm_regret, row.best_loss)
        for row in published().get((experiment, order), ())
    }
    return tuple(
        Row(
            group,
            int(sizes[g]),
            _figures(baseline[:, g], loss[:, g], short[:, g]),
            _figures(baseline[:, g], loss[:, g], best[:, g]),
            printed.get(group),
        )
        for g, group in enumerate(runs[0].groups.tolist())
    )


def worst(rows: Sequence[Row]) -> float | None:
    """The largest deviation from a published figure; None where none is published."""
    found = [abs(d) for row in rows if (all_five := row.deviations()) for d in all_five.flat()]
    return max(found, default=None)


def misses(rows: Sequence[Row], tolerance: float) -> list[str]:
    """The groups of which some figure misses its tolerance."""
    return [
        row.group
        for row in rows
        if (all_five := row.deviations()) and any(abs(d) > tolerance for d in all_five.flat())
    ]


def _figures(baseline: Vector, loss: Vector, best: Vector) -> Figures:
    def pair(values: Vector) -> Pair:
        return float(values.mean()), float(values.std())

    return Figures(pair(baseline - best), pair(loss - best), float(best.mean()))
