"""Intervals: a layer over Algorithm 1 that says how far from its prediction a label may be.

Its coverage is known exactly on every group at every moment, whatever the data are: group-
conditional adaptive conformal inference, around widths that are learned.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, is_finite
from groupwise.kernels import intervals as kernels
from groupwise.kernels.stretch import addressed
from groupwise.losses import Loss
from groupwise.protocols import Awake, Ends, Layered
from groupwise.regret.printed import Printed
from groupwise.regret.table import in_order
from groupwise.store import Store
from groupwise.stream import Outcome, Work

FASTEST = 1.0
ROUNDING = 1e-6
"""By which share a sum over rounds may be off."""


@dataclass(frozen=True)
class Intervals:
    """Intervals around the predictions that cover a share of the labels, on every group.

    With ŷ the prediction, and over the awake groups g of weights w, what is issued is

        ŷ ± b (1 + η u),   u = Σ w (M_g − α T_g),   α = 1 − coverage,

    with ŷ and both ends cut to the range of the labels. T_g are the rounds of a group and M_g those
    of them whose label was outside of what was issued. For u > 0 the factor is e^(ηu); below −1/η
    the interval is empty. The *base* b mixes those of the awake groups, κ_g σ_g, by AdaNormalHedge
    on the pinball loss: σ_g is the mean of the group's recent errors |y − ŷ| and κ_g follows their
    (1 − α)-quantile in that unit. What a label says of bases and of misses counts when it comes.

    Parameters
    ----------
    coverage : the share of labels that is to be inside, 1 − α.
    rate : η. A larger one corrects misses sooner, and makes widths less steady.

    >>> Intervals(0.95)
    Intervals(coverage=0.95, rate=0.05)

    Guarantee
    ---------
    At every moment and for every group, M_g / T_g − α = θ_g / T_g with θ_g = M_g − α T_g, which is
    what widens and narrows its intervals: ``model.coverage()`` shows it as ``excess``. It cannot
    run away. As b is 2⁻⁴⁰ of the range at least, where u ≥ 28/η an interval covers all of it and no
    label is missed; where u < −1/η it is empty and every label is. With n groups awake at most,
    after T rounds whose labels come at once,

        Σ_g θ_g² ≤ T (n + 2 max(28 (1 − α), α) / η),

    so that no group's coverage errs by more than √(that) / T_g, whatever the data do. How wide the
    intervals are is not promised, only measured.

    References
    ----------
    Gibbs and Candès, "Adaptive conformal inference under distribution shift", NeurIPS 2021.
    Ramalingam, Kiyani and Roth, "The relationship between no-regret learning and online conformal
    prediction", ICML 2025.
    """

    coverage: float = 0.9
    rate: float = 0.05

    def __post_init__(self) -> None:
        if not (is_finite(self.coverage) and 0.0 < self.coverage < 1.0):
            raise ConfigurationError(
                f"coverage must be a number between 0 and 1, such as 0.9, not {self.coverage!r}."
            )
        if not (is_finite(self.rate) and 0.0 < self.rate <= FASTEST):
            raise ConfigurationError(
                f"rate must be a number above 0, and at most {FASTEST:g}, not {self.rate!r}."
            )
        for name in ("coverage", "rate"):  # as files keep them
            object.__setattr__(self, name, float(getattr(self, name)))


def as_intervals(intervals: Any, loss: Loss) -> Intervals | None:
    """What ``intervals`` asks for, checked; None where it asks for none."""
    if intervals is None or intervals is False:
        return None
    if not loss.intervals:
        raise ConfigurationError(
            f"intervals are for labels that are numbers of a known range, and {loss} is not about "
            "such: use losses.Square(low, high) or losses.Absolute(low, high), or leave them out."
        )
    if intervals is True:
        return Intervals()
    if isinstance(intervals, Intervals):
        return intervals
    return Intervals(intervals)


def ends_of(loss: Loss, issued: Vector) -> Vector:
    """The scaled ends of intervals in the label's units; NaN where one is empty.

    A label is from the first to the last of them exactly where its round counts as covered.
    """
    out = np.empty(issued.shape)
    ranges = loss.advice_range, loss.reach
    low, span = float(loss.low), float(loss.high - loss.low)
    scaled, reach = (tuple(map(float, one)) for one in ranges)
    kernels.unscaled(issued, scaled, reach, low, span, out)
    return out


def interval_of(loss: Loss, play: Any) -> tuple[float, float] | None:
    """The interval of a play in the label's units; None where it has none, or an empty one."""
    if not loss.intervals or not isinstance(play, Layered) or not isinstance(play.after, Ends):
        return None
    low, high = ends_of(loss, np.array([play.after]))[0].tolist()
    return (low, high) if low <= high else None


