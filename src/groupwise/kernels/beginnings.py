"""What ridge learners begin a segment with: the state that sums of all rows before it give.

It is that of a stiff learner (``kernels.stiff``): R and z with RᵀR = A / strength and Rθ = z. The
sums of a segment's rows are rows themselves, such as those of a triangular factor of them, and are
folded in like any others.
"""

import numpy as np

from groupwise.kernels.compiled import compiled
from groupwise.kernels.ridge import EACH, FAINT, PENALTY, ROOM
from groupwise.kernels.stiff import (
    choose_multiples,
    factorise,
    invert,
    is_calm,
    renew,
    take_multiples,
)
from groupwise.kernels.triangles import absorb


@compiled
def stiffen(mine, parameters):
    """Make all learners of a group stiff, as if they had become so just now."""
    work = np.empty(mine.theta.shape[1])
    for k in range(len(mine.strength)):
        if mine.stiff[k] == 0:
            factorise(mine, k, parameters, work)
            choose_multiples(mine, k)
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
def take_in(mine, learner, parameters, left, rows, labels):
    """Fold rows of A / strength and their labels into R and z; both are used up.

    Before that, what was learned earlier keeps the share ``left``; where this is below 1, the
    penalty has been renewed meanwhile. By rotations, row by row: reflections of [R; rows] would
    lose the penalty beside rows that are 1e16 times as large.
    """
    factor, right, width = mine.inverse[learner], mine.theta[learner], mine.theta.shape[1]
    work = np.empty((ROOM, width))
    if left < 1.0:
        renew(mine, learner, parameters[learner * EACH + PENALTY], left, work)
    for i in range(len(rows)):
        take_multiples(mine, learner, rows[i])
        work[0, :] = 0.0
        absorb(factor, right, rows[i], work[0], 1.0, labels[i], 0, width)
    choose_multiples(mine, learner)


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
