"""What every declaration of groups is, and how declarations combine.

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

import functools
import itertools
import operator
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from groupwise.errors import GroupError
from groupwise.groups.values import comparable, is_number

if TYPE_CHECKING:
    from groupwise.groups.family import Groups

ALWAYS_ON = "always_on"
"""The reserved name of the group that every row is in."""
EVERYBODY = -1
"""Where a declaration has its number, that group has this one."""

Values = tuple[str | int, ...]
Closed = Literal["right", "left"]

_SEARCH = {"left": bisect_left, "right": bisect_right}
# The declarations by the key that a TOML table knows them by; each enters itself.
_KINDS: dict[str, Any] = dict.fromkeys(
    ("by", "cut", "where", "weight", "and", "or", "not", "pairs")
)


@dataclass(slots=True, weakref_slot=True, eq=False, repr=False)
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

    declaration: int
    values: Values
    name: str
    owner: Groups | None = None

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

    keys: ClassVar[tuple[str, ...]]
    """What the fields are called in a TOML table; the first says which declaration it is."""

    def __init_subclass__(cls) -> None:
        if "keys" in vars(cls):
            _KINDS[cls.keys[0]] = cls

    @property
    def members(self) -> tuple[Group, ...]:
        """The declarations this one is built from; none for a leaf."""
        return ()

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        """The declarations of single columns that this one is built from."""
        return tuple(leaf for member in self.members for leaf in member.leaves)

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns this declaration reads, each once, in order."""
        return tuple(dict.fromkeys(leaf.column for leaf in self.leaves))

    @property
    def weight_columns(self) -> tuple[str, ...]:
        """The columns that are read as weights."""
        return tuple(dict.fromkeys(leaf.column for leaf in self.leaves if leaf.weighs))

    @property
    def is_open(self) -> bool:
        """Whether new groups can appear along the stream."""
        return any(leaf.opens for leaf in self.leaves)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of a closed family, in order."""
        if self.is_open:
            raise GroupError(f"{self!r} is an open family: its names appear with the rows.")
        return tuple(map(self.name_of, self.every))

    @cached_property
    def every(self) -> tuple[Values, ...]:
        """The values of the groups of a closed family, in the order of the names."""
        return tuple((number,) for number in range(len(self.names)))

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
        given = zip(self.keys, fields(self), strict=True)  # type: ignore[arg-type]
        table = {key: (getattr(self, field.name), field.default) for key, field in given}
        return {key: _plain(value) for key, (value, usual) in table.items() if value != usual}

    @staticmethod
    def from_dict(table: Mapping[str, Any]) -> Group:
        """Read a declaration from plain values.

        >>> Group.from_dict({"where": "bmi", "op": ">=", "value": 30}).names
        ('bmi >= 30',)
        """
        if not isinstance(table, Mapping):
            raise GroupError(
                f"{table!r} is no group declaration. Write a table such as by = 'sex'."
            )
        kinds = [name for name in _KINDS if name in table]
        if len(kinds) != 1:
            listed = ", ".join(repr(key) for key in table)
            raise GroupError(
                f"A group declaration with the keys {listed or 'none'} has {len(kinds)} kinds. "
                f"Use exactly one of {', '.join(_KINDS)}."
            )
        name, kind = kinds[0], _KINDS[kinds[0]]
        for key in table:
            if key not in kind.keys:
                known = ", ".join(kind.keys[1:]) or "no other key"
                raise GroupError(f"Unknown key {key!r} next to {name!r}. Known there: {known}.")
        given = {}
        for key, field in zip(kind.keys, fields(kind), strict=True):
            if key in table:
                given[field.name] = table[key]
            elif field.default is MISSING:
                raise GroupError(f"The key {key!r} is missing next to {name!r}.")
        if issubclass(kind, Leaf):
            for key in ("edges", "labels"):
                if not isinstance(given.get(key, []), list):
                    raise GroupError(f"The key {key!r} holds {given[key]!r}. Give a list.")
            leaf: Group = kind(**given)
            return leaf
        content = table[name]
        if kind is Not:
            return ~Group.from_dict(content)
        if not isinstance(content, list):
            raise GroupError(f"The key {name!r} holds {content!r}. Give a list of declarations.")
        parts = [Group.from_dict(part) for part in content]
        if kind is Pairs:
            return Pairs(tuple(parts))
        if len(parts) < 2:
            raise GroupError(f"The key {name!r} combines two declarations or more.")
        return functools.reduce(operator.and_ if kind is And else operator.or_, parts)

    def __and__(self, other: object) -> Group:
        return And(_flat(And, self, other)) if isinstance(other, Group) else NotImplemented

    def __or__(self, other: object) -> Group:
        return Or(_flat(Or, self, other)) if isinstance(other, Group) else NotImplemented

    def __invert__(self) -> Group:
        return Not(self)


class Intervals(NamedTuple):
    """The groups of numbers: of each interval between edges its group, None for none."""

    column: str
    edges: tuple[float, ...]
    side: Closed
    """On which side of an edge that is equal to it a number comes."""
    groups: tuple[Values | None, ...]

    def read(self, value: Any) -> tuple[Values, float] | None:
        """Say which group a value is in; its weight there is 1."""
        if not is_number(value):
            raise GroupError(
                f"Column {self.column!r} holds {value!r} of type {type(value).__name__}, but its "
                "groups compare numbers. Give numbers there (None where unknown), or declare the "
                f"groups with by({self.column!r}) or where({self.column!r}, '==', value)."
            )
        values = self.groups[_SEARCH[self.side](self.edges, comparable(value))]
        return None if values is None else (values, 1.0)


@dataclass(frozen=True)
class Leaf(Group):
    """A declaration that reads one column."""

    column: str
    opens: ClassVar[bool] = False
    """Do new groups appear along the stream?"""
    weighs: ClassVar[bool] = False
    """Does the column hold weights?"""

    def __post_init__(self) -> None:
        if not isinstance(self.column, str) or not self.column:
            raise GroupError(
                f"{self.column!r} is not the name of a column. Give text that is not empty."
            )

    @property
    def leaves(self) -> tuple[Leaf, ...]:
        return (self,)

    @cached_property
    def intervals(self) -> Intervals | None:
        """Where the groups lie among numbers; None where numbers are not compared."""
        return None

    def read(self, value: Any) -> tuple[Values, float] | None:
        """Say which group a value is in and its weight there; None for none.

        The value is not missing: such a one is in no group.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class Compound(Group):
    """A declaration built from two others or more; its groups join their names with a word."""

    word: ClassVar[str] = " & "
    parts: tuple[Group, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "parts", tuple(self.parts))
        check_parts(self.parts)
        if len(self.parts) < 2:
            raise GroupError(
                f"{type(self).__name__} combines 2 declarations or more; {len(self.parts)} given."
            )

    @property
    def members(self) -> tuple[Group, ...]:
        return self.parts


