"""A triangular factor of weighted rows, which keeps the digits that sums of squares lose.

With the rows √w [x, y] of a group one below the other as [X, y], and X = Q R with orthonormal
columns in Q and R upper triangular, all that least squares needs is R, z = Qᵀy and what is left,
ρ = ‖y‖² − ‖z‖² (computed as a sum of squares, so it is never negative):

    ‖X θ − y‖² = ‖R θ − z‖² + ρ    for every θ.

New rows B, y' are folded in by Householder reflections of [R z; B y'], column by column. The rows
of another factor can be folded in just the same: factors merge as sums do.
"""

import math

import numpy as np

from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.cells import fma
from groupwise.kernels.compiled import lean

SMALL, LARGE = 1e-140, 1e140
"""Sums of squares of numbers between these neither overflow nor vanish."""


@lean
def fold(factor, right, rows, labels, count, width):
    """Fold ``count`` rows and their labels, both multiplied by √w, into R and z.

    The upper triangle of ``factor`` is R, ``right`` is z; both are updated in place, over the first
    ``width`` columns. What stands in ``rows`` and ``labels`` is used up. Columns that are 0 in all
    the rows are passed over: columns that nobody uses change no digit. Returns what is to be added
    to ρ. Numbers may be of any size up to 1e150.
    """
    stay_apart()
    for j in range(width):
        largest = 0.0
        for k in range(count):
            largest = max(largest, abs(rows[k, j]))
        if largest == 0.0:
            continue
        pivot = factor[j, j]
        largest = max(largest, abs(pivot))
        exponent = 0
        if not SMALL < largest < LARGE:
            _, exponent = math.frexp(largest)
        power = 0.0
        pivot = math.ldexp(pivot, -exponent)
        for k in range(count):
            rows[k, j] = math.ldexp(rows[k, j], -exponent)
            power = fma(rows[k, j], rows[k, j], power)
        norm = np.sqrt(fma(pivot, pivot, power))
        if pivot > 0.0:
            norm = -norm
        factor[j, j] = math.ldexp(norm, exponent)
        scale = 1.0 / (pivot - norm)
        turn = (norm - pivot) / norm
        for k in range(count):
            rows[k, j] *= scale
        for i in range(j + 1, width):
            total = factor[j, i]
            for k in range(count):
                total = fma(rows[k, j], rows[k, i], total)
            total *= turn
            factor[j, i] -= total
            for k in range(count):
                rows[k, i] = fma(-rows[k, j], total, rows[k, i])
        total = right[j]
        for k in range(count):
            total = fma(rows[k, j], labels[k], total)
        total *= turn
        right[j] -= total
        for k in range(count):
            labels[k] = fma(-rows[k, j], total, labels[k])
    left = 0.0
    for k in range(count):
        left = fma(labels[k], labels[k], left)
    return left
