"""Losses of discrete actions: labels, sets of labels, and points of a decision set.

All are linear in the action a, (⟨a, c⟩ + b) / unit, which is what the oracles need: a wrong label
costs |a − y| = y + a(1 − 2y) for a and y in {0, 1}. Actions are sampled, never averaged.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from groupwise.errors import ConfigurationError, LabelError
from groupwise.losses.base import Loss, check_range


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 where the prediction differs from the label, for labels 0 and 1. Discrete: sampled only.

    >>> ZeroOne().encode(True)
    1.0
    """

    kernel: ClassVar[str] = "zero-one"
    low = 0.0
    high = 1.0

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
            raise LabelError(f"Label {labels[row]:g} is neither 0 nor 1.", row=row)
        return scaled

    def decode(self, scaled: Any) -> Any:
        return scaled

    def linear(self, label: float) -> tuple[NDArray[np.float64], float]:
        return np.array([1.0 - 2.0 * label]), label


@dataclass(frozen=True)
class _VectorLoss(Loss):
    """Labels are vectors; predictions are the actions themselves."""

    kernel: ClassVar[str] = "linear"
    vector: ClassVar[bool] = True

    def decode(self, scaled: Any) -> Any:
        return scaled

    def decode_many(self, scaled: NDArray[np.float64]) -> NDArray[np.float64]:
        return scaled


@dataclass(frozen=True)
class Hamming(_VectorLoss):
    """The number of wrong labels among ``labels`` many, each 0 or 1.

    >>> Hamming(labels=3).encode([1, 0, 1])
    array([1., 0., 1.])
    >>> Hamming(labels=3).unit
    3.0
    """

    labels: int

    def __post_init__(self) -> None:
        if isinstance(self.labels, bool) or not isinstance(self.labels, int) or self.labels < 1:
            raise ConfigurationError(
                f"labels must be a positive whole number, not {self.labels!r}."
            )

    @property
    def unit(self) -> float:
        return float(self.labels)

    def encode(self, label: object) -> NDArray[np.float64]:
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

    def linear(self, label: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        return 1.0 - 2.0 * label, float(label.sum())


@dataclass(frozen=True)
class Linear(_VectorLoss):
    """⟨action, costs⟩, for cost vectors as labels; every action's cost is in [low, high].

    >>> Linear(0.0, 18.0).encode([0.5, 2])
    array([0.5, 2. ])
    """

    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        check_range(self.low, self.high)

    @property
    def unit(self) -> float:
        return float(self.high - self.low)

    def encode(self, label: object) -> NDArray[np.float64]:
        vector = _vector(label, "a vector of costs")
        if np.isnan(vector).any():
            raise LabelError(
                f"Cost {int(np.argmax(np.isnan(vector)))} is NaN. Settle the ticket when all costs "
                "are known, or drop it with model.forget(ticket)."
            )
        if np.isinf(vector).any():
            raise LabelError(f"Cost {int(np.argmax(np.isinf(vector)))} is infinite.")
        return vector

    def linear(self, label: NDArray[np.float64]) -> tuple[NDArray[np.float64], float]:
        return label, -float(self.low)


def _vector(label: object, wanted: str) -> NDArray[np.float64]:
    """The label as a new vector of numbers."""
    try:
        array = np.asarray(label)
    except ValueError:
        array = np.empty(0, dtype=object)
    if array.ndim != 1 or array.dtype.kind not in "biuf":
        raise LabelError(f"Label {label!r} is not {wanted}. Give a list or array of numbers.")
    return np.array(array, dtype=np.float64)
