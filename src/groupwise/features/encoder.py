"""The encoder: rows and frames to sparse numbers, one-hot as levels appear."""

import math
import struct
import warnings
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, TypeVar

import numpy as np

from groupwise.arrays import LARGEST
from groupwise.errors import FeatureError, GroupError, ManyLevelsWarning, is_finite
from groupwise.features.declared import (
    COLUMNS,
    INTERCEPT,
    Declared,
    EncodedFrame,
    Feature,
    FieldKind,
    Floats,
    Layout,
    Levels,
    Patterns,
    changed_kind,
    declared_from_json,
    declared_to_json,
    getter,
    indicator_of,
    pattern_of,
    place_of,
    read_declared,
)
from groupwise.features.frames import encode_frame
from groupwise.groups import FrameMembership, Groups, Member
from groupwise.groups.values import as_float, is_missing, value_name
from groupwise.protocols import NOTHING, Row

Numbers = TypeVar("Numbers", float, Floats)

_NUMBERS = (bool, int, float, np.bool_, np.integer, np.floating, Decimal)

# How much is remembered about rows seen: layouts and groups. When one is full it starts
# afresh; what is remembered never changes a result.
_LAYOUTS = 64
_REMEMBERED_GROUPS = 1 << 16

PLAIN = (float, int)
"""Sums of these are exact or close; whoever has others among them has a sum of another type."""
_UNUSUAL = (KeyError, TypeError, ValueError, ArithmeticError, struct.error)
"""What the quick way runs into where it is not for a row."""
INDICATOR = "indicator"
"""What may be made of a missing value."""
_NO_LEVELS = Levels()
_as_row = tuple.__new__  # what Row(...) does, without its frame


