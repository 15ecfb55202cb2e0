"""Errors by group along a stream: signed bias, mean loss with an interval, over time, residuals.

The interval needs no independent rows. Let x_t be the loss (or the signed error) of round t,
w_t ≥ 0 its weight in the group, known before, and F_{t−1} everything before the round. Then
Σ w_t (x_t − E[x_t | F_{t−1}]) is a martingale however rows depend on each other, and with
m = Σ w_t x_t / Σ w_t the interval

    m ± q · √(Σ w_t² (x_t − m)²) / Σ w_t,     q: Student's, n − 1 degrees, n = (Σ w_t)² / Σ w_t²

covers the mean over the group's rounds of E[x_t | F_{t−1}], what was to be expected of each round
by all that came before it, in at least 95 % of cases as rounds become many: the sum of squares is
no less, on average, than that of the conditional variances, for E(x − c)² = Var x + (E x − c)². It
assumes many rounds of which none has most of the sum (the martingale central limit theorem). It is
no forecast for other rounds.

References
----------
T. L. Lai, S. T. Gross and D. B. Shen (2011), Evaluating probability forecasts. Annals of Statistics
39: the same for mean scores of forecasts, conservative for the same reason.
"""

import math
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.groups import FrameMembership

LEVEL = 0.95
LEAST = 2.0
"""On fewer rounds there is no interval."""
STRETCHES = 48
"""The stream is kept in up to twice so many stretches; of more, neighbours are joined."""
PER_DECADE, DECADES = 40, 6
"""Residuals are counted in bins whose widths grow by 6 %, from a millionth of the scale on."""
SIDE = PER_DECADE * DECADES
HISTOGRAMS = 5_000
"""So many groups, the first that appeared, have residuals: 4 kB each."""
BARS = 25
WITHIN = 0.99
"""The share of a group's residuals that its bars lie within; what is beyond is in the last ones."""
TERMS = 8
"""Σw, Σw², Σwx, Σw²x, Σw²x² of losses, and the last three of signed errors."""


class Estimate(NamedTuple):
    """A mean, and the interval that it is given with; NaN where there is none."""

    mean: float
    low: float
    high: float

    @property
    def root(self) -> "Estimate":
        """Of mean squares, the root."""
        return Estimate(*(math.sqrt(max(x, 0.0)) if x == x else math.nan for x in self))


class Stretch(NamedTuple):
    """Sums over consecutive rows: the last of them, and ``TERMS`` sums of every group."""

    end: int
    sums: Vector


class Times(NamedTuple):
    """A group's stretches of the stream: where each ends, and its mean loss."""

    end: Vector
    mean: Vector
    low: Vector
    high: Vector


class Residuals(NamedTuple):
    """Shares of a group's rounds by signed error: share i lies from edge i to edge i + 1.

    The first and the last share hold what is beyond, too.
    """

    edges: Vector
    shares: Vector


