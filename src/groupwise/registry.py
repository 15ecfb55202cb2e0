"""The registry of a model: which groups there are.

A group *is* its declaration and the values that say which of the declaration's groups it is
(:class:`groupwise.groups.Member`). Here it gets its number, the position of its learners and of
everything recorded about it, and its prior mass. The name is for showing: two groups of the same
name stay two.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from groupwise.arrays import Index
from groupwise.errors import GroupError
from groupwise.groups import FrameMembership, Groups, Member
from groupwise.protocols import Awake
from groupwise.ticket import Ticket

REMEMBERED = 1 << 16
"""How many combinations of awake groups are remembered as arrays."""


class Registry:
    """The groups that a model has learned about, numbered in the order of their appearance.

    Asking changes nothing. New groups get the numbers that follow, and ``admit`` makes them
    lasting.

    Parameters
    ----------
    groups : the declarations of the model.
    prior : masses by shown name; every group of that name has it. Others have 1, and the n-th pair
        1/n(n + 1).
    members : groups that are known from the start.

    >>> from groupwise.groups import Groups, by
    >>> groups = Groups([by("sex")], always_on=True)
    >>> registry = Registry(groups, {"sex=male": 2.0})
    >>> awake, new = registry.awake(*groups.read({"sex": "male"}))
    >>> awake.groups.tolist(), registry.masses(new)
    ([0, 1], [2.0, 1.0])
    >>> registry.admit(new)
    >>> registry.names
    ['sex=male', 'always_on']
    """

    def __init__(
        self, groups: Groups, prior: Mapping[str, float], members: Iterable[Member] = ()
    ) -> None:
        self.groups = groups
        self.prior = dict(prior)
        self.members: list[Member] = []
        self.names: list[str] = []
        """The names of the groups, by number."""
        self.first: dict[str, int] = {}
        """The numbers by name; of the first group, where several have it."""
        self._numbers: dict[Member | None, int] = {}
        self._pairs = 0
        self._whole = not groups.weight_columns
        self.together: dict[tuple[Member, ...], Awake] = {}
        """The awake groups by number, where they were awake together before."""
        self.admit(members)

    def __len__(self) -> int:
        return len(self.members)

    def awake(
        self, members: Sequence[Member], weights: Sequence[float]
    ) -> tuple[Awake, tuple[Member, ...]]:
        """The awake groups by number, and which of them are new: these get the next numbers."""
        known = self.together.get(tuple(members))
        if known is not None:
            return known, ()
        indices, new = self.look_up(members)
        awake = Awake(indices, np.array(weights))
        if self._whole and not new:
            if len(self.together) >= REMEMBERED:
                self.together.clear()
            self.together[tuple(members)] = awake
        return awake, new

    def of_frame(self, membership: FrameMembership) -> tuple[Index, tuple[Member, ...]]:
        """The groups of every row of a frame by number, and which of them are new."""
        numbers, new = self.look_up(membership.members)
        return numbers[membership.indices], new

    def look_up(self, members: Sequence[Member]) -> tuple[Index, tuple[Member, ...]]:
        """The numbers of groups, and which of them are new: these get the next numbers."""
        known = self._numbers
        new = tuple(member for member in members if member not in known)
        numbers = dict(zip(new, itertools.count(len(known))))
        found = [known[one] if one in known else numbers[one] for one in members]
        return np.array(found, dtype=np.int64), new

    def masses(self, new: Iterable[Member]) -> list[float]:
        """The prior masses of new groups; they depend on the order of appearance alone."""
        pairs = itertools.count(self._pairs + 1)
        ranks = [(one.name, next(pairs) if self.groups.is_pair(one) else 0) for one in new]
        usual = [(name, 1.0 / (rank * (rank + 1)) if rank else 1.0) for name, rank in ranks]
        return [self.prior.get(name, mass) for name, mass in usual]

    def admit(self, new: Iterable[Member]) -> None:
        """Number new groups for good, in this order."""
        for member in new:
            number = self._numbers[member] = len(self.members)
            self.first.setdefault(member.name, number)
            self.members.append(member)
            self.names.append(member.name)
            self._pairs += self.groups.is_pair(member)

    @property
    def everybody(self) -> int:
        """The number of the always-on group; -1 where there is none yet."""
        return self._numbers.get(self.groups.everybody, -1)

    def of_ticket(self, ticket: Ticket) -> list[Member]:
        """The model's own groups for those of a ticket, which may have come as text.

        Tickets of groupwise 0.1 know them by name alone: there the row is read again.
        """
        groups, own = self.groups, ticket.members
        if not ticket.by_name:
            return [one if one.owner is groups else groups.member(*one.key) for one in own]
        found = {}
        with suppress(GroupError):  # a value that text does not keep
            found = {member.name: member for member in groups.read(ticket.row)[0]}
        return [found[name] if name in found else groups.named(name) for name in ticket.names]

    def to_dict(self) -> dict[str, Any]:
        """The groups as JSON holds them: names to be read by people, and what they are."""
        return {
            "names": list(self.names),
            "members": [[one.declaration, list(one.values)] for one in self.members],
        }

    def restore(self, fields: Mapping[str, Any]) -> None:
        """Admit the groups that ``to_dict`` gave, or their names alone (up to schema 2)."""
        names = [str(name) for name in fields["names"]]
        members = [self.groups.member(one, tuple(key)) for one, key in fields.get("members", ())]
        if "members" not in fields:
            members = [self.groups.named(name) for name in names]
        if [member.name for member in members] != names or len(set(members)) < len(members):
            raise GroupError("The saved groups do not fit their declarations.")
        self.admit(members)

    def __reduce__(self) -> tuple[type["Registry"], tuple[Any, ...]]:
        return Registry, (self.groups, self.prior, self.members)
