"""The reference: least squares in whole numbers, ridge regression in decimals of many digits.

Nothing here uses groupwise, nor any decomposition in floating point of what is not orthonormal.
"""

import math
from contextlib import contextmanager
from decimal import Decimal, localcontext
from fractions import Fraction
from operator import mul
from typing import Any

import mpmath
import numpy as np

DEEP = 400
"""Digits in which columns are made orthonormal."""
SHARP = 1e11
"""The last t of a barrier."""
DIGITS = 250
"""Enough for columns from 1e-40 to 1e40 beside penalties from 1e-9 to 1e9."""


def integers(values):
    """Numbers as whole numbers and the power of two that they are to be multiplied by."""
    ratios = [float(value).as_integer_ratio() for value in values]
    places = max(below.bit_length() for _, below in ratios)
    whole = [above << (places - below.bit_length()) for above, below in ratios]
    common = math.gcd(*whole)
    shift = (common & -common).bit_length() - 1 if common else 0
    return [one >> shift for one in whole], shift + 1 - places


def least_squares(rows, labels, weights, blur=0):
    """min_θ Σ w (θ·x − y)² + blur Σ_j θ_j² Σ w x_j², exactly, as a fraction.

    With a ``blur``, models whose terms θ_j x_j are 1/√blur times as large as the labels pay for it.

    Fraction-free elimination (Bareiss 1968) of the Gram matrix of [x, y], the largest diagonal
    entry first: where all that are left are 0, the rest of the matrix is 0, and the rank is known.
    """
    w, places = integers(weights)
    columns = [integers(column)[0] for column in zip(*rows, strict=True)]
    y, scale = integers(labels)
    gram, last, blur = gram_of([y, *filter(any, columns)], w), 1, Fraction(blur)
    if blur:
        gram = [[blur.denominator * one for one in row] for row in gram]
        for i in range(1, len(gram)):
            gram[i][i] += gram[i][i] // blur.denominator * blur.numerator
    left = list(range(1, len(gram)))
    while left:
        place = max(left, key=lambda i: gram[i][i])
        pivot = gram[place][place]
        if pivot == 0:
            break
        left.remove(place)
        column = [gram[max(i, place)][min(i, place)] for i in range(len(gram))]
        for k, i in enumerate([0, *left]):  # the lower triangle is the whole of it
            row, share = gram[i], column[i]
            for j in [0, *left][: k + 1]:
                row[j] = (pivot * row[j] - share * column[j]) // last
        last = pivot
    found = Fraction(gram[0][0], last) * Fraction(2) ** (2 * scale + places)
    return found / blur.denominator


def gram_of(columns, weights):
    """Rows of the lower triangle of Σ w x xᵀ, in whole numbers."""
    weighted = [list(map(mul, column, weights)) for column in columns]
    return [
        [sum(map(mul, one, other)) for other in columns[: i + 1]] for i, one in enumerate(weighted)
    ]


def solve(matrix, right):
    """The solution of a positive definite system, by elimination; ``right`` has columns."""
    table = np.concatenate([matrix, right], axis=1)
    size = len(matrix)
    for k in range(size):
        table[k, k:] = table[k, k:] / table[k, k]
        for i in range(size):
            if i != k and table[i, k] != 0:
                table[i, k:] = table[i, k:] - table[i, k] * table[k, k:]
    return table[:, size:]


def decimals(values):
    """The same numbers, exactly, as an array of decimals."""
    array = np.asarray(values, dtype=np.float64)
    return np.array([Decimal(x) for x in array.ravel().tolist()], object).reshape(array.shape)


def ridge_rounds(rows, labels, weights, penalty, forgetting):
    """Before each round of a ridge learner, by its definition: θ, P x and what is left of λ.

    A = λI + Σ w x xᵀ and b = Σ w y x over the earlier rounds, both times γʷ after a round of
    weight w; what is left of λ is made whole again where it has faded below a millionth.
    """
    with precisely():
        x, y, w = decimals(rows), decimals(labels), decimals(weights)
        size, strength = x.shape[1], Decimal(1)
        full = Decimal(penalty)
        matrix = full * np.array(np.eye(size, dtype=int), object)
        moment = np.array([Decimal(0)] * size, object)
        found = []
        for row, label, weight in zip(x, y, w, strict=True):
            found.append((*solve(matrix, np.stack([moment, row], axis=1)).T, strength * full))
            matrix = matrix + weight * np.outer(row, row)
            moment = moment + weight * label * row
            if forgetting < 1.0:
                with localcontext() as brief:
                    brief.prec = 60
                    factor = (Decimal(forgetting).ln() * weight).exp()
                matrix, moment, strength = factor * matrix, factor * moment, factor * strength
                if strength < Decimal("1e-6"):
                    matrix = matrix + full * (1 - strength) * np.array(
                        np.eye(size, dtype=int), object
                    )
                    strength = Decimal(1)
        return found


