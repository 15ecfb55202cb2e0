"""The best linear model in hindsight: unregularised least squares per group, from sums alone."""

from typing import Any

import numpy as np

from groupwise.arrays import Vector


def gram_matrix(sums: Any, features: int) -> Vector:
    """Σ w x xᵀ of one group, the rows still held back included."""
    found = np.zeros((features, features))
    if sums.gram is not None:
        found = sums.gram[:features, :features]
    rows = sums.held[: sums.waiting[0], :features]
    gram: Vector = found + found.T - np.diag(np.diag(found)) + rows.T @ rows
    return gram


def least_squares_loss(gram: Vector, moment: Vector, power: float) -> float:
    """min_θ Σ w (θ·x − y)² = Σ w y² − bᵀ A⁺ b, with A = Σ w x xᵀ and b = Σ w y x.

    Columns are first brought to unit length, so that their scale does not matter. A direction of A
    counts as empty when its eigenvalue is below rounding, d·ε times the largest. Rounding puts at
    most ε of the length of b into an empty direction, so one that slips through takes away no more
    than ε²/(d·ε) of Σ w y²: the sharp cut is harmless on either side, where the usual cut of
    solvers (the square root of that) drops directions that do matter.

    Sums of squares hold 16 digits. A column whose values are r times as large as they vary, beside
    an intercept, loses 2 log₁₀ r digits of what it explains: nothing to speak of for a year
    (r = 10³), a thousandth for r = 10⁵. Measure such a column from its middle.

    >>> x = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # one-hot: rank 2
    >>> y = np.array([0.0, 1.0, 1.0])
    >>> round(least_squares_loss(x.T @ x, x.T @ y, float(y @ y)), 12)
    0.5
    """
    lengths = np.sqrt(np.diag(gram))
    used = lengths > 0.0
    if not used.any():
        return power
    lengths = lengths[used]
    matrix = gram[np.ix_(used, used)] / np.outer(lengths, lengths)
    eigenvalues, directions = np.linalg.eigh(matrix)
    projections = directions.T @ (moment[used] / lengths)
    kept = eigenvalues > eigenvalues.size * np.finfo(np.float64).eps * eigenvalues[-1]
    explained = float(np.sum(projections[kept] ** 2 / eigenvalues[kept]))
    return min(power, max(0.0, power - explained))
