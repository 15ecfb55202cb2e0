"""A learner per group: from what ``learner=`` says to the learners of a group that appears."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from groupwise.errors import ConfigurationError, GroupError
from groupwise.groups import ALWAYS_ON, Group, Groups, Member
from groupwise.groups.algebra import EVERYBODY
from groupwise.learners.rosters import NamedGroup, Rosters
from groupwise.losses import Loss
from groupwise.validation import AnyLearner, as_learners, part_from_dict, part_to_save

PerGroup = Mapping[Any, Any] | Callable[[NamedGroup], Any]
"""Learners by group: {name, declaration or ...: a learner or a list}, or a function."""


class Assignment:
    """Which learners a group has, where not all have the same.

    A group has those of its own name, or else of its declaration, or else the default ones.

    Parameters
    ----------
    rosters : the different lists of learners; of a function, those that it has named so far.
    names, declarations, default : the rosters of groups by name and by the number of their
        declaration, and that of all others; None where there are no others.
    function : what names the learners of a group that appears, instead of these three.
    asks : was there a function, be it at hand or not?
    leader : the roster of the always-on group; None without one.
    """

    def __init__(
        self,
        rosters: Sequence[Sequence[Any]],
        names: Mapping[str, int] | None = None,
        declarations: Mapping[int, int] | None = None,
        default: int | None = None,
        function: Callable[[NamedGroup], Any] | None = None,
        asks: bool = False,
        leader: int | None = None,
    ) -> None:
        self.rosters = [tuple(one) for one in rosters]
        self.names, self.declarations = dict(names or {}), dict(declarations or {})
        self.default, self.function, self.asks, self.leader = default, function, asks, leader

    @property
    def learners(self) -> tuple[Any, ...]:
        """All learners that are known beforehand."""
        return tuple(learner for one in self.rosters for learner in one)

    @property
    def same(self) -> bool:
        """Have all groups the same learners?"""
        return not (self.asks or self.names or self.declarations)

    def made(self, logged: Sequence[Any]) -> Rosters | tuple[Any, ...]:
        """The learners of a new reduction, with the experts that come with the rows."""
        if self.same:
            return *self.learners, *logged
        return Rosters(self.rosters, self.leader, logged, self.asks)

    def roster(self, group: NamedGroup, number: int, enlist: Callable[[Sequence[Any]], int]) -> int:
        """The roster of a group that appears; ``number`` is that of its declaration."""
        if not self.asks:
            found = self.names.get(group.name, self.declarations.get(number, self.default))
            assert found is not None
            return found
        if self.function is None:
            raise ConfigurationError(
                f"The group {group.name!r} is new, and the learners of this model's groups come "
                "from a function, which a file does not hold: load it with gw.load(path, "
                "learner=function)."
            )
        return enlist(asked(self.function, group))

    def numbers(
        self, new: Sequence[Member], groups: Groups, enlist: Callable[[Sequence[Any]], int]
    ) -> list[int]:
        """The rosters of groups that appear; none where all have the same learners."""
        if self.same:
            return []
        return [self.roster(named(one, groups), one.declaration, enlist) for one in new]

    def of_names(self, names: Sequence[str], enlist: Callable[[Sequence[Any]], int]) -> list[int]:
        """The rosters of groups that are columns of an array."""
        if self.same:
            return []
        return [self.roster(NamedGroup(name), EVERYBODY, enlist) for name in names]

    def to_dict(self, rosters: Sequence[Sequence[Any]]) -> dict[str, Any]:
        """The same in a form that JSON keeps, with the rosters that are in use."""
        return {
            "rosters": [[part_to_save(learner) for learner in one] for one in rosters],
            "names": self.names,
            "declarations": [list(pair) for pair in self.declarations.items()],
            "default": self.default,
            "asks": self.asks,
            "leader": self.leader,
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> "Assignment":
        """What :meth:`to_dict` wrote; a function is not in it."""
        rosters = [[part_from_dict(part) for part in one] for one in fields["rosters"]]
        numbers = dict(map(tuple, fields["declarations"]))
        known = [fields["leader"], fields["default"], *fields["names"].values(), *numbers.values()]
        if not all(one is None or one in range(len(rosters)) for one in known):
            raise ValueError("learners of groups are beyond what there is")
        found = fields["names"], numbers, fields["default"]
        return cls(rosters, *found, asks=bool(fields["asks"]), leader=fields["leader"])


def named(member: Member, groups: Groups) -> NamedGroup:
    """A group as a function gets it."""
    if member.declaration == EVERYBODY:
        return NamedGroup(member.name)
    return NamedGroup(member.name, groups.declarations[member.declaration], member.values)


def asked(function: Callable[[NamedGroup], Any], group: NamedGroup) -> tuple[Any, ...]:
    """What a function says of a group, checked."""
    answer = function(group)
    try:
        return as_learners(answer, None)
    except ConfigurationError as error:
        raise ConfigurationError(
            f"The function that names learners gave {answer!r} for the group {group.name!r}: it "
            f"must return a learner or a list of them. {error}"
        ) from None


def per_group(learner: Any) -> bool:
    """Does ``learner=`` say different things of different groups?"""
    if isinstance(learner, (Mapping, Assignment)):
        return True
    return callable(learner) and not isinstance(learner, (type, AnyLearner))


def as_assignment(learner: Any, loss: Loss, groups: Groups) -> Assignment:
    """The learners of a model's groups, checked."""
    if isinstance(learner, Assignment):
        return learner
    if not per_group(learner):
        return Assignment([as_learners(learner, loss)], default=0)
    if not isinstance(learner, Mapping):
        return _asking(learner, loss, NamedGroup(ALWAYS_ON) if groups.always_on else None)
    rosters, names, declarations, usual = _read(learner, loss)
    numbers: dict[int, int] = {}
    for declaration, roster in declarations:
        if declaration not in groups.declarations:
            raise ConfigurationError(
                f"learner[{declaration!r}] is of no group: {declaration!r} is not among the "
                "declarations of this model."
            )
        numbers[groups.declarations.index(declaration)] = roster
    for name in names:
        try:
            groups.named(name)
        except GroupError:
            raise ConfigurationError(
                f"learner[{name!r}] is of no group: no declaration has one of this name. Give "
                'names as tables show them, such as "sex=male"; all others are learner[...].'
            ) from None
    others = [] if not groups.always_on or ALWAYS_ON in names else [ALWAYS_ON]
    for number, one in enumerate(groups.declarations):
        if number not in numbers and (one.is_open or not set(one.names) <= set(names)):
            others.append(repr(one))
    default = _default(rosters, usual, loss) if others else None
    leader = names.get(ALWAYS_ON, default) if groups.always_on else None
    return Assignment(rosters, names, numbers, default, leader=leader)


