"""All declarations of a model together: the groups of a row and of a frame."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import GroupError
from .base import ALWAYS_ON, Group
from .columns import Table, as_table
from .compounds import And, Pairs, wrapped
from .frames import FrameMembership, membership, twice_message
from .leaves import By, Where
from .rows import ByReader, reader

# Names whose indicator is remembered; beyond it the memory starts afresh.
_REMEMBERED_NAMES = 1 << 16


class Indicator(NamedTuple):
    """A group that may have a 0/1 feature; `column` is set when it is one value of a column."""

    column: str | None


class Groups:
    """The declarations of a model, ready to be read off rows and frames.

    Parameters
    ----------
    declarations: what `by`, `cut`, `where`, `weight`, `pairs` and their combinations gave.
    always_on: whether every row is also in the group `always_on`, named last.

    >>> from groupwise.groups import by, cut
    >>> groups = Groups([by("sex"), cut("age", [35])], always_on=True)
    >>> groups.of_row({"sex": "male", "age": 41})
    (['sex=male', 'age: > 35', 'always_on'], [1.0, 1.0, 1.0])
    """

    def __init__(self, declarations: Sequence[Group], always_on: bool) -> None:
        if isinstance(declarations, Group):
            raise GroupError("Give a list of group declarations, not a single one.")
        self.declarations: tuple[Group, ...] = tuple(declarations)
        self.always_on = bool(always_on)
        for declaration in self.declarations:
            if not isinstance(declaration, Group):
                raise GroupError(
                    f"{declaration!r} is not a group declaration. Use by, cut, where, ..."
                )
        if not self.declarations and not self.always_on:
            raise GroupError("No groups. Declare at least one, or set always_on=True.")
        self.columns = _distinct(one.columns for one in self.declarations)
        self.weight_columns = _distinct(one.weight_columns for one in self.declarations)
        _check_names(self.declarations)
        readers = [reader(declaration) for declaration in self.declarations]
        self._readers = [one.awake for one in readers]
        # The most common model has a group per value of some columns, and nothing else.
        plain = [one for one in readers if type(one) is ByReader]
        self._remembered = [(one.column, one.remembered) for one in plain]
        self._plain = len(self._remembered) == len(readers)
        self._last = [ALWAYS_ON] if self.always_on else []
        self._ones = [1.0] * (len(readers) + len(self._last))
        self._indicators: dict[str, Indicator | None] = {}
        self._closed: dict[str, Indicator | None] = {}
        self._open_intersections: list[re.Pattern[str]] = []
        self._pairs = [
            _pattern(product)
            for one in self.declarations
            if isinstance(one, Pairs)
            for product in _products(one)
        ]
        for declaration in self.declarations:
            self._note_indicators(declaration)
        self._by_columns = [one.column for one in self.declarations if isinstance(one, By)]

    def of_row(self, row: Mapping[str, Any]) -> tuple[list[str], list[float]]:
        """Give names and weights of the groups a row is in, in the order of declaration."""
        names, weights = self.read(row)
        self.check_distinct(names)
        return names, list(weights)

    def read(self, row: Mapping[str, Any]) -> tuple[list[str], list[float]]:
        """`of_row` before the check that no name occurs twice, for those who do that themselves."""
        if self._plain:
            try:
                names = [
                    names_of[type(row[column])][row[column]]
                    for column, names_of in self._remembered
                ]
                return names + self._last, self._ones
            except (KeyError, TypeError, IndexError):
                pass  # a value seen for the first time, or something wrong
        names = []
        weights: list[float] = []
        for awake in self._readers:
            awake(row, names, weights)
        if self.always_on:
            names.append(ALWAYS_ON)
            weights.append(1.0)
        return names, weights

    def check_distinct(self, names: Sequence[str]) -> None:
        """Refuse names of which one occurs twice."""
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise GroupError(twice_message(twice))

    def of_frame(self, frame: object) -> FrameMembership:
        """Give the groups of every row of a frame: the same, bit for bit, as row by row.

        >>> import polars
        >>> from groupwise.groups import by
        >>> frame = polars.DataFrame({"sex": ["male", None]})
        >>> Groups([by("sex")], always_on=False).of_frame(frame).indptr.tolist()
        [0, 1, 1]
        """
        table: Table = as_table(frame, GroupError)
        return membership(self.declarations, self.always_on, table)

    def indicator(self, name: str) -> Indicator | None:
        """Say whether a group may have a 0/1 feature; None for always_on and intersections.

        >>> from groupwise.groups import by, cut
        >>> groups = Groups([by("sex"), by("sex") & cut("age", [35])], always_on=True)
        >>> groups.indicator("sex=male")
        Indicator(column='sex')
        >>> groups.indicator("sex=male & age: > 35") is None
        True
        """
        try:
            return self._indicators[name]
        except KeyError:
            pass
        if len(self._indicators) >= _REMEMBERED_NAMES:
            self._indicators.clear()
        found = self._indicators[name] = self._find_indicator(name)
        return found

    def is_pair(self, name: str) -> bool:
        """Say whether a group is one of those that `pairs` declares.

        >>> from groupwise.groups import by, pairs
        >>> groups = Groups([by("sex"), pairs(by("sex"), by("region"))], always_on=True)
        >>> groups.is_pair("sex=male"), groups.is_pair("sex=male & region=north")
        (False, True)
        """
        return any(pattern.fullmatch(name) for pattern in self._pairs)

    def _find_indicator(self, name: str) -> Indicator | None:
        if name in self._closed:
            return self._closed[name]
        # What an intersection could be called is taken for one, whatever text the values hold.
        if any(pattern.fullmatch(name) for pattern in self._open_intersections):
            return None
        for column in self._by_columns:
            if name.startswith(f"{column}="):
                return Indicator(column)
        return None

    def _note_indicators(self, declaration: Group) -> None:
        if isinstance(declaration, (And, Pairs)):
            for product in _products(declaration):
                self._open_intersections.append(_pattern(product))
        elif isinstance(declaration, Where):
            column = declaration.column if declaration.operator == "==" else None
            self._closed[declaration.names[0]] = Indicator(column)
        elif not declaration.is_open:
            self._closed.update(dict.fromkeys(declaration.names, Indicator(None)))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Groups):
            return NotImplemented
        return (self.declarations, self.always_on) == (other.declarations, other.always_on)

    def __hash__(self) -> int:
        return hash((self.declarations, self.always_on))

    def __reduce__(self) -> tuple[type[Groups], tuple[tuple[Group, ...], bool]]:
        return Groups, (self.declarations, self.always_on)

    def __repr__(self) -> str:
        return f"Groups({list(self.declarations)!r}, always_on={self.always_on})"


def _distinct(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(itertools.chain.from_iterable(lists)))


def _products(declaration: Group) -> list[tuple[Group, ...]]:
    """Write a family as intersections of declarations that are none themselves."""
    if isinstance(declaration, Pairs):
        inner = [
            tuple(itertools.chain(left, right))
            for one, other in itertools.combinations(declaration.parts, 2)
            for left, right in itertools.product(_products(one), _products(other))
        ]
        return inner
    if isinstance(declaration, And):
        sides = [_products(part) for part in declaration.parts]
        return [tuple(itertools.chain(*combined)) for combined in itertools.product(*sides)]
    return [(declaration,)]


def _pattern(product: tuple[Group, ...]) -> re.Pattern[str]:
    parts = []
    for part in product:
        if isinstance(part, By):
            parts.append(re.escape(part.column) + "=.*")
        else:
            names = wrapped(part.names, part, "&")
            parts.append("(?:" + "|".join(re.escape(name) for name in names) + ")")
    return re.compile(" & ".join(parts), re.DOTALL)


def _check_names(declarations: Sequence[Group]) -> None:
    """Refuse declarations that would give two groups the same name."""
    for declaration in declarations:
        if not declaration.is_open and len(set(declaration.names)) < len(declaration.names):
            raise GroupError(f"{declaration!r} names two groups alike. Rename a column or label.")
    listed = [(product, one) for one in declarations for product in _products(one)]
    for (left, one), (right, other) in itertools.combinations(listed, 2):
        if len(left) != len(right):
            continue
        shared = [_shared_name(a, b) for a, b in zip(left, right, strict=True)]
        if all(name is not None for name in shared):
            example = " & ".join(str(name) for name in shared)
            again = "declares it twice" if one is other else f"and {other!r} both declare it"
            raise GroupError(
                f"The group {example!r} would exist twice: {one!r} {again}. Drop one of them."
            )


def _shared_name(left: Group, right: Group) -> str | None:
    """Give a name that both declarations can yield, if any."""
    if isinstance(right, By):
        left, right = right, left
    if isinstance(left, By):
        if isinstance(right, By):
            return f"{left.column}=..." if left.column == right.column else None
        if isinstance(right, Where) and right.operator == "==" and right.column == left.column:
            return right.names[0]
        return None
    names = set(left.names)
    found = next((name for name in right.names if name in names), None)
    return None if found is None else wrapped([found], left, "&")[0]
