"""Sums of products of rows that are mostly zeros, kept to twice the digits of a number.

Such a row touches few cells of a matrix of sums and would fill a triangular factor, so its
products are added up: Σ u uᵀ, Σ v u and Σ v² for the rows u = √w x and labels v = √w y. Each sum is
a pair of numbers, the second of which holds what rounding took from the first: products are taken
apart by a fused multiply-add, sums by the six additions of Knuth. With 32 digits a sum of squares
tells as much as a triangular factor with 16, and ``eliminate`` makes one of it when somebody asks.
"""

import math
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.cells import UNSIGNED, fma
from groupwise.kernels.compiled import Kernel, compiled, inlined
from groupwise.kernels.hindsight import OFFSET, is_dense, weighted_label
from groupwise.kernels.layout import ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch

UNIT = 2.0**90
"""Rows are multiplied by this, so that squares of numbers from 1e-150 to 1e100 keep both parts."""
ROUNDING = 2.0**-104
"""What an operation on pairs loses at most."""


class Grams(NamedTuple):
    """One group's sums of products."""

    columns: Index
    """How many columns the group's rows have had, full ones too."""
    added: Index
    """How many rows were added."""
    coarse: Index
    """How many were added before, to half the digits (files of earlier versions)."""
    power: Vector
    """Σ v², and what rounding took from it; so everywhere."""
    moment: Vector
    moment_low: Vector
    diagonal_low: Vector
    gram: Vector
    """On and below the diagonal Σ u uᵀ; above it what rounding took from the cell across."""


GRAMS = Layout(
    Grams,
    {
        "columns": ONE,
        "added": ONE,
        "coarse": ONE,
        "power": (2,),
        "moment": (OWN,),
        "moment_low": (OWN,),
        "diagonal_low": (OWN,),
        "gram": (OWN, OWN),
    },
    integers=("columns", "added", "coarse"),
    late=("gram",),
)
grams_of, give_late = GRAMS.view, GRAMS.give_late


@inlined
def lost(total, addend, result):
    """What ``result``, the rounded sum of both, lacks of them."""
    part = result - total
    return (total - (result - part)) + (addend - part)


@inlined
def add_product(total, low, place, low_place, a, b):
    """total[place] + low[low_place] += a · b, where the two are a pair."""
    product = a * b
    before = total[place]
    after = before + product
    total[place] = after
    low[low_place] += lost(before, product, after) + fma(a, b, -product)


@Kernel
def record(state, message):
    """Add the rounds of a stretch whose rows are mostly zeros."""
    place, stretch = open_place(state), open_stretch(message)
    group, offset = stretch.group, place.parameters[OFFSET]
    own = grams_of(place, group)
    stride, cells = own.moment.size, own.moment
    apart = UNSIGNED(stride)
    if place.late[group] >= 0:
        cells = own.gram.reshape(stride * stride)
    for i in range(stretch.first, stretch.last):
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        weight, y = weighted_label(place, stretch, i)
        if weight == 0.0 or is_dense(own.columns, xi, xv):
            continue
        if place.late[group] < 0:
            give_late(place, group)
            own = grams_of(place, group)
            cells = own.gram.reshape(stride * stride)
        root = np.sqrt(weight)
        label = root * (y + offset)
        own.added[0] += 1
        add_product(own.power, own.power, 0, 1, label, label)
        scale = UNIT * root
        for k in range(xi.size):
            factor, at = scale * xv[k], UNSIGNED(xi[k])
            if factor == 0.0:
                continue
            add_product(own.moment, own.moment_low, at, at, factor, label)
            add_product(cells, own.diagonal_low, at * apart + at, at, factor, factor)
            for j in range(k):
                across = UNSIGNED(xi[j])
                one, other = at * apart + across, across * apart + at
                add_product(cells, cells, max(one, other), min(one, other), factor, scale * xv[j])
    return stretch.last


@inlined
def times(high, low, other, other_low):
    """The product of two pairs."""
    product = high * other
    rest = fma(high, other_low, fma(low, other, fma(high, other, -product)))
    total = product + rest
    return total, rest - (total - product)


@inlined
def minus(high, low, other, other_low):
    """The difference of two pairs."""
    total = high - other
    rest = lost(high, -other, total) + (low - other_low)
    result = total + rest
    return result, rest - (result - total)


@inlined
def over(high, low, other, other_low):
    """The quotient of two pairs."""
    first = high / other
    product, rest = times(first, 0.0, other, other_low)
    left, left_low = minus(high, low, product, rest)
    second = (left + left_low) / other
    total = first + second
    return total, second - (total - first)


@compiled
def eliminate(gram, low, moment, moment_low, power, slack, rows, labels):
    """Σ u uᵀ = Rᵀ R by pairs, the largest remaining column first; writes R and z to rows, labels.

    ``gram`` is symmetric with the parts that rounding took in ``low``, columns of about unit length
    (and all of this is used up); columns of which less than ``slack`` of Σ u² is left depend on the
    others. Returns how many rows there are, the two parts of what is left of ``power``, and the
    largest share of Σ u² that is left of a column that depends on others: rounding, of any sign.
    """
    size = gram.shape[0]
    left = np.ones(size, dtype=np.bool_)
    scale = np.diag(gram).copy()
    rest, rest_low = power[0], power[1]
    for rank in range(size):
        pivot, largest = -1, slack
        for i in range(size):
            if left[i] and gram[i, i] > largest * scale[i]:
                pivot, largest = i, gram[i, i] / scale[i]
        if pivot < 0:
            noise = 0.0
            for i in range(size):
                if left[i]:
                    noise = max(noise, abs(gram[i, i]) / scale[i])
            return rank, rest, rest_low, noise
        left[pivot] = False
        square, square_low = gram[pivot, pivot], low[pivot, pivot]
        # A root to full length is enough for R; products are divided by the square itself.
        root = math.sqrt(square)
        rows[rank, pivot] = root
        label, label_low = moment[pivot], moment_low[pivot]
        labels[rank] = label / root
        explained, explained_low = times(label, label_low, label, label_low)
        explained, explained_low = over(explained, explained_low, square, square_low)
        rest, rest_low = minus(rest, rest_low, explained, explained_low)
        for i in range(size):
            if not left[i] or gram[i, pivot] == 0.0:
                continue
            rows[rank, i] = gram[i, pivot] / root
            share, share_low = over(gram[i, pivot], low[i, pivot], square, square_low)
            part, part_low = times(share, share_low, label, label_low)
            moment[i], moment_low[i] = minus(moment[i], moment_low[i], part, part_low)
            for j in range(i + 1):
                other = gram[j, pivot]
                if left[j] and other != 0.0:
                    part, part_low = times(share, share_low, other, low[j, pivot])
                    gram[i, j], low[i, j] = minus(gram[i, j], low[i, j], part, part_low)
                    gram[j, i], low[j, i] = gram[i, j], low[i, j]
    return size, rest, rest_low, 0.0
