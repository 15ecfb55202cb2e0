"""Learners written in Python: one object per group, copied from a prototype."""

import copy
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError, SnapshotError
from groupwise.protocols import Awake, Bank, Learner, Row, Setting


class WrappedBank(Bank):
    """The Python learners of every group, made when a group is first learned from."""

    def __init__(
        self, prototypes: Sequence[Learner], columns: Sequence[int], setting: Setting
    ) -> None:
        self.prototypes = tuple(prototypes)
        self.columns = list(columns)
        self.setting = setting
        self.learners: dict[tuple[int, int], Learner] = {}

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """A row per awake group, a column per learner."""
        row = row.without_zeros()
        out = np.empty((len(awake.groups), len(self.prototypes)))
        for a, (group, weight) in enumerate(_pairs(awake)):
            for k, column in enumerate(self.columns):
                learner = self._learner(group, k, weight)
                if hasattr(learner, "draw"):
                    expert = group * self.setting.experts + column
                    learner.draw((self.setting.seed, number, expert, attempt))
                out[a, k] = learner.advise(row, weight)
                if not math.isfinite(out[a, k]):
                    raise ConfigurationError(
                        f"{name_of(learner)} advised {out[a, k]}. Advice must be a finite number: "
                        "scale the features, or lower its learning rate."
                    )
        return out

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """All learners are updated, or none."""
        row = row.without_zeros()
        updated: dict[tuple[int, int], Learner] = {}
        for group, weight in _pairs(awake):
            for k in range(len(self.prototypes)):
                learner = copy.deepcopy(self._learner(group, k, weight))
                learner.update(row, label, weight)
                updated[group, k] = learner
        self.learners.update(updated)

    def restart(self) -> None:
        """Forget what was learned."""
        self.learners = {}

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be saved in a snapshot.")

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be read from a snapshot.")

    def _learner(self, group: int, k: int, weight: float) -> Learner:
        learner = self.learners.get((group, k), self.prototypes[k])
        if weight != 1.0 and not getattr(learner, "takes_weights", True):
            raise ConfigurationError(
                f"{name_of(learner)} takes no sample weights, so it cannot serve a fractional "
                "group. Use a learner that does, such as learners.Ridge, or 0/1 groups."
            )
        return learner


def name_of(learner: Any) -> str:
    """How messages call a learner."""
    return str(getattr(learner, "name", type(learner).__name__))


def _pairs(awake: Awake) -> list[tuple[int, float]]:
    return list(zip(awake.groups.tolist(), awake.weights.tolist(), strict=True))
