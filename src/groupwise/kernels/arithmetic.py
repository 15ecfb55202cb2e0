"""The dense and sparse loops that take the time.

Rows are sparse: ``xi`` holds the positions of a row's non-zeros in ascending order, ``xv`` their
values. A dense row is one whose positions are 0, 1, 2, ...; nothing is lost by that, since the
inner loops run along contiguous rows of the matrix. ``width`` is the number of columns in use,
rounded up to whole vectors; the columns between are 0 and stay 0.
"""

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

from groupwise.kernels.vectors import LANES, combine_rows


@intrinsic
def fma(typing_context, a, b, c):
    """a·b + c with a single rounding, in every driver and on every machine alike."""

    def generate(context, builder: ir.IRBuilder, signature, arguments):
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@intrinsic
def bare(typing_context, array):
    """The same array without its reference count; for arguments only, which the caller keeps.

    Every view of a counted array costs two atomic updates of the count, and threads that share the
    array contend for it.
    """

    def generate(context, builder, signature, arguments):
        view = context.make_array(signature.args[0])(context, builder, arguments[0])
        view.meminfo = cgutils.get_null_value(view.meminfo.type)
        return view._getvalue()

    return array(array), generate


@njit(nogil=True, cache=True, forceinline=True)
def padded(features):
    """The number of columns rounded up to whole vectors."""
    return (features + LANES - 1) // LANES * LANES


@njit(nogil=True, cache=True, forceinline=True)
def nonzeros(xi, xv):
    """A row without its zeros."""
    zeros = 0
    for k in range(xv.size):
        zeros += xv[k] == 0.0
    if zeros == 0:
        return xi, xv
    kept_indices, kept_values = np.empty_like(xi), np.empty_like(xv)
    count = 0
    for k in range(xi.size):
        kept_indices[count], kept_values[count] = xi[k], xv[k]
        count += xv[k] != 0.0
    return kept_indices[:count], kept_values[:count]


@njit(nogil=True, cache=True, forceinline=True)
def dot(vector, xi, xv):
    """⟨vector, x⟩ in four interleaved sums."""
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


@njit(nogil=True, cache=True, forceinline=True)
def add_scaled(target, factor, vector, width):
    """target += factor · vector."""
    for i in range(width):
        target[i] = fma(factor, vector[i], target[i])


@njit(nogil=True, cache=True, forceinline=True)
def add_outer_rows(matrix, rows, sign, width):
    """matrix += sign · Σ_k rows[k] rows[k]ᵀ; symmetric stays symmetric."""
    count = rows.shape[0]
    every = np.arange(count)
    factors = np.empty(count)
    for i in range(width):
        for k in range(count):
            factors[k] = sign * rows[k, i]
        combine_rows(matrix[i], True, rows, every, factors, width)


@njit(nogil=True, cache=True)
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
                add_scaled(matrix[i], -factor, row, size)
    for i in range(size):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean
