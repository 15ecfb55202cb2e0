"""The few dense and sparse loops that take the time, written so that LLVM vectorises them.

Rows are sparse: ``xi`` holds the positions of a row's non-zeros in ascending order, ``xv`` their
values. A dense row is one whose positions are 0, 1, 2, ...; nothing is lost by that, since the
inner loops run along contiguous rows of the matrix. ``width`` is the number of columns in use,
rounded up to a multiple of ``LANES``; the columns between are 0 and stay 0.
"""

from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

LANES = 4


@intrinsic
def fma(typing_context, a, b, c):  # type: ignore[no-untyped-def]
    """a·b + c with a single rounding, in every driver and on every machine alike."""

    def generate(context, builder: ir.IRBuilder, signature, arguments):  # type: ignore[no-untyped-def]
        return builder.fma(*arguments)

    return types.float64(types.float64, types.float64, types.float64), generate


@njit(nogil=True, cache=True)
def dot(vector, xi, xv):  # type: ignore[no-untyped-def]
    """⟨vector, x⟩ over the non-zeros of x."""
    total = 0.0
    for k in range(xi.size):
        total = fma(vector[xi[k]], xv[k], total)
    return total


@njit(nogil=True, cache=True)
def add_scaled(target, factor, vector, width):  # type: ignore[no-untyped-def]
    """target += factor · vector."""
    for i in range(width):
        target[i] = fma(factor, vector[i], target[i])


@njit(nogil=True, cache=True)
def symmetric_product(matrix, xi, xv, width, out):  # type: ignore[no-untyped-def]
    """out = matrix · x for a symmetric matrix, four of its rows at a time."""
    out[:width] = 0.0
    count = xi.size
    k = 0
    while k + 4 <= count:
        row_0 = matrix[xi[k]]
        row_1 = matrix[xi[k + 1]]
        row_2 = matrix[xi[k + 2]]
        row_3 = matrix[xi[k + 3]]
        x_0, x_1, x_2, x_3 = xv[k], xv[k + 1], xv[k + 2], xv[k + 3]
        for i in range(width):
            out[i] = fma(
                x_3, row_3[i], fma(x_2, row_2[i], fma(x_1, row_1[i], fma(x_0, row_0[i], out[i])))
            )
        k += 4
    while k < count:
        add_scaled(out, xv[k], matrix[xi[k]], width)
        k += 1


@njit(nogil=True, cache=True)
def subtract_outer(matrix, vector, width):  # type: ignore[no-untyped-def]
    """matrix −= vector vectorᵀ; a symmetric matrix stays symmetric to the last bit."""
    for i in range(width):
        factor = -vector[i]
        if factor != 0.0:
            add_scaled(matrix[i], factor, vector, width)


@njit(nogil=True, cache=True)
def add_outer_rows(matrix, rows, count, sign, width):  # type: ignore[no-untyped-def]
    """matrix += sign · Σ_k rows[k] rows[k]ᵀ, four rows at a time; symmetric stays symmetric."""
    for i in range(width):
        target = matrix[i]
        k = 0
        while k + 4 <= count:
            row_0, row_1, row_2, row_3 = rows[k], rows[k + 1], rows[k + 2], rows[k + 3]
            x_0, x_1 = sign * row_0[i], sign * row_1[i]
            x_2, x_3 = sign * row_2[i], sign * row_3[i]
            for j in range(width):
                target[j] = fma(
                    x_3,
                    row_3[j],
                    fma(x_2, row_2[j], fma(x_1, row_1[j], fma(x_0, row_0[j], target[j]))),
                )
            k += 4
        while k < count:
            add_scaled(target, sign * rows[k, i], rows[k], width)
            k += 1
