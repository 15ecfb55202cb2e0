"""Arrays with a leading group axis whose capacity grows by doubling.

Groups are worked on by different threads, so each group's part of an array starts on a cache line
of its own: arrays begin on one, and rows of features are given room for whole ones.
"""

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE_BYTES = 64
LANES = 4


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros that start on a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    buffer = np.zeros(size + LINE_BYTES, dtype=np.uint8)
    start = -buffer.ctypes.data % LINE_BYTES
    return buffer[start : start + size].view(kind).reshape(shape)


def room(features: int) -> int:
    """Columns for this many features, in whole vectors."""
    return -(-max(features, 1) // LANES) * LANES


def capacity(needed: int, have: int) -> int:
    """``have`` if that is enough, else the next doubling that holds ``needed``."""
    size = max(have, 1)
    while size < needed:
        size *= 2
    return size if needed > have else have


def enlarge(array: NDArray[Any], shape: tuple[int, ...], fill: int = 0) -> NDArray[Any]:
    """``array`` in the first corner of a larger array, ``fill`` elsewhere."""
    if array.shape == shape:
        return array
    larger = zeros(shape, array.dtype)
    if fill:
        larger[...] = fill
    larger[tuple(slice(0, size) for size in array.shape)] = array
    return larger


def duplicate(array: NDArray[Any], used: int) -> NDArray[Any]:
    """A copy of an array of which only the first ``used`` entries hold anything."""
    copied = zeros(array.shape, array.dtype)
    copied[:used] = array[:used]
    return copied
