"""Online ridge regression, for all learners of a group at once.

The matrix P = (λI + Σ w x xᵀ)⁻¹ is kept as ``inverse − Σ_j held_j held_jᵀ``: the last updates are
held back and folded in together, which touches the matrix once instead of once a row.
``parameters`` holds each learner's penalty, whether it is of the forward form, and its
forgetting factor.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.addresses import call, call_back, stay_apart
from groupwise.kernels.cells import dot
from groupwise.kernels.columns import FULL
from groupwise.kernels.compiled import Kernel, inlined, lean
from groupwise.kernels.hindsight import HELD, WHOLE, sums_of
from groupwise.kernels.layout import LEARNER, ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.vectors import (
    add_and_scale,
    add_outer,
    combine_first,
    combine_rows,
    dense_dots,
    dense_products,
)

PENALTY, FORWARD, FORGETTING, EACH = 0, 1, 2, 3
"""Where in ``parameters`` a learner's numbers are, and how many each has."""
AHEAD = 4
"""Full rows whose products are formed together, where the matrix stays the same meanwhile."""
FAINT = 1e-6
"""The strength at which a fading penalty is renewed."""


class Models(NamedTuple):
    """One group's ridge models."""

    waiting: Index
    """How many rows are held back."""
    minimum: Vector
    """M = Σ w e² / (1 + w xᵀPx) = min_θ λ‖θ‖² + Σ w (θ·x − y)²."""
    log_determinant: Vector
    """ln det(A / λ), kept for the forward form."""
    strength: Vector
    """What is left of the penalty of a learner that forgets; 1 for all others."""
    theta: Vector
    held: Vector
    inverse: Vector
    """Late: until rows are folded in, it is I/λ."""


MODELS = Layout(
    Models,
    {
        "waiting": ONE,
        "minimum": (LEARNER,),
        "log_determinant": (LEARNER,),
        "strength": (LEARNER,),
        "theta": (LEARNER, OWN),
        "held": (LEARNER, HELD, OWN),
        "inverse": (LEARNER, OWN, OWN),
    },
    integers=("waiting",),
    late=("inverse",),
    ones=("strength",),
)
models_of, give_late = MODELS.view, MODELS.give_late


def work_size(learners: int, width: int) -> int:
    """How many numbers ``learn`` works with."""
    return learners * AHEAD * width + HELD


@inlined
def inverse_product(place, group, mine, learner, xi, xv, out):
    """out = inverse · x."""
    width = mine.theta.shape[1]
    if place.late[group] < 0:
        factor = 1.0 / place.parameters[learner * EACH + PENALTY]
        out[:width] = 0.0
        if xi.size == 0:
            for k in range(xv.size):
                out[k] = factor * xv[k]
        else:
            for k in range(xi.size):
                out[xi[k]] += factor * xv[k]
    elif xi.size == 0:
        # The matrix is symmetric: its rows are its columns.
        combine_first(out, False, mine.inverse[learner], xv, xv.size, width)
    else:
        combine_rows(out, mine.inverse[learner], xi, xv, width)


@inlined
def subtract_held(mine, learner, xi, xv, out, factors):
    """out −= Σ_j ⟨held_j, x⟩ held_j, which makes P x of inverse · x."""
    held, count = mine.held[learner], mine.waiting[0]
    if count == 0:
        return
    if xi.size == 0:
        dense_dots(factors, held, count, xv, xv.size)
    else:
        for j in range(count):
            factors[j] = -dot(held[j], xi, xv)
    combine_first(out, True, held, factors, count, held.shape[1])


@Kernel
def advise(state, message):
    """θ·x."""
    place, stretch = open_place(state), open_stretch(message)
    mine = models_of(place, stretch.group)
    entry = stretch.entries[stretch.first]
    first, last, start, stop = cells_of(stretch, stretch.first)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    for k in range(place.learners):
        estimate = dot(mine.theta[k], xi, xv)
        stretch.advice[entry * stretch.columns + stretch.column + k] = estimate
    return stretch.last


@Kernel
def advise_forward(state, message):
    """θ·x, or θ·x / (1 + w xᵀPx) in the forward form."""
    place, stretch = open_place(state), open_stretch(message)
    group, i = stretch.group, stretch.first
    mine = models_of(place, group)
    width = mine.theta.shape[1]
    product, factors = stretch.work[:width], stretch.work[width : width + HELD]
    entry = stretch.entries[i]
    first, last, start, stop = cells_of(stretch, i)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    for k in range(place.learners):
        estimate = dot(mine.theta[k], xi, xv)
        if place.parameters[k * EACH + FORWARD] != 0.0 and estimate != 0.0:
            inverse_product(place, group, mine, k, xi, xv, product)
            subtract_held(mine, k, xi, xv, product, factors)
            estimate /= 1.0 + stretch.weights[entry] * dot(product, xi, xv)
        stretch.advice[entry * stretch.columns + stretch.column + k] = estimate
    return stretch.last


