"""Declaring groups.

Every declaration is a *family*: a row is in some of its groups, each with a weight in (0, 1]. A
family is *closed* when its groups are known before any row is seen (``cut``, ``where``, ``weight``
and what is built from them) and *open* when they appear along the stream (``by``).

Which group of a family is meant is said by *values*, a tuple that depends on the declaration:

==================  ============================================================
``by``              the value as text
``cut``             the number of the interval
``where, weight``   nothing: there is one group
``&``               the values of its parts, one after another
``|, ~``            the number among the groups of the family, as ``names`` has them
``pairs``           the numbers of the two parts, then the values of both
==================  ============================================================
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from groupwise.errors import GroupError
from groupwise.groups.values import is_missing, is_number, value_name

if TYPE_CHECKING:
    from groupwise.groups.family import Groups

ALWAYS_ON = "always_on"
"""The reserved name of the group that every row is in."""
EVERYBODY = -1
"""Where a declaration has its number, that group has this one."""

EQUALITY_OPERATORS = ("==", "!=")
LIST_OPERATORS = ("in", "not in")
ORDER_OPERATORS = ("<", "<=", ">", ">=")
OPERATORS = (*EQUALITY_OPERATORS, *ORDER_OPERATORS, *LIST_OPERATORS)

Closed = Literal["right", "left"]
Values = tuple[str | int, ...]


class Member:
    """One group: which declaration it comes from, and which of its groups it is.

    ``Groups`` gives the same object for the same group as long as anybody holds it, so that groups
    are compared and looked up as objects. The name is for showing; two groups may have the same.

    Parameters
    ----------
    declaration : the number of the declaration in its model; ``EVERYBODY`` for the always-on group.
    values : which of the declaration's groups, as the module says.
    name : the text to show.
    owner : whose group it is; None where it only tells of one, as in a ticket read from text.
    """

    __slots__ = ("__weakref__", "declaration", "name", "owner", "values")

    def __init__(
        self, declaration: int, values: Values, name: str, owner: Groups | None = None
    ) -> None:
        self.declaration = declaration
        self.values = values
        self.name = name
        self.owner = owner

    @property
    def key(self) -> tuple[int, Values]:
        """Declaration and values: the group as plain values."""
        return self.declaration, self.values

    def __repr__(self) -> str:
        return f"Member({self.declaration}, {self.values!r}, {self.name!r})"

    def __deepcopy__(self, memo: Any) -> Member:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self.owner is None:
            return Member, (self.declaration, self.values, self.name)
        return self.owner.member, self.key


class Group:
    """The base of every declaration; combine declarations with ``&``, ``|`` and ``~``.

    >>> from groupwise.groups import by, cut
    >>> family = by("sex") & cut("age", [35])
    >>> family.columns
    ('sex', 'age')
    """

    @property
    def members(self) -> tuple[Group, ...]:
        """The declarations this one is built from; none for a leaf."""
        return ()

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns this declaration reads, each once, in order."""
        found = itertools.chain.from_iterable(member.columns for member in self.members)
        return tuple(dict.fromkeys(found))

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns that are read as weights."""
        found = itertools.chain.from_iterable(member.weight_columns for member in self.members)
        return tuple(dict.fromkeys(found))

    @property
    def is_open(self) -> bool:
        """Whether new groups can appear along the stream."""
        return any(member.is_open for member in self.members)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of a closed family, in order."""
        raise GroupError(f"{self!r} is an open family: its names appear with the rows.")

    def name_of(self, values: Values) -> str:
        """Name the group of the family that these values mean.

        >>> from groupwise.groups import by, cut
        >>> (by("sex") & cut("age", [35])).name_of(("male", 1))
        'sex=male & age: > 35'
        """
        rest = iter(values)
        name = self.take_name(rest)
        if next(rest, None) is not None:
            raise GroupError(f"{values!r} are too many values for a group of {self!r}.")
        return name

    def take_name(self, values: Iterator[str | int]) -> str:
        """Name a group by the first of these values, and leave the others."""
        number = next(values, None)
        if type(number) is not int or not 0 <= number < len(self.names):
            raise GroupError(f"{number!r} is not the number of a group of {self!r}.")
        return self.names[number]

    def to_dict(self) -> dict[str, Any]:
        """Give the declaration as plain values, as a TOML table holds it."""
        raise NotImplementedError

    @staticmethod
    def from_dict(table: Mapping[str, Any]) -> Group:
        """Read a declaration back from plain values.

        >>> Group.from_dict({"by": "sex"})
        By(column='sex')
        """
        return from_dict(table)

    def __and__(self, other: object) -> Group:
        if not isinstance(other, Group):
            return NotImplemented
        return And(tuple(_flatten((self, other), And)))

    def __or__(self, other: object) -> Group:
        if not isinstance(other, Group):
            return NotImplemented
        return Or(tuple(_flatten((self, other), Or)))

    def __invert__(self) -> Group:
        return Not(self)


