"""Online ridge regression, for all groups and all learners of a group at once.

Arrays lead with the group axis, then the learner axis: ``theta[g, k]`` belongs to learner k of
group g. The matrix P = (λI + Σ w x xᵀ)⁻¹ is kept as ``inverse − Σ_j held_j held_jᵀ``: for wide rows
the last updates are held back and folded in together, which touches the matrix once instead of
once a row. ``held`` has no rows where the matrix is small. ``parameters[k]`` holds learner k's
penalty, whether it is of the forward form, and its forgetting factor.
"""

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import add_outer_rows, add_scaled, bare, dot, invert
from groupwise.kernels.hindsight import accumulate, fold
from groupwise.kernels.vectors import combine_rows, dense_products, subtract_outer
from groupwise.states import HindsightSums, RidgeState

PENALTY, FORWARD, FORGETTING = 0, 1, 2
AHEAD = 4
"""Rows whose products are formed together where the matrix stays the same meanwhile."""
REFRESH = 1 << 14
"""Rounds of a group after which P and θ are computed anew, if they are stiff."""
STIFF = 1e8
"""That is where the largest sum of squares is this many times the penalty."""
FAINT = 1e-6
"""The strength at which a fading penalty is renewed."""


@njit(nogil=True, cache=True, forceinline=True)
def precision_product(inverse, held, count, xi, xv, width, out):
    """out = P x = inverse · x − Σ_j ⟨held_j, x⟩ held_j."""
    combine_rows(out, False, inverse, xi, xv, width)  # inverse is symmetric
    subtract_held(held, count, xi, xv, width, out)


@njit(nogil=True, cache=True, forceinline=True)
def subtract_held(held, count, xi, xv, width, out):
    """out −= Σ_j ⟨held_j, x⟩ held_j."""
    if count > 0:
        factors = np.empty(count)
        for j in range(count):
            factors[j] = -dot(held[j], xi, xv)
        combine_rows(out, True, held, np.arange(count), factors, width)


@njit(nogil=True, cache=True, forceinline=True)
def advise_one(state, parameters, group, learner, xi, xv, weight, width, scratch):
    """θ·x, or θ·x / (1 + w xᵀPx) in the forward form."""
    estimate = dot(state.theta[group, learner], xi, xv)
    if parameters[learner, FORWARD] and estimate != 0.0:
        precision_product(
            state.inverse[group, learner],
            state.held[group, learner],
            state.waiting[group],
            xi,
            xv,
            width,
            scratch,
        )
        estimate /= 1.0 + weight * dot(scratch, xi, xv)
    return estimate


@njit(nogil=True, cache=True, forceinline=True)
def step_one(state, parameters, group, learner, xi, xv, weight, y, width, scratch):
    """Advice on x, then the update with (x, y) at this weight. Returns the advice."""
    inverse = state.inverse[group, learner]
    held = state.held[group, learner]
    precision_product(inverse, held, state.waiting[group], xi, xv, width, scratch)
    return update_one(state, parameters, group, learner, xi, xv, weight, y, width, scratch)


@njit(nogil=True, cache=True, forceinline=True)
def update_one(state, parameters, group, learner, xi, xv, weight, y, width, scratch):
    """``step_one`` where ``scratch`` comes holding P x."""
    forward = parameters[learner, FORWARD] != 0.0
    theta = state.theta[group, learner]
    inverse = state.inverse[group, learner]
    held = state.held[group, learner]
    count = state.waiting[group]
    estimate = dot(theta, xi, xv)
    spread = weight * dot(scratch, xi, xv)
    growth = 1.0 + spread
    error = y - estimate
    add_scaled(theta, weight * error / growth, scratch, width)
    state.minimum[group, learner] += weight * error * error / growth
    if forward:
        state.log_determinant[group, learner] += np.log1p(spread)
    root = np.sqrt(weight / growth)
    if held.shape[0] == 0:
        for i in range(width):
            scratch[i] *= root
        subtract_outer(inverse, scratch, width)
    else:
        newest = held[count]
        for i in range(width):
            newest[i] = root * scratch[i]
        if count + 1 == held.shape[0]:
            add_outer_rows(inverse, held, -1.0, width)
    if parameters[learner, FORGETTING] < 1.0:
        forget(state, parameters, group, learner, weight)
    return estimate / growth if forward else estimate


