"""A whole frame to sparse numbers, a column at a time."""

import itertools
from collections import Counter
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np

from groupwise.arrays import LARGEST
from groupwise.errors import FeatureError, GroupError
from groupwise.features.declared import (
    EncodedFrame,
    Feature,
    FieldKind,
    Floats,
    Integers,
)
from groupwise.groups.columns import Booleans, Column, Table, as_table, first_places
from groupwise.groups.frames import FrameMembership
from groupwise.groups.values import value_name

if TYPE_CHECKING:
    from groupwise.features.encoder import Encoder

# Rows that are put in order at a time.
_CHUNK = 1 << 15
# A feature number after all others: nothing here.
_ABSENT = np.iinfo(np.int64).max


class Cells(NamedTuple):
    """One column read as a field: numbers (0 where absent), or codes of text levels (-1).

    ``levels`` are their features, of which some may be the same.
    """

    field: str
    kind: FieldKind | Literal["missing"] | None = None
    """None when there is no value in the whole column; missing for the indicator of that."""
    numbers: Floats = np.zeros(0)
    codes: Integers = np.zeros(0, dtype=np.int64)
    levels: Sequence[Feature | None] = ()
    first: int = 0
    """The row from which on a new number field exists."""


class Slot(NamedTuple):
    """At most one entry per row: its feature (one, or one per row) and its value (None: 1)."""

    indices: Integers | int
    values: Floats | None


def encode_frame(encoder: "Encoder", frame: object, membership: FrameMembership) -> EncodedFrame:
    """Encode every row of a frame; see ``Encoder.encode_frame``."""
    table = as_table(frame, FeatureError)
    fields = _fields(encoder, table)
    if len(membership.indptr) != table.length + 1:
        raise FeatureError(
            f"The frame has {table.length} rows and the membership {len(membership.indptr) - 1}. "
            "Find the groups of this same frame."
        )
    awake = np.diff(membership.indptr) > 0
    found: list[Cells] = []
    problems: list[FeatureError] = []
    for field in fields:
        try:
            column = table.column(field)
            read = {"objects": _object_cells, "text": _text_cells}.get(column.kind, _number_cells)
            read = _hashed_cells if field in encoder.declared_hashed else read
            found.append(read(encoder, column, encoder.kinds.get(field), awake))
            if encoder.fills and column.missing is not None:
                found.append(_missing_cells(column, awake))
        except FeatureError as problem:
            problems.append(problem)
    made = [column for name, column in table.made.items() if name not in encoder.apart]
    found.extend(_made_cells(encoder, column, awake) for column in made)
    if problems:
        # What is wrong with a column as a whole comes first.
        raise min(problems, key=lambda one: -1 if one.row is None else one.row)
    kinds: dict[str, FieldKind] = {
        cells.field: cells.kind for cells in found if cells.kind in ("number", "text")
    }
    wanted = [one for place, cells in enumerate(found) for one in _wanted(place, cells)]
    members = membership.members if encoder.indicators else ()
    eligible = np.array([encoder.has_indicator(one, kinds) for one in members], dtype=np.bool_)
    indicators: list[Feature | None] = []
    if encoder.indicators:
        first = first_places(membership.indices, len(members))
        indicators = _indicators(encoder, membership, np.where(eligible, first, -1))
        wanted.extend(_wanted_indicators(len(found), membership, first, indicators))
    wanted.sort(key=itemgetter(0, 1))
    new = dict.fromkeys(feature for _, _, feature in wanted if feature not in encoder.index)
    index = encoder.index | dict(zip(new, itertools.count(len(encoder.names))))
    slots = [Slot(0, np.ones(table.length))] if encoder.intercept else []
    slots.extend(_slot(cells, index) for cells in found if cells.kind is not None)
    if encoder.indicators:
        slots.extend(_indicator_slots(membership, eligible, indicators, index))
    return EncodedFrame(*_assemble(slots, awake), tuple(new))


def _fields(encoder: "Encoder", table: Table) -> Sequence[str]:
    for what, count in (("columns", len(table.names)), ("rows", table.length)):
        if not count:
            raise FeatureError(f"The frame has no {what}. Give at least one.")
    for name in table.names:
        if not isinstance(name, str):
            raise FeatureError(f"The frame has the column {name!r}. Columns are named by text.")
    if encoder.declared is None:
        return [name for name in table.names if name not in encoder.apart]
    for field in encoder.declared:
        if field not in table:
            raise FeatureError(
                f"The frame has no column {field!r}, which is a declared feature. "
                "Add it, or take it off the list of features."
            )
    return encoder.declared


def _missing_cells(column: Column, awake: Booleans) -> Cells:
    """The indicator of a column's missing values."""
    assert column.missing is not None
    rows = np.flatnonzero(column.missing & awake)
    if not len(rows):
        return Cells(column.name)
    return Cells(column.name, "missing", column.missing.astype(np.float64), first=int(rows[0]))


