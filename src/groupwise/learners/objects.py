"""Learners written in Python: one object per group, copied from a prototype."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.protocols import Awake, Learner, Row
from groupwise.states import Vector


class ObjectBank:
    """The Python learners of every group, made when a group is first learned from."""

    def __init__(self, prototypes: Sequence[Learner]) -> None:
        self.prototypes = tuple(prototypes)
        self.learners: dict[tuple[int, int], Learner] = {}

    def reserve(self, groups: int, features: int) -> None:
        """Nothing to reserve: objects are made when they are first updated."""

    def advise(self, awake: Awake, row: Row) -> Vector:
        """A row per awake group, a column per learner."""
        out = np.empty((awake.groups.size, len(self.prototypes)))
        for a, (group, weight) in enumerate(_pairs(awake)):
            for k in range(len(self.prototypes)):
                learner = self._learner(group, k, weight)
                out[a, k] = learner.advise(row, weight)
                if not math.isfinite(out[a, k]):
                    raise ConfigurationError(
                        f"{name_of(learner)} advised {out[a, k]}. Advice must be a finite number: "
                        "scale the features, or lower its learning rate."
                    )
        return out

    def step(self, awake: Awake, row: Row, label: float) -> Vector:
        """Advice as of now, then the update. All learners are updated, or none."""
        out = self.advise(awake, row)
        updated: dict[tuple[int, int], Learner] = {}
        for group, weight in _pairs(awake):
            for k in range(len(self.prototypes)):
                learner = copy.deepcopy(self._learner(group, k, weight))
                learner.update(row, label, weight)
                updated[group, k] = learner
        self.learners.update(updated)
        return out

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
