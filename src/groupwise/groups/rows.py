"""Which groups one row is in: a reader per declaration, quick on values it has met before.

What a reader appends for a group is what it was told to make of the group's values: a ``Member``
where it reads a declaration of the model, the values themselves where it reads a part of one.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

import numpy as np

from groupwise.errors import GroupError
from groupwise.groups.declarations import And, By, Cut, Group, Not, Or, Pairs, Values, Weight, Where
from groupwise.groups.values import REMEMBERED_TYPES, is_missing, is_number

# Values remembered per column and type. Enough for every categorical column; a continuous column
# passes through without filling the memory.
_REMEMBERED_VALUES = 4096
# Intersections remembered per declaration.
_REMEMBERED_INTERSECTIONS = 1 << 14

_PLAIN_NUMBERS = frozenset({int, float})

Row = Mapping[str, Any]
Found = TypeVar("Found")
Make = Callable[[Values], Found]
Side = list[tuple[Values, float]]


def as_values(values: Values) -> Values:
    """What a reader of a part makes of values."""
    return values


class Reader(Generic[Found]):
    """Reads one declaration off rows."""

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        """Append the groups that the row is in, and its weights in them."""
        raise NotImplementedError


class ClosedReader(Reader[Found]):
    """Reads a closed family: also as one weight per group, in the order of the names."""

    every: list[Found]

    def dense(self, row: Row) -> list[float]:
        """Give the weight of every group, 0 where the row is not in it."""
        raise NotImplementedError

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        for group, weight in zip(self.every, self.dense(row), strict=True):
            if weight > 0.0:
                found.append(group)
                weights.append(weight)


def get(row: Row, column: str) -> Any:
    """Take a group column from a row, or say that it is absent."""
    if not isinstance(row, Mapping):
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


class ByReader(Reader[Found]):
    """Reads ``by``."""

    def __init__(self, declaration: By, make: Make[Found]) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.make = make
        self.remembered: dict[type, dict[Any, Found]] = {kind: {} for kind in REMEMBERED_TYPES}

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
            found.append(self.remembered[type(value)][value])
        except (KeyError, TypeError, IndexError):
            values = self.declaration.values_of(get(row, self.column))
            if values is None:
                return
            found.append(self._first_time(row[self.column], values))
        weights.append(1.0)

    def _first_time(self, value: Any, values: Values) -> Found:
        group = self.make(values)
        known = self.remembered.get(type(value))
        if known is not None:
            if len(known) >= _REMEMBERED_VALUES:
                known.clear()
            known[value] = group
        return group


class CutReader(ClosedReader[Found]):
    """Reads ``cut``."""

    def __init__(self, declaration: Cut, make: Make[Found]) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.edges = declaration.edges
        self.every = [make((number,)) for number in range(len(self.edges) + 1)]
        self.bisect = bisect_left if declaration.closed == "right" else bisect_right

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
        except (KeyError, TypeError, IndexError):
            value = get(row, self.column)
        if type(value) in _PLAIN_NUMBERS and value == value:
            found.append(self.every[self.bisect(self.edges, value)])
            weights.append(1.0)
            return
        position = self.locate(value)
        if position is not None:
            found.append(self.every[position])
            weights.append(1.0)

    def locate(self, value: Any) -> int | None:
        """Give the interval of a value; None when it is missing."""
        if is_missing(value):
            return None
        if not is_number(value):
            raise self.declaration.not_a_number(value)
        return self.bisect(self.edges, comparable(value))

    def dense(self, row: Row) -> list[float]:
        found = [0.0] * len(self.every)
        position = self.locate(get(row, self.column))
        if position is not None:
            found[position] = 1.0
        return found


class WhereReader(ClosedReader[Found]):
    """Reads ``where``."""

    def __init__(self, declaration: Where, make: Make[Found]) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.group = make(())
        self.every = [self.group]
        self.remembered: dict[type, dict[Any, bool]] = {kind: {} for kind in REMEMBERED_TYPES}

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
            holds = self.remembered[type(value)][value]
        except (KeyError, TypeError, IndexError):
            holds = self._first_time(row)
        if holds:
            found.append(self.group)
            weights.append(1.0)

    def _first_time(self, row: Row) -> bool:
        value = get(row, self.column)
        if is_missing(value):
            return False
        holds = self.declaration.holds(comparable(value))
        known = self.remembered.get(type(value))
        if known is not None:
            if len(known) >= _REMEMBERED_VALUES:
                known.clear()
            known[value] = holds
        return holds

    def dense(self, row: Row) -> list[float]:
        return [1.0 if self._first_time(row) else 0.0]


class OrderReader(WhereReader[Found]):
    """Reads ``where`` with an order operator: comparing is cheaper than remembering."""

    def __init__(self, declaration: Where, make: Make[Found]) -> None:
        super().__init__(declaration, make)
        self.bound: Any = declaration.value
        self.below = declaration.operator in ("<", "<=")
        self.equal = declaration.operator in ("<=", ">=")

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        try:
            value = row[self.column]
        except (KeyError, TypeError, IndexError):
            value = get(row, self.column)
        if type(value) not in _PLAIN_NUMBERS:
            holds = self._first_time(row)
        elif value == self.bound:
            holds = self.equal
        else:
            holds = value < self.bound if self.below else value > self.bound
        if holds:
            found.append(self.group)
            weights.append(1.0)


class WeightReader(ClosedReader[Found]):
    """Reads ``weight``."""

    def __init__(self, declaration: Weight, make: Make[Found]) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.every = [make(())]

    def dense(self, row: Row) -> list[float]:
        value = get(row, self.column)
        return [0.0 if is_missing(value) else self.declaration.weight_of(value)]


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

    def __init__(self, declaration: And, make: Make[Found]) -> None:
        self.readers = [reader(part, as_values) for part in declaration.parts]
        self.made = Made(make)

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        joined, *others = [side(member, row) for member in self.readers]
        for other in others:
            joined = join(joined, other)
        for values, weight in joined:
            found.append(self.made[values])
            weights.append(weight)


class PairsReader(Reader[Found]):
    """Reads ``pairs``."""

    def __init__(self, declaration: Pairs, make: Make[Found]) -> None:
        self.readers = [reader(part, as_values) for part in declaration.parts]
        self.two = [numbers for numbers, _ in declaration.combinations]
        self.made = Made(make)

    def awake(self, row: Row, found: list[Found], weights: list[float]) -> None:
        sides = [side(member, row) for member in self.readers]
        for numbers in self.two:
            left, right = numbers
            for values, weight in join(sides[left], sides[right]):
                found.append(self.made[numbers + values])
                weights.append(weight)


def side(member: Reader[Values], row: Row) -> Side:
    """Read one part of an intersection."""
    found: list[Values] = []
    weights: list[float] = []
    member.awake(row, found, weights)
    return list(zip(found, weights, strict=True))


def join(left: Side, right: Side) -> Side:
    """Intersect two sides, the left one in the outer loop."""
    return [
        (values + others, weight * other)
        for values, weight in left
        for others, other in right
        if weight * other > 0.0
    ]


class DenseReader(ClosedReader[Found]):
    """Reads ``|``, ``~`` and, inside them, ``&`` and ``pairs``: group by group over the family."""

    def __init__(self, declaration: Group, make: Make[Found]) -> None:
        self.declaration = declaration
        self.columns = declaration.columns
        self.every = [make((number,)) for number in range(len(declaration.names))]
        self.members = [dense_reader(part, as_values) for part in declaration.members]

    def dense(self, row: Row) -> list[float]:
        sides = [member.dense(row) for member in self.members]
        if isinstance(self.declaration, Not):
            # The complement of what is unknown is unknown: every column must be there.
            if any(is_missing(get(row, column)) for column in self.columns):
                return [0.0] * len(self.every)
            return [1.0 - weight for weight in sides[0]]
        if isinstance(self.declaration, Or):
            return combine_dense(sides, True)
        if isinstance(self.declaration, And):
            return combine_dense(sides, False)
        found: list[float] = []
        for two in itertools.combinations(sides, 2):
            found.extend(combine_dense(list(two), False))
        return found


def combine_dense(sides: list[list[float]], union: bool) -> list[float]:
    """Combine weights of every group of each side: the maximum, or the product."""
    combined = sides[0]
    for other in sides[1:]:
        if union:
            combined = [max(left, right) for left in combined for right in other]
        else:
            combined = [left * right for left in combined for right in other]
    return combined


def reader(declaration: Group, make: Make[Found]) -> Reader[Found]:
    """Make the reader of a declaration."""
    if isinstance(declaration, By):
        return ByReader(declaration, make)
    if isinstance(declaration, And):
        return AndReader(declaration, make)
    if isinstance(declaration, Pairs):
        return PairsReader(declaration, make)
    return dense_reader(declaration, make)


def dense_reader(declaration: Group, make: Make[Found]) -> ClosedReader[Found]:
    """Make the reader of a closed declaration."""
    if isinstance(declaration, Cut):
        return CutReader(declaration, make)
    if isinstance(declaration, Where):
        kind = OrderReader if declaration.is_ordered else WhereReader
        return kind(declaration, make)
    if isinstance(declaration, Weight):
        return WeightReader(declaration, make)
    return DenseReader(declaration, make)


def comparable(value: Any) -> Any:
    """Give a number a form that compares exactly with Python floats."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    return value
