"""Follow the perturbed leader for all awake groups: fresh uniform noise, then the oracle.

``state`` holds per group the accumulated costs, the clock Σ w, and Σ w² ε_t ‖c_t‖₁, the stability
part of the run-time bound. ε_t = rate / √t, t the clock with the round included, or the horizon
where one is given (not 0).
"""

import math

import numpy as np
from numba import njit

from groupwise.kernels.linear_oracles import minimise
from groupwise.kernels.noise import add_uniform


@njit(nogil=True, cache=True, forceinline=True)
def noise_scale(rate, horizon, clock, weight):
    """1 / ε_t."""
    time = horizon if horizon > 0.0 else clock + weight
    return math.sqrt(time) / rate


@njit(nogil=True, cache=True)
def perturbed(state, rate, horizon, group, weight, seed, number, expert, attempt, out):
    """Accumulated costs of a group plus its noise of this round."""
    for j in range(out.size):
        out[j] = state.costs[group, j]
    scale = noise_scale(rate, horizon, state.clock[group], weight)
    add_uniform(seed, number, expert, attempt, scale, out)


@njit(nogil=True, cache=True)
def advise(
    state, actions, rate, horizon, groups, weights, seed, number, attempt, column, columns, out
):
    """M(Σ c + noise) for every awake group; expert numbers are group · columns + column."""
    costs = np.empty(state.costs.shape[1])
    nodes = actions.starts.size - 1
    distance = np.empty(nodes)
    via = np.empty(nodes, dtype=np.int64)
    for a in range(groups.size):
        group = groups[a]
        expert = group * columns + column
        perturbed(state, rate, horizon, group, weights[a], seed, number, expert, attempt, costs)
        minimise(actions, costs, distance, via, out[a, column])


@njit(nogil=True, cache=True)
def update(state, rate, horizon, groups, weights, costs):
    """Add the costs to every awake group, weighted."""
    norm = 0.0
    for j in range(costs.size):
        norm += abs(costs[j])
    for a in range(groups.size):
        group, weight = groups[a], weights[a]
        scale = noise_scale(rate, horizon, state.clock[group], weight)
        for j in range(costs.size):
            state.costs[group, j] += weight * costs[j]
        if scale > 0.0:
            state.stability[group] += weight * weight * norm / scale
        state.clock[group] += weight
