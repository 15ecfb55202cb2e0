"""Contextual follow the perturbed leader for all awake groups: Laplace noise on S, then the oracle.

``state`` holds per group the accumulated costs per distinct context and label, the clock Σ w, and
Σ w (1 − e^{−κ ε_t w}), the stability part of the run-time bound; for stumps also what they need of
the costs, per label their sum over all contexts and over those with each bit. The first ``fakes``
contexts are S, the ones that get fake samples; ε_t = rate / √t, t the clock with the round
included.
"""

import math
from typing import Any

import numpy as np
from numba import njit, types

from groupwise.kernels.addresses import floats
from groupwise.kernels.erm_oracles import best_row, best_sums, stump_value
from groupwise.kernels.noise import add_laplace
from groupwise.states import Index, Vector

_INDEX = types.int64[::1]
_NUMBERS = types.float64[::1]
_ADVICE = types.float64[:, :, ::1]
ADVISE_STUMPS = (_INDEX, _INDEX, _NUMBERS, _NUMBERS, types.int64, types.int64, _ADVICE)
UPDATE_STUMPS = (_INDEX, _INDEX, _NUMBERS, types.int64, _NUMBERS)
"""The types of the arguments, so that the compiled functions do not look at them at every call."""


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
def advise_table(
    state,
    table,
    fakes,
    rate,
    groups,
    weights,
    place,
    seed,
    number,
    attempt,
    column,
    columns,
    out,
):
    """The best row of a table on history plus fake samples, at the context number ``place``."""
    labels = state.costs.shape[2]
    costs = np.empty((table.shape[1], labels))
    for a in range(groups.size):
        group = groups[a]
        expert = group * columns + column
        perturbed(state, rate, fakes, group, weights[a], seed, number, expert, attempt, costs)
        policy, _ = best_row(table, table.shape[1], costs)
        for label in range(labels):
            out[a, column, label] = table[policy, place, label]


def stump_handle(
    contexts: Vector, fakes: int, numbers: Vector, seat: tuple[int, ...], state: Any
) -> tuple[Index, tuple[Vector, ...]]:
    """Sizes and addresses of all that stumps need; whoever holds them also holds the arrays."""
    groups, room, labels = state.costs.shape
    sizes = (groups, room, labels, contexts.shape[1], fakes, *seat)
    arrays = (contexts, numbers, state.costs, state.clock, state.stability, state.sums)
    return np.array([*sizes, *(array.ctypes.data for array in arrays)], dtype=np.int64), arrays


@njit(nogil=True, cache=True)
def advise_stumps(handle, groups, weights, x, number, attempt, out):
    """The best stumps on history plus fake samples, at the context x.

    The noise is added to the sums of the costs, four contexts at a time.
    """
    count, labels, features = handle[0], handle[2], handle[3]
    fakes, column, columns, seed = handle[4], handle[5], handle[6], handle[7]
    contexts = floats(handle[8], (fakes, features))
    rate = floats(handle[9], (2,))[0]
    clock = floats(handle[11], (count,))
    history = floats(handle[13], (count, labels, features + 1))
    noise = np.empty(fakes * labels)
    sums = np.empty(features + 1)
    for a in range(groups.size):
        group = groups[a]
        noise[:] = 0.0
        scale = math.sqrt(clock[group] + weights[a]) / rate
        add_laplace(seed, number, group * columns + column, attempt, scale, noise)
        for label in range(labels):
            for b in range(features + 1):
                sums[b] = history[group, label, b]
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
            out[a, column, label] = stump_value(stump, x)


@njit(nogil=True, cache=True)
def update_stumps(handle, groups, weights, place, costs):
    """Add the costs at context ``place`` to every awake group, and to the sums, weighted."""
    count, room, labels, features = handle[0], handle[1], handle[2], handle[3]
    context = floats(handle[8], (room, features))[place]
    rate, kappa = floats(handle[9], (2,))
    every = floats(handle[10], (count, room, labels))
    clock = floats(handle[11], (count,))
    stability = floats(handle[12], (count,))
    sums = floats(handle[13], (count, labels, features + 1))
    for a in range(groups.size):
        group, weight = groups[a], weights[a]
        for label in range(labels):
            cost = weight * costs[label]
            every[group, place, label] += cost
            sums[group, label, features] += cost
            for b in range(features):
                sums[group, label, b] += cost * context[b]
        epsilon = rate / math.sqrt(clock[group] + weight)
        stability[group] -= weight * math.expm1(-kappa * epsilon * weight)
        clock[group] += weight


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
