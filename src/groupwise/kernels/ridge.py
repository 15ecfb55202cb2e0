"""Online ridge regression, for all learners of a group at once.

A learner is *calm* as long as its rows are not too much for the matrix P = (λI + Σ w x xᵀ)⁻¹,
which is kept as ``inverse − Σ_j held_j held_jᵀ``: the last updates are held back and folded in
together, which touches the matrix once instead of once a row. Of a learner that forgets,
A ← γʷ (A + w x xᵀ), it is A / strength that is kept, strength the product of the γʷ: then nothing
fades, and a new row weighs w / strength instead. Otherwise it is *stiff*, and keeps
the triangular factor of P⁻¹ in the same place: the kernel for that (``kernels.stiff``) is compiled
when it is first needed. ``parameters`` holds each learner's penalty, whether it is of the forward
form, and its forgetting factor; then which of the bank's experts is its advice; which is its advice
that leans to everybody; and to whose θ it leans.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import LARGEST, Index, Vector
from groupwise.kernels.addresses import call, call_back, stay_apart
from groupwise.kernels.cells import dot, gathered_dot
from groupwise.kernels.columns import FULL
from groupwise.kernels.compiled import Kernel, inlined, lean
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.layout import LEARNER, ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.vectors import (
    add_and_scale,
    combine_first,
    combine_rows,
    dense_dot,
    dense_dots,
    dense_power,
    dense_products,
    subtract_outer,
)

PENALTY, FORWARD, FORGETTING, EACH = 0, 1, 2, 3
"""Where in ``parameters`` a learner's numbers are, and how many each has."""
NONE = -1
AHEAD = 4
"""Full rows whose products are formed together, where the matrix stays the same meanwhile."""
FAINT = 1e-6
"""The strength at which a fading penalty is renewed."""
LEAP, SWAY = 1e3, 1e4
"""The largest h = xᵀPx and Σ P_jj x_j² of a calm row. An update loses log₁₀ h digits of P, and h
itself log₁₀(Σ P_jj x_j² / h) of its own."""
ROUND, WHO, TASK = AHEAD, AHEAD + 1, AHEAD + 2
"""Where in ``stretch.marks`` another kernel finds which round it is for, whose, and what to do."""
ROOM = 5
"""Rows that the kernel of stiff learners works with."""
ADVISE, LEARN, TAKE_OVER, TELL = range(4)
"""What the kernel of stiff learners does: say what it thinks, learn as well, make a calm learner
stiff, which has spoken already, and learn; or tell others its θ."""


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
    mass: Vector
    """Σ w / strength of what was learned."""
    stiff: Index
    """0 for a calm learner; for a stiff one 1 more than its rows since it became stiff."""
    checks: Index
    """How often a stiff learner was asked whether it has become calm."""
    pivot: Index
    """Of a stiff learner: the column whose multiples are taken from others."""
    theta: Vector
    """θ; of a stiff learner z, with Rθ = z."""
    diagonal: Vector
    """That of ``inverse`` when rows were last folded in; of a stiff learner those multiples."""
    held: Vector
    inverse: Vector
    """Late: until rows are folded in, it is I/λ. Of a stiff learner it is the upper triangular R
    with RᵀR = A / strength."""


MODELS = Layout(
    Models,
    {
        "waiting": ONE,
        "minimum": (LEARNER,),
        "log_determinant": (LEARNER,),
        "strength": (LEARNER,),
        "mass": (LEARNER,),
        "stiff": (LEARNER,),
        "checks": (LEARNER,),
        "pivot": (LEARNER,),
        "theta": (LEARNER, OWN),
        "diagonal": (LEARNER, OWN),
        "held": (LEARNER, HELD, OWN),
        "inverse": (LEARNER, OWN, OWN),
    },
    integers=("waiting", "stiff", "checks", "pivot"),
    late=("inverse",),
    ones=("strength",),
)
models_of, give_late = MODELS.view, MODELS.give_late


def work_size(learners: int, width: int) -> int:
    """How many numbers ``learn`` works with."""
    return learners * AHEAD * width + HELD + ROOM * width


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


@inlined
def sway(place, group, mine, learner, xi, xv):
    """Σ P_jj x_j², with the diagonal as of the last rows folded in: hardly ever too small."""
    begun, diagonal = place.late[group] >= 0, mine.diagonal[learner]
    first = 1.0 / place.parameters[learner * EACH + PENALTY]
    if xi.size == 0:
        if begun:
            return dense_power(diagonal, xv, xv.size)
        return first * dense_dot(xv, xv, xv.size)
    total = 0.0
    for k in range(xi.size):
        total += (diagonal[xi[k]] if begun else first) * (xv[k] * xv[k])
    return total


