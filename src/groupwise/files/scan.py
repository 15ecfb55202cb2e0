"""The first pass over a file: what its columns hold, numbers or text."""

import difflib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from groupwise.class_names import MOST
from groupwise.errors import DataError
from groupwise.files.columnar import EXACT
from groupwise.files.dates import forms_of
from groupwise.files.profile import ABSENT, COUNTED, MISSING, TRUTH, Kind, Profile, is_number
from groupwise.files.source import Chunks, Source, column_of
from groupwise.files.text import listed, quoted, shown
from groupwise.files.unpacking import CSV
from groupwise.groups.values import value_name
from groupwise.progress import progress_bar

TOGETHER = 256
"""Rows that are looked at together, where a file is so wide that it comes in fewer."""
FEW_BAD = 0.05
"""Where bad rows are skipped, a column is one of numbers although this share of cells are none."""
SORTED = "to sort by"
MANY = 500
"""Columns of a wide file, which are looked at together."""
MANY_VALUES = 24
"""Of which so many values are kept; beyond it is counted how many there are."""


@dataclass
class Scan:
    """What a first pass has found: profiles by column, in file order.

    ``keys`` are the columns to sort by, where some were asked for.
    """

    source: Source
    rows: int
    columns: dict[str, Profile]
    keys: dict[str, Any] = field(default_factory=dict)

    @property
    def kinds(self) -> dict[str, Kind]:
        """How every column is read."""
        return {name: profile.reading for name, profile in self.columns.items()}

    def column(self, name: str, what: str) -> Profile:
        """The profile of a column that was asked for."""
        if name not in self.columns:
            raise self.unknown(name, what)
        return self.columns[name]

    def unknown(self, name: str, what: str) -> DataError:
        """The error for a column that is not there."""
        return unknown_column(name, list(self.columns), self.source, what)


def unknown_column(name: str, columns: list[str], source: Source, what: str) -> DataError:
    """The error for a column that is not there, or is not read."""
    if name in source.unread:
        return DataError(
            f"Column {quoted(name)} of {shown(source.name)} is to be used {what}, and "
            f"{source.unread[name]}. Give what is in it as columns of numbers and text."
        )
    close = difflib.get_close_matches(name, columns, 1)
    guess = f" Did you mean {quoted(close[0])}?" if close else ""
    there = f" It has: {listed(columns)}." if columns else ""
    if len(columns) == 1 and source.format == CSV:
        there += " Cells are set apart by commas, semicolons, tabs or bars."
    also = f" Not read, being nested or bytes: {listed(source.unread)}." if source.unread else ""
    return DataError(
        f"{shown(source.name)} has no column {quoted(name)} {what}.{guess}{there}{also}"
    )


def scan(
    source: Source,
    target: str | None,
    order: Sequence[str] = (),
    progress: bool = False,
) -> Scan:
    """Read a file once, and look at every column."""
    found = Scan(source, 0, {})
    keys: dict[str, list[Any]] = {name: [] for name in order}
    with progress_bar(source.size, "first pass", progress) as advance:
        for table, position in gathered(source.chunks()):
            found.columns |= {  # a field that appears later was missing so far
                name: Profile(name, "number", found.rows, found.rows, min(found.rows, 1))
                for name in table.column_names
                if name not in found.columns
            }
            for name, what in ((target, "for the label"), *((one, SORTED) for one in order)):
                if name is not None and not source.is_open:
                    found.column(name, what)
            labels, rest = None, [*found.columns]
            if target in found.columns:
                profile = found.columns[target]
                numbers = _look(profile, table, None, source.ragged is not None, is_label=True)
                labels = _labels(profile, table, numbers)
                rest.remove(target)
            if len(rest) > MANY:
                rest = look_together([found.columns[name] for name in rest], table, labels)
            for name in rest:
                _look(found.columns[name], table, labels, source.ragged is not None)
            for name, chunks in keys.items():
                chunks += column_of(table, name).chunks
            found.rows += table.num_rows
            advance(table.num_rows, position)
    if not found.rows:
        raise DataError(f"{shown(source.name)} has no rows.")
    for name in source.unread:
        found.columns.pop(name, None)
    for profile in found.columns.values():
        profile.finish()
    for name, chunks in keys.items():
        found.column(name, SORTED)
        found.keys[name] = pa.chunked_array(chunks)
    return found


