"""Rows and frames as sparse numbers: one-hot as levels appear, scaling, missing fields."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from .errors import FeatureError, GroupError
from .groups import FrameMembership, Groups
from .groups.columns import Column, Table, as_table
from .groups.values import is_missing, value_name

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
FieldKind = Literal["number", "text"]
Declared: TypeAlias = Sequence[str] | Mapping[str, tuple[float, float]] | None

_PLAIN = frozenset({float, int, bool})
_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Decimal)

# How much is remembered about rows seen: layouts, combinations of levels per layout, group names.
# When one is full it starts afresh; what is remembered never changes a result.
_LAYOUTS = 64
_PATTERNS = 1024
_GROUP_NAMES = 1 << 16

# Rows of a frame that are put in order at a time, and a feature number after all others.
_CHUNK = 1 << 15
_ABSENT = np.iinfo(np.int64).max


class Feature(NamedTuple):
    """One column of numbers: a number field, one level of a text field, or a group's indicator."""

    kind: Literal["number", "level", "indicator"]
    field: str
    level: str = ""

    @property
    def name(self) -> str:
        """The name people read; a level is named like the group of that value."""
        return f"{self.field}={self.level}" if self.kind == "level" else self.field


class Encoded(NamedTuple):
    """A row as its non-zero numbers, ascending by feature, and the features it is the first of."""

    indices: Integers
    values: Floats
    new: tuple[Feature, ...]


class EncodedFrame(NamedTuple):
    """The rows of a frame: row t has indices[indptr[t]:indptr[t + 1]], and values beside them."""

    indptr: Integers
    indices: Integers
    values: Floats
    new: tuple[Feature, ...]


@dataclass
class _Layout:
    """What is known about rows with the same fields, each of them seen before."""

    numbers: list[str]
    texts: list[tuple[str, dict[str, int]]]
    indices: list[int]
    whole: bool
    low: Floats | None
    span: Floats | None
    patterns: dict[tuple[int, ...], tuple[Integers, Integers | None]]


