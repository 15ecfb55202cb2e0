"""The aggregating algorithm's play for square loss."""

import math

from groupwise.kernels.compiled import inlined


@inlined
def substitution(eta, probabilities, advice, low, high):
    """ŷ = ½(l + h) + ½(G(l) − G(h))/(h − l), G(y) = −(1/η) ln Σ p_i exp(−η (a_i − y)²), in [l, h].

    [l, h] is [0, 1], or what it was widened to since.
    """
    at_low = 0.0
    at_high = 0.0
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            below, above = advice[a, k] - low, advice[a, k] - high
            at_low += probabilities[a, k] * math.exp(-eta * below * below)
            at_high += probabilities[a, k] * math.exp(-eta * above * above)
    shift = (math.log(at_high) - math.log(at_low)) / (eta * (high - low))
    return min(high, max(low, 0.5 * (low + high) + 0.5 * shift))