def gathered(chunks: Chunks) -> Chunks:
    """The same rows, enough at a time that looking at a column costs more than finding it."""
    held: list[pa.Table] = []
    position = 0
    for table, position in chunks:
        if held and table.schema != held[0].schema:
            yield pa.concat_tables(held), position
            held = []
        held.append(table)
        if sum(one.num_rows for one in held) >= TOGETHER:
            yield pa.concat_tables(held), position
            held = []
    if held:
        yield pa.concat_tables(held), position


def _finite(profile: Profile, numbers: Any) -> Any:
    """The numbers, those that are infinite counted among the bad ones."""
    infinite = compute.fill_null(compute.is_inf(numbers), False)
    count = compute.sum(infinite).as_py()
    if not count:
        return numbers
    profile.missing -= count
    profile.bad += count
    return compute.if_else(infinite, pa.scalar(None, pa.float64()), numbers)


def _spared(profile: Profile, column: Any) -> Any:
    """The numbers of a column in which hardly a cell holds anything else; None where many do."""
    numbers, bad = leniently(column)
    if len(bad) > FEW_BAD * (len(column) - numbers.null_count):
        return None
    profile.missing -= len(bad)
    profile.bad += len(bad)
    return numbers


def _look(
    profile: Profile, table: pa.Table, labels: Any, skip: bool, is_label: bool = False
) -> Any:
    """Take note of a column in a chunk; gives its numbers, None where it holds text."""
    column, start = column_of(table, profile.name), profile.rows
    profile.rows += len(column)
    numbers = None
    if profile.kind == "number":
        try:
            numbers = as_numbers(column)
            if not is_label and are_identifiers(column, numbers):
                raise pa.ArrowInvalid("identifiers")
        except pa.ArrowInvalid:
            numbers = _spared(profile, column) if skip else None
        if numbers is not None and skip:
            numbers = _finite(profile, numbers)
        if numbers is None:
            profile.kind = "text"
            row, profile.text = first_text(column)
            profile.text_row = start + 1 + row
            if profile.missing < start:  # there were numbers before
                profile.forms, profile.truth = (), False
    held = column if numbers is None else numbers
    profile.missing += held.null_count
    if held.null_count and not profile.first_missing:
        profile.first_missing = start + 1 + compute.index(compute.is_null(held), True).as_py()
    dated = numbers is None and len(profile.forms) > 0
    worded = numbers is None and profile.truth
    if profile.values is not None or dated or worded:
        distinct = compute.unique(column).cast(pa.string()).to_pylist()
        known = [value for value in distinct if value is not None]
        if worded:
            _note_words(profile, column, known, start)
        if dated:
            profile.forms = forms_of(known, profile.forms)
        if profile.values is not None:
            profile.values.update(known)
            if len(profile.values) > COUNTED:
                profile.values = None
    if numbers is None:
        return None
    x, y = numbers.to_numpy(), labels
    _note_numbers(profile, x, start)
    if y is not None:
        sums = sums_of(x[None, :], y)[0]
        profile.sums = sums if profile.sums is None else profile.sums + sums
    return x


def sums_of(x: Any, y: Any) -> Any:
    """Of every row of x, and of y, what a correlation is made of; where neither is missing."""
    there = ~(np.isnan(x) | np.isnan(y))
    with np.errstate(all="ignore"):
        x, y = np.where(there, x, 0.0), np.where(there, y, 0.0)
        parts = there.astype(np.float64), x, x * x, x * y, y, y * y
        return np.stack([part.sum(axis=1) for part in parts], axis=1)


def look_together(profiles: list[Profile], table: pa.Table, labels: Any) -> list[str]:
    """Take note of the columns of a wide chunk that hold finite numbers, all of them at once.

    Gives the names of the others.
    """
    found: list[tuple[Profile, Any]] = []
    others: list[str] = []
    for profile in profiles:
        column = column_of(table, profile.name)
        first = column[0].as_py() if len(column) else None
        fits = profile.kind == "number" and pa.types.is_string(column.type) and is_number(first)
        if fits and profile.at_least <= COUNTED:
            found.append((profile, column))
        else:
            others.append(profile.name)
    others += _noted(found, table.num_rows, labels)
    return others


