"""Sums for the best linear model in hindsight: Σ w x xᵀ, Σ w y x, Σ w y² per group.

Rows that are mostly zeros go straight into the lower triangle of the matrix; fuller rows are held back
and added ``HELD`` at a time, which costs a quarter of the memory traffic. The lower triangle plus
the held rows is the truth.
"""

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import add_outer_rows

HELD = 4


@njit(nogil=True, cache=True)
def accumulate(sums, group, xi, xv, weight, y, width):  # type: ignore[no-untyped-def]
    """Add one row of a group."""
    moment = sums.moment[group]
    for k in range(xi.size):
        moment[xi[k]] += weight * y * xv[k]
    sums.power[group] += weight * y * y
    # Judged by the row alone, so that both drivers take the same way whatever columns come later.
    if xi.size == 0:
        return
    if 2 * xi.size <= xi[-1]:
        matrix = sums.gram[group]
        for k in range(xi.size):
            factor = weight * xv[k]
            row = matrix[xi[k]]
            for j in range(k + 1):
                row[xi[j]] += factor * xv[j]
        return
    count = sums.count[group]
    newest = sums.held[group, count]
    newest[:width] = 0.0
    root = np.sqrt(weight)
    for k in range(xi.size):
        newest[xi[k]] = root * xv[k]
    if count + 1 == HELD:
        add_outer_rows(sums.gram[group], sums.held[group], HELD, 1.0, width)
    sums.count[group] = (count + 1) % HELD
