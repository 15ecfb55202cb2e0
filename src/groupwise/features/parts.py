"""What encoding gives back, and how declared features are read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from ..errors import FeatureError

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FieldKind = Literal["number", "text"]
Bounds = dict[str, tuple[float, float]]
Declared: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float] | None] | None


class Feature(NamedTuple):
    """One column of numbers: a number field, one level of a text field, or a group's indicator."""

    kind: Literal["number", "level", "indicator"]
    field: str
    level: str = ""

    @property
    def name(self) -> str:
        """The name people read; a level is named like the group of that value."""
        return f"{self.field}={self.level}" if self.kind == "level" else self.field


class EncodedFrame(NamedTuple):
    """The rows of a frame: row t has indices[indptr[t]:indptr[t + 1]], and values beside them."""

    indptr: Integers
    indices: Integers
    values: Floats
    new: tuple[Feature, ...]


def read_declared(features: Declared) -> tuple[tuple[str, ...] | None, Bounds]:
    """Read the `features` argument: the fields to use (None for all) and the ranges given.

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
