"""A whole frame to sparse numbers, a column at a time."""

import itertools
from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.arrays import LARGEST
from groupwise.errors import FeatureError, GroupError
from groupwise.features.declared import (
    EncodedFrame,
    Feature,
    FieldKind,
    Floats,
    Integers,
    indicator_of,
)
from groupwise.groups.columns import Column, Table, as_table, first_places
from groupwise.groups.frames import FrameMembership
from groupwise.groups.values import value_name

if TYPE_CHECKING:
    from groupwise.features.encoder import Encoder

# Rows that are put in order at a time.
_CHUNK = 1 << 15
# A feature number after all others: nothing here.
_ABSENT = np.iinfo(np.int64).max


class Cells(NamedTuple):
    """One column read as a field: numbers (0 where absent), or codes of text levels (-1)."""

    field: str
    kind: FieldKind | None = None
    """None when there is no value in the whole column."""
    numbers: Floats = np.zeros(0)
    codes: Integers = np.zeros(0, dtype=np.int64)
    levels: Sequence[str] = ()
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
    found: list[Cells] = []
    problems: list[FeatureError] = []
    for field in fields:
        try:
            column = table.column(field)
            read = {"objects": _object_cells, "text": _text_cells}.get(column.kind, _number_cells)
            found.append(read(encoder, column, encoder.kinds.get(field)))
        except FeatureError as problem:
            problems.append(problem)
    if problems:
        # What is wrong with a column as a whole comes first.
        raise min(problems, key=lambda one: -1 if one.row is None else one.row)
    kinds = {cells.field: cells.kind for cells in found if cells.kind is not None}
    wanted = [one for place, cells in enumerate(found) for one in _wanted(place, cells)]
    members = membership.members if encoder.indicators else ()
    eligible = np.array([encoder.has_indicator(one, kinds) for one in members], dtype=np.bool_)
    if encoder.indicators:
        wanted.extend(_wanted_indicators(len(fields), membership, eligible))
    wanted.sort(key=itemgetter(0, 1))
    new = dict.fromkeys(feature for _, _, feature in wanted if feature not in encoder.index)
    index = encoder.index | dict(zip(new, itertools.count(len(encoder.names))))
    slots = [Slot(0, np.ones(table.length))] if encoder.intercept else []
    slots.extend(_slot(cells, index) for cells in found if cells.kind is not None)
    if encoder.indicators:
        slots.extend(_indicator_slots(membership, eligible, index))
    return EncodedFrame(*_assemble(slots, table.length), tuple(new))


def _fields(encoder: "Encoder", table: Table) -> Sequence[str]:
    for what, count in (("columns", len(table.names)), ("rows", table.length)):
        if not count:
            raise FeatureError(f"The frame has no {what}. Give at least one.")
    for name in table.names:
        if not isinstance(name, str):
            raise FeatureError(f"The frame has the column {name!r}. Columns are named by text.")
    if encoder.declared is None:
        return [name for name in table.names if name not in encoder.groups.weight_columns]
    for field in encoder.declared:
        if field not in table:
            raise FeatureError(
                f"The frame has no column {field!r}, which is a declared feature. "
                "Add it, or take it off the list of features."
            )
    return encoder.declared


def _number_cells(encoder: "Encoder", column: Column, kind: FieldKind | None) -> Cells:
    values = column.values.astype(np.float64)
    nulls = column.nulls
    if kind == "text":
        # A column without any value counts as text that is absent, where fields may be absent.
        present = np.arange(column.length)
        if column.missing is not None and encoder.declared is None:
            present = np.flatnonzero(~column.missing)
        if len(present):
            _complain(encoder, column, int(present[0]), kind)
        return Cells(column.name)
    first = 0
    if nulls is not None:
        values[nulls] = np.nan
        if kind is None and encoder.declared is None:
            present = np.flatnonzero(~nulls)
            if not len(present):
                return Cells(column.name)
            # Before its first value the field is unknown, and None adds nothing.
            first = int(present[0])
            values[:first] = 0.0
    with np.errstate(over="ignore"):
        values = encoder.scale(column.name, values)
    bad = np.flatnonzero(~(np.abs(values) <= LARGEST))
    if len(bad):
        _complain(encoder, column, int(bad[0]), "number")
    return Cells(column.name, "number", values, first=first)


