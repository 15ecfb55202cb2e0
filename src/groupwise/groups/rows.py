"""Which groups one row is in: a reader per declaration, quick on values it has met before.

What a reader appends for a group is what it was told to make of the group's values: a ``Member``
where it reads a declaration of the model, the values or their number where it reads a part of one.
"""

import functools
import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from groupwise.errors import GroupError
from groupwise.groups.algebra import And, Compound, Group, Intervals, Leaf, Not, Pairs, Values
from groupwise.groups.values import REMEMBERED_TYPES, is_missing

# Values remembered per column and type. Enough for every categorical column; a continuous column
# passes through without filling the memory.
_REMEMBERED_VALUES = 4096
# Intersections remembered per declaration.
_REMEMBERED_INTERSECTIONS = 1 << 14

_PLAIN_NUMBERS = frozenset({int, float})

Row = Mapping[str, Any]
Found = TypeVar("Found")
Make = Callable[[Values], Found]


class Reader(Generic[Found]):
    """Reads one declaration off rows."""

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        """Append the groups that the row is in, and its weights in them."""
        raise NotImplementedError


class LeafReader(Reader[Found]):
    """Reads a leaf, value by value."""

    def __init__(self, declaration: Leaf, make: Make[Found]) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.make = make
        if not declaration.is_open:
            self.make = {values: make(values) for values in declaration.every}.__getitem__

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        value = get(row, self.column)
        read = None if is_missing(value) else self.declaration.read(value)
        if read is not None:
            found.append(self.make(read[0]))
            weights.append(read[1])


class NumberReader(LeafReader[Found]):
    """Reads a leaf that compares numbers: comparing is cheaper than remembering."""

    def __init__(self, declaration: Leaf, make: Make[Found], intervals: Intervals) -> None:
        super().__init__(declaration, make)
        self.edges = intervals.edges
        self.search = bisect_left if intervals.side == "left" else bisect_right
        self.groups = [None if one is None else self.make(one) for one in intervals.groups]

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
        except (KeyError, TypeError, IndexError):
            value = None  # the careful way says what is wrong
        if type(value) not in _PLAIN_NUMBERS or value != value:
            super().awake(row, found, weights)
            return
        group = self.groups[self.search(self.edges, value)]
        if group is not None:
            found.append(group)
            weights.append(1.0)


class ValueReader(LeafReader[Found]):
    """Reads a leaf that goes by the names of values, which are remembered."""

    def __init__(self, declaration: Leaf, make: Make[Found]) -> None:
        super().__init__(declaration, make)
        self.remembered: dict[type, dict[Any, Any]] = {kind: {} for kind in REMEMBERED_TYPES}

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
            group = self.remembered[type(value)][value]
        except (KeyError, TypeError, IndexError):
            group = self._first_time(get(row, self.column))
        if group is not None:
            found.append(group)
            weights.append(1.0)

    def _first_time(self, value: Any) -> Found | None:
        if is_missing(value):
            return None
        read = self.declaration.read(value)
        group = None if read is None else self.make(read[0])
        known = self.remembered.get(type(value))
        if known is not None:
            if len(known) >= _REMEMBERED_VALUES:
                known.clear()
            known[value] = group
        return group


class Made(dict[Values, Found]):
    """What was made of the values met before; forgotten where there are very many."""

    def __init__(self, make: Make[Found]) -> None:
        self.make = make

    def __missing__(self, values: Values) -> Found:
        if len(self) >= _REMEMBERED_INTERSECTIONS:
            self.clear()
        group = self[values] = self.make(values)
        return group


class AndReader(Reader[Found]):
    """Reads ``&``."""

    def __init__(self, declaration: Compound, make: Make[Found]) -> None:
        self.readers = [reader(part, tuple) for part in declaration.parts]
        self.made = Made(make)

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        for values, weight in functools.reduce(join, [side(one, row) for one in self.readers]):
            found.append(self.made[values])
            weights.append(weight)


class PairsReader(AndReader[Found]):
    """Reads ``pairs``."""

    def __init__(self, declaration: Pairs, make: Make[Found]) -> None:
        super().__init__(declaration, make)
        self.two = list(declaration.combinations)

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        sides = [side(one, row) for one in self.readers]
        for numbers in self.two:
            left, right = numbers
            for values, weight in join(sides[left], sides[right]):
                found.append(self.made[numbers + values])
                weights.append(weight)


def side(member: Reader[Found], row: Row) -> list[tuple[Found, float]]:
    """Read one part of an intersection."""
    found: list[Found] = []
    weights: list[float] = []
    member.awake(row, found, weights)
    return list(zip(found, weights, strict=True))


def join(
    left: list[tuple[Values, float]], right: list[tuple[Values, float]]
) -> list[tuple[Values, float]]:
    """Intersect two sides, the left one in the outer loop."""
    return [
        (values + others, weight * other)
        for values, weight in left
        for others, other in right
        if weight * other > 0.0
    ]


class FamilyReader(Reader[Found]):
    """Reads ``|`` and ``~``: group by group over the whole family."""

    def __init__(self, declaration: Group, make: Make[Found]) -> None:
        self.every = [make(values) for values in declaration.every]
        self.sides = [
            (reader(part, dict(zip(part.every, itertools.count())).__getitem__), len(part.every))
            for part in declaration.members
        ]
        self.complemented = declaration.columns if isinstance(declaration, Not) else ()

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        sides = []
        for part, size in self.sides:
            places: list[int] = []
            given: list[float] = []
            part.awake(row, places, given)
            dense = [0.0] * size
            for place, weight in zip(places, given, strict=True):
                dense[place] = weight
            sides.append(dense)
        if self.complemented:
            # The complement of what is unknown is unknown: every column must be there.
            if any(is_missing(get(row, column)) for column in self.complemented):
                return
            every = [1.0 - weight for weight in sides[0]]
        else:
            every = [max(combined) for combined in itertools.product(*sides)]
        for group, weight in zip(self.every, every, strict=True):
            if weight > 0.0:
                found.append(group)
                weights.append(weight)


def reader(declaration: Group, make: Make[Found]) -> Reader[Found]:
    """Make the reader of a declaration."""
    if isinstance(declaration, Pairs):
        return PairsReader(declaration, make)
    if isinstance(declaration, And):
        return AndReader(declaration, make)
    if not isinstance(declaration, Leaf):
        return FamilyReader(declaration, make)
    if declaration.intervals is not None:
        return NumberReader(declaration, make, declaration.intervals)
    return (LeafReader if declaration.weighs else ValueReader)(declaration, make)


def get(row: Row, column: str) -> Any:
    """Take a group column from a row, or say that it is absent."""
    if type(row) is not dict and not isinstance(row, Mapping):
        raise GroupError(
            f"A row is a mapping from field to value, not {type(row).__name__}. "
            "Give a dict such as {'age': 41, 'sex': 'male'}."
        )
    try:
        return row[column]
    except KeyError:
        raise GroupError(
            f"The row has no field {column!r}, which a group declaration reads. "
            "Put the field in every row (None where it is unknown), or drop that declaration."
        ) from None
