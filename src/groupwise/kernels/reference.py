"""The vector loops in plain Python: the same operations in the same order, one number at a time.

They are what the loops of ``vectors`` are compared with, bit for bit, and what runs in their place
where kernels run as plain Python (``NUMBA_DISABLE_JIT=1``).
"""

import math
from collections.abc import Callable
from fractions import Fraction
from operator import add

import numpy as np

from groupwise.arrays import Index, Vector

_BLOCK = 4
"""Rows of a matrix whose square block on the diagonal is computed whole."""
_SUMS = 8
"""Interleaved sums of a product of two vectors."""


def fma(a: float, b: float, c: float) -> float:
    """a·b + c with a single rounding."""
    a, b, c = float(a), float(b), float(c)
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:  # zeros keep their sign, and what cancels has none
        return a * b + c if c == 0.0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def prefetch(array: Vector, start: int, size: int) -> None:
    """Nothing: there is no hurry here."""


def combine_rows(out: Vector, matrix: Vector, xi: Index, xv: Vector, width: int) -> None:
    """out = Σ_k xv[k] · matrix[xi[k]]."""
    for j in range(width):
        total = 0.0
        for k in range(xi.size):
            total = fma(xv[k], matrix[xi[k], j], total)
        out[j] = total


def combine_first(
    out: Vector, keep: bool, matrix: Vector, values: Vector, count: int, width: int
) -> None:
    """out = (out if keep else 0) + Σ_k values[k] · matrix[k]."""
    for j in range(width):
        total = out[j] if keep else 0.0
        for k in range(count):
            total = fma(values[k], matrix[k, j], total)
        out[j] = total


def dense_products(
    out: Vector, matrix: Vector, values: Vector, starts: Index, count: int, width: int
) -> None:
    """out[r] = Σ_k values[starts[r] + k] · matrix[k] for four rows."""
    for r in range(4):
        combine_first(out[r], False, matrix, values[starts[r] :], count, width)