def _noted(found: list[tuple[Profile, Any]], rows: int, labels: Any) -> list[str]:
    """The same of columns that begin with a number; halves of them where one goes on otherwise."""
    if not found:
        return []
    whole = pa.concat_arrays([chunk for _, column in found for chunk in column.chunks])
    try:
        numbers = as_numbers(pa.chunked_array([whole])).to_numpy().reshape(len(found), rows)
    except pa.ArrowInvalid:
        if len(found) == 1:
            return [found[0][0].name]
        half = len(found) // 2
        return _noted(found[:half], rows, labels) + _noted(found[half:], rows, labels)
    absent = np.isnan(numbers)
    low, high = np.fmin.reduce(numbers, axis=1), np.fmax.reduce(numbers, axis=1)
    fine = (np.maximum(-low, high) <= EXACT) & ~absent.all(axis=1)
    steps = np.where(absent, np.inf, numbers)
    steps.sort(axis=1)
    known = (np.diff(steps, axis=1) > 0.0) & (steps[:, 1:] < np.inf)
    distinct = known.sum(axis=1) + 1
    integral = ((numbers == np.rint(numbers)) | absent).all(axis=1)
    start = found[0][0].rows
    gone, first = absent.sum(axis=1), absent.argmax(axis=1)
    sums = None if labels is None else sums_of(numbers, labels)
    others = []
    for place, (profile, _) in enumerate(found):
        if not fine[place]:
            others.append(profile.name)
            continue
        profile.rows += rows
        if gone[place]:
            profile.first_missing = profile.first_missing or start + 1 + int(first[place])
            profile.missing += int(gone[place])
        profile.low = min(profile.low, float(low[place]))
        profile.high = max(profile.high, float(high[place]))
        profile.whole = profile.whole and bool(integral[place])
        _count(profile, numbers[place], start)
        if distinct[place] <= MANY_VALUES:
            every = np.unique(numbers[place][~absent[place]]).tolist()
            (profile.values or set()).update(value_name(one, "") for one in every)
        profile.at_least = max(profile.at_least, int(distinct[place]))
        if sums is not None:
            profile.sums = sums[place] if profile.sums is None else profile.sums + sums[place]
    return others


def _count(profile: Profile, values: Any, start: int) -> None:
    """Take note of whether numbers count the rows."""
    if start == 0 and values.size and values[0] in (0.0, 1.0):
        profile.base = float(values[0])
    if profile.base is not None:
        counted = np.arange(start, start + values.size) + profile.base
        profile.base = profile.base if (values == counted).all() else None


def _note_words(profile: Profile, column: Any, known: list[str], start: int) -> None:
    """Take note of true and false, and of what stands for neither."""
    words = {value.strip().lower() for value in known}
    profile.truth = words <= {*TRUTH, *ABSENT} and (not words or bool(words & TRUTH.keys()))
    if profile.truth and words & ABSENT:
        absent = compute.is_in(column, pa.array([v for v in known if v.strip().lower() in ABSENT]))
        profile.absent += compute.sum(absent).as_py()
        profile.first_absent = profile.first_absent or (
            start + 1 + compute.index(absent, True).as_py()
        )


def _labels(profile: Profile, table: pa.Table, numbers: Any) -> Any:
    """Count the values of the label in a chunk; gives them as numbers, to correlate with."""
    column = column_of(table, profile.name).cast(pa.string())
    if profile.seen is not None:
        coded = column.combine_chunks().dictionary_encode()
        codes, places, counts = np.unique(
            coded.indices.drop_null().to_numpy(), return_index=True, return_counts=True
        )
        rows = np.flatnonzero(coded.is_valid().to_numpy(zero_copy_only=False))
        start = profile.rows - len(column) + 1
        for code, place, count in zip(codes[: MOST + 1], places, counts.tolist(), strict=False):
            value = coded.dictionary[int(code)].as_py()
            before, first = profile.seen.get(value, (0, start + int(rows[place])))
            profile.seen[value] = before + count, first
        if len(profile.seen) > MOST:
            profile.seen = None
    if numbers is not None:
        return numbers
    return compute.equal(column, profile.text).cast(pa.float64()).to_numpy()


