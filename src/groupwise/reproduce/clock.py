"""Sums over a group's rounds, read off at given moments of the group's own clock."""

import numpy as np

from groupwise.regret.hindsight import least_squares_loss
from groupwise.arrays import Index, Vector


def moments(size: int, points: int) -> Index:
    """``points`` evenly spaced numbers of rounds, the last of them all ``size`` rounds.

    >>> moments(10, 4).tolist()
    [3, 5, 8, 10]
    """
    return np.ceil(np.linspace(0.0, size, points + 1)[1:]).astype(np.int64)


def sums_at(values: Vector, ends: Index) -> Vector:
    """The sum of the first ``end`` values (along the first axis), for every end.

    >>> sums_at(np.array([1.0, 2.0, 4.0]), np.array([0, 2, 3])).tolist()
    [0.0, 3.0, 7.0]
    """
    none = np.zeros((1, *values.shape[1:]))
    sums: Vector = np.concatenate([none, np.cumsum(values, axis=0)])[ends]
    return sums


def best_losses(features: Vector, labels: Vector, ends: Index) -> Vector:
    """The least-squares loss on the first ``end`` rows, for every end.

    The Gram matrix grows by a block from one end to the next, so that all ends together cost one
    pass over the rows.

    >>> x = np.ones((3, 1))
    >>> best_losses(x, np.array([0.0, 1.0, 2.0]), np.array([3, 1, 2, 2])).tolist()
    [2.0, 0.0, 0.5, 0.5]
    """
    width = features.shape[1]
    gram, moment, power = np.zeros((width, width)), np.zeros(width), 0.0
    ascending, places = np.unique(ends, return_inverse=True)
    best = np.empty(ascending.size)
    start = 0
    for place, end in enumerate(ascending.tolist()):
        x, y = features[start:end], labels[start:end]
        gram += x.T @ x
        moment += x.T @ y
        power += float(y @ y)
        best[place] = least_squares_loss(gram, moment, power)
        start = end
    return best[places]
