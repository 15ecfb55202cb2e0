"""Which groups one row is in: a reader per declaration, quick on values it has met before."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import GroupError
from .base import Group
from .compounds import And, Not, Or, Pairs, needs_parentheses
from .leaves import By, Cut, Weight, Where
from .values import REMEMBERED_TYPES, is_missing, is_number

# Values remembered per column and type. Enough for every categorical column; a continuous column
# passes through without filling the memory.
_REMEMBERED_VALUES = 4096

_PLAIN_NUMBERS = frozenset({int, float})

Row = Mapping[str, Any]


class Reader:
    """Reads one declaration off rows."""

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        """Append the names and weights of the groups the row is in."""
        raise NotImplementedError


class ClosedReader(Reader):
    """Reads a closed family: also as one weight per group, in the order of the names."""

    names: tuple[str, ...]

    def dense(self, row: Row) -> list[float]:
        """Give the weight of every group, 0 where the row is not in it."""
        raise NotImplementedError

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        for name, weight in zip(self.names, self.dense(row), strict=True):
            if weight > 0.0:
                names.append(name)
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


class ByReader(Reader):
    """Reads `by`."""

    def __init__(self, declaration: By) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.remembered: dict[type, dict[Any, str]] = {kind: {} for kind in REMEMBERED_TYPES}

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        try:
            value = row[self.column]
            names.append(self.remembered[type(value)][value])
        except (KeyError, TypeError, IndexError):
            name = self._first_time(row)
            if name is None:
                return
            names.append(name)
        weights.append(1.0)

    def _first_time(self, row: Row) -> str | None:
        value = get(row, self.column)
        name = self.declaration.name_of(value)
        known = self.remembered.get(type(value))
        if name is not None and known is not None:
            if len(known) >= _REMEMBERED_VALUES:
                known.clear()
            known[value] = name
        return name


class CutReader(ClosedReader):
    """Reads `cut`."""

    def __init__(self, declaration: Cut) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.names = declaration.names
        self.edges = declaration.edges
        self.bisect = bisect_left if declaration.closed == "right" else bisect_right

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        try:
            value = row[self.column]
        except (KeyError, TypeError, IndexError):
            value = get(row, self.column)
        if type(value) in _PLAIN_NUMBERS and value == value:
            names.append(self.names[self.bisect(self.edges, value)])
            weights.append(1.0)
            return
        position = self.locate(value)
        if position is not None:
            names.append(self.names[position])
            weights.append(1.0)

    def locate(self, value: Any) -> int | None:
        """Give the interval of a value; None when it is missing."""
        if is_missing(value):
            return None
        if not is_number(value):
            raise self.declaration._not_a_number(value)
        return self.bisect(self.edges, comparable(value))

    def dense(self, row: Row) -> list[float]:
        found = [0.0] * len(self.names)
        position = self.locate(get(row, self.column))
        if position is not None:
            found[position] = 1.0
        return found


class WhereReader(ClosedReader):
    """Reads `where`."""

    def __init__(self, declaration: Where) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.names = declaration.names
        self.name = declaration.names[0]
        self.remembered: dict[type, dict[Any, bool]] = {kind: {} for kind in REMEMBERED_TYPES}

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        try:
            value = row[self.column]
            holds = self.remembered[type(value)][value]
        except (KeyError, TypeError, IndexError):
            holds = self._first_time(row)
        if holds:
            names.append(self.name)
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


class OrderReader(WhereReader):
    """Reads `where` with an order operator: comparing is cheaper than remembering."""

    def __init__(self, declaration: Where) -> None:
        super().__init__(declaration)
        self.bound: Any = declaration.value
        self.below = declaration.operator in ("<", "<=")
        self.equal = declaration.operator in ("<=", ">=")

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
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
            names.append(self.name)
            weights.append(1.0)


class WeightReader(ClosedReader):
    """Reads `weight`."""

    def __init__(self, declaration: Weight) -> None:
        self.declaration = declaration
        self.column = declaration.column
        self.names = declaration.names

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        weight = self.dense(row)[0]
        if weight > 0.0:
            names.append(self.column)
            weights.append(weight)

    def dense(self, row: Row) -> list[float]:
        value = get(row, self.column)
        return [0.0 if is_missing(value) else self.declaration.weight_of(value)]


class AndReader(Reader):
    """Reads `&` where some part is open, or where only the groups a row is in are wanted."""

    def __init__(self, parts: tuple[Group, ...]) -> None:
        self.readers = [(reader(part), needs_parentheses(part, "&")) for part in parts]

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        sides = [side(member, wrap, row) for member, wrap in self.readers]
        joined = sides[0]
        for other in sides[1:]:
            joined = join(joined, other)
        names.extend(joined[0])
        weights.extend(joined[1])


class PairsReader(Reader):
    """Reads `pairs`."""

    def __init__(self, parts: tuple[Group, ...]) -> None:
        self.readers = [(reader(part), needs_parentheses(part, "&")) for part in parts]

    def awake(self, row: Row, names: list[str], weights: list[float]) -> None:
        sides = [side(member, wrap, row) for member, wrap in self.readers]
        for left, right in itertools.combinations(sides, 2):
            joined = join(left, right)
            names.extend(joined[0])
            weights.extend(joined[1])


Side = tuple[list[str], list[float]]


def side(member: Reader, wrap: bool, row: Row) -> Side:
    """Read one part of an intersection, its names ready to be joined."""
    names: list[str] = []
    weights: list[float] = []
    member.awake(row, names, weights)
    if wrap:
        names = [f"({name})" for name in names]
    return names, weights


def join(left: Side, right: Side) -> Side:
    """Intersect two sides, the left one in the outer loop."""
    names: list[str] = []
    weights: list[float] = []
    for left_name, left_weight in zip(*left, strict=True):
        for right_name, right_weight in zip(*right, strict=True):
            weight = left_weight * right_weight
            if weight > 0.0:
                names.append(f"{left_name} & {right_name}")
                weights.append(weight)
    return names, weights


class DenseReader(ClosedReader):
    """Reads `|`, `~` and, inside them, `&` and `pairs`: group by group over a closed family."""

    def __init__(self, declaration: Group) -> None:
        self.declaration = declaration
        self.columns = declaration.columns
        self.names = declaration.names
        self.members = [dense_reader(part) for part in declaration.members]

    def dense(self, row: Row) -> list[float]:
        sides = [member.dense(row) for member in self.members]
        if isinstance(self.declaration, Not):
            # The complement of what is unknown is unknown: every column must be there.
            if any(is_missing(get(row, column)) for column in self.columns):
                return [0.0] * len(self.names)
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


def reader(declaration: Group) -> Reader:
    """Make the reader of a declaration."""
    if isinstance(declaration, By):
        return ByReader(declaration)
    if isinstance(declaration, And):
        return AndReader(declaration.parts)
    if isinstance(declaration, Pairs):
        return PairsReader(declaration.parts)
    return dense_reader(declaration)


def dense_reader(declaration: Group) -> ClosedReader:
    """Make the reader of a closed declaration."""
    if isinstance(declaration, Cut):
        return CutReader(declaration)
    if isinstance(declaration, Where):
        return OrderReader(declaration) if declaration.is_ordered else WhereReader(declaration)
    if isinstance(declaration, Weight):
        return WeightReader(declaration)
    return DenseReader(declaration)


def comparable(value: Any) -> Any:
    """Give a number a form that compares exactly with Python floats."""
    if isinstance(value, np.integer):
        return int(value)
    if isinstance(value, np.floating):
        return float(value)
    return value