class Encoder:
    """Turns rows and frames into sparse numbers; what it has admitted fixes the numbering.

    Encoding changes nothing. A row that brings a new field, level or group gets numbers that follow
    the admitted ones, and `admit` makes them lasting.

    Parameters
    ----------
    features: None for every field; a list of fields; or a mapping from field to (low, high), the
        range that is scaled to [0, 1].
    indicators: whether each group, unless it is a level of a text field or an intersection, is a
        0/1 feature as well.
    groups: the groups of the model; their weight columns are no features when `features` is None.

    >>> from groupwise.groups import Groups, by
    >>> encoder = Encoder(None, indicators=False, groups=Groups([by("sex")], always_on=True))
    >>> encoded = encoder.encode({"age": 41, "sex": "male"}, ["sex=male", "always_on"])
    >>> encoded.indices.tolist(), encoded.values.tolist()
    ([0, 1], [41.0, 1.0])
    >>> encoder.admit(encoded)
    >>> encoder.names
    ['age', 'sex=male']
    """

    def __init__(self, features: Declared, indicators: bool, groups: Groups) -> None:
        self.declared, self._ranges = _read_declared(features)
        if self.declared == () and not indicators:
            raise FeatureError("The list of features is empty. Name one, or set indicators=True.")
        self.indicators = bool(indicators)
        self.groups = groups
        self.names: list[str] = []
        self.features: list[Feature] = []
        self.kinds: dict[str, FieldKind] = {}
        self._index: dict[Feature, int] = {}
        self._levels: dict[str, dict[str, int]] = {}
        self._start_afresh()
        self.admit([Feature("number", field) for field in self._ranges])

    def __len__(self) -> int:
        return len(self.names)

    def admit(self, new: Encoded | EncodedFrame | Iterable[Feature]) -> None:
        """Register the new features of what was encoded; those known already stay as they are."""
        found = new.new if isinstance(new, (Encoded, EncodedFrame)) else tuple(new)
        if not found:
            return
        kinds: dict[str, FieldKind] = {}
        for feature in found:
            if feature.kind != "indicator":
                kind: FieldKind = "number" if feature.kind == "number" else "text"
                known = kinds.setdefault(feature.field, self.kinds.get(feature.field, kind))
                if known != kind:
                    raise FeatureError(_changed(feature.field, feature.level, known))
        self.kinds.update(kinds)
        for feature in found:
            if feature in self._index:
                continue
            index = self._index[feature] = len(self.names)
            self.names.append(feature.name)
            self.features.append(feature)
            if feature.kind == "level":
                self._levels.setdefault(feature.field, {})[feature.level] = index

    def encode(self, row: Mapping[str, Any], awake: Sequence[str]) -> Encoded:
        """Turn a row into numbers; `awake` are the names of its groups, as `Groups` gives them."""
        if type(row) is dict or isinstance(row, Mapping):
            layout = self._layouts.get(tuple(row) if self.declared is None else None)
            if layout is not None:
                try:
                    found = self._encode_known(layout, row, awake)
                except (KeyError, TypeError, OverflowError):
                    found = None  # the careful way finds what is wrong
                if found is not None:
                    return found
        return self._encode_carefully(row, awake)

    def _encode_known(
        self, layout: _Layout, row: Mapping[str, Any], awake: Sequence[str]
    ) -> Encoded | None:
        """Encode a row of plain values, nothing new in it; None when it is not so simple."""
        if layout.whole:
            numbers = list(row.values())
        else:
            numbers = [row[field] for field in layout.numbers]
        if not _PLAIN.issuperset(map(type, numbers)):
            return None
        total = sum(numbers)
        if total - total != 0:  # NaN or infinity, or a sum beyond the largest float
            return None
        ones: list[int] = []
        for field, levels in layout.texts:
            value = row[field]
            if type(value) is not str:
                return None
            ones.append(levels[value])
        if self.indicators:
            known = self._indicator_of
            for name in awake:
                index = known[name]
                if index >= 0:
                    ones.append(index)
        pattern = layout.patterns.get(tuple(ones))
        if pattern is None:
            pattern = _remember_pattern(layout, ones)
        indices, order = pattern
        values = np.array(numbers + [1.0] * len(ones) if ones else numbers, dtype=np.float64)
        if layout.span is not None:
            values[: len(numbers)] -= layout.low
            values[: len(numbers)] /= layout.span
            if not np.isfinite(values).all():
                return None
            complete = bool(values.all())
        else:
            complete = all(numbers)
        if order is not None:
            values = values[order]
        if complete:
            return Encoded(indices, values, ())
        kept = values != 0.0
        return Encoded(indices[kept], values[kept], ())

    def _encode_carefully(self, row: Mapping[str, Any], awake: Sequence[str]) -> Encoded:
        new: dict[Feature, int] = {}
        kinds: dict[str, FieldKind] = {}
        found: dict[int, float] = {}
        for field, value in self._fields(row):
            cell = self._cell(field, value, self.kinds.get(field))
            if isinstance(cell, str):
                kinds[field] = "text"
                found[self._number(Feature("level", field, cell), new)] = 1.0
            elif cell is not None:
                kinds[field] = "number"
                found[self._number(Feature("number", field), new)] = cell
        if self.indicators:
            for name in awake:
                if self._has_indicator(name, kinds):
                    index = found_index = self._number(Feature("indicator", name), new)
                    found[found_index] = 1.0
                else:
                    index = -1
                if index < len(self.names):
                    self._remember_indicator(name, index)
        if not new:
            self._remember_layout(row)
        kept = sorted(item for item in found.items() if item[1] != 0.0)
        indices = np.array([index for index, _ in kept], dtype=np.int64)
        values = np.array([value for _, value in kept], dtype=np.float64)
        return Encoded(indices, values, tuple(new))

    def _number(self, feature: Feature, new: dict[Feature, int]) -> int:
        index = self._index.get(feature)
        if index is None:
            index = new.setdefault(feature, len(self.names) + len(new))
        return index

    def _fields(self, row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        if not isinstance(row, Mapping):
            raise FeatureError(
                f"A row is a mapping from field to value, not {type(row).__name__}. "
                "Give a dict such as {'age': 41, 'sex': 'male'}."
            )
        if not row:
            raise FeatureError("The row has no fields. Give at least one.")
        if self.declared is not None:
            for field in self.declared:
                if field not in row:
                    raise FeatureError(
                        f"The row has no field {field!r}, which is a declared feature. "
                        "Put it in every row, or take it off the list of features."
                    )
                yield field, row[field]
            return
        for field, value in row.items():
            if not isinstance(field, str):
                raise FeatureError(f"The row has the field {field!r}. Fields are named by text.")
            if field not in self.groups.weight_columns:
                yield field, value

    def _cell(self, field: str, value: Any, kind: FieldKind | None) -> float | str | None:
        """Read one value: a number, a level, or None where there is nothing to encode."""
        if isinstance(value, str):
            if kind == "number":
                raise FeatureError(_changed(field, value, kind))
            return str.__str__(value)
        if is_missing(value):
            optional = self.declared is None
            if optional and (kind == "text" or (kind is None and not isinstance(value, _NUMBERS))):
                return None
            raise FeatureError(self._unusable(field, value))
        if not isinstance(value, _NUMBERS):
            raise FeatureError(
                f"Field {field!r} holds {value!r} of type {type(value).__name__}, neither number "
                "nor text. Convert it, or name the fields to use with features=[...]."
            )
        if kind == "text":
            raise FeatureError(_changed(field, value, kind))
        number = self._scaled(field, value)
        if not math.isfinite(number):
            raise FeatureError(self._unusable(field, value))
        return number

    def _scaled(self, field: str, value: Any) -> float:
        try:
            number = float(value)
        except OverflowError:
            return math.inf
        if field in self._ranges:
            low, span = self._ranges[field]
            try:
                return (number - low) / span
            except OverflowError:  # pragma: no cover - Python divides floats without it
                return math.inf
        return number

    def _unusable(self, field: str, value: object) -> str:
        advice = "Fill it in" if self.declared is not None else "Fill it in, or leave the field out"
        return f"Field {field!r} is {value!r}, and a feature is a finite number. {advice}."

    def _has_indicator(self, name: str, kinds: Mapping[str, FieldKind]) -> bool:
        """Say whether a group is a feature of its own; `kinds` are those the rows at hand add."""
        indicator = self.groups.indicator(name)
        if indicator is None:
            return False
        column = indicator.column
        return column is None or self.kinds.get(column, kinds.get(column)) != "text"

    # What is remembered about rows seen before.

    def _start_afresh(self) -> None:
        self._layouts: dict[tuple[str, ...] | None, _Layout] = {}
        self._indicator_of: dict[str, int] = {}

    def _remember_indicator(self, name: str, index: int) -> None:
        if len(self._indicator_of) >= _GROUP_NAMES:
            self._indicator_of.clear()
        self._indicator_of[name] = index

    def _remember_layout(self, row: Mapping[str, Any]) -> None:
        skipped = self.groups.weight_columns
        used = self.declared
        if used is None:
            used = tuple(field for field in row if field not in skipped)
        key = None if self.declared is not None else tuple(row)
        if key in self._layouts or any(field not in self.kinds for field in used):
            return
        numbers = [field for field in used if self.kinds[field] == "number"]
        texts = [(field, self._levels[field]) for field in used if self.kinds[field] == "text"]
        low = span = None
        if self._ranges:
            low = np.array([self._ranges[field][0] for field in numbers])
            span = np.array([self._ranges[field][1] for field in numbers])
        indices = [self._index[Feature("number", field)] for field in numbers]
        whole = self.declared is None and len(numbers) == len(row)
        if len(self._layouts) >= _LAYOUTS:
            self._layouts.clear()
        self._layouts[key] = _Layout(numbers, texts, indices, whole, low, span, {})

    # Snapshots.

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the groups as values that JSON can hold."""
        declared: Any = None if self.declared is None else list(self.declared)
        if self._ranges:
            declared = {field: list(bounds) for field, bounds in self._bounds.items()}
        return {
            "declared": declared,
            "indicators": self.indicators,
            "features": [list(feature) for feature in self.features],
            "kinds": dict(self.kinds),
        }
