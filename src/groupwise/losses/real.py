"""Losses of real predictions."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from groupwise.errors import ConfigurationError, LabelError
from groupwise.losses.base import Loss, check_range

FLOOR_LIMIT = 0.5
LARGEST_LABEL = 1e50
"""Without a range no label may be larger: fourth powers, sums of them too, must stay finite."""


CERTAINTY = 1e-15
"""How close to 0 and 1 advice may come under log loss: a loss must stay finite."""


@dataclass(frozen=True)
class Square(Loss):
    """(prediction − label)², for labels in [low, high].

    Convex, and 2-mixable on [0, 1] (Vovk 2001), so both aggregators can be used.

    >>> Square(0.0, 10.0).encode(5)
    0.5
    """

    low: float = 0.0
    high: float = 1.0
    kernel: ClassVar[str] = "square"
    convex: ClassVar[bool] = True
    linear_hindsight: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def unit(self) -> float:
        return float((self.high - self.low) ** 2)

    @property
    def eta(self) -> float:
        return 2.0


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
        if not abs(number) <= LARGEST_LABEL:
            raise LabelError(f"Label {number:g} is too large; labels are at most 1e50.")
        return number

    def encode_many(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        fine = np.abs(labels) <= LARGEST_LABEL
        if not fine.all():
            row = int(np.argmin(fine))
            try:
                self.encode(float(labels[row]))
            except LabelError as error:
                error.row = row
                raise
        return labels.astype(np.float64)

    def decode(self, scaled: float) -> float:
        return scaled

    def decode_many(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        return scaled


@dataclass(frozen=True)
class Absolute(Loss):
    """|prediction − label|, for labels in [low, high]. Convex, not mixable.

    >>> Absolute(0.0, 10.0).unit
    10.0
    """

    low: float = 0.0
    high: float = 1.0
    kernel: ClassVar[str] = "absolute"
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def unit(self) -> float:
        return float(self.high - self.low)


@dataclass(frozen=True)
class Log(Loss):
    """−y ln p − (1 − y) ln(1 − p), for labels and predictions in [0, 1].

    1-mixable. With a floor, advice is clipped to [floor, 1 − floor] and the loss is at most
    ln(1/floor). Without one it counts as unbounded; advice still keeps 1e-15 away from certainty.

    >>> round(Log(floor=0.01).unit, 3)
    4.605
    """

    floor: float = 0.0
    kernel: ClassVar[str] = "log"
    convex: ClassVar[bool] = True
    low = 0.0
    high = 1.0

    def __post_init__(self) -> None:
        if not 0.0 <= self.floor < FLOOR_LIMIT:
            raise ConfigurationError(f"floor must be in [0, 0.5), not {self.floor!r}.")

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
