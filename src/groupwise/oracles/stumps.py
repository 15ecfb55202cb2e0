"""Decision stumps on bits."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels import erm_oracles
from groupwise.oracles.costs import context_matrix, cost_matrix


@dataclass(frozen=True, eq=False)
class StumpPolicy:
    """A stump per label: 0 and 1 are the constants, 2 + 2b is bit b, 3 + 2b its negation."""

    stumps: Index
    single: bool

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        bits = np.asarray(x, dtype=np.float64)
        values = [int(erm_oracles.stump_value(stump, bits)) for stump in self.stumps.tolist()]
        return values[0] if self.single else np.array(values)

    def describe(self) -> list[str]:
        """The stumps in words."""
        words = {0: "never", 1: "always"}
        return [
            words.get(s, ("not " if s % 2 else "") + f"bit {(s - 2) // 2}")
            for s in self.stumps.tolist()
        ]


@dataclass(frozen=True)
class Stumps:
    """The class of 0, 1, every bit and every bit's negation; for several labels, a stump each.

    On d bits these are 2d + 2 policies a label, (2d + 2)ⁿ for n labels, and the best is found in
    O(contexts · d · n): the labels are independent of each other. Ties go to the constants, then to
    the first bit.

    >>> contexts = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> policy = Stumps().minimise(contexts, costs=[1.0, -1.0, 1.0, -1.0])
    >>> policy.describe(), policy([1, 1])
    (['bit 1'], 1)
    >>> Stumps().separator(3)
    array([[0., 0., 0.],
           [1., 0., 1.],
           [0., 1., 1.]])

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = True
    """Is the best policy for several labels the best for each?"""

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> StumpPolicy:
        """The policy f with the least Σ_x ⟨f(x), costs_x⟩."""
        best = self._best(contexts, costs)
        return StumpPolicy(np.array([stump for stump, _ in best]), np.ndim(costs) == 1)

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        return float(sum(least for _, least in self._best(contexts, costs)))

    def check_contexts(self, contexts: Vector) -> Vector:
        """The contexts, if they are bits."""
        if not ((contexts == 0.0) | (contexts == 1.0)).all():
            raise ConfigurationError(
                "Stumps are on bits: every feature must be 0 or 1. Cut numbers into bits first."
            )
        return contexts

    def separator(self, features: int) -> Vector:
        """Few contexts on which no two stumps agree: zeros, and rows that spell column numbers."""
        rows = math.ceil(math.log2(features + 1))
        numbers = np.arange(1, features + 1)
        spelled = [(numbers >> row & 1).astype(np.float64) for row in range(rows)]
        return np.vstack([np.zeros(features), *spelled])

    def separates(self, contexts: Vector) -> bool:
        """Do any two stumps differ on one of the contexts?"""
        columns = [np.zeros(len(contexts)), *contexts.T]
        patterns = {tuple(column) for column in columns}
        patterns |= {tuple(1.0 - column) for column in columns}
        return len(patterns) == 2 * len(columns)

    def _best(self, contexts: ArrayLike, costs: ArrayLike) -> list[tuple[int, float]]:
        matrix = self.check_contexts(context_matrix(contexts))
        table = cost_matrix(costs, matrix)
        room = np.empty(matrix.shape[1] + 1)
        return [
            erm_oracles.best_stump(matrix, len(matrix), table, label, room)
            for label in range(table.shape[1])
        ]

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Stumps"}
