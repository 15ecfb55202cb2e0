"""Online ridge regression, for all groups and all learners of a group at once.

Arrays lead with the group axis, then the learner axis: ``theta[g, k]`` belongs to learner k of
group g. The matrix P = (λI + Σ w x xᵀ)⁻¹ is kept as ``inverse − Σ_j held_j held_jᵀ``: for wide rows
the last updates are held back and folded in together, which touches the matrix once instead of
once a row. ``held`` has no rows where the matrix is small. ``parameters[k]`` holds learner k's
penalty, whether it is of the forward form, and its forgetting factor.
"""

import numpy as np
from numba import njit

from groupwise.kernels.arithmetic import add_outer_rows, add_scaled, bare, dot
from groupwise.kernels.hindsight import accumulate
from groupwise.kernels.renewal import FORGETTING, FORWARD, REFRESH, forget, refresh
from groupwise.kernels.vectors import combine_rows, dense_products, subtract_outer
from groupwise.states import HindsightSums, RidgeState

AHEAD = 4
"""Rows whose products are formed together where the matrix stays the same meanwhile."""



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
    waiting = state.waiting[group]
    precision_product(inverse, held, waiting, xi, xv, width, scratch)
    advice, factor = learn_one(
        state, parameters, group, learner, xi, xv, weight, y, width, scratch
    )
    if held.shape[0] == 0:
        apply_now(inverse, scratch, factor, width)
    else:
        hold_back(inverse, held, waiting, scratch, factor, width)
    if parameters[learner, FORGETTING] < 1.0:
        forget(state, parameters, group, learner, weight)
    return advice


@njit(nogil=True, cache=True, forceinline=True)
def learn_one(state, parameters, group, learner, xi, xv, weight, y, width, product):
    """θ's part of the update, given P x: ``(advice, factor)``; P then loses (factor · P x)²."""
    forward = parameters[learner, FORWARD] != 0.0
    theta = state.theta[group, learner]
    estimate = dot(theta, xi, xv)
    spread = weight * dot(product, xi, xv)
    growth = 1.0 + spread
    error = y - estimate
    add_scaled(theta, weight * error / growth, product, width)
    state.minimum[group, learner] += weight * error * error / growth
    if forward:
        state.log_determinant[group, learner] += np.log1p(spread)
    return (estimate / growth if forward else estimate), np.sqrt(weight / growth)


@njit(nogil=True, cache=True, forceinline=True)
def apply_now(inverse, product, factor, width):
    """P's part of the update, at once."""
    for i in range(width):
        product[i] *= factor
    subtract_outer(inverse, product, width)


@njit(nogil=True, cache=True, forceinline=True)
def hold_back(inverse, held, waiting, product, factor, width):
    """P's part of the update, held back until there are as many as fit."""
    newest = held[waiting]
    for i in range(width):
        newest[i] = factor * product[i]
    if waiting + 1 == held.shape[0]:
        add_outer_rows(inverse, held, -1.0, width)


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
def add_rows(own, way):
    """Add rows to the sums of the only group in ``own``."""
    places, rows, weights, indptr, indices, values, labels = way
    for entry in places:
        row = rows[entry]
        xi = indices[indptr[row] : indptr[row + 1]]
        xv = values[indptr[row] : indptr[row + 1]]
        accumulate(own, 0, xi, xv, weights[entry], labels[row])


@njit(nogil=True, cache=True)
def narrow_rounds(mine, parameters, way, width, advice):
    """Rounds of the only group in ``mine``, where no update is held back."""
    places, rows, weights, indptr, indices, values, labels = way
    scratch = np.empty(width)
    for entry in places:
        row = rows[entry]
        xi = indices[indptr[row] : indptr[row + 1]]
        xv = values[indptr[row] : indptr[row + 1]]
        for k in range(len(parameters)):
            inverse = mine.inverse[0, k]
            combine_rows(scratch, False, inverse, xi, xv, width)
            advice[entry, k], factor = learn_one(
                mine, parameters, 0, k, xi, xv, weights[entry], labels[row], width, scratch
            )
            apply_now(inverse, scratch, factor, width)
            if parameters[k, FORGETTING] < 1.0:
                forget(mine, parameters, 0, k, weights[entry])


@njit(nogil=True, cache=True)
def wide_rounds(mine, parameters, way, width, advice):
    """Rounds of the only group in ``mine``, where updates are held back."""
    places, rows, weights, indptr, indices, values, labels = way
    products = np.empty((len(parameters), AHEAD, width))
    ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
    for place in range(places.size):
        entry = places[place]
        row = rows[entry]
        xi = indices[indptr[row] : indptr[row + 1]]
        xv = values[indptr[row] : indptr[row + 1]]
        if ready == 0:
            ready = products_ahead(
                mine, parameters, places[place:], rows, indptr, indices, values, width, products
            )
        for k in range(len(parameters)):
            base = products[k, AHEAD - max(ready, 1)]
            if ready == 0:
                combine_rows(base, False, mine.inverse[0, k], xi, xv, width)
            subtract_held(mine.held[0, k], mine.waiting[0], xi, xv, width, base)
            advice[entry, k], factor = learn_one(
                mine, parameters, 0, k, xi, xv, weights[entry], labels[row], width, base
            )
            hold_back(mine.inverse[0, k], mine.held[0, k], mine.waiting[0], base, factor, width)
            if parameters[k, FORGETTING] < 1.0:
                forget(mine, parameters, 0, k, weights[entry])
        ready = max(0, ready - 1)
        hold(mine, 0)


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
    entries, rows, weights = bare(entries), bare(rows), bare(weights)
    indptr, labels = bare(indptr), bare(labels)
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
        start, stop = starts[group], starts[group + 1]
        while start < stop:  # in stretches to the next refresh
            end = stop
            if hindsight and added[0] >= 0:
                end = min(stop, start + REFRESH - added[0] % REFRESH)
            way = (entries[start:end], rows, weights, indptr, indices, values, labels)
            if state.held.shape[2] == 0:
                narrow_rounds(mine, parameters, way, width, advice)
            else:
                wide_rounds(mine, parameters, way, width, advice)
            if hindsight:
                add_rows(own, way)
                if added[0] > 0 and added[0] % REFRESH == 0:
                    refresh(mine, parameters, own, 0)
            start = end
        sums.power[group], sums.waiting[group], sums.rows[group] = power[0], waiting[0], added[0]
        state.waiting[group] = count[0]
        state.minimum[group], state.log_determinant[group] = minimum[0], log_determinant[0]
        state.strength[group] = strength[0]
