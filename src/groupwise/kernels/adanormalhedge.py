"""AdaNormalHedge's potential, in logarithms."""

import math

from numba import njit

_LOG_2 = math.log(2.0)


@njit(nogil=True, cache=True, forceinline=True)
def log_weight(regret, absolute):
    """ln w(R, C), w(R, C) = ½(Φ(R+1, C+1) − Φ(R−1, C+1)), Φ(R, C) = exp([R]₊² / 3C).

    The difference of exponentials overflows from R ≈ 2130 on; its logarithm does not.
    """
    if regret <= -1.0:
        return -math.inf
    scale = 3.0 * (absolute + 1.0)
    above = (regret + 1.0) * (regret + 1.0) / scale
    if regret <= 1.0:
        return math.log(math.expm1(above)) - _LOG_2
    # ([R−1]² − [R+1]²) / 3(C+1) = −4R / 3(C+1): no cancellation between the two squares.
    return above + math.log(-math.expm1(-4.0 * regret / scale)) - _LOG_2