def _text_cells(encoder: "Encoder", column: Column, kind: FieldKind | None) -> Cells:
    absent = column.codes < 0
    if kind == "number":
        _complain(encoder, column, 0, kind)
    if encoder.declared is not None and absent.any():
        _complain(encoder, column, int(np.flatnonzero(absent)[0]), kind)
    if absent.all():
        return Cells(column.name)
    try:
        levels = [name or "" for name in column.answers(partial(value_name, column=column.name))]
    except GroupError as error:
        raise FeatureError(error.message, row=error.row) from None
    return Cells(column.name, "text", codes=column.codes, levels=levels)


def _object_cells(encoder: "Encoder", column: Column, kind: FieldKind | None) -> Cells:
    """Read a column of mixed objects the way rows are read, value by value."""
    numbers = np.zeros(column.length)
    codes = np.full(column.length, -1, dtype=np.int64)
    levels: dict[str, int] = {}
    first = -1
    for row, value in enumerate(column.objects):
        cell = _cell(encoder, column, row, value, kind)
        if cell is None:
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
    return Cells(column.name, kind, numbers, codes, list(levels), first)


def _complain(encoder: "Encoder", column: Column, row: int, kind: FieldKind | None) -> None:
    """Raise the error that reading this one value as a row's raises."""
    if column.kind == "text":
        value: Any = [*map(str, column.levels), None][column.codes[row]]
    else:
        null = column.nulls is not None and column.nulls[row]
        value = None if null else column.values[row].item()
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
    if cells.kind == "number":
        return [(cells.first, position, Feature("number", cells.field))]
    first = first_places(cells.codes, len(cells.levels))
    return [
        (int(row), position, Feature("level", cells.field, level))
        for row, level in zip(first, cells.levels, strict=True)
        if row >= 0
    ]


def _wanted_indicators(
    fields: int, membership: FrameMembership, eligible: Any
) -> list[tuple[int, int, Feature]]:
    places = first_places(membership.indices, len(membership.members))
    rows = np.searchsorted(membership.indptr, places, side="right") - 1
    return [
        (
            int(rows[number]),
            fields + int(places[number] - membership.indptr[rows[number]]),
            indicator_of(membership.members[number]),
        )
        for number in np.flatnonzero(eligible & (places >= 0)).tolist()
    ]


def _slot(cells: Cells, index: dict[Feature, int]) -> Slot:
    if cells.kind == "number":
        return Slot(index[Feature("number", cells.field)], cells.numbers)
    numbers = [index.get(Feature("level", cells.field, level), _ABSENT) for level in cells.levels]
    return Slot(np.array([*numbers, _ABSENT], dtype=np.int64)[cells.codes], None)


def _indicator_slots(
    membership: FrameMembership, eligible: Any, index: dict[Feature, int]
) -> list[Slot]:
    """Lay the indicators of every row into as many slots as the fullest row needs."""
    length = len(membership.indptr) - 1
    kept = np.flatnonzero(eligible[membership.indices])
    rows = np.repeat(np.arange(length), np.diff(membership.indptr))[kept]
    counts = np.bincount(rows, minlength=length)
    within = np.arange(len(kept)) - (np.cumsum(counts) - counts)[rows]
    number_of = np.array(
        [
            index.get(indicator_of(member), _ABSENT) if fits else _ABSENT
            for member, fits in zip(membership.members, eligible, strict=True)
        ],
        dtype=np.int64,
    )
    numbers = number_of[membership.indices[kept]]
    slots = []
    for place in range(int(counts.max(initial=0))):
        chosen = within == place
        indices = np.full(length, _ABSENT, dtype=np.int64)
        indices[rows[chosen]] = numbers[chosen]
        slots.append(Slot(indices, None))
    return slots


def _assemble(slots: Sequence[Slot], length: int) -> tuple[Integers, Integers, Floats]:
    """Put the entries of every row in ascending order of feature."""
    slots, ordered = _in_order(slots)
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
