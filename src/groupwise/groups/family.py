"""All declarations of a model together: the groups of a row and of a frame."""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from groupwise.errors import GroupError
from groupwise.groups.algebra import (
    ALWAYS_ON,
    EVERYBODY,
    And,
    Group,
    Member,
    Pairs,
    Values,
    check_parts,
    wrapped,
)
from groupwise.groups.columns import as_table
from groupwise.groups.declarations import By, Where
from groupwise.groups.frames import FrameMembership, membership
from groupwise.groups.rows import ValueReader, reader


class Indicator(NamedTuple):
    """A group that may have a 0/1 feature; ``column`` is set when it is one value of a column."""

    column: str | None


class Groups:
    """The declarations of a model, ready to be read off rows and frames.

    Parameters
    ----------
    declarations : what ``by``, ``cut``, ``where``, ``weight``, ``pairs`` and their combinations
        gave.
    always_on : whether every row is also in the group ``always_on``, named last.

    >>> from groupwise.groups import by, cut
    >>> groups = Groups([by("sex"), cut("age", [35])], always_on=True)
    >>> groups.of_row({"sex": "male", "age": 41})
    (['sex=male', 'age: > 35', 'always_on'], [1.0, 1.0, 1.0])
    """

    def __init__(self, declarations: Sequence[Group], always_on: bool) -> None:
        given: object = declarations
        if isinstance(given, str):
            raise GroupError(
                f"Give a list of group declarations, such as [gw.by({given!r})], not a text."
            )
        if isinstance(declarations, Group) or not isinstance(declarations, Iterable):
            raise GroupError(f"Give a list of group declarations, not {declarations!r}.")
        self.declarations: tuple[Group, ...] = tuple(declarations)
        self.always_on = bool(always_on)
        check_parts(self.declarations)
        if not self.declarations and not self.always_on:
            raise GroupError("No groups. Declare at least one, or set always_on=True.")
        leaves = [leaf for one in self.declarations for leaf in one.leaves]
        self.columns = tuple(dict.fromkeys(leaf.column for leaf in leaves))
        self.weight_columns = tuple(dict.fromkeys(leaf.column for leaf in leaves if leaf.weighs))
        _check_names(self.declarations)
        self._indicators = [_indicator(one) for one in self.declarations]
        # Held by whoever uses them: values that were only ever asked about leave no trace.
        self._members: WeakValueDictionary[tuple[int, Values], Member] = WeakValueDictionary()
        self._naming = Lock()
        self.everybody = self.member(EVERYBODY, ()) if self.always_on else None
        self._last = [] if self.everybody is None else [self.everybody]
        numbered = enumerate(self.declarations)
        readers = [reader(one, partial(self.member, number)) for number, one in numbered]
        self._readers = [one.awake for one in readers]
        # The most common model has a group per value of some columns, and nothing else.
        plain = [one for one in readers if isinstance(one, ValueReader) and one.declaration.opens]
        self._remembered = [(one.column, one.remembered) for one in plain]
        self._plain = len(self._remembered) == len(readers)
        self._ones = [1.0] * (len(readers) + len(self._last))

    def member(self, declaration: int, values: Values) -> Member:
        """Give a group by the number of its declaration and by values; see ``declarations``.

        >>> from groupwise.groups import by
        >>> groups = Groups([by("sex")], always_on=True)
        >>> groups.member(0, ("male",)) is groups.read({"sex": "male"})[0][0]
        True
        """
        key = (declaration, values)
        found = self._members.get(key)
        if found is None:
            if declaration == EVERYBODY and self.always_on and not values:
                name = ALWAYS_ON
            elif 0 <= declaration < len(self.declarations):
                name = self.declarations[declaration].name_of(values)
            else:
                raise GroupError(f"There is no declaration number {declaration!r} with {values!r}.")
            with self._naming:  # two threads must not make two of one group
                found = self._members.setdefault(key, Member(declaration, values, name, self))
        return found

    def of_row(self, row: Mapping[str, Any]) -> tuple[list[str], list[float]]:
        """Give names and weights of the groups a row is in, in the order of declaration."""
        members, weights = self.read(row)
        return [member.name for member in members], list(weights)

    def read(self, row: Mapping[str, Any]) -> tuple[list[Member], list[float]]:
        """Give the groups a row is in and its weights in them, in the order of declaration."""
        if self._plain:
            try:
                members = [
                    members_of[type(row[column])][row[column]]
                    for column, members_of in self._remembered
                ]
                return members + self._last, self._ones
            except (KeyError, TypeError, IndexError):
                pass  # a value seen for the first time, or something wrong
        members = []
        weights: list[float] = []
        for awake in self._readers:
            awake(row, members, weights)
        if self.everybody is not None:
            members.append(self.everybody)
            weights.append(1.0)
        return members, weights

    def of_frame(self, frame: object) -> FrameMembership:
        """Give the groups of every row of a frame: the same, bit for bit, as row by row.

        >>> import polars
        >>> from groupwise.groups import by
        >>> frame = polars.DataFrame({"sex": ["male", "female"]})
        >>> found = Groups([by("sex")], always_on=True).of_frame(frame)
        >>> found.names, found.indices.tolist()
        (['sex=male', 'always_on', 'sex=female'], [0, 1, 2, 1])
        """
        table = as_table(frame, GroupError)
        return membership(self.declarations, self.always_on, table, self.member)

    def indicator(self, member: Member) -> Indicator | None:
        """Say whether a group may have a 0/1 feature; None for always_on and intersections.

        >>> from groupwise.groups import by, cut
        >>> groups = Groups([by("sex"), by("sex") & cut("age", [35])], always_on=True)
        >>> members, _ = groups.read({"sex": "male", "age": 41})
        >>> [groups.indicator(member) for member in members]
        [Indicator(column='sex'), None, None]
        """
        everybody = member.declaration == EVERYBODY
        return None if everybody else self._indicators[member.declaration]

    def is_pair(self, member: Member) -> bool:
        """Say whether a group is one of those that ``pairs`` declares.

        >>> from groupwise.groups import by, pairs
        >>> groups = Groups([by("sex"), pairs(by("sex"), by("region"))], always_on=True)
        >>> members, _ = groups.read({"sex": "male", "region": "north"})
        >>> [groups.is_pair(member) for member in members]
        [False, True, False]
        """
        everybody = member.declaration == EVERYBODY
        return not everybody and isinstance(self.declarations[member.declaration], Pairs)

    def named(self, name: str) -> Member:
        """Find a group by its name, for what was written when groups were known by name alone.

        Where several groups have the name, it is a pair rather than another intersection, and an
        intersection rather than anything else: so such a name was understood at that time.

        >>> from groupwise.groups import by
        >>> Groups([by("sex")], always_on=True).named("sex=male").values
        ('male',)
        """
        if name == ALWAYS_ON and self.everybody is not None:
            return self.everybody
        numbers = range(len(self.declarations))
        for number in sorted(numbers, key=lambda number: _rank(self.declarations[number])):
            for values in _values_named(self.declarations[number], name):
                return self.member(number, values)
        raise GroupError(f"No declaration has a group named {name!r}.")

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return (self.declarations, self.always_on) == (other.declarations, other.always_on)

    def __hash__(self) -> int:
        return hash((self.declarations, self.always_on))

    def __deepcopy__(self, memo: Any) -> "Groups":
        return self  # it never changes, and its members stay what they are

    def __reduce__(self) -> tuple[type["Groups"], tuple[tuple[Group, ...], bool]]:
        return Groups, (self.declarations, self.always_on)

    def __repr__(self) -> str:
        return f"Groups({list(self.declarations)!r}, always_on={self.always_on})"


