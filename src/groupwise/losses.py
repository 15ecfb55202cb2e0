"""Losses: what a prediction costs, in which range, and what may be done with it.

Inside, every loss is scaled to [0, 1]: a real label y becomes (y − low) / (high − low), advice
likewise, and ``unit`` turns a scaled loss back into the label's own units.

Those of discrete actions (labels, sets of labels, points of a decision set) are linear in the
action a, (⟨a, c⟩ + b) / unit, which is what the oracles need: a wrong label costs
|a − y| = y + a(1 − 2y) for a and y in {0, 1}. Actions are sampled, never averaged.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, cast

import numpy as np

from groupwise.arrays import Flags, Vector
from groupwise.class_names import ClassName, ClassNames
from groupwise.errors import ConfigurationError, LabelError, is_finite, named
from groupwise.loss import Loss

__all__ = [
    "Absolute",
    "Hamming",
    "Linear",
    "Log",
    "Loss",
    "Square",
    "Unbounded",
    "Widened",
    "ZeroOne",
    "loss_from_dict",
]

FLOOR_LIMIT = 0.5
LARGEST_LABEL = 1e50
"""Without a range no label may be larger: fourth powers, sums of them too, must stay finite."""
WIDEST = 1e140
"""Label ranges are at most so wide, and at least 1/WIDEST: squares and their sums are numbers."""
CERTAINTY = 1e-15
"""How close to 0 and 1 advice may come under log loss: a loss must stay finite."""


@dataclass(frozen=True)
class _Ranged(Loss):
    """Its range is declared."""

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if not (is_finite(low) and is_finite(high) and low < high):
            raise ConfigurationError(
                f"The label range [{low!r}, {high!r}] is not one: "
                "low and high must be finite numbers with low < high."
            )
        if not 1.0 / WIDEST <= high - low <= WIDEST:
            raise ConfigurationError(
                f"The label range [{low!r}, {high!r}] cannot be computed with: high − low must be "
                f"from {1.0 / WIDEST:g} to {WIDEST:g}. Measure labels in other units."
            )


@dataclass(frozen=True)
class _Real(_Ranged):
    """Labels and predictions are numbers of a range, and are scaled to [0, 1]."""

    convex: ClassVar[bool] = True
    intervals: ClassVar[bool] = True

    def encode(self, label: object) -> Any:
        if type(label) is not float or not self.low <= label <= self.high:
            label = self._number(label)
        return (label - self.low) / (self.high - self.low)

    def encode_many(self, labels: Vector) -> Vector:
        return (super().encode_many(labels) - self.low) / (self.high - self.low)

    def decode(self, scaled: Any) -> Any:
        found = self.low + (self.high - self.low) * scaled
        if scaled <= 1.0 and found > self.high:  # by rounding; the lower end it cannot pass
            return float(self.high)
        return found

    def decode_many(self, scaled: Vector) -> Vector:
        found: Vector = self.low + (self.high - self.low) * scaled
        beyond = (found > self.high) & (scaled <= 1.0)
        return np.where(beyond, self.high, found) if beyond.any() else found


@dataclass(frozen=True)
class Square(_Real):
    """(prediction − label)², for labels in [low, high].

    Convex, and 2-mixable on [0, 1] (Vovk 2001), so all aggregators can be used.

    >>> Square(0.0, 10.0).encode(5)
    0.5
    """

    kernel: ClassVar[str] = "square"
    measure: ClassVar[str] = "label²"
    linear_hindsight: ClassVar[bool] = True

    @property
    def unit(self) -> float:
        return float((self.high - self.low) ** 2)

    @property
    def eta(self) -> float:
        return 2.0


@dataclass(frozen=True)
class Widened(Square):
    """Square loss in the units of [low, high], for labels in [least, most], which holds that range.

    What the loss of a model becomes when labels outgrow their range (``model.widened``): scaled
    ones leave [0, 1], and nothing that was learned has to change.

    >>> Widened(0.0, 10.0, -5.0, 20.0).encode(15)
    1.5
    """

    least: float = 0.0
    most: float = 1.0
    widened: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        Square(self.least, self.most)
        if not (self.least <= self.low and self.high <= self.most):
            raise ConfigurationError(
                f"The range [{self.least!r}, {self.most!r}] does not hold [{self.low!r}, "
                f"{self.high!r}]: a range is only widened."
            )
        if (self.most - self.least) / (self.high - self.low) > WIDEST:
            raise ConfigurationError(
                f"The range [{self.least!r}, {self.most!r}] cannot be computed with in units of "
                f"[{self.low!r}, {self.high!r}]: begin a new model with losses.Square for it."
            )

    @property
    def reach(self) -> tuple[float, float]:
        return self.least, self.most

    @property
    def eta(self) -> float:
        return 2.0 / (self.scaled(self.most) - self.scaled(self.least)) ** 2

    @property
    def advice_range(self) -> tuple[float, float]:
        return self.scaled(self.least), self.scaled(self.most)

    def scaled(self, label: float) -> float:
        """A label as it is scaled."""
        return (label - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Unbounded(Loss):
    """(prediction − label)², for labels whose range nobody knows.

    Labels and advice stay in their own units and advice is not clipped. Every guarantee needs a
    range, so certificates are void, and how fast AdaNormalHedge moves its weights depends on the
    labels' units: measure in units in which labels are of the order of 1 or more.

    >>> Unbounded().encode(-12.5)
    -12.5
    """

    low = -math.inf
    high = math.inf
    kernel: ClassVar[str] = "square"
    measure: ClassVar[str] = "label²"
    convex: ClassVar[bool] = True
    linear_hindsight: ClassVar[bool] = True
    ranged: ClassVar[bool] = False

    @property
    def unit(self) -> float:
        return 1.0

    @property
    def bounded(self) -> bool:
        return False

    @property
    def advice_range(self) -> tuple[float, float]:
        return self.low, self.high

    def encode(self, label: object) -> float:
        number = self._number(label)
        if abs(number) > LARGEST_LABEL:
            raise LabelError(f"Label {number:g} is too large; labels are at most 1e50.")
        return number

    def _fine(self, labels: Vector) -> Flags:
        return np.abs(labels) <= LARGEST_LABEL


@dataclass(frozen=True)
class Absolute(_Real):
    """|prediction − label|, for labels in [low, high]. Convex, not mixable.

    >>> Absolute(0.0, 10.0).unit
    10.0
    """

    kernel: ClassVar[str] = "absolute"


@dataclass(frozen=True)
class Log(Loss):
    """−y ln p − (1 − y) ln(1 − p), for labels and predictions in [0, 1]; or −ln p[y], for classes.

    Labels are 0 and 1, False and True, or *soft*: any number between, which is a probability
    itself. 1-mixable. With a floor, advice is clipped to [floor, 1 − floor] and the loss is at most
    ln(1/floor). Without one it counts as unbounded; advice still keeps 1e-15 away from certainty.

    What is played is the pair p = Σ p_i a_i and 1 − p = Σ p_i (1 − a_i), both with all their
    digits, and this pair is charged. The prediction shown is p as a double, which near 1 cannot
    hold what 1 − p is.

    Parameters
    ----------
    floor : the least probability, for ``aggregators.AdaNormalHedge``, which needs a bounded loss.
    classes : the names of the classes, two or more of them: texts, numbers or booleans. Labels are
        then such names, and a prediction is a mapping from every class, in this order, to its
        probability. Of two classes the second is the one that counts as 1. Three and more are told
        apart by a chain of dichotomies (``groupwise.classes``); it has no floor.

    >>> round(Log(floor=0.01).unit, 3)
    4.605
    >>> Log(classes=["no", "yes"]).decode(0.25)
    {'no': 0.75, 'yes': 0.25}
    >>> Log(classes=["red", "green", "blue"]).encode("blue")
    2.0
    """

    floor: float = 0.0
    classes: Sequence[ClassName] | None = None
    kernel: ClassVar[str] = "log"
    measure: ClassVar[str] = "nats"
    convex: ClassVar[bool] = True
    booleans: ClassVar[bool] = True
    low = 0.0
    high = 1.0

    def __post_init__(self) -> None:
        if not is_finite(self.floor) or not 0.0 <= self.floor < FLOOR_LIMIT:
            raise ConfigurationError(f"floor must be in [0, 0.5), not {self.floor!r}.")
        if self.classes is not None:
            object.__setattr__(self, "classes", self._names.names)
        if self.nodes > 1 and self.floor > 0.0:
            raise ConfigurationError(
                "A floor is for two classes: with three or more leave it out, and mix them by "
                "aggregators.Specialists(), which needs none."
            )

    @property
    def unit(self) -> float:
        return self.scale

    @property
    def scale(self) -> float:
        return -math.log(self.floor) if self.floor > 0.0 else 1.0

    @property
    def bounded(self) -> bool:
        return self.floor > 0.0

    @property
    def eta(self) -> float:
        return self.scale

    @property
    def advice_range(self) -> tuple[float, float]:
        least = max(self.floor, CERTAINTY)
        return least, 1.0 - least

    @property
    def nodes(self) -> int:
        return 1 if self.classes is None else max(1, len(self.classes) - 1)

    @cached_property
    def _names(self) -> ClassNames:
        return ClassNames(self.classes)

    def encode(self, label: object) -> float:
        """The label, or the number of the class that it names."""
        return self._number(label) if self.classes is None else self._names.number(label)

    def encode_many(self, labels: Any) -> Vector:
        if self.classes is None:
            return super().encode_many(labels)
        return self._names.numbers(labels)

    def decode(self, scaled: Any) -> Any:
        """A probability as it is; with classes, that of the second or those of all, by name."""
        if self.classes is None:
            return scaled
        shares = np.asarray(scaled, dtype=np.float64)
        shares = shares if shares.ndim else self.decode_many(shares)
        return dict(zip(self.classes, shares.tolist(), strict=True))

    def decode_many(self, scaled: Vector) -> Vector:
        """``decode`` for an array; with classes it has a last axis for them."""
        if self.classes is None or self.nodes > 1:
            return scaled
        return np.stack([1.0 - scaled, scaled], axis=-1)

    def to_dict(self) -> dict[str, Any]:
        # Classes only where there are some: tickets that were signed before read the same.
        fields: dict[str, Any] = {"type": "Log", "floor": self.floor}
        return fields if self.classes is None else {**fields, "classes": list(self.classes)}

    @property
    def _kinds(self) -> str:
        return "Give 0, 1, a boolean or a probability, or losses.Log(classes=[...]) the classes."

    @property
    def _remedy(self) -> str:
        return (
            "Log loss takes 0, 1, booleans and probabilities; other labels are classes to be named "
            "in losses.Log(classes=[...]), or numbers for losses.Square(low, high)."
        )


_COSTS = np.array([1.0]), np.array([-1.0])
"""1 − 2y for the labels 0 and 1."""


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 where the prediction differs from the label, for labels 0 and 1. Discrete: sampled only.

    >>> ZeroOne().encode(True)
    1.0
    """

    kernel: ClassVar[str] = "zero-one"
    measure: ClassVar[str] = "mistakes"
    booleans: ClassVar[bool] = True
    low = 0.0
    high = 1.0

    def encode(self, label: object) -> float:
        number = self._number(label)
        if number not in (0.0, 1.0):
            raise LabelError(f"Label {number:g} is neither 0 nor 1.")
        return number

    def decode_many(self, scaled: Vector) -> Vector:
        return np.asarray(scaled, dtype=np.float64)

    def linear(self, label: float) -> tuple[Vector, float]:
        return _COSTS[int(label)], label

    def _fine(self, labels: Vector) -> Flags:
        return np.isin(labels, (0.0, 1.0))


