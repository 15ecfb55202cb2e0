"""Online logistic regression in its forward form, with exact curvature."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError, is_finite
from groupwise.kernels import logistic, stiff_logistic
from groupwise.kernels.compiled import Kernel
from groupwise.learners.recorders import LogisticRecorder, Recorder
from groupwise.learners.ridge import ROUNDING, QuadraticBank, checked_penalty
from groupwise.losses import Log, Loss
from groupwise.protocols import Hindsight, Setting
from groupwise.regret.logistic import curvature

NARROWEST, WIDEST = 0.01, 500.0
"""Bounds on |x·θ| for which probabilities differ from ½, and from 0 and 1."""
FINE = 4_001
"""Points at which the largest excess is looked for."""
BETWEEN = 1e-4
"""By which share it may be larger between two of them."""
BINARY = -1.0
"""The node of a learner that is in no chain."""


@dataclass(frozen=True)
class Logistic:
    """Online logistic regression: probabilities, one model per group, updated every round.

    With A = λI + Σ w c x xᵀ, P = A⁻¹ over the group's earlier rounds, v = θ·x and κ = w xᵀPx, let z
    be the root of z + κ tanh(z/2) = v, τ = tanh(z/2), π = σ(z) and c the *curvature* of
    ℓ_y(z) = ln(1 + eᶻ) − y z at z: the largest number with which the parabola

        ℓ_y(z) + (π − y)(ζ − z) + c/2 (ζ − z)²

    is at most ℓ_y(ζ) for all |ζ| ≤ b. The advice is σ(z + κτ / (2(1 + cκ))), and a label updates

        θ += w [(τ − π + y)/(1 + cκ) − τ] P x,    P −= w c (P x)(P x)ᵀ / (1 + cκ).

    Labels are 0 and 1 or anything between; features may be of any size and have any offset, and new
    ones are exact, as in :class:`Ridge`. It needs ``losses.Log``.

    Parameters
    ----------
    penalty : λ, from 1e-60 to 1e60; models are penalised by λ/2 ‖θ‖².
    bound : b. The guarantee is against models with |x·θ| ≤ b on the rows of the group, those with
        probabilities from σ(−b) to σ(b): from 0.03 % to 99.97 % with b = 8. A larger bound promises
        more and learns more slowly.
    keep_rows : how many rows of each group are kept while single rounds come in. Log loss has no
        finite sums from which the best model in hindsight could be found, so of further rows only
        what it is at least is known. Replays keep all rows while there is room, and are exact.

    >>> Logistic(penalty=0.5)
    Logistic(penalty=0.5, bound=8.0, keep_rows=2000)

    Guarantee
    ---------
    With M = min_θ λ/2 ‖θ‖² + Σ w (the parabolas at θ·x), the loss is M + excess, and M is at most
    λ/2 ‖θ‖² + Σ w ℓ_y(θ·x) for every θ with |x·θ| ≤ b on the group's rows. The excess is at most
    ρ(b) ln det(A/λ), which grows like d ln T_g, with ρ = 1.93, 2.78, 3.22, 4.06 at b = 4.6, 6.9, 8,
    10. Against other models it can fail, and certificates say which class they are for.

    References
    ----------
    Jézéquel, Gaillard and Rudi, "Efficient improper learning for online logistic regression", COLT
    2020 (AIOLI, here with the exact curvature and a minimax play). Vovk, "Competitive on-line
    statistics", 2001.
    """

    penalty: float = 1.0
    bound: float = 8.0
    keep_rows: int = 2000

    def __post_init__(self) -> None:
        checked_penalty(self.penalty)
        if not is_finite(self.bound) or not NARROWEST <= self.bound <= WIDEST:
            raise ConfigurationError(
                f"bound must be a number from {NARROWEST:g} to {WIDEST:g}, not {self.bound!r}."
            )
        if not is_finite(self.keep_rows, (int, np.integer)) or self.keep_rows < 0:
            raise ConfigurationError(
                f"keep_rows must be a whole number from 0 on, not {self.keep_rows!r}."
            )

    @classmethod
    def banks(
        cls, learners: Sequence["Logistic"], columns: Sequence[int], setting: Setting
    ) -> "list[Any]":
        """One bank for all logistic learners of a group."""
        if not isinstance(setting.loss, Log):
            raise ConfigurationError(
                f"learners.Logistic gives probabilities, and {setting.loss} is not about them: "
                "use loss=losses.Log(), or learners.Ridge for numbers."
            )
        return [LogisticBank(learners, columns, setting.loss.nodes)]


class LogisticBank(QuadraticBank):
    """The logistic learners of every group; the first, of the largest bound, records.

    For three classes and more each of them is a chain of ``nodes``.
    """

    name = "logistic"
    layout = logistic.LOGISTICS
    advise = logistic.advise
    learn = logistic.learn

    def __init__(
        self, learners: Sequence[Logistic], columns: Sequence[int], nodes: int = 1
    ) -> None:
        order = sorted(range(len(learners)), key=lambda k: -learners[k].bound)
        self.nodes = nodes
        self.learners = tuple(learners[k] for k in order for _ in range(nodes))
        self.keep_rows = max(one.keep_rows for one in learners)
        chain = [BINARY] if nodes == 1 else list(map(float, range(nodes)))
        each = [[learners[k].penalty, learners[k].bound, node] for k in order for node in chain]
        at_bounds = [math.log1p(math.exp(-one.bound)) for one in self.learners]
        numbers = np.concatenate([*each, [float(nodes), float(self.keep_rows)], at_bounds])
        super().__init__([columns[k] for k in order], numbers)

    def recorder(self, loss: Loss) -> Recorder:
        """Rows and parabolas, for the best logistic model in hindsight."""
        nodes = None if self.nodes == 1 else self.nodes
        return LogisticRecorder(self, self.learners[0].bound, nodes, self.keep_rows)

    def stiff_kernel(self) -> Kernel:
        """What stiff learners need."""
        return stiff_logistic.serve

    def restart(self) -> None:
        """Forget what was learned, not what was recorded for hindsight."""
        before, self.store = self.store, self.fresh()
        groups = np.flatnonzero(before.block >= 0)
        self.store.reserve(groups, before.width[groups])
        for group in groups.tolist():
            old, new = before.of(group), self.store.of(group)
            for name in logistic.RECORDED:
                getattr(new, name)[...] = getattr(old, name)

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """M − best + ρ(b) ln det(A/λ), the least over the learners; of chains, their sums."""
        mine = self.store.of(group)
        rates = np.array([excess_rate(one.bound) for one in self.learners])
        each = (mine.minimum + rates * mine.log_determinant).reshape(-1, self.nodes)
        least = float(each.sum(axis=1).min())
        return least - known.best + ROUNDING * (1.0 + least) + known.error


@cache
def excess_rate(bound: float) -> float:
    """ρ(b) = max over z of σ(z)σ(−z)/c: a round's excess is at most so many times ln(1 + cκ).

    >>> [round(excess_rate(b), 2) for b in (4.6, 6.9, 8.0, 10.0)]
    [1.93, 2.78, 3.22, 4.06]
    """
    anchors = np.linspace(0.0, bound, FINE)
    small = 1.0 / (1.0 + np.exp(anchors))
    found = small * (1.0 - small) / (curvature(anchors, bound) * logistic.SAFETY)
    return float(np.max(found)) * (1.0 + BETWEEN)
