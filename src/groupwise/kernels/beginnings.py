"""What ridge learners begin a segment with: the state that sums of all rows before it give.

It is that of a stiff learner (``kernels.stiff``): R and z with RᵀR = A / strength and Rθ = z. The
sums of a segment's rows are rows themselves, such as those of a triangular factor of them, and are
folded in like any others.

A factor of columns that lean on another (``kernels.stiff``) would lose digits that learners keep.
Such sums are those of x_j − q_j x_p, with multiples that the factor gives.
"""

import numpy as np

from groupwise.kernels.cells import fma
from groupwise.kernels.compiled import compiled, lean
from groupwise.kernels.ridge import EACH, FAINT, PENALTY, ROOM
from groupwise.kernels.stiff import (
    choose_multiples,
    factorise,
    invert,
    is_calm,
    lean_anew,
    renew,
)
from groupwise.kernels.triangles import absorb


@compiled
def stiffen(mine, parameters):
    """Make all learners of a group stiff, as if they had become so just now."""
    work = np.empty(mine.theta.shape[1])
    for k in range(len(mine.strength)):
        if mine.stiff[k] == 0:
            factorise(mine, k, parameters, work)
            choose_multiples(mine, k, work)
        mine.stiff[k] = 1
        mine.checks[k] = 0


@compiled
def calm_down(mine, parameters):
    """Make those learners of a group calm that may be."""
    work = np.empty((ROOM, mine.theta.shape[1]))
    for k in range(len(mine.strength)):
        if is_calm(mine, k, parameters, work):
            invert(mine, k, parameters, work)


@compiled
def take_in(mine, learner, parameters, left, rows, labels, strength, multiples, pivot):
    """Fold rows of A and their labels into R and z; the rows are used up.

    They are without multiples of a pivot. Before that, what was learned earlier keeps the share
    ``left``; where this is below 1, the penalty has been renewed meanwhile. By rotations, row by
    row: reflections of [R; rows] would lose the penalty beside rows that are 1e16 times as large.
    """
    factor, right, width = mine.inverse[learner], mine.theta[learner], mine.theta.shape[1]
    work = np.empty((ROOM, width))
    if left < 1.0:
        renew(mine, learner, parameters[learner * EACH + PENALTY], left, work)
    expect(mine, learner, multiples, pivot, work[0])
    weight = 1.0 / strength
    for i in range(len(rows)):
        lean_anew(rows[i], multiples, pivot, mine.diagonal[learner], mine.pivot[learner])
        work[0, :] = 0.0
        absorb(factor, right, rows[i], work[0], weight, labels[i], 0, width)
    choose_multiples(mine, learner, work[0])


@lean
def expect(mine, learner, multiples, pivot, chosen):
    """Let columns of a learner lean that will, where they do not: they would enter as they are."""
    factor, own, width = mine.inverse[learner], mine.diagonal[learner], mine.theta.shape[1]
    free, changes = True, False
    for j in range(width):
        free = free and own[j] == 0.0
    if not free and mine.pivot[learner] != pivot:
        return
    for j in range(width):
        chosen[j] = own[j]
        if own[j] == 0.0 and j > pivot:
            chosen[j] = multiples[j]
            changes = changes or multiples[j] != 0.0
    if changes:
        for i in range(width):
            lean_anew(factor[i], own, mine.pivot[learner], chosen, pivot)
        for j in range(width):
            own[j] = chosen[j]
        mine.pivot[learner] = pivot


@compiled
def farthest(factor):
    """How many times what a column has in common with those before it is what it has alone."""
    most = 0.0
    for j in range(len(factor)):
        for i in range(j):
            most = max(most, abs(factor[i, j]) / factor[j, j])
    return most


@compiled
def lay_leaning(
    indptr, indices, values, full, rows, weighted, columns, multiples, pivot, out, labels
):
    """Write the rows of a group as √w (x_j − q_j x_p), by its own columns, and √w y.

    ``weighted`` has weight and label of each of them, and ``columns`` the column of every feature.
    """
    for i in range(rows.size):
        t, row = rows[i], out[i]
        weight, label = weighted[i, 0], weighted[i, 1]
        for place in range(indptr[t], indptr[t + 1]):
            column = columns[place - indptr[t] if full[t] else indices[place]]
            if values[place] != 0.0:
                row[column] = values[place]
        x, root = row[pivot], np.sqrt(weight)
        for j in range(row.size):
            row[j] = root * fma(-multiples[j], x, row[j])
        labels[i] = root * label


@compiled
def fade_through(strength, forgetting, count, weights):
    """The strength after rounds of these weights, or so many of 1; and whether it was renewed.

    Step by step, as learners do it.
    """
    renewed = False
    for i in range(count):
        weight = weights[i] if weights.size else 1.0
        strength *= forgetting if weight == 1.0 else forgetting**weight
        if strength < FAINT:
            strength, renewed = 1.0, True
    return strength, renewed


@compiled
def decay(indptr, groups, weights, labels, factors, left, masses, out):
    """Weights of rounds as they are at the end of a segment, and labels, for every factor γ.

    A round of weight w is multiplied by γ^w itself, and then by that of every later one; ``left``
    has Σ w of each group from here on, and is used up. ``masses`` are the sums of the weights.
    """
    count = factors.size
    for t in range(labels.size):
        for entry in range(indptr[t], indptr[t + 1]):
            group, weight = groups[entry], weights[entry]
            for k in range(count):
                faded = weight
                if factors[k] < 1.0:
                    faded *= factors[k] ** left[group]
                masses[group, k] += faded
                out[2 * (entry * count + k)] = faded
                out[2 * (entry * count + k) + 1] = labels[t]
            left[group] -= weight
