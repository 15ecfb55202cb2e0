"""Algorithm 1 as a textbook would print it: one row at a time, one awake group at a time.

This is what the library is compared with, for its numbers and for its speed. It is plain
NumPy on purpose, and uses nothing of groupwise.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Naive(NamedTuple):
    """What was played: T values, T x N (NaN in `advice`, 0 in `weights` where asleep), N sums."""

    prediction: Floats  # the weighted mean of the advice
    expected_loss: Floats  # of the play: one expert drawn by weight, or the mean
    advice: Floats
    weights: Floats
    group_loss: Floats  # sum of expected_loss over each group's rows


def log_weight(regret: float, spread: float) -> float:
    """AdaNormalHedge: log of (Φ(R+1, C+1) − Φ(R−1, C+1)) / 2, with Φ(R, C) = exp([R]₊² / 3C)."""
    upper = max(regret + 1, 0.0) ** 2 / (3 * (spread + 1))
    lower = max(regret - 1, 0.0) ** 2 / (3 * (spread + 1))
    if upper == lower:  # both 0: the expert is so bad that it has no weight
        return -math.inf
    return upper + math.log(-math.expm1(lower - upper)) - math.log(2)


def naive(
    features: NDArray[Any],
    label: NDArray[Any],
    membership: NDArray[Any],
    *,
    penalty: float = 1.0,
    play: Literal["sample", "mean"] = "sample",
    clip: bool = False,
) -> Naive:
    """Online ridge per group under AdaNormalHedge, for square loss and labels in [0, 1].

    `membership` is T x N, 0/1 or fractional. Experts have equal prior masses.
    """
    rows, groups = membership.shape
    dimension = features.shape[1]
    inverse = np.stack([np.eye(dimension) / penalty] * groups)  # (penalty I + Σ w x xᵀ)⁻¹
    theta = np.zeros((groups, dimension))
    regret = np.zeros(groups)
    spread = np.zeros(groups)
    prediction = np.full(rows, 0.5)  # where nobody is awake: the middle of the range
    expected_loss = (prediction - label) ** 2
    advice = np.full((rows, groups), np.nan)
    weights = np.zeros((rows, groups))

    for t in range(rows):
        x, y, awake = features[t], label[t], np.flatnonzero(membership[t])
        if len(awake) == 0:
            continue
        for g in awake:
            forecast = theta[g] @ x
            advice[t, g] = min(max(forecast, 0.0), 1.0) if clip else forecast

        log_weights = np.array([log_weight(regret[g], spread[g]) for g in awake])
        if np.all(log_weights == -math.inf):
            log_weights[:] = 0.0
        share = membership[t, awake] * np.exp(log_weights - log_weights.max())
        share /= share.sum()
        weights[t, awake] = share

        losses = (advice[t, awake] - y) ** 2
        prediction[t] = share @ advice[t, awake]
        expected_loss[t] = share @ losses if play == "sample" else (prediction[t] - y) ** 2

        for g, loss in zip(awake, losses, strict=True):
            weight = membership[t, g]
            gain = weight * (expected_loss[t] - loss)
            regret[g] += gain
            spread[g] += abs(gain)
            u = inverse[g] @ x
            s = 1 + weight * (x @ u)
            theta[g] += weight * (y - theta[g] @ x) / s * u
            inverse[g] -= weight * np.outer(u, u) / s

    return Naive(prediction, expected_loss, advice, weights, membership.T @ expected_loss)


def curvature(anchor: float, bound: float) -> float:
    """The largest c with which a parabola at the anchor stays below the loss on [−bound, bound]."""
    a = abs(anchor)
    gap, small = bound - a, 1 / (1 + math.exp(a))
    if abs(gap) < 0.01:
        s, t = small * (1 - small), 2 * small - 1
        return (1 - 1e-6) * s * (1 + t * gap / 3 + (t * t - 2 * s) * gap * gap / 12)
    rise = math.log1p(math.exp(-bound)) - math.log1p(math.exp(-a)) + small * gap
    return (1 - 1e-6) * 2 * rise / gap**2


def anchor_of(v: float, kappa: float) -> float:
    """The root of z + κ tanh(z/2) = v, by Newton's steps."""
    z = v / (1 + kappa / 2)
    for _ in range(50):
        t = math.tanh(z / 2)
        step = (z + kappa * t - v) / (1 + kappa / 2 * (1 - t * t))
        z -= step
        if abs(step) <= 1e-15 * abs(z):
            break
    return z


def naive_logistic(
    features: NDArray[Any],
    label: NDArray[Any],
    membership: NDArray[Any],
    *,
    penalty: float = 1.0,
    bound: float = 8.0,
) -> Naive:
    """Online logistic regression per group, mixed by Specialists, for log loss and labels 0 and 1.

    `membership` is T x N, 0/1 or fractional. Experts have equal prior masses.
    """
    rows, groups = membership.shape
    dimension = features.shape[1]
    inverse = np.stack([np.eye(dimension) / penalty] * groups)
    theta = np.zeros((groups, dimension))
    regret = np.zeros(groups)
    prediction = np.full(rows, 0.5)
    expected_loss = np.full(rows, math.log(2))
    advice = np.full((rows, groups), np.nan)
    weights = np.zeros((rows, groups))

    for t in range(rows):
        x, y, awake = features[t], label[t], np.flatnonzero(membership[t])
        if len(awake) == 0:
            continue
        rounds = {}
        for g in awake:
            u = inverse[g] @ x
            kappa = membership[t, g] * (x @ u)
            z = anchor_of(theta[g] @ x, kappa)
            tau, c = math.tanh(z / 2), curvature(z, bound)
            advice[t, g] = 1 / (1 + math.exp(-(z + kappa * tau / (2 * (1 + c * kappa)))))
            rounds[g] = u, kappa, z, tau, c

        share = membership[t, awake] * np.exp(regret[awake] - regret[awake].max())
        share /= share.sum()
        weights[t, awake] = share
        prediction[t] = share @ advice[t, awake]

        losses = -y * np.log(advice[t, awake]) - (1 - y) * np.log1p(-advice[t, awake])
        p = prediction[t]
        expected_loss[t] = -y * math.log(p) - (1 - y) * math.log1p(-p)
        for g, loss in zip(awake, losses, strict=True):
            weight = membership[t, g]
            regret[g] += weight * (expected_loss[t] - loss)
            u, kappa, z, tau, c = rounds[g]
            pull = tau - 1 / (1 + math.exp(-z)) + y
            theta[g] += weight * (pull / (1 + c * kappa) - tau) * u
            inverse[g] -= weight * c * np.outer(u, u) / (1 + c * kappa)

    return Naive(prediction, expected_loss, advice, weights, membership.T @ expected_loss)
