"""What learners of discrete actions share: the contract of their banks, and checks.

An action learner (``FTPL``, ``ContextualFTPL``) makes a *bank*, its copies for all groups. Labels
reach a bank as cost vectors: an action a loses ⟨a, costs⟩, up to a constant.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from groupwise.losses import Loss
from groupwise.protocols import Awake, Row
from groupwise.states import Vector

MONTE_CARLO_SEED = 0
MONTE_CARLO_DRAWS = 1_000
HEURISTIC_DRAWS = 20
"""How often an oracle is asked to estimate the W of a run-time bound: exact ones, heuristics."""


class Seat(NamedTuple):
    """Which of the learners on a group a bank is, and the model's seed: these name its noise."""

    column: int
    columns: int
    seed: int


class ActionBank(Protocol):
    """One learner's copies for all groups."""

    dimension: int
    """The length of an action."""
    integral: bool
    """Are actions vectors of 0 and 1?"""
    exact: bool
    """Does the oracle find the best action, always?"""
    comparator: str
    """What ``best`` is the loss of."""

    def reserve(self, groups: int, features: int = 0) -> None:
        """Make room; the new slots hold learners that have seen nothing."""

    def advise(self, number: int, attempt: int, awake: Awake, row: Row, out: Vector) -> None:
        """Write the advice of every awake group to out[:, column]. Changes nothing."""

    def rest(self, row: Row) -> Vector:
        """The action to play where no group is awake."""

    def check(self, costs: Vector) -> None:
        """Raise LabelError where the costs cannot be learned from."""

    def update(self, awake: Awake, row: Row, costs: Vector) -> None:
        """Learn from a label."""

    def record(self, awake: Awake, row: Row, costs: Vector, offset: float) -> None:
        """Add a label to the sums that hindsight needs."""

    def best(self, group: int) -> float:
        """The least that an action, or policy, of the class would have lost on the group."""

    def bound(self, group: int) -> float | None:
        """What the learner's expected regret is at most, scaled; None where nothing is proved."""

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""

    def arrays(self, groups: int) -> dict[str, Any]:
        """The state in use, by name."""

    def restore(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what ``arrays`` gave."""


@runtime_checkable
class ActionLearner(Protocol):
    """A learner whose advice are actions."""

    @property
    def randomised(self) -> bool:
        """Do its certificates hold in expectation?"""
        ...

    def bank(self, loss: Loss, width: int, seat: Seat) -> ActionBank:
        """The learner's copies for all groups, for rows with ``width`` features."""
        ...

    def context_width(self) -> int:
        """How many features a row must have; 0 where rows have none."""
        ...

    def to_dict(self) -> dict[str, Any] | None:
        """The learner by name, for snapshots; None where it cannot be saved."""
        ...


def copy_into(target: Any, saved: Any, name: str) -> None:
    """Fill an array from a file, if it fits."""
    if saved.shape != target.shape or saved.dtype != target.dtype:
        raise ValueError(f"{name} has shape {saved.shape}, not {target.shape}")
    target[...] = saved


def expected_minimum(draw: Callable[[np.random.Generator], float], exact: bool) -> float:
    """The mean of ``draw`` over a fixed sequence of random numbers."""
    generator = np.random.default_rng(MONTE_CARLO_SEED)
    draws = MONTE_CARLO_DRAWS if exact else HEURISTIC_DRAWS
    return float(np.mean([draw(generator) for _ in range(draws)]))
