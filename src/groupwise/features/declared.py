"""Features as they are declared, and what is made of rows and frames that have them."""

import math
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from operator import itemgetter
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from groupwise.errors import FeatureError, is_finite
from groupwise.groups.algebra import Member, Values

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FieldKind = Literal["number", "text"]
Bounds = dict[str, tuple[float, float]]

COLUMNS = 256
"""How many levels of a text field have a column of their own by default, and how many columns the
others share. Two of n levels in as many columns fall together with chance 1/n."""
# How many combinations of levels are remembered per layout, before it starts afresh.
PATTERNS = 1024

Pattern: TypeAlias = tuple[Integers, Integers | None, Callable[..., None], tuple[float, ...]]
"""The features of a row in ascending order, the order of its values (None: as they come), what
writes the values into an array, and those that come first in every row."""


@dataclass(frozen=True)
class Hashed:
    """A text field whose levels share columns; see :func:`hashed`."""

    columns: int

    def __post_init__(self) -> None:
        if not is_finite(self.columns, int) or self.columns < 1:
            raise FeatureError(
                f"hashed({self.columns!r}). Give the number of columns that levels share: 1 or "
                "more."
            )


def hashed(columns: int = COLUMNS) -> Hashed:
    """A feature declaration: every value of the field is hashed into one of so many 0/1 columns.

    For fields with more values than there should be features, numbers that are names (of places,
    products, people) included. Values that fall together share a coefficient; groups stay one per
    value. The hash is the same on every machine.

    >>> import groupwise as gw
    >>> features = {"age": (18, 90), "postcode": gw.hashed(256)}
    >>> model = gw.Groupwise([gw.by("postcode")], features=features)
    >>> model.learn_one({"age": 41, "postcode": "80331"}, 0.5)
    >>> model.feature_names
    ['(intercept)', 'age', 'postcode#99']
    """
    return Hashed(columns)


Declared: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float] | Hashed | None] | None


def place_of(text: str, columns: int) -> str:
    """Which of so many columns a text falls into: a number, written out.

    >>> place_of("80331", 256)
    '99'
    """
    digest = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return str(int.from_bytes(digest, "big") % columns)


class Feature(NamedTuple):
    """One column of numbers.

    A number field, one level of a text field, what several levels or groups share, the indicator of
    a group or of a missing value, or the column that is 1 in every row.
    """

    kind: Literal["intercept", "number", "level", "hashed", "indicator", "missing"]
    field: str
    """The field; of an indicator, the name of its group."""
    level: str = ""
    """The level; what is shared is numbered."""
    group: tuple[int, Values] | None = None
    """Of an indicator, which group it is of, see ``groups.Member.key``; of what groups share, which
    declaration they are of."""

    @property
    def name(self) -> str:
        """The name people read; a level is named like the group of that value."""
        sign = {"level": "=", "hashed": "#", "missing": " missing"}.get(self.kind)
        return self.field if sign is None else f"{self.field}{sign}{self.level}"


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


class Levels(dict[str, int]):
    """The features of a text field's levels. Those without one of their own may share some."""

    def __init__(self, columns: int = 0) -> None:
        self.columns = columns
        """How many there are to share; 0 while every level has its own."""
        self.shared: dict[str, int] = {}

    def __missing__(self, level: str) -> int:
        if not self.columns:
            raise KeyError(level)
        return self.shared[place_of(level, self.columns)]


def read_declared(features: Declared) -> tuple[tuple[str, ...] | None, Bounds, dict[str, int]]:
    """Read the ``features`` argument: fields to use (None for all), ranges, and who is hashed.

    >>> read_declared({"age": (18, 64), "region": None, "postcode": hashed(9)})
    (('age', 'region', 'postcode'), {'age': (18.0, 64.0)}, {'postcode': 9})
    """
    if features is None:
        return None, {}, {}
    if isinstance(features, str) or not isinstance(features, (Sequence, Mapping)):
        raise FeatureError(
            f"features={features!r}. Give None for every field, a list of fields, or a mapping "
            "from field to (low, high), to None where nothing is to be scaled, or to gw.hashed(n)."
        )
    fields = tuple(features)
    for field in fields:
        if not isinstance(field, str):
            raise FeatureError(f"{field!r} is no name of a field. Fields are named by text.")
    if len(set(fields)) < len(fields):
        raise FeatureError(f"A field occurs twice in features={list(fields)!r}. Name each once.")
    said = {} if not isinstance(features, Mapping) else dict(features)
    shared = {field: one.columns for field, one in said.items() if isinstance(one, Hashed)}
    ranges = {k: one for k, one in said.items() if one is not None and k not in shared}
    return fields, {field: _read_bounds(field, ends) for field, ends in ranges.items()}, shared


def declared_to_json(features: Declared) -> Any:
    """The ``features`` argument in values that JSON can hold."""
    if not isinstance(features, Mapping):
        return None if features is None else list(features)
    plain = {k: {"hashed": v.columns} if isinstance(v, Hashed) else v for k, v in features.items()}
    return plain


def declared_from_json(found: Any) -> Any:
    """The ``features`` argument that ``declared_to_json`` wrote."""
    if not isinstance(found, dict):
        return found
    return {
        field: Hashed(one["hashed"]) if isinstance(one, dict) else one and (one[0], one[1])
        for field, one in found.items()
    }


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
    texts: list[tuple[str, Levels]]
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
    return numbers, order, struct.Struct(f"{len(indices)}d").pack_into, constant
