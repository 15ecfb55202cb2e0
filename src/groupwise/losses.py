"""Losses: what a prediction costs, in which range, and what may be done with it.

Inside, every loss is scaled to [0, 1]: a real label y becomes (y − low) / (high − low), advice
likewise, and ``unit`` turns a scaled loss back into the label's own units.
"""

import math
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from groupwise.errors import ConfigurationError, LabelError

FLOOR_LIMIT = 0.5


class Loss:
    """What the reduction asks of a loss. The subclasses below are the ones there are."""

    kernel: ClassVar[int | None] = None
    """The number of the compiled form (``kernels.losses``), where there is one."""
    convex: ClassVar[bool] = False
    """May the weighted mean of the advice be played?"""
    linear_hindsight: ClassVar[bool] = False
    """Is the best linear model in hindsight a least-squares fit?"""
    low: float
    high: float

    @property
    def unit(self) -> float:
        """A scaled loss times this is a loss in the label's units."""
        raise NotImplementedError

    @property
    def scale(self) -> float:
        """What the compiled form divides by; 1 except for the log loss."""
        return 1.0

    @property
    def bounded(self) -> bool:
        """Is the scaled loss in [0, 1] for advice in the range?"""
        return True

    @property
    def eta(self) -> float | None:
        """The largest η for which the *scaled* loss is η-mixable; None where there is none."""
        return None

    @property
    def advice_range(self) -> tuple[float, float]:
        """The scaled range that advice is clipped to."""
        return 0.0, 1.0

    def encode(self, label: object) -> float:
        """The scaled label; an error that names the label where it is not one."""
        return (self._number(label) - self.low) / (self.high - self.low)

    def encode_many(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """``encode`` for a column; the error names the first bad row."""
        inside = (labels >= self.low) & (labels <= self.high)
        if not inside.all():
            row = int(np.argmin(inside))
            try:
                self.encode(float(labels[row]))
            except LabelError as error:
                raise LabelError(f"row {row}: {error}") from None
        return (labels - self.low) / (self.high - self.low)

    def decode(self, scaled: float) -> float:
        """A scaled prediction in the label's units."""
        return self.low + (self.high - self.low) * scaled

    def decode_many(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """``decode`` for an array."""
        return self.low + (self.high - self.low) * scaled

    def to_dict(self) -> dict[str, Any]:
        """The loss by name, for files; :func:`loss_from_dict` reads it."""
        return {"type": type(self).__name__, **asdict(cast(Any, self))}

    def _number(self, label: object) -> float:
        if type(label) is not float:
            if isinstance(label, np.generic):
                label = label.item()
            if isinstance(label, bool) or not isinstance(label, Real):
                raise LabelError(
                    f"Label {label!r} is not a number. Give the label as an int or a float."
                )
            label = float(label)
        if not self.low <= label <= self.high:
            if math.isnan(label):
                raise LabelError(
                    "The label is NaN. Settle the ticket when the label is known, "
                    "or drop it with model.forget(ticket)."
                )
            raise LabelError(
                f"Label {label:g} is outside [{self.low:g}, {self.high:g}]. "
                f"Give losses.{type(self).__name__}(low, high) the range of your labels."
            )
        return label


def _check_range(low: float, high: float) -> None:
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not (math.isfinite(low) and math.isfinite(high)) or not low < high:
        raise ConfigurationError(
            f"The label range [{low!r}, {high!r}] is not one: "
            "low and high must be finite numbers with low < high."
        )


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
        _check_range(self.low, self.high)

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
        _check_range(self.low, self.high)

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


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 where the prediction differs from the label, for labels 0 and 1. Discrete: sampled only.

    >>> ZeroOne().encode(True)
    1.0
    """

    kernel: ClassVar[int] = 3
    low: ClassVar[float] = 0.0
    high: ClassVar[float] = 1.0

    @property
    def unit(self) -> float:
        return 1.0

    def encode(self, label: object) -> float:
        if isinstance(label, (bool, np.bool_)):
            return float(label)
        number = self._number(label)
        if number not in (0.0, 1.0):
            raise LabelError(f"Label {number:g} is neither 0 nor 1.")
        return number

    def encode_many(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        scaled = super().encode_many(labels)
        binary = (scaled == 0.0) | (scaled == 1.0)
        if not binary.all():
            row = int(np.argmin(binary))
            raise LabelError(f"row {row}: label {labels[row]:g} is neither 0 nor 1.")
        return scaled


def loss_from_dict(fields: dict[str, Any]) -> Loss:
    """The loss that :meth:`Loss.to_dict` wrote."""
    kinds: dict[str, type[Loss]] = {kind.__name__: kind for kind in (Square, Absolute, Log, ZeroOne)}
    parameters = dict(fields)
    name = parameters.pop("type", None)
    if name not in kinds:
        raise ConfigurationError(f"There is no loss called {name!r}.")
    return kinds[name](**parameters)
