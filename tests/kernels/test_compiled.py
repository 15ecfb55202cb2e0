"""Functions that count no references return nothing that would have to be counted."""

import numpy as np
import pytest
from numba.core.errors import TypingError

from groupwise.kernels.compiled import compiled, entry, inlined, lean


def half(x):
    return x[: x.size // 2]


def same(x):
    return x


def pair(x):
    return x.size, x


def doubled(x):
    return 2.0 * x[0]


@pytest.mark.parametrize("decorator", [lean, inlined, entry])
@pytest.mark.parametrize("function", [half, same, pair])
def test_an_array_is_not_returned_uncounted(decorator, function):
    kernel = decorator(function)
    for _ in range(2):
        with pytest.raises(TypingError, match=r"use @compiled|accept returning of array"):
            kernel(np.ones(4))


def test_nor_to_another_kernel():
    part = inlined(pair)

    @compiled
    def caller(x):
        return part(x)[1][0]

    with pytest.raises(TypingError, match=r"pair returns .* use @compiled"):
        caller(np.ones(4))


@pytest.mark.parametrize("decorator", [lean, inlined, entry, compiled])
def test_numbers_are_returned(decorator):
    assert decorator(doubled)(np.ones(4)) == 2.0


def test_what_counts_references_returns_arrays():
    assert compiled(half)(np.arange(4.0)).tolist() == [0.0, 1.0]


def test_a_part_of_kernels_can_be_called_from_python_before_and_after():
    part = inlined(doubled)

    @lean
    def caller(x):
        return part(x) + 1.0

    assert part(np.ones(3)) == 2.0
    assert caller(np.ones(3)) == 3.0
    assert part(np.ones(3)) == 2.0
    assert part(np.ones(3, dtype=np.int64)) == 2.0
    again = inlined(doubled)  # which finds what was kept of both
    assert again(np.ones(3)) == 2.0