@lean
def stiffly(state, message, i, learner, task):
    """Have the kernel of stiff learners do its part."""
    stay_apart()
    place, stretch = open_place(state), open_stretch(message)
    stretch.marks[ROUND], stretch.marks[WHO], stretch.marks[TASK] = i, learner, task
    while place.rare == 0:
        call_back(place.upkeep, stretch.group)
        place = open_place(state)
    call(place.rare, state, message)


@inlined
def leans(place, learner):
    """Which of the bank's experts is a learner's advice that leans to everybody, if any."""
    return int(place.parameters[place.learners * (EACH + 1) + learner])


@inlined
def leads(place, learner):
    """To whose θ in the always-on group a learner leans."""
    return int(place.parameters[place.learners * (EACH + 2) + learner])


@inlined
def speak(place, stretch, i, learner, advice):
    """A learner's advice, to its place."""
    expert = int(place.parameters[place.learners * EACH + learner])
    if expert == NONE:
        return
    stretch.advice[stretch.entries[i] * stretch.columns + stretch.column + expert] = advice


@inlined
def speak_leaning(place, stretch, i, learner, estimate, more):
    """The other advice, ``more`` than θ·x; θ·x where that is no number to compute with."""
    advice = estimate + more
    if not abs(advice) <= LARGEST:
        advice = estimate
    expert = leans(place, learner)
    stretch.advice[stretch.entries[i] * stretch.columns + stretch.column + expert] = advice


@inlined
def thoughts(place, stretch, i, learner):
    """Where in ``stretch.leading`` θ of the always-on group before round i begins, by feature."""
    told = int(place.parameters[place.learners * (EACH + 3)])
    return (stretch.rows[i] * told + learner) * stretch.features


@inlined
def follows(stretch):
    """Is there an always-on group, and is this another?"""
    return stretch.leader >= 0 and stretch.leader != stretch.group


@inlined
def lean_over(place, stretch, i, learner, product):
    """λ (P x)·θ_on: by how much the advice changes that leans to everybody."""
    if not follows(stretch):
        return 0.0
    theirs = stretch.leading[thoughts(place, stretch, i, leads(place, learner)) :]
    shared = gathered_dot(theirs, stretch.named[stretch.origin :], product, stretch.known)
    return place.parameters[learner * EACH + PENALTY] * shared


@inlined
def tell(state, message, place, stretch, mine, i):
    """Write θ of every learner down, for those who lean to them."""
    for k in range(place.learners):
        if mine.stiff[k] != 0:
            stiffly(state, message, i, k, TELL)
            continue
        out, theta = stretch.leading[thoughts(place, stretch, i, k) :], mine.theta[k]
        for column in range(stretch.known):
            out[stretch.named[stretch.origin + column]] = theta[column]


@Kernel
def lead(state, message):
    """θ of the always-on group's learners, for those who lean to them. Changes nothing."""
    place, stretch = open_place(state), open_stretch(message)
    mine = models_of(place, stretch.group)
    tell(state, message, place, stretch, mine, stretch.first)
    return stretch.last


@Kernel
def advise(state, message):
    """θ·x."""
    place, stretch = open_place(state), open_stretch(message)
    mine = models_of(place, stretch.group)
    first, last, start, stop = cells_of(stretch, stretch.first)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    for k in range(place.learners):
        if mine.stiff[k] != 0:
            stiffly(state, message, stretch.first, k, ADVISE)
            continue
        speak(place, stretch, stretch.first, k, dot(mine.theta[k], xi, xv))
    return stretch.last