class IntervalLayer:
    """An interval around every prediction, which stays as it is."""

    prefix: ClassVar[str] = "intervals."
    bins = None

    def __init__(self, kind: Intervals, loss: Loss) -> None:
        self.kind, self.loss = kind, loss
        parameters = np.array([1.0 - kind.coverage, kind.rate, *loss.advice_range])
        self.widths = Store(kernels.WIDTHS, parameters=parameters)

    def issue(self, number: int, awake: Awake, p: float) -> tuple[float, Ends]:
        """The prediction and the ends of its interval, scaled. Changes nothing."""
        return p, Ends(*kernels.issue(self.widths.address, addressed(awake), p))

    def learn(
        self,
        number: int,
        awake: Awake,
        p: float,
        label: float,
        late: Layered | None,
        stands_for: float,
    ) -> None:
        """Learn from the label of p; ``late`` is what was issued, where others came since."""
        ends = self.issue(number, awake, p)[1] if late is None else late.after
        kernels.learn(self.widths.address, addressed(awake), p, *ends, label)

    def run(self, work: Work, baseline: int) -> Outcome:
        """Both for all rows of a chunk, after the model is through with it."""
        ends = np.empty((work.labels.size, 2))
        rows = *work.members, work.labels
        kernels.learn_stream(self.widths.address, *rows, work.outcome.prediction, ends)
        return work.outcome._replace(ends=ends)

    def lost(self, group: int) -> None:
        """Nothing is lost by an interval."""

    def score(self, play: Layered, label: float) -> None:
        """The same."""

    def table(self, names: list[str], settled: int, largest: int | None) -> "CoverageTable":
        """The coverage of every group."""
        unit, wanted = float(self.loss.high - self.loss.low), self.kind.coverage
        sums = ("rounds", "missed", "width")
        known = np.hstack([self.widths.column(one, len(names)) for one in sums]).tolist()
        rows = []
        for group in in_order(self.widths, names, largest):
            rounds, missed, width = known[group]
            none = rounds == 0.0
            rows.append(
                {
                    "group": names[group],
                    "rounds": rounds,
                    "coverage": None if none else 1.0 - missed / rounds,
                    "error": None if none else (1.0 - wanted) - missed / rounds,
                    "missed": missed,
                    "excess": missed - (1.0 - wanted) * rounds,
                    "mean_width": None if none else unit * (width / rounds),
                }
            )
        return CoverageTable(rows, wanted, settled)

    def reserve(self, groups: Index, new: Index, masses: Sequence[float] | Vector) -> None:
        """Make room for these groups."""
        self.widths.reserve(groups, 0)

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.widths.clear(("clock", "scale", "ratio", "regret", "absolute"))

    def save(self, groups: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name."""
        return self.widths.save(groups, 0)

    def load(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what :meth:`save` gave."""
        own = kernels.Widths(*(arrays[name] for name in kernels.Widths._fields))
        if any((one < 0.0).any() for one in own._replace(regret=own.absolute)):
            raise ValueError("a sum of what is at least 0 is below it")
        if (own.missed > own.rounds).any() or (np.abs(own.regret) > own.absolute).any():
            raise ValueError("a sum is beyond that of all rounds")
        low, high = self.loss.advice_range
        most = (1.0 + ROUNDING) * (high - low)
        wide = (own.width > most * own.rounds).any() or (own.scale > most).any()
        if wide or (own.ratio > 1.0 / (1.0 - self.kind.coverage)).any():
            raise ValueError("a width is beyond the range")
        self.widths.load(arrays, groups, 0, 0)


class Around:
    """Intervals around predictions that come from elsewhere, with the same promise.

    Parameters
    ----------
    intervals : the share of labels that they are to cover, or ``gw.Intervals(...)``.
    loss : ``losses.Square(low, high)``, the range of the labels.

    >>> import groupwise as gw
    >>> around = Around(0.9, gw.losses.Square(0, 10))
    >>> indptr, groups, weights = np.array([0, 1, 2]), np.array([0, 0]), np.ones(2)
    >>> around.add(["all"], indptr, groups, weights, np.array([4.0, 5.0]), np.array([4.5, 2.0]))
    array([[ 0., 10.],
           [ 0., 10.]])
    >>> around.table()["all"]["coverage"]
    1.0
    """

    def __init__(self, intervals: float | Intervals, loss: Loss) -> None:
        kind = as_intervals(intervals, loss)
        assert kind is not None
        self.loss, self._layer = loss, IntervalLayer(kind, loss)
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
    ) -> Vector:
        """The intervals of some rows, whose labels are then learned from.

        Row t is in ``names[g]`` for the ``groups`` from ``indptr[t]`` to ``indptr[t + 1]``, with
        these ``weights``. Predictions and labels are in the label's units; so are the ends.
        """
        if not labels.shape == predictions.shape == (indptr.size - 1,):
            raise ConfigurationError("Give a prediction and a label for every row.")
        steps = np.diff(indptr, prepend=0, append=groups.size)
        if (steps < 0).any() or steps[0] or steps[-1] or weights.shape != groups.shape:
            raise ConfigurationError("indptr does not say which groups and weights are whose.")
        if not ((weights >= 0.0) & (weights <= 1.0)).all():
            raise ConfigurationError("Weights are from 0 to 1.")
        if not np.isfinite(predictions).all():
            row = int(np.argmin(np.isfinite(predictions)))
            raise ConfigurationError(f"Prediction {row} is {predictions[row]}: give numbers.")
        scaled = self.loss.encode_many(labels)
        centres = (predictions - self.loss.low) / (self.loss.high - self.loss.low)
        for name in names:
            self._numbers.setdefault(name, len(self._numbers))
        numbers = np.array([self._numbers[name] for name in names], dtype=np.int64)
        self._layer.widths.reserve(numbers, 0)
        ends = np.empty((scaled.size, 2))
        rows = indptr, numbers[groups], weights, scaled
        kernels.learn_stream(self._layer.widths.address, *rows, centres, ends)
        self._settled += scaled.size
        return ends_of(self.loss, ends)

    def table(self, largest: int | None = None) -> "CoverageTable":
        """The coverage of every group, or of the largest."""
        return self._layer.table(list(self._numbers), self._settled, largest)


@dataclass(frozen=True, repr=False)
class CoverageTable(Printed):
    """How often the labels of every group were in the intervals that were issued for them.

    ``rows`` is a list of dictionaries with the keys group, rounds (those settled that had an
    interval), coverage (the share of labels inside), error (coverage minus what is asked for),
    missed (M_g), excess (θ_g = M_g − α T_g, so that the error is −excess / rounds) and mean_width
    (in the label's units).
    """

    wanted: float = 0.0
    settled: int = 0
    keys: ClassVar[tuple[str, ...]] = (
        *("group", "rounds", "coverage", "error", "missed", "excess", "mean_width"),
    )

    def shown(self) -> list[str]:
        """The keys to print."""
        return list(self.keys)

    @property
    def units(self) -> dict[str, str]:
        """What the figures are in."""
        return {"mean_width": "label"}

    def remarks(self) -> list[str]:
        """How to read it."""
        return [
            f"{self.settled} settled rounds; intervals are to cover {self.wanted:g} of the labels "
            "of every group. The error is −excess / rounds, exactly."
        ]
