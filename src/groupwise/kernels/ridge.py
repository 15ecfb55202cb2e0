"""Online ridge regression, for all groups and all learners of a group at once.

Arrays lead with the group axis, then the learner axis: ``theta[g, k]`` belongs to learner k of
group g. The matrix P = (λI + Σ w x xᵀ)⁻¹ is kept as ``inverse − Σ_j held_j held_jᵀ``: the last
updates are held back and folded in together, which touches the matrix once instead of once a row.
``parameters[k]`` holds learner k's penalty, whether it is of the forward form, and its forgetting
factor.
"""

import numpy as np

from groupwise.kernels.arithmetic import dot
from groupwise.kernels.compiled import compiled, inlined, lean, stay_apart
from groupwise.kernels.hindsight import accumulate
from groupwise.kernels.renewal import (
    FORGETTING,
    FORWARD,
    PENALTY,
    REFRESH,
    forget,
    give_place,
    refresh,
)
from groupwise.kernels.schedule import next_of
from groupwise.kernels.vectors import (
    add_and_scale,
    add_outer,
    combine_first,
    combine_rows,
    dense_dots,
    dense_products,
    prefetch,
)
from groupwise.states import HELD, HindsightSums, RidgeState

MANY = 256
"""Groups from which on they are taken several at a time, and fetched ahead."""
AHEAD = 4
"""Full rows whose products are formed together, where the matrix stays the same meanwhile."""


@inlined
def inverse_product(state, parameters, group, learner, xi, xv, width, out):
    """out = inverse · x."""
    place = state.place[group]
    if place < 0:
        factor = 1.0 / parameters[learner, PENALTY]
        out[:width] = 0.0
        if xi.size == 0:
            for k in range(xv.size):
                out[k] = factor * xv[k]
        else:
            for k in range(xi.size):
                out[xi[k]] = factor * xv[k]
    elif xi.size == 0:
        # The matrix is symmetric: its rows are its columns.
        combine_first(out, False, state.inverse[place, learner], xv, xv.size, width)
    else:
        combine_rows(out, state.inverse[place, learner], xi, xv, width)


@inlined
def subtract_held(state, group, learner, xi, xv, width, out, factors):
    """out −= Σ_j ⟨held_j, x⟩ held_j, which makes P x of inverse · x."""
    held = state.held[group, learner]
    count = state.waiting[group]
    if count == 0:
        return
    if xi.size == 0:
        dense_dots(factors, held, count, xv, xv.size)
    else:
        for j in range(count):
            factors[j] = -dot(held[j], xi, xv)
    combine_first(out, True, held, factors, count, width)


@inlined
def advise_one(state, parameters, group, learner, xi, xv, weight, width, product, factors):
    """θ·x, or θ·x / (1 + w xᵀPx) in the forward form."""
    estimate = dot(state.theta[group, learner], xi, xv)
    if parameters[learner, FORWARD] and estimate != 0.0:
        inverse_product(state, parameters, group, learner, xi, xv, width, product)
        subtract_held(state, group, learner, xi, xv, width, product, factors)
        estimate /= 1.0 + weight * dot(product, xi, xv)
    return estimate


@inlined
def step_one(state, parameters, group, learner, xi, xv, weight, y, width, product, factors):
    """Advice on x, then the update with (x, y) at this weight, given inverse · x."""
    subtract_held(state, group, learner, xi, xv, width, product, factors)
    theta, held = state.theta[group, learner], state.held[group, learner]
    waiting = state.waiting[group]
    estimate = dot(theta, xi, xv)
    spread = weight * dot(product, xi, xv)
    error = y - estimate
    share = weight / (1.0 + spread)  # P loses share · (P x)(P x)ᵀ
    add_and_scale(theta, share * error, held[waiting], np.sqrt(share), product, width)
    state.minimum[group, learner] += share * error * error
    if waiting + 1 == HELD:
        fold_back(state, parameters, group, learner, width)
    if parameters[learner, FORGETTING] < 1.0:
        forget(state, parameters, group, learner, weight)
    if parameters[learner, FORWARD]:
        state.log_determinant[group, learner] += np.log1p(spread)
        return estimate / (1.0 + spread)
    return estimate


