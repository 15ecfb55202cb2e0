"""Follow the perturbed leader: online linear optimisation with an oracle."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from groupwise import bounds
from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError, LabelError, is_finite
from groupwise.kernels import ftpl
from groupwise.kernels.stretch import addressed
from groupwise.learners.actions import MONTE_CARLO_SEED, OracleBank, OracleLearner
from groupwise.learners.widths import Width, above_mean
from groupwise.losses import Linear
from groupwise.oracles.finite import ActionSet
from groupwise.protocols import Awake, Hindsight, Row, Setting
from groupwise.store import Store

ROUNDING = 1e-9
PERTURBED, ASKED = 4_000, 1_000
"""How often an oracle is asked for W: a compiled one, and one in Python."""


@dataclass(frozen=True, eq=False)
class FTPL(OracleLearner):
    """Follow the perturbed leader, for cost vectors as labels and any decision set with an oracle.

    With c_1, …, c_{t−1} the cost vectors of the group's earlier rounds (times the row's weight in
    the group), draw p uniform on [0, 1/ε_t]^d afresh and advise

        M(c_1 + … + c_{t−1} + p),    M(c) = argmin over a in 𝒜 of ⟨a, c⟩.

    With D = max ‖a − a'‖₁ from the oracle, A = ``cost_norm`` and R = high − low of the loss,
    ε_t = √(D / (R A t)) on the group's own clock t, or √(D / (R A T)) where the horizon T is given.

    Parameters
    ----------
    oracle : ``oracles.ShortestPath``, ``oracles.Finite``, or an object of yours with ``minimise``,
        ``dimension`` and, for better tuning, ``diameter``.
    cost_norm : A, what Σ |c_j| is at most; a label beyond it is an error.
    horizon : the number of rounds of a group, where known.

    >>> from groupwise.oracles import Finite
    >>> FTPL(Finite([[1, 0], [0, 1]]), cost_norm=1.0).horizon is None
    True

    Guarantee
    ---------
    In expectation over the noise, against any action and for costs that may depend on all earlier
    plays: regret ≤ 2√(D R A T) with the horizon given, ≤ 3√(D R A T) without; and at run time
    ≤ R Σ w² ε_t ‖c_t‖₁ + W/ε_T, W = E⟨a*, u⟩ − E min_a ⟨a, u⟩, u uniform on [0, 1]^d, which is
    what the certificate shows. W is a closed form where the oracle has one (``mean_minimum``), else
    sampled with a margin that is too small with probability 1e-6: the status says which.
    Proof of the second: two cubes of side 1/ε_t shifted by c_t overlap in all but ε_t ‖c_t‖₁ of
    their volume, so playing before c_t is known costs at most R times that more than playing after;
    and the player who knows c_t loses at most what the noise of growing scale 1/ε_t adds,
    Σ (1/ε_t − 1/ε_{t−1}) (⟨a*, u⟩ − min_a ⟨a, u⟩), whose expectation is W/ε_T.

    References
    ----------
    Kalai and Vempala, "Efficient algorithms for online decision problems", Journal of Computer and
    System Sciences, 2005.
    """

    cost_norm: float
    horizon: float | None = None

    def __post_init__(self) -> None:
        for attribute in ("minimise", "dimension"):
            if not hasattr(self.oracle, attribute):
                raise ConfigurationError(
                    f"{type(self.oracle).__name__} cannot serve as FTPL's oracle: it has no "
                    f"{attribute}. Use oracles.ShortestPath or oracles.Finite, or see "
                    "groupwise.protocols.Oracle."
                )
        horizon = 1.0 if self.horizon is None else self.horizon
        for name, value, least, most in (
            ("cost_norm", self.cost_norm, 0.0, bounds.COSTS),
            ("horizon", horizon, bounds.LEAST, bounds.MOST),
        ):
            if not is_finite(value) or value <= 0.0:
                raise ConfigurationError(
                    f"{name} must be a positive, finite number, not {value!r}."
                )
            if not least <= value <= most:
                raise ConfigurationError(
                    f"{name} must be from {least:g} to {most:g}, not {value!r}."
                )

    @classmethod
    def banks(
        cls, learners: "Sequence[FTPL]", columns: Sequence[int], setting: Setting
    ) -> "list[FTPLBank]":
        """A bank for each of the learners."""
        if not isinstance(setting.loss, Linear):
            raise ConfigurationError(
                f"FTPL learns from cost vectors: use losses.Linear(low, high), not {setting.loss}."
            )
        pairs = zip(learners, columns, strict=True)
        return [FTPLBank(learner, column, setting) for learner, column in pairs]

    def context_width(self) -> int:
        """Rows carry no features, only what groups are made of."""
        return 0


class FTPLBank(OracleBank):
    """The learners of all groups; arithmetic in the kernels, or in an oracle that is Python."""

    comparator = "the best action in hindsight"
    kernels = ftpl

    def __init__(self, learner: FTPL, column: int, setting: Setting) -> None:
        super().__init__(learner.oracle, column, setting, int(learner.oracle.dimension))
        self.cost_norm = learner.cost_norm
        self.integral = bool(getattr(self.oracle, "integral", False))
        self.action_set: ActionSet | None = getattr(self.oracle, "action_set", None)
        # Actions are in [0, 1]^d, so where the oracle does not say, D is at most d.
        self.diameter = float(getattr(self.oracle, "diameter", self.dimension))
        cost = setting.loss.unit * learner.cost_norm
        self.rate = math.sqrt(self.diameter / cost) if self.diameter > 0.0 else math.inf
        self.horizon = float(learner.horizon or 0.0)
        self.store = Store(ftpl.COSTS, extent=self.dimension)

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """M(costs + noise) for every awake group."""
        if self.action_set is None:
            ask = self.oracle.minimise
            return self.asked(number, attempt, awake, self.horizon, (self.dimension,), ask)
        out = np.empty((len(awake.groups), 1, self.dimension))
        name = self.setting.seed, number, attempt, self.column, self.setting.experts
        state = self.store.address
        ftpl.advise(state, self.action_set, self.rate, self.horizon, addressed(awake), *name, out)
        return out

    def rest(self, row: Row) -> Vector:
        """The oracle's answer where all costs are 0."""
        return np.asarray(self.oracle.minimise(np.zeros(self.dimension)), dtype=np.float64)

    def check(self, label: Any) -> None:
        """Refuse cost vectors of another length, beyond ``cost_norm``, or of the wrong sign."""
        costs, _ = label
        if costs.size != self.dimension:
            raise LabelError(
                f"The label has {costs.size} costs, and an action has {self.dimension} coordinates."
            )
        norm = float(np.abs(costs).sum())
        if norm > self.cost_norm * (1.0 + ROUNDING):
            raise LabelError(
                f"The costs sum to {norm:g} in absolute value, more than cost_norm = "
                f"{self.cost_norm:g}. Give FTPL the largest sum there can be."
            )
        if costs.min() < 0.0 and not getattr(self.oracle, "any_sign", True):
            raise LabelError(
                f"Cost {int(costs.argmin())} is {costs.min():g}: on a graph with cycles costs "
                "must be at least 0."
            )

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Add the costs to every awake group."""
        costs, _ = label
        ftpl.update(self.store.address, self.rate, self.horizon, addressed(awake), costs)

    def record(self, awake: Awake, row: Row, label: Any, stands_for: float) -> None:
        """Add the costs to the sums of hindsight."""
        costs, offset = label
        ftpl.record(self.store.address, addressed(awake), costs, offset, stands_for)

    def hindsight(self, group: int, features: int) -> float | None:
        """The least ⟨a, Σ w c⟩, with the offsets."""
        return self.elsewhere(group, group)

    def elsewhere(self, group: int, of: int) -> float:
        """⟨a, Σ w c⟩ of the best action for another group, with the offsets."""
        own = self.store.of(group)
        action = self.oracle.minimise(self.store.of(of).seen)
        return float(action @ own.seen + own.offset[0]) / self.setting.loss.unit

    def bounds(self, group: int) -> Vector | None:
        """R Σ w² ε_t ‖c_t‖₁ + W/ε_T, scaled."""
        if not self.exact:
            return None
        own = self.store.of(group)
        clock = float(own.clock[0])
        if clock == 0.0 or math.isinf(self.rate):
            return np.zeros(1)
        width = 0.5 * float(np.sum(self.oracle.minimise(own.costs))) - self.noise.value
        width = min(width, self.diameter)
        last = math.sqrt(self.horizon or clock) / self.rate
        return np.asarray(own.stability + max(width, 0.0) * last / self.setting.loss.unit)

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """3√(D R A T), or that of the horizon given, scaled; None for a heuristic oracle."""
        if not self.exact:
            return None
        unit, tuned = self.setting.loss.unit, self.horizon or None
        return bounds.ftpl(rounds, self.diameter, self.cost_norm, unit, tuned) / unit

    @cached_property
    def noise(self) -> Width:  # type: ignore[override]
        """E min_a ⟨a, u⟩, u uniform on [0, 1]^d, or what it is at least: W is E⟨a*, u⟩ less that.

        It lies between 0 and the least ‖a‖₁.
        """
        closed = getattr(self.oracle, "mean_minimum", lambda: None)()
        if closed is not None:
            return Width(closed * (1.0 - ROUNDING))
        generator = np.random.default_rng(MONTE_CARLO_SEED)
        draws = generator.random((PERTURBED if self.action_set else ASKED, self.dimension))
        if self.action_set is None:
            found = np.array([float(self.oracle.minimise(one) @ one) for one in draws])
        else:
            found = ftpl.least_of(self.action_set, draws)
        span = float(np.sum(self.oracle.minimise(np.ones(self.dimension))))
        return Width(max(0.0, -above_mean(-found, span)), sampled=True)
