"""Online logistic regression, for all learners of a group at once.

With P = A⁻¹, A = λI + Σ w c x xᵀ, a round with v = θ·x and κ = w xᵀPx has its *anchor* z where
z + κ tanh(z/2) = v. There the loss ℓ_y(z) = ln(1 + eᶻ) − y z is bounded from below by a parabola,

    ℓ_y(ζ) ≥ ℓ_y(z) + (π − y)(ζ − z) + c/2 (ζ − z)²    for all |ζ| ≤ b,    π = σ(z),

with the largest c for which that is true (``curvature``). In θ this is the square loss of ridge
regression with the weight w c and the label z + (y − π)/c. So the state of a learner is that of one
for ridge regression, calm or stiff, and the first fields of its record are the same
(``kernels.ridge``): what works on those works on these.

The same parabolas, summed up, are what is known of the best model in hindsight once rows are no
longer kept: the weights and labels of a round go to ``stretch.anchors``, for the kernels that sum
them up (``kernels.hindsight``). ``parameters`` holds each learner's penalty, bound b and node in a
chain of dichotomies (-1: there is no chain), then how many learners, the first ones, record what
hindsight needs, how many rows of each group are kept elsewhere, and each learner's ln(1 + e⁻ᵇ).
"""

import math
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.cells import dot
from groupwise.kernels.compiled import Kernel, inlined, lean
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.layout import LEARNER, ONE, OWN, Layout, open_place
from groupwise.kernels.ridge import (
    ADVISE,
    AHEAD,
    EACH,
    LEAP,
    LEARN,
    MODELS,
    SWAY,
    TAKE_OVER,
    fold,
    inverse_product,
    products_ahead,
    stiffly,
    subtract_held,
    sway,
)
from groupwise.kernels.stretch import KEEP, cells_of, open_stretch
from groupwise.kernels.vectors import add_and_scale

BOUND, NODE = 1, 2
"""Where in ``parameters`` a learner's numbers are, after its penalty."""
RECORDING, KEPT, SOFTPLUS = range(3)
"""The same, after those of all learners; from ``SOFTPLUS`` on each learner's ln(1 + e⁻ᵇ)."""
SAFETY = 1.0 - 1e-6
"""A little less curvature than is right covers every rounding of it."""
NEAR = 0.01
"""So close to the bound, the curvature is computed from its series."""
DRAWN = 0.9
"""How far below the bound a model is put that would go beyond it."""
LN2 = math.log(2.0)
SHORT = 1e-3
"""Exponents up to which five terms of the series of an exponential have all its digits."""
QUICK = 1e-8
"""A step of Newton's so short is the last."""
CLOSE = 0.5
"""Where e^−|z| is larger, tanh(z/2) is not computed from it."""
PATIENCE = 8
"""Steps of Newton's after which the interval is halved as well."""
LARGEST = 1e60
"""Anchors are no larger: curvature is some 1e-3 over their square, and must not vanish."""
AT_MOST = 200
"""Steps after which an anchor is what it is: any anchor is sound."""


class Logistics(NamedTuple):
    """One group's logistic models: first what a ridge model has (``kernels.ridge``)."""

    waiting: Index
    minimum: Vector
    """M = min_θ λ/2 ‖θ‖² + Σ w (the parabola at θ·x): at most the penalised loss of any model
    with |x·θ| ≤ b."""
    log_determinant: Vector
    """ln det(A / λ)."""
    strength: Vector
    mass: Vector
    stiff: Index
    checks: Index
    pivot: Index
    theta: Vector
    diagonal: Vector
    held: Vector
    rows: Index
    """How many rounds the group has had."""
    constant: Vector
    """Σ w (ℓ_y(z) − (π − y)²/2c) over rows that are not kept, and what rounding left out of it."""
    magnitude: Vector
    """The same with absolute values: what the rounding of the constant is measured by."""
    known_loss: Vector
    """The loss of the model ``known`` on these rows, at most, and what rounding left out of it."""
    reach: Vector
    """The largest |x·known| among them."""
    weight: Vector
    """Σ w of them."""
    known: Vector
    """A model of the class: θ as it was when the last row was kept, made smaller as need be."""
    inverse: Vector


