"""One run of a model of actions: every group's regret over time."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.actions import ActionReduction
from groupwise.groups import ALWAYS_ON
from groupwise.learners.contextual_bank import ContextualBank
from groupwise.model import Groupwise
from groupwise.arrays import Vector

POINTS = 25


@dataclass(frozen=True, eq=False)
class Trace:
    """Figures per group at a few moments; ``differs`` says whose best is not the overall best."""

    groups: tuple[str, ...]
    rounds: Vector
    regret: Vector
    baseline: Vector
    certificate: Vector
    differs: tuple[bool, ...]
    status: tuple[str, ...]


class Recorder:
    """Reads a model's regret table at evenly spaced moments."""

    def __init__(self, model: Groupwise, rounds: int) -> None:
        self.model = model
        self._moments = set(np.linspace(0, rounds, POINTS + 1).astype(int)[1:].tolist())
        self._tables: list[dict[str, dict[str, float]]] = []
        self._count = 0

    def after_round(self) -> None:
        """To be called after every round."""
        self._count += 1
        if self._count in self._moments:
            self._tables.append({row["group"]: row for row in self.model.regret()})

    def trace(self) -> Trace:
        """The whole run."""
        groups = tuple(sorted(self._tables[-1], key=lambda name: (name == ALWAYS_ON, name)))

        def column(key: str) -> Vector:
            return np.array(
                [[_cell(table, group, key) for table in self._tables] for group in groups]
            )

        last = self._tables[-1]
        return Trace(
            groups,
            column("rounds"),
            column("regret"),
            column("baseline_regret"),
            column("certificate"),
            tuple(best_differs(self.model, group) for group in groups),
            tuple(str(last[group]["status"]) for group in groups),
        )


def _cell(table: dict[str, dict[str, float]], group: str, key: str) -> float:
    value = table[group][key] if group in table else 0.0
    return np.nan if value is None else float(value)


def best_differs(model: Groupwise, group: str) -> bool:
    """Would the best action or policy of everybody have lost more on the group than its own?"""
    if ALWAYS_ON not in model._index:
        return False
    reduction = model._reduction
    assert isinstance(reduction, ActionReduction)
    bank: Any = reduction.action_banks[0]
    own, everybody = model._index[group], model._index[ALWAYS_ON]
    if isinstance(bank, ContextualBank):
        contexts = bank.contexts.matrix[: bank.contexts.count]
        seen = bank.state.seen[:, : bank.contexts.count]
        policy = bank.oracle.minimise(contexts, seen[everybody])
        said = np.array([policy(x) for x in contexts])
        costs = seen[own]
        return bool((said * costs).sum() > bank.oracle.least(contexts, costs) + 1e-9)
    oracle, costs = bank.learner.oracle, bank.state.seen
    worse = oracle.minimise(costs[everybody]) - oracle.minimise(costs[own])
    return bool(worse @ costs[own] > 1e-9)
