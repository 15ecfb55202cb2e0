"""Logits of predictions, and the offsets that bring every group's mean gap to 0."""

import math
from typing import NamedTuple

from groupwise.arrays import Vector
from groupwise.kernels.calibration import count_event, count_round
from groupwise.kernels.compiled import entry, inlined, lean
from groupwise.kernels.layout import ONE, Layout, open_place
from groupwise.kernels.logistic import sigmoid
from groupwise.kernels.losses import log_loss
from groupwise.kernels.rounds import clipped
from groupwise.kernels.stretch import open_awake

TINY = 1e-12
"""In place of a logit of 0: a feature that is 0 in a group's first row would not be its first."""
RATE, SCALE, LOW, HIGH = range(4)
"""In ``parameters``: η, the loss's scale, and the range of predictions."""


class Offsets(NamedTuple):
    """What a group's offset is: b_g = η Σ w (y − q), over predictions q as they were issued."""

    rounds: Vector
    """Σ w."""
    missed: Vector
    """Σ w (y − q)."""


OFFSETS = Layout(Offsets, {"rounds": ONE, "missed": ONE})
offsets_of = OFFSETS.view


@lean
def features(predictions, bound, out):
    """The rows (logit p, 1), with |logit p| ≤ bound."""
    for t in range(predictions.size):
        p = predictions[t]
        found = clipped(math.log(p / (1.0 - p)), -bound, bound)
        out[t, 0] = found if found != 0.0 else TINY
        out[t, 1] = 1.0


@inlined
def _shifted(place, groups, weights, awake, p):
    """σ(logit p + Σ w b_g) over the awake groups."""
    shift = 0.0
    for a in range(awake):
        shift += weights[a] * (place.parameters[RATE] * offsets_of(place, groups[a]).missed[0])
    if shift == 0.0:
        return p
    q = sigmoid(math.log(p / (1.0 - p)) + shift)
    return clipped(q, place.parameters[LOW], place.parameters[HIGH])


@inlined
def _learn(place, bins, groups, weights, awake, stands_for, q, y):
    """Σ w (y − q) grows, and the bins; returns the scaled loss of q."""
    for a in range(awake):
        own = offsets_of(place, groups[a])
        own.rounds[0] += weights[a]
        own.missed[0] += weights[a] * (y - q)
    loss = log_loss(place.parameters[SCALE], q, 1.0 - q, y)
    count_round(bins, groups, weights, awake, stands_for, loss)
    count_event(bins, groups, weights, awake, stands_for, 0, q, y)
    return loss


@entry
def issue(message, awake_message, p):
    """What is predicted in place of p. Changes nothing."""
    awake = open_awake(awake_message)
    return _shifted(open_place(message), awake.groups, awake.weights, awake.count, p)


@entry
def learn(message, bins, awake_message, stands_for, q, y):
    """What a label does after q was predicted."""
    place, awake = open_place(message), open_awake(awake_message)
    _learn(place, bins, awake.groups, awake.weights, awake.count, stands_for, q, y)


@lean
def learn_stream(message, bins, indptr, groups, weights, labels, predictions, losses):
    """Both for every row of a stream whose labels come at once: predictions are p, then q."""
    place = open_place(message)
    for t in range(labels.size):
        part, awake = slice(indptr[t], indptr[t + 1]), indptr[t + 1] - indptr[t]
        if awake > 0:
            predictions[t] = _shifted(place, groups[part], weights[part], awake, predictions[t])
            members = groups[part], weights[part], awake, 1.0
            losses[t] = _learn(place, bins, *members, predictions[t], labels[t])
