"""What learners of discrete actions share: how their advice loses, their oracle, and their state.

Labels reach such a learner as cost vectors: an action a loses ⟨a, costs⟩, up to a constant. The
simplest of them is here: fixed policies, each an expert of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, FeatureError, LabelError
from groupwise.kernels import actions
from groupwise.learners.widths import Width
from groupwise.losses import Hamming, Linear, ZeroOne
from groupwise.oracles import Finite, FiniteClass, oracle_from_dict
from groupwise.protocols import Awake, Bank, Hindsight, Row, Setting
from groupwise.store import Store

MONTE_CARLO_SEED = 0
MONTE_CARLO_DRAWS = 1_000
HEURISTIC_DRAWS = 20
"""How often an oracle is asked to estimate W where that tunes a learner: exact ones, heuristics."""


@dataclass(frozen=True, eq=False)
class OracleLearner:
    """The configuration of a learner with an oracle. To be derived from."""

    randomised: ClassVar[bool] = True
    oracle: Any

    def to_dict(self) -> dict[str, Any] | None:
        """The learner by name, for snapshots; None where its oracle cannot be saved."""
        oracle = self.oracle.to_dict() if hasattr(self.oracle, "to_dict") else None
        if oracle is None:
            return None
        parts = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}
        return {"type": type(self).__name__, **parts, "oracle": oracle}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The learner that :meth:`to_dict` wrote."""
        return cls(**{**fields, "oracle": oracle_from_dict(fields["oracle"])})


class ActionBank(Bank):
    """One learner's copies for all groups. To be derived from."""

    actions: ClassVar[bool] = True
    integral: bool = True
    """Are actions vectors of 0 and 1?"""

    def __init__(self, column: int, setting: Setting, dimension: int) -> None:
        self.columns = [column]
        self.setting = setting
        self.dimension = dimension

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """The scaled losses of advice on a label, and their mean over the draw."""
        loss = self.setting.loss
        costs, offset = label
        lost = np.empty_like(probabilities)
        vectors = np.asarray(advice, dtype=np.float64).reshape(*lost.shape, -1)
        return lost, actions.score(vectors, costs, offset, loss.unit, probabilities, lost)


class OracleBank(ActionBank):
    """The learners of all groups: (configuration, state), arithmetic in the kernels.

    Its oracle is compiled, or an object in Python that is asked for every group.
    """

    sparse = True
    kernels: ModuleType
    """The arithmetic: ``perturbed`` gives a group's costs so far with its noise of this round."""
    store: Store
    rate: float
    """ε_t √t."""
    noise: Width
    """W of the bounds, which no estimate is below; found when it is first asked for."""

    @property
    def sampled(self) -> bool:
        """Is W sampled, with a margin, and not a closed form?"""
        return self.exact and self.noise.sampled

    def __init__(self, oracle: Any, column: int, setting: Setting, dimension: int) -> None:
        super().__init__(column, setting, dimension)
        self.oracle = oracle
        self.exact = bool(getattr(oracle, "exact", True))
        self.column = column
        self.prefix = f"learner{column}."

    @property
    def span(self) -> tuple[int, int]:
        """How many columns of a record are in use, and how many there is room for."""
        return 0, 0

    def reserve(self, groups: Index, features: int) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        self.store.reserve(groups, self.span[1])

    def asked(
        self,
        number: int,
        attempt: int,
        awake: Awake,
        noise: Any,
        shape: tuple[int, ...],
        answer: Callable[[Vector], Any],
    ) -> Vector:
        """What an oracle in Python answers to the perturbed costs of every awake group."""
        self.reserve(awake.groups, 0)  # other groups may have met further contexts
        out = np.empty((len(awake.groups), 1, self.dimension))
        for a, (group, weight) in enumerate(zip(*awake, strict=True)):
            state, costs = self.store.address, np.empty(shape)
            named = self.setting.seed, number, group * self.setting.experts + self.column, attempt
            self.kernels.perturbed(state, self.rate, noise, group, weight, *named, costs)
            out[a, 0] = answer(costs)
        return out

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.store.clear(self.kernels.LEARNED)

    def save(self, groups: int | Index, features: int) -> dict[str, Any]:
        """The state of the first groups, or of some, by name."""
        saved = self.store.save(groups, self.span[0])
        return {self.prefix + name: array for name, array in saved.items()}

    def load(self, arrays: Mapping[str, Any], groups: int | Index, features: int) -> None:
        """Take over what :meth:`save` gave."""
        names = [name for name in arrays if name.startswith(self.prefix)]
        own = {name.removeprefix(self.prefix): arrays[name] for name in names}
        self.store.load(own, groups, *self.span)


