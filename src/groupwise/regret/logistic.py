"""stub"""

from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.protocols import Hindsight
from groupwise.regret.hindsight import Factor


class Rows(NamedTuple):
    features: Any
    labels: Vector
    weights: Vector


class Quadratic(NamedTuple):
    factor: Factor
    constant: float
    error: float


class Reference(NamedTuple):
    theta: Vector
    loss: float
    reach: float
    weight: float


def curvature(a, b):
    a = np.abs(a)
    g = b - a
    s0 = 1 / (1 + np.exp(a))
    s = s0 * (1 - s0)
    t = 2 * s0 - 1
    with np.errstate(all="ignore"):
        full = 2 * (np.log1p(np.exp(-b)) - np.log1p(np.exp(-a)) + s0 * g) / g**2
    return (1 - 1e-6) * np.where(
        abs(g) < 0.01, s * (1 + t * g / 3 + (t * t - 2 * s) * g * g / 12), full
    )


def best_logistic(rows, bound, others=None, reference=None):
    if others is not None:
        h = others.factor.hindsight(1.0)
        return Hindsight(others.constant + 0.5 * h.best, 0.0, False, 1e300, "bracket")
    return Hindsight(0.0, 0.0, False, float(rows.weights.sum() * np.log(2)), "exact")