def of_columns(learner: Any, loss: Loss, names: Sequence[str], baseline: int) -> Assignment:
    """The same for groups that are columns of an array; ``baseline`` is that of everybody or -1."""
    if not per_group(learner):
        return Assignment([as_learners(learner, loss)], default=0)
    leader = names[baseline] if baseline >= 0 else None
    if not isinstance(learner, Mapping):
        return _asking(learner, loss, None if leader is None else NamedGroup(leader))
    rosters, known, declarations, usual = _read(learner, loss)
    for key in (*known, *(one for one, _ in declarations)):
        if key not in names:
            raise ConfigurationError(
                f"learner[{key!r}] is of no group: give names of the columns of membership."
            )
    default = None if set(names) <= set(known) else _default(rosters, usual, loss)
    number = None if leader is None else known.get(leader, default)
    return Assignment(rosters, known, {}, default, leader=number)


def _asking(function: Any, loss: Loss, leader: NamedGroup | None) -> Assignment:
    """What a function says, of the always-on group at once, of others as they appear."""
    if leader is None:  # nobody is known yet, so there is nothing to begin with
        return Assignment([as_learners(None, loss)], function=function, asks=True)
    return Assignment([asked(function, leader)], function=function, asks=True, leader=0)


def _read(
    learner: Mapping[Any, Any], loss: Loss
) -> tuple[list[Any], dict[str, int], list[tuple[Group, int]], Any]:
    """The lists of learners in a mapping, and whose they are; last those of all other groups."""
    rosters: list[tuple[Any, ...]] = []
    names: dict[str, int] = {}
    declarations: list[tuple[Group, int]] = []
    usual = None
    if not learner:
        raise ConfigurationError("learner={} has no learner in it; give at least one.")
    for key, value in learner.items():
        if value is None:
            raise ConfigurationError(f"learner[{key!r}] is None: give a learner or a list of them.")
        learners = as_learners(value, loss)
        if key is ...:
            usual = learners
        elif isinstance(key, str):
            names[key] = len(rosters)
            rosters.append(learners)
        elif isinstance(key, Group):
            declarations.append((key, len(rosters)))
            rosters.append(learners)
        else:
            raise ConfigurationError(
                f"learner[{key!r}]: keys are names of groups, declarations such as "
                'gw.by("sex"), and ... for all others.'
            )
    return rosters, names, declarations, usual


def _default(rosters: list[Any], usual: Any, loss: Loss) -> int:
    """The roster of all groups that are not named; the recommended learners, if none is given."""
    rosters.append(as_learners(None, loss) if usual is None else usual)
    return len(rosters) - 1
