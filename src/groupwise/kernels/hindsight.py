"""Sums for the best linear model in hindsight: Σ w x xᵀ, Σ w y x, Σ w y² per group.

Rows that are mostly zeros go straight into the lower triangle of the matrix; full rows are held
back and added together, which saves most of the memory traffic. The lower triangle plus the held
rows is the truth.
"""

import numpy as np

from groupwise.kernels.arithmetic import fma
from groupwise.kernels.compiled import inlined, lean, stay_apart
from groupwise.kernels.schedule import next_of
from groupwise.kernels.vectors import add_and_scale, add_outer
from groupwise.states import HELD, LANES


@inlined
def accumulate(sums, group, xi, xv, weight, y):
    """Add one row of a group."""
    if sums.rows[group] >= 0:
        sums.rows[group] += 1
    sums.power[group] += weight * y * y
    if xi.size > 0:
        if sums.place[group] < 0:
            sums.place[group] = next_of(sums.placed, 1)
        matrix = sums.gram[sums.place[group]]
        add_sparse(matrix, sums.moment[group], xi, xv, weight, y)
        return
    count = sums.waiting[group]
    newest = sums.held[group, count]
    add_and_scale(sums.moment[group], weight * y, newest, np.sqrt(weight), xv, xv.size)
    sums.waiting[group] = count + 1
    if count + 1 == HELD:
        fold(sums, group)


@inlined
def add_sparse(matrix, moment, xi, xv, weight, y):
    """Add a row that is mostly zeros."""
    for k in range(xi.size):
        factor = weight * xv[k]
        moment[xi[k]] = fma(factor, y, moment[xi[k]])
        row = matrix[xi[k]]
        for j in range(k + 1):
            row[xi[j]] = fma(factor, xv[j], row[xi[j]])


@lean
def fold(sums, group):
    """Add the held rows to the lower triangle, and clear them."""
    stay_apart()
    if sums.place[group] < 0:
        sums.place[group] = next_of(sums.placed, 1)
    held = sums.held[group]
    width = held.shape[1]
    while width > 0 and _empty(held, width - LANES):
        width -= LANES
    add_outer(sums.gram[sums.place[group]], 1.0, held, width, False)
    for k in range(HELD):
        for j in range(width):
            held[k, j] = 0.0
    sums.waiting[group] = 0


@inlined
def _empty(held, first):
    """Are four columns of the held rows all zeros?"""
    for k in range(HELD):
        for j in range(first, first + LANES):
            if held[k, j] != 0.0:
                return False
    return True