@njit(nogil=True, cache=True)
def forget(state, parameters, group, learner, weight):
    """A ← γʷ A: what was learned fades, and so does the penalty, which is renewed when faint.

    Called between an update and ``hold``. Columns that no row has used yet fade too, so that a
    feature that comes later starts where it would have been.
    """
    penalty = parameters[learner, PENALTY]
    factor = parameters[learner, FORGETTING] ** weight
    inverse = state.inverse[group, learner]
    held = state.held[group, learner]
    for i in range(inverse.shape[0]):
        for j in range(inverse.shape[1]):
            inverse[i, j] /= factor
    for k in range(held.shape[0]):
        for j in range(held.shape[1]):
            held[k, j] /= np.sqrt(factor)
    state.strength[group, learner] *= factor
    strength = state.strength[group, learner]
    if strength >= FAINT:
        return
    if held.shape[0] > 0:
        for k in range((state.waiting[group] + 1) % held.shape[0]):
            subtract_outer(inverse, held[k], inverse.shape[0])
        held[:] = 0.0
    theta = state.theta[group, learner]
    every = np.arange(theta.size)
    moment = np.empty(theta.size)
    invert(inverse)
    combine_rows(moment, False, inverse, every, theta, theta.size)
    for i in range(theta.size):
        inverse[i, i] += penalty * (1.0 - strength)
    invert(inverse)
    combine_rows(theta, False, inverse, every, moment, theta.size)
    state.strength[group, learner] = 1.0


@njit(nogil=True, cache=True)
def refresh(state, parameters, sums, group):
    """P and θ anew from the sums Σ w x xᵀ and Σ w y x, free of what rounding has done to them.

    With a small penalty and collinear columns P has entries of 1/λ, and what is lost of them adds
    up over the rounds; the sums have no such entries. They are taken apart into eigenvectors, which
    keep the empty directions out of the others to the last digit, where an inverse would not.
    Learners whose penalty is not that small are left alone. ``sums`` must be of the same rows.
    """
    if sums.waiting[group] > 0:
        fold(sums.gram[group], sums.held[group])
        sums.waiting[group] = 0
    gram, moment = sums.gram[group], sums.moment[group]
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
        inverse, theta = state.inverse[group, learner], state.theta[group, learner]
        roots = directions / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty)
        renewed = roots @ roots.T
        weights = directions @ (projections / (np.maximum(eigenvalues, 0.0) + penalty))
        for i in range(used.size):
            theta[used[i]] = weights[i]
            for j in range(i + 1):
                inverse[used[i], used[j]] = inverse[used[j], used[i]] = renewed[i, j]
        state.held[group, learner] = 0.0


@njit(nogil=True, cache=True)
def upkeep(state, parameters, sums, groups):
    """``refresh`` the groups whose turn it is, after a round of theirs."""
    for group in groups:
        if sums.rows[group] > 0 and sums.rows[group] % REFRESH == 0:
            refresh(state, parameters, sums, group)


@njit(nogil=True, cache=True, forceinline=True)
def hold(state, group):
    """Count one more held-back row of the group (all its learners hold the same rows)."""
    size = state.held.shape[2]
    if size > 0:
        state.waiting[group] = (state.waiting[group] + 1) % size


@njit(nogil=True, cache=True, forceinline=True)
def advise(state, parameters, groups, weights, xi, xv, width, advice):
    """advice[a, k]: what learner k of the a-th awake group says about x."""
    scratch = np.empty(width)
    for a in range(groups.size):
        for k in range(len(parameters)):
            advice[a, k] = advise_one(
                state, parameters, groups[a], k, xi, xv, weights[a], width, scratch
            )


@njit(nogil=True, cache=True, forceinline=True)
def step(state, parameters, groups, weights, xi, xv, y, width, advice):
    """One round for all awake groups: their advice, then their updates."""
    scratch = np.empty(width)
    for a in range(groups.size):
        for k in range(len(parameters)):
            advice[a, k] = step_one(
                state, parameters, groups[a], k, xi, xv, weights[a], y, width, scratch
            )
        hold(state, groups[a])


