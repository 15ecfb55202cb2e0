"""The best logistic model with |x·θ| ≤ b on every row: Newton, and an interior point method.

What is minimised over β, for rows ζ = B β whose columns are far from dependent, is

    F(β) = Σ w ℓ_y(ζ) + ½ ‖Q β − q‖²,    ℓ_y(ζ) = ln(1 + e^ζ) − y ζ,

first without the bounds, by Newton steps that are halved until F falls. Where that leaves the
class, b − ζ = s₊ > 0 and b + ζ = s₋ > 0 get multipliers μ₊, μ₋ > 0, and predictor and corrector
steps (Mehrotra 1992) lead to s μ = 0, ∇F + Bᵀ(μ₊ − μ₋) = 0. Nothing here is rigorous;
``regret.logistic`` takes what is found and says how good it is.
"""

from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from groupwise.arrays import Vector
from groupwise.kernels.rows import gram_of

NEWTON_STEPS, INTERIOR_STEPS, HALVINGS = 100, 80, 40
CONVERGED = 1e-12
"""After a step of Newton that gains less than this, of weights that add up to 1, one more is all
that the digits of a number allow."""
OUTSIDE = 1e-6
"""The same where it has left the class: what it finds there is only told, not used."""
GAP, SLOPE = 1e-12, 1e-11
"""The interior point method stops where multipliers times distances add up to less than the first,
and the slope in the basis is less than the second."""
NEAREST = 0.995
"""A step goes no further than this share of the way to a bound."""
TRACE=False
REFINED, EXACT = 6, 1e-12
FLAT, STALLS = 1e-11, 3
BLOCK = 2048
"""Rows of a matrix whose products are summed together: they stay near the processor."""


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
        gram_of(rows.indptr, rows.indices, rows.data, weights, found)
        return found + np.tril(found, -1).T
    roots = np.sqrt(weights)
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK] * roots[start : start + BLOCK, None]
        found += block.T @ block
    return found


def solver(matrix: Vector) -> Any:
    """A function that solves with a positive matrix, made a little larger if it must be."""
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))
    scaled = matrix * scale * scale[:, None]
    more = 1e-15
    while True:
        try:
            np.fill_diagonal(scaled, 1.0 + more)
            found = scipy.linalg.cho_factor(scaled, lower=True, check_finite=False)
        except np.linalg.LinAlgError:
            more *= 100.0
        else:
            return lambda right: scale * scipy.linalg.cho_solve(found, scale * right)


def newton(problem: Problem) -> Fit:
    """The best model without bounds, or one on the way to it that has left them for good."""
    rows, labels, weights, others, target, bound = problem
    beta, zeta, rest = np.zeros(rows.shape[1]), np.zeros(rows.shape[0]), -target
    nothing = np.zeros(len(zeta))
    value, gain, change = problem.value(zeta, rest), np.inf, nothing
    if beta.size == 0:
        return Fit(beta, zeta, nothing, nothing, value, nothing)
    for _ in range(NEWTON_STEPS):
        last = gain < CONVERGED
        guess = sigmoid(zeta)
        slope = rows.T @ (weights * (guess - labels)) + others.T @ rest
        step = -solver(problem.hessian(weights * guess * (1.0 - guess)))(slope)
        gain, change, change_rest = -float(slope @ step), rows @ step, others @ step
        size = 1.0
        for _ in range(HALVINGS):
            after = problem.value(zeta + size * change, rest + size * change_rest)
            if gain < CONVERGED or after <= value - 1e-4 * size * gain:
                break
            size *= 0.5
        beta, zeta, rest = beta + size * step, zeta + size * change, rest + size * change_rest
        value = after
        if last or (gain < OUTSIDE and np.abs(zeta).max(initial=0.0) > bound):
            break
    return Fit(beta, zeta, nothing, nothing, max(0.0, value - 0.5 * gain), change)


