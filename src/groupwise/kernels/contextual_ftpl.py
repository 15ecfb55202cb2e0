"""Contextual follow the perturbed leader: Laplace noise on S, then the oracle.

The first ``fakes`` contexts are S, the ones that get fake samples; ε_t = rate / √t, t the clock
with the round included. Here a *column* (``OWN``) is a distinct context, the *learner*
axis is the labels, and the extent is what stumps look at: the bits of a context, and one for all.
"""

import math
from typing import NamedTuple

import numpy as np
from numba import types

from groupwise.arrays import Vector
from groupwise.kernels.compiled import compiled, lean
from groupwise.kernels.erm_oracles import best_row, best_sums, stump_value
from groupwise.kernels.layout import EXTENT, LEARNER, ONE, OWN, Layout, open_place
from groupwise.kernels.noise import add_laplace
from groupwise.kernels.stretch import NO_ROOM, READY, open_awake


class History(NamedTuple):
    """What a group's learner knows, and (``seen``, ``offset``) the sums that hindsight needs."""

    clock: Vector
    """Σ w."""
    stability: Vector
    """Σ w (1 − e^{−κ ε_t w}), part of the run-time bound."""
    offset: Vector
    sums: Vector
    """Of the costs, per label: over the contexts with each bit, and over all; for stumps."""
    costs: Vector
    """Per distinct context and label."""
    seen: Vector


HISTORY = Layout(
    History,
    {
        "clock": ONE,
        "stability": ONE,
        "offset": ONE,
        "sums": (LEARNER, EXTENT),
        "costs": (OWN, LEARNER),
        "seen": (OWN, LEARNER),
    },
)
LEARNED = ("clock", "stability", "sums", "costs")
"""What a learner that begins again forgets."""
history_of = HISTORY.view


@compiled
def perturbed(state, rate, fakes, group, weight, seed, number, expert, attempt, out):
    """Accumulated costs of a group plus its fake samples of this round."""
    mine = history_of(open_place(state), group)
    count, labels = out.shape
    for x in range(count):
        for label in range(labels):
            out[x, label] = mine.costs[x, label]
    scale = math.sqrt(mine.clock[0] + weight) / rate
    add_laplace(seed, number, expert, attempt, scale, out[:fakes].reshape(-1))


@compiled
def advise_table(
    state, table, fakes, rate, message, place, seed, number, attempt, column, experts, out
):
    """The best row of a table on history plus fake samples, at the context number ``place``."""
    awake = open_awake(message)
    labels = table.shape[2]
    costs = np.empty((table.shape[1], labels))
    for a in range(awake.count):
        group, weight = awake.groups[a], awake.weights[a]
        expert = group * experts + column
        perturbed(state, rate, fakes, group, weight, seed, number, expert, attempt, costs)
        policy, _ = best_row(table, table.shape[1], costs)
        for label in range(labels):
            out[a, 0, label] = table[policy, place, label]


@compiled
def advise_stumps(
    state, contexts, fakes, rate, message, x, seed, number, attempt, column, experts, out
):
    """The best stumps on history plus fake samples, at the context x.

    The noise is added to the sums of the costs, four contexts at a time.
    """
    place, awake = open_place(state), open_awake(message)
    labels, features = place.learners, contexts.shape[1]
    noise = np.empty(fakes * labels)
    sums = np.empty(features + 1)
    for a in range(awake.count):
        group = awake.groups[a]
        mine = history_of(place, group)
        noise[:] = 0.0
        scale = math.sqrt(mine.clock[0] + awake.weights[a]) / rate
        add_laplace(seed, number, group * experts + column, attempt, scale, noise)
        for label in range(labels):
            for b in range(features + 1):
                sums[b] = mine.sums[label, b]
            s = 0
            while s + 4 <= fakes:
                z_0, z_1 = noise[s * labels + label], noise[(s + 1) * labels + label]
                z_2, z_3 = noise[(s + 2) * labels + label], noise[(s + 3) * labels + label]
                sums[features] += (z_0 + z_1) + (z_2 + z_3)
                for b in range(features):
                    sums[b] += (z_0 * contexts[s, b] + z_1 * contexts[s + 1, b]) + (
                        z_2 * contexts[s + 2, b] + z_3 * contexts[s + 3, b]
                    )
                s += 4
            while s < fakes:
                z_0 = noise[s * labels + label]
                sums[features] += z_0
                for b in range(features):
                    sums[b] += z_0 * contexts[s, b]
                s += 1
            stump, _ = best_sums(sums)
            out[a, 0, label] = stump_value(stump, x)


@lean
def update(state, rate, kappa, message, place, context, costs):
    """Add the costs at context number ``place`` to every awake group, and to the sums, weighted.

    NO_ROOM, and nothing done, where a group's record does not reach that far.
    """
    every, awake = open_place(state), open_awake(message)
    for a in range(awake.count):
        if every.width[awake.groups[a]] <= place:
            return NO_ROOM
    for a in range(awake.count):
        weight = awake.weights[a]
        mine = history_of(every, awake.groups[a])
        for label in range(costs.size):
            cost = weight * costs[label]
            mine.costs[place, label] += cost
            if every.extent > 0:
                mine.sums[label, every.extent - 1] += cost
                for b in range(every.extent - 1):
                    mine.sums[label, b] += cost * context[b]
        epsilon = rate / math.sqrt(mine.clock[0] + weight)
        mine.stability[0] -= weight * math.expm1(-kappa * epsilon * weight)
        mine.clock[0] += weight
    return READY


@lean
def record(state, message, place, costs, offset, stands_for):
    """Add the costs to the sums of hindsight."""
    every, awake = open_place(state), open_awake(message)
    for a in range(awake.count):
        weight = awake.weights[a] * stands_for
        mine = history_of(every, awake.groups[a])
        for label in range(costs.size):
            mine.seen[place, label] += weight * costs[label]
        mine.offset[0] += weight * offset


_WORD, _NUMBER, _NUMBERS = types.int64, types.float64, types.float64[::1]
SIGNATURES = {
    advise_stumps: (
        *(_WORD, types.float64[:, ::1], _WORD, _NUMBER, _WORD, _NUMBERS),
        *((_WORD,) * 5),
        types.float64[:, :, ::1],
    ),
    update: (_WORD, _NUMBER, _NUMBER, _WORD, _WORD, _NUMBERS, _NUMBERS),
    record: (_WORD, _WORD, _WORD, _NUMBERS, _NUMBER, _NUMBER),
}
