"""A finite class of fixed policies, each of them an expert of its own."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError, FeatureError, LabelError
from groupwise.learners.actions import ActionBank
from groupwise.losses import Hamming, Linear, ZeroOne
from groupwise.oracles import Finite, FiniteClass, oracle_from_dict
from groupwise.protocols import Awake, Row, Setting


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
        costs, offset = self.setting.loss.linear(label)
        answers = np.asarray(advice[0], dtype=np.float64).reshape(self.policies.experts, -1)
        each = (answers @ costs + offset) / self.setting.loss.unit
        lost = np.tile(each, (len(probabilities), 1))
        return lost, float(np.sum(probabilities * lost))

    def check(self, label: Any) -> None:
        """Refuse labels of another length than the actions."""
        costs, length = self.setting.loss.linear(label)[0], self.policies.length
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