def ridge_advice(rows, labels, weights, penalty, forward, forgetting):
    """The advice of a ridge learner before each round: θ·x, or θ·x / (1 + w xᵀPx)."""
    with precisely():
        x, w = decimals(rows), decimals(weights)
        advice = []
        rounds = ridge_rounds(rows, labels, weights, penalty, forgetting)
        for row, weight, (theta, product, _) in zip(x, w, rounds, strict=True):
            estimate = theta @ row
            advice.append(estimate / (1 + weight * (product @ row)) if forward else estimate)
        return bounded(advice)


def leaning_advice(rows, labels, weights, penalty, forgetting, everybody):
    """The advice of one that leans to the model ``everybody`` has in its rounds: P (b + λθ)·x."""
    with precisely():
        advice = []
        rounds = ridge_rounds(rows, labels, weights, penalty, forgetting)
        for row, other, (theta, product, left) in zip(
            decimals(rows), everybody, rounds, strict=True
        ):
            advice.append(theta @ row + left * (product @ other))
        return bounded(advice)


def bounded(advice):
    """Decimals as doubles."""
    return [float(max(min(one, Decimal("1e300")), Decimal("-1e300"))) for one in advice]


@contextmanager
def precisely():
    """Decimals of many digits and of any size."""
    with localcontext() as context:
        context.prec = DIGITS
        context.Emin, context.Emax = -(10**9), 10**9
        yield


def orthonormal(rows):
    """An orthonormal basis of the columns of some rows, to 400 digits, then as doubles."""
    with mpmath.workdps(DEEP):
        found: list[list[Any]] = []
        for column in zip(*rows, strict=True):
            size = max(abs(value) for value in column)
            if size == 0.0:
                continue
            vector = [mpmath.mpf(value) / mpmath.mpf(size) for value in column]
            for _ in range(2):
                for other in found:
                    share = mpmath.fdot(vector, other)
                    vector = [a - share * b for a, b in zip(vector, other, strict=True)]
            length = mpmath.sqrt(mpmath.fdot(vector, vector))
            if length > mpmath.mpf(10) ** (-DEEP // 2):  # else it depends on those before it
                found.append([a / length for a in vector])
        return np.array([[float(a) for a in vector] for vector in found]).reshape(-1, len(rows)).T


def best_logistic(rows, labels, weights, bound):
    """The least Σ w (ln(1 + e^ζ) − y ζ) over ζ = θ·x with |ζ| ≤ bound: two numbers around it."""
    return best_in_basis(orthonormal(rows), labels, weights, bound)


def best_in_basis(q, labels, weights, bound):
    """The same for rows in an orthonormal basis.

    Newton's steps on the loss with a barrier, t Σ w ℓ − Σ ln(b² − ζ²). The minimum for a t is no
    further than 2n/t above the least loss, by the multipliers 1/(t (b ∓ ζ)).
    """
    y, w = np.array(labels), np.array(weights)
    beta, n = np.zeros(q.shape[1]), len(y)
    scale = float(w.max())
    w = w / scale

    def value(zeta, t):
        inside = bound * bound - zeta * zeta
        if (inside <= 0.0).any():
            return math.inf
        return t * float(w @ (np.logaddexp(0.0, zeta) - y * zeta)) - float(np.log(inside).sum())

    t = 1.0
    while q.shape[1] and t < SHARP:
        t *= 8.0
        for _ in range(100):
            zeta = q @ beta
            p = 1.0 / (1.0 + np.exp(-zeta))
            inside = bound * bound - zeta * zeta
            slope = q.T @ (t * w * (p - y) + 2.0 * zeta / inside)
            bend = t * w * p * (1.0 - p) + 2.0 / inside + 4.0 * zeta * zeta / inside**2
            step = -np.linalg.lstsq((q.T * bend) @ q, slope, rcond=1e-15)[0]
            now, share = value(zeta, t), 1.0
            while value(q @ (beta + share * step), t) > now + 1e-4 * share * float(slope @ step):
                share *= 0.5
                if share < 1e-12:
                    break
            beta = beta + (share if share >= 1e-12 else 0.0) * step
            if -float(slope @ step) < 1e-9 or share < 1e-12:
                break
    zeta = q @ beta
    high = float(w @ (np.logaddexp(0.0, zeta) - y * zeta))
    return scale * max(0.0, high - 4.0 * n / SHARP), scale * high
