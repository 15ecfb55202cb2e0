"""Declarations that read one column: `by`, `cut`, `where` and `weight`."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from ..errors import GroupError
from .base import ALWAYS_ON, Leaf
from .values import is_missing, is_number, value_name

EQUALITY_OPERATORS = ("==", "!=")
LIST_OPERATORS = ("in", "not in")
ORDER_OPERATORS = ("<", "<=", ">", ">=")
OPERATORS = (*EQUALITY_OPERATORS, *ORDER_OPERATORS, *LIST_OPERATORS)

Closed = Literal["right", "left"]


@dataclass(frozen=True)
class By(Leaf):
    """A group for every value of a column, named `column=value`; made by `by`."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)

    @property
    def is_open(self) -> bool:
        return True

    def name_of(self, value: object) -> str | None:
        """Name the group of a value; None when the value is missing."""
        if is_missing(value):
            return None
        return f"{self.column}={value_name(value, self.column)}"

    def to_dict(self) -> dict[str, Any]:
        return {"by": self.column}


@dataclass(frozen=True)
class Cut(Leaf):
    """A group for every interval between edges, named `column: label`; made by `cut`."""

    column: str
    edges: tuple[float, ...]
    labels: tuple[str, ...] | None = None
    closed: Closed = "right"

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.closed not in ("right", "left"):
            raise GroupError(
                f"closed={self.closed!r} in cut({self.column!r}). Use 'right' or 'left'."
            )
        edges = tuple(_finite(edge, f"An edge of cut({self.column!r})") for edge in self.edges)
        if not edges:
            raise GroupError(f"cut({self.column!r}) has no edges. Give at least one number.")
        if any(low >= high for low, high in itertools.pairwise(edges)):
            raise GroupError(
                f"The edges of cut({self.column!r}) are {list(self.edges)}. "
                "Give them in strictly increasing order."
            )
        object.__setattr__(self, "edges", edges)
        if self.labels is None:
            return
        given: object = self.labels
        if not isinstance(given, (list, tuple)) or not all(isinstance(one, str) for one in given):
            raise GroupError(
                f"The labels of cut({self.column!r}) are {given!r}. Give a list of text."
            )
        labels = tuple(given)
        if len(labels) != len(edges) + 1:
            raise GroupError(
                f"cut({self.column!r}) has {len(labels)} labels for {len(edges)} edges. "
                f"Give one label per interval: {len(edges) + 1}."
            )
        if len(set(labels)) < len(labels):
            raise GroupError(f"Two labels of cut({self.column!r}) are equal: {list(labels)}.")
        object.__setattr__(self, "labels", labels)

    @cached_property
    def names(self) -> tuple[str, ...]:
        labels = self.labels if self.labels is not None else self._readable_labels()
        return tuple(f"{self.column}: {label}" for label in labels)

    def _readable_labels(self) -> Iterable[str]:
        edges = [value_name(edge, self.column) for edge in self.edges]
        right = self.closed == "right"
        yield f"{'<=' if right else '<'} {edges[0]}"
        for low, high in itertools.pairwise(edges):
            yield f"({low}, {high}]" if right else f"[{low}, {high})"
        yield f"{'>' if right else '>='} {edges[-1]}"

    def to_dict(self) -> dict[str, Any]:
        table: dict[str, Any] = {
            "cut": self.column,
            "edges": [_plain_number(edge) for edge in self.edges],
        }
        if self.labels is not None:
            table["labels"] = list(self.labels)
        if self.closed != "right":
            table["closed"] = self.closed
        return table


@dataclass(frozen=True)
class Where(Leaf):
    """One group, the rows where a column compares with a value; made by `where`.

    Equality compares names of values, so `value` is kept as its name there (a tuple of names for
    `in` and `not in`); for the order operators it is a number.
    """

    column: str
    operator: str
    value: str | float | tuple[str, ...]

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.operator not in OPERATORS:
            raise GroupError(
                f"Unknown operator {self.operator!r} in where({self.column!r}). "
                f"Use one of {', '.join(OPERATORS)}."
            )
        where_text = f"The value of where({self.column!r}, {self.operator!r})"
        value: object = self.value
        if self.operator in ORDER_OPERATORS:
            object.__setattr__(self, "value", _finite(value, where_text))
        elif self.operator in LIST_OPERATORS:
            if not isinstance(value, (list, tuple, set, frozenset)) or not value:
                raise GroupError(f"{where_text} is {value!r}. Give a list of one value or more.")
            if any(is_missing(one) for one in value):
                raise GroupError(f"{where_text} holds a missing value, which is in no group.")
            found = [value_name(one, self.column) for one in value]
            if isinstance(value, (set, frozenset)):
                found.sort()
            object.__setattr__(self, "value", tuple(dict.fromkeys(found)))
        elif is_missing(value):
            raise GroupError(f"{where_text} is {value!r}: a missing value is in no group.")
        else:
            object.__setattr__(self, "value", value_name(value, self.column))

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

    def holds(self, value: object) -> bool:
        """Say whether a value that is not missing is in the group."""
        if self.is_ordered:
            if not is_number(value):
                raise self._not_a_number(value)
            return _compare(self.operator, value, self.value)
        name = value_name(value, self.column)
        among = self.value if isinstance(self.value, tuple) else (self.value,)
        return (name in among) == (self.operator in ("==", "in"))

    def to_dict(self) -> dict[str, Any]:
        value: Any = self.value
        if isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, float):
            value = _plain_number(value)
        return {"where": self.column, "op": self.operator, "value": value}


@dataclass(frozen=True)
class Weight(Leaf):
    """One fractional group, named by its column, which holds the weight; made by `weight`."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)
        if self.column == ALWAYS_ON:
            raise GroupError(
                f"{ALWAYS_ON!r} is the reserved name of the group of all rows. "
                "Rename the weight column."
            )

    @property
    def weight_columns(self) -> tuple[str, ...]:
        return (self.column,)

    @property
    def names(self) -> tuple[str, ...]:
        return (self.column,)

    def weight_of(self, value: object) -> float:
        """Give the weight of a value that is not missing."""
        try:
            weight = float(value)  # type: ignore[arg-type]
        except (TypeError, ValueError, OverflowError):
            weight = math.nan
        if isinstance(value, str) or not 0.0 <= weight <= 1.0:
            raise GroupError(
                f"Weight column {self.column!r} holds {value!r}. "
                "A membership weight is a number in [0, 1]; give None where it is unknown."
            )
        return weight

    def to_dict(self) -> dict[str, Any]:
        return {"weight": self.column}


def _check_column(column: object) -> None:
    if not isinstance(column, str) or not column:
        raise GroupError(f"{column!r} is not the name of a column. Give text that is not empty.")


def _finite(value: object, what: str) -> float:
    if is_number(value):
        try:
            number = float(value)  # type: ignore[arg-type]
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise GroupError(f"{what} is {value!r}. Give a finite number.")


def _plain_number(number: float) -> int | float:
    return int(number) if number.is_integer() else number


def _compare(operator: str, left: Any, right: Any) -> bool:
    if operator == "<":
        return bool(left < right)
    if operator == "<=":
        return bool(left <= right)
    if operator == ">":
        return bool(left > right)
    return bool(left >= right)
