"""The contracts that the parts of a round keep to. Read this first.

A round flows stream → groups → learners → aggregator → ticket → label → ledger. Two of these parts
can be your own: a :class:`Learner` (one copy per group) and an :class:`Aggregator`.
``groupwise.checks`` tests whether a part keeps its contract.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from groupwise.losses import Loss
from groupwise.states import Index, Vector


class Row(NamedTuple):
    """One individual as numbers: features by position in ``names``, those left out are 0."""

    indices: Index
    values: Vector
    names: Sequence[str]
    new: tuple[Any, ...] = ()
    """The features that this row is the first to have; their names come last in ``names``."""

    def without_zeros(self) -> "Row":
        """The same row, zeros left out."""
        kept = self.values != 0.0
        if kept.all():
            return self
        return self._replace(indices=self.indices[kept], values=self.values[kept])

    def dense(self) -> Vector:
        """All features seen so far, zeros included."""
        x = np.zeros(len(self.names))
        x[self.indices] = self.values
        return x

    def mapping(self) -> dict[str, float]:
        """The non-zero features by name."""
        cells = zip(self.indices.tolist(), self.values.tolist(), strict=True)
        return {self.names[i]: value for i, value in cells}


class Awake(NamedTuple):
    """The groups that a row is in: their numbers, and I_g(t) in (0, 1] for each."""

    groups: Index
    weights: Vector


@runtime_checkable
class Learner(Protocol):
    """A no-regret learner for one group. The object given is a prototype, copied per group.

    Labels and advice are scaled to [0, 1]. A learner may also set these attributes:

    - ``takes_weights = False``: fractional groups are refused.
    - ``randomised = True``: its certificates hold in expectation.
    """

    def advise(self, row: Row, weight: float) -> float:
        """A prediction for the row, which weighs ``weight`` in this group. Changes nothing."""
        ...

    def update(self, row: Row, label: float, weight: float) -> None:
        """Learn from the row's label."""
        ...


@runtime_checkable
class Aggregator(Protocol):
    """A sleeping-experts algorithm, given by its potential.

    Expert i has cumulative regret R_i = Σ I_i(ℓ̂ − ℓ_i) and C_i = Σ |I_i(ℓ̂ − ℓ_i)|, in scaled
    losses; its weight in a round is p_i ∝ q_i I_i exp(log_weights(R_i, C_i)),
    q the prior.
    """

    def log_weights(self, regret: Vector, absolute: Vector, loss: Loss) -> Vector:
        """The logarithm of each expert's weight before prior and membership."""
        ...

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """What each R_i can be at most, now; all experts seen so far are given."""
        ...

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """The plays ("mean", "sample", "substitution") sound for this loss, the preferred first.

        Raises ConfigurationError, naming the alternative, where the loss has no guarantee.
        """
        ...


class Oracle(Protocol):
    """An offline optimiser that ``learners.FTPL`` calls: the best action for accumulated costs.

    It may also have ``diameter`` (D = max ‖a − a'‖₁; else d is taken), ``integral`` (True where
    actions are 0/1 vectors), ``any_sign`` (False where costs must be at least 0) and ``exact``
    (False for a heuristic, whose certificates are estimates).
    """

    dimension: int
    """d, the length of actions and cost vectors."""

    def minimise(self, costs: Vector) -> Vector:
        """argmin over the actions a in [0, 1]^d of ⟨a, costs⟩."""
        ...


class PolicyOracle(Protocol):
    """An ERM oracle, which ``learners.ContextualFTPL`` calls: the best policy for given costs.

    It may also have ``exact``, as above, ``independent`` (True where the best policy for several
    labels is the best for each) and ``least`` (the best policy's cost itself).
    """

    def minimise(self, contexts: Vector, costs: Vector) -> Callable[[Vector], Any]:
        """argmin over policies f of Σ_x ⟨f(x), costs_x⟩; a policy maps a context to an action.

        ``costs`` has an entry per context, or a row with an entry per label.
        """
        ...
