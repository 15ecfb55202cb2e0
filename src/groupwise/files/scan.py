"""The first pass over a file: what its columns hold, numbers or text."""

import difflib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from groupwise.class_names import MOST
from groupwise.errors import DataError
from groupwise.files.dates import FORMS, forms_of
from groupwise.files.source import Chunks, Source, column_of
from groupwise.files.text import amount, listed, quoted, shown
from groupwise.progress import progress_bar

Kind = Literal["number", "text"]
MISSING = ("NA", "N/A", "NaN", "nan", "null")
"""What stands for a missing number, besides an empty cell."""
EXACT = 2**53
"""Whole numbers beyond it are identifiers: as numbers some would fall together."""
TOGETHER = 256
"""Rows that are looked at together, where a file is so wide that it comes in fewer."""
COUNTED = 20_000
"""Distinct values are counted up to here."""


@dataclass
class Profile:
    """What one column holds. Rows are counted from 1.

    ``infinite`` is the first row that holds no finite number, ``text_row`` the first that holds
    ``text``. ``values`` are the distinct values as text, None where there are more than are
    counted; ``sums`` those of x, x², xy, y, y² against the label, where both are numbers (a label
    of text counts as 1 where it is ``text``). ``seen`` is for the label alone: how often each of
    its values is there, and in which row first; None where there are more than could be classes.
    ``forms`` are the ways to write dates in which all its texts are written.
    """

    name: str
    kind: Kind = "number"
    rows: int = 0
    missing: int = 0
    first_missing: int = 0
    low: float = float("inf")
    high: float = float("-inf")
    whole: bool = True
    infinite: int = 0
    values: set[str] | None = field(default_factory=set)
    text_row: int = 0
    text: str = ""
    sums: Any = None
    seen: dict[str, tuple[int, int]] | None = field(default_factory=dict)
    forms: tuple[str, ...] = FORMS

    @property
    def date(self) -> str | None:
        """How its dates are written; None where it holds none, or they could be read two ways."""
        known = self.kind == "text" and self.missing < self.rows and len(self.forms) == 1
        return self.forms[0] if known else None

    @property
    def distinct(self) -> int:
        """How many values there are, as far as they are counted."""
        return COUNTED + 1 if self.values is None else len(self.values)

    @property
    def count(self) -> str:
        """How many values there are, in words."""
        return f"over {COUNTED:,}" if self.values is None else amount(self.distinct)

    @property
    def scale(self) -> tuple[float, float] | None:
        """The range that numbers are scaled from; None for text."""
        return None if self.kind == "text" else (self.low, self.high)

    @property
    def correlation(self) -> float:
        """With the label; 0 where it is not known."""
        if self.sums is None:
            return 0.0
        n, x, xx, xy, y, yy = self.sums.tolist()
        spread = (n * xx - x * x) * (n * yy - y * y)
        return float((n * xy - x * y) / spread**0.5) if spread > 0.0 else 0.0

    @property
    def sameness(self) -> str:
        """Says that the column says nothing."""
        value = next(iter(self.values or ()), None)
        holds = "no value at all" if value is None else f"one value only ({quoted(value)})"
        return f"Column {quoted(self.name)} holds {holds}, so nothing can be learned from it."

    @property
    def gaps(self) -> str:
        """Says how many values are missing, and where."""
        count = "a missing value" if self.missing == 1 else f"{self.missing:,} missing values"
        where = "in" if self.missing == 1 else "the first in"
        return f"Column {quoted(self.name)} has {count}, {where} row {self.first_missing}."

    @property
    def infinity(self) -> str:
        """Says where a number is infinite."""
        return f"Column {quoted(self.name)} holds an infinite number in row {self.infinite}."

    def check_numbers(self, what: str, advice: str) -> None:
        """Refuse a column of text, or one that ``check_complete`` refuses."""
        if self.kind == "text":
            raise DataError(
                f"The {what} column {quoted(self.name)} holds {quoted(self.text)} in row "
                f"{self.text_row}, which is no number."
            )
        self.check_complete(advice)

    def check_complete(self, advice: str) -> None:
        """Refuse a column with missing values, with some advice, or infinite ones."""
        if self.missing:
            raise DataError(f"{self.gaps} {advice}")
        if self.infinite:
            raise DataError(self.infinity)


