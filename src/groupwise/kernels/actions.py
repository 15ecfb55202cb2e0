"""One round of the reduction where advice are vectors: weights, a draw, and what the label does.

``advice`` has an action per awake group and learner; action a loses (⟨a, costs⟩ + offset) / unit.
"""

from groupwise.kernels.compiled import lean
from groupwise.kernels.rounds import absorb, draw, expectation, weigh


@lean
def predict(settings, aggregator, groups, weights, number, probabilities):
    """The weights of the awake experts, and the flat place of the one to follow."""
    weigh(settings.aggregator, settings.eta, aggregator, groups, weights, probabilities)
    return draw(settings.seed, number, probabilities)


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


@lean
def update(aggregator, groups, weights, losses, charged):
    """The aggregator's update."""
    absorb(aggregator, groups, weights, losses, charged)