@lean
def fold_back(state, parameters, group, learner, width):
    """inverse −= Σ_j held_j held_jᵀ."""
    stay_apart()
    give_place(state, parameters, group)
    inverse = state.inverse[state.place[group], learner]
    add_outer(inverse, -1.0, state.held[group, learner], width, True)


@inlined
def hold(state, group):
    """Count one more held-back row of the group (all its learners hold the same rows)."""
    state.waiting[group] = (state.waiting[group] + 1) % HELD


@inlined
def advise(state, parameters, groups, weights, xi, xv, width, advice, room):
    """advice[a, k]: what learner k of the a-th awake group says about x.

    ``room`` is for ``width`` + ``HELD`` numbers to work with.
    """
    product, factors = room[:width], room[width:]
    for a in range(groups.size):
        for k in range(len(parameters)):
            advice[a, k] = advise_one(
                state, parameters, groups[a], k, xi, xv, weights[a], width, product, factors
            )


@inlined
def step(state, parameters, groups, weights, xi, xv, y, width, advice, room):
    """One round for all awake groups: their advice, then their updates."""
    product, factors = room[:width], room[width:]
    for a in range(groups.size):
        group = groups[a]
        for k in range(len(parameters)):
            inverse_product(state, parameters, group, k, xi, xv, width, product)
            advice[a, k] = step_one(
                state, parameters, group, k, xi, xv, weights[a], y, width, product, factors
            )
        hold(state, group)


@inlined
def products_ahead(mine, parameters, places, cells, width, starts, products):
    """``inverse`` · x of the next rows at once, where they are full and of one length.

    Returns how many rows it did: ``AHEAD``, or 0 where ``inverse`` changes before they are through.
    """
    if mine.place[0] < 0 or HELD - mine.waiting[0] < AHEAD or places.size < AHEAD:
        return 0
    size = cells.indptr[places[0] + 1] - cells.indptr[places[0]]
    for r in range(AHEAD):
        row = places[r]
        starts[r] = cells.indptr[row]
        if not cells.full[row] or cells.indptr[row + 1] - starts[r] != size:
            return 0
    for k in range(len(parameters)):
        if parameters[k, FORGETTING] < 1.0:
            return 0
    for k in range(len(parameters)):
        inverse = mine.inverse[mine.place[0], k]
        dense_products(products[k], inverse, cells.values, starts, size, width)
    return AHEAD


@inlined
def group_rounds(mine, parameters, own, hindsight, rounds, weights, cells, labels, room):
    """Rounds of the only group in ``mine``, whose sums are in ``own``."""
    entries, rows = rounds
    advice, width, products, factors, starts = room
    ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
    only = np.int64(0)  # not a literal, for which all would be compiled once more
    for i in range(rows.size):
        entry, row = entries[i], rows[i]
        start, stop = cells.indptr[row], cells.indptr[row + 1]
        xi = cells.indices[start : start if cells.full[row] else stop]
        xv = cells.values[start:stop]
        if ready == 0:
            ready = products_ahead(mine, parameters, rows[i:], cells, width, starts, products)
        weight, y = weights[entry], labels[row]
        for k in range(len(parameters)):
            product = products[k, AHEAD - max(ready, 1)]
            if ready == 0:
                inverse_product(mine, parameters, only, k, xi, xv, width, product)
            advice[entry, k] = step_one(
                mine, parameters, only, k, xi, xv, weight, y, width, product, factors
            )
        ready = max(0, ready - 1)
        hold(mine, only)
        if hindsight:
            accumulate(own, only, xi, xv, weight, y)
            if own.rows[0] > 0 and own.rows[0] % REFRESH == 0:
                refresh(mine, parameters, own, only)
                ready = 0  # a file of schema 1 was folded, so that this can come amid the eight