def _number_cells(
    encoder: "Encoder", column: Column, kind: FieldKind | None, awake: Booleans
) -> Cells:
    values = column.values.astype(np.float64)
    nulls = column.missing if encoder.fills else column.nulls
    optional = encoder.declared is None or encoder.fills
    if kind == "text":
        # A column without any value counts as text that is absent, where fields may be absent.
        present = np.arange(column.length)
        if column.missing is not None and optional:
            present = np.flatnonzero(~column.missing)
        if len(present):
            _complain(encoder, column, int(present[0]), kind)
        return Cells(column.name)
    present = np.flatnonzero(awake if nulls is None else awake & ~nulls)
    first = int(present[0]) if len(present) else column.length
    if nulls is not None:
        values[nulls] = np.nan
        if kind is None and encoder.declared is None:
            # Before its first value the field is unknown, and None adds nothing.
            values[:first][nulls[:first]] = 0.0
    with np.errstate(over="ignore"):
        values = encoder.scale(column.name, values)
    if encoder.fills and nulls is not None:
        values[nulls] = 0.0
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(bad):
        _complain(encoder, column, int(bad[0]), "number")
    if first == column.length and kind is None:
        return Cells(column.name)
    return Cells(column.name, "number", values, first=first)


def _text_cells(
    encoder: "Encoder", column: Column, kind: FieldKind | None, awake: Booleans
) -> Cells:
    absent = column.codes < 0
    if kind == "number" and not (encoder.fills and absent.all()):
        _complain(encoder, column, int(np.argmin(absent)) if encoder.fills else 0, kind)
    if encoder.declared is not None and absent.any() and not encoder.fills:
        _complain(encoder, column, int(np.flatnonzero(absent)[0]), kind)
    return _level_cells(encoder, column, awake)


def _hashed_cells(
    encoder: "Encoder", column: Column, kind: FieldKind | None, awake: Booleans
) -> Cells:
    """Read a column whose every value, be it text or number, is one of a hashed field."""
    if column.missing is not None and not encoder.fills:
        _complain(encoder, column, int(np.flatnonzero(column.missing)[0]), kind)
    return _level_cells(encoder, column, awake)


def _made_cells(encoder: "Encoder", column: Column, awake: Booleans) -> Cells:
    """Read a column that was made of others; where it has no value, a row has no such field."""
    if column.kind == "text":
        return _level_cells(encoder, column, awake)
    present = np.flatnonzero(awake if column.nulls is None else awake & ~column.nulls)
    if not len(present):
        return Cells(column.name)
    values = column.values if column.nulls is None else np.where(column.nulls, 0.0, column.values)
    return Cells(column.name, "number", values, first=int(present[0]))


def _level_cells(encoder: "Encoder", column: Column, awake: Booleans) -> Cells:
    """Read a column as levels, a feature for each that a row has with somebody awake."""
    try:
        names = [name or "" for name in column.answers(partial(value_name, column=column.name))]
    except GroupError as error:
        raise FeatureError(error.message, row=error.row) from None
    codes = column.distinct[1]
    codes = codes if awake.all() else np.where(awake, codes, -1)
    kind: FieldKind | None = "text" if (codes >= 0).any() else None
    return Cells(column.name, kind, codes=codes, levels=_levels(encoder, column.name, codes, names))


def _levels(
    encoder: "Encoder", field: str, codes: Integers, names: Sequence[str]
) -> list[Feature | None]:
    """The features of a field's levels, in the order in which rows bring them."""
    found: list[Feature | None] = [None] * len(names)
    first = first_places(codes, len(names))
    more = 0
    for code in np.argsort(first, kind="stable").tolist():
        if first[code] < 0:
            continue
        try:
            feature = found[code] = encoder.level(field, names[code], more)
        except FeatureError as error:
            error.row = int(first[code])
            raise
        more += feature.kind == "level" and feature not in encoder.index
    return found


def _object_cells(
    encoder: "Encoder", column: Column, kind: FieldKind | None, awake: Booleans
) -> Cells:
    """Read a column of mixed objects the way rows are read, value by value."""
    numbers = np.zeros(column.length)
    codes = np.full(column.length, -1, dtype=np.int64)
    levels: dict[str, int] = {}
    first = -1
    for row, value in enumerate(column.objects):
        cell = _cell(encoder, column, row, value, kind)
        if cell is None or cell != cell or not awake[row]:
            continue
        first = row if first < 0 else first
        if isinstance(cell, str):
            kind = "text"
            codes[row] = levels.setdefault(cell, len(levels))
        else:
            kind = "number"
            numbers[row] = cell
    if first < 0:
        return Cells(column.name)
    features = _levels(encoder, column.name, codes, list(levels))
    return Cells(column.name, kind, numbers, codes, features, first)


def _complain(encoder: "Encoder", column: Column, row: int, kind: FieldKind | None) -> None:
    """Raise the error that reading this one value as a row's raises."""
    value = column.value(row)
    _cell(encoder, column, row, value, kind)
    raise AssertionError(f"{value!r} in {column.name!r} was refused in a frame only")


def _cell(
    encoder: "Encoder", column: Column, row: int, value: object, kind: FieldKind | None
) -> float | str | None:
    """Read one value as a row's is read."""
    try:
        return encoder.cell(column.name, value, kind)
    except FeatureError as error:
        error.row = row
        raise


