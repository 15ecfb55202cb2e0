"""Calibration of every group: does what had a probability of p come to be in a share p of cases?

Everything is found from the bins of ``kernels.calibration``, which hold the predictions as they
were issued. With W_b, P_b, Y_b the sums of w, w p and w y in bin b, and W = Σ W_b,

    gap = Σ (P_b − Y_b) / W,    ece = Σ |P_b − Y_b| / W,

and *auc* is the share of pairs of a positive and a negative case in which the positive one had the
higher prediction. Pairs within a bin count as half: ``auc_low`` and ``auc_high`` count them as
none and as whole, and the AUC of the predictions themselves is between. (With soft labels a case
is positive with weight w y and negative with weight w (1 − y).)

Even a calibrated model has an ECE above 0, the more so the fewer rounds there are: *ece_95* is what
95 % of calibrated models with as many rounds stay below. It is simulated: in bin b,
n_b = W_b² / Σ w² labels (as many as there are, where all weigh the same), each positive with
probability P_b / W_b. Predictions of one bin differ a little, and soft labels scatter less, so the
true figure is at most that. An ``ece`` above it is hardly chance; with many groups one in twenty is
above it by chance.
"""

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, is_finite
from groupwise.groups import ALWAYS_ON
from groupwise.kernels.calibration import (
    BINNED,
    BINS,
    INNER,
    NEGATIVE,
    POSITIVE,
    PREDICTED,
    SQUARES,
    Bins,
    count_rows,
    errors_of_calibrated,
    quantiles,
)
from groupwise.losses import Loss
from groupwise.regret.printed import Printed, text
from groupwise.regret.table import in_order
from groupwise.store import Store

if TYPE_CHECKING:
    from groupwise.reduction import Reduction

SIMULATED = 1_000
"""Calibrated groups that are simulated."""
CHANCE = 0.95
EDGES: Vector = np.array([0.0, *INNER, 1.0])
SHOWN = [
    "group",
    "rounds",
    "mean_label",
    "mean_prediction",
    "gap",
    "brier",
    "log_loss",
    "auc",
    "ece",
    "ece_95",
]
UNITS = {
    **dict.fromkeys(("mean_label", "mean_prediction", "gap", "auc", "ece", "ece_95"), "share"),
    "brier": "share²",
    "log_loss": "nats",
}
FIGURES = [*SHOWN[2:8], "auc_low", "auc_high", *SHOWN[8:]]
"""What a row says of a group that has had rounds."""


class Sums(NamedTuple):
    """What the bins know of one group; all of it adds up over the parts of a stream."""

    group: str
    rounds: float
    loss: float
    """Σ w of the log loss, in nats; not a number where it is not of this class alone."""
    brier: float
    """Σ w (p − y)²."""
    bins: Vector
    """Bin by bin Σ w p, Σ w y, Σ w (1 − y) and Σ w²."""
    before: float
    """Rounds that were settled before there were bins."""

    def added(self, other: "Sums") -> "Sums":
        """Those of both."""
        return Sums(
            self.group,
            self.rounds + other.rounds,
            self.loss + other.loss,
            self.brier + other.brier,
            self.bins + other.bins,
            self.before + other.before,
        )


@dataclass(frozen=True, repr=False)
class CalibrationTable(Printed):
    """Calibration of every group over the settled rounds, of the predictions as they were issued.

    ``rows`` is a list of dictionaries with the keys group, rounds, mean_label, mean_prediction, gap
    (the second less the first), brier, log_loss (both per round, the latter in nats), auc, auc_low,
    auc_high, ece, ece_95 (95 % of calibrated models with as many rounds have no higher one) and
    before (the rounds settled by a version that kept no bins; all other figures are without them).
    What cannot be told is None: ``auc`` where all labels of a group are the same.

    Tables of two parts of a stream add up to the table of the whole: ``one + other``.
    """

    settled: int = 0
    sums: tuple[Sums, ...] = field(default=(), compare=False)

    @classmethod
    def of(cls, sums: Iterable[Sums], settled: int) -> "CalibrationTable":
        """The table of these groups."""
        kept = tuple(sums)
        return cls([_row(one) for one in kept], settled, kept)

    def __add__(self, other: "CalibrationTable") -> "CalibrationTable":
        if not isinstance(other, CalibrationTable):
            return NotImplemented
        found = _by_key(self.sums)
        for key, one in _by_key(other.sums).items():
            found[key] = found[key].added(one) if key in found else one
        last = sorted(found.values(), key=lambda one: one.group == ALWAYS_ON)
        return CalibrationTable.of(last, self.settled + other.settled)

    def curve(self, group: str, points: int | None = None) -> list[dict[str, float]]:
        """The reliability curve of a group: a dictionary for every bin that has been used.

        Its keys are low and high (predictions p with low ≤ p < high), rounds, mean_prediction,
        mean_label, and low_95 and high_95: with as many rounds, a calibrated model's mean label is
        between them in 95 % of cases. With ``points``, neighbouring bins are joined until there
        are at most so many, with about as many rounds each.
        """
        if points is not None and not (is_finite(points, int) and points > 0):
            raise ConfigurationError(f"points must be a positive whole number, not {points!r}.")
        return _curve({one.group: one for one in reversed(self.sums)}[group], points)

    def shown(self) -> list[str]:
        """The keys to print."""
        return SHOWN

    @property
    def units(self) -> dict[str, str]:
        """What the figures are in."""
        return UNITS

    def remarks(self) -> list[str]:
        """How to read the figures."""
        said = [
            f"{self.settled} settled rounds; auc and ece are from {BINS} bins.",
            "95 % of calibrated models with as many rounds have an ece of at most ece_95.",
        ]
        if any(row["auc"] is None and row["rounds"] > 0.0 for row in self.rows):
            said.append("There is no auc where all labels of a group are the same.")
        before = max((row["before"] for row in self.rows), default=0.0)
        if before > 0.0:
            said.append(
                f"Of a group, up to {text(before)} rounds were settled before bins were kept; "
                "the figures are without them."
            )
        return said


