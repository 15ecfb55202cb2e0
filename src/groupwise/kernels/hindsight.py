"""Sums for the best linear model in hindsight: Σ w x xᵀ, Σ w y x, Σ w y² per group.

Rows that are mostly zeros go straight into the lower triangle of the matrix; full rows are held
back and added together, which saves most of the memory traffic. The lower triangle plus the held
rows is the truth.
"""

import numpy as np

from groupwise.kernels.arithmetic import fma
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.vectors import LANES, add_and_scale, add_outer


@inlined
def accumulate(sums, group, xi, xv, weight, y):
    """Add one row of a group."""
    if sums.rows[group] >= 0:
        sums.rows[group] += 1
    sums.power[group] += weight * y * y
    if xi.size > 0:
        add_sparse(sums.gram[group], sums.moment[group], xi, xv, weight, y)
        return
    held = sums.held[group]
    count = sums.waiting[group]
    add_and_scale(
        sums.moment[group], weight * y, held[count], np.sqrt(weight), xv, xv.size
    )
    sums.waiting[group] = count + 1
    if count + 1 == held.shape[0]:
        fold(sums.gram[group], held)
        sums.waiting[group] = 0


@inlined
def add_sparse(matrix, moment, xi, xv, weight, y):
    """Add a row that is mostly zeros."""
    for k in range(xi.size):
        factor = weight * xv[k]
        moment[xi[k]] = fma(factor, y, moment[xi[k]])
        row = matrix[xi[k]]
        for j in range(k + 1):
            row[xi[j]] = fma(factor, xv[j], row[xi[j]])


@inlined
def _empty(held, first):
    """Are four columns of the held rows all zeros?"""
    for k in range(held.shape[0]):
        for j in range(first, first + LANES):
            if held[k, j] != 0.0:
                return False
    return True


@lean
def fold(matrix, held):
    """Add the held rows to the lower triangle, and clear them."""
    width = held.shape[1]
    while width > 0 and _empty(held, width - LANES):
        width -= LANES
    add_outer(matrix, 1.0, held, width, False)
    for k in range(held.shape[0]):
        for j in range(width):
            held[k, j] = 0.0