def interior(problem: Problem, start: Vector) -> Fit:
    """The best model within bounds, with multipliers, on the way from a model outside."""
    rows, labels, weights, others, target, bound = problem
    beta = start * (0.5 * bound / np.abs(rows @ start).max())
    zeta, rest = rows @ beta, others @ beta - target
    mean = 0.1 * problem.value(zeta, rest) / len(labels)
    above, below = bound - zeta, bound + zeta
    upper, lower = mean / above, mean / below
    least, stalls = np.inf, 0
    for _ in range(INTERIOR_STEPS):
        guess = sigmoid(zeta)
        slope = weights * (guess - labels)
        gap = float(upper @ above + lower @ below)
        unmet = float(np.abs(rows.T @ (slope + upper - lower) + others.T @ rest).max())
        if TRACE: print(f"gap {gap:.3g} unmet {unmet:.3g} F", problem.value(zeta,rest))
        if gap < GAP:
            stalls += unmet > 0.5 * least
            if unmet < SLOPE or stalls > STALLS:
                break
            least = min(least, unmet)
        curvatures = weights * guess * (1.0 - guess) + upper / above + lower / below
        solve = partial(_solve, problem, curvatures, solver(problem.hessian(curvatures)))

        def step(to_upper: Any, to_lower: Any) -> tuple[Vector, Vector, Vector, Vector]:
            """Toward s₊ μ₊ and s₋ μ₋ that are these."""
            force = slope + to_upper / above - to_lower / below
            move = -solve(rows.T @ force + others.T @ rest)
            change = rows @ move
            upward = (to_upper + upper * change) / above - upper
            downward = (to_lower - lower * change) / below - lower
            return move, change, upward, downward

        def barrier(size: float) -> float:
            """F and the barrier, so far along the step."""
            inside = np.log(above - size * change).sum() + np.log(below + size * change).sum()
            there = problem.value(zeta + size * change, rest + size * (others @ move))
            return there - aim * float(inside)

        _, change, upward, downward = step(0.0, 0.0)
        ahead = min(1.0, _room(change, above, below))
        ahead_dual = min(1.0, _room_dual(upper, upward), _room_dual(lower, downward))
        left = float(
            (upper + ahead_dual * upward) @ (above - ahead * change)
            + (lower + ahead_dual * downward) @ (below + ahead * change)
        )
        aim = max((left / gap) ** 3 * gap, 0.25 * GAP) / (2 * len(labels))
        move, change, upward, downward = step(aim + change * upward, aim - change * downward)
        ahead = min(1.0, NEAREST * _room(change, above, below))
        here = barrier(0.0)
        if barrier(ahead) > here + FLAT:
            # The loss is too far from its quadratic: a step that is sure to lead down.
            move, change, upward, downward = step(aim, aim)
            ahead = min(1.0, NEAREST * _room(change, above, below))
            while barrier(ahead) > here + FLAT:
                ahead *= 0.5
            if TRACE: print("   SAFE")
        ahead_dual = min(
            1.0, NEAREST * _room_dual(upper, upward), NEAREST * _room_dual(lower, downward)
        )
        if TRACE: print("   steps",ahead,ahead_dual,"aim",aim*2*len(labels)/gap)
        beta = beta + ahead * move
        zeta, rest = rows @ beta, others @ beta - target
        above, below = above - ahead * change, below + ahead * change
        upper, lower = upper + ahead_dual * upward, lower + ahead_dual * downward
    return Fit(beta, zeta, upper, lower, problem.value(zeta, rest), zeta)


def _solve(problem: Problem, curvatures: Vector, nearly: Any, right: Vector) -> Vector:
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


def _room(change: Vector, above: Vector, below: Vector) -> float:
    """How many times a change of ζ fits between the bounds."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(change > 0.0, above / change, np.where(change < 0.0, -below / change, np.inf))
    return float(most.min())


def _room_dual(values: Vector, change: Vector) -> float:
    """How many times a change can be made until one of the values is 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        most = np.where(change < 0.0, -values / change, np.inf)
    return float(most.min())