@dataclass(frozen=True, eq=False)
class Policies:
    """Every policy of a finite class, unchanged for all time: for ``gw.enumerated``.

    Parameters
    ----------
    policies : ``oracles.Finite`` (actions), ``oracles.FiniteClass`` (a table), or functions from
        the row's declared features (an array) to an action.
    """

    randomised: ClassVar[bool] = False
    policies: Finite | FiniteClass | Sequence[Callable[[Vector], Any]]
    experts: int = field(init=False, repr=False)
    """How many experts of a group these are."""
    length: int | None = field(init=False, repr=False)
    """The length of an action; None where functions make them."""
    width: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        policies = self.policies
        if isinstance(policies, Finite):
            shape: tuple[Any, ...] = (*policies.action_set.table.shape, 0)
        elif isinstance(policies, FiniteClass):
            shape = len(policies.cells), policies.labels, policies.known.shape[1]
        elif isinstance(policies, (list, tuple)) and policies and all(map(callable, policies)):
            shape = len(policies), None, -1
        else:
            raise ConfigurationError(
                "policies must be oracles.Finite(actions), oracles.FiniteClass(table), or a list "
                "of functions from a row's features to an action."
            )
        vars(self).update(zip(("experts", "length", "width"), shape, strict=True))

    def answers(self, row: Row) -> Vector:
        """What every policy says about a row: policies × coordinates."""
        policies = self.policies
        if isinstance(policies, Finite):
            return policies.action_set.table
        if isinstance(policies, FiniteClass):
            try:
                return np.ascontiguousarray(policies.cells[:, policies.column(row.dense())])
            except ConfigurationError as error:
                raise FeatureError(str(error)) from None
        x = row.dense()
        return np.array([np.atleast_1d(policy(x)) for policy in policies], dtype=np.float64)

    @classmethod
    def banks(
        cls, learners: "Sequence[Policies]", columns: Sequence[int], setting: Setting
    ) -> "list[PolicyBank]":
        """The bank of the class: every policy is an expert of its own."""
        (policies,) = learners
        return [PolicyBank(policies, setting)]

    def context_width(self) -> int:
        """How many features a row must have."""
        return self.width

    def to_dict(self) -> dict[str, Any] | None:
        """The class by name, for snapshots; None where it is made of functions."""
        if not isinstance(self.policies, (Finite, FiniteClass)):
            return None
        return {"type": "Policies", "oracle": self.policies.to_dict()}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Policies":
        """The class that :meth:`to_dict` wrote."""
        return cls(oracle_from_dict(fields["oracle"]))


class PolicyBank(ActionBank):
    """Fixed policies, which say the same in all groups and learn nothing."""

    comparator = "the best policy in hindsight"

    def __init__(self, policies: Policies, setting: Setting) -> None:
        loss = setting.loss
        if not isinstance(loss, (ZeroOne, Hamming, Linear)):
            raise ConfigurationError(
                "Enumerated policies choose discrete actions: use losses.ZeroOne(), "
                f"losses.Hamming(labels) or losses.Linear(low, high), not {loss}."
            )
        super().__init__(0, setting, 0)
        self.policies = policies
        self.columns = list(range(policies.experts))

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """Every policy speaks once, for all groups."""
        answers = self.policies.answers(row)
        return np.broadcast_to(answers, (len(awake.groups), *answers.shape))

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Policies stay as they are."""

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """The scaled losses of the policies, found once, and their mean over the draw."""
        costs, offset = label
        answers = np.asarray(advice[0], dtype=np.float64).reshape(self.policies.experts, -1)
        each = (answers @ costs + offset) / self.setting.loss.unit
        lost = np.tile(each, (len(probabilities), 1))
        return lost, float(np.sum(probabilities * lost))

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """The best policy is an expert itself: nothing is lost to it but what mixing costs."""
        return 0.0

    def check(self, label: Any) -> None:
        """Refuse labels of another length than the actions."""
        costs, length = label[0], self.policies.length
        if length not in (None, costs.size):
            raise LabelError(f"The label has {costs.size} entries, and an action has {length}.")

    def rest(self, row: Row) -> Any:
        """What the first policy says."""
        return self.policies.answers(row)[0]

    def restart(self) -> None:
        """There is nothing to forget."""

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """There is nothing to save."""
        return {}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """There is nothing to load."""