class And(Compound):
    """Every intersection of one group from each part; the weight is the product."""

    keys = ("and",)

    @cached_property
    def every(self) -> tuple[Values, ...]:
        sides = itertools.product(*(part.every for part in self.parts))
        return tuple(tuple(itertools.chain(*values)) for values in sides)

    def take_name(self, values: Iterator[str | int]) -> str:
        names = [(part.take_name(values), part) for part in self.parts]
        return self.word.join(wrapped(name, part) for name, part in names)


class Or(Compound):
    """Every union of one group from each part; the weight is the maximum."""

    keys = ("or",)
    word = " | "

    def __post_init__(self) -> None:
        super().__post_init__()
        check_parts(self.parts, "|")

    @cached_property
    def names(self) -> tuple[str, ...]:
        return tuple(map(self.word.join, itertools.product(*(part.names for part in self.parts))))


@dataclass(frozen=True)
class Not(Group):
    """The complement of every group of a closed family; the weight is one minus the weight."""

    keys = ("not",)
    part: Group

    def __post_init__(self) -> None:
        check_parts((self.part,), "~")

    @property
    def members(self) -> tuple[Group, ...]:
        return (self.part,)

    @cached_property
    def names(self) -> tuple[str, ...]:
        text = "not ({})" if isinstance(self.part, Compound) else "not {}"
        return tuple(map(text.format, self.part.names))

    def __invert__(self) -> Group:
        return self.part


class Pairs(Compound):
    """The intersections of every two of its parts, as one family; made by ``pairs``."""

    keys = ("pairs",)

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(set(self.parts)) < len(self.parts):
            raise GroupError(
                "pairs was given the same declaration twice. Give each declaration once."
            )

    @cached_property
    def combinations(self) -> dict[tuple[int, int], And]:
        """The intersection of every two of the parts, by their numbers."""
        two = itertools.combinations(range(len(self.parts)), 2)
        return {(left, right): And((self.parts[left], self.parts[right])) for left, right in two}

    @cached_property
    def every(self) -> tuple[Values, ...]:
        both = self.combinations.items()
        return tuple(numbers + values for numbers, one in both for values in one.every)

    def take_name(self, values: Iterator[str | int]) -> str:
        which: Any = (next(values, None), next(values, None))
        if which not in self.combinations:
            raise GroupError(f"{which!r} are not two parts of {self!r}.")
        return self.combinations[which].take_name(values)


from_dict = Group.from_dict


def wrapped(name: str, part: Group) -> str:
    """Put the name of a part of an intersection in parentheses where ``&`` binds tighter."""
    return f"({name})" if isinstance(part, Or) else name


def _flat(kind: type[Compound], *parts: Group) -> tuple[Group, ...]:
    flat = (part.members if isinstance(part, kind) else (part,) for part in parts)
    return tuple(itertools.chain.from_iterable(flat))


def check_parts(parts: Iterable[object], closing: str = "") -> None:
    """Check that these are declarations, and closed where the sign around them needs that."""
    for part in parts:
        if not isinstance(part, Group):
            hint = f"by({part!r}), " if isinstance(part, str) else "by, "
            raise GroupError(f"{part!r} is not a group declaration. Use {hint}cut, where, ...")
        if closing and part.is_open:
            raise GroupError(
                f"{closing} cannot be used on {part!r}: its groups are not known until the rows "
                "come. Name the groups instead, e.g. where(column, '==', value) or "
                "where(column, 'in', [values])."
            )


def _plain(value: Any) -> Any:
    """A field of a declaration as TOML holds it."""
    if isinstance(value, Group):
        return value.to_dict()
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
