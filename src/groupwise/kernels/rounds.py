"""One round of the reduction after the learners spoke: weights, play, and what the label does.

Everything is in scaled losses.
"""

import math
from typing import NamedTuple

from numba import types

from groupwise.arrays import Vector
from groupwise.kernels import prod
from groupwise.kernels.adanormalhedge import exponent, spread
from groupwise.kernels.calibration import count_event, count_round
from groupwise.kernels.compiled import entry, inlined, lean
from groupwise.kernels.experts import experts_of
from groupwise.kernels.layout import LEARNER, ONE, Layout, Message, open_place
from groupwise.kernels.losses import LOG, log_loss, value
from groupwise.kernels.philox import AGGREGATOR, uniform
from groupwise.kernels.specialists import substitution
from groupwise.kernels.stretch import open_awake
from groupwise.kernels.vectors import prefetch

GIVEN, ADA_NORMAL_HEDGE, SPECIALISTS, PROD = range(4)
AGGREGATORS = {
    "": GIVEN,
    "AdaNormalHedge": ADA_NORMAL_HEDGE,
    "Specialists": SPECIALISTS,
    "Prod": PROD,
}
"""The kernels' numbers for what an aggregator names as its kernel; GIVEN: it is in Python."""
MEAN, SAMPLE, SUBSTITUTION, ROOT = range(4)
PLAYS = {"mean": MEAN, "sample": SAMPLE, "substitution": SUBSTITUTION, "root": ROOT}

NOBODY, LAST = -1, -2
"""Which awake group's first learner is the single model: none, or the last group's."""
SMALL = 1e-100
"""Memberships below this, which a mass might make 0, are weighed in logarithms."""
MANY = 2_048
"""Groups from which on their figures are fetched ahead."""


class Books(NamedTuple):
    """Sums over the settled rounds of a group, weighted by membership.

    Certificates are differences of some of them, so these have beside them what rounding has left
    out (Kahan's and Babuška's sums): after n rounds the two together miss their sum by some 1e-16
    of it, where plain sums miss theirs by up to n times as much.
    """

    rounds: Vector
    loss: Vector
    """Losses of the plays; their expectation over the aggregator's draw where it samples."""
    realised_loss: Vector
    delay: Vector
    baseline_loss: Vector
    expert_loss: Vector
    """Losses of each learner of the group, at settlement."""
    loss_rest: Vector
    delay_rest: Vector
    expert_loss_rest: Vector


class Settings(NamedTuple):
    """What the kernels need to know of a configuration, and where the sums are."""

    aggregator: int
    play: int
    loss: int
    seed: int
    numbers: Vector
    """η, the loss's scale, the range that advice is clipped to, and the largest there may be."""
    largest: Vector
    """The largest |r_i| of any expert in any round; above 1 the guarantee is void."""
    experts: int
    books: int
    bins: int
    """Those of predicted probabilities; 0 where predictions are none."""
    own: int
    """Records that the aggregator keeps beside R and C, laid out by itself; 0 where it has none."""
    common: Vector
    """What it keeps of all experts together."""


BOOKS = Layout(
    Books,
    {
        "rounds": ONE,
        "loss": ONE,
        "realised_loss": ONE,
        "delay": ONE,
        "baseline_loss": ONE,
        "expert_loss": (LEARNER,),
        "loss_rest": ONE,
        "delay_rest": ONE,
        "expert_loss_rest": (LEARNER,),
    },
)
SETTINGS = Message(Settings)
books_of, open_settings = BOOKS.view, SETTINGS.open


@inlined
def products(settings, groups, weights, probabilities, top):
    """q_i I_i w_i / exp(top), from ln w_i less ln spread; their sum."""
    spreads = settings.aggregator == ADA_NORMAL_HEDGE and top > -math.inf
    place = open_place(settings.experts)
    total = 0.0
    for a in range(probabilities.shape[0]):
        own = experts_of(place, groups[a])
        for k in range(probabilities.shape[1]):
            below = probabilities[a, k] - top
            probabilities[a, k] = own.mass[k] * weights[a]
            if below < 0.0:
                probabilities[a, k] *= math.exp(below)
            if spreads and probabilities[a, k] > 0.0:
                probabilities[a, k] *= spread(own.regret[k], own.absolute[k])
            total += probabilities[a, k]
    return total


@inlined
def products_of_logarithms(settings, groups, weights, probabilities, top):
    """The same up to a common factor, where the products themselves might all be 0."""
    spreads = settings.aggregator == ADA_NORMAL_HEDGE and top > -math.inf
    place = open_place(settings.experts)
    highest = -math.inf
    for a in range(probabilities.shape[0]):
        own = experts_of(place, groups[a])
        for k in range(probabilities.shape[1]):
            if own.mass[k] == 0.0:
                probabilities[a, k] = -math.inf
                continue
            found = 0.0 if top == -math.inf else probabilities[a, k]
            if spreads and found > -math.inf:
                found += math.log(spread(own.regret[k], own.absolute[k]))
            probabilities[a, k] = found + math.log(own.mass[k]) + math.log(weights[a])
            highest = max(highest, probabilities[a, k])
    total = 0.0
    for a in range(probabilities.shape[0]):
        for k in range(probabilities.shape[1]):
            probabilities[a, k] = math.exp(probabilities[a, k] - highest)
            total += probabilities[a, k]
    return total


@inlined
def weigh(settings, groups, weights, probabilities):
    """p_i ∝ q_i I_i w(R_i, C_i) over the awake experts; p_i ∝ q_i I_i where all of these are 0.

    With ``GIVEN`` (an aggregator written in Python) ``probabilities`` comes holding the ln w. What
    has no mass is no expert, here and below: its group has fewer learners than another.
    """
    kind, eta = settings.aggregator, settings.numbers[0]
    place = open_place(settings.experts)
    count, learners = probabilities.shape
    top = -math.inf
    least = math.inf
    for a in range(count):
        own = experts_of(place, groups[a])
        least = min(least, weights[a])
        for k in range(learners):
            if own.mass[k] == 0.0:
                probabilities[a, k] = -math.inf
            elif kind == ADA_NORMAL_HEDGE:
                probabilities[a, k] = exponent(own.regret[k], own.absolute[k])
            elif kind == SPECIALISTS:
                probabilities[a, k] = eta * own.regret[k]
            top = max(top, probabilities[a, k])
    if least < SMALL:
        total = products_of_logarithms(settings, groups, weights, probabilities, top)
    else:
        total = products(settings, groups, weights, probabilities, top)
    for a in range(count):
        for k in range(learners):
            probabilities[a, k] /= total


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
def expectation(probabilities, values):
    """Σ p_i v_i."""
    total = 0.0
    for a in range(values.shape[0]):
        for k in range(values.shape[1]):
            total += probabilities[a, k] * values[a, k]
    return total


@inlined
def complement(probabilities, values):
    """Σ p_i (1 − v_i), with all its digits where Σ p_i v_i is near 1."""
    total = 0.0
    for a in range(values.shape[0]):
        for k in range(values.shape[1]):
            total += probabilities[a, k] * (1.0 - values[a, k])
    return total


@inlined
def clipped(x, low, high):
    """x, or the end of the range that it is beyond; what is not a number stays so."""
    if x < low:
        return low
    return high if x > high else x


@inlined
def play_now(settings, groups, weights, number, advice, probabilities):
    """Clip the advice, weigh the experts, play. Changes no state.

    The play is the mean of the advice, the advice of one expert, the substitution, or the root. It
    is not a number, and the advice as it was from there on, where some advice is none or too large.
    """
    low, high, largest = settings.numbers[2], settings.numbers[3], settings.numbers[4]
    count, learners = advice.shape
    for a in range(count):
        for k in range(learners):
            if not abs(advice[a, k]) <= largest:
                return math.nan
            advice[a, k] = clipped(advice[a, k], low, high)
    if settings.play == ROOT:
        return prod.play(settings, groups, weights, advice, probabilities)
    weigh(settings, groups, weights, probabilities)
    if settings.play == SUBSTITUTION:
        return substitution(settings.numbers[0], probabilities, advice, low, high)
    if settings.play == SAMPLE:
        place = draw(settings.seed, number, probabilities)
        return advice[place // learners, place % learners]
    return clipped(expectation(probabilities, advice), low, high)


@inlined
def losses_of(settings, prediction, y, advice, probabilities, losses):
    """losses of the advice on y, and ℓ̂, what the aggregator is charged: ``(charged, realised)``.

    A mean of probabilities is charged for Σ p_i a_i and Σ p_i (1 − a_i): the prediction shown is
    the first of them, rounded, and near 1 a double has few digits of the second.
    """
    scale = settings.numbers[1]
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            losses[a, k] = value(settings.loss, scale, advice[a, k], y)
    if settings.loss == LOG and settings.play == MEAN and advice.size > 0:
        p, rest = expectation(probabilities, advice), complement(probabilities, advice)
        realised = log_loss(scale, p, rest, y)
    else:
        realised = value(settings.loss, scale, prediction, y)
    if settings.play == SAMPLE:
        return expectation(probabilities, losses), realised
    return realised, realised


@inlined
def add(total, rest, k, amount):
    """total[k] += amount; what is lost in that goes to ``rest``."""
    before = total[k]
    total[k] = before + amount
    rest[k] += (before - total[k]) + amount


@inlined
def enter(settings, groups, weights, stands_for, losses, charged, played, realised, single):
    """What a label does: r_i = I_i(ℓ̂ − ℓ_i), R_i += r_i, C_i += |r_i|, and a round in the books.

    ``charged`` is ℓ̂ at settlement, ``played`` that of what was really played.
    """
    experts, books = open_place(settings.experts), open_place(settings.books)
    for a in range(losses.shape[0]):
        expert, book = experts_of(experts, groups[a]), books_of(books, groups[a])
        weight = weights[a] * stands_for
        for k in range(losses.shape[1]):
            if expert.mass[k] == 0.0:
                continue
            regret = weights[a] * (charged - losses[a, k])
            expert.regret[k] += regret
            expert.absolute[k] += abs(regret)
            settings.largest[0] = max(settings.largest[0], abs(regret))
            add(book.expert_loss, book.expert_loss_rest, k, weight * losses[a, k])
        book.rounds[0] += weight
        add(book.loss, book.loss_rest, 0, weight * played)
        book.realised_loss[0] += weight * realised
        add(book.delay, book.delay_rest, 0, weight * (played - charged))
        book.baseline_loss[0] += weight * single


@inlined
def bin_it(settings, groups, weights, awake, stands_for, issued, y, realised):
    """What the label says of the prediction as it was issued, where that is a probability."""
    if settings.bins != 0:
        members = groups, weights, awake, stands_for
        count_round(settings.bins, *members, realised)
        count_event(settings.bins, *members, 0, issued, y)


@entry
def predict(message, awake_message, number, said):
    """Steps (a) and (b), after the learners spoke: ``said`` is advice, then probabilities."""
    settings, awake = open_settings(message), open_awake(awake_message)
    return play_now(settings, awake.groups, awake.weights, number, said[0], said[1])


@entry
def follow(message, awake_message, number, probabilities):
    """The weights of the awake experts, and the flat place of the one to follow."""
    settings, awake = open_settings(message), open_awake(awake_message)
    weigh(settings, awake.groups, awake.weights, probabilities)
    return draw(settings.seed, number, probabilities)


@entry
def score(message, prediction, y, said, losses):
    """The losses of an earlier play on its label: ``(charged, realised)``."""
    return losses_of(open_settings(message), prediction, y, said[0], said[1], losses)


@entry
def settle(
    message,
    awake_message,
    number,
    y,
    stands_for,
    baseline,
    said,
    issued,
    played,
    realised,
    single,
):
    """Step (c) for the aggregator and the books, after the learners spoke and were updated.

    ``said`` has room for advice, probabilities and losses, of so many groups or more. ``baseline``
    is the place of the awake group whose first learner is the single model, or NOBODY, or LAST.
    ``issued`` is what was played, ``played``, ``realised`` and ``single`` are the losses of it;
    ``played`` is not a number where that is this very play. Returns the play as of now; where that
    is not a number nothing is entered.
    """
    settings, awake = open_settings(message), open_awake(awake_message)
    count = awake.count  # of rows in use: there may be room for more
    advice, probabilities, losses = said[0, :count], said[1, :count], said[2, :count]
    prediction = play_now(settings, awake.groups, awake.weights, number, advice, probabilities)
    if math.isnan(prediction):
        return prediction
    charged, own = losses_of(settings, prediction, y, advice, probabilities, losses)
    if math.isnan(played):
        issued, played, realised = prediction, charged, own
        if baseline == LAST:
            baseline = awake.count - 1
        single = losses[baseline, 0] if baseline >= 0 else math.nan
    groups, weights = awake.groups, awake.weights
    if settings.aggregator == PROD:
        prod.update(settings, groups, weights, advice, prediction, y)
    enter(settings, groups, weights, stands_for, losses, charged, played, realised, single)
    bin_it(settings, groups, weights, count, stands_for, issued, y, realised)
    return prediction


@entry
def absorb_and_enter(message, awake_message, stands_for, losses, charged, played, realised, single):
    """The aggregator's update and the books' entry, with losses that come from elsewhere."""
    settings, awake = open_settings(message), open_awake(awake_message)
    groups, weights = awake.groups, awake.weights
    enter(settings, groups, weights, stands_for, losses, charged, played, realised, single)


@inlined
def _fetch(settings, group):
    """Ask for a group's figures."""
    for message in (settings.experts, settings.books):
        place = open_place(message)
        prefetch(place.pool, place.block[group], 2 * place.learners + 8)
    if settings.own != 0:
        place = open_place(settings.own)
        prefetch(place.pool, place.block[group], prod.SIZE * place.learners)


@lean
def settle_stream(
    message,
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
    """``settle`` for every row of a stream whose labels come at once.

    Row t has the awake groups ``groups[indptr[t]:indptr[t + 1]]``; advice, probabilities and losses
    are aligned with that list. The first learner of the group ``baseline`` is the single model;
    ``nobody`` is played where no group is awake. Returns how many rows were settled: all, or those
    before the first whose play is not a number.
    """
    settings = open_settings(message)
    many = open_place(settings.books).groups > MANY
    for t in range(labels.size):
        if many and t + 4 < labels.size:  # what is needed soon is on its way meanwhile
            for e in range(indptr[t + 4], indptr[t + 5]):
                _fetch(settings, groups[e])
        first, last = indptr[t], indptr[t + 1]
        y = labels[t]
        if first == last:
            prediction[t] = nobody
            expected[t] = value(settings.loss, settings.numbers[1], nobody, y)
            realised[t] = expected[t]
            continue
        awake, member = groups[first:last], weights[first:last]
        said, odds, lost = advice[first:last], probabilities[first:last], losses[first:last]
        prediction[t] = play_now(settings, awake, member, first_number + t, said, odds)
        if math.isnan(prediction[t]):
            return t
        expected[t], realised[t] = losses_of(settings, prediction[t], y, said, odds, lost)
        single = math.nan
        for e in range(last - first):
            if awake[e] == baseline:
                single = lost[e, 0]
        if settings.aggregator == PROD:
            prod.update(settings, awake, member, said, prediction[t], y)
        enter(settings, awake, member, 1.0, lost, expected[t], expected[t], realised[t], single)
        bin_it(settings, awake, member, last - first, 1.0, prediction[t], y, realised[t])
    return labels.size


_SAID = types.float64[:, :, ::1]
_AWAKE = (types.int64, types.int64, types.int64)
SIGNATURES = {
    predict: (*_AWAKE, _SAID),
    settle: (*_AWAKE, *(types.float64,) * 2, types.int64, _SAID, *(types.float64,) * 4),
}
