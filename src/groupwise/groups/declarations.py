"""Declaring groups: the declarations that read a column, and what makes them."""

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from groupwise.errors import GroupError
from groupwise.groups.algebra import ALWAYS_ON, Closed, Group, Intervals, Leaf, Pairs, Values
from groupwise.groups.values import is_missing, is_number, value_name

__all__ = ["By", "Cut", "Leaf", "Weight", "Where", "by", "cut", "pairs", "weight", "where"]

LIST_OPERATORS = ("in", "not in")
ORDER_OPERATORS = ("<", "<=", ">", ">=")
OPERATORS = ("==", "!=", *ORDER_OPERATORS, *LIST_OPERATORS)


@dataclass(frozen=True)
class By(Leaf):
    """A group for every value of a column, named ``column=value``; made by ``by``."""

    keys = ("by",)
    opens = True

    def read(self, value: Any) -> tuple[Values, float]:
        return (value_name(value, self.column),), 1.0

    def take_name(self, values: Iterator[str | int]) -> str:
        value = next(values, None)
        if type(value) is not str:
            raise GroupError(f"{value!r} does not say which group of {self!r} is meant.")
        return f"{self.column}={value}"


@dataclass(frozen=True)
class Cut(Leaf):
    """A group for every interval between edges, named ``column: label``; made by ``cut``."""

    keys = ("cut", "edges", "labels", "closed")
    edges: tuple[float, ...]
    labels: tuple[str, ...] | None = None
    closed: Closed = "right"

    def __post_init__(self) -> None:
        super().__post_init__()
        this = f"cut({self.column!r})"
        if self.closed not in ("right", "left"):
            raise GroupError(f"closed={self.closed!r} in {this}. Use 'right' or 'left'.")
        if not isinstance(self.edges, Iterable):
            raise GroupError(f"The edges of {this} are {self.edges!r}. Give a list of numbers.")
        edges = tuple(_finite(edge, f"An edge of {this}") for edge in self.edges)
        if not edges:
            raise GroupError(f"{this} has no edges. Give at least one number.")
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise GroupError(
                f"The edges of {this} are {list(self.edges)}. "
                "Give them in strictly increasing order."
            )
        object.__setattr__(self, "edges", edges)
        if self.labels is None:
            return
        given: Any = self.labels
        labels = tuple(given) if isinstance(given, Iterable) else ()
        if not labels or isinstance(given, str) or not all(isinstance(one, str) for one in labels):
            raise GroupError(f"The labels of {this} are {given!r}. Give a list of text.")
        if len(labels) != len(edges) + 1:
            raise GroupError(
                f"{this} has {len(labels)} labels for {len(edges)} edges. "
                f"Give one label per interval: {len(edges) + 1}."
            )
        if len(set(labels)) < len(labels):
            raise GroupError(f"Two labels of {this} are equal: {list(labels)}.")
        object.__setattr__(self, "labels", labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        labels: Sequence[str] | None = self.labels
        if labels is None:
            edges = [value_name(edge, self.column) for edge in self.edges]
            below, above, between = "<=", ">", "({}, {}]"
            if self.closed == "left":
                below, above, between = "<", ">=", "[{}, {})"
            inner = [between.format(low, high) for low, high in itertools.pairwise(edges)]
            labels = [f"{below} {edges[0]}", *inner, f"{above} {edges[-1]}"]
        return tuple(f"{self.column}: {label}" for label in labels)

    @cached_property
    def intervals(self) -> Intervals:
        side: Closed = "left" if self.closed == "right" else "right"
        return Intervals(self.column, self.edges, side, self.every)

    def read(self, value: Any) -> tuple[Values, float] | None:
        return self.intervals.read(value)


class Single(Leaf):
    """A declaration of one group."""

    every = ((),)

    def take_name(self, values: Iterator[str | int]) -> str:
        return self.names[0]


@dataclass(frozen=True)
class Where(Single):
    """One group, the rows where a column compares with a value; made by ``where``.

    Equality compares names of values, so ``value`` is kept as its name there (a tuple of names for
    ``in`` and ``not in``); for the order operators it is a number.
    """

    keys = ("where", "op", "value")
    operator: str
    value: str | float | tuple[str, ...]

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.operator not in OPERATORS:
            raise GroupError(
                f"Unknown operator {self.operator!r} in where({self.column!r}). "
                f"Use one of {', '.join(OPERATORS)}."
            )
        what = f"The value of where({self.column!r}, {self.operator!r})"
        value: object = self.value
        kept: str | float | tuple[str, ...]
        if self.is_ordered:
            kept = _finite(value, what)
        elif self.operator in LIST_OPERATORS:
            if not isinstance(value, (list, tuple, set, frozenset)) or not value:
                raise GroupError(f"{what} is {value!r}. Give a list of one value or more.")
            if any(is_missing(one) for one in value):
                raise GroupError(f"{what} holds a missing value, which is in no group.")
            found = [value_name(one, self.column) for one in value]
            ordered = sorted(found) if isinstance(value, (set, frozenset)) else found
            kept = tuple(dict.fromkeys(ordered))
        elif is_missing(value):
            raise GroupError(f"{what} is {value!r}: a missing value is in no group.")
        else:
            kept = value_name(value, self.column)
        object.__setattr__(self, "value", kept)

    @cached_property
    def names(self) -> tuple[str, ...]:
        if self.operator == "==":
            return (f"{self.column}={self.value}",)
        if isinstance(self.value, tuple):
            return (f"{self.column} {self.operator} [{', '.join(self.value)}]",)
        return (f"{self.column} {self.operator} {value_name(self.value, self.column)}",)

    @property
    def is_ordered(self) -> bool:
        """Whether the operator compares numbers."""
        return self.operator in ORDER_OPERATORS

    @cached_property
    def intervals(self) -> Intervals | None:
        if not isinstance(self.value, float):
            return None
        side: Closed = "left" if self.operator in ("<=", ">") else "right"
        groups = ((), None) if self.operator in ("<", "<=") else (None, ())
        return Intervals(self.column, (self.value,), side, groups)

    def read(self, value: Any) -> tuple[Values, float] | None:
        if self.intervals is not None:
            return self.intervals.read(value)
        among = self.value if isinstance(self.value, tuple) else (self.value,)
        holds = value_name(value, self.column) in among
        return ((), 1.0) if holds == (self.operator in ("==", "in")) else None


@dataclass(frozen=True)
class Weight(Single):
    """One fractional group, named by its column, which holds the weight; made by ``weight``."""

    keys = ("weight",)
    weighs = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.column == ALWAYS_ON:
            raise GroupError(
                f"{ALWAYS_ON!r} is the reserved name of the group of all rows. "
                "Rename the weight column."
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def read(self, value: Any) -> tuple[Values, float] | None:
        try:
            weight = float(value)
        except (TypeError, ValueError, OverflowError):
            weight = math.nan
        if isinstance(value, str) or not 0.0 <= weight <= 1.0:
            raise GroupError(
                f"Weight column {self.column!r} holds {value!r}. "
                "A membership weight is a number in [0, 1]; give None where it is unknown."
            )
        return ((), weight) if weight > 0.0 else None


def by(column: str) -> Group:
    """Declare a group for every value of a column; a new value is a new group.

    >>> by("sex")
    By(column='sex')
    """
    return By(column)


def cut(
    column: str,
    edges: Sequence[float],
    labels: Sequence[str] | None = None,
    closed: Closed = "right",
) -> Group:
    """Declare a group for every interval between edges of a numeric column.

    With closed="right" an interval holds its upper edge, with closed="left" its lower one.

    >>> cut("age", [35, 50]).names
    ('age: <= 35', 'age: (35, 50]', 'age: > 50')
    >>> cut("age", [35, 50], labels=["young", "middle", "old"]).names
    ('age: young', 'age: middle', 'age: old')
    """
    return Cut(column, edges, labels, closed)  # type: ignore[arg-type]


def where(column: str, op: str, value: object) -> Group:
    """Declare one group: the rows where a column compares with a value.

    The operators are ==, !=, <, <=, >, >=, in and not in; the four order operators compare numbers.

    >>> where("bmi", ">=", 30).names
    ('bmi >= 30',)
    >>> where("region", "in", ["north", "south"]).names
    ('region in [north, south]',)
    """
    return Where(column, op, value)  # type: ignore[arg-type]


def weight(column: str) -> Group:
    """Declare one fractional group, whose weight in [0, 1] is the value of a column.

    >>> weight("likely_smoker").names
    ('likely_smoker',)
    """
    return Weight(column)


def pairs(*groups: Group) -> Group:
    """Declare the intersections of every two of the given declarations.

    >>> pairs(where("bmi", ">", 30), cut("age", [50]), weight("smoker")).names[:3]
    ('bmi > 30 & age: <= 50', 'bmi > 30 & age: > 50', 'bmi > 30 & smoker')
    """
    return Pairs(groups)


def _finite(value: object, what: str) -> float:
    if is_number(value):
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise GroupError(f"{what} is {value!r}. Give a finite number.")
