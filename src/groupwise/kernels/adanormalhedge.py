"""AdaNormalHedge's potential w(R, C) = ½(Φ(R+1, C+1) − Φ(R−1, C+1)), Φ(R, C) = exp([R]₊² / 3C).

The difference of exponentials overflows from R ≈ 2130 on. So it comes in two parts,
2 w(R, C) = spread · exp(exponent), neither of which does; the spread is in [0, 1].
"""

import math

from groupwise.kernels.compiled import inlined


@inlined
def exponent(regret, absolute):
    """(R+1)² / 3(C+1); minus infinity where w is 0."""
    if regret <= -1.0:
        return -math.inf
    # Squares of large sums would overflow; R ≤ C, so the quotient does not.
    return (regret + 1.0) * ((regret + 1.0) / (3.0 * (absolute + 1.0)))


@inlined
def spread(regret, absolute):
    """1 − exp(([R−1]₊² − (R+1)²) / 3(C+1)), for R > −1."""
    if regret <= 1.0:
        return -math.expm1(-exponent(regret, absolute))
    # [R−1]² − [R+1]² = −4R: no cancellation between the two squares.
    return -math.expm1(-4.0 * regret / (3.0 * (absolute + 1.0)))


@inlined
def log_weight(regret, absolute):
    """ln w(R, C)."""
    if regret <= -1.0:
        return -math.inf
    return exponent(regret, absolute) + math.log(0.5 * spread(regret, absolute))