class Leaf(Group):
    """A declaration that reads one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def not_a_number(self, value: object) -> GroupError:
        """The error for a value that should be a number."""
        return GroupError(
            f"Column {self.column!r} holds {value!r} of type {type(value).__name__}, but its "
            "groups compare numbers. Give numbers there (None where unknown), or declare the "
            f"groups with by({self.column!r}) or where({self.column!r}, '==', value)."
        )


@dataclass(frozen=True)
class By(Leaf):
    """A group for every value of a column, named ``column=value``; made by ``by``."""

    column: str

    def __post_init__(self) -> None:
        _check_column(self.column)

    @property
    def is_open(self) -> bool:
        return True

    def values_of(self, value: object) -> Values | None:
        """Say which group a value is in; None when the value is missing."""
        if is_missing(value):
            return None
        return (value_name(value, self.column),)

    def take_name(self, values: Iterator[str | int]) -> str:
        value = next(values, None)
        if type(value) is not str:
            raise GroupError(f"{value!r} does not say which group of {self!r} is meant.")
        return f"{self.column}={value}"

    def to_dict(self) -> dict[str, Any]:
        return {"by": self.column}


@dataclass(frozen=True)
class Cut(Leaf):
    """A group for every interval between edges, named ``column: label``; made by ``cut``."""

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


class Single(Leaf):
    """A declaration of one group."""

    def take_name(self, values: Iterator[str | int]) -> str:
        return self.names[0]


@dataclass(frozen=True)
class Where(Single):
    """One group, the rows where a column compares with a value; made by ``where``.

    Equality compares names of values, so ``value`` is kept as its name there (a tuple of names for
    ``in`` and ``not in``); for the order operators it is a number.
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
                raise self.not_a_number(value)
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
class Weight(Single):
    """One fractional group, named by its column, which holds the weight; made by ``weight``."""

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


class Compound(Group):
    """A declaration built from others; its groups join names with a word."""

    word: ClassVar[str]
    key: ClassVar[str]
    parts: tuple[Group, ...]

    @property
    def members(self) -> tuple[Group, ...]:
        return self.parts

    def _check_parts(self, least: int) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        for part in self.parts:
            if not isinstance(part, Group):
                raise GroupError(f"{part!r} is not a group declaration. Use by, cut, where, ...")
        if len(self.parts) < least:
            raise GroupError(
                f"{type(self).__name__} combines {least} declarations or more; "
                f"{len(self.parts)} given."
            )

    def to_dict(self) -> dict[str, Any]:
        return {self.key: [part.to_dict() for part in self.parts]}


@dataclass(frozen=True)
class And(Compound):
    """Every intersection of one group from each part; the weight is the product."""

    parts: tuple[Group, ...]
    word: ClassVar[str] = " & "
    key: ClassVar[str] = "and"

    def __post_init__(self) -> None:
        self._check_parts(2)

    @cached_property
    def names(self) -> tuple[str, ...]:
        if self.is_open:
            return super().names
        return _joined_names(self.parts, self.word)

    def take_name(self, values: Iterator[str | int]) -> str:
        return self.word.join(_wrapped(part.take_name(values), part, "&") for part in self.parts)


@dataclass(frozen=True)
class Or(Compound):
    """Every union of one group from each part; the weight is the maximum."""

    parts: tuple[Group, ...]
    word: ClassVar[str] = " | "
    key: ClassVar[str] = "or"

    def __post_init__(self) -> None:
        self._check_parts(2)
        _check_closed(self.parts, "|")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return _joined_names(self.parts, self.word)


