"""The best logistic model in hindsight: the least loss with |x·θ| ≤ b, between two sides.

The class is that of ``learners.Logistic``: all θ with |x·θ| ≤ b on every row of the group; what is
minimised is Σ w ℓ_y(x·θ), ℓ_y(ζ) = ln(1 + e^ζ) − y ζ, without a penalty.

**Upper side**: the loss of a model that is in the class. **Lower side**: at any anchor a with
|a| ≤ b, g = σ(a) − y and the largest curvature c that b allows (:func:`curvature`),

    ℓ_y(ζ) ≥ ℓ_y(a) + g (ζ − a) + c/2 (ζ − a)²    for all |ζ| ≤ b,

and with multipliers μ₊, μ₋ ≥ 0 also w ℓ_y(ζ) ≥ w ℓ_y(ζ) + μ₊ (ζ − b) + μ₋ (−ζ − b). Summed up
over anchors a = x·θ̂, with v = w g + μ₊ − μ₋ and κ = w c, no θ in the class loses less than

    Σ [w ℓ_y(a) − μ₊ (b − a) − μ₋ (b + a)] − ½ ‖P (v/√κ)‖²,

where P projects on the columns of √κ X: the last term is ½ ∇ᵀ G⁺ ∇ with ∇ = Xᵀ v, G = Σ κ x xᵀ.
(A multiplier of a row near its bound is given as ν/2 (ζ² − b²) ≤ 0, ν a = μ₊ − μ₋, which bends
too: κ = w c + ν.) A refit (``regret.refit``) makes ∇ and the terms with μ nearly 0, so that the two
sides meet. What remains of ∇ is summed to 32 digits, and made smaller by solving with G, rounded
as it may be, until it is small by the crudest bound: ‖P u‖ ≤ ‖z‖ + ‖Xᵀ√κ (u − z)‖ / σ for *every*
z, where σ is the least singular value. That there is no σ between "0 exactly" (columns that are
combinations of others, to the last bit) and what a triangular factor can tell from 0 is what
:class:`regret.hindsight.Factor` and random sums modulo a prime are asked; where it cannot be told,
the answer is uncertain, unless it is not above what each row would lose with a model of its own.

Rows that are gone are known by the same lower quadratics, added up when they came (at anchors of
that time): (``constant``, R, z, ρ) with loss ≥ constant + ½ ‖R θ − z‖² + ½ ρ. R is off by rounding,
each column by up to η of its length (and sums of products by a share e of them). With S = ‖A δ‖
for δ = θ − θ̂, over all rows, and N the sum of the sizes of the terms of R θ̂, all this
changes the sum of both by at most

    η (√q + S) (N + ‖y‖ + ψ S/σ) + e/2 (N + ‖y‖ + ψ S/σ)²,   q = ‖R θ̂ − z‖² + ρ,

ψ being the norm of the columns' lengths over those in all rows; the least over S is taken.
"""

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import lstsq
from scipy.sparse import issparse
from threadpoolctl import ThreadpoolController

from groupwise.arrays import Vector
from groupwise.kernels.gram import ROUNDING
from groupwise.protocols import BRACKET, EXACT, Hindsight
from groupwise.regret.basis import (
    basis_of,
    exactly_spanned,
    factor_of,
    in_use,
    lines_of,
    tidy,
)
from groupwise.regret.hindsight import EPSILON, SURE, SURE_OF_BEST, Factor
from groupwise.regret.refit import Fit, Problem, gram, interior, losses, newton, sigmoid, solver

LESS = 1.0 - 1e-6
"""Curvatures are made smaller by this, which is more than rounding may have made them larger."""
NEAR = 0.01
"""How near to the bound the curvature of an anchor is given by a series."""
LIGHTEST = 1e-14
"""Rows of less than this share of the mean weight are taken to have it; what that may add to the
loss of a model of the class is subtracted again."""
REFINED, SMALL = 5, 1e-8
"""How often at most, and to what, the rest of the slope is made smaller."""
LN2 = float(np.log(2.0))
SUMMED = 64.0 * EPSILON
"""By which share a sum (by halves) of numbers of one sign may be off, as they are by a few ulp."""
FEW = 64
"""So many rows at most are fitted one by one."""
SEPARATED = 1e-3
"""How far from 0 a product may be that is 0 in a direction without end."""


