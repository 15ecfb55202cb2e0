"""Finite decision sets, and reading what an oracle is asked with."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Flags, Index, Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels import linear_oracles

EXACT_DIAMETER = 1_000
"""Up to this many actions the diameter is computed pair by pair; beyond, bounded."""


class ActionSet(NamedTuple):
    """A decision set as arrays, the form that the compiled learners take.

    Actions are the rows of a table, or the paths of a graph from node 0 to ``target``. The graph's
    edges leave node i at the places starts[i] … starts[i + 1]; the edge at a place goes from
    ``tails`` to ``heads`` and is coordinate ``edges`` of an action.
    """

    kind: int
    table: Vector
    starts: Index
    tails: Index
    heads: Index
    edges: Index
    target: int


def numbers(
    given: ArrayLike, axes: tuple[int, ...], fine: Callable[[Vector], Flags], wanted: str
) -> Vector:
    """A copy of what was given as an array, not empty, of numbers that are all ``fine``."""
    try:
        array = np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError):
        array = np.empty(0)
    if array.ndim not in axes or not array.size or not fine(array).all():
        raise ConfigurationError(wanted)
    return array


def binary(array: Vector) -> Flags:
    """Which numbers are 0 or 1."""
    return np.isin(array, (0.0, 1.0))


def cost_vector(costs: ArrayLike, dimension: int) -> Vector:
    """The costs as finite numbers, one per coordinate of an action."""
    return numbers(
        costs,
        (1,),
        lambda vector: np.isfinite(vector) & (vector.size == dimension),
        f"costs must be {dimension} finite numbers, one per coordinate of an action.",
    )


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
        table = numbers(
            self.actions,
            (2,),
            lambda entries: (entries >= 0.0) & (entries <= 1.0),
            "actions must be a matrix with an action in every row, all entries in [0, 1].",
        )
        none, start = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
        actions = ActionSet(linear_oracles.FINITE, table, start, none, none, none, 0)
        if len(table) <= EXACT_DIAMETER:
            diameter = max(float(np.abs(table - action).sum(axis=1).max()) for action in table)
        else:
            spread = float((table.max(axis=0) - table.min(axis=0)).sum())
            diameter = min(spread, 2.0 * float(table.sum(axis=1).max()))
        vars(self).update(action_set=actions, diameter=diameter)

    @property
    def dimension(self) -> int:
        """d, the length of actions and cost vectors."""
        return int(self.action_set.table.shape[1])

    @property
    def integral(self) -> bool:
        """Are all actions 0/1 vectors?"""
        return bool(binary(self.action_set.table).all())

    def minimise(self, costs: ArrayLike) -> Any:
        """The first action with the least ⟨a, costs⟩."""
        best = np.empty(self.dimension)
        linear_oracles.best(self.action_set.table, cost_vector(costs, self.dimension), best)
        return best.astype(np.int64) if self.integral else best

    def mean_minimum(self) -> float | None:
        """E min_a ⟨a, u⟩, u uniform on [0, 1]^d, where there is a closed form.

        Of one action, half its entries; of k single coordinates, the least of k numbers, 1/(k + 1).

        >>> Finite(np.eye(3)).mean_minimum()
        0.25
        """
        actions = np.unique(self.action_set.table, axis=0)
        if len(actions) == 1:
            return 0.5 * float(actions.sum())
        single = binary(actions).all() and (actions.sum(axis=1) == 1.0).all()
        return 1.0 / (len(actions) + 1) if single else None

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Finite", "actions": self.action_set.table.tolist()}
