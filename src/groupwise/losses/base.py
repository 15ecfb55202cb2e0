"""What the reduction asks of a loss."""

import math
from dataclasses import asdict
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from groupwise.errors import ConfigurationError, LabelError


class Loss:
    """What a prediction costs, in which range, and what may be done with it."""

    kernel: ClassVar[str]
    """The name of the compiled form (``kernels.losses``)."""
    convex: ClassVar[bool] = False
    """May the weighted mean of the advice be played?"""
    linear_hindsight: ClassVar[bool] = False
    """Is the best linear model in hindsight a least-squares fit?"""
    vector: ClassVar[bool] = False
    """Are labels and predictions vectors?"""
    ranged: ClassVar[bool] = True
    """Is the range of the labels known? Without it no certificate holds."""
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

    def encode(self, label: object) -> Any:
        """The scaled label; an error that names the label where it is not one."""
        if type(label) is not float or not self.low <= label <= self.high:
            label = self._number(label)
        return (label - self.low) / (self.high - self.low)

    def encode_many(self, labels: NDArray[np.float64]) -> NDArray[np.float64]:
        """``encode`` for a column; the error names the first bad row."""
        inside = (labels >= self.low) & (labels <= self.high)
        if not inside.all():
            row = int(np.argmin(inside))
            try:
                self.encode(float(labels[row]))
            except LabelError as error:
                error.row = row
                raise
        return (labels - self.low) / (self.high - self.low)

    def decode(self, scaled: Any) -> Any:
        """A scaled prediction in the label's units."""
        return self.low + (self.high - self.low) * scaled

    def decode_many(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        """``decode`` for an array."""
        return self.low + (self.high - self.low) * scaled

    def linear(self, label: Any) -> tuple[NDArray[np.float64], float]:
        """An encoded label as costs c and offset b: an action a loses (⟨a, c⟩ + b) / unit, scaled.

        For losses of discrete actions only.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The loss by name, for files; ``loss_from_dict`` reads it."""
        return {"type": type(self).__name__, **asdict(cast(Any, self))}

    def _number(self, label: Any) -> float:
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
        number: float = label
        return number


def check_range(low: Any, high: Any) -> None:
    """Refuse what is not a range of labels."""
    numbers = all(isinstance(v, Real) and not isinstance(v, bool) for v in (low, high))
    if not numbers or not (math.isfinite(low) and math.isfinite(high)) or not low < high:
        raise ConfigurationError(
            f"The label range [{low!r}, {high!r}] is not one: "
            "low and high must be finite numbers with low < high."
        )