@inlined
def _copy(state, group, sums, from_state, from_group, from_sums):
    """Copy a group's single numbers."""
    state.place[group] = from_state.place[from_group]
    state.waiting[group] = from_state.waiting[from_group]
    for k in range(state.minimum.shape[1]):
        state.minimum[group, k] = from_state.minimum[from_group, k]
        state.log_determinant[group, k] = from_state.log_determinant[from_group, k]
        state.strength[group, k] = from_state.strength[from_group, k]
    sums.place[group] = from_sums.place[from_group]
    sums.power[group] = from_sums.power[from_group]
    sums.waiting[group] = from_sums.waiting[from_group]
    sums.rows[group] = from_sums.rows[from_group]


@inlined
def _fetch_numbers(state, sums, group):
    """Ask for a group's single numbers."""
    learners = state.minimum.shape[1]
    prefetch(state.place, group, 1)
    prefetch(state.waiting, group, 1)
    for figures in (state.minimum, state.log_determinant, state.strength):
        prefetch(figures, group * learners, learners)
    prefetch(sums.place, group, 1)
    prefetch(sums.power, group, 1)
    prefetch(sums.waiting, group, 1)
    prefetch(sums.rows, group, 1)


@inlined
def _fetch_rows(state, sums, group, width):
    """Ask for a group's vectors; its single numbers are there."""
    _, learners, columns = state.theta.shape
    for k in range(learners):
        expert = group * learners + k
        prefetch(state.theta, expert * columns, width)
        for j in range(state.waiting[group] + 1):
            prefetch(state.held, (expert * HELD + j) * columns, width)
    columns = sums.moment.shape[1]
    if columns > 0:
        prefetch(sums.moment, group * columns, width)
        prefetch(sums.held, (group * HELD + sums.waiting[group]) * columns, width)


@lean
def _take(queue, state, parameters, sums, hindsight, parts, weights, cells, labels, room, own_room):
    """See ``step_subsequences``; ``room`` and ``own_room`` are to work in."""
    stay_apart()
    counts, power, figures = own_room
    width = room[1]
    total = parts.groups.size
    batch = 1 + total // MANY
    turn = next_of(queue, batch)
    while turn < total:
        last = min(turn + batch, total)
        for i in range(turn, last):
            # Many groups are not in the cache; what is needed soon is on its way meanwhile.
            if total > MANY and i + 4 < last:
                _fetch_numbers(state, sums, parts.groups[i + 4])
                _fetch_rows(state, sums, parts.groups[i + 2], width)
                row = parts.rows[parts.starts[i + 2]]
                prefetch(cells.values, cells.indptr[row], cells.indptr[row + 1] - cells.indptr[row])
            group = parts.groups[i]
            only = slice(group, group + 1)
            # Single numbers of neighbouring groups share cache lines, which threads fight over.
            mine = RidgeState(
                state.theta[only],
                state.inverse,
                counts[0],
                state.placed,
                state.held[only],
                counts[1],
                figures[0],
                figures[1],
                figures[2],
            )
            own = HindsightSums(
                sums.gram,
                counts[2],
                sums.placed,
                sums.moment[only],
                power,
                sums.held[only],
                counts[3],
                counts[4],
            )
            _copy(mine, np.int64(0), own, state, group, sums)
            part = slice(parts.starts[i], parts.starts[i + 1])
            rounds = parts.entries[part], parts.rows[part]
            group_rounds(mine, parameters, own, hindsight, rounds, weights, cells, labels, room)
            _copy(state, group, sums, mine, np.int64(0), own)
        turn = next_of(queue, batch)


@compiled
def step_subsequences(
    queue, state, parameters, sums, hindsight, parts, weights, cells, labels, width, advice
):
    """All rounds of groups from the queue, each in its order, until the queue is empty.

    ``parts`` says where each group's rounds are; see ``schedule.subsequences``. Fills
    ``advice[entry]`` and, with ``hindsight``, adds the rows to ``sums``.
    """
    learners = len(parameters)
    products, factors = np.empty((learners, AHEAD, width)), np.empty(HELD)
    room = advice, width, products, factors, np.empty(AHEAD, dtype=np.int64)
    own_room = np.empty((5, 1), dtype=np.int64), np.empty(1), np.empty((3, 1, learners))
    _take(queue, state, parameters, sums, hindsight, parts, weights, cells, labels, room, own_room)
