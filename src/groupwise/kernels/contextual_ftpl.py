"""Contextual follow the perturbed leader for all awake groups: Laplace noise on S, then the oracle.

``state`` holds per group the accumulated costs per distinct context and label, the clock Σ w, and
Σ w (1 − e^{−κ ε_t w}), the stability part of the run-time bound. The first ``fakes`` contexts are
S, the ones that get fake samples; ε_t = rate / √t, t the clock with the round included.
"""

import math

import numpy as np
from numba import njit

from groupwise.kernels.erm_oracles import STUMPS, best_row, best_stump, stump_value
from groupwise.kernels.noise import add_laplace


@njit(nogil=True, cache=True)
def perturbed(state, rate, fakes, group, weight, seed, number, expert, attempt, out):
    """Accumulated costs of a group plus its fake samples of this round."""
    count, labels = out.shape
    for x in range(count):
        for label in range(labels):
            out[x, label] = state.costs[group, x, label]
    scale = math.sqrt(state.clock[group] + weight) / rate
    add_laplace(seed, number, expert, attempt, scale, out[:fakes].reshape(-1))


@njit(nogil=True, cache=True)
def advise(
    state,
    kind,
    contexts,
    table,
    count,
    fakes,
    rate,
    groups,
    weights,
    x,
    place,
    seed,
    number,
    attempt,
    column,
    columns,
    out,
):
    """The oracle's answer on history plus fake samples, at the context x (number ``place``)."""
    labels = state.costs.shape[2]
    costs = np.empty((count, labels))
    sums = np.empty(contexts.shape[1])
    for a in range(groups.size):
        group = groups[a]
        expert = group * columns + column
        perturbed(state, rate, fakes, group, weights[a], seed, number, expert, attempt, costs)
        if kind == STUMPS:
            for label in range(labels):
                stump, _ = best_stump(contexts, count, costs, label, sums)
                out[a, column, label] = stump_value(stump, x)
        else:
            policy, _ = best_row(table, count, costs)
            for label in range(labels):
                out[a, column, label] = table[policy, place, label]


@njit(nogil=True, cache=True)
def update(state, rate, kappa, groups, weights, place, costs):
    """Add the costs at context ``place`` to every awake group, weighted."""
    for a in range(groups.size):
        group, weight = groups[a], weights[a]
        epsilon = rate / math.sqrt(state.clock[group] + weight)
        for label in range(costs.size):
            state.costs[group, place, label] += weight * costs[label]
        state.stability[group] -= weight * math.expm1(-kappa * epsilon * weight)
        state.clock[group] += weight
