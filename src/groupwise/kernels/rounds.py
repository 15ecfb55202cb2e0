"""One round of the reduction after the learners spoke: weights, play, and what the label does.

``aggregator`` is the state of the sleeping-experts algorithm: R = ``regret`` and C = ``absolute``
per expert (group, learner), the prior ``mass``, and the ``largest`` |r| ever seen.
Everything is in scaled losses.
"""

import math

from groupwise.kernels.adanormalhedge import exponent, spread
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.ledger import charge
from groupwise.kernels.losses import value
from groupwise.kernels.philox import AGGREGATOR, uniform
from groupwise.kernels.specialists import substitution
from groupwise.kernels.vectors import prefetch

GIVEN = -1
ADA_NORMAL_HEDGE = 0
SPECIALISTS = 1

MEAN = 0
SAMPLE = 1
SUBSTITUTION = 2

MANY = 2_048
"""Groups from which on their figures are fetched ahead."""


@inlined
def weigh(kind, eta, aggregator, groups, weights, probabilities):
    """p_i ∝ q_i I_i w(R_i, C_i) over the awake experts; p_i ∝ q_i I_i where all of these are 0.

    With ``GIVEN`` (an aggregator written in Python) ``probabilities`` comes holding the ln w.
    """
    learners = probabilities.shape[1]
    top = -math.inf
    for a in range(groups.size):
        g = groups[a]
        for k in range(learners):
            if kind == ADA_NORMAL_HEDGE:
                probabilities[a, k] = exponent(aggregator.regret[g, k], aggregator.absolute[g, k])
            elif kind == SPECIALISTS:
                probabilities[a, k] = eta * aggregator.regret[g, k]
            top = max(top, probabilities[a, k])
    total = 0.0
    for a in range(groups.size):
        g = groups[a]
        for k in range(learners):
            below = probabilities[a, k] - top
            probabilities[a, k] = aggregator.mass[g, k] * weights[a]
            if below < 0.0:
                probabilities[a, k] *= math.exp(below)
            if kind == ADA_NORMAL_HEDGE and top > -math.inf and probabilities[a, k] > 0.0:
                probabilities[a, k] *= spread(aggregator.regret[g, k], aggregator.absolute[g, k])
            total += probabilities[a, k]
    for a in range(groups.size):
        for k in range(learners):
            probabilities[a, k] /= total


@inlined
def clip(advice, low, high):
    """Advice brought into the range of the labels, in place."""
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            advice[a, k] = min(high, max(low, advice[a, k]))


@inlined
def draw(seed, number, probabilities):
    """The flat place of the expert that this ticket's draw names."""
    level = uniform(seed, number, AGGREGATOR, 0)
    cumulative = 0.0
    last = 0
    for a in range(probabilities.shape[0]):
        for k in range(probabilities.shape[1]):
            if probabilities[a, k] > 0.0:
                last = a * probabilities.shape[1] + k
                cumulative += probabilities[a, k]
                if level < cumulative:
                    return last
    return last


@inlined
def play(kind, eta, seed, number, probabilities, advice):
    """The prediction: the mean of the advice, the advice of one expert, or the substitution."""
    if kind == SUBSTITUTION:
        return substitution(eta, probabilities, advice)
    if kind == SAMPLE:
        place = draw(seed, number, probabilities)
        return advice[place // advice.shape[1], place % advice.shape[1]]
    total = 0.0
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            total += probabilities[a, k] * advice[a, k]
    return total


@inlined
def expectation(probabilities, losses):
    """Σ p_i ℓ_i."""
    total = 0.0
    for a in range(losses.shape[0]):
        for k in range(losses.shape[1]):
            total += probabilities[a, k] * losses[a, k]
    return total


@inlined
def predict(settings, aggregator, groups, weights, number, advice, probabilities):
    """Clip the advice, weigh the experts, play. Changes no state."""
    clip(advice, settings.low, settings.high)
    weigh(settings.aggregator, settings.eta, aggregator, groups, weights, probabilities)
    return play(settings.play, settings.eta, settings.seed, number, probabilities, advice)


@inlined
def score(settings, prediction, y, advice, probabilities, losses):
    """losses of the advice on y, and ℓ̂, what the aggregator is charged: ``(charged, realised)``."""
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            losses[a, k] = value(settings.loss, settings.scale, advice[a, k], y)
    realised = value(settings.loss, settings.scale, prediction, y)
    if settings.play == SAMPLE:
        return expectation(probabilities, losses), realised
    return realised, realised


@inlined
def absorb(aggregator, groups, weights, losses, charged):
    """r_i = I_i(ℓ̂ − ℓ_i); R_i += r_i; C_i += |r_i|."""
    for a in range(groups.size):
        g = groups[a]
        for k in range(losses.shape[1]):
            regret = weights[a] * (charged - losses[a, k])
            aggregator.regret[g, k] += regret
            aggregator.absolute[g, k] += abs(regret)
            aggregator.largest[0] = max(aggregator.largest[0], abs(regret))


@inlined
def settle(settings, aggregator, groups, weights, number, advice, y, probabilities, losses):
    """Weights and play as of now, their losses on y, and the aggregator's update.

    Returns ``(prediction, charged, realised)``.
    """
    prediction = predict(settings, aggregator, groups, weights, number, advice, probabilities)
    charged, realised = score(settings, prediction, y, advice, probabilities, losses)
    absorb(aggregator, groups, weights, losses, charged)
    return prediction, charged, realised


@inlined
def _fetch(aggregator, ledger, group):
    """Ask for a group's figures."""
    learners = aggregator.mass.shape[1]
    for figures in (aggregator.regret, aggregator.absolute, aggregator.mass, ledger.expert_loss):
        prefetch(figures, group * learners, learners)
    for sums in (ledger.rounds, ledger.loss, ledger.realised_loss, ledger.delay):
        prefetch(sums, group, 1)
    prefetch(ledger.baseline_loss, group, 1)


@lean
def settle_stream(
    settings,
    aggregator,
    ledger,
    indptr,
    groups,
    weights,
    labels,
    first_number,
    baseline,
    nobody,
    prediction,
    expected,
    realised,
    advice,
    probabilities,
    losses,
):
    """``settle`` and the ledger's ``charge`` for every row of a stream whose labels come at once.

    Row t has the awake groups ``groups[indptr[t]:indptr[t + 1]]``; advice, probabilities and losses
    are aligned with that list. The first learner of the group ``baseline`` is the baseline;
    ``nobody`` is played where no group is awake.
    """
    many = len(aggregator.mass) > MANY
    for t in range(labels.size):
        if many and t + 4 < labels.size:  # what is needed soon is on its way meanwhile
            for entry in range(indptr[t + 4], indptr[t + 5]):
                _fetch(aggregator, ledger, groups[entry])
        first, last = indptr[t], indptr[t + 1]
        if first == last:
            prediction[t] = nobody
            expected[t] = value(settings.loss, settings.scale, nobody, labels[t])
            realised[t] = expected[t]
            continue
        prediction[t], expected[t], realised[t] = settle(
            settings,
            aggregator,
            groups[first:last],
            weights[first:last],
            first_number + t,
            advice[first:last],
            labels[t],
            probabilities[first:last],
            losses[first:last],
        )
        single = math.nan
        for entry in range(first, last):
            if groups[entry] == baseline:
                single = losses[entry, 0]
        for entry in range(first, last):
            charge(
                ledger,
                groups[entry],
                weights[entry],
                losses[entry],
                expected[t],
                expected[t],
                realised[t],
                single,
            )
