"""Features as they are declared, and what is made of rows and frames that have them."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
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
    """One column of numbers: a field, one level of a text field, a group's indicator, or all 1."""

    kind: Literal["intercept", "number", "level", "indicator"]
    field: str
    """The field; of an indicator, the name of its group."""
    level: str = ""
    group: tuple[int, Values] | None = None
    """Of an indicator, which group it is of; see ``groups.Member.key``."""

    @property
    def name(self) -> str:
        """The name people read; a level is named like the group of that value."""
        return f"{self.field}={self.level}" if self.kind == "level" else self.field


INTERCEPT = Feature("intercept", "(intercept)")
"""The feature that is 1 in every row; where a model has it, it is the first."""


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
    ranges = features.items() if isinstance(features, Mapping) else ()
    return fields, {field: _read_bounds(field, ends) for field, ends in ranges if ends is not None}


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


def changed_kind(field: str, value: object, kind: FieldKind) -> FeatureError:
    """The error for a field that held one kind of value and now holds the other."""
    was, other = ("numbers", "text") if kind == "number" else ("text", "numbers")
    return FeatureError(
        f"Field {field!r} held {was} before and now holds {value!r}. "
        f"Convert the field to {was}, or start a model in which it is {other}."
    )


class Patterns(dict[tuple[int, ...], Pattern]):
    """The patterns of numbers together with these levels and indicators, made when first met.

    ``constant`` are the values that come before those of a row.
    """

    def __init__(self, indices: list[int], constant: tuple[float, ...]) -> None:
        self.indices = indices
        self.constant = constant

    def __missing__(self, ones: tuple[int, ...]) -> Pattern:
        if len(self) >= PATTERNS:
            self.clear()
        found = self[ones] = pattern_of([*self.indices, *ones], self.constant)
        return found


@dataclass
class Layout:
    """What is known about rows with the same fields, each of them seen before."""

    size: int
    get: Callable[[Mapping[str, Any]], Sequence[Any]]
    """Gives the numbers of a row."""
    texts: list[tuple[str, dict[str, int]]]
    ranges: list[tuple[float, float]]
    """Where declared so, the low end and the span of each number."""
    plain: Pattern
    """The pattern of the numbers alone."""
    patterns: Patterns


def getter(fields: list[str]) -> Callable[[Mapping[str, Any]], Sequence[Any]]:
    """What gives the values of these fields."""
    return itemgetter(*fields) if len(fields) > 1 else lambda row: [row[one] for one in fields]


def pattern_of(indices: list[int], constant: tuple[float, ...]) -> Pattern:
    """Put features in order, once for all rows that have them; the first of them are constant."""
    numbers = np.array(indices, dtype=np.int64)
    order = np.argsort(numbers).astype(np.int64) if (np.diff(numbers) < 0).any() else None
    numbers = numbers if order is None else numbers[order]
    numbers.setflags(write=False)  # handed out with every row of this pattern
    # struct refuses text, which numpy would read as a number
    return numbers, order, partial(struct.Struct(f"{len(indices)}d").pack, *constant)
