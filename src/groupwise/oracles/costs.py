"""Reading what an oracle is asked with."""

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError


def cost_vector(costs: ArrayLike, dimension: int) -> Vector:
    """The costs as finite numbers, one per coordinate of an action."""
    vector = np.asarray(costs, dtype=np.float64)
    if vector.shape != (dimension,) or not np.isfinite(vector).all():
        raise ConfigurationError(
            f"costs must be {dimension} finite numbers, one per coordinate of an action."
        )
    return np.ascontiguousarray(vector)


def context_matrix(contexts: ArrayLike, what: str = "contexts") -> Vector:
    """Contexts as a matrix of finite numbers, one context a row."""
    try:
        matrix = np.array(contexts, dtype=np.float64)
    except (TypeError, ValueError):
        matrix = np.empty(0)
    if matrix.ndim != 2 or 0 in matrix.shape or not np.isfinite(matrix).all():
        raise ConfigurationError(
            f"{what} must be a matrix of finite numbers: a context a row, a feature a column."
        )
    return np.ascontiguousarray(matrix)


def cost_matrix(costs: ArrayLike, contexts: Vector) -> Vector:
    """The costs as contexts × labels; one column where they came as a vector."""
    matrix = np.asarray(costs, dtype=np.float64)
    matrix = matrix[:, None] if matrix.ndim == 1 else matrix
    if matrix.ndim != 2 or len(matrix) != len(contexts) or not np.isfinite(matrix).all():
        raise ConfigurationError(
            f"costs must be finite, with a row for each of the {len(contexts)} contexts."
        )
    return np.ascontiguousarray(matrix)