@dataclass(frozen=True)
class Hamming(Loss):
    """The number of wrong labels among ``labels`` many, each 0 or 1.

    >>> Hamming(labels=3).encode([1, 0, 1])
    array([1., 0., 1.])
    >>> Hamming(labels=3).unit
    3.0
    """

    kernel: ClassVar[str] = "linear"
    measure: ClassVar[str] = "mistakes"
    vector: ClassVar[bool] = True
    labels: int

    def __post_init__(self) -> None:
        if not is_finite(self.labels, int) or self.labels < 1:
            raise ConfigurationError(
                f"labels must be a positive whole number, not {self.labels!r}."
            )

    @property
    def unit(self) -> float:
        return float(self.labels)

    def encode(self, label: object) -> Vector:
        vector = _vector(label, f"{self.labels} labels, each 0 or 1")
        if vector.size != self.labels:
            raise LabelError(
                f"The label has {vector.size} entries, and losses.Hamming(labels={self.labels}) "
                "wants as many as there are labels."
            )
        wrong = (vector != 0.0) & (vector != 1.0)
        if wrong.any():
            raise LabelError(f"Label {vector[wrong][0]:g} is neither 0 nor 1.")
        return vector

    def linear(self, label: Vector) -> tuple[Vector, float]:
        return 1.0 - 2.0 * label, float(sum(label.tolist()))


