"""Who serves which group: the learners of a reduction, the same for all groups or not."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError
from groupwise.learners.banks import banks_of
from groupwise.learners.divided import Divided
from groupwise.learners.logged import Logged
from groupwise.learners.rosters import Rosters, experts_of
from groupwise.learners.wrapped import not_advice
from groupwise.losses import Loss
from groupwise.store import Store


class Staff:
    """The learners of every group, behind their banks.

    The experts of a group are the first of ``experts`` columns. Beyond them, where another group
    has more, there is nobody: no prior mass, no weight, no entry in the books.

    Parameters
    ----------
    learners : the learners of every group; or :class:`Rosters`, where not all have the same.
    loss, seed, width, intercept, always_on : as for ``Reduction``.
    """

    def __init__(
        self,
        learners: Sequence[Any] | Rosters,
        loss: Loss,
        seed: int,
        width: int,
        intercept: bool,
        always_on: bool,
    ) -> None:
        self.banks = banks_of(learners, loss, seed, width, intercept, always_on)
        self.divided = self.banks[0] if isinstance(self.banks[0], Divided) else None
        """The learners of groups, where not all have the same."""
        self._learners = () if isinstance(learners, Rosters) else tuple(learners)
        self.experts = sum(len(bank.columns) for bank in self.banks)
        """How many experts a group has, at most."""

    @property
    def learners(self) -> tuple[Any, ...]:
        """All learners that some group may have, and what comes with the rows."""
        if self.divided is None:
            return self._learners
        rosters = self.divided.rosters
        return tuple(one for number in range(len(rosters)) for one in rosters[number])

    def learners_of(self, group: int) -> tuple[Any, ...]:
        """The learners of a group, in the order of its experts."""
        if self.divided is None:
            return self._learners
        return self.divided.rosters[int(self.divided.division[group])]

    def experts_of(self, group: int) -> int:
        """How many experts a group has."""
        return self.experts if self.divided is None else self.divided.team_of(group).size

    def present(self, groups: Index) -> Any:
        """Which columns are experts of groups, a row each."""
        sizes = np.array([self.experts_of(group) for group in groups.tolist()], dtype=np.int64)
        return np.arange(self.experts) < sizes[:, None]

    def logged_of(self, group: int) -> dict[str, int]:
        """The experts whose advice comes with the rows, by name: which of the group's they are."""
        named = self.logged
        first = self.experts_of(group) - len(named)
        return {name: first + place for place, name in enumerate(named)}

    @property
    def logged(self) -> tuple[str, ...]:
        """The names of the experts whose advice comes with the rows: the last of every group's."""
        learners = self._learners if self.divided is None else self.divided.rosters.logged
        return tuple(one.column for one in learners if isinstance(one, Logged))

    def shares(self, masses: Sequence[float] | Vector, groups: Index) -> Vector:
        """The prior masses of groups, each split over the group's own experts."""
        own = self.present(groups)
        each = np.asarray(masses, dtype=np.float64)[:, None] / own.sum(axis=1, keepdims=True)
        return np.where(own, each, 0.0)

    def comparator_of(self, group: int) -> str:
        """What the hindsight of a group is the loss of."""
        return self.comparator if self.divided is None else self.divided.comparator_of(group)

    def comparators(self, groups: int) -> list[str]:
        """All that the hindsight of the first groups is the loss of."""
        if self.divided is None:
            return [self.comparator]
        _, first = np.unique(self.divided.division[:groups], return_index=True)
        return list(dict.fromkeys(self.comparator_of(group) for group in sorted(first.tolist())))

    @property
    def comparator(self) -> str:
        """What ``hindsight`` is the loss of."""
        return self.banks[0].comparator

    def refused(self, advice: Vector, groups: Index, most: float) -> ConfigurationError:
        """The error for advice of groups of which some is not a number, or more than that."""
        place = int(np.argmin(np.abs(advice) <= most))
        learners = self.learners_of(int(groups[place // advice.shape[1]]))
        names = [one for one in learners for _ in range(experts_of(one))]
        return not_advice(names[place % advice.shape[1]], advice.flat[place])

    # Rosters that come along the way, and files.

    def found_or_made(self, learners: Sequence[Any]) -> int:
        """The roster that has these learners, made where there is none."""
        assert self.divided is not None
        known = self.divided.rosters.find(learners)
        return self.divided.enlist(learners) if known is None else known

    def saved_rosters(self, groups: int) -> list[tuple[Any, ...]]:
        """The learners of the rosters that a file of the first groups holds, by their number."""
        assert self.divided is not None
        return [self.divided.rosters.learners[one] for one in self.divided.kept(groups)]

    def cut(self, store: Store, groups: int) -> dict[str, Any]:
        """What a store has of experts, without columns that no group in the file has."""
        found = store.save(groups, 0)
        if self.divided is None:
            return found
        most = max(self.divided.teams[number].size for number in self.divided.kept(groups))
        return {k: a[:, :most] if k in store.by_learner else a for k, a in found.items()}
