"""Rows of features in the form that the kernels take, and their products.

A row that is mostly zeros is given by the positions ``xi`` of its non-zeros, in ascending order,
and their values ``xv``. Any other row is *full*: ``xi`` is empty and ``xv`` has all cells from the
first to the last non-zero one, filled up with zeros to whole vectors. Which of the two it is
depends on the row alone, so that every driver takes the same way. ``width`` is the number of
columns in use, rounded up to whole vectors; the columns between are 0 and stay 0.
"""

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.vectors import dense_dot
from groupwise.states import LANES


@intrinsic
def fma(typing_context, a, b, c):
    """a·b + c with a single rounding, in every driver and on every machine alike."""

    def generate(context, builder: ir.IRBuilder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@inlined
def padded(features):
    """The number of columns rounded up to whole vectors."""
    return (features + LANES - 1) // LANES * LANES


@inlined
def is_full(count, last):
    """Is a row with this many non-zeros, the last of them at this position, given in full?"""
    return 2 * count > last


@inlined
def tidy(xi, xv, indices, values):
    """Write a row into the buffers given, in the form that the kernels take.

    Returns how many positions and how many values it has then.
    """
    count, last = 0, 0
    for k in range(xv.size):
        if xv[k] != 0.0:
            count += 1
            last = max(last, xi[k])
    if count > 0 and is_full(count, last):
        size = padded(last + 1)
        values[:size] = 0.0
        for k in range(xv.size):
            if xv[k] != 0.0:
                values[xi[k]] = xv[k]
        return 0, size
    place = 0
    for k in range(xv.size):
        if xv[k] != 0.0:
            indices[place], values[place] = xi[k], xv[k]
            place += 1
    return place, place


@inlined
def dot(vector, xi, xv):
    """⟨vector, x⟩ in four interleaved sums."""
    if xi.size == 0:
        return dense_dot(vector, xv, xv.size)
    sum_0, sum_1, sum_2, sum_3 = 0.0, 0.0, 0.0, 0.0
    count = xi.size
    k = 0
    while k + 4 <= count:
        sum_0 = fma(vector[xi[k]], xv[k], sum_0)
        sum_1 = fma(vector[xi[k + 1]], xv[k + 1], sum_1)
        sum_2 = fma(vector[xi[k + 2]], xv[k + 2], sum_2)
        sum_3 = fma(vector[xi[k + 3]], xv[k + 3], sum_3)
        k += 4
    while k < count:
        sum_0 = fma(vector[xi[k]], xv[k], sum_0)
        k += 1
    return (sum_0 + sum_1) + (sum_2 + sum_3)


@lean
def invert(matrix):
    """The inverse of a positive definite matrix, in place, by Gauss and Jordan.

    Rows and columns that are 0 but for the diagonal are left alone, so what lies beyond the columns
    in use changes no digit.
    """
    size = matrix.shape[0]
    for k in range(size):
        pivot = 1.0 / matrix[k, k]
        row = matrix[k]
        row[k] = 1.0
        for j in range(size):
            row[j] *= pivot
        for i in range(size):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                matrix[i, k] = 0.0
                for j in range(size):
                    matrix[i, j] = fma(-factor, row[j], matrix[i, j])
    for i in range(size):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean
