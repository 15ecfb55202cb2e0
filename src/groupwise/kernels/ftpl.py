"""Follow the perturbed leader: fresh uniform noise, then the oracle.

ε_t = rate / √t, t the clock with the round included, or the horizon where one is given (not 0).
"""

import math
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.kernels.compiled import compiled, inlined
from groupwise.kernels.layout import EXTENT, ONE, Layout, open_place
from groupwise.kernels.linear_oracles import minimise
from groupwise.kernels.noise import add_uniform
from groupwise.kernels.stretch import open_awake


class Costs(NamedTuple):
    """What a group's learner knows; ``seen`` and ``offset`` are sums for hindsight."""

    clock: Vector
    """Σ w."""
    stability: Vector
    """Σ w² ε_t ‖c_t‖₁, part of the run-time bound."""
    offset: Vector
    costs: Vector
    seen: Vector


COSTS = Layout(
    Costs,
    {"clock": ONE, "stability": ONE, "offset": ONE, "costs": (EXTENT,), "seen": (EXTENT,)},
)
LEARNED = ("clock", "stability", "costs")
"""What a learner that begins again forgets."""
costs_of = COSTS.view


@inlined
def noise_scale(rate, horizon, clock, weight):
    """1 / ε_t."""
    time = horizon if horizon > 0.0 else clock + weight
    return math.sqrt(time) / rate


@compiled
def perturbed(state, rate, horizon, group, weight, seed, number, expert, attempt, out):
    """Accumulated costs of a group plus its noise of this round."""
    mine = costs_of(open_place(state), group)
    for j in range(out.size):
        out[j] = mine.costs[j]
    scale = noise_scale(rate, horizon, mine.clock[0], weight)
    add_uniform(seed, number, expert, attempt, scale, out)


@compiled
def advise(state, actions, rate, horizon, message, seed, number, attempt, column, experts, out):
    """M(Σ c + noise) for every awake group; expert numbers are group · experts + column."""
    awake = open_awake(message)
    costs = np.empty(out.shape[2])
    nodes = actions.starts.size - 1
    distance = np.empty(nodes)
    via = np.empty(nodes, dtype=np.int64)
    for a in range(awake.count):
        group, weight = awake.groups[a], awake.weights[a]
        expert = group * experts + column
        perturbed(state, rate, horizon, group, weight, seed, number, expert, attempt, costs)
        minimise(actions, costs, distance, via, out[a, 0])


@compiled
def least_of(actions, costs):
    """min_a ⟨a, c⟩ for every row c of ``costs``."""
    nodes = actions.starts.size - 1
    distance, via = np.empty(nodes), np.empty(nodes, dtype=np.int64)
    action, found = np.empty(costs.shape[1]), np.empty(len(costs))
    for t in range(len(costs)):
        minimise(actions, costs[t], distance, via, action)
        found[t] = 0.0
        for j in range(action.size):
            found[t] += action[j] * costs[t, j]
    return found


@compiled
def update(state, rate, horizon, message, costs):
    """Add the costs to every awake group, weighted."""
    place, awake = open_place(state), open_awake(message)
    norm = 0.0
    for j in range(costs.size):
        norm += abs(costs[j])
    for a in range(awake.count):
        weight = awake.weights[a]
        mine = costs_of(place, awake.groups[a])
        scale = noise_scale(rate, horizon, mine.clock[0], weight)
        for j in range(costs.size):
            mine.costs[j] += weight * costs[j]
        if scale > 0.0:
            mine.stability[0] += weight * weight * norm / scale
        mine.clock[0] += weight


@compiled
def record(state, message, costs, offset, stands_for):
    """Add the costs to the sums of hindsight."""
    place, awake = open_place(state), open_awake(message)
    for a in range(awake.count):
        weight = awake.weights[a] * stands_for
        mine = costs_of(place, awake.groups[a])
        for j in range(costs.size):
            mine.seen[j] += weight * costs[j]
        mine.offset[0] += weight * offset