@njit(nogil=True, cache=True, forceinline=True)
def products_ahead(mine, parameters, places, rows, indptr, indices, values, width, products):
    """``inverse`` · x of the next rows at once, where they are dense and updates are held back.

    Returns how many rows it did: ``AHEAD``, or 0 where ``inverse`` changes before they are through.
    """
    if mine.held.shape[2] - mine.waiting[0] < AHEAD or places.size < AHEAD:
        return 0
    starts = np.empty(AHEAD, dtype=np.int64)
    size = indptr[rows[places[0]] + 1] - indptr[rows[places[0]]]
    for r in range(AHEAD):
        row = rows[places[r]]
        starts[r] = indptr[row]
        if indptr[row + 1] - indptr[row] != size or size == 0:
            return 0
        if indices[indptr[row + 1] - 1] != size - 1:
            return 0
    for k in range(len(parameters)):
        if parameters[k, FORGETTING] < 1.0:
            return 0
    for k in range(len(parameters)):
        dense_products(products[k], mine.inverse[0, k], values, starts, size, width)
    return AHEAD


@njit(nogil=True, cache=True)
def step_subsequences(
    state,
    parameters,
    sums,
    hindsight,
    share,
    starts,
    entries,
    rows,
    weights,
    indptr,
    indices,
    values,
    labels,
    width,
    advice,
):
    """All rounds of every group in ``share``, each in its order.

    ``entries[starts[g]:starts[g + 1]]`` are group g's places in the row-major list of (row, awake
    group) pairs; ``rows[e]`` and ``weights[e]`` are the row and weight at place e. Fills
    ``advice[e]`` and, with ``hindsight``, adds the rows to ``sums``.
    """
    learners = len(parameters)
    scratch = np.empty(width)
    products = np.empty((learners, AHEAD, width))
    state = RidgeState(
        bare(state.theta),
        bare(state.inverse),
        bare(state.held),
        bare(state.waiting),
        bare(state.minimum),
        bare(state.log_determinant),
        bare(state.strength),
    )
    sums = HindsightSums(
        bare(sums.gram),
        bare(sums.moment),
        bare(sums.power),
        bare(sums.held),
        bare(sums.waiting),
        bare(sums.rows),
    )
    indices, values, advice = bare(indices), bare(values), bare(advice)
    # Single numbers of neighbouring groups share cache lines, which threads would fight over.
    count = np.empty(1, dtype=np.int64)
    minimum, log_determinant, strength = (
        np.empty((1, learners)),
        np.empty((1, learners)),
        np.empty((1, learners)),
    )
    power, waiting, added = (
        np.empty(1),
        np.empty(1, dtype=np.int64),
        np.empty(1, dtype=np.int64),
    )
    for group in share:
        only = slice(group, group + 1)
        mine = RidgeState(
            state.theta[only],
            state.inverse[only],
            state.held[only],
            bare(count),
            bare(minimum),
            bare(log_determinant),
            bare(strength),
        )
        count[0] = state.waiting[group]
        minimum[0], log_determinant[0] = state.minimum[group], state.log_determinant[group]
        strength[0] = state.strength[group]
        own = HindsightSums(
            sums.gram[only],
            sums.moment[only],
            bare(power),
            sums.held[only],
            bare(waiting),
            bare(added),
        )
        power[0], waiting[0], added[0] = sums.power[group], sums.waiting[group], sums.rows[group]
        ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
        places = entries[starts[group] : starts[group + 1]]
        for place in range(places.size):
            entry = places[place]
            row = rows[entry]
            xi = indices[indptr[row] : indptr[row + 1]]
            xv = values[indptr[row] : indptr[row + 1]]
            if ready == 0:
                ready = products_ahead(
                    mine, parameters, places[place:], rows, indptr, indices, values, width, products
                )
            for k in range(learners):
                if ready > 0:
                    base = products[k, AHEAD - ready]
                    subtract_held(mine.held[0, k], count[0], xi, xv, width, base)
                    advice[entry, k] = update_one(
                        mine, parameters, 0, k, xi, xv, weights[entry], labels[row], width, base
                    )
                else:
                    advice[entry, k] = step_one(
                        mine, parameters, 0, k, xi, xv, weights[entry], labels[row], width, scratch
                    )
            ready = max(0, ready - 1)
            hold(mine, 0)
            if hindsight:
                accumulate(own, 0, xi, xv, weights[entry], labels[row])
                if added[0] > 0 and added[0] % REFRESH == 0:
                    refresh(mine, parameters, own, 0)
                    ready = 0
        sums.power[group], sums.waiting[group], sums.rows[group] = power[0], waiting[0], added[0]
        state.waiting[group] = count[0]
        state.minimum[group], state.log_determinant[group] = minimum[0], log_determinant[0]
        state.strength[group] = strength[0]
