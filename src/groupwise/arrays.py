"""Arrays that grow, and how the library calls their types.

They begin on a cache line, so that no vector lies across two lines.
"""

import mmap
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LINE_BYTES = 64
HUGE_BYTES = 1 << 21
LARGEST = 1e100
"""No feature may be larger: products of two must stay finite."""

Vector = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


def zeros(shape: tuple[int, ...], dtype: DTypeLike = np.float64) -> NDArray[Any]:
    """Zeros that start on a cache line."""
    kind = np.dtype(dtype)
    size = int(np.prod(shape)) * kind.itemsize
    buffer, boundary = _memory(size)
    start = -buffer.ctypes.data % boundary
    return buffer[start : start + size].view(kind).reshape(shape)


def _memory(size: int) -> tuple[NDArray[np.uint8], int]:
    """Zeros with room for ``size`` bytes behind a boundary.

    Where there is much, it is asked for in huge pages: in small ones, most of the time of a replay
    with many groups would be the system's, for handing them out.
    """
    if size < HUGE_BYTES or not hasattr(mmap, "MADV_HUGEPAGE"):
        return np.zeros(size + LINE_BYTES, dtype=np.uint8), LINE_BYTES
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    whole = mmap.mmap(-1, size + HUGE_BYTES, flags=flags)
    whole.madvise(mmap.MADV_HUGEPAGE)
    return np.frombuffer(whole, dtype=np.uint8), HUGE_BYTES


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
