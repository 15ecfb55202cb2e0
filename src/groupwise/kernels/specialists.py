"""The aggregating algorithm's play for square loss."""

import math

from groupwise.kernels.compiled import inlined


@inlined
def substitution(eta, probabilities, advice):
    """ŷ = ½ + ½(G(0) − G(1)), G(y) = −(1/η) ln Σ p_i exp(−η (a_i − y)²), clipped to [0, 1]."""
    at_low = 0.0
    at_high = 0.0
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            action = advice[a, k]
            at_low += probabilities[a, k] * math.exp(-eta * action * action)
            at_high += probabilities[a, k] * math.exp(-eta * (action - 1.0) * (action - 1.0))
    play = 0.5 + 0.5 * (math.log(at_high) - math.log(at_low)) / eta
    return min(1.0, max(0.0, play))
