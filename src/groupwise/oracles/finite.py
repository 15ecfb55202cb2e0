"""A finite decision set, given as a list of actions."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels import linear_oracles
from groupwise.oracles.action_set import ActionSet
from groupwise.oracles.costs import cost_vector

EXACT_DIAMETER = 1_000
"""Up to this many actions the diameter is computed pair by pair; beyond, bounded."""


@dataclass(frozen=True, eq=False)
class Finite:
    """The rows of a matrix as decision set: the best is found by trying them all.

    Ties go to the first.

    Parameters
    ----------
    actions : m × d, every entry in [0, 1].

    >>> oracle = Finite([[1, 0], [0, 1]])
    >>> oracle.minimise([3.0, 2.0])
    array([0, 1])
    >>> oracle.diameter
    2.0

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    any_sign: ClassVar[bool] = True
    actions: ArrayLike
    action_set: ActionSet = field(init=False, repr=False)
    diameter: float = field(init=False, repr=False)
    """D = max ‖a − a'‖₁ (an upper bound where there are over a thousand actions)."""

    def __post_init__(self) -> None:
        table = _table(self.actions)
        object.__setattr__(self, "action_set", ActionSet.of_table(linear_oracles.FINITE, table))
        object.__setattr__(self, "diameter", _diameter(table))

    @property
    def dimension(self) -> int:
        """d, the length of actions and cost vectors."""
        return int(self.action_set.table.shape[1])

    @property
    def integral(self) -> bool:
        """Are all actions 0/1 vectors?"""
        table = self.action_set.table
        return bool(((table == 0.0) | (table == 1.0)).all())

    def minimise(self, costs: ArrayLike) -> Any:
        """The first action with the least ⟨a, costs⟩."""
        vector = cost_vector(costs, self.dimension)
        best = np.empty(self.dimension)
        linear_oracles.best(self.action_set.table, vector, best)
        return best.astype(np.int64) if self.integral else best

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Finite", "actions": self.action_set.table.tolist()}


def _table(actions: ArrayLike) -> Vector:
    try:
        table = np.array(actions, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    if table.ndim != 2 or 0 in table.shape or not ((table >= 0.0) & (table <= 1.0)).all():
        raise ConfigurationError(
            "actions must be a matrix with an action in every row, all entries in [0, 1]."
        )
    return table


def _diameter(table: Vector) -> float:
    if len(table) <= EXACT_DIAMETER:
        return max(float(np.abs(table - action).sum(axis=1).max()) for action in table)
    spread = float((table.max(axis=0) - table.min(axis=0)).sum())
    return min(spread, 2.0 * float(table.sum(axis=1).max()))