@inlined
def step(place, mine, learner, xi, xv, weight, y, product, factors):
    """Advice on x, then the update with (x, y) at this weight, given inverse · x."""
    subtract_held(mine, learner, xi, xv, product, factors)
    theta, newest = mine.theta[learner], mine.held[learner, mine.waiting[0]]
    estimate = dot(theta, xi, xv)
    spread = weight * dot(product, xi, xv)
    error = y - estimate
    share = weight / (1.0 + spread)  # P loses share · (P x)(P x)ᵀ
    add_and_scale(theta, share * error, newest, np.sqrt(share), product, theta.size)
    mine.minimum[learner] += share * error * error
    if place.parameters[learner * EACH + FORWARD] != 0.0:
        mine.log_determinant[learner] += np.log1p(spread)
        return estimate / (1.0 + spread)
    return estimate


@inlined
def products_ahead(place, group, mine, stretch, i, products):
    """``inverse`` · x of the next rows at once, where they are full and of one length.

    Returns how many rows it did: ``AHEAD``, or 0 where ``inverse`` changes before they are through.
    """
    if place.late[group] < 0 or HELD - mine.waiting[0] < AHEAD or stretch.last - i < AHEAD:
        return 0
    first = stretch.rows[i]
    size = stretch.indptr[first + 1] - stretch.indptr[first]
    for r in range(AHEAD):
        row = stretch.rows[i + r]
        stretch.marks[r] = stretch.indptr[row]
        full = stretch.places[i + r] == FULL
        if not full or stretch.indptr[row + 1] - stretch.marks[r] != size:
            return 0
    width = mine.theta.shape[1]
    for k in range(place.learners):
        matrix = mine.inverse[k]
        dense_products(products[k], matrix, stretch.values, stretch.marks, size, width)
    return AHEAD


@Kernel
def learn(state, message):
    """Advice and update, round by round."""
    place, stretch = open_place(state), open_stretch(message)
    group = stretch.group
    mine = models_of(place, group)
    learners, width = mine.theta.shape
    size = learners * AHEAD * width
    products = stretch.work[:size].reshape((learners, AHEAD, width))
    factors = stretch.work[size : size + HELD]
    fading = place.also != 0
    ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
    for i in range(stretch.first, stretch.last):
        row, entry = stretch.rows[i], stretch.entries[i]
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        if ready == 0 and not fading:
            ready = products_ahead(place, group, mine, stretch, i, products)
        weight, y = stretch.weights[entry], stretch.labels[row]
        for k in range(learners):
            product = products[k, AHEAD - max(ready, 1)]
            if ready == 0:
                inverse_product(place, group, mine, k, xi, xv, product)
            advice = step(place, mine, k, xi, xv, weight, y, product, factors)
            stretch.advice[entry * stretch.columns + stretch.column + k] = advice
        ready = max(0, ready - 1)
        mine.waiting[0] = (mine.waiting[0] + 1) % HELD
        if mine.waiting[0] == 0:
            fold(place, group)
            mine = models_of(place, group)
        if fading:
            stretch.marks[0] = i
            call(place.also, state, message)
            mine = models_of(place, group)
    if place.beside != 0:
        renew_if_due(place, group)
    return stretch.last


@lean
def give_matrices(place, group):
    """Memory for the group's matrices, which begin as I/λ, unless it has them."""
    stay_apart()
    if place.late[group] >= 0:
        return
    give_late(place, group)
    mine = models_of(place, group)
    for k in range(place.learners):
        for i in range(mine.theta.shape[1]):
            mine.inverse[k, i, i] = 1.0 / place.parameters[k * EACH + PENALTY]


@lean
def fold(place, group):
    """inverse −= Σ_j held_j held_jᵀ."""
    stay_apart()
    give_matrices(place, group)
    mine = models_of(place, group)
    for k in range(place.learners):
        add_outer(mine.inverse[k], -1.0, mine.held[k], mine.theta.shape[1], True)


@Kernel
def fade(state, message):
    """A ← γʷ A: what was learned fades, and so does the penalty, which is renewed when faint.

    Columns that no row has used yet fade too, so that a feature that comes later starts where it
    would have been: at 1 / (λ · strength), to the digit.
    """
    place, stretch = open_place(state), open_stretch(message)
    group, weight = stretch.group, stretch.weights[stretch.entries[stretch.marks[0]]]
    give_matrices(place, group)
    mine = models_of(place, group)
    faint = False
    for k in range(place.learners):
        forgetting = place.parameters[k * EACH + FORGETTING]
        if not forgetting < 1.0:
            continue
        penalty = place.parameters[k * EACH + PENALTY]
        factor = forgetting**weight
        inverse, held = mine.inverse[k], mine.held[k]
        unused = 1.0 / (penalty * mine.strength[k])
        mine.strength[k] *= factor
        for i in range(inverse.shape[0]):
            was_unused = inverse[i, i] == unused
            for j in range(inverse.shape[1]):
                inverse[i, j] /= factor
            if was_unused:
                inverse[i, i] = 1.0 / (penalty * mine.strength[k])
        for r in range(held.shape[0]):
            for j in range(held.shape[1]):
                held[r, j] /= np.sqrt(factor)
        faint = faint or mine.strength[k] < FAINT
    if faint:
        call_back(place.upkeep, group)
    return stretch.last


@lean
def renew_if_due(place, group):
    """Ask for the learners to be renewed from the sums, where these are whole."""
    stay_apart()
    beside = open_place(place.beside)
    sums = sums_of(beside, group)
    if sums.rows[0] > 0 and sums.rows[0] % WHOLE == 0:
        call_back(place.upkeep, group)
