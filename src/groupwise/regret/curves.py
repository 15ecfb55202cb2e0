"""Regret over time: the only curves there are.

Two ways lead to them. A ``Recorder`` takes down regret tables while a stream goes by; where all
rows are at hand, ``sums_at`` and ``best_losses`` read sums off at moments of a group's own clock.
"""

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.regret.hindsight import Factor

KEYS = ("rounds", "regret", "baseline_regret", "certificate")
"""What of a regret table a curve shows."""
FORESEEN = "a_priori"
"""The other bound on regret, which may be shown in the place of the certificate."""


class Curve(NamedTuple):
    """One group over time: after ``time`` rows, ``rounds`` of them in the group."""

    time: Index
    rounds: Vector
    regret: Vector
    baseline_regret: Vector
    certificate: Vector

    def at(self, times: Index) -> "Curve":
        """The curve at other times: as it last was, and zero before its first point.

        >>> points = Curve(np.array([2, 4]), *np.array([[1.0, 3.0]] * 4))
        >>> points.at(np.array([1, 2, 3, 4])).rounds.tolist()
        [0.0, 1.0, 1.0, 3.0]
        """
        place = np.searchsorted(self.time, times, "right")
        return Curve(times, *(np.concatenate([[0.0], values])[place] for values in self[1:]))

    def drawn(self) -> "Curve":
        """The curve from zero on, without points at which the group had no new rounds.

        >>> points = Curve(np.array([2, 4, 6]), *np.array([[1.0, 1.0, 3.0]] * 4))
        >>> points.drawn().rounds.tolist()
        [0.0, 1.0, 3.0]
        """
        moved = np.diff(self.rounds, prepend=0.0) > 0.0
        return Curve(
            *(np.concatenate([np.zeros(1, values.dtype), values[moved]]) for values in self)
        )


class Recorder:
    """Takes down regret tables along a stream, and gives every group's curve.

    >>> recorder = Recorder()
    >>> for time in (5, 10):
    ...     row = {"group": "a", "rounds": time / 5, "regret": 0.5, "certificate": 3.0}
    ...     recorder.record(time, [{**row, "baseline_regret": None}])
    >>> recorder.curves()["a"].rounds.tolist()
    [1.0, 2.0]
    """

    def __init__(self) -> None:
        self._points: dict[str, list[list[float]]] = {}

    def record(self, time: int, table: Iterable[Mapping[str, Any]]) -> None:
        """Add a point for every group of a table as it is after ``time`` rows."""
        for row in table:
            self._points.setdefault(row["group"], []).append(
                [time, *(np.nan if row.get(k) is None else row[k] for k in (*KEYS, FORESEEN))]
            )

    def curves(self, bound: str = "certificate") -> dict[str, Curve]:
        """The curve of every group, with a point for each table that it was in.

        ``bound`` says what is in the place of the certificate: that, or "a_priori".
        """
        place = 1 + (*KEYS, FORESEEN).index(bound)
        columns = {
            group: np.ascontiguousarray(np.array(points).T)
            for group, points in self._points.items()
        }
        return {
            group: Curve(found[0].astype(np.int64), found[1], found[2], found[3], found[place])
            for group, found in columns.items()
        }


def moments(total: int, points: int) -> Index:
    """So many evenly spaced moments of a stream, the last of them its end.

    >>> moments(10, 4).tolist()
    [2, 5, 7, 10]
    """
    return np.unique(np.linspace(0, total, min(points, total) + 1).astype(np.int64)[1:])


def own_moments(size: int, points: int) -> Index:
    """``points`` evenly spaced numbers of a group's rounds, the last of them all ``size`` rounds.

    >>> own_moments(10, 4).tolist()
    [3, 5, 8, 10]
    """
    return np.ceil(np.linspace(0.0, size, points + 1)[1:]).astype(np.int64)


def sums_at(values: Vector, ends: Index) -> Vector:
    """The sum of the first ``end`` values (along the first axis), for every end.

    >>> sums_at(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3])).tolist()
    [0.0, 3.0, 7.0]
    """
    sums: Vector = np.concatenate([np.zeros((1, *values.shape[1:])), np.cumsum(values, axis=0)])
    return sums[ends]


def best_losses(features: Vector, labels: Vector, ends: Index) -> Vector:
    """The least-squares loss on the first ``end`` rows, for every end.

    A triangular factor grows by a block from one end to the next, so that all ends together cost
    one pass over the rows.

    >>> x = np.ones((3, 1))
    >>> best_losses(x, np.array([0.0, 1.0, 2.0]), np.array([3, 1, 2, 2])).round(12).tolist()
    [2.0, 0.0, 0.5, 0.5]
    """
    factor, power = Factor(features.shape[1]), 0.0
    ascending, places = np.unique(ends, return_inverse=True)
    best = []
    for start, end in pairwise([0, *ascending.tolist()]):
        factor.add(features[start:end], labels[start:end])
        power += float(labels[start:end] @ labels[start:end])
        best.append(factor.hindsight(power).best)
    return np.array(best)[places]
