"""What learners of discrete actions share: how their advice loses, and their state in files.

Labels reach such a learner as cost vectors: an action a loses ⟨a, costs⟩, up to a constant.
"""

from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.kernels import actions
from groupwise.protocols import Bank, Setting

MONTE_CARLO_SEED = 0
MONTE_CARLO_DRAWS = 1_000
HEURISTIC_DRAWS = 20
"""How often an oracle is asked to estimate the W of a run-time bound: exact ones, heuristics."""


class ActionBank(Bank):
    """One learner's copies for all groups. To be derived from."""

    actions: ClassVar[bool] = True
    integral: bool = True
    """Are actions vectors of 0 and 1?"""
    exact: bool = True
    """Does the oracle find the best action, always?"""

    def __init__(self, column: int, setting: Setting, dimension: int) -> None:
        self.column = column
        self.columns = [column]
        self.setting = setting
        self.dimension = dimension

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """The scaled losses of advice on a label, and their mean over the draw."""
        loss = self.setting.loss
        costs, offset = loss.linear(label)
        lost = np.empty_like(probabilities)
        vectors = np.asarray(advice, dtype=np.float64).reshape(*lost.shape, -1)
        return lost, actions.score(vectors, costs, offset, loss.unit, probabilities, lost)

    def own(self, arrays: Mapping[str, Any]) -> dict[str, Any]:
        """What a file holds for this learner."""
        prefix = f"learner{self.column}."
        return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


def expected_minimum(draw: Callable[[np.random.Generator], float], exact: bool) -> float:
    """The mean of ``draw`` over a fixed sequence of random numbers."""
    generator = np.random.default_rng(MONTE_CARLO_SEED)
    draws = MONTE_CARLO_DRAWS if exact else HEURISTIC_DRAWS
    return float(np.mean([draw(generator) for _ in range(draws)]))
