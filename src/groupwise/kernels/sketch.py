"""Sums by which an exact dependence among columns is told from one that rounding has made.

Levels of a field add up to the constant, to the last bit; c = a + 0.3 b, computed and rounded, does
not quite. In a factor of 16 digits the two look the same, and yet the best model may use what is
left of the second. So two random combinations of a group's rows are kept, s = Σ_t r_t x_t, in exact
arithmetic: modulo the prime p = 2³¹ − 1, where every floating-point number has its place, as powers
of 2 have inverses. If Σ_j c_j x_tj = 0 in every row, then Σ_j c_j s_j = 0 modulo p; if not, the
latter happens once in 2³¹ for each of the two.
"""

from collections.abc import Mapping
from fractions import Fraction

import numpy as np

from groupwise.arrays import Index
from groupwise.kernels.cells import UNSIGNED
from groupwise.kernels.compiled import inlined

PRIME = (1 << 31) - 1
MISSING = PRIME
"""What stands for the random factors where rows are missing in the sums: in files that had none."""
SEEDS = (1_043_618_065, 77_465_321)
"""The factors of the first row."""
_STEPS = (48_271, 16_807)
_FRACTION, _EXPONENT = (1 << 52) - 1, 2047


@inlined
def residue(bits):
    """The number with these bits modulo p. There 2³¹ = 1: multiplying by 2ᵏ is rotating 31 bits."""
    exponent = (bits >> 52) & _EXPONENT
    fraction = (bits & _FRACTION) + (min(exponent, 1) << 52)
    value = (fraction & PRIME) + (fraction >> 31)
    value = (value & PRIME) + (value >> 31)
    # The number is fraction · 2^(exponent − 1075), and −1075 is 10 modulo 31.
    power = max(exponent, 1) + 10
    power -= 31 * ((power * 33_826) >> 20)
    value = ((value << power) & PRIME) + (value >> (31 - power))
    return PRIME - value if bits < 0 else value


@inlined
def reduced(total):
    """A sum that is the same modulo p, and not much larger than it."""
    return (total & PRIME) + (total >> 31)


@inlined
def add(own, xi, xv):
    """Add a row to both sums, unless some rows are missing there.

    The first ``firm`` columns are known to be independent of all others: they are passed over.
    """
    first, second = own.factors[0], own.factors[1]
    if first == MISSING:
        return
    if first == 0:
        first, second = SEEDS
    bits, firm = xv.view(np.int64), own.firm[0]
    sums, others, sample = own.sketch[0], own.sketch[1], own.sample
    for k in range(0 if xi.size > 0 else firm, xv.size):
        column = UNSIGNED(xi[k] if xi.size > 0 else k)
        if column < UNSIGNED(firm) or xv[k] == 0.0:
            continue
        one, other = first, second
        if xv[k] != 1.0:
            value = residue(bits[k])
            one, other = first * value, second * value
        sums[column] = reduced(sums[column] + one)
        others[column] = reduced(others[column] + other)
        if sample[column] == 0.0:
            sample[column] = xv[k]
    own.factors[0] = first * _STEPS[0] % PRIME
    own.factors[1] = second * _STEPS[1] % PRIME


def vanishes(terms: Mapping[int, Fraction], sketch: Index) -> bool:
    """Is Σ_j c_j x_j = 0 in every row that was added, for these c by column?"""
    for sums in sketch.tolist():
        total = 0
        for column, factor in terms.items():
            inverse = pow(factor.denominator, -1, PRIME) if factor.denominator % PRIME else 0
            total += sums[column] * factor.numerator * inverse
        if total % PRIME:
            return False
    return True