class Rows(NamedTuple):
    """Rows that are known."""

    features: Any
    """n × d, a matrix of numbers or one of ``scipy.sparse``."""
    labels: Vector
    """In [0, 1]."""
    weights: Vector


class Quadratic(NamedTuple):
    """Rows of which a lower quadratic is known: Σ w ℓ ≥ constant + ½ min ‖R θ − z‖² + ½ ρ."""

    factor: Factor
    """Of √(w c) [x, ỹ], ỹ = z + (y − σ(z))/c for anchors z, in the columns of the known rows."""
    constant: float
    """Σ w (ℓ_y(z) − g²/(2 c)), g = σ(z) − y."""
    error: float
    """How far the constant may be off by rounding."""


class Reference(NamedTuple):
    """A model whose loss on the rows that are gone is known."""

    theta: Vector
    loss: float
    """Σ w ℓ_y(x·θ) of those rows."""
    reach: float
    """max |x·θ|."""
    weight: float
    """Σ w."""


def curvature(anchors: Vector, bound: float) -> Vector:
    """The largest c with ℓ(ζ) ≥ ℓ(a) + ℓ'(a)(ζ − a) + c/2 (ζ − a)² for all |ζ| ≤ b, at |a| ≤ b.

    With δ = b − |a|, c = 2 [ln(1 + e^−b) − ln(1 + e^−|a|) + σ(−|a|) δ] / δ²: of all ζ the bound on
    the anchor's side is where the quadratic comes closest.

    >>> curvature(np.array([0.0, 2.0, -8.0]), 8.0).round(6).tolist()
    [0.10335, 0.032701, 0.000335]
    """
    size = np.abs(anchors)
    left = bound - size
    far = np.maximum(left, NEAR)
    small = np.exp(-size)
    tail = small / (1.0 + small)
    whole = 2.0 * (np.log1p(np.exp(-bound)) - np.log1p(small) + tail * far) / far**2
    slope, tilt = tail / (1.0 + small), 2.0 * tail - 1.0
    series = slope * (1.0 + tilt * left / 3.0 + (tilt**2 - 2.0 * slope) * left**2 / 12.0)
    found: Vector = np.where(left < NEAR, series, whole)
    return found


@cache
def _threads() -> ThreadpoolController:
    return ThreadpoolController()


def best_logistic(
    rows: Rows,
    bound: float,
    others: Quadratic | None = None,
    reference: Reference | None = None,
) -> Hindsight:
    """The least Σ w ℓ_y(x·θ) over all θ with |x·θ| ≤ ``bound`` on every row.

    From all rows (``exact``), or from some of them and a lower quadratic of the ``others``, whose
    upper side is the loss of the ``reference`` model, drawn into the class (``bracket``).

    ``best`` is the lower side, ``high`` the upper one; ``error`` is what arithmetic has to do with
    the distance between them, and ``uncertain`` says that this is more than 1e-9 Σ w plus 1e-6 of
    the best.

    >>> x, y = np.ones((4, 1)), np.array([0.0, 1.0, 1.0, 1.0])
    >>> round(best_logistic(Rows(x, y, np.ones(4)), 8.0).best, 6)  # 4 times the entropy of 3 : 1
    2.249341
    """
    if (others is None) != (reference is None):
        raise ValueError("A lower quadratic of other rows and a reference model go together.")
    kind = BRACKET if others else EXACT
    total = float(np.sum(rows.weights)) + (reference.weight if reference else 0.0)
    if total == 0.0:
        return Hindsight(0.0, high=0.0, kind=kind)
    alone = _row_by_row(rows, bound, total) if others is None else None
    if alone is not None:
        return alone
    # Several threads are no quicker, and wait for each other where other work is done. What is no
    # number any more is noticed in the end.
    with np.errstate(all="ignore"), _threads().limit(limits=1, user_api="blas"):
        group = _Group(rows, bound, others, total)
        fit, note = group.refit()
        point = group.point(fit)
        low, near = group.lower(point, fit)
        high = group.drawn_in(reference) if reference else group.loss(point)
        apart = group.apart()
    unit = float(np.ldexp(1.0, -2 * group.root))
    high = (1.0 + SUMMED) * float(np.fmin(unit * high, total * LN2))
    sure = group.sure and bool(np.isfinite(low))
    low = unit * (max(low, apart) if sure else apart)
    near = float(np.fmax(unit * near, low))
    best = min(low if sure else near, high)
    error = best - min(low, best) + (high - best if others is None else max(near - best, 0.0))
    uncertain = error > SURE * total + SURE_OF_BEST * best
    return Hindsight(float(best), float(error), bool(uncertain), high, kind, note)