class Errors:
    """Adds up the errors of a stream's predictions by group, in memory that does not grow with it.

    ``scale`` is the size of the largest residuals to be told apart, such as the range of the label,
    and ``unit`` the loss of such a one; sums are of parts of these, so that they stay numbers.
    """

    def __init__(self, scale: float = 1.0, unit: float = 1.0) -> None:
        self._scale, self._unit = scale, unit
        self.places: dict[str, int] = {}
        self.rows = 0
        self.stretches: list[Stretch] = []
        self.counts: Vector = np.zeros((0, 2 * SIDE + 1))

    def add(self, membership: FrameMembership, losses: Vector, signed: Vector | None) -> None:
        """Count some rows: their losses and, where errors have a sign, prediction less label.

        A row whose loss is no number has no label, and counts for nothing.
        """
        names = membership.names
        places = np.array([self.places.setdefault(x, len(self.places)) for x in names], np.int64)
        rows = np.repeat(np.arange(losses.size), np.diff(membership.indptr))
        known = np.isfinite(losses)[rows]
        rows, weights = rows[known], membership.weights[known]
        groups = places[membership.indices[known]]
        many = len(self.places)
        sums = np.zeros((TERMS, many))
        squares = weights * weights
        with np.errstate(over="ignore", invalid="ignore"):  # of what another model predicted
            terms = [weights, squares, *_moments(weights, squares, losses[rows] / self._unit)]
            if signed is not None:
                residuals = signed[rows] / self._scale
                terms += _moments(weights, squares, residuals)
                self._count(groups, weights, residuals, min(many, HISTOGRAMS))
            for place, term in enumerate(terms):
                sums[place] = np.bincount(groups, term, many)
        self.rows += losses.size
        self.stretches.append(Stretch(self.rows, sums))
        if len(self.stretches) > 2 * STRETCHES:
            self.stretches = joined(self.stretches, STRETCHES)

    def join(self, later: "Errors") -> None:
        """Count the rows that another one has counted, after one's own."""
        places = np.array(
            [self.places.setdefault(x, len(self.places)) for x in later.places], np.int64
        )
        many = len(self.places)
        for one in later.stretches:
            sums = np.zeros((TERMS, many))
            sums[:, places[: one.sums.shape[1]]] = one.sums
            self.stretches.append(Stretch(self.rows + one.end, sums))
        self.rows += later.rows
        if len(self.stretches) > 2 * STRETCHES:
            self.stretches = joined(self.stretches, STRETCHES)
        if later.is_signed:
            counts = np.zeros((min(many, HISTOGRAMS), 2 * SIDE + 1))
            counts[: len(self.counts)] = self.counts
            kept = places[: len(later.counts)]
            within = kept < len(counts)
            counts[kept[within]] += later.counts[: kept.size][within]
            self.counts = counts

    def _count(self, groups: Index, weights: Vector, residuals: Vector, many: int) -> None:
        """Put residuals into their bins."""
        kept = groups < many
        found = groups[kept] * (2 * SIDE + 1) + _bins(residuals[kept])
        counts = np.zeros((many, 2 * SIDE + 1))
        counts += np.bincount(found, weights[kept], counts.size).reshape(counts.shape)
        counts[: len(self.counts)] += self.counts
        self.counts = counts

    @property
    def is_signed(self) -> bool:
        """Do errors have a sign?"""
        return self.counts.size > 0

    def loss(self, group: str) -> Estimate:
        """The mean loss of a group."""
        return _estimate(self._total(group), 2, self._unit)

    def bias(self, group: str) -> Estimate:
        """The mean of predictions less labels in a group; NaN where errors have no sign."""
        if not self.is_signed:
            return Estimate(math.nan, math.nan, math.nan)
        return _estimate(self._total(group), 5, self._scale)

    def _total(self, group: str) -> Vector:
        place = self.places.get(group)
        held = [one.sums[:, place] for one in self._of(place)] if place is not None else []
        total: Vector = np.sum(held, axis=0) if held else np.zeros(TERMS)
        return total

    def _of(self, place: int) -> list[Stretch]:
        return [one for one in self.stretches if one.sums.shape[1] > place]

    def over_time(self, group: str, points: int, least: float) -> Times:
        """A group's mean loss in up to so many stretches of the stream, each of enough rounds."""
        place = self.places.get(group)
        held = self._of(place) if place is not None else []
        enough = max(least, sum(float(one.sums[0, place]) for one in held) / points)
        groups: list[tuple[int, Vector]] = []
        full = True
        for one in held:
            if full:
                groups.append((one.end, np.zeros(TERMS)))
            groups[-1] = one.end, groups[-1][1] + one.sums[:, place]
            full = groups[-1][1][0] >= enough
        if not full and len(groups) > 1:  # the rest is too little: it belongs to the one before
            (_, before), (end, rest) = groups[-2:]
            groups[-2:] = [(end, before + rest)]
        unit = self._unit
        found = [(float(end), *_estimate(sums, 2, unit)) for end, sums in groups if sums[0] > 0.0]
        return Times(*np.array(found).reshape(-1, 4).T)

    def residuals(self, group: str, bars: int = BARS) -> Residuals | None:
        """How a group's residuals are spread; None where that was not counted."""
        place = self.places.get(group, len(self.counts))
        if place >= len(self.counts) or not self.counts[place].any():
            return None
        counts = self.counts[place]
        beyond = np.cumsum(counts[SIDE:] + counts[SIDE::-1])
        last = int(np.searchsorted(beyond, WITHIN * beyond[-1]))
        widest = float(_EDGES[SIDE + 1 + min(last, SIDE)])
        edges: Vector = np.linspace(-widest, widest, bars + 1)
        below = np.concatenate([[0.0], np.cumsum(counts)]) / counts.sum()
        at = np.interp(edges, _EDGES, below)
        at[0], at[-1] = 0.0, 1.0
        return Residuals(edges * self._scale, np.diff(at))


def _moments(weights: Vector, squares: Vector, values: Vector) -> list[Vector]:
    return [weights * values, squares * values, squares * values * values]


def _estimate(sums: Vector, place: int, unit: float) -> Estimate:
    """The mean of what is summed from ``place`` on in such units, with its interval."""
    from scipy.special import stdtrit

    total, squares = float(sums[0]), float(sums[1])
    if total <= 0.0:
        return Estimate(math.nan, math.nan, math.nan)
    first, second, third = (float(x) for x in sums[place : place + 3])
    mean, rounds = first / total, total * total / squares
    if rounds < LEAST:
        return Estimate(unit * mean, math.nan, math.nan)
    around = max(third - 2.0 * mean * second + mean * mean * squares, 0.0)
    spread = math.sqrt(around * rounds / (rounds - 1.0)) / total
    half = float(stdtrit(rounds - 1.0, 0.5 + LEVEL / 2.0)) * spread
    return Estimate(unit * mean, unit * (mean - half), unit * (mean + half))


def joined(stretches: list[Stretch], most: int) -> list[Stretch]:
    """Neighbours joined until there are no more than so many."""
    while len(stretches) > most:
        pairs = [stretches[i : i + 2] for i in range(0, len(stretches), 2)]
        stretches = [Stretch(pair[-1].end, _added([one.sums for one in pair])) for pair in pairs]
    return stretches


def _added(sums: list[Vector]) -> Vector:
    """Sums of the first groups and of more, together."""
    total = np.zeros((TERMS, max(one.shape[1] for one in sums)))
    for one in sums:
        total[:, : one.shape[1]] += one
    return total


def _bins(values: Vector) -> Index:
    """The bins of residuals that are divided by their scale."""
    with np.errstate(divide="ignore"):
        size = np.log10(np.abs(values)) * PER_DECADE + SIDE
    place = np.clip(np.floor(size) + 1.0, 0.0, SIDE).astype(np.int64)
    bins: Index = SIDE + np.where(values < 0.0, -place, place)
    return bins


_RIGHT = 10.0 ** (np.arange(-SIDE, 1) / PER_DECADE)
_EDGES: Vector = np.concatenate([-_RIGHT[::-1], _RIGHT])
