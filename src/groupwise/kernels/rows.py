"""Sums over rows that were kept, to twice the digits of a number or modulo a prime.

A row is its cells from ``starts[t]`` to ``starts[t + 1]``; where ``columns`` is empty the rows are
full, and a cell's place is its column. Sums are pairs, as in ``kernels.gram``.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import sketch
from groupwise.kernels.compiled import compiled, lean
from groupwise.kernels.gram import UNIT, add_product, lost
from groupwise.kernels.sketch import PRIME, reduced, residue
from groupwise.kernels.vectors import fma


class Sketched(NamedTuple):
    """Two random combinations of all rows, in exact arithmetic (``kernels.sketch``)."""

    factors: Index
    firm: Index
    sketch: Index
    sample: Vector


@lean
def dots(starts, columns, values, high, low, found, sizes):
    """found = X (high + low), rounded once; and the sums of the sizes of their terms."""
    for t in range(found.size):
        total, rest, size = 0.0, 0.0, 0.0
        for k in range(starts[t], starts[t + 1]):
            j = columns[k] if columns.size > 0 else k - starts[t]
            product = values[k] * high[j]
            after = total + product
            rest += lost(total, product, after) + fma(values[k], high[j], -product)
            rest = fma(values[k], low[j], rest)
            total = after
            size += abs(product)
        found[t], sizes[t] = total + rest, size


@lean
def back(starts, columns, values, factors, high, low):
    """high + low += Xᵀ factors."""
    for t in range(factors.size):
        factor = factors[t]
        if factor == 0.0:
            continue
        for k in range(starts[t], starts[t + 1]):
            j = columns[k] if columns.size > 0 else k - starts[t]
            add_product(high, low, j, j, factor, values[k])


@lean
def gram_of(starts, columns, values, weights, found):
    """The lower triangle of Xᵀ W X, for rows whose columns ascend."""
    for t in range(weights.size):
        for k in range(starts[t], starts[t + 1]):
            row, factor = found[columns[k]], weights[t] * values[k]
            for i in range(starts[t], k + 1):
                row[columns[i]] += factor * values[i]


@lean
def add_pairs(starts, columns, values, roots, cells, stride, diagonal_low):
    """Add the products of the rows, times their roots, to sums as ``kernels.gram`` keeps them."""
    for t in range(roots.size):
        scale = UNIT * roots[t]
        for k in range(starts[t], starts[t + 1]):
            factor, at = scale * values[k], columns[k]
            add_product(cells, diagonal_low, at * stride + at, at, factor, factor)
            for i in range(starts[t], k):
                one, other = at * stride + columns[i], columns[i] * stride + at
                add_product(cells, cells, one, other, factor, scale * values[i])


@lean
def add_sketch(starts, columns, values, own):
    """Add all rows to both random combinations."""
    for t in range(starts.size - 1):
        first, last = starts[t], starts[t + 1]
        places = columns[first:last] if columns.size > 0 else columns
        sketch.add(own, places, values[first:last])


@lean
def mix(starts, columns, values, order, found):
    """Random combinations of the rows modulo p, each row in one of them; ``order`` places columns.

    With as many combinations as rows, each is one row.
    """
    count = found.shape[0]
    bits = values.view(np.int64)
    factor = sketch.SEEDS[1]
    for t in range(starts.size - 1):
        factor = factor * 69_621 % PRIME
        into = found[t if count >= starts.size - 1 else factor % count]
        factor = factor * 69_621 % PRIME
        for k in range(starts[t], starts[t + 1]):
            j = order[columns[k] if columns.size > 0 else k - starts[t]]
            if j >= 0:
                into[j] = (into[j] + factor * (residue(bits[k]) % PRIME)) % PRIME


@lean
def inverse(value):
    """1 / value modulo p."""
    result, power, left = 1, value, PRIME - 2
    while left > 0:
        if left & 1:
            result = result * power % PRIME
        power = power * power % PRIME
        left >>= 1
    return result


@compiled
def spanned(rows, free, sketches):
    """Are all columns combinations of the first ``free``, modulo p?

    ``rows`` (used up) are combinations of the rows from which the coefficients are found,
    ``sketches`` others, on which they are tried. Returns 1 or 0; −1 where the first are too few.
    """
    count, width = rows.shape
    for j in range(free):
        pivot = j
        while pivot < count and rows[pivot, j] == 0:
            pivot += 1
        if pivot == count:
            return -1
        for i in range(j, width):
            rows[j, i], rows[pivot, i] = rows[pivot, i], rows[j, i]
        factor = inverse(rows[j, j])
        for i in range(j, width):
            rows[j, i] = rows[j, i] * factor % PRIME
        for k in range(count):
            share = rows[k, j]
            if k == j or share == 0:
                continue
            share = PRIME - share
            for i in range(j, width):
                rows[k, i] = reduced(reduced(rows[k, i] + share * rows[j, i])) % PRIME
    for j in range(free, width):
        for k in range(sketches.shape[0]):
            total = 0
            for i in range(free):
                total = (total + sketches[k, i] * rows[i, j]) % PRIME
            if (total - sketches[k, j]) % PRIME != 0:
                return 0
    return 1