def _row_by_row(rows: Rows, bound: float, total: float) -> Hindsight | None:
    """The answer where some model does on every row the best that can be done on it; or None.

    So it is where rows are few and independent, which is quickly found out.
    """
    count, width = rows.features.shape
    if not 0 < count <= min(width, FEW):
        return None
    labels, weights = np.asarray(rows.labels), np.asarray(rows.weights)
    with np.errstate(divide="ignore"):
        wanted = np.clip(np.log(labels) - np.log1p(-labels), -bound, bound)
    features = tidy(in_use(rows.features))
    matrix = features.toarray() if issparse(features) else features
    lengths = np.abs(matrix).max(axis=0, initial=0.0)
    if not matrix.size:
        return None
    theta = lstsq(matrix / lengths, wanted, EPSILON * width, lapack_driver="gelsy")[0]
    with np.errstate(over="ignore"):
        theta /= lengths
    if not np.isfinite(theta).all():
        return None
    zeta, off = lines_of(features).dot(theta, np.zeros(theta.size))
    reach = float((np.abs(zeta) + off).max())
    drawn = 1.0 if reach <= bound else (1.0 - 8.0 * EPSILON) * bound / reach
    high = float(weights @ (losses(drawn * zeta, labels) + off + 2.0 * EPSILON * np.abs(zeta)))
    high = (1.0 + SUMMED) * min(high, total * LN2)
    low = (1.0 - SUMMED) * float(weights @ losses(wanted, labels))
    if not high - low <= SURE * total + SURE_OF_BEST * low:
        return None
    certain = (labels == 0.0) | (labels == 1.0)
    less = float(weights[certain] @ losses(wanted[certain], labels[certain]))
    note = without_end(less) if certain.any() else ""
    return Hindsight(min(low, high), max(high - low, 0.0), False, high, EXACT, note)


def without_end(less: float) -> str:
    """What to say where the best without the bound is none."""
    return f"without the bound |x·θ| grows without end, toward a loss {less:.3g} less"


class _Others(NamedTuple):
    """The lower quadratic of the rows that are gone: constant + ½ ‖R θ − z‖² + ½ ρ."""

    matrix: Vector
    """R, without rows that are 0."""
    right: Vector
    rest: float
    constant: float
    error: float


class _Point(NamedTuple):
    """A model of the class, and what is known of its predictions."""

    theta: tuple[Vector, Vector]
    """As pairs, before it was drawn into the class."""
    drawn: float
    """By which factor it was."""
    zeta: Vector
    off: Vector
    """How far ζ may be off."""


