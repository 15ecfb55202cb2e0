"""Learners in Python: a copy of the object for every group."""

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from groupwise.arrays import LARGEST, Index, Vector
from groupwise.errors import ConfigurationError, SnapshotError
from groupwise.protocols import Awake, Bank, Learner, Row, Setting


class WrappedBank(Bank):
    """The Python learners of every group, made when a group is first learned from."""

    frees = True

    def __init__(
        self, prototypes: Sequence[Learner], columns: Sequence[int], setting: Setting
    ) -> None:
        self.prototypes = copy.deepcopy(tuple(prototypes))  # another model may have them as well
        self.columns = list(columns)
        self.setting = setting
        self.nodes = setting.loss.nodes
        self.learners: dict[tuple[int, int, int], Learner] = {}

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """A row per awake group, a column per learner, a last axis for the nodes of chains."""
        row = row.without_zeros()
        out = np.empty((len(awake.groups), len(self.prototypes), self.nodes))
        for a, (group, k, node), weight, learner in self._awake(awake):
            if hasattr(learner, "draw"):
                expert = group * self.setting.experts + self.columns[k]
                named = expert * self.nodes + node
                learner.draw((self.setting.seed, number, named, attempt))
            out[a, k, node] = learner.advise(row, weight)
            if not math.isfinite(out[a, k, node]):
                raise not_advice(learner, out[a, k, node])
        return out if self.nodes > 1 else out[:, :, 0]

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """All learners are updated, or none."""
        self.learners.update(self.updated(awake, row, label))

    def updated(self, awake: Awake, row: Row, label: Any) -> dict[tuple[int, int, int], Learner]:
        """Copies of the awake learners that have learned from a label. Changes nothing."""
        row = row.without_zeros()
        updated: dict[tuple[int, int, int], Learner] = {}
        for _, name, weight, learner in self._awake(awake):
            if self.nodes > 1 and label < name[2]:
                continue
            updated[name] = copy.deepcopy(learner)
            updated[name].update(row, float(label == name[2]) if self.nodes > 1 else label, weight)
        return updated

    def restart(self) -> None:
        """Forget what was learned."""
        self.learners = {}

    def free_learners(self, groups: Index) -> None:
        """Give up the objects of some groups."""
        for group, k, node in product(groups.tolist(), *map(range, self._shape)):
            self.learners.pop((group, k, node), None)

    def free(self, groups: Index) -> None:
        """The same: nothing else is kept."""
        self.free_learners(groups)

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Groups get other numbers; all others from ``start`` on are given up."""
        numbers = dict(zip(old.tolist(), new.tolist(), strict=True))
        every = self.learners.items()
        self.learners = {name: one for name, one in every if name[0] < start}
        for (group, k, node), one in every:
            if group in numbers:
                self.learners[numbers[group], k, node] = one

    @property
    def _shape(self) -> tuple[int, int]:
        """How many learners a group has, and how many nodes each of them."""
        return len(self.prototypes), self.nodes

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be saved in a snapshot.")

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be read from a snapshot.")

    def _awake(self, awake: Awake) -> Iterator[tuple[int, tuple[int, int, int], float, Learner]]:
        """Every learner of the awake groups, with its row, its name here and its weight."""
        pairs = zip(awake.groups.tolist(), awake.weights.tolist(), strict=True)
        chains = list(product(*map(range, self._shape)))
        for a, (group, weight) in enumerate(pairs):
            for k, node in chains:
                learner = self.learners.get((group, k, node), self.prototypes[k])
                if weight != 1.0 and not getattr(learner, "takes_weights", True):
                    raise ConfigurationError(
                        f"{name_of(learner)} takes no sample weights, so it cannot serve a "
                        "fractional group. Use a learner that does, such as learners.Ridge, or "
                        "0/1 groups."
                    )
                yield a, (group, k, node), weight, learner


def not_advice(learner: Any, value: float) -> ConfigurationError:
    """The error for advice that is not a number, or too large where it is not clipped."""
    return ConfigurationError(
        f"{name_of(learner)} advised {value:g}. Advice must be a finite number, and of at most "
        f"{LARGEST:g} where it is not clipped: scale the features, or lower its learning rate."
    )


def name_of(learner: Any) -> str:
    """How messages call a learner."""
    return str(getattr(learner, "name", type(learner).__name__))