@Kernel
def advise_with_product(state, message):
    """θ·x, or θ·x / (1 + w xᵀPx) in the forward form; θ·x + λ (P x)·θ_on where it leans."""
    place, stretch = open_place(state), open_stretch(message)
    group, i = stretch.group, stretch.first
    mine = models_of(place, group)
    width = mine.theta.shape[1]
    product, factors = stretch.work[:width], stretch.work[width : width + HELD]
    first, last, start, stop = cells_of(stretch, i)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    entry = stretch.entries[i]
    for k in range(place.learners):
        if mine.stiff[k] != 0:
            stiffly(state, message, i, k, ADVISE)
            continue
        estimate = dot(mine.theta[k], xi, xv)
        forward, leaning = place.parameters[k * EACH + FORWARD] != 0.0, leans(place, k) != NONE
        if forward or leaning:
            inverse_product(place, group, mine, k, xi, xv, product)
            subtract_held(mine, k, xi, xv, product, factors)
        if leaning:
            more = lean_over(place, stretch, i, k, product)
            speak_leaning(place, stretch, i, k, estimate, more)
        if forward:
            leap = dot(product, xi, xv) / mine.strength[k]
            estimate /= 1.0 + stretch.weights[entry] * max(0.0, leap)
        speak(place, stretch, i, k, estimate)
    return stretch.last


@inlined
def update(place, mine, learner, weight, error, spread, product):
    """Learn from an error, with the product P x and spread = w xᵀPx, both over the strength."""
    theta, newest = mine.theta[learner], mine.held[learner, mine.waiting[0]]
    strength = mine.strength[learner]
    share = weight / strength / (1.0 + spread)  # P loses share · (P x)(P x)ᵀ
    add_and_scale(theta, share * error, newest, np.sqrt(share), product, theta.size)
    mine.minimum[learner] += weight / (1.0 + spread) * error * error
    mine.mass[learner] += weight / strength
    if place.parameters[learner * EACH + FORWARD] != 0.0:
        mine.log_determinant[learner] += np.log1p(spread)


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
        if mine.stiff[k] == 0:
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
    ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
    for i in range(stretch.first, stretch.last):
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        entry = stretch.entries[i]
        if ready == 0:
            ready = products_ahead(place, group, mine, stretch, i, products)
        weight, y = stretch.weights[entry], stretch.labels[stretch.rows[i]]
        if stretch.leader == group:
            tell(state, message, place, stretch, mine, i)
        for k in range(learners):
            if mine.stiff[k] != 0:
                stiffly(state, message, i, k, LEARN)
                continue
            product = products[k, AHEAD - max(ready, 1)]
            if ready == 0:
                inverse_product(place, group, mine, k, xi, xv, product)
            subtract_held(mine, k, xi, xv, product, factors)
            estimate = dot(mine.theta[k], xi, xv)
            leap = dot(product, xi, xv) / mine.strength[k]
            spread, advice = weight * max(0.0, leap), estimate
            if place.parameters[k * EACH + FORWARD] != 0.0:
                advice /= 1.0 + spread
            speak(place, stretch, i, k, advice)
            if leans(place, k) != NONE:
                more = lean_over(place, stretch, i, k, product)
                speak_leaning(place, stretch, i, k, estimate, more)
            most = SWAY * mine.strength[k]
            if abs(leap) <= LEAP and sway(place, group, mine, k, xi, xv) <= most:
                update(place, mine, k, weight, y - estimate, spread, product)
            else:
                stiffly(state, message, i, k, TAKE_OVER)
                mine = models_of(place, group)
        ready = max(0, ready - 1)
        mine.waiting[0] = (mine.waiting[0] + 1) % HELD
        if mine.waiting[0] == 0:
            fold(place, group)
            mine = models_of(place, group)
        if fade(place, mine, weight):
            give_matrices(place, group)
            call_back(place.upkeep, group)
            mine = models_of(place, group)
            ready = 0
    return stretch.last


@inlined
def fade(place, mine, weight):
    """What was learned fades, and so does the penalty; is one so faint that it must be renewed?"""
    faint = False
    for k in range(place.learners):
        forgetting = place.parameters[k * EACH + FORGETTING]
        if forgetting < 1.0:
            mine.strength[k] *= forgetting if weight == 1.0 else forgetting**weight
            faint = faint or mine.strength[k] < FAINT
    return faint


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
            unused = 1.0 / place.parameters[k * EACH + PENALTY]
            mine.diagonal[k, i] = mine.inverse[k, i, i] = unused


@lean
def fold(place, group):
    """inverse −= Σ_j held_j held_jᵀ, for calm learners; stiff ones hold nothing back."""
    stay_apart()
    give_matrices(place, group)
    mine = models_of(place, group)
    for k in range(place.learners):
        if mine.stiff[k] == 0:
            subtract_outer(mine.inverse[k], mine.held[k], mine.theta.shape[1])
            for i in range(mine.theta.shape[1]):
                mine.diagonal[k, i] = mine.inverse[k, i, i]
