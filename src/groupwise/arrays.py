"""Arrays with a leading group axis whose capacity grows by doubling."""

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Scalar = TypeVar("Scalar", bound=np.generic)


def capacity(needed: int, have: int) -> int:
    """``have`` if that is enough, else the next doubling that holds ``needed``."""
    size = max(have, 1)
    while size < needed:
        size *= 2
    return size if needed > have else have


def enlarge(array: NDArray[Scalar], shape: tuple[int, ...]) -> NDArray[Scalar]:
    """``array`` in the first corner of a larger array, zeros elsewhere."""
    if array.shape == shape:
        return array
    larger = np.zeros(shape, dtype=array.dtype)
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger
