"""Bins of predicted probabilities: what calibration needs to know of a group, in bounded memory.

A bin keeps Σ w p, Σ w y, Σ w (1 − y) and Σ w² of the predictions p that were issued in it. There
are 50: twenty of width 0.04 between 0.1 and 0.9, and fifteen on either side that grow finer toward
0 and 1, five to a factor of ten down to 0.00016. So the predictions of a bin differ by 0.04, or by
a factor of 1.6, at most (what is rarer than 0.00016 is in one bin), and events of one in a thousand
are told from those of one in five hundred.
"""

import math
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.layout import EXTENT, ONE, Layout, open_place
from groupwise.kernels.losses import log_loss

_RARE = [step / 10**k for k in (5, 4, 3) for step in (16, 25, 40, 63, 100)]
_EVEN = [(5 + 2 * k) / 50 for k in range(1, 20)]
INNER: Vector = np.array([*_RARE, *_EVEN, *(1.0 - p for p in reversed(_RARE))])
"""The edges between bins, ascending. Bin i has the p with INNER[i − 1] ≤ p < INNER[i]."""
BINS = INNER.size + 1
PREDICTED, POSITIVE, NEGATIVE, SQUARES = range(4)
"""The sums of a bin: Σ w p, Σ w y, Σ w (1 − y), Σ w²."""
NEGLIGIBLE = 1e-18
"""Binomial probabilities that are less than this share of the largest are left out."""


class Bins(NamedTuple):
    """Sums over the settled rounds of a group: of the predictions as they were issued.

    The first axis of ``brier`` and ``sums`` is that of the events that have a probability: one,
    or as many as there are classes.
    """

    rounds: Vector
    """Σ w, in the order of the books': the same number where both began together."""
    loss: Vector
    """Σ w of the scaled loss."""
    brier: Vector
    """Σ w (p − y)²."""
    sums: Vector


BINNED = Layout(
    Bins, {"rounds": ONE, "loss": ONE, "brier": (EXTENT,), "sums": (EXTENT, BINS, SQUARES + 1)}
)
bins_of = BINNED.view


@inlined
def bin_of(inner, p):
    """The bin of a prediction."""
    low, high = 0, BINS - 1
    while low < high:
        middle = (low + high) // 2
        if p < inner[middle]:
            high = middle
        else:
            low = middle + 1
    return low


@inlined
def count_round(message, groups, weights, awake, stands_for, loss):
    """A round and what it lost, for the first so many groups, which are awake."""
    place = open_place(message)
    for a in range(awake):
        own, weight = bins_of(place, groups[a]), weights[a] * stands_for
        own.rounds[0] += weight
        own.loss[0] += weight * loss


@inlined
def count_event(message, groups, weights, awake, stands_for, event, p, y):
    """The same for the probability p of an event, and y: whether it came to be."""
    place = open_place(message)
    found = bin_of(place.parameters, p)
    for a in range(awake):
        own, weight = bins_of(place, groups[a]), weights[a] * stands_for
        own.brier[event] += weight * ((p - y) * (p - y))
        own.sums[event, found, PREDICTED] += weight * p
        own.sums[event, found, POSITIVE] += weight * y
        own.sums[event, found, NEGATIVE] += weight * (1.0 - y)
        own.sums[event, found, SQUARES] += weight * weight


@lean
def count_rows(message, indptr, groups, weights, predictions, labels):
    """Predictions that come from elsewhere; row t is in groups[indptr[t]:indptr[t + 1]]."""
    for t in range(labels.size):
        part, p, y = slice(indptr[t], indptr[t + 1]), predictions[t], labels[t]
        members = groups[part], weights[part], indptr[t + 1] - indptr[t], 1.0
        count_round(message, *members, log_loss(1.0, p, 1.0 - p, y))
        count_event(message, *members, 0, p, y)


@inlined
def _ratio(n, p, k):
    """P(k + 1) / P(k) of the binomial distribution."""
    return (n - k) / (k + 1.0) * (p / (1.0 - p))


@inlined
def _quantiles(n, p, levels, out):
    """The least k with P(at most k of n) ≥ level, for ascending levels; as share of n.

    Probabilities are relative to that of the most likely k, from which they fall off on both sides:
    neither a power nor a factorial is needed, and none is too small or large for a number.
    """
    peak = min(math.floor((n + 1.0) * p), n)
    first, below = peak, 0.0
    chance = 1.0
    while first > 0.0 and chance > NEGLIGIBLE:
        first -= 1.0
        chance /= _ratio(n, p, first)
        below += chance
    start = chance
    total, k, chance = below + 1.0, peak, 1.0
    while k < n and chance > NEGLIGIBLE:
        chance *= _ratio(n, p, k)
        total += chance
        k += 1.0
    k, chance, reached = first, start, start
    for i in range(levels.size):
        while reached < levels[i] * total and k < n and chance > 0.0:
            chance *= _ratio(n, p, k)
            k += 1.0
            reached += chance
        out[i] = k / n


@lean
def quantiles(n, p, levels, out):
    """Binomial quantiles as shares: the row ``out[b]`` for n[b] trials of probability p[b]."""
    for b in range(n.size):
        if 0.0 < p[b] < 1.0:
            _quantiles(n[b], p[b], levels, out[b])
        else:
            out[b, :] = p[b]


@lean
def errors_of_calibrated(n, p, share, levels, orders, work, out):
    """Σ_b share_b |k_b / n_b − p_b| of simulated groups, k_b ~ Binomial(n_b, p_b), to ``out``.

    Every bin runs through its quantiles at the ``levels`` once, in its own order: a Latin square,
    whose figures scatter less than those of independent draws.
    """
    out[:] = 0.0
    for b in range(n.size):
        if 0.0 < p[b] < 1.0:
            _quantiles(n[b], p[b], levels, work)
            for i in range(levels.size):
                out[orders[b, i]] += share[b] * abs(work[i] - p[b])