RECORDED = ("rows", "constant", "magnitude", "known_loss", "reach", "weight", "known")
"""What was recorded for hindsight, and stays when what was learned is forgotten."""
_SHARED = {name: axes for name, axes in MODELS.axes.items() if name not in MODELS.late}
LOGISTICS = Layout(
    Logistics,
    {
        **_SHARED,
        "rows": ONE,
        "constant": (LEARNER, 2),
        "magnitude": (LEARNER,),
        "known_loss": (LEARNER, 2),
        "reach": (LEARNER,),
        "weight": (LEARNER,),
        "known": (LEARNER, OWN),
        "inverse": MODELS.axes["inverse"],
    },
    integers=(*MODELS.integers, "rows"),
    late=MODELS.late,
    ones=MODELS.ones,
)
logistics_of = LOGISTICS.view


@inlined
def loss_at(z, y):
    """ℓ_y(z) = ln(1 + eᶻ) − y z, with all its digits."""
    rest = math.log1p(math.exp(-abs(z)))
    return rest + (1.0 - y) * z if z > 0.0 else rest - y * z


@inlined
def sigmoid(z):
    """σ(z)."""
    part = math.exp(-abs(z))
    return 1.0 / (1.0 + part) if z > 0.0 else part / (1.0 + part)


@inlined
def curvature_at(a, b, at_b, part, softplus):
    """``curvature`` for a ≥ 0, from ln(1 + e⁻ᵇ), e⁻ᵃ and ln(1 + e⁻ᵃ)."""
    gap = b - a
    small = part / (1.0 + part)
    if abs(gap) < NEAR:
        s, t = small * (1.0 - small), 2.0 * small - 1.0
        return SAFETY * s * (1.0 + t * gap / 3.0 + (t * t - 2.0 * s) * gap * gap / 12.0)
    return SAFETY * 2.0 * ((at_b - softplus + small * gap) / gap) / gap


@inlined
def curvature(a, b):
    """The largest c with ℓ(ζ) ≥ ℓ(a) + ℓ'(a)(ζ − a) + c/2 (ζ − a)² for all |ζ| ≤ b; a little less.

    The ratio that c must not exceed rises up to ζ = −a and falls from there on, so it is least at
    an end of the interval, the one on the side of a.
    """
    part = math.exp(-abs(a))
    return curvature_at(abs(a), b, math.log1p(math.exp(-b)), part, math.log1p(part))


@inlined
def lessened(part, amount):
    """part · e^−amount; near 0 by its series, which is several times as quick."""
    if abs(amount) < SHORT:
        a = amount
        series = a * (1.0 - a * (0.5 - a * (1.0 / 6.0 - a * (1.0 / 24.0 - a / 120.0))))
        return part - part * series
    return part * math.exp(-amount)


@inlined
def hyperbolic(z, part):
    """tanh(z/2) for z ≥ 0, from e⁻ᶻ where that has all its digits."""
    return math.tanh(0.5 * z) if part > CLOSE else (1.0 - part) / (1.0 + part)


@inlined
def anchor(v, kappa):
    """The root of z + κ tanh(z/2) = |v|, between 0 and |v|, and e⁻ᶻ.

    Both |v|/(1 + κ/2) and |v| − κ are below it, and from below Newton's steps go up to it and never
    beyond, the left side being concave. Where they are too short, halving helps.
    """
    size = min(abs(v), LARGEST)
    z, top = max(size / (1.0 + 0.5 * kappa), size - kappa), size
    part = math.exp(-z)
    for step in range(AT_MOST):
        t = hyperbolic(z, part)
        change = min((size - z - kappa * t) / (1.0 + 0.5 * kappa * (1.0 - t * t)), size - z)
        if not change > 0.0:
            break
        z += change
        part = lessened(part, change)
        if change <= QUICK * z:  # the next one would be of the order of its square
            break
        if step >= PATIENCE:
            middle = 0.5 * (z + top)
            if middle + kappa * math.tanh(0.5 * middle) <= size:
                z = middle
            else:
                top = middle
            part = math.exp(-z)
    return z, part