def calibration_table(
    reduction: "Reduction",
    names: list[str],
    settled: int,
    largest: int | None = None,
    of: Any = None,
) -> CalibrationTable:
    """The table for groups 0 … len(names) − 1, in the order of the regret table.

    ``of`` is the class whose probabilities are looked at; of two it is the second.
    """
    bins, books, unit = reduction.issued_bins, reduction.books, reduction.loss.unit
    if bins is None:
        raise ConfigurationError(
            f"Calibration is of probabilities, and {reduction.loss} is for other predictions. "
            "Make the model with loss=losses.Log(), for labels from 0 to 1."
        )
    event = _event(reduction.loss, of)
    found = [
        _sums(names[group], bins.of(group), unit, float(books.of(group).rounds[0]), event)
        for group in in_order(books, names, largest)
    ]
    return CalibrationTable.of(found, settled)


def _event(loss: Loss, of: Any) -> int:
    """The number, among those in the bins, of the event that a class comes."""
    names = loss.classes
    if names is None or loss.nodes == 1:
        if of is None or (names is not None and of == names[1]):
            return 0
        raise ConfigurationError(
            f"There is one probability to look at, and {of!r} is not its class: leave it out."
        )
    if of is None:
        raise ConfigurationError(
            f"There are {len(names)} classes: say which to look at, as in of={names[0]!r}."
        )
    return int(loss.encode(of))


class Tally:
    """The calibration of predictions that come from elsewhere: some rows after the other.

    >>> tally = Tally()
    >>> everybody, once = np.array([0, 1, 2]), np.ones(2)
    >>> chance, label = np.array([0.2, 0.6]), np.array([0.0, 1.0])
    >>> tally.add(["a", "b"], everybody, np.array([0, 1]), once, chance, label)
    >>> tally.table()["b"]["gap"]
    -0.4
    """

    def __init__(self) -> None:
        self._bins = bins_for(1)
        self._numbers: dict[str, int] = {}
        self._settled = 0

    def add(
        self,
        names: Sequence[str],
        indptr: Index,
        groups: Index,
        weights: Vector,
        predictions: Vector,
        labels: Vector,
    ) -> None:
        """Count rows: row t is in ``names[g]`` for g in ``groups[indptr[t]:indptr[t + 1]]``."""
        known = [self._numbers.setdefault(name, len(self._numbers)) for name in names]
        self._bins.reserve(np.arange(len(self._numbers)), 0)
        numbers = np.array(known, dtype=np.int64)[groups]
        figures = (np.ascontiguousarray(x, np.float64) for x in (weights, predictions, labels))
        count_rows(self._bins.address, np.ascontiguousarray(indptr, np.int64), numbers, *figures)
        self._settled += len(labels)

    def table(self) -> CalibrationTable:
        """The calibration so far."""
        sums = [_sums(name, self._bins.of(number), 1.0) for name, number in self._numbers.items()]
        last = sorted(sums, key=lambda one: one.group == ALWAYS_ON)
        return CalibrationTable.of(last, self._settled)


def bins_for(events: int) -> Store:
    """Room for the bins of groups."""
    return Store(BINNED, extent=events, parameters=INNER)


def _sums(group: str, bins: Bins, unit: float, rounds: float | None = None, event: int = 0) -> Sums:
    """What is known of a group that has had so many rounds in all, of losses in this unit."""
    counted = float(bins.rounds[0])
    before = 0.0 if rounds is None else rounds - counted
    # With three classes and more the loss is of them all, not of the one that is looked at.
    loss = unit * float(bins.loss[0]) if len(bins.brier) == 1 else math.nan
    brier = float(bins.brier[event])
    return Sums(group, counted, loss, brier, bins.sums[event].copy(), before)


