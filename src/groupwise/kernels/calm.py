"""Sums of products in place of a triangular factor, as long as they are as good.

Adding a row to Σ x xᵀ takes half the work of folding it into R. What the sums lose are digits of
directions in which the columns hardly vary: with columns brought to unit length and σ the least
singular value of R, some ε/σ² of them. So a group whose columns are far from dependent keeps the
lower triangle of G = Rᵀ R, with g = Rᵀ z and Σ y² where R, z and ρ were, and goes back as soon as
rows come that might change that: new columns, or numbers beyond all that there was. In between the
sums only grow: no direction has less in it than at the last look, and no column is much longer.

Rows that come again and again are rounded the same way every time, and with every row a sum would
miss a little more. So what 32 rows add up to is added at once, and after so many times (``TIMES``)
the sums are set aside, to be added to those that were before: of a million rows no sum has more
than some six hundred roundings. What a look makes of R is set aside at once. Roundings are
counted, and a sum is off by no more than 2⁻⁵³ of Σ|x y| for each.
"""

import numpy as np

from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.cells import fma
from groupwise.kernels.compiled import lean
from groupwise.kernels.vectors import dense_dot

SPREAD = 1e4
"""Sums are good as long as Σ 1/σ² over all directions is below this."""
GROWTH = 4.0
"""Another look is due where Σ x² of a column is so many times what it was at the last."""
LEAST, MOST = 1e-50, 1e100
"""The lengths of columns that sums are good for: their products keep all digits."""
TIMES = 64
"""So many times sums are added to before they are set aside."""
BLOCK = 4
"""G is kept in square blocks, those on the diagonal whole. Above them stands, mirrored, what was
set aside of those below; of those on the diagonal it is in the first rows of another array."""
MOMENT, POWER, SCRATCH = 4, 5, 6
"""The rows of that array that have what was set aside of g, of Σ y², and nothing."""
ROUNDINGS = 128
"""How many roundings a sum has at least: of 32 rows, of being added ``TIMES`` times, and some."""


@lean
def far_from_dependent(factor, lengths, width):
    """Is Σ 1/σ² of R with columns of unit length below ``SPREAD``? Writes √Σ x² to ``lengths``.

    Σ 1/σ² is the sum of squares of the inverse, which is made below the diagonal, transposed.
    """
    stay_apart()
    for j in range(width):
        lengths[j] = 0.0
    for k in range(width):
        for j in range(k, width):
            lengths[j] = max(lengths[j], abs(factor[k, j]))
    for j in range(width):
        if lengths[j] != 0.0 and not LEAST < lengths[j] < MOST:
            return False
        lengths[j] = 0.0
    for k in range(width):
        for j in range(k, width):
            lengths[j] = fma(factor[k, j], factor[k, j], lengths[j])
    spread = 0.0
    for i in range(width):
        pivot = factor[i, i]
        for j in range(i):
            factor[i, j] = 0.0
        if lengths[i] == 0.0:
            continue
        if pivot * pivot * SPREAD < lengths[i]:
            return False
        for k in range(i):
            share = factor[k, i]
            if share != 0.0:
                share /= -pivot
                factor[i, k] = fma(share, 1.0 / factor[k, k], factor[i, k])
                for j in range(k):
                    factor[i, j] = fma(share, factor[k, j], factor[i, j])
        spread += lengths[i] / (pivot * pivot)
        for j in range(i):
            spread += factor[i, j] * factor[i, j] * lengths[j]
        if not spread < SPREAD:
            return False
    for j in range(width):
        lengths[j] = np.sqrt(lengths[j])
    return True


@lean
def to_sums(factor, right, rest, lengths, width):
    """R, z, ρ become G, g and Σ y², given the lengths of R's columns."""
    stay_apart()
    rest[0] += dense_dot(right, right, width)
    for i in range(width - 1, -1, -1):
        total = 0.0
        for k in range(i + 1):
            total = fma(factor[k, i], right[k], total)
        right[i] = total
    for i in range(width):
        for j in range(i):
            factor[i, j] = 0.0
    for k in range(width):
        for i in range(k + 1, width):
            share = factor[k, i]
            if share != 0.0:
                for j in range(k, i):
                    factor[i, j] = fma(share, factor[k, j], factor[i, j])
    for i in range(width):
        factor[i, i] = lengths[i] * lengths[i]
        for j in range(i + 1, width):
            factor[i, j] = 0.0


@lean
def set_aside(factor, right, rest, aside, width):
    """Add the sums to what was set aside before; they begin at 0 again."""
    stay_apart()
    for i in range(width):
        corner = i // BLOCK * BLOCK
        for j in range(corner):
            factor[j, i] += factor[i, j]
            factor[i, j] = 0.0
        for j in range(corner, corner + BLOCK):
            if j <= i:
                aside[i - corner, j] += factor[i, j]
            factor[i, j] = 0.0
    for j in range(width):
        aside[MOMENT, j] += right[j]
        right[j] = 0.0
    aside[POWER, 0] += rest[0]
    rest[0] = 0.0


@lean
def take_back(factor, right, rest, aside, width):
    """Add what was set aside to the sums: nothing is any more."""
    stay_apart()
    for i in range(width):
        corner = i // BLOCK * BLOCK
        for j in range(corner):
            factor[i, j] += factor[j, i]
            factor[j, i] = 0.0
        for j in range(corner, i + 1):
            factor[i, j] += aside[i - corner, j]
            aside[i - corner, j] = 0.0
    for j in range(width):
        right[j] += aside[MOMENT, j]
        aside[MOMENT, j] = 0.0
    rest[0] += aside[POWER, 0]
    aside[POWER, 0] = 0.0


@lean
def to_factor(factor, right, rest, width):
    """G, g and Σ y² become R, z, ρ."""
    stay_apart()
    for k in range(width):
        square = factor[k, k]
        for j in range(k, width):
            factor[k, j] = 0.0
        if not square > 0.0:
            right[k] = 0.0
            continue
        root = np.sqrt(square)
        factor[k, k] = root
        right[k] /= root
        rest[0] -= right[k] * right[k]
        for j in range(k + 1, width):
            factor[k, j] = factor[j, k] / root
            right[j] = fma(-factor[k, j], right[k], right[j])
        for i in range(k + 1, width):
            share = factor[k, i]
            if share != 0.0:
                for j in range(k + 1, i + 1):
                    factor[i, j] = fma(-share, factor[k, j], factor[i, j])
    rest[0] = max(rest[0], 0.0)


@lean
def goes_beyond(rows, count, lengths, width):
    """Is some number of these rows larger than all of its column before together?"""
    beyond = 0
    for k in range(count):
        for j in range(width):
            beyond += abs(rows[k, j]) > lengths[j]
    return beyond > 0


@lean
def has_grown(factor, aside, lengths, width):
    """Is some column so much longer than at the last look that another is due?"""
    longer = 0
    for j in range(width):
        square = factor[j, j] + aside[j % BLOCK, j]
        longer += square > GROWTH * lengths[j] * lengths[j]
    return longer > 0
