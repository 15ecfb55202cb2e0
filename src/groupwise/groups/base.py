"""The base of group declarations.

Every declaration is a *family*: a row is in some of its named groups, each with a weight in (0, 1].
A family is *closed* when its names are known before any row is seen (`cut`, `where`, `weight` and
what is built from them) and *open* when they appear along the stream (`by`).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import GroupError

ALWAYS_ON = "always_on"
"""The reserved name of the group that every row is in."""


class Group:
    """The base of every declaration; combine declarations with `&`, `|` and `~`.

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

    def to_dict(self) -> dict[str, Any]:
        """Give the declaration as plain values, as a TOML table holds it."""
        raise NotImplementedError

    @staticmethod
    def from_dict(table: Mapping[str, Any]) -> Group:
        """Read a declaration back from plain values.

        >>> Group.from_dict({"by": "sex"})
        By(column='sex')
        """
        from .toml import from_dict

        return from_dict(table)

    def __and__(self, other: object) -> Group:
        if not isinstance(other, Group):
            return NotImplemented
        from .compounds import And

        return And(tuple(_flatten((self, other), And)))

    def __or__(self, other: object) -> Group:
        if not isinstance(other, Group):
            return NotImplemented
        from .compounds import Or

        return Or(tuple(_flatten((self, other), Or)))

    def __invert__(self) -> Group:
        from .compounds import Not

        return Not(self)


class Leaf(Group):
    """A declaration that reads one column."""

    column: str

    @property
    def columns(self) -> tuple[str, ...]:
        return (self.column,)

    def _not_a_number(self, value: object) -> GroupError:
        return GroupError(
            f"Column {self.column!r} holds {value!r} of type {type(value).__name__}, but its "
            "groups compare numbers. Give numbers there (None where unknown), or declare the "
            f"groups with by({self.column!r}) or where({self.column!r}, '==', value)."
        )


def _flatten(parts: Iterable[Group], kind: type[Group]) -> Iterable[Group]:
    for part in parts:
        if isinstance(part, kind):
            yield from part.members
        else:
            yield part
