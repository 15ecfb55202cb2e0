"""Regret of every group along the way, read off the model between pieces of the stream."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.arrays import Vector

if TYPE_CHECKING:
    from groupwise.model import Groupwise
    from groupwise.regret.table import RegretTable

POINTS = 60
"""Points on a curve, where the groups are few."""
LEAST = 6
SOLVES = 8_000
"""Least-squares problems that all curves together may take; each is well under a millisecond where
features are few, so that curves cost a few seconds at most."""
FOLLOWED = 1_000
"""Where there are more groups, only the largest have curves."""
WIDE = 28
"""From so many features on, problems get markedly slower and points fewer."""


def points(groups: int, features: int) -> int:
    """How many points the curves have.

    >>> points(9, 12), points(500, 30), points(10_000, 12)
    (60, 13, 6)
    """
    slower = max(1.0, (features / WIDE) ** 2)
    return int(np.clip(SOLVES / (max(groups, 1) * slower), LEAST, POINTS))


@dataclass
class Curve:
    """One group's: its rounds so far, and the regret of the play and of the single model."""

    rounds: list[float] = field(default_factory=list)
    regret: list[float] = field(default_factory=list)
    baseline: list[float] = field(default_factory=list)

    def arrays(self) -> tuple[Vector, Vector, Vector]:
        """The three as arrays, beginning at zero."""
        return tuple(np.array([0.0, *part]) for part in (self.rounds, self.regret, self.baseline))  # type: ignore[return-value]


def regret_of(model: "Groupwise") -> "RegretTable":
    """The model's table; one thread solves its many small problems sooner than several."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return model.regret()


def standing(model: "Groupwise") -> list[dict[str, Any]]:
    """Rounds, best loss and regrets of the groups that are followed: the largest so far."""
    from threadpoolctl import threadpool_limits

    if len(model._names) <= FOLLOWED:
        return regret_of(model).rows
    state, unit, features = model._ledger.state, model.loss.unit, len(model._encoder.names)
    largest = np.argsort(-state.rounds[: len(model._names)], kind="stable")[:FOLLOWED]
    rows = []
    with threadpool_limits(1):
        for g in largest.tolist():
            best = model._ledger.best_loss(g, features)
            rows.append(
                {
                    "group": model._names[g],
                    "rounds": float(state.rounds[g]),
                    "best_loss": unit * best,
                    "regret": unit * (float(state.loss[g]) - best),
                    "baseline_regret": unit * (float(state.baseline_loss[g]) - best),
                }
            )
    return rows


class Curves:
    """Records the table at evenly spaced rows of a stream."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.by_group: dict[str, Curve] = {}
        self._next = 0.0

    def reached(self, model: "Groupwise", done: int) -> list[dict[str, Any]]:
        """Take note, if it is time to, that so many rows are done; gives what was noted."""
        if done < self._next or done >= self.total:
            return []
        wanted = points(min(len(model._names), FOLLOWED), len(model._encoder.names))
        self._next = done + self.total / wanted
        rows = standing(model)
        self.record(rows)
        return rows

    def record(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Add a point to the curve of every group that has moved."""
        for row in rows:
            curve = self.by_group.setdefault(row["group"], Curve())
            if curve.rounds and curve.rounds[-1] == row["rounds"]:
                continue
            curve.rounds.append(row["rounds"])
            curve.regret.append(row["regret"])
            baseline = row["baseline_regret"]
            curve.baseline.append(float("nan") if baseline is None else baseline)
