"""Prod: its play, every step of its proof in exact arithmetic, and its certificate on any stream."""

import math
from fractions import Fraction
from itertools import count

import mpmath
import numpy as np
import pytest

import groupwise as gw
from groupwise.aggregators import Prod
from groupwise.checks.aggregators import Expert
from groupwise.kernels.rates import RATES, SHARES
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction
from groupwise.regret.certificate import aggregator_bounds, totals

mpmath.mp.dps = 40
SQUARE = gw.losses.Square()
SUM = sum(SHARES)


class Arena:
    """A reduction on experts that say what they are told, and the exact sums that prove it."""

    def __init__(self, masses, learners=1):
        self.learners = learners
        self.names = [f"x{i}" for i in range(64)]
        self.reduction = Reduction([Expert(k) for k in range(learners)], Prod(), SQUARE)
        self.regret = {}
        self.distance = {}
        self.number = count()
        self.groups = 0
        for mass in masses:
            self.add(mass)

    def add(self, mass):
        """A newcomer, with its mass for each of its experts."""
        new = np.array([self.groups])
        self.groups += 1
        self.reduction.reserve(new, self.learners, new, [mass * self.learners])
        self.regret[self.groups - 1] = [Fraction(0)] * self.learners
        self.distance[self.groups - 1] = [Fraction(0)] * self.learners

    def predict(self, weights, advice):
        """Open a round: all awake groups have the same advice, an expert's for each learner."""
        groups = np.flatnonzero(weights)
        awake = Awake(groups, np.ascontiguousarray(weights[groups], dtype=float))
        row = Row(np.arange(self.learners), np.asarray(advice, float), self.names[: self.learners])
        number = next(self.number)
        return number, awake, row, self.reduction.predict(number, awake, row)

    def learn(self, opened, label, late=False):
        """Settle it, and do the sums exactly; the play as of now."""
        number, awake, row, play = opened
        now = self.reduction.learn(number, awake, row, label, play if late else None)
        p, y = Fraction(now), Fraction(label)
        for group, weight in zip(awake.groups.tolist(), awake.weights.tolist(), strict=True):
            for k, a in enumerate(row.values.tolist()):
                d = p - Fraction(a)
                lost = (p - y) ** 2 - (Fraction(a) - y) ** 2
                self.regret[group][k] += Fraction(weight) * lost
                self.distance[group][k] += Fraction(weight) * d * d
        return now

    @property
    def bounds(self):
        return aggregator_bounds(self.reduction, self.groups)

    def check(self):
        """No expert's regret, computed exactly, exceeds its bound; the largest share of it."""
        bounds, largest = self.bounds, 0.0
        for group, regrets in self.regret.items():
            for regret, bound in zip(regrets, bounds[group].tolist(), strict=True):
                assert math.isfinite(bound)
                assert regret <= Fraction(bound), (group, float(regret), bound)
                if bound > 0.0:
                    largest = max(largest, float(regret) / bound)
        return largest
