"""What ridge learners rarely need: getting rid of rounding, and of a penalty that has faded away.

Compiled when first needed.
"""

import numpy as np

from groupwise.arrays import Vector
from groupwise.kernels.cells import fma
from groupwise.kernels.compiled import compiled, lean
from groupwise.kernels.ridge import EACH, FAINT, FORGETTING, PENALTY
from groupwise.kernels.vectors import add_outer, combine_first

STIFF = 1e8
"""Learners are renewed where the largest sum of squares is this many times the penalty."""


def stiff(gram: Vector) -> float:
    """The penalty from which on learners with these sums need no renewal."""
    return float(np.diag(gram).max()) / STIFF


@compiled
def restore_penalty(mine, parameters):
    """Give learners whose penalty has become faint their whole penalty again."""
    for k in range(len(mine.strength)):
        strength = mine.strength[k]
        if strength < FAINT and parameters[k * EACH + FORGETTING] < 1.0:
            penalty = parameters[k * EACH + PENALTY]
            inverse, held, theta = mine.inverse[k], mine.held[k], mine.theta[k]
            add_outer(inverse, -1.0, held[: mine.waiting[0]], held.shape[1], True)
            held[:] = 0.0
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
            mine.strength[k] = 1.0


@compiled
def renew(mine, parameters, gram, moment):
    """P and θ anew from the sums Σ w x xᵀ and Σ w y x, free of what rounding has done to them.

    With a small penalty and collinear columns P has entries of 1/λ, and what is lost of them adds
    up over the rounds; the sums have no such entries. They are taken apart into eigenvectors, which
    keep the empty directions out of the others to the last digit, where an inverse would not.
    Learners whose penalty is not that small are left alone. The sums must be of the same rows.
    """
    used = np.flatnonzero(np.diag(gram))
    largest = np.diag(gram).max()
    matrix = np.empty((used.size, used.size))
    for i in range(used.size):
        for j in range(i + 1):
            matrix[i, j] = matrix[j, i] = gram[used[i], used[j]]
    eigenvalues, directions = np.linalg.eigh(matrix)
    projections = directions.T @ moment[used]
    for k in range(len(mine.strength)):
        penalty = parameters[k * EACH + PENALTY]
        if parameters[k * EACH + FORGETTING] < 1.0 or penalty > largest / STIFF:
            continue
        inverse, theta = mine.inverse[k], mine.theta[k]
        roots = directions / np.sqrt(np.maximum(eigenvalues, 0.0) + penalty)
        renewed = roots @ roots.T
        weights = directions @ (projections / (np.maximum(eigenvalues, 0.0) + penalty))
        for i in range(used.size):
            theta[used[i]] = weights[i]
            for j in range(i + 1):
                inverse[used[i], used[j]] = inverse[used[j], used[i]] = renewed[i, j]
        mine.held[k] = 0.0


@lean
def invert(matrix):
    """The inverse of a positive definite matrix, in place, by Gauss and Jordan.

    Rows and columns that are 0 but for the diagonal are left alone, so what lies beyond the columns
    in use changes no digit.
    """
    size = matrix.shape[0]
    for k in range(size):
        pivot = 1.0 / matrix[k, k]
        row = matrix[k]
        row[k] = 1.0
        for j in range(size):
            row[j] *= pivot
        for i in range(size):
            factor = matrix[i, k]
            if i != k and factor != 0.0:
                matrix[i, k] = 0.0
                for j in range(size):
                    matrix[i, j] = fma(-factor, row[j], matrix[i, j])
    for i in range(size):
        for j in range(i):
            mean = 0.5 * (matrix[i, j] + matrix[j, i])
            matrix[i, j] = mean
            matrix[j, i] = mean
