"""What ridge learners need besides the update: forgetting, and getting rid of rounding."""

import numpy as np

from groupwise.kernels.arithmetic import invert
from groupwise.kernels.compiled import compiled, lean, stay_apart
from groupwise.kernels.hindsight import fold
from groupwise.kernels.schedule import next_of
from groupwise.kernels.vectors import add_outer, combine_first

PENALTY, FORWARD, FORGETTING = 0, 1, 2
"""The columns of ``parameters``."""
REFRESH = 1 << 14
"""Rounds of a group after which P and θ are computed anew, if they are stiff."""
STIFF = 1e8
"""That is where the largest sum of squares is this many times the penalty."""
FAINT = 1e-6
"""The strength at which a fading penalty is renewed."""


@lean
def give_place(state, parameters, group):
    """Write I/λ into matrices for the group, unless it has them already."""
    stay_apart()
    if state.place[group] >= 0:
        return
    place = next_of(state.placed, 1)
    for learner in range(len(parameters)):
        inverse = state.inverse[place, learner]
        for i in range(inverse.shape[0]):
            inverse[i, i] = 1.0 / parameters[learner, PENALTY]
    state.place[group] = place


@compiled
def forget(state, parameters, group, learner, weight):
    """A ← γʷ A: what was learned fades, and so does the penalty, which is renewed when faint.

    Called between an update and ``hold``. Columns that no row has used yet fade too, so that a
    feature that comes later starts where it would have been: at 1 / (λ · strength), to the digit.
    """
    stay_apart()
    give_place(state, parameters, group)
    penalty = parameters[learner, PENALTY]
    factor = parameters[learner, FORGETTING] ** weight
    inverse = state.inverse[state.place[group], learner]
    held = state.held[group, learner]
    unused = 1.0 / (penalty * state.strength[group, learner])
    state.strength[group, learner] *= factor
    strength = state.strength[group, learner]
    for i in range(inverse.shape[0]):
        was_unused = inverse[i, i] == unused
        for j in range(inverse.shape[1]):
            inverse[i, j] /= factor
        if was_unused:
            inverse[i, i] = 1.0 / (penalty * strength)
    for k in range(held.shape[0]):
        for j in range(held.shape[1]):
            held[k, j] /= np.sqrt(factor)
    if strength >= FAINT:
        return
    newest = (state.waiting[group] + 1) % held.shape[0]
    add_outer(inverse, -1.0, held[:newest], held.shape[1], True)
    held[:] = 0.0
    theta = state.theta[group, learner]
    moment = np.empty(theta.size)
    untouched = np.diag(inverse) == 1.0 / (penalty * strength)
    invert(inverse)
    combine_first(moment, False, inverse, theta, theta.size, theta.size)
    for i in range(theta.size):
        inverse[i, i] += penalty * (1.0 - strength)
    invert(inverse)
    for i in range(theta.size):
        if untouched[i]:
            inverse[i, i] = 1.0 / penalty
    combine_first(theta, False, inverse, moment, theta.size, theta.size)
    state.strength[group, learner] = 1.0


@compiled
def refresh(state, parameters, sums, group):
    """P and θ anew from the sums Σ w x xᵀ and Σ w y x, free of what rounding has done to them.

    With a small penalty and collinear columns P has entries of 1/λ, and what is lost of them adds
    up over the rounds; the sums have no such entries. They are taken apart into eigenvectors, which
    keep the empty directions out of the others to the last digit, where an inverse would not.
    Learners whose penalty is not that small are left alone. ``sums`` must be of the same rows.
    """
    stay_apart()
    fold(sums, group)
    gram, moment = sums.gram[sums.place[group]], sums.moment[group]
    used = np.flatnonzero(np.diag(gram))
    stiff = np.diag(gram).max() / STIFF
    if used.size == 0 or parameters[:, PENALTY].min() > stiff:
        return
    matrix = np.empty((used.size, used.size))
    for i in range(used.size):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = gram[used[i], used[j]]
    eigenvalues, directions = np.linalg.eigh(matrix)
    projections = directions.T @ moment[used]
    for learner in range(len(parameters)):
        penalty = parameters[learner, PENALTY]
        if parameters[learner, FORGETTING] < 1.0 or penalty > stiff:
            continue
        inverse = state.inverse[state.place[group], learner]
        theta = state.theta[group, learner]
        roots = directions / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty)
        renewed = roots @ roots.T
        weights = directions @ (projections / (np.maximum(eigenvalues, 0.0) + penalty))
        for i in range(used.size):
            theta[used[i]] = weights[i]
            for j in range(i + 1):
                inverse[used[i], used[j]] = inverse[used[j], used[i]] = renewed[i, j]
        state.held[group, learner] = 0.0


@compiled
def upkeep(state, parameters, sums, groups):
    """``refresh`` the groups whose turn it is, after a round of theirs."""
    for group in groups:
        if sums.rows[group] > 0 and sums.rows[group] % REFRESH == 0:
            refresh(state, parameters, sums, group)