def _by_key(sums: Iterable[Sums]) -> dict[tuple[str, int], Sums]:
    """Groups by name; where several have the same, the first goes with the first."""
    seen: Counter[str] = Counter()
    found = {}
    for one in sums:
        found[one.group, seen[one.group]] = one
        seen[one.group] += 1
    return found


def _row(sums: Sums) -> dict[str, Any]:
    """The figures of a group."""
    predicted, positive, negative, squares = sums.bins.T
    weights = positive + negative
    total = float(weights.sum())
    row = {"group": sums.group, "rounds": sums.rounds, **dict.fromkeys(FIGURES)}
    if total > 0.0:
        label, prediction = float(positive.sum()) / total, float(predicted.sum()) / total
        row |= {
            "mean_label": label,
            "mean_prediction": prediction,
            "gap": float((predicted - positive).sum()) / total,
            "brier": sums.brier / total,
            "log_loss": None if math.isnan(sums.loss) else sums.loss / total,
            **_auc(positive, negative),
            "ece": float(np.abs(predicted - positive).sum()) / total,
            "ece_95": expected_error(weights, squares, predicted),
        }
    return {**row, "before": sums.before}


def _auc(positive: Vector, negative: Vector) -> dict[str, float | None]:
    """The share of pairs in the right order, from bins in ascending order; and its bracket."""
    pairs = float(positive.sum()) * float(negative.sum())
    if not pairs > 0.0:
        return dict.fromkeys(("auc", "auc_low", "auc_high"))
    below = np.concatenate([[0.0], np.cumsum(negative)[:-1]])
    low, tied = float(positive @ below) / pairs, float(positive @ negative) / pairs
    return {"auc": low + tied / 2.0, "auc_low": low, "auc_high": min(low + tied, 1.0)}


def _trials(weights: Vector, squares: Vector, predicted: Vector) -> tuple[Vector, Vector]:
    """How many equal rounds bins are worth, at least one, and the mean of their predictions."""
    counts = np.maximum(np.rint(weights * (weights / squares)), 1.0)
    return counts, np.clip(predicted / weights, 0.0, 1.0)


def expected_error(weights: Vector, squares: Vector, predicted: Vector) -> float:
    """The ECE that 95 % of calibrated models with such bins stay below.

    >>> one_bin = np.array([1.0]), np.array([1.0]), np.array([0.3])
    >>> expected_error(*one_bin)  # one round: its label is 0, or 1 with probability 0.3
    0.7
    """
    used = squares > 0.0
    weights = weights[used]
    counts, means = _trials(weights, squares[used], predicted[used])
    levels, orders = _square()
    found, work = np.empty(SIMULATED), np.empty(SIMULATED)
    shares = weights / weights.sum()
    errors_of_calibrated(counts, means, shares, levels, orders, work, found)
    place = int(CHANCE * SIMULATED) - 1
    return float(np.partition(found, place)[place])


@cache
def _square() -> tuple[Vector, Index]:
    """The levels of the simulation, and an order of them for every bin."""
    levels = (np.arange(SIMULATED) + 0.5) / SIMULATED
    random = np.random.RandomState(0)  # whose numbers never change
    orders = np.array([random.permutation(SIMULATED) for _ in range(BINS)], dtype=np.int64)
    return levels, orders


def _curve(sums: Sums, points: int | None) -> list[dict[str, float]]:
    """Bins that have been used, some of them joined."""
    weights = sums.bins[:, POSITIVE] + sums.bins[:, NEGATIVE]
    used = np.flatnonzero(weights > 0.0)
    if used.size == 0:
        return []
    place = np.arange(used.size)
    if points is not None and used.size > points:
        middles = np.cumsum(weights[used]) - weights[used] / 2.0
        place = np.minimum(points * middles / weights.sum(), points - 1).astype(np.int64)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    joined = np.add.reduceat(sums.bins[used], starts, axis=0)
    ends = np.append(starts[1:], used.size) - 1
    weights = joined[:, POSITIVE] + joined[:, NEGATIVE]
    counts, means = _trials(weights, joined[:, SQUARES], joined[:, PREDICTED])
    band = np.empty((starts.size, 2))
    quantiles(counts, means, np.array([(1.0 - CHANCE) / 2.0, (1.0 + CHANCE) / 2.0]), band)
    columns = {
        "low": EDGES[used[starts]],
        "high": EDGES[used[ends] + 1],
        "rounds": weights,
        "mean_prediction": means,
        "mean_label": joined[:, POSITIVE] / weights,
        "low_95": band[:, 0],
        "high_95": band[:, 1],
    }
    lines = np.column_stack([*columns.values()]).tolist()
    return [dict(zip(columns, line, strict=True)) for line in lines]
