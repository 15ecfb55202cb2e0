"""Rosters: which learners a group has, where not all groups have the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from groupwise.groups import Group
from groupwise.protocols import Banked


class NamedGroup(NamedTuple):
    """A group, as a function of ``learner=`` gets it."""

    name: str
    """As tables show it, such as "sex=male"."""
    declaration: Group | None = None
    """What it comes from; None for the always-on group, and for a column of ``gw.replay``."""
    values: tuple[str | int, ...] = ()
    """Which of the declaration's groups it is: texts of values, or places of intervals."""


def experts_of(learner: Any) -> int:
    """How many experts of a group a learner is."""
    return int(getattr(learner, "experts", 1)) if isinstance(learner, Banked) else 1


class Rosters:
    """The learners of groups, by roster: groups of one roster have the same.

    Parameters
    ----------
    rosters : the learners of each, in their order.
    leader : the roster of the always-on group, to whose models others may lean; None without one.
    logged : the experts that come with the rows, which are last in every roster.
    open : may further rosters come along the way?

    >>> from groupwise.learners import Ridge
    >>> rosters = Rosters([[Ridge()], [Ridge(), Ridge(10)]], leader=0)
    >>> rosters.find([Ridge(1.0), Ridge(10)]), rosters.find([Ridge(5)])
    (1, None)
    """

    def __init__(
        self,
        rosters: Sequence[Sequence[Any]],
        leader: int | None = None,
        logged: Sequence[Any] = (),
        open: bool = False,
    ) -> None:
        self.open = open
        self.logged = tuple(logged)
        self.leader = leader
        self.learners: list[tuple[Any, ...]] = []
        self._numbers: dict[tuple[Any, ...], int] = {}
        for one in rosters:
            self.append(one)

    def __len__(self) -> int:
        return len(self.learners)

    def __getitem__(self, number: int) -> tuple[Any, ...]:
        """The learners of a roster, and the experts that come with the rows."""
        return (*self.learners[number], *self.logged)

    def size(self, number: int) -> int:
        """How many experts its groups have."""
        return sum(map(experts_of, self[number]))

    def find(self, learners: Sequence[Any]) -> int | None:
        """The roster that has these learners; None where there is none."""
        return self._numbers.get(_key(learners))

    def append(self, learners: Sequence[Any]) -> int:
        """A further roster; its number."""
        self.learners.append(tuple(learners))
        self._numbers.setdefault(_key(learners), len(self) - 1)
        return len(self) - 1

    def __deepcopy__(self, memo: Any) -> "Rosters":
        return Rosters(*self.__reduce__()[1])  # prototypes do not change

    def __reduce__(self) -> tuple[Any, ...]:
        return Rosters, (self.learners, self.leader, self.logged, self.open)


def _key(learners: Sequence[Any]) -> tuple[Any, ...]:
    """What tells rosters apart: configurations by their values, objects by themselves."""
    return tuple(one if _by_value(one) else id(one) for one in learners)


def _by_value(learner: Any) -> bool:
    try:
        hash(learner)
    except TypeError:
        return False
    return isinstance(learner, Banked)