@dataclass(frozen=True)
class Not(Group):
    """The complement of every group of a closed family; the weight is one minus the weight."""

    part: Group

    def __post_init__(self) -> None:
        if not isinstance(self.part, Group):
            raise GroupError(f"{self.part!r} is not a group declaration. Use by, cut, where, ...")
        _check_closed((self.part,), "~")

    @property
    def members(self) -> tuple[Group, ...]:
        return (self.part,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(f"not {_wrapped(name, self.part, '~')}" for name in self.part.names)

    def __invert__(self) -> Group:
        return self.part

    def to_dict(self) -> dict[str, Any]:
        return {"not": self.part.to_dict()}


@dataclass(frozen=True)
class Pairs(Compound):
    """The intersections of every two of its parts, as one family; made by ``pairs``."""

    parts: tuple[Group, ...]
    word: ClassVar[str] = " & "
    key: ClassVar[str] = "pairs"

    def __post_init__(self) -> None:
        self._check_parts(2)
        if len(set(self.parts)) < len(self.parts):
            raise GroupError(
                "pairs was given the same declaration twice. Give each declaration once."
            )

    @cached_property
    def names(self) -> tuple[str, ...]:
        if self.is_open:
            return super().names
        return tuple(
            name
            for two in itertools.combinations(self.parts, 2)
            for name in _joined_names(two, self.word)
        )

    @property
    def combinations(self) -> Iterator[tuple[tuple[int, int], tuple[Group, Group]]]:
        """Every two of the parts, their numbers first."""
        numbers = range(len(self.parts))
        for left, right in itertools.combinations(numbers, 2):
            yield (left, right), (self.parts[left], self.parts[right])

    def take_name(self, values: Iterator[str | int]) -> str:
        which = (next(values, None), next(values, None))
        for numbers, parts in self.combinations:
            if numbers == which:
                return self.word.join(_wrapped(part.take_name(values), part, "&") for part in parts)
        raise GroupError(f"{which!r} are not two parts of {self!r}.")


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
    kept = labels if labels is None or isinstance(labels, str) else tuple(labels)
    try:
        bounds = tuple(edges)
    except TypeError:
        raise GroupError(
            f"The edges of cut({column!r}) are {edges!r}. Give a list of numbers."
        ) from None
    return Cut(column, bounds, kept, closed)  # type: ignore[arg-type]


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


_KINDS = ("by", "cut", "where", "weight", "and", "or", "not", "pairs")
_REQUIRED = {"cut": ("edges",), "where": ("op", "value")}
_OPTIONAL = {"cut": ("labels", "closed")}


def from_dict(table: Mapping[str, Any]) -> Group:
    """Read one declaration from plain values.

    >>> from_dict({"where": "bmi", "op": ">=", "value": 30}).names
    ('bmi >= 30',)
    """
    if not isinstance(table, Mapping):
        raise GroupError(f"{table!r} is no group declaration. Write a table such as by = 'sex'.")
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        listed = ", ".join(repr(key) for key in table)
        raise GroupError(
            f"A group declaration with the keys {listed or 'none'} has {len(kinds)} kinds. "
            f"Use exactly one of {', '.join(_KINDS)}."
        )
    kind = kinds[0]
    required, optional = _REQUIRED.get(kind, ()), _OPTIONAL.get(kind, ())
    for key in table:
        if key not in (kind, *required, *optional):
            known = ", ".join((*required, *optional)) or "no other key"
            raise GroupError(f"Unknown key {key!r} next to {kind!r}. Known there: {known}.")
    for key in required:
        if key not in table:
            raise GroupError(f"The key {key!r} is missing next to {kind!r}.")
    return _build(kind, table)


def _build(kind: str, table: Mapping[str, Any]) -> Group:
    content = table[kind]
    if kind == "by":
        return by(content)
    if kind == "weight":
        return weight(content)
    if kind == "cut":
        for key in ("edges", "labels"):
            if key in table and not isinstance(table[key], list):
                raise GroupError(f"The key {key!r} holds {table[key]!r}. Give a list.")
        return cut(content, table["edges"], table.get("labels"), table.get("closed", "right"))
    if kind == "where":
        return where(content, table["op"], table["value"])
    if kind == "not":
        return ~from_dict(content)
    if not isinstance(content, list):
        raise GroupError(f"The key {kind!r} holds {content!r}. Give a list of declarations.")
    parts = [from_dict(part) for part in content]
    if kind == "pairs":
        return pairs(*parts)
    if len(parts) < 2:
        raise GroupError(f"The key {kind!r} combines two declarations or more.")
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part if kind == "and" else combined | part
    return combined


def _flatten(parts: Iterable[Group], kind: type[Group]) -> Iterable[Group]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.members
        else:
            yield part


def _wrapped(name: str, part: Group, operator: str) -> str:
    """Put the name of a part in parentheses where the operator around it binds tighter."""
    return f"({name})" if needs_parentheses(part, operator) else name


def needs_parentheses(part: Group, operator: str) -> bool:
    """Say whether names of a part need parentheses inside ``&``, ``|`` or ``~``."""
    if operator == "~":
        return isinstance(part, Compound)
    return operator == "&" and isinstance(part, Or)


def _joined_names(parts: Sequence[Group], word: str) -> tuple[str, ...]:
    sides = [[_wrapped(name, part, word.strip()) for name in part.names] for part in parts]
    return tuple(word.join(names) for names in itertools.product(*sides))


def _check_closed(parts: Iterable[Group], operator: str) -> None:
    for part in parts:
        if part.is_open:
            raise GroupError(
                f"{operator} cannot be used on {part!r}: its groups are not known until the rows "
                "come. Name the groups instead, e.g. where(column, '==', value) or "
                "where(column, 'in', [values])."
            )


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
