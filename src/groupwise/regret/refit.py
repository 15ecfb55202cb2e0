"""The best logistic model with |x·θ| ≤ b on every row: Newton, and an interior point method.

What is minimised over β, for rows ζ = B β whose columns are far from dependent, is

    F(β) = Σ w ℓ_y(ζ) + ½ ‖Q β − q‖²,    ℓ_y(ζ) = ln(1 + e^ζ) − y ζ,

first without the bounds, by Newton steps that are halved until F falls. Where that leaves the
class, b − ζ = s₊ > 0 and b + ζ = s₋ > 0 get multipliers μ₊, μ₋ > 0, and predictor and corrector
steps (Mehrotra 1992) lead to s μ = 0, ∇F + Bᵀ(μ₊ − μ₋) = 0. Nothing here is rigorous;
``regret.logistic`` takes what is found and says how good it is.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from groupwise.arrays import Vector
from groupwise.kernels.rows import gram_of

NEWTON_STEPS, INTERIOR_STEPS, HALVINGS = 50, 80, 40
CONVERGED = 1e-12
"""After a step of Newton that gains less than this, of weights that add up to 1, one more is all
that the digits of a number allow."""
OUTSIDE, MORE = 1e-6, 2
"""Where it has left the class, what it finds is only told, not used: from a gain of this on, so
many further steps show whether there is an end to it."""
GAP, SLOPE, STALLS = 1e-12, 1e-11, 3
"""The interior point method stops where multipliers times distances add up to less than the first
and the slope in the basis is less than the second, or has so often not become half of what it
was."""
NEAREST = 0.995
"""A step goes no further than this share of the way to a bound."""
FLAT = 1e-11
"""A step may raise the barrier function by so much: near the end that is rounding."""
LATE, REFINED, EXACT = 1e-6, 6, 1e-12
"""From which gap on steps are refined, how often at most, and to which share of the slope."""
BLOCK = 2048
"""Rows of a matrix whose products are summed together: they stay near the processor."""


Solve = Callable[[Vector], Vector]


class Problem(NamedTuple):
    """Rows in a basis, and what is known of the others."""

    rows: Any
    """B, as a matrix or a ``csr_array`` whose columns ascend in each row."""
    labels: Vector
    weights: Vector
    others: Vector
    """Q."""
    target: Vector
    """q."""
    bound: float

    def value(self, zeta: Vector, rest: Vector) -> float:
        """F, from B β and Q β − q."""
        return float(self.weights @ losses(zeta, self.labels)) + 0.5 * float(rest @ rest)

    def hessian(self, curvatures: Vector) -> Vector:
        """Bᵀ diag(curvatures) B + Qᵀ Q."""
        return gram(self.rows, curvatures) + self.others.T @ self.others


class Fit(NamedTuple):
    """A model, its predictions, and the multipliers of the bounds."""

    beta: Vector
    zeta: Vector
    upper: Vector
    lower: Vector
    value: float
    """F there, or what F is about to become."""
    direction: Vector
    """Where the last step of Newton went, as a change of ζ."""
    settled: bool = True
    """Was there nothing left to gain?"""


def losses(zeta: Vector, labels: Vector) -> Vector:
    """ℓ_y(ζ), to all digits: no large numbers cancel.

    >>> losses(np.array([0.0, 40.0]), np.array([1.0, 1.0])).round(6).tolist()
    [0.693147, 0.0]
    """
    wrong = np.where(zeta > 0.0, 1.0 - labels, labels)
    found: Vector = np.log1p(np.exp(-np.abs(zeta))) + wrong * np.abs(zeta)
    return found


def sigmoid(zeta: Vector) -> Vector:
    """1 / (1 + e^−ζ)."""
    small = np.exp(-np.abs(zeta))
    found: Vector = np.where(zeta > 0.0, 1.0, small) / (1.0 + small)
    return found


def gram(rows: Any, weights: Vector) -> Vector:
    """Bᵀ W B."""
    found = np.zeros((rows.shape[1], rows.shape[1]))
    if scipy.sparse.issparse(rows):
        starts, columns = rows.indptr.astype(np.int64), rows.indices.astype(np.int32, copy=False)
        gram_of(starts, columns, rows.data, weights, found)
        return found + np.tril(found, -1).T
    roots = np.sqrt(weights)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK] * roots[start : start + BLOCK, None]
        found += block.T @ block
    return found


def solver(matrix: Vector) -> Solve:
    """A function that solves with a positive matrix, made a little larger where it must be."""
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * scale * scale[:, None]
    for more in (1e-15, 1e-13, 1e-11, 1e-9, 1e-6, 1e-3):
        np.fill_diagonal(scaled, 1.0 + more)
        try:
            found = scipy.linalg.cho_factor(scaled, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            continue
        return lambda right: scale * scipy.linalg.cho_solve(found, scale * right, False, False)
    return lambda right: scale * scale * right


def newton(problem: Problem) -> Fit:
    """The best model without bounds, or one on the way to it that has left them for good."""
    rows, labels, weights, others, target, bound = problem
    beta, zeta, rest = np.zeros(rows.shape[1]), np.zeros(rows.shape[0]), -target
    nothing = np.zeros(len(zeta))
    value, gain, change = problem.value(zeta, rest), np.inf, nothing
    late = 0
    if beta.size == 0:
        return Fit(beta, zeta, nothing, nothing, value, nothing)
    for _ in range(NEWTON_STEPS):
        last = gain < CONVERGED
        guess = sigmoid(zeta)
        slope = rows.T @ (weights * (guess - labels)) + others.T @ rest
        step = -solver(problem.hessian(weights * guess * (1.0 - guess)))(slope)
        gain, change, change_rest = -float(slope @ step), rows @ step, others @ step
        if not np.isfinite(gain):
            break
        size = 1.0
        for _ in range(HALVINGS):
            after = problem.value(zeta + size * change, rest + size * change_rest)
            if gain < CONVERGED or after <= value - 1e-4 * size * gain:
                break
            size *= 0.5
        beta, zeta, rest = beta + size * step, zeta + size * change, rest + size * change_rest
        value = after
        late += gain < OUTSIDE and np.abs(zeta).max(initial=0.0) > bound
        if last or late > MORE:
            break
    value = max(0.0, value - 0.5 * gain)
    return Fit(beta, zeta, nothing, nothing, value, change, gain < CONVERGED)


def interior(problem: Problem, start: Vector) -> Fit:
    """The best model within bounds, with multipliers, on the way from a model outside."""
    largest = float(np.abs(problem.rows @ start).max())
    beta = start * (0.5 * problem.bound / largest) if largest > 0.0 else np.zeros(len(start))
    zeta = problem.rows @ beta
    mean = 0.1 * problem.value(zeta, problem.others @ beta - problem.target) / len(zeta)
    above, below = problem.bound - zeta, problem.bound + zeta
    at = _Inside(problem, beta, above, below, mean / above, mean / below)
    # What a slope costs on the lower side is its square over a curvature that may be e^−b.
    flat = min(SLOPE, float(np.sqrt(GAP * np.exp(-problem.bound))))
    least, stalls = np.inf, 0
    for _ in range(INTERIOR_STEPS):
        gap, unmet = at.gap(NOWHERE), at.slope(at.upper, at.lower)
        if gap < GAP:
            steep = float(np.abs(unmet).max())
            stalls += steep > 0.5 * least
            if steep < flat or stalls > STALLS:
                break
            least = min(least, steep)
        solve = at.solver(gap < LATE)
        first = at.step(solve, 0.0, 0.0, 1.0)
        # The gap does not run ahead of the slope.
        behind = min(0.5 * gap, 0.1 * abs(float(unmet @ first.move)))
        aim = max((at.gap(first) / gap) ** 3 * gap, behind, 0.25 * GAP) / (2 * len(zeta))
        change, upward, downward = first.change, first.upward, first.downward
        step = at.step(solve, aim + change * upward, aim - change * downward, NEAREST)
        here = at.barrier(aim, NOWHERE)
        if at.barrier(aim, step) > here + FLAT:
            # The loss is too far from its quadratic: a direction that is sure to lead down.
            step = at.step(solve, aim, aim, NEAREST)
            while at.barrier(aim, step) > here + FLAT:
                step = step._replace(ahead=0.5 * step.ahead)
        if not np.isfinite([step.ahead, step.ahead_dual, *step.move]).all():
            break
        at = at.after(step)
    zeta, rest = problem.rows @ at.beta, problem.others @ at.beta - problem.target
    return Fit(at.beta, zeta, at.upper, at.lower, problem.value(zeta, rest), zeta)


class _Step(NamedTuple):
    """A change of β, ζ and the multipliers, and how much of it is made."""

    move: Any
    change: Any
    upward: Any
    downward: Any
    ahead: float
    ahead_dual: float


NOWHERE = _Step(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class _Inside(NamedTuple):
    """A model within bounds, its distances from them, s₊ and s₋, and multipliers."""

    problem: Problem
    beta: Vector
    above: Vector
    below: Vector
    upper: Vector
    lower: Vector

    @property
    def zeta(self) -> Vector:
        """B β, from the distance that is known to more digits."""
        bound = self.problem.bound
        return np.where(self.above < self.below, bound - self.above, self.below - bound)

    @property
    def rest(self) -> Vector:
        """Q β − q."""
        rest: Vector = self.problem.others @ self.beta - self.problem.target
        return rest

    def slope(self, upper: Any, lower: Any) -> Vector:
        """∇F + Bᵀ(μ₊ − μ₋)."""
        problem = self.problem
        force = problem.weights * (sigmoid(self.zeta) - problem.labels) + upper - lower
        found: Vector = problem.rows.T @ force + problem.others.T @ self.rest
        return found

    def solver(self, refine: bool) -> Solve:
        """A function that solves with the Hessian of loss and barrier."""
        guess = sigmoid(self.zeta)
        curvatures = self.problem.weights * guess * (1.0 - guess)
        curvatures += self.upper / self.above + self.lower / self.below
        solve = solver(self.problem.hessian(curvatures))
        return partial(_refined, self.problem, curvatures, solve) if refine else solve

    def step(self, solve: Solve, to_upper: Any, to_lower: Any, share: float) -> _Step:
        """Toward s₊ μ₊ and s₋ μ₋ that are these, as far as a share of the room goes."""
        above, below, upper, lower = self[2:]
        move = -solve(self.slope(to_upper / above, to_lower / below))
        change = self.problem.rows @ move
        upward = (to_upper + upper * change) / above - upper
        downward = (to_lower - lower * change) / below - lower
        ahead = share * min(_room(above, -change), _room(below, change))
        ahead_dual = share * min(_room(upper, upward), _room(lower, downward))
        return _Step(move, change, upward, downward, min(1.0, ahead), min(1.0, ahead_dual))

    def after(self, step: _Step) -> "_Inside":
        """Where a step leads."""
        return _Inside(
            self.problem,
            self.beta + step.ahead * step.move,
            self.above - step.ahead * step.change,
            self.below + step.ahead * step.change,
            self.upper + step.ahead_dual * step.upward,
            self.lower + step.ahead_dual * step.downward,
        )

    def gap(self, step: _Step) -> float:
        """Σ s₊ μ₊ + s₋ μ₋, after a step."""
        _, _, above, below, upper, lower = self.after(step)
        return float(upper @ above + lower @ below)

    def barrier(self, aim: float, step: _Step) -> float:
        """F − aim Σ ln s₊ s₋, after a step."""
        there = self.after(step)
        inside = float(np.log(there.above).sum() + np.log(there.below).sum())
        return self.problem.value(there.zeta, there.rest) - aim * inside


def _refined(problem: Problem, curvatures: Vector, nearly: Solve, right: Vector) -> Vector:
    """Solve with the Hessian, to more digits than its factor has: by conjugate gradients.

    Near the end the multipliers outweigh the curvature of the loss by far.
    """
    found, left = np.zeros(len(right)), right
    close = nearly(left)
    move, size = close, float(left @ close)
    for _ in range(REFINED):
        there = problem.rows.T @ (curvatures * (problem.rows @ move))
        there += problem.others.T @ (problem.others @ move)
        length = size / float(move @ there)
        found, left = found + length * move, left - length * there
        if np.abs(left).max() <= EXACT * np.abs(right).max():
            break
        close = nearly(left)
        before, size = size, float(left @ close)
        move = close + (size / before) * move
    return found


def _room(values: Vector, change: Vector) -> float:
    """How many times a change can be made until one of the values is 0."""
    return float(
        np.divide(-values, change, out=np.full(len(values), np.inf), where=change < 0.0).min()
    )