class Anchor(NamedTuple):
    """Where a round's parabola touches the loss, and what follows from it."""

    z: float
    tau: float
    """tanh(z/2)."""
    c: float
    advice: float
    unlikely: float
    """e^−|z| / (1 + e^−|z|), the probability of the less likely label."""
    softplus: float
    """ln(1 + e^−|z|)."""


@inlined
def link(v, kappa, b, at_b):
    """Anchor, curvature, and the advice σ(z + κτ / (2(1 + cκ))); ``at_b`` is ln(1 + e⁻ᵇ)."""
    size, part = anchor(v, kappa)
    softplus, unlikely = math.log1p(part), part / (1.0 + part)
    tau = hyperbolic(size, part)
    c = curvature_at(size, b, at_b, part, softplus)
    # The same side of ½, a little closer to certainty.
    beyond = lessened(part, 0.5 * tau * (kappa / (1.0 + c * kappa)))
    advice = (1.0 if v > 0.0 else beyond) / (1.0 + beyond)
    return Anchor(math.copysign(size, v), math.copysign(tau, v), c, advice, unlikely, softplus)


@inlined
def link_of(place, k, v, kappa):
    """The same for a learner."""
    at_b = place.parameters[place.learners * EACH + SOFTPLUS + k]
    return link(v, kappa, place.parameters[k * EACH + BOUND], at_b)


@inlined
def target(place, stretch, i, k):
    """A learner's label in a round, 0 or 1 or between; and has its node been reached?"""
    y, node = stretch.labels[stretch.rows[i]], place.parameters[k * EACH + NODE]
    if node < 0.0:
        return y, True
    return (1.0 if y == node else 0.0), y >= node


@inlined
def difference(y, at):
    """y − σ(z), with all its digits."""
    high, low = (1.0 - at.unlikely, at.unlikely)
    if at.z <= 0.0:
        high, low = low, high
    return y * low - (1.0 - y) * high


@inlined
def loss_there(y, at):
    """ℓ_y(z)."""
    return at.softplus + (1.0 - y) * at.z if at.z > 0.0 else at.softplus - y * at.z


@inlined
def account(mine, k, weight, y, kappa, at):
    """M and ln det after a round, and how far θ goes along P x; κ = w xᵀPx."""
    growth = at.c * kappa
    error = difference(y, at)
    pull = at.tau + error
    gained = 0.5 * kappa * (at.tau * at.tau - pull * pull / (1.0 + growth))
    mine.minimum[k] += weight * (loss_there(y, at) + gained)
    mine.log_determinant[k] += math.log1p(growth)
    return weight * (error - at.c * (kappa * at.tau)) / (1.0 + growth)


@inlined
def add_twofold(total, k, amount):
    """total[k] += amount, where total[k, 1] takes what is lost in that."""
    before = total[k, 0]
    total[k, 0] = before + amount
    total[k, 1] += (before - total[k, 0]) + amount


@lean
def draw_in(mine, k, factor):
    """Make a known model smaller, so that it stays in the class; returns the factor.

    What it has lost so far is then at most as much as the chord to the model 0 says.
    """
    stay_apart()
    mine.known_loss[k, 0] = factor * mine.known_loss[k, 0] + (1.0 - factor) * LN2 * mine.weight[k]
    mine.known_loss[k, 1] *= factor
    mine.reach[k] *= factor
    for j in range(mine.theta.shape[1]):
        mine.known[k, j] *= factor
    return factor


