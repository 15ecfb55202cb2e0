"""Features as they are declared, and what is made of rows and frames that have them."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from groupwise.errors import FeatureError
from groupwise.groups.algebra import Member, Values

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FieldKind = Literal["number", "text"]
Bounds = dict[str, tuple[float, float]]
Declared: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float] | None] | None

# How many combinations of levels are remembered per layout, before it starts afresh.
PATTERNS = 1024

Pattern: TypeAlias = tuple[Integers, Integers | None, Callable[..., bytes]]
"""The features of a row in ascending order, the order of its values (None: as they come), and what
packs the values."""


class Feature(NamedTuple):
    """One column of numbers: a number field, one level of a text field, or a group's indicator."""

    kind: Literal["number", "level", "indicator"]
    field: str
    """The field; of an indicator, the name of its group."""
    level: str = ""
    group: tuple[int, Values] | None = None
    """Of an indicator, which group it is of; see ``groups.Member.key``."""

    @property
    def name(self) -> str:
        """The name people read; a level is named like the group of that value."""
        return f"{self.field}={self.level}" if self.kind == "level" else self.field


def indicator_of(member: Member) -> Feature:
    """The 0/1 feature of a group."""
    return Feature("indicator", member.name, "", member.key)


class EncodedFrame(NamedTuple):
    """The rows of a frame: row t has indices[indptr[t]:indptr[t + 1]], and values beside them."""

    indptr: Integers
    indices: Integers
    values: Floats
    new: tuple[Feature, ...]


def read_declared(features: Declared) -> tuple[tuple[str, ...] | None, Bounds]:
    """Read the ``features`` argument: the fields to use (None for all) and the ranges given.

    >>> read_declared({"age": (18, 64), "region": None})
    (('age', 'region'), {'age': (18.0, 64.0)})
    """
    if features is None:
        return None, {}
    if isinstance(features, str) or not isinstance(features, (Sequence, Mapping)):
        raise FeatureError(
            f"features={features!r}. Give None for every field, a list of fields, or a mapping "
            "from field to (low, high), or to None where nothing is to be scaled."
        )
    fields = tuple(features)
    for field in fields:
        if not isinstance(field, str):
            raise FeatureError(f"{field!r} is no name of a field. Fields are named by text.")
    if len(set(fields)) < len(fields):
        raise FeatureError(f"A field occurs twice in features={list(fields)!r}. Name each once.")
    if not isinstance(features, Mapping):
        return fields, {}
    ranges = {field: bounds for field, bounds in features.items() if bounds is not None}
    return fields, {field: _read_bounds(field, bounds) for field, bounds in ranges.items()}


def _read_bounds(field: str, bounds: object) -> tuple[float, float]:
    try:
        low, high = (float(bound) for bound in bounds)  # type: ignore[attr-defined]
        fits = low < high and math.isfinite(low) and math.isfinite(high - low)
    except (TypeError, ValueError, OverflowError):
        fits = False
    if not fits:
        raise FeatureError(
            f"The range of feature {field!r} is {bounds!r}. Give finite (low, high), low < high."
        )
    return low, high


def changed_kind(field: str, value: object, kind: FieldKind) -> str:
    """Say that a field that held one kind of value now holds the other."""
    was, other = ("numbers", "text") if kind == "number" else ("text", "numbers")
    return (
        f"Field {field!r} held {was} before and now holds {value!r}. "
        f"Convert the field to {was}, or start a model in which it is {other}."
    )


@dataclass
class Layout:
    """What is known about rows with the same fields, each of them seen before."""

    size: int
    get: Callable[[Mapping[str, Any]], Sequence[Any]]
    """Gives the numbers of a row."""
    texts: list[tuple[str, dict[str, int]]]
    indices: list[int]
    """The features of the numbers."""
    ranges: list[tuple[float, float]]
    """Where declared so, the low end and the span of each number."""
    plain: Pattern
    """The pattern of the numbers alone."""
    patterns: dict[tuple[int, ...], Pattern]
    """Patterns with these levels and indicators."""


def getter(fields: list[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """What gives the values of these fields."""
    if len(fields) > 1:
        return itemgetter(*fields)
    return lambda row: [row[field] for field in fields]


def pattern_of(indices: list[int]) -> Pattern:
    """Put features in order, once for all rows that have them."""
    numbers = np.array(indices, dtype=np.int64)
    # struct refuses text, which numpy would read as a number
    pack = struct.Struct(f"{len(indices)}d").pack
    if (np.diff(numbers) < 0).any():
        order = np.argsort(numbers).astype(np.int64)
        numbers = numbers[order]
    else:
        order = None
    numbers.setflags(write=False)  # handed out with every row of this pattern
    return numbers, order, pack


def remember_pattern(layout: Layout, ones: tuple[int, ...]) -> Pattern:
    """The pattern of a layout with these levels and indicators."""
    if len(layout.patterns) >= PATTERNS:
        layout.patterns.clear()
    found = layout.patterns[ones] = pattern_of([*layout.indices, *ones])
    return found
