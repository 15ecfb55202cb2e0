"""Losses of real predictions."""

import math
from dataclasses import dataclass
from typing import ClassVar

from groupwise.errors import ConfigurationError
from groupwise.losses.base import Loss, check_range

FLOOR_LIMIT = 0.5


@dataclass(frozen=True)
class Square(Loss):
    """(prediction − label)², for labels in [low, high].

    Convex, and 2-mixable on [0, 1] (Vovk 2001), so both aggregators can be used.

    >>> Square(0.0, 10.0).encode(5)
    0.5
    """

    low: float = 0.0
    high: float = 1.0
    kernel: ClassVar[int] = 0
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
class Absolute(Loss):
    """|prediction − label|, for labels in [low, high]. Convex, not mixable.

    >>> Absolute(0.0, 10.0).unit
    10.0
    """

    low: float = 0.0
    high: float = 1.0
    kernel: ClassVar[int] = 1
    convex: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def unit(self) -> float:
        return float(self.high - self.low)


@dataclass(frozen=True)
class Log(Loss):
    """−y ln p − (1 − y) ln(1 − p), for labels and predictions in [0, 1].

    1-mixable. Unbounded where ``floor`` is 0; with a floor, advice is clipped to
    [floor, 1 − floor] and the loss is at most ln(1/floor).

    >>> round(Log(floor=0.01).unit, 3)
    4.605
    """

    floor: float = 0.0
    kernel: ClassVar[int] = 2
    convex: ClassVar[bool] = True
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0

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
        return self.floor, 1.0 - self.floor
