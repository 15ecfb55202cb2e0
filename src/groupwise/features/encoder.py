"""The encoder: rows and frames to sparse numbers, one-hot as levels appear."""

import math
import struct
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from groupwise.arrays import LARGEST
from groupwise.errors import FeatureError
from groupwise.features.declared import (
    INTERCEPT,
    Declared,
    EncodedFrame,
    Feature,
    FieldKind,
    Floats,
    Layout,
    Patterns,
    changed_kind,
    getter,
    indicator_of,
    pattern_of,
    read_declared,
)
from groupwise.features.frames import encode_frame
from groupwise.groups import FrameMembership, Groups, Member
from groupwise.groups.values import is_missing
from groupwise.protocols import Row

Numbers = TypeVar("Numbers", float, Floats)

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Decimal)

# How much is remembered about rows seen: layouts and groups. When one is full it starts
# afresh; what is remembered never changes a result.
_LAYOUTS = 64
_REMEMBERED_GROUPS = 1 << 16

_as_row = tuple.__new__  # what Row(...) does, without its frame


class Encoder:
    """Turns rows and frames into sparse numbers; what it has admitted fixes the numbering.

    Encoding changes nothing. A row that brings a new field, level or group gets numbers that follow
    the admitted ones, and ``admit`` makes them lasting.

    Parameters
    ----------
    features : None for every field; a list of fields; or a mapping from field to (low, high), the
        range that is scaled to [0, 1], or to None where the field is text or to stay as it is.
    indicators : whether each group, unless it is a level of a text field or an intersection, is a
        0/1 feature as well.
    groups : the groups of the model; their weight columns are no features where ``features`` is
        None.
    intercept : whether the first feature is 1 in every row.

    >>> from groupwise.groups import Groups, by
    >>> groups = Groups([by("sex")], always_on=True)
    >>> encoder = Encoder(None, indicators=False, groups=groups)
    >>> row = {"age": 41, "sex": "male"}
    >>> encoded = encoder.encode(row, groups.read(row)[0])
    >>> encoded.indices.tolist(), encoded.values.tolist()
    ([0, 1], [41.0, 1.0])
    >>> encoder.admit(encoded)
    >>> encoder.names
    ['age', 'sex=male']
    """

    def __init__(
        self, features: Declared, indicators: bool, groups: Groups, intercept: bool = False
    ) -> None:
        self.declared, self._bounds = read_declared(features)
        if self.declared == () and not (indicators or intercept):
            raise FeatureError("The list of features is empty. Name one, or set indicators=True.")
        self.indicators = bool(indicators)
        self.intercept = bool(intercept)
        self.groups = groups
        self.names: list[str] = []
        self.features: list[Feature] = []
        self.kinds: dict[str, FieldKind] = {}
        self.index: dict[Feature, int] = {}
        self._levels: dict[str, dict[str, int]] = {}
        self._layouts: dict[frozenset[str] | None, Layout] = {}
        self._last: Layout | None = None
        self._indicator_of: dict[Member, int] = {}
        self.admit([INTERCEPT] if self.intercept else [])
        self.admit([Feature("number", field) for field in self._bounds])

    def __len__(self) -> int:
        return len(self.names)

    def admit(self, new: Row | EncodedFrame | Iterable[Feature]) -> None:
        """Register the new features of what was encoded; those known already stay as they are."""
        found = new.new if isinstance(new, (Row, EncodedFrame)) else tuple(new)
        if not found:
            return
        kinds: dict[str, FieldKind] = {}
        for feature in found:
            if feature.kind in ("number", "level"):
                kind: FieldKind = "number" if feature.kind == "number" else "text"
                known = kinds.setdefault(feature.field, self.kinds.get(feature.field, kind))
                if known != kind:
                    raise changed_kind(feature.field, feature.level, known)
        self.kinds.update(kinds)
        for feature in found:
            if feature not in self.index:
                index = self.index[feature] = len(self.names)
                self.names.append(feature.name)
                self.features.append(feature)
                if feature.kind == "level":
                    self._levels.setdefault(feature.field, {})[feature.level] = index

    def encode(self, row: Mapping[str, Any], awake: Sequence[Member]) -> Row:
        """Turn a row into numbers; ``awake`` are its groups, as ``Groups.read`` gives them."""
        layout = self._last
        if (
            layout is not None
            and type(row) is dict
            and (self.declared is not None or len(row) == layout.size)
        ):
            try:
                return self._encode_known(layout, row, awake)
            except (KeyError, TypeError, OverflowError, struct.error):
                pass  # other fields than last time, or something new or wrong
        if isinstance(row, Mapping):
            layout = self._last = self._layouts.get(self._layout_key(row))
            if layout is not None:
                try:
                    return self._encode_known(layout, row, awake)
                except (KeyError, TypeError, OverflowError, struct.error):
                    pass  # the careful way finds what is new or wrong
        return self._encode_carefully(row, awake)

    def encode_frame(self, frame: object, membership: FrameMembership) -> EncodedFrame:
        """Turn a frame into numbers: the same, bit for bit, as encoding and admitting row by row.

        A null is None; the NaN of a float column is NaN. Categorical columns are text, whatever
        their categories are.

        >>> import polars
        >>> from groupwise.groups import Groups, by
        >>> groups = Groups([by("sex")], always_on=True)
        >>> frame = polars.DataFrame({"age": [41, 0], "sex": ["male", "female"]})
        >>> encoded = Encoder(None, True, groups).encode_frame(frame, groups.of_frame(frame))
        >>> encoded.indptr.tolist(), encoded.indices.tolist(), encoded.values.tolist()
        ([0, 2, 3], [0, 1, 2], [41.0, 1.0, 1.0])
        """
        return encode_frame(self, frame, membership)

    def _encode_known(self, layout: Layout, row: Mapping[str, Any], awake: Sequence[Member]) -> Row:
        """Encode a row of plain values, nothing new in it; an error when it is not so simple."""
        numbers = layout.get(row)
        if layout.ranges:
            numbers = [
                (number - low) / span
                for number, (low, span) in zip(numbers, layout.ranges, strict=True)
            ]
        if not -LARGEST < sum(numbers) < LARGEST:  # also where one is not a number
            raise OverflowError
        if not layout.texts and not self.indicators:
            indices, order, pack = layout.plain
            values = np.frombuffer(bytearray(pack(*numbers)))
        else:
            ones = self._ones(layout, row, awake)
            indices, order, pack = layout.patterns[ones]
            values = np.frombuffer(bytearray(pack(*numbers, *(1.0 for _ in ones))))
        if order is not None:
            values = values[order]
        return _as_row(Row, (indices, values, self.names, ()))

    def _ones(
        self, layout: Layout, row: Mapping[str, Any], awake: Sequence[Member]
    ) -> tuple[int, ...]:
        """The features of the row's levels and indicators."""
        ones = []
        for field, levels in layout.texts:
            value = row[field]
            if type(value) is not str:
                raise TypeError
            ones.append(levels[value])
        if self.indicators:
            known = self._indicator_of
            for member in awake:
                index = known[member]
                if index >= 0:
                    ones.append(index)
        return tuple(ones)

    def _encode_carefully(self, row: Mapping[str, Any], awake: Sequence[Member]) -> Row:
        new: dict[Feature, int] = {}
        kinds: dict[str, FieldKind] = {}
        found: dict[int, float] = {0: 1.0} if self.intercept else {}
        for field, value in self._fields(row):
            cell = self.cell(field, value, self.kinds.get(field))
            if isinstance(cell, str):
                kinds[field] = "text"
                found[self._number(Feature("level", field, cell), new)] = 1.0
            elif cell is not None:
                kinds[field] = "number"
                found[self._number(Feature("number", field), new)] = cell
        if self.indicators:
            for member in awake:
                index = -1
                if self.has_indicator(member, kinds):
                    index = self._number(indicator_of(member), new)
                    found[index] = 1.0
                self._remember_indicator(member, index)
        if not new:
            self._remember_layout(row)
        kept = sorted(item for item in found.items() if item[1] != 0.0)
        indices = np.array([index for index, _ in kept], dtype=np.int64)
        values = np.array([value for _, value in kept], dtype=np.float64)
        names = [*self.names, *(feature.name for feature in new)] if new else self.names
        return Row(indices, values, names, tuple(new))

    def _number(self, feature: Feature, new: dict[Feature, int]) -> int:
        if feature in self.index:
            return self.index[feature]
        return new.setdefault(feature, len(self.names) + len(new))

    def _fields(self, row: Mapping[str, Any]) -> Iterable[tuple[str, Any]]:
        if not isinstance(row, Mapping):
            raise FeatureError(
                f"A row is a mapping from field to value, not {type(row).__name__}. "
                "Give a dict such as {'age': 41, 'sex': 'male'}."
            )
        if not row:
            raise FeatureError("The row has no fields. Give at least one.")
        for field in row if self.declared is None else self.declared:
            if field not in row:
                raise FeatureError(
                    f"The row has no field {field!r}, which is a declared feature. "
                    "Put it in every row, or take it off the list of features."
                )
            if not isinstance(field, str):
                raise FeatureError(f"The row has the field {field!r}. Fields are named by text.")
            if self.declared is not None or field not in self.groups.weight_columns:
                yield field, row[field]

    def cell(self, field: str, value: Any, kind: FieldKind | None) -> float | str | None:
        """Read one value: a number, a level, or None where there is nothing to encode."""
        if isinstance(value, str):
            if kind == "number":
                raise changed_kind(field, value, kind)
            return str.__str__(value)
        if is_missing(value):
            optional = self.declared is None
            if optional and (kind == "text" or (kind is None and not isinstance(value, _NUMBERS))):
                return None
            raise self._unusable(field, value)
        if not isinstance(value, _NUMBERS):
            raise FeatureError(
                f"Field {field!r} holds {value!r} of type {type(value).__name__}, neither number "
                "nor text. Convert it, or name the fields to use with features=[...]."
            )
        if kind == "text":
            raise changed_kind(field, value, kind)
        number = self._scaled(field, value)
        if not abs(number) <= LARGEST:
            raise self._unusable(field, value)
        return number

    def refusal(self, row: Mapping[str, Any]) -> FeatureError:
        """The error for a row that holds a number beyond all bounds."""
        fields = [(field, value) for field, value in self._fields(row) if type(value) is not str]
        return self._unusable(*max(fields, key=lambda cell: abs(self._scaled(*cell))))

    def scale(self, field: str, values: Numbers) -> Numbers:
        """Scale a value, or all of a column."""
        low, high = self._bounds.get(field, (0.0, 1.0))
        return (values - low) / (high - low)

    def _scaled(self, field: str, value: Any) -> float:
        try:
            return self.scale(field, float(value))
        except OverflowError:
            return math.inf

    def _unusable(self, field: str, value: object) -> FeatureError:
        advice = "Fill it in" if self.declared is not None else "Fill it in, or leave the field out"
        return FeatureError(
            f"Field {field!r} is {value!r}, and a feature is a finite number of at most 1e100. "
            f"{advice}."
        )

    def has_indicator(self, member: Member, kinds: Mapping[str, FieldKind]) -> bool:
        """Say whether a group is a feature of its own; ``kinds`` are those the rows at hand add."""
        indicator = self.groups.indicator(member)
        column = None if indicator is None else indicator.column
        text = column is not None and self.kinds.get(column, kinds.get(column)) == "text"
        return indicator is not None and not text

    # What is remembered about rows seen before.

    def _remember_indicator(self, member: Member, index: int) -> None:
        indicator = self.groups.indicator(member)
        if index >= len(self.names) or not (indicator is None or self._settled(indicator.column)):
            return  # a row that is not admitted must leave no trace
        if len(self._indicator_of) >= _REMEMBERED_GROUPS:
            self._indicator_of.clear()
        self._indicator_of[member] = index

    def _settled(self, column: str | None) -> bool:
        """Say whether it is decided for good that a column is a text feature, or is none."""
        if column is None or (self.declared is not None and column not in self.declared):
            return True
        return column in self.kinds or column in self.groups.weight_columns

    def _remember_layout(self, row: Mapping[str, Any]) -> None:
        used, key = self.declared, self._layout_key(row)
        if used is None:
            used = tuple(field for field in row if field not in self.groups.weight_columns)
        if key in self._layouts or any(field not in self.kinds for field in used):
            return
        numbers = [field for field in used if self.kinds[field] == "number"]
        texts = [(field, self._levels[field]) for field in used if self.kinds[field] == "text"]
        bounds = [self._bounds.get(field, (0.0, 1.0)) for field in numbers] if self._bounds else []
        ranges = [(low, high - low) for low, high in bounds]
        indices = [self.index[Feature("number", field)] for field in numbers]
        indices, constant = ([0, *indices], (1.0,)) if self.intercept else (indices, ())
        if len(self._layouts) >= _LAYOUTS:
            self._layouts.clear()
        patterns = pattern_of(indices, constant), Patterns(indices, constant)
        self._layouts[key] = Layout(len(row), getter(numbers), texts, ranges, *patterns)

    def _layout_key(self, row: Mapping[str, Any]) -> frozenset[str] | None:
        return frozenset(row) if self.declared is None else None

    # Snapshots.

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the groups as values that JSON can hold."""
        declared: Any = None if self.declared is None else list(self.declared)
        if self._bounds:
            declared = {field: self._bounds.get(field) for field in declared}
        groups = [[] if one.group is None else [list(one.group)] for one in self.features]
        features = [[*one[:3], *group] for one, group in zip(self.features, groups, strict=True)]
        return {
            "declared": declared,
            "indicators": self.indicators,
            "intercept": self.intercept,
            "features": features,
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], groups: Groups) -> "Encoder":
        """Make the encoder again whose ``to_dict`` gave the state."""
        intercept = state.get("intercept", False)  # groupwise 0.1 had none
        encoder = cls(state["declared"], state["indicators"], groups, intercept)
        encoder.restore(state)
        return encoder

    def restore(self, state: Mapping[str, Any]) -> None:
        """Admit what an encoder declared alike had admitted when ``to_dict`` gave the state."""
        features = [self._feature(*fields) for fields in state["features"]]
        known = self.features == features[: len(self.features)]
        if not known or len(set(features)) < len(features):
            raise FeatureError("The saved features do not fit this encoder. Declare it as it was.")
        self.admit(features)

    def _feature(self, kind: Any, field: str, level: str = "", group: Any = None) -> Feature:
        """The feature that was saved; groupwise 0.1 knew the groups of indicators by name alone."""
        if kind != "indicator":
            return Feature(kind, field, level)
        if group is None:
            return indicator_of(self.groups.named(field))
        return indicator_of(self.groups.member(group[0], tuple(group[1])))

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder.from_dict, (self.to_dict(), self.groups)
