"""A finite class of fixed policies, each of them an expert of its own."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError, FeatureError
from groupwise.learners.actions import ActionBank, Seat
from groupwise.losses import Loss
from groupwise.oracles import Finite, FiniteClass
from groupwise.protocols import Row
from groupwise.states import Vector


@dataclass(frozen=True, eq=False)
class Policies:
    """Every policy of a finite class, unchanged for all time: for ``gw.enumerated``.

    Parameters
    ----------
    policies : ``oracles.Finite`` (actions), ``oracles.FiniteClass`` (a table), or functions from
        the row's declared features (an array) to an action.
    """

    randomised: bool = field(default=False, init=False, repr=False)
    policies: Finite | FiniteClass | Sequence[Callable[[Vector], Any]]
    count: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        policies = self.policies
        if isinstance(policies, Finite):
            count = len(policies.action_set.table)
        elif isinstance(policies, FiniteClass):
            count = len(policies.cells)
        elif isinstance(policies, (list, tuple)) and policies and all(map(callable, policies)):
            count = len(policies)
        else:
            raise ConfigurationError(
                "policies must be oracles.Finite(actions), oracles.FiniteClass(table), or a list "
                "of functions from a row's features to an action."
            )
        object.__setattr__(self, "count", count)

    @property
    def length(self) -> int | None:
        """The length of an action; None where functions make them."""
        if isinstance(self.policies, Finite):
            return self.policies.dimension
        return self.policies.labels if isinstance(self.policies, FiniteClass) else None

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
        said = [np.atleast_1d(np.asarray(policy(x), dtype=np.float64)) for policy in policies]
        return np.ascontiguousarray(said)

    def bank(self, loss: Loss, width: int, seat: Seat) -> ActionBank:
        """Policies do not learn, so there is no bank of them."""
        raise NotImplementedError

    def context_width(self) -> int:
        """How many features a row must have."""
        if isinstance(self.policies, Finite):
            return 0
        if isinstance(self.policies, FiniteClass):
            return int(self.policies.known.shape[1])
        return -1

    def to_dict(self) -> dict[str, Any] | None:
        """The class by name, for snapshots; None where it is made of functions."""
        if not isinstance(self.policies, (Finite, FiniteClass)):
            return None
        return {"type": "Policies", "oracle": self.policies.to_dict()}