def add_outer(matrix: Vector, rows: Vector, width: int) -> None:
    """matrix += Σ_k rows[k] rows[k]ᵀ in the lower triangle."""
    for i in range(width):
        for j in range(i // _BLOCK * _BLOCK + _BLOCK):
            total = 0.0
            for row in rows:
                total = fma(row[i], row[j], total)
            matrix[i, j] += total


def subtract_outer(matrix: Vector, rows: Vector, width: int) -> None:
    """matrix −= Σ_k rows[k] rows[k]ᵀ, a symmetric matrix."""
    for i in range(width):
        block = i // _BLOCK * _BLOCK
        for j in range(block + _BLOCK):
            for row in rows:
                matrix[i, j] = fma(row[i], -row[j], matrix[i, j])
            if j < block:
                matrix[j, i] = matrix[i, j]


def dense_dot(first: Vector, second: Vector, width: int) -> float:
    """⟨first, second⟩ in eight interleaved sums, which are added up by halves."""
    sums = [0.0] * _SUMS
    for j in range(width):
        sums[j % _SUMS] = fma(first[j], second[j], sums[j % _SUMS])
    while len(sums) > 1:
        half = len(sums) // 2
        sums = [one + other for one, other in zip(sums[:half], sums[half:], strict=True)]
    return sums[0]


def dense_dots(out: Vector, rows: Vector, count: int, vector: Vector, width: int) -> None:
    """out[j] = −⟨rows[j], vector⟩."""
    for j in range(count):
        out[j] = -dense_dot(rows[j], vector, width)


def add_and_scale(
    total: Vector, step: float, scaled: Vector, factor: float, vector: Vector, width: int
) -> None:
    """total += step · vector and scaled = factor · vector."""
    for j in range(width):
        total[j] = fma(step, vector[j], total[j])
        scaled[j] = factor * vector[j]


def scale(out: Vector, factor: float, vector: Vector, width: int) -> None:
    """out = factor · vector."""
    for j in range(width):
        out[j] = factor * vector[j]


def scratch(size: int) -> Vector:
    """Room for so many numbers."""
    return np.empty(size)


def transpose(out: Vector, matrix: Vector, first: int, count: int) -> None:
    """out[a, k] = matrix[k, first + a] for four columns."""
    out[:4, :count] = matrix[:count, first : first + 4].T


def reflect(
    factor: Vector, rows: Vector, top: int, panel: Vector, weights: Vector, count: int, width: int
) -> None:
    """Four reflections of the columns after ``top + 4``."""
    for j in range(top + 4, width):
        moved: list[float] = []
        for a in range(4):
            total = factor[top + a, j]
            for k in range(count):
                total = fma(panel[a, k], rows[k, j], total)
            value = weights[4 * a + a] * total
            for c in range(a):
                value = fma(weights[4 * a + c], moved[c], value)
            moved.append(value)
            factor[top + a, j] += value
        for k in range(count):
            for a in range(4):
                rows[k, j] = fma(panel[a, k], moved[a], rows[k, j])


def dense_power(weights: Vector, vector: Vector, width: int) -> float:
    """Σ_j weights_j · vector_j²."""
    return dense_dot(weights, vector[:width] * vector[:width], width)


def substitute(matrix: Vector, rest: Vector, solved: Vector, first: int, width: int) -> None:
    """Solve Rᵀu = x: ``solved`` is u from ``first`` on; ``rest`` is x, and is used up."""
    for top in range(first, width, _BLOCK):
        left = rest[top:].copy()
        for i in range(_BLOCK):
            row = matrix[top + i, top:]
            solved[top + i] = left[i] * (1.0 / row[i])
            for j in range(i + 1, width - top):
                left[j] = fma(-solved[top + i], row[j], left[j])
        rest[top + _BLOCK : width] = left[_BLOCK : width - top]


def absorb(
    matrix: Vector,
    right: Vector,
    rest: Vector,
    solved: Vector,
    weight: float,
    label: float,
    first: int,
    width: int,
) -> None:
    """The same, and on the way RᵀR += w x xᵀ and Rᵀz += w y x, by rotations."""
    growth, error = 1.0, label
    for top in range(first, width, _BLOCK):
        left = rest[top:].copy()
        for i in range(_BLOCK):
            row, z = matrix[top + i, top:], right[top + i]
            u = solved[top + i] = left[i] * (1.0 / row[i])
            before = math.sqrt(growth)
            growth += weight * (u * u)
            after = math.sqrt(growth)
            keep, gain = before / after, weight * (u / after) / before
            right[top + i] = fma(gain, error, keep * z)
            error = fma(-u, z, error)
            for j in range(i, width - top):
                old = row[j]
                row[j] = fma(gain, left[j], keep * old)
                left[j] = fma(-u, old, left[j])
        rest[top + _BLOCK : width] = left[_BLOCK : width - top]


RATES = tuple(0.5 * 4.0**k for k in range(8))
"""Prod's rates η_k."""
SHARES = tuple(2.0**-k for k in range(8))
"""Their prior γ_k, up to its sum 255/128."""
PULLS = tuple(rate * share for rate, share in zip(RATES, SHARES, strict=True))
FREE = 1.0 / sum(PULLS)
LEAST_WEIGHT = 2.0**-800
"""Weights of an expert are not below this, which is nothing beside the largest of them."""
UNIT = 2.0**-53
"""What rounding may change a number by, relative to it."""
CHARGE_ROUNDING = 32 * UNIT
WEIGHT_ROUNDING = 4 * UNIT
ROUNDED_UP = 1.0 + 8 * UNIT


def _fold(numbers: list[float], together: Callable[[float, float], float]) -> float:
    while len(numbers) > 1:
        half = len(numbers) // 2
        numbers = [together(*pair) for pair in zip(numbers[:half], numbers[half:], strict=True)]
    return numbers[0]


def pull(weight: Vector, k: int, reach: float, ceiling: float, slope: float) -> tuple[float, float]:
    """Σ γ_k w_k min(η_k reach, ceiling), and what it grows by with reach; ``ceiling`` by slope."""
    force, growth = [], []
    for w, share, each in zip(weight[k].tolist(), SHARES, PULLS, strict=True):
        within = each * reach < share * ceiling
        force.append(w * (each * reach if within else share * ceiling))
        growth.append(w * (each if within else share * slope))
    return _fold(force, add), _fold(growth, add)


def turn(
    weight: Vector,
    charge: Vector,
    k: int,
    step: float,
    sign: float,
    reach: float,
    ceiling: float,
    whole: float,
    both: int,
) -> tuple[float, float, float, float]:
    """w_k ×= 1 ± z_k, and S_k += its charge; see ``rates``."""
    changes, drawn = [], []
    for j, (rate, share) in enumerate(zip(RATES, SHARES, strict=True)):
        old, inverse = float(weight[k, j]), 1.0 / rate
        u = step * (reach if reach < ceiling * inverse else ceiling * inverse)
        z = rate * u
        new = old * (1.0 + sign * z)
        new = new if new > LEAST_WEIGHT else LEAST_WEIGHT
        cost = (whole - u) + u * z / (2.0 + z)
        if both:
            losing = u * z / (2.0 - 2.0 * z) - (whole - u)
            cost = losing if losing > cost else cost
        cost = (cost + whole * CHARGE_ROUNDING) + inverse * WEIGHT_ROUNDING
        charge[k, j] = (float(charge[k, j]) + cost) * ROUNDED_UP
        weight[k, j] = new
        changes.append((new - old) * share)
        drawn.append(new * (rate * share))
    sizes = [abs(change) for change in changes]
    sums = _fold(changes, add), _fold(sizes, add)
    return *sums, max(weight[k].tolist()), _fold(drawn, add) * FREE


def power_of_two(power: int) -> float:
    """2^power, a normal number."""
    return 2.0 ** int(power)


def rescale(weight: Vector, k: int, factor: float) -> None:
    """w_k ×= factor, a power of two."""
    weight[k] *= factor
