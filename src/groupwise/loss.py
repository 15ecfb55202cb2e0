"""What every loss says of itself: in which range it is, and what may be done with it."""

import math
from collections.abc import Sequence
from dataclasses import asdict
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np

from groupwise.arrays import Flags, Vector
from groupwise.class_names import ClassName, unknown
from groupwise.errors import LabelError


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
    intervals: ClassVar[bool] = False
    """Are labels numbers of a known range, so that a prediction may have an interval around it?"""
    booleans: ClassVar[bool] = False
    """Are True and False labels, the same as 1 and 0?"""
    measure: ClassVar[str] = "label"
    """The unit that its losses are in, and regret and certificates with them."""
    classes: Sequence[ClassName] | None = None
    """The names of the classes, where labels are such and a prediction is a probability of each."""
    low: float
    high: float

    widened: ClassVar[bool] = False
    """May scaled labels leave [0, 1], because the range was made wider?"""

    @property
    def reach(self) -> tuple[float, float]:
        """Where labels may be."""
        return self.low, self.high

    @property
    def unit(self) -> float:
        """A scaled loss times this is a loss in the label's units."""
        return float(self.high - self.low)

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

    @property
    def nodes(self) -> int:
        """How many numbers one advice is made of: 1, or a dichotomy for each class but the last."""
        return 1

    def encode(self, label: object) -> Any:
        """The scaled label; an error that names the label where it is not one."""
        return self._number(label)

    def encode_many(self, labels: Any) -> Vector:
        """``encode`` for an array; the error names the first bad row."""
        fine = self._fine(labels)
        if not fine.all():
            row = int(np.argmin(fine))
            try:
                self.encode(float(labels[row]))
            except LabelError as error:
                error.row = row
                raise
        return cast(Vector, labels.astype(np.float64))

    def decode(self, scaled: Any) -> Any:
        """A scaled prediction in the label's units."""
        return scaled

    def decode_many(self, scaled: Vector) -> Vector:
        """``decode`` for an array."""
        return cast(Vector, self.decode(scaled))

    def linear(self, label: Any) -> tuple[Vector, float]:
        """An encoded label as costs c and offset b: an action a loses (⟨a, c⟩ + b) / unit, scaled.

        For losses of discrete actions only.
        """
        raise NotImplementedError

    def to_dict(self) -> dict[str, Any]:
        """The loss by name, for files; ``loss_from_dict`` reads it."""
        return {"type": type(self).__name__, **asdict(cast(Any, self))}

    def _fine(self, labels: Vector) -> Flags:
        """Which numbers of a column ``encode`` takes."""
        least, most = self.reach
        return (labels >= least) & (labels <= most)

    def _number(self, label: Any) -> float:
        if type(label) is not float:
            if isinstance(label, np.generic):
                label = label.item()
            if isinstance(label, bool) and self.booleans:
                return float(label)
            if isinstance(label, bool) or not isinstance(label, Real):
                raise LabelError(f"Label {label!r} is not a number. {self._kinds}")
        try:
            number = float(label)
        except OverflowError:  # a whole number beyond all floats
            number = math.inf if label > 0 else -math.inf
        if math.isnan(number):
            raise unknown(number)
        least, most = self.reach
        if not least <= number <= most:
            raise LabelError(f"Label {number:g} is outside [{least:g}, {most:g}]. {self._remedy}")
        return number

    @property
    def _kinds(self) -> str:
        """What to do about a label that is not a number."""
        return "Give the label as an int or a float."

    @property
    def _remedy(self) -> str:
        """What to do about a label that is outside the range."""
        return (
            f"Give losses.{type(self).__name__}(low, high) the range of your labels; in settings "
            "that is range = [low, high]."
        )