@inlined
def note(place, stretch, mine, i, k, xi, xv, y, reached, at):
    """Record what hindsight needs of a round; its parabola goes to ``stretch.anchors``."""
    first = place.learners * EACH
    recording = int(place.parameters[first + RECORDING])
    if k >= recording:
        return
    entry = stretch.entries[i]
    slot = 2 * (entry * recording + k)
    stretch.anchors[slot] = stretch.anchors[slot + 1] = 0.0
    if mine.rows[0] < place.parameters[first + KEPT]:
        stretch.marks[KEEP] = 1
        return
    if mine.rows[0] == place.parameters[first + KEPT] and mine.stiff[k] == 0:
        for j in range(mine.theta.shape[1]):
            mine.known[k, j] = mine.theta[k, j]
    if not reached:
        return
    weight = stretch.weights[entry] * stretch.stands_for[0]
    guess = dot(mine.known[k], xi, xv)
    if abs(guess) > place.parameters[k * EACH + BOUND]:
        guess *= draw_in(mine, k, DRAWN * place.parameters[k * EACH + BOUND] / abs(guess))
    add_twofold(mine.known_loss, k, weight * loss_at(guess, y))
    mine.reach[k] = max(mine.reach[k], abs(guess))
    mine.weight[k] += weight
    error = difference(y, at)
    fixed = weight * (loss_there(y, at) - 0.5 * error * (error / at.c))
    add_twofold(mine.constant, k, fixed)
    mine.magnitude[k] += abs(fixed)
    stretch.anchors[slot], stretch.anchors[slot + 1] = weight * at.c, at.z + error / at.c


@Kernel
def advise(state, message):
    """σ(z + κτ / (2(1 + cκ)))."""
    place, stretch = open_place(state), open_stretch(message)
    group, i = stretch.group, stretch.first
    mine = logistics_of(place, group)
    width = mine.theta.shape[1]
    product, factors = stretch.work[:width], stretch.work[width : width + HELD]
    first, last, start, stop = cells_of(stretch, i)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    entry = stretch.entries[i]
    for k in range(place.learners):
        if mine.stiff[k] != 0:
            stiffly(state, message, i, k, ADVISE)
            continue
        inverse_product(place, group, mine, k, xi, xv, product)
        subtract_held(mine, k, xi, xv, product, factors)
        kappa = stretch.weights[entry] * max(0.0, dot(product, xi, xv))
        at = link_of(place, k, dot(mine.theta[k], xi, xv), kappa)
        stretch.advice[entry * stretch.columns + stretch.column + k] = at.advice
    return stretch.last


@Kernel
def learn(state, message):
    """Advice and update, round by round."""
    place, stretch = open_place(state), open_stretch(message)
    group = stretch.group
    mine = logistics_of(place, group)
    learners, width = mine.theta.shape
    size = learners * AHEAD * width
    products = stretch.work[:size].reshape((learners, AHEAD, width))
    factors = stretch.work[size : size + HELD]
    ready = 0  # rows whose products with ``inverse`` stand in ``products`` already
    for i in range(stretch.first, stretch.last):
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        entry = stretch.entries[i]
        weight = stretch.weights[entry]
        if ready == 0:
            ready = products_ahead(place, group, mine, stretch, i, products)
        for k in range(learners):
            if mine.stiff[k] != 0:
                stiffly(state, message, i, k, LEARN)
                continue
            product = products[k, AHEAD - max(ready, 1)]
            if ready == 0:
                inverse_product(place, group, mine, k, xi, xv, product)
            subtract_held(mine, k, xi, xv, product, factors)
            leap = dot(product, xi, xv)
            kappa = weight * max(0.0, leap)
            at = link_of(place, k, dot(mine.theta[k], xi, xv), kappa)
            stretch.advice[entry * stretch.columns + stretch.column + k] = at.advice
            y, reached = target(place, stretch, i, k)
            if not (abs(leap) <= LEAP and sway(place, group, mine, k, xi, xv) <= SWAY):
                stiffly(state, message, i, k, TAKE_OVER)
                mine = logistics_of(place, group)
                continue
            note(place, stretch, mine, i, k, xi, xv, y, reached, at)
            step, share = 0.0, 0.0
            if reached:
                step = account(mine, k, weight, y, kappa, at)
                share = weight * at.c / (1.0 + at.c * kappa)  # P loses share · (P x)(P x)ᵀ
                mine.mass[k] += weight * at.c
            newest = mine.held[k, mine.waiting[0]]
            add_and_scale(mine.theta[k], step, newest, np.sqrt(share), product, width)
        mine.rows[0] += 1
        ready = max(0, ready - 1)
        mine.waiting[0] = (mine.waiting[0] + 1) % HELD
        if mine.waiting[0] == 0:
            fold(place, group)
            mine = logistics_of(place, group)
    return stretch.last