@dataclass
class Scan:
    """What a first pass has found: profiles by column, in file order.

    ``keys`` is the column to sort by, where one was asked for.
    """

    source: Source
    rows: int
    columns: dict[str, Profile]
    keys: Any = None

    @property
    def kinds(self) -> dict[str, Kind]:
        """The kind of every column."""
        return {name: profile.kind for name, profile in self.columns.items()}

    def column(self, name: str, what: str) -> Profile:
        """The profile of a column that was asked for."""
        if name not in self.columns:
            raise self.unknown(name, what)
        return self.columns[name]

    def unknown(self, name: str, what: str) -> DataError:
        """The error for a column that is not there."""
        return unknown_column(name, list(self.columns), self.source.name, what)


def unknown_column(name: str, columns: list[str], source: str, what: str) -> DataError:
    """The error for a column that is not there."""
    close = difflib.get_close_matches(name, columns, 1)
    guess = f" Did you mean {quoted(close[0])}?" if close else ""
    return DataError(
        f"{shown(source)} has no column {quoted(name)} {what}.{guess} It has: {listed(columns)}."
    )


def scan(
    source: Source,
    target: str | None,
    order: str | None = None,
    progress: bool = False,
) -> Scan:
    """Read a file once, and look at every column."""
    found = Scan(source, 0, {})
    keys: list[Any] = []
    with progress_bar(source.size, "first pass", progress) as advance:
        for table, position in gathered(source.chunks()):
            found.columns |= {  # a field that appears later was missing so far
                name: Profile(name, "number", found.rows, found.rows, min(found.rows, 1))
                for name in table.column_names
                if name not in found.columns
            }
            for name, what in ((target, "for the label"), (order, "to sort by")):
                if name is not None and source.format != "JSON Lines":
                    found.column(name, what)
            labels = None
            for name in sorted(found.columns, key=lambda name: name != target):  # the label first
                profile = found.columns[name]
                numbers = _look(profile, table, labels)
                if name == target:
                    labels = _labels(profile, table, numbers)
            if order is not None:
                keys += column_of(table, order).chunks
            found.rows += table.num_rows
            advance(table.num_rows, position)
    if not found.rows:
        raise DataError(f"{shown(source.name)} has no rows.")
    for profile in found.columns.values():
        if profile.missing == profile.rows:
            profile.kind = "text"
        if profile.kind == "number" and profile.values is not None:
            profile.values.difference_update(MISSING)
    if order is not None:
        found.column(order, "to sort by")
        found.keys = pa.chunked_array(keys)
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


def _look(profile: Profile, table: pa.Table, labels: Any) -> Any:
    """Take note of a column in a chunk; gives its numbers, None where it holds text."""
    column, start = column_of(table, profile.name), profile.rows
    profile.rows += len(column)
    numbers = None
    if profile.kind == "number":
        try:
            numbers = as_numbers(column)
            if are_identifiers(column, numbers):
                raise pa.ArrowInvalid("identifiers")
        except pa.ArrowInvalid:
            numbers = None
            profile.kind = "text"
            row, profile.text = first_text(column)
            profile.text_row = start + 1 + row
            if profile.missing < start:  # there were numbers before
                profile.forms = ()
    held = column if numbers is None else numbers
    profile.missing += held.null_count
    if held.null_count and not profile.first_missing:
        profile.first_missing = start + 1 + compute.index(compute.is_null(held), True).as_py()
    dated = numbers is None and len(profile.forms) > 0
    if profile.values is not None or dated:
        distinct = compute.unique(column).cast(pa.string()).to_pylist()
        known = [value for value in distinct if value is not None]
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
        with np.errstate(all="ignore"):
            sums = np.array([x.size, x.sum(), (x * x).sum(), (x * y).sum(), y.sum(), (y * y).sum()])
        profile.sums = sums if profile.sums is None else profile.sums + sums
    return x


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
    present = values[~np.isnan(values)]
    profile.low = float(present.min(initial=profile.low))
    profile.high = float(present.max(initial=profile.high))
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


def are_identifiers(column: Any, numbers: Any) -> bool:
    """Whether these are whole numbers too long to be told apart as float64."""
    largest = compute.max(compute.abs(numbers)).as_py()
    if largest is not None and EXACT < largest < float(2**63):
        with suppress(pa.ArrowInvalid):
            column.cast(pa.int64())
            return True
    return False


def first_text(column: Any) -> tuple[int, str]:
    """The first row, counted from 0, that holds no number, and what it holds."""
    for row, value in enumerate(column.to_pylist()):
        try:
            float(0 if value is None or str(value).strip() in ("", *MISSING) else value)
        except (ValueError, OverflowError):
            return row, str(value)
    return 0, str(column[0].as_py())
