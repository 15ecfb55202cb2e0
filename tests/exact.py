"""Least squares in exact arithmetic: every float is a fraction, and so is the answer."""

from fractions import Fraction

import numpy as np


def least_squares(x, y, w):
    """min_θ Σ w (θ·x − y)² over all θ, without any rounding."""
    columns = [
        [Fraction(float(value)) / _power(column) for value in column] for column in np.transpose(x)
    ]
    columns.append([Fraction(float(value)) for value in y])
    weights = [Fraction(float(value)) for value in w]
    size = len(columns)
    gram = [
        [sum(u * a * b for u, a, b in zip(weights, one, other, strict=True)) for other in columns]
        for one in columns
    ]
    for k in range(size - 1):
        if gram[k][k] == 0:  # depends on the columns before it
            continue
        for i in range(k + 1, size):
            share = gram[i][k] / gram[k][k]
            if share:
                for j in range(k, size):
                    gram[i][j] -= share * gram[k][j]
    return gram[-1][-1]


def _power(column):
    """A power of two near the size of a column, which keeps the fractions short."""
    return Fraction(2) ** int(np.frexp(np.abs(column).max())[1])