class _Group:
    """The rows of a group, with weights that add up to about 1."""

    def __init__(self, rows: Rows, bound: float, others: Quadratic | None, total: float) -> None:
        self.bound = bound
        # An even power of two: its root multiplies rows.
        self.root = -(int(np.frexp(total)[1]) // 2)
        self.labels = np.asarray(rows.labels, dtype=np.float64)
        self.weights = np.ldexp(np.asarray(rows.weights, dtype=np.float64), 2 * self.root)
        least = LIGHTEST * float(self.weights.sum()) / max(len(self.labels), 1)
        self.raised = np.maximum(self.weights, least)
        features = tidy(rows.features if others else in_use(rows.features))
        self.lines = lines_of(features)
        width = max(self.lines.width, others.factor.right.size if others else 0)
        factor, sketch = factor_of(features, np.sqrt(self.raised), width, others is not None)
        width = factor.right.size
        self.others = _Others(np.zeros((0, width)), np.zeros(0), 0.0, 0.0, 0.0)
        if others:
            self.others = self._scaled(others, width)
            factor.merge(others.factor, float(np.ldexp(1.0, self.root)))
        self.rounded, self.sums = others is not None, factor.sums
        self.pseudo = lines_of(self.others.matrix)
        self.columns = factor.independent(None if others else len(self.labels))
        exact = self.columns.exact or (
            others is None and exactly_spanned(self.lines, self.columns.columns, sketch)
        )
        self.sure = exact and self.columns.least > 0.0 and not factor.is_faint()
        self.basis = basis_of(features, self.others.matrix, factor, self.columns)

    def _scaled(self, others: Quadratic, width: int) -> _Others:
        """The lower quadratic of the other rows, in the same units."""
        known, scale = others.factor, float(np.ldexp(1.0, self.root))
        some = (known.matrix != 0.0).any(axis=1)
        matrix = np.zeros((int(some.sum()), width))
        matrix[:, : known.right.size] = scale * known.matrix[some]
        right, beyond = scale * known.right[some], scale * known.right[~some]
        sizes = known.rest, others.constant, others.error
        rest, *fixed = np.ldexp(sizes, 2 * self.root).tolist()
        return _Others(matrix, right, rest + float(beyond @ beyond), *fixed)

    def refit(self) -> tuple[Fit, str]:
        """The best model as far as a solver finds it, and how far the class confines it."""
        basis, others = self.basis, self.others
        problem = Problem(
            basis.rows, self.labels, self.raised, basis.others, others.right, self.bound
        )
        free = newton(problem)
        inside = np.abs(free.zeta).max(initial=0.0) < self.bound
        if (inside and free.settled) or not free.zeta.size:
            return free, ""
        fit = interior(problem, free.beta)
        if inside or self.rounded:
            return fit, ""  # what other rows lose beyond the bound is not known
        return fit, self._note(free, float(np.ldexp(fit.value - free.value, -2 * self.root)))

    def _note(self, free: Fit, less: float) -> str:
        """How far the best goes without the bound, and how much less it loses."""
        reach = float(np.abs(free.zeta).max())
        step = free.direction / np.abs(free.direction).max()
        wrong = np.where(self.labels == 1.0, -step, np.where(self.labels == 0.0, step, abs(step)))
        if free.settled:
            return (
                f"the best without the bound reaches |x·θ| = {reach:.3g} and loses {less:.3g} less"
            )
        if wrong.max() < SEPARATED:
            return without_end(less)
        return (
            f"the best without the bound goes beyond |x·θ| = {reach:.3g} and loses {less:.3g} less"
        )

    def point(self, fit: Fit) -> _Point:
        """The model found, drawn into the class where rounding has put it outside."""
        theta = self.basis.model(fit.beta)
        zeta, off = self.lines.dot(*theta)
        reach = float((np.abs(zeta) + off).max(initial=0.0))
        drawn = 1.0 if reach <= self.bound else (1.0 - 8.0 * EPSILON) * self.bound / reach
        return _Point(theta, drawn, drawn * zeta, off + 2.0 * EPSILON * np.abs(zeta))

    def loss(self, point: _Point) -> float:
        """The loss of a model on the known rows, at most."""
        return float(np.sum(self.weights * (losses(point.zeta, self.labels) + point.off)))

    def apart(self) -> float:
        """What every row loses at least, each with a model of its own."""
        with np.errstate(divide="ignore"):
            even = np.log(self.labels) - np.log1p(-self.labels)
        zeta = np.clip(even, -self.bound, self.bound)
        return (1.0 - SUMMED) * float(np.sum(self.weights * losses(zeta, self.labels)))

    def drawn_in(self, reference: Reference) -> float:
        """The loss of a reference model drawn into the class, at most.

        ℓ(s ζ) ≤ s ℓ(ζ) + (1 − s) ln 2, as ℓ is convex.
        """
        theta = np.zeros(max(self.lines.width, len(reference.theta)))
        theta[: len(reference.theta)] = reference.theta
        zeta, off = self.lines.dot(theta, np.zeros(theta.size))
        reach = max(float((np.abs(zeta) + off).max(initial=0.0)), reference.reach)
        drawn = 1.0 if reach <= self.bound else (1.0 - 8.0 * EPSILON) * self.bound / reach
        point = _Point((theta, theta), drawn, drawn * zeta, off + 2.0 * EPSILON * np.abs(zeta))
        elsewhere = drawn * reference.loss + (1.0 - drawn) * LN2 * reference.weight
        return self.loss(point) + float(np.ldexp(elsewhere, 2 * self.root))

    def lower(self, point: _Point, fit: Fit) -> tuple[float, float]:
        """What no model of the class loses less than; and the same as if nothing were rounded."""
        bound, weights, others = self.bound, self.raised, self.others
        zeta, off = np.clip(point.zeta, -bound, bound), point.off
        upper, lower = np.maximum(fit.upper, 0.0), np.maximum(fit.lower, 0.0)
        pull = upper - lower
        bent = pull * zeta > 0.5 * bound * np.abs(pull)
        bend = np.divide(pull, zeta, out=np.zeros(len(zeta)), where=bent)
        curved = LESS * (weights * curvature(zeta, bound) + bend)
        force = weights * (sigmoid(zeta) - self.labels) + pull
        unmet = point.drawn * self.pseudo.dot(*point.theta)[0] - others.right
        square = float(unmet @ unmet) + others.rest
        lost = float(np.sum(weights * losses(zeta, self.labels)))
        straight = upper * (bound - zeta) + lower * (bound + zeta)
        held = float(np.where(bent, 0.5 * bend * (bound - zeta) * (bound + zeta), straight).sum())
        value = lost - held + others.constant + 0.5 * square
        slope, least_all = self._slope(force, unmet, curved)
        near = value - 0.5 * slope**2
        rounding = (
            SUMMED * (lost + held + abs(others.constant) + square)
            + 16.0 * EPSILON * bound * float((weights + upper + lower).sum())
            + float(np.abs(force) @ off)
            + float((weights - self.weights).sum()) * float(np.logaddexp(0.0, bound))
            + others.error
        )
        slope += float(np.linalg.norm(np.sqrt(curved) * off))
        bulge = 1.0
        if self.rounded and not least_all > 0.0:
            return -np.inf, near
        if self.rounded:
            columns, root = self.columns, np.sqrt(square)
            theta = np.abs(point.theta[0][columns.columns])
            labels = float(np.sqrt(others.right @ others.right + others.rest))
            share = columns.rounding + 4.0 * EPSILON
            terms, spread = float(theta @ columns.lengths) + labels, np.sqrt(theta.size) / least_all
            rounding += share * root * terms
            slope += share * (terms + root * spread)
            bulge -= 2.0 * share * spread
            for part, lengths in self.sums:
                summed = lengths[columns.columns]
                terms = float(theta @ summed) + labels
                spread = float(np.linalg.norm(summed / columns.lengths)) / least_all
                rounding += part * terms**2
                slope += 2.0 * part * terms * spread
                bulge -= 2.0 * part * spread**2
        if not bulge > 0.5:
            return -np.inf, near
        return value - rounding - 0.5 * slope**2 / bulge, near

    def _slope(self, force: Vector, unmet: Vector, curved: Vector) -> tuple[float, float]:
        """‖P u‖ at most, and σ at least, for the rows √curved x and those of R.

        u is (force/√curved, unmet). Each turn moves more of it to z.
        """
        columns, roots = self.columns, np.sqrt(curved)
        sigma = columns.least * float(np.sqrt((curved / self.raised).min(initial=1.0)))
        if not sigma > 0.0:
            return 0.0, sigma
        moved, moved_unmet = np.zeros(force.size), np.zeros(unmet.size)
        pairs = 4.0 * ROUNDING * (force.size + unmet.size) ** 2 * np.sqrt(columns.columns.size)
        solve, found = None, np.inf
        for _ in range(REFINED):
            high, low = np.zeros((2, self.basis.maps.width))
            for rest in _minus(force, moved):
                self.lines.back(rest, high, low)
            for rest in _minus(unmet, moved_unmet):
                self.pseudo.back(rest, high, low)
            left = float(np.linalg.norm((high + low)[columns.columns] / columns.lengths))
            left += pairs * _norm((force - moved) / np.sqrt(self.raised), unmet - moved_unmet)
            found = min(found, _norm(moved / roots, moved_unmet) + left / sigma)
            if left / sigma < SMALL:
                break
            if solve is None:
                solve = solver(
                    gram(self.basis.rows, curved) + self.basis.others.T @ self.basis.others
                )
            model = self.basis.model(solve(self.basis.maps.dot(high, low)[0]))
            moved = moved + curved * self.lines.dot(*model)[0]
            moved_unmet = moved_unmet + self.pseudo.dot(*model)[0]
        return float(found), sigma


def _minus(one: Vector, other: Vector) -> tuple[Vector, Vector]:
    """The difference, and what rounding took from it."""
    found = one - other
    part = found - one
    return found, (one - (found - part)) - (other + part)


def _norm(one: Vector, other: Vector) -> float:
    """The length of a vector in two parts."""
    return float(np.hypot(np.linalg.norm(one), np.linalg.norm(other)))
