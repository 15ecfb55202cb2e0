"""Follow the perturbed leader: online linear optimisation with an oracle."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import ftpl
from groupwise.kernels.layout import address
from groupwise.kernels.stretch import addressed
from groupwise.learners.actions import ActionBank, expected_minimum
from groupwise.losses import Linear
from groupwise.oracles import oracle_from_dict
from groupwise.oracles.finite import ActionSet
from groupwise.protocols import Awake, Row, Setting
from groupwise.store import Store

ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class FTPL:
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
    what the certificate shows. Proof of the second: two cubes of side 1/ε_t shifted by c_t overlap
    in all but ε_t ‖c_t‖₁ of their volume, so playing before c_t is known costs at most R times that
    more than playing after; and the player who knows c_t loses at most what the noise of growing
    scale 1/ε_t adds, Σ (1/ε_t − 1/ε_{t−1}) (⟨a*, u⟩ − min_a ⟨a, u⟩), whose expectation is W/ε_T.

    References
    ----------
    Kalai and Vempala, "Efficient algorithms for online decision problems", Journal of Computer and
    System Sciences, 2005.
    """

    randomised: ClassVar[bool] = True
    oracle: Any
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
        _check_positive("cost_norm", self.cost_norm)
        if self.horizon is not None:
            _check_positive("horizon", self.horizon)

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

    def to_dict(self) -> dict[str, Any] | None:
        """The learner by name, for snapshots; None where its oracle cannot be saved."""
        oracle = self.oracle.to_dict() if hasattr(self.oracle, "to_dict") else None
        if oracle is None:
            return None
        norm, horizon = self.cost_norm, self.horizon
        return {"type": "FTPL", "oracle": oracle, "cost_norm": norm, "horizon": horizon}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "FTPL":
        """The learner that :meth:`to_dict` wrote."""
        return cls(**{**fields, "oracle": oracle_from_dict(fields["oracle"])})


class FTPLBank(ActionBank):
    """The learners of all groups: (configuration, state), arithmetic in the kernels."""

    comparator = "the best action in hindsight"

    def __init__(self, learner: FTPL, column: int, setting: Setting) -> None:
        oracle = learner.oracle
        super().__init__(column, setting, int(oracle.dimension))
        self.learner = learner
        self.integral = bool(getattr(oracle, "integral", False))
        self.exact = bool(getattr(oracle, "exact", True))
        self.any_sign = bool(getattr(oracle, "any_sign", True))
        self.action_set: ActionSet | None = getattr(oracle, "action_set", None)
        # Actions are in [0, 1]^d, so where the oracle does not say, D is at most d.
        diameter = float(getattr(oracle, "diameter", self.dimension))
        cost = setting.loss.unit * learner.cost_norm
        self.rate = math.sqrt(diameter / cost) if diameter > 0.0 else math.inf
        self.horizon = float(learner.horizon or 0.0)
        self._least: float | None = None
        self.store = Store(ftpl.COSTS, extent=self.dimension)

    def reserve(self, groups: Index, features: int) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        self.store.reserve(groups, 0)

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """M(costs + noise) for every awake group."""
        out = np.empty((len(awake.groups), 1, self.dimension))
        state, seed, experts = address(self.store.message), self.setting.seed, self.setting.experts
        rates = self.rate, self.horizon
        if self.action_set is not None:
            name = seed, number, attempt, self.column, experts
            ftpl.advise(state, self.action_set, *rates, addressed(awake), *name, out)
            return out
        for a, (group, weight) in enumerate(zip(*awake, strict=True)):
            costs = np.empty(self.dimension)
            expert = group * experts + self.column
            ftpl.perturbed(state, *rates, group, weight, seed, number, expert, attempt, costs)
            out[a, 0] = self.learner.oracle.minimise(costs)
        return out

    def rest(self, row: Row) -> Vector:
        """The oracle's answer where all costs are 0."""
        return np.asarray(self.learner.oracle.minimise(np.zeros(self.dimension)), dtype=np.float64)

    def check(self, label: Any) -> None:
        """Refuse cost vectors of another length, beyond ``cost_norm``, or of the wrong sign."""
        costs, _ = self.setting.loss.linear(label)
        if costs.size != self.dimension:
            raise LabelError(
                f"The label has {costs.size} costs, and an action has {self.dimension} coordinates."
            )
        norm = float(np.abs(costs).sum())
        if norm > self.learner.cost_norm * (1.0 + ROUNDING):
            raise LabelError(
                f"The costs sum to {norm:g} in absolute value, more than cost_norm = "
                f"{self.learner.cost_norm:g}. Give FTPL the largest sum there can be."
            )
        if not self.any_sign and costs.min() < 0.0:
            raise LabelError(
                f"Cost {int(costs.argmin())} is {costs.min():g}: on a graph with cycles costs "
                "must be at least 0."
            )

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Add the costs to every awake group."""
        costs, _ = self.setting.loss.linear(label)
        state = address(self.store.message)
        ftpl.update(state, self.rate, self.horizon, addressed(awake), costs)

    def record(self, awake: Awake, row: Row, label: Any, stands_for: float) -> None:
        """Add the costs to the sums of hindsight."""
        costs, offset = self.setting.loss.linear(label)
        ftpl.record(address(self.store.message), addressed(awake), costs, offset, stands_for)

    def hindsight(self, group: int, features: int) -> float | None:
        """The least ⟨a, Σ w c⟩, with the offsets."""
        return self.elsewhere(group, group)

    def elsewhere(self, group: int, of: int) -> float:
        """⟨a, Σ w c⟩ of the best action for another group, with the offsets."""
        own = self.store.of(group)
        action = self.learner.oracle.minimise(self.store.of(of).seen)
        return float(action @ own.seen + own.offset[0]) / self.setting.loss.unit

    def bounds(self, group: int) -> Vector | None:
        """R Σ w² ε_t ‖c_t‖₁ + W/ε_T, scaled."""
        own = self.store.of(group)
        clock = float(own.clock[0])
        if not self.exact:
            return None
        if clock == 0.0 or math.isinf(self.rate):
            return np.zeros(1)
        leader = self.learner.oracle.minimise(own.costs)
        width = 0.5 * float(np.sum(leader)) - self._expected_least()
        last = math.sqrt(self.horizon or clock) / self.rate
        bound: Vector = own.stability + max(width, 0.0) * last / self.setting.loss.unit
        return bound

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.store.clear(ftpl.LEARNED)

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, by name."""
        return {f"learner{self.column}.{k}": a for k, a in self.store.save(groups, 0).items()}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""
        self.store.load(self.own(arrays), groups, 0, 0)

    def _expected_least(self) -> float:
        """E min_a ⟨a, u⟩, u uniform on [0, 1]^d."""
        if self._least is None:

            def draw(generator: np.random.Generator) -> float:
                noise = generator.random(self.dimension)
                return float(self.learner.oracle.minimise(noise) @ noise)

            self._least = expected_minimum(draw, self.exact)
        return self._least


def _check_positive(name: str, value: Any) -> None:
    number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not number or not (math.isfinite(value) and value > 0.0):
        raise ConfigurationError(f"{name} must be a positive, finite number, not {value!r}.")
