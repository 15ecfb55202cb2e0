"""Losses of advice that are vectors: an action a loses (⟨a, costs⟩ + offset) / unit."""

from groupwise.kernels.compiled import lean
from groupwise.kernels.rounds import expectation


@lean
def score(advice, costs, offset, unit, probabilities, losses):
    """The scaled losses of the advice; returns their expectation over the draw."""
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            total = offset
            for j in range(costs.size):
                total += advice[a, k, j] * costs[j]
            losses[a, k] = total / unit
    return expectation(probabilities, losses)
