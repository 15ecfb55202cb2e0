"""A triangular factor of weighted rows, which keeps the digits that sums of squares lose.

With the rows √w [x, y] of a group one below the other as [X, y], and X = Q R with orthonormal
columns in Q and R upper triangular, all that least squares needs is R, z = Qᵀy and what is left,
ρ = ‖y‖² − ‖z‖² (computed as a sum of squares, so it is never negative):

    ‖X θ − y‖² = ‖R θ − z‖² + ρ    for every θ.

New rows B, y' are folded in by Householder reflections of [R z; B y'], column by column. The rows
of another factor can be folded in just the same: factors merge as sums do.
"""

import math

import numpy as np

from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.cells import fma, padded
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.triangles import reflect, transpose
from groupwise.kernels.vectors import dense_dot, dense_dots, scratch

MOST = 32
"""Rows that can be folded in at once."""
PANEL = 4
"""Columns that are reflected together."""
_SHEET, _SQUARE = (PANEL + 1) * MOST, PANEL * PANEL
SMALL, LARGE = 1e-40, 1e40
"""A column whose largest number is not between these is brought to the order of 1 meanwhile."""


@lean
def fold(factor, right, rows, labels, count, width):
    """Fold up to 32 rows and their labels, both multiplied by √w, into R and z.

    The upper triangle of ``factor`` is R, ``right`` is z; both are updated in place, over the first
    ``width`` columns, a multiple of four. What stands in ``rows``, of which there must be room for
    a multiple of four, is used up. Columns that are 0 in all the rows are passed over: columns that
    nobody uses change no digit. Returns what is to be added to ρ. Numbers may be of any size from
    1e-150 to 1e150.
    """
    stay_apart()
    length = padded(count)
    # Four columns and the labels, each in one piece, with zeros beyond the rows that there are.
    panel = scratch(_SHEET).reshape((PANEL + 1, MOST))
    weights, products = scratch(_SQUARE), scratch(_SQUARE)
    for k in range(length):
        panel[PANEL, k] = labels[k] if k < count else 0.0
    for top in range(0, width, PANEL):
        transpose(panel, rows, top, length)
        for a in range(PANEL):
            for k in range(count, length):
                panel[a, k] = 0.0
        some = False
        for a in range(PANEL):
            some = turn(factor, right, panel, weights, products, top, a, length) or some
        if some:
            reflect(factor, rows, top, panel, weights, count, width)
    return dense_dot(panel[PANEL], panel[PANEL], length)


@inlined
def turn(factor, right, panel, weights, products, top, a, length):
    """Reflect column ``a`` of a panel onto R; the later ones and the labels follow.

    v is left in the column; row ``a`` of ``weights`` gets what ``reflect`` takes. Returns whether
    there was anything to reflect.
    """
    column = panel[a]
    largest = 0.0
    for k in range(length):
        largest = max(largest, abs(column[k]))
    for b in range(PANEL):
        weights[PANEL * a + b] = 0.0
    if largest == 0.0:
        return False
    pivot = factor[top + a, top + a]
    largest = max(largest, abs(pivot))
    exponent = 0
    if not SMALL < largest < LARGE:
        exponent = math.frexp(largest)[1]
        pivot = math.ldexp(pivot, -exponent)
        for k in range(length):
            column[k] = math.ldexp(column[k], -exponent)
    dense_dots(products, panel, PANEL + 1, column, length)
    norm = np.sqrt(fma(pivot, pivot, -products[a]))
    if pivot > 0.0:
        norm = -norm
    factor[top + a, top + a] = math.ldexp(norm, exponent) if exponent != 0 else norm
    scale = 1.0 / (pivot - norm)
    weight = (pivot - norm) / norm
    weights[PANEL * a + a] = weight
    for b in range(a):  # w_a = −τ (s_a − Σ ⟨v_a, v_b⟩ w_b), with w of the other sign
        weights[PANEL * a + b] = -weight * (scale * products[b])
    for b in range(a + 1, PANEL):
        moved = weight * fma(-scale, products[b], factor[top + a, top + b])
        factor[top + a, top + b] += moved
        moved *= scale
        for k in range(length):
            panel[b, k] = fma(moved, column[k], panel[b, k])
    moved = weight * fma(-scale, products[PANEL], right[top + a])
    right[top + a] += moved
    moved *= scale
    for k in range(length):
        panel[PANEL, k] = fma(moved, column[k], panel[PANEL, k])
    for k in range(length):
        column[k] *= scale
    return True