def _note_numbers(profile: Profile, values: Any, start: int) -> None:
    _count(profile, values, start)
    present = values[~np.isnan(values)]
    if present.min(initial=np.inf) < profile.low:
        profile.low, profile.low_row = float(present.min()), start + 1 + int(np.nanargmin(values))
    if present.max(initial=-np.inf) > profile.high:
        profile.high, profile.high_row = float(present.max()), start + 1 + int(np.nanargmax(values))
    if np.isfinite(present).all():
        profile.whole = profile.whole and bool((present == np.rint(present)).all())
    elif not profile.infinite:
        profile.infinite = start + 1 + int(np.flatnonzero(np.isinf(values))[0])


def as_numbers(column: Any) -> Any:
    """The column as float64, missing cells null; ``ArrowInvalid`` where that cannot be done."""
    if not pa.types.is_string(column.type):
        return column.cast(pa.float64())
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        column = compute.utf8_trim_whitespace(column)
        absent = compute.is_in(column, pa.array(["", *MISSING]))
        column = compute.if_else(absent, pa.scalar(None, pa.string()), column)
        return column.cast(pa.float64())
    return compute.if_else(compute.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def as_kind(column: Any, kind: Kind) -> Any:
    """The column as it is read; ``ArrowInvalid`` where that cannot be done."""
    if kind == "number":
        try:
            return as_numbers(column)
        except pa.ArrowInvalid:
            return as_numbers(_as_digits(column))
    if kind == "text":
        return column.cast(pa.string())
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    named = [_level(text) if kind == "levels" else _truth(text) for text in texts]
    values = pa.array(named, pa.string() if kind == "levels" else pa.bool_())
    return pa.chunked_array([values.take(coded.indices)])


def _as_digits(column: Any) -> Any:
    """True and false as 1 and 0, which they are where there are no truths; other texts as such."""
    words = compute.utf8_lower(column)
    for word, digit in (("true", "1"), ("false", "0")):
        column = compute.if_else(compute.equal(words, word), digit, column)
    return column


def _truth(text: str) -> bool | None:
    """True or false, as files of all kinds write it; None where it is missing."""
    word = text.strip().lower()
    if word in ABSENT:
        return None
    if word not in ("1", "0", *TRUTH):
        raise pa.ArrowInvalid(f"{text} is neither true nor false")
    return word in ("1", "true")


def _level(text: str) -> str | None:
    """The name that a value has, whatever file it comes from; None where it is missing."""
    word = text.strip().lower()
    if word in ABSENT or word in TRUTH:
        return word if word in TRUTH else None
    with suppress(ValueError):
        number = float(text)
        if number - number == 0.0 and text.strip()[-1] in "0123456789.":
            return value_name(number, "")
    return text


def leniently(column: Any, kind: Kind = "number") -> tuple[Any, dict[int, str]]:
    """The column as numbers, or true and false, and the rows, from 0, that hold anything else.

    What they hold is missing in the column.
    """
    texts = column.cast(pa.string()).to_pylist()
    known: dict[str, tuple[Any, bool]] = {}
    for text in {text for text in texts if text is not None}:
        try:
            blank = text.strip() in ("", *MISSING)
            value = _truth(text) if kind == "boolean" else None if blank else float(text)
            known[text] = value, "_" in text
        except ValueError:  # as ArrowInvalid is
            known[text] = None, True
    cells = [(None, False) if text is None else known[text] for text in texts]
    values = [None if bad or value != value else value for value, bad in cells]
    bad = {row: str(texts[row]) for row, (_, wrong) in enumerate(cells) if wrong}
    numbers = pa.array(values, pa.bool_() if kind == "boolean" else pa.float64())
    return pa.chunked_array([numbers]), bad


def are_identifiers(column: Any, numbers: Any) -> bool:
    """Whether these are whole numbers too long to be told apart as float64: so they name things."""
    largest = compute.max(compute.abs(numbers)).as_py()
    if largest is None or largest <= EXACT:
        return False
    if pa.types.is_string(column.type):
        digits = compute.match_substring_regex(column, r"^\s*[+-]?\d+\s*$")
        return bool(compute.all(digits).as_py())
    return bool(pa.types.is_integer(column.type))


def first_text(column: Any) -> tuple[int, str]:
    """The first row, counted from 0, that holds no number, and what it holds."""
    bad = leniently(column)[1]
    return next(iter(bad.items()), (0, str(column[0].as_py())))
