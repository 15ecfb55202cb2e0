"""Learners written in Python: one object per group, copied from a prototype."""

import copy
import math
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.protocols import Awake, Learner, Row
from groupwise.states import Vector


@runtime_checkable
class Randomised(Protocol):
    """A learner that draws: its randomness is a function of the key, so that ``predict`` is pure.

    ``draw`` comes before every ``advise``. The key is (seed, ticket number, expert, attempt), of
    whole numbers that are at least 0: ``numpy.random.default_rng(key)`` is a generator for it.
    """

    def draw(self, key: tuple[int, int, int, int]) -> None:
        """Draw what the next ``advise`` uses."""
        ...


class ObjectBank:
    """The Python learners of every group, made when a group is first learned from."""

    def __init__(self, prototypes: Sequence[Learner]) -> None:
        self.prototypes = tuple(prototypes)
        self.learners: dict[tuple[int, int], Learner] = {}

    def reserve(self, groups: int, features: int) -> None:
        """Nothing to reserve: objects are made when they are first updated."""

    def advise(self, awake: Awake, row: Row, draw: tuple[int, int, int] = (0, 0, 0)) -> Vector:
        """A row per awake group, a column per learner.

        Learners with a method ``draw`` get their key first: of ``draw``, which is (seed, ticket
        number, attempt), and of the expert.
        """
        seed, number, attempt = draw
        out = np.empty((awake.groups.size, len(self.prototypes)))
        for a, (group, weight) in enumerate(_pairs(awake)):
            for k in range(len(self.prototypes)):
                learner = self._learner(group, k, weight)
                if isinstance(learner, Randomised):
                    learner.draw((seed, number, group * len(self.prototypes) + k, attempt))
                out[a, k] = learner.advise(row, weight)
                if not math.isfinite(out[a, k]):
                    raise ConfigurationError(
                        f"{name_of(learner)} advised {out[a, k]}. Advice must be a finite number: "
                        "scale the features, or lower its learning rate."
                    )
        return out

    def step(
        self, awake: Awake, row: Row, label: float, draw: tuple[int, int, int] = (0, 0, 0)
    ) -> Vector:
        """Advice as of now, then the update. All learners are updated, or none."""
        out = self.advise(awake, row, draw)
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