@dataclass(frozen=True)
class Linear(_Ranged):
    """⟨action, costs⟩, for cost vectors as labels; every action's cost is in [low, high].

    >>> Linear(0.0, 18.0).encode([0.5, 2])
    array([0.5, 2. ])
    """

    kernel: ClassVar[str] = "linear"
    measure: ClassVar[str] = "costs"
    vector: ClassVar[bool] = True

    def encode(self, label: object) -> Vector:
        vector = _vector(label, "a vector of costs")
        if np.isnan(vector).any():
            raise LabelError(
                f"Cost {int(np.argmax(np.isnan(vector)))} is NaN. Settle the ticket when all costs "
                "are known, or drop it with model.forget(ticket)."
            )
        if np.isinf(vector).any():
            raise LabelError(f"Cost {int(np.argmax(np.isinf(vector)))} is infinite.")
        return vector

    def linear(self, label: Vector) -> tuple[Vector, float]:
        return label, -float(self.low)


def _vector(label: object, wanted: str) -> Vector:
    """The label as a new vector of numbers."""
    try:
        array = np.asarray(label)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise LabelError(f"Label {label!r} is not {wanted}. Give a list or array of numbers.")
    return np.array(array, dtype=np.float64)


EVERY = (Square, Widened, Unbounded, Absolute, Log, ZeroOne, Hamming, Linear)
KINDS = {x.__name__: x for x in EVERY}


def loss_from_dict(fields: dict[str, Any]) -> Loss:
    """The loss that :meth:`Loss.to_dict` wrote."""
    return cast(Loss, named(KINDS, fields, "loss"))
