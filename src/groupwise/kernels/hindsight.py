"""Sums for the best linear model in hindsight: Σ w x xᵀ, Σ w y x, Σ w y² per group.

Rows that are mostly zeros go straight into the lower triangle of the matrix; fuller rows are held
back and added ``HELD`` at a time, which saves most of the memory traffic. The lower triangle plus
the held rows is the truth.
"""

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import add_scaled, fma, padded
from groupwise.kernels.vectors import combine_rows

HELD = 16


@njit(nogil=True, cache=True, forceinline=True)
def accumulate(sums, group, xi, xv, weight, y):
    """Add one row of a group."""
    if sums.rows[group] >= 0:
        sums.rows[group] += 1
    sums.power[group] += weight * y * y
    if xi.size == 0:
        return
    moment = sums.moment[group]
    dense = xi[-1] == xi.size - 1
    factor = weight * y
    if dense:
        add_scaled(moment, factor, xv, xi.size)
    else:
        for k in range(xi.size):
            moment[xi[k]] = fma(factor, xv[k], moment[xi[k]])
    # Judged by the row alone, so that all drivers take the same way whatever columns come later.
    if 2 * xi.size <= xi[-1]:
        matrix = sums.gram[group]
        for k in range(xi.size):
            factor = weight * xv[k]
            row = matrix[xi[k]]
            for j in range(k + 1):
                row[xi[j]] += factor * xv[j]
        return
    held = sums.held[group]
    count = sums.waiting[group]
    newest = held[count]
    root = np.sqrt(weight)
    if dense:
        for k in range(xi.size):
            newest[k] = root * xv[k]
    else:
        for k in range(xi.size):
            newest[xi[k]] = root * xv[k]
    sums.waiting[group] = count + 1
    if count + 1 == HELD:
        fold(sums.gram[group], held)
        sums.waiting[group] = 0


@njit(nogil=True, cache=True)
def fold(matrix, held):
    """Add the held rows to the lower triangle, and clear them."""
    every = np.arange(HELD)
    factors = np.empty(HELD)
    for i in range(matrix.shape[0]):
        used = False
        for k in range(HELD):
            factors[k] = held[k, i]
            used = used or factors[k] != 0.0
        if used:
            combine_rows(matrix[i], True, held, every, factors, padded(i + 1))
    held[:] = 0.0
