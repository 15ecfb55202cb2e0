"""Bins of predicted probabilities: what calibration needs to know of a group, in bounded memory.

A bin keeps Σ w, Σ w², Σ w p and Σ w y of the predictions p that were issued in it. There are 50:
twenty of width 0.04 between 0.1 and 0.9, and fifteen on either side that grow finer toward 0 and 1,
five to a factor of ten down to 0.00016. So the means of a bin are those of predictions that differ
by 0.04, or by a factor of 1.6 at most (for what is rarer than 0.00016, all in one bin), and the
events of one in a thousand are told from those of one in five hundred.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.kernels.compiled import inlined
from groupwise.kernels.layout import EXTENT, ONE, Layout, open_place

_RARE = [step / 10**k for k in (5, 4, 3) for step in (16, 25, 40, 63, 100)]
_EVEN = [(5 + 2 * k) / 50 for k in range(1, 20)]
INNER: Vector = np.array([*_RARE, *_EVEN, *(1.0 - p for p in reversed(_RARE))])
"""The edges between bins, ascending. Bin i has the p with INNER[i − 1] ≤ p < INNER[i]."""
BINS = INNER.size + 1
WEIGHT, SQUARES, PREDICTED, LABELS = range(4)
"""The sums of a bin: Σ w, Σ w², Σ w p, Σ w y."""


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
    Bins, {"rounds": ONE, "loss": ONE, "brier": (EXTENT,), "sums": (EXTENT, BINS, LABELS + 1)}
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
        own.sums[event, found, WEIGHT] += weight
        own.sums[event, found, SQUARES] += weight * weight
        own.sums[event, found, PREDICTED] += weight * p
        own.sums[event, found, LABELS] += weight * y
