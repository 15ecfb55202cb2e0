"""Declarations built from others: `&`, `|`, `~` and `pairs`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from ..errors import GroupError
from .base import Group


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
        return tuple(f"not {name}" for name in wrapped(self.part.names, self.part, "~"))

    def __invert__(self) -> Group:
        return self.part

    def to_dict(self) -> dict[str, Any]:
        return {"not": self.part.to_dict()}


@dataclass(frozen=True)
class Pairs(Compound):
    """The intersections of every two of its parts, as one family; made by `pairs`."""

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


def wrapped(names: Iterable[str], part: Group, operator: str) -> tuple[str, ...]:
    """Put names of a part in parentheses where the operator around them binds tighter."""
    if needs_parentheses(part, operator):
        return tuple(f"({name})" for name in names)
    return tuple(names)


def needs_parentheses(part: Group, operator: str) -> bool:
    """Say whether names of a part need parentheses inside `&`, `|` or `~`."""
    if operator == "~":
        return isinstance(part, Compound)
    return operator == "&" and isinstance(part, Or)


def _joined_names(parts: Sequence[Group], word: str) -> tuple[str, ...]:
    sides = [wrapped(part.names, part, word.strip()) for part in parts]
    return tuple(word.join(names) for names in itertools.product(*sides))


def _check_closed(parts: Iterable[Group], operator: str) -> None:
    for part in parts:
        if part.is_open:
            raise GroupError(
                f"{operator} cannot be used on {part!r}: its groups are not known until the rows "
                "come. Name the groups instead, e.g. where(column, '==', value) or "
                "where(column, 'in', [values])."
            )