def _wanted(position: int, cells: Cells) -> list[tuple[int, int, Feature]]:
    """List the features of a column with the row and place where each first occurs."""
    if cells.kind in ("number", "missing"):
        return [(cells.first, position, Feature(cells.kind, cells.field))]
    first = first_places(cells.codes, len(cells.levels)).tolist()
    return [
        (row, position, level)
        for row, level in zip(first, cells.levels, strict=True)
        if level is not None
    ]


def _indicators(
    encoder: "Encoder", membership: FrameMembership, first: Integers
) -> list[Feature | None]:
    """The features of groups, in the order in which rows bring them; none where first is -1."""
    found: list[Feature | None] = [None] * len(membership.members)
    more: Counter[int] = Counter()
    for number in np.argsort(first, kind="stable").tolist():
        if first[number] >= 0:
            member = membership.members[number]
            feature = found[number] = encoder.indicator(member, more[member.declaration])
            if feature.kind == "indicator" and feature not in encoder.index:
                more[member.declaration] += 1
    return found


def _wanted_indicators(
    fields: int, membership: FrameMembership, first: Integers, features: Sequence[Feature | None]
) -> list[tuple[int, int, Feature]]:
    rows = np.searchsorted(membership.indptr, first, side="right") - 1
    places = (fields + first - membership.indptr[rows]).tolist()
    return [
        (row, place, feature)
        for row, place, feature in zip(rows.tolist(), places, features, strict=True)
        if feature is not None
    ]


def _numbers(features: Sequence[Feature | None], index: dict[Feature, int]) -> Integers:
    """The numbers of features; the last, and of those that there are not, is none."""
    found = [_ABSENT if one is None else index.get(one, _ABSENT) for one in features]
    return np.array([*found, _ABSENT], dtype=np.int64)


def _slot(cells: Cells, index: dict[Feature, int]) -> Slot:
    if cells.kind in ("number", "missing"):
        return Slot(index[Feature(cells.kind, cells.field)], cells.numbers)
    return Slot(_numbers(cells.levels, index)[cells.codes], None)


def _indicator_slots(
    membership: FrameMembership,
    eligible: Booleans,
    features: Sequence[Feature | None],
    index: dict[Feature, int],
) -> list[Slot]:
    """Lay the indicators of every row into as many slots as the fullest row needs."""
    length = len(membership.indptr) - 1
    kept = np.flatnonzero(eligible[membership.indices])
    rows = np.repeat(np.arange(length), np.diff(membership.indptr))[kept]
    counts = np.bincount(rows, minlength=length)
    within = np.arange(len(kept)) - (np.cumsum(counts) - counts)[rows]
    numbers = _numbers(features, index)[membership.indices[kept]]
    slots = []
    for place in range(int(counts.max(initial=0))):
        chosen = within == place
        indices = np.full(length, _ABSENT, dtype=np.int64)
        indices[rows[chosen]] = numbers[chosen]
        slots.append(Slot(indices, None))
    return slots


def _assemble(slots: Sequence[Slot], awake: Booleans) -> tuple[Integers, Integers, Floats]:
    """Put the entries of every row in ascending order of feature; none where nobody is awake."""
    slots, ordered = _in_order(slots)
    length, asleep = len(awake), not awake.all()
    counts = [np.zeros(1, dtype=np.int64)]
    indices: list[Integers] = [np.zeros(0, dtype=np.int64)]
    values: list[Floats] = [np.zeros(0)]
    for low in range(0, length, _CHUNK):
        part = slice(low, min(low + _CHUNK, length))
        keys = np.full((part.stop - low, len(slots)), _ABSENT, dtype=np.int64)
        entries = np.ones((part.stop - low, len(slots)))
        for number, slot in enumerate(slots):
            if slot.values is None:
                assert not isinstance(slot.indices, int)
                keys[:, number] = slot.indices[part]
            else:
                entries[:, number] = slot.values[part]
                keys[entries[:, number] != 0.0, number] = slot.indices
        if asleep:
            keys[~awake[part]] = _ABSENT
        if not ordered:
            order = np.argsort(keys, axis=1)
            keys = np.take_along_axis(keys, order, axis=1)
            entries = np.take_along_axis(entries, order, axis=1)
        present = keys != _ABSENT
        counts.append(present.sum(axis=1))
        indices.append(keys[present])
        values.append(entries[present])
    return np.cumsum(np.concatenate(counts)), np.concatenate(indices), np.concatenate(values)


def _in_order(slots: Sequence[Slot]) -> tuple[list[Slot], bool]:
    """Sort slots by feature, and say whether this puts every row in order."""
    spans = []
    for slot in slots:
        indices = np.atleast_1d(slot.indices)
        present = indices[indices != _ABSENT]
        spans.append((int(present.min(initial=_ABSENT)), int(present.max(initial=-1))))
    places = sorted(range(len(slots)), key=spans.__getitem__)
    ordered = all(spans[one][1] < spans[next_][0] for one, next_ in itertools.pairwise(places))
    return [slots[place] for place in places], ordered