def _indicator(declaration: Group) -> Indicator | None:
    if isinstance(declaration, (And, Pairs)):
        return None
    one_value = isinstance(declaration, Where) and declaration.operator == "=="
    if isinstance(declaration, By) or one_value:
        return Indicator(declaration.columns[0])
    return Indicator(None)


def _rank(declaration: Group) -> int:
    """Where a declaration comes when a name is looked for."""
    kinds = [isinstance(declaration, Pairs), isinstance(declaration, And), not declaration.is_open]
    return kinds.index(True) if any(kinds) else len(kinds)


def _values_named(declaration: Group, name: str, part: bool = False) -> Iterator[Values]:
    """Give the values of every group of a declaration, or part of one, that has this name.

    The only place where names are taken apart. A name with " & " in it can be read in several ways.
    """
    if isinstance(declaration, By):
        if name.startswith(f"{declaration.column}="):
            yield (name.removeprefix(f"{declaration.column}="),)
    elif isinstance(declaration, And):
        yield from _intersections_named(declaration.parts, name)
    elif isinstance(declaration, Pairs):
        for numbers, both in declaration.combinations.items():
            for values in _values_named(both, name):
                yield numbers + values
    else:
        names = [wrapped(one, declaration) if part else one for one in declaration.names]
        if name in names:
            yield declaration.every[names.index(name)]


def _intersections_named(parts: Sequence[Group], name: str) -> Iterator[Values]:
    first, *others = parts
    if not others:
        yield from _values_named(first, name, part=True)
        return
    pieces = name.split(And.word)
    for end in range(1, len(pieces)):
        for values in _values_named(first, And.word.join(pieces[:end]), part=True):
            for rest in _intersections_named(others, And.word.join(pieces[end:])):
                yield values + rest


def _products(declaration: Group) -> list[tuple[Group, ...]]:
    """Write a family as intersections of declarations that are none themselves."""
    if isinstance(declaration, Pairs):
        return [
            product for both in declaration.combinations.values() for product in _products(both)
        ]
    if isinstance(declaration, And):
        sides = [_products(part) for part in declaration.parts]
        return [tuple(itertools.chain(*combined)) for combined in itertools.product(*sides)]
    return [(declaration,)]


def _check_names(declarations: Sequence[Group]) -> None:
    """Refuse declarations that would give two groups the same name."""
    for declaration in declarations:
        if not declaration.is_open and len(set(declaration.names)) < len(declaration.names):
            raise GroupError(f"{declaration!r} names two groups alike. Rename a column or label.")
    products = [product for one in declarations for product in _products(one)]
    for left, right in itertools.combinations(products, 2):
        if len(left) != len(right):
            continue
        shared = [_shared_name(a, b) for a, b in zip(left, right, strict=True)]
        if all(name is not None for name in shared):
            example = " & ".join(str(name) for name in shared)
            raise GroupError(
                f"The group {example!r} would exist twice. Drop one of the declarations, or parts "
                "of one, that it comes from."
            )


def _shared_name(left: Group, right: Group) -> str | None:
    """Give a name that both declarations can yield, if any."""
    if isinstance(right, By):
        left, right = right, left
    if isinstance(left, By):
        if isinstance(right, By):
            return f"{left.column}=..." if left.column == right.column else None
        same = isinstance(right, Where) and right.operator == "==" and right.column == left.column
        return right.names[0] if same else None
    names = set(left.names)
    return next((wrapped(name, left) for name in right.names if name in names), None)
