"""Follow the perturbed leader: online linear optimisation with an oracle."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import ftpl
from groupwise.learners.actions import Seat, copy_into, expected_minimum
from groupwise.losses import Linear, Loss
from groupwise.oracles.action_set import ActionSet
from groupwise.protocols import Awake, Row
from groupwise.states import Vector

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

    def bank(self, loss: Loss, width: int, seat: Seat) -> "FTPLBank":
        """The learner's copies for all groups."""
        del width
        if not isinstance(loss, Linear):
            raise ConfigurationError(
                f"FTPL learns from cost vectors: use losses.Linear(low, high), not {loss}."
            )
        return FTPLBank(self, loss, seat)

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


class FTPLState(NamedTuple):
    """Per group: what the learner knows; ``seen`` and ``offset`` are sums for hindsight."""

    costs: Vector
    clock: Vector
    stability: Vector
    """Σ w² ε_t ‖c_t‖₁."""
    seen: Vector
    offset: Vector


class FTPLBank:
    """The learners of all groups: (configuration, state), arithmetic in the kernels."""

    comparator = "the best action in hindsight"

    def __init__(self, learner: FTPL, loss: Linear, seat: Seat) -> None:
        oracle = learner.oracle
        self.learner = learner
        self.loss = loss
        self.seat = seat
        self.dimension = int(oracle.dimension)
        self.integral = bool(getattr(oracle, "integral", False))
        self.exact = bool(getattr(oracle, "exact", True))
        self.any_sign = bool(getattr(oracle, "any_sign", True))
        self.action_set: ActionSet | None = getattr(oracle, "action_set", None)
        # Actions are in [0, 1]^d, so where the oracle does not say, D is at most d.
        diameter = float(getattr(oracle, "diameter", self.dimension))
        self.rate = (
            math.sqrt(diameter / (loss.unit * learner.cost_norm)) if diameter > 0.0 else math.inf
        )
        self.horizon = float(learner.horizon or 0.0)
        self._least: float | None = None
        none, empty = np.zeros(0), np.zeros((0, self.dimension))
        self.state = FTPLState(empty, none, none, empty, none)

    def reserve(self, groups: int, features: int = 0) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        del features
        have = len(self.state.clock)
        if groups > have:
            size = capacity(groups, have)
            self.state = FTPLState(*(enlarge(a, (size, *a.shape[1:])) for a in self.state))

    def advise(self, number: int, attempt: int, awake: Awake, row: Row, out: Vector) -> None:
        """M(costs + noise) for every awake group."""
        del row
        column, columns, seed = self.seat
        if self.action_set is not None:
            ftpl.advise(
                self.state,
                self.action_set,
                self.rate,
                self.horizon,
                *awake,
                seed,
                number,
                attempt,
                column,
                columns,
                out,
            )
            return
        for a, (group, weight) in enumerate(zip(*awake, strict=True)):
            costs = np.empty(self.dimension)
            expert = group * columns + column
            ftpl.perturbed(
                self.state,
                self.rate,
                self.horizon,
                group,
                weight,
                seed,
                number,
                expert,
                attempt,
                costs,
            )
            out[a, column] = self.learner.oracle.minimise(costs)

    def rest(self, row: Row) -> Vector:
        """The oracle's answer where all costs are 0."""
        del row
        return np.asarray(self.learner.oracle.minimise(np.zeros(self.dimension)), dtype=np.float64)

    def check(self, costs: Vector) -> None:
        """Refuse cost vectors of another length, beyond ``cost_norm``, or of the wrong sign."""
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

    def update(self, awake: Awake, row: Row, costs: Vector) -> None:
        """Add the costs to every awake group."""
        del row
        ftpl.update(self.state, self.rate, self.horizon, *awake, costs)

    def record(self, awake: Awake, row: Row, costs: Vector, offset: float) -> None:
        """Add the costs to the sums of hindsight."""
        del row
        self.state.seen[awake.groups] += awake.weights[:, None] * costs
        self.state.offset[awake.groups] += awake.weights * offset

    def best(self, group: int) -> float:
        """The least ⟨a, Σ w c⟩, with the offsets."""
        costs = self.state.seen[group]
        return float(self.learner.oracle.minimise(costs) @ costs + self.state.offset[group])

    def lost_by_best_of(self, other: int, group: int) -> float:
        """What the best action of another group would have lost on a group."""
        action = self.learner.oracle.minimise(self.state.seen[other])
        return float(action @ self.state.seen[group] + self.state.offset[group])

    def bound(self, group: int) -> float | None:
        """R Σ w² ε_t ‖c_t‖₁ + W/ε_T, scaled."""
        clock = float(self.state.clock[group])
        if not self.exact or clock == 0.0 or math.isinf(self.rate):
            return 0.0 if self.exact else None
        leader = self.learner.oracle.minimise(self.state.costs[group])
        width = 0.5 * float(np.sum(leader)) - self._expected_least()
        last = math.sqrt(self.horizon or clock) / self.rate
        return float(self.state.stability[group]) + max(width, 0.0) * last / self.loss.unit

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        for array in (self.state.costs, self.state.clock, self.state.stability):
            array[...] = 0.0

    def arrays(self, groups: int) -> dict[str, Any]:
        """The state of the first groups, by name."""
        return {name: array[:groups] for name, array in self.state._asdict().items()}

    def restore(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what ``arrays`` gave."""
        for name, target in self.arrays(groups).items():
            copy_into(target, arrays[name], name)

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