class Encoder:
    """Turns rows and frames into sparse numbers; what it has admitted fixes the numbering.

    Encoding changes nothing. A row that brings a new field, level or group gets numbers that follow
    the admitted ones, and ``admit`` makes them lasting.

    Parameters
    ----------
    features : None for every field; a list of fields; or a mapping from field to (low, high), the
        range that is scaled to [0, 1], to None where the field is text or to stay as it is, or to
        ``hashed(n)``.
    indicators : whether each group, unless it is a level of a text field or an intersection, is a
        0/1 feature as well.
    groups : the groups of the model; their weight columns are no features where ``features`` is
        None.
    intercept : whether the first feature is 1 in every row.
    max_levels : how many levels of a text field, and how many groups per value of a column, have a
        feature of their own. Further ones are hashed into as many columns; of a field that is named
        in ``features`` they are an error. None for no bound.
    apart : fields that are no features as they are, where ``features`` is None.
    missing : "indicator" for a 0/1 feature beside each field that says whether its value, which is
        then 0, is missing; without it, such a value is an error as a rule.

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
        self,
        features: Declared,
        indicators: bool,
        groups: Groups,
        intercept: bool = False,
        max_levels: int | None = COLUMNS,
        apart: Iterable[str] = (),
        missing: str | None = None,
    ) -> None:
        if missing not in (None, INDICATOR):
            raise FeatureError(f"missing={missing!r}. Give {INDICATOR!r}, or None for an error.")
        if max_levels is not None and (not is_finite(max_levels, int) or max_levels < 1):
            raise FeatureError(f"max_levels={max_levels!r}. Give 1 or more, or None for no bound.")
        self._given = features
        self.declared, self._bounds, self.declared_hashed = read_declared(features)
        if self.declared == () and not (indicators or intercept):
            raise FeatureError("The list of features is empty. Name one, or set indicators=True.")
        self.indicators = bool(indicators)
        self.intercept = bool(intercept)
        self.groups = groups
        self._apart = tuple(apart)
        self.fills = missing is not None
        """Is a missing value a 0 with an indicator?"""
        self.apart = frozenset((*groups.weight_columns, *self._apart))
        """Fields that are no features where every field is one."""
        self.names: list[str] = []
        self.features: list[Feature] = []
        self.kinds: dict[str, FieldKind] = {}
        self.index: dict[Feature, int] = {}
        self.max_levels = max_levels
        self.hashed = dict(self.declared_hashed)
        """The fields, declared so or not, whose further values share features; how many."""
        self.unsaid: list[str] = []
        """Those of them that nobody declared and nobody was told of."""
        self._levels = {field: Levels(columns) for field, columns in self.declared_hashed.items()}
        self._indicated: Counter[int] = Counter()
        self._layouts: dict[frozenset[str], Layout] = {}
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
            if feature.kind in ("number", "level", "hashed") and feature.group is None:
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
                self._sort_in(feature, index)

    def _sort_in(self, feature: Feature, index: int) -> None:
        """Take note of a new feature, and of fields that have no room for further ones."""
        if feature.kind == "indicator" and feature.group is not None:
            self._indicated[feature.group[0]] += 1
        elif feature.kind == "level":
            levels = self._levels.setdefault(feature.field, Levels())
            levels[feature.level] = index
            if self.declared is None and len(levels) == self.max_levels:
                levels.columns = self.max_levels
        elif feature.kind == "hashed":
            if feature.group is None:
                self._levels[feature.field].shared[feature.level] = index
            if feature.field not in self.hashed:
                self.hashed[feature.field] = self.max_levels or COLUMNS
                self.unsaid.append(feature.field)

    def crowded(self) -> str | None:
        """A field of which more values were admitted than may have a feature of their own."""
        most = self.max_levels
        if most is None:
            return None
        full = (field for field, levels in self._levels.items() if len(levels) > most)
        crowds = (number for number, n in self._indicated.items() if n > most)
        named = (self.groups.declarations[number].columns[0] for number in crowds)
        return next(full, None) or next(named, None)

    def announce(self) -> None:
        """Warn, once, of each field that has come to have more values than features."""
        names, self.unsaid = self.unsaid, []
        most = self.max_levels
        for name in names:
            warnings.warn(
                f"Column {name!r} has more than {most} values: the further ones are hashed into "
                f"{most} features, which they share; groups stay one per value. Raise max_levels, "
                f"or say so with features={{{name!r}: gw.hashed({most}), ...}}.",
                ManyLevelsWarning,
                stacklevel=3,
            )

    def encode(
        self, row: Mapping[str, Any], awake: Sequence[Member], derived: Collection[str] = ()
    ) -> Row:
        """Turn a row into numbers; ``awake`` are its groups, as ``Groups.read`` gives them.

        ``derived`` are those of its fields that were made of others: all of them are features.
        """
        layout = self._last
        if (
            layout is not None
            and type(row) is dict
            and len(row if self.declared is None else derived) == layout.size
        ):
            try:
                return self._encode_known(layout, row, awake)
            except _UNUSUAL:
                pass  # other fields than last time, or something new or wrong
        if isinstance(row, Mapping):
            layout = self._last = self._layouts.get(self._layout_key(row, derived))
            if layout is not None:
                try:
                    return self._encode_known(layout, row, awake)
                except _UNUSUAL:
                    pass  # the careful way finds what is new or wrong
        return self._encode_carefully(row, awake, derived)

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
        total = sum(numbers)  # a TypeError where one is text
        if type(total) not in PLAIN:  # of other kinds, some with fewer digits
            numbers = [as_float(number) for number in numbers]
            total = sum(numbers)  # a TypeError where one is none
        if layout.ranges:
            numbers = [
                (number - low) / span
                for number, (low, span) in zip(numbers, layout.ranges, strict=True)
            ]
            total = sum(numbers)
        if not -LARGEST < total < LARGEST:  # also where one is not a number
            raise OverflowError
        if not layout.texts and not self.indicators:
            indices, order, write, constant = layout.plain
            values = np.empty(len(indices))
            write(values, 0, *constant, *numbers)
        else:
            ones = self._ones(layout, row, awake)
            indices, order, write, constant = layout.patterns[ones]
            values = np.empty(len(indices))
            write(values, 0, *constant, *numbers, *(1.0 for _ in ones))
        if order is not None:
            values = values[order]
        return _as_row(Row, (indices, values, self.names, (), NOTHING))

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

    def _encode_carefully(
        self, row: Mapping[str, Any], awake: Sequence[Member], derived: Collection[str]
    ) -> Row:
        new: dict[Feature, int] = {}
        kinds: dict[str, FieldKind] = {}
        found: dict[int, float] = {0: 1.0} if self.intercept else {}
        for field, value in self._fields(row, derived):
            cell = self.cell(field, value, self.kinds.get(field))
            if cell != cell:
                found[self._number(Feature("missing", field), new)] = 1.0
            elif isinstance(cell, str):
                kinds[field] = "text"
                found[self._number(self.level(field, cell), new)] = 1.0
            elif cell is not None:
                kinds[field] = "number"
                found[self._number(Feature("number", field), new)] = cell
        if self.indicators:
            for member in awake:
                index = -1
                if self.has_indicator(member, kinds):
                    index = self._number(self.indicator(member), new)
                    found[index] = 1.0
                self._remember_indicator(member, index)
        if not new:
            self._remember_layout(row, derived)
        kept = sorted(item for item in found.items() if item[1] != 0.0)
        indices = np.array([index for index, _ in kept], dtype=np.int64)
        values = np.array([value for _, value in kept], dtype=np.float64)
        names = [*self.names, *(feature.name for feature in new)] if new else self.names
        return Row(indices, values, names, tuple(new))

    def _number(self, feature: Feature, new: dict[Feature, int]) -> int:
        if feature in self.index:
            return self.index[feature]
        return new.setdefault(feature, len(self.names) + len(new))

    def level(self, field: str, level: str, more: int = 0) -> Feature:
        """The feature of a level: its own, or one that is shared; ``more`` are about to be new."""
        levels, most = self._levels.get(field, _NO_LEVELS), self.max_levels
        if level in levels:
            return Feature("level", field, level)
        if not levels.columns:
            if most is None or len(levels) + more < most:
                return Feature("level", field, level)
            if self.declared is not None:
                raise FeatureError(
                    f"Field {field!r} holds {level!r}, one level more than the {most} that may "
                    f"have a feature each. Declare it as features={{{field!r}: gw.hashed({most}), "
                    "...}, or raise max_levels."
                )
        return Feature("hashed", field, place_of(level, levels.columns or most or COLUMNS))

    def indicator(self, member: Member, more: int = 0) -> Feature:
        """The feature of a group, its own or shared; ``more`` of its kind are about to be new."""
        own, number, most = indicator_of(member), member.declaration, self.max_levels
        family = self.groups.declarations[number]
        room = most is None or self._indicated[number] + more < most or not family.is_open
        if own in self.index or room:
            return own
        place = place_of(member.name, most or COLUMNS)
        return Feature("hashed", family.columns[0], place, (number, ()))

    def _fields(
        self, row: Mapping[str, Any], derived: Collection[str] = ()
    ) -> Iterable[tuple[str, Any]]:
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
            if self.declared is not None or not (field in self.apart or field in derived):
                yield field, row[field]
        for field in derived:
            if row[field] is not None and field not in self.apart:
                yield field, row[field]

    def cell(self, field: str, value: Any, kind: FieldKind | None) -> float | str | None:
        """Read one value: a number, a level, None for nothing, or NaN, which has an indicator."""
        if self.fills and is_missing(value):
            return math.nan
        if field in self.declared_hashed and not is_missing(value):
            try:
                return value_name(value, field)
            except GroupError as error:
                raise FeatureError(error.message) from None
        if isinstance(value, str):
            if kind == "number":
                raise changed_kind(field, value, kind)
            return str.__str__(value)
        if is_missing(value):
            optional = self.declared is None
            if optional and (kind == "text" or (kind is None and not isinstance(value, _NUMBERS))):
                return None
            raise self._unusable(field, value)
        number = as_float(value)
        if number is None:
            raise FeatureError(
                f"Field {field!r} holds {value!r} of type {type(value).__name__}, neither number "
                "nor text. Convert it, or name the fields to use with features=[...]; dates are "
                f"read by features=[gw.calendar({field!r})]."
            )
        if kind == "text":
            raise changed_kind(field, value, kind)
        number = self.scale(field, number)
        if not abs(number) <= LARGEST:
            raise self._unusable(field, value)
        return number

    def refusal(self, row: Mapping[str, Any], derived: Collection[str] = ()) -> FeatureError:
        """The error for a row that holds a number beyond all bounds."""
        cells = self._fields(row, derived)
        fields = [(field, value) for field, value in cells if type(value) is not str]
        return self._unusable(*max(fields, key=lambda cell: self._size(*cell)))

    def scale(self, field: str, values: Numbers) -> Numbers:
        """Scale a value, or all of a column."""
        low, high = self._bounds.get(field, (0.0, 1.0))
        return (values - low) / (high - low)

    def _size(self, field: str, value: Any) -> float:
        return abs(self.scale(field, as_float(value) or 0.0))

    def _unusable(self, field: str, value: object) -> FeatureError:
        advice = "Fill it in" if self.declared is not None else "Fill it in, or leave the field out"
        if is_missing(value):
            advice += f"; missing={INDICATOR!r} makes it a 0, with a feature that says so"
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
        return column in self.kinds or column in self.apart

    def _remember_layout(self, row: Mapping[str, Any], derived: Collection[str]) -> None:
        used, key = self.declared, self._layout_key(row, derived)
        if used is None:
            used = tuple(field for field in row if field not in self.apart)
        else:
            used = (*used, *(field for field in derived if field not in self.apart))
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
        size = len(row if self.declared is None else derived)
        self._layouts[key] = Layout(size, getter(numbers), texts, ranges, *patterns)

    def _layout_key(self, row: Iterable[str], derived: Iterable[str]) -> frozenset[str]:
        return frozenset(row if self.declared is None else derived)

    # Snapshots.

    def to_dict(self) -> dict[str, Any]:
        """Give everything but the groups as values that JSON can hold."""
        groups = [[] if one.group is None else [list(one.group)] for one in self.features]
        features = [[*one[:3], *group] for one, group in zip(self.features, groups, strict=True)]
        return {
            "declared": declared_to_json(self._given),
            "indicators": self.indicators,
            "intercept": self.intercept,
            "max_levels": self.max_levels,
            "features": features,
            **({"apart": list(self._apart)} if self._apart else {}),
            **({"missing": INDICATOR} if self.fills else {}),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any], groups: Groups) -> "Encoder":
        """Make the encoder again whose ``to_dict`` gave the state."""
        declared = declared_from_json(state["declared"])
        later = state.get("intercept", False), state.get("max_levels"), state.get("apart", ())
        parts = *later, state.get("missing")  # groupwise 0.1 had none
        encoder = cls(declared, state["indicators"], groups, *parts)
        encoder.restore(state)
        return encoder

    def restore(self, state: Mapping[str, Any]) -> None:
        """Admit what an encoder declared alike had admitted when ``to_dict`` gave the state."""
        features = [self._feature(*fields) for fields in state["features"]]
        known = self.features == features[: len(self.features)]
        if not known or len(set(features)) < len(features):
            raise FeatureError("The saved features do not fit this encoder. Declare it as it was.")
        self.admit(features)
        self.unsaid.clear()

    def _feature(self, kind: Any, field: str, level: str = "", group: Any = None) -> Feature:
        """The feature that was saved; groupwise 0.1 knew the groups of indicators by name alone."""
        if kind != "indicator":
            whose = None if group is None else (group[0], tuple(group[1]))
            return Feature(kind, field, level, whose)
        if group is None:
            return indicator_of(self.groups.named(field))
        return indicator_of(self.groups.member(group[0], tuple(group[1])))

    def __reduce__(self) -> tuple[Any, ...]:
        return Encoder.from_dict, (self.to_dict(), self.groups)
