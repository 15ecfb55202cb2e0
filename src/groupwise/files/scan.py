"""The first pass over a file: what its columns hold, numbers or text."""

import difflib
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from groupwise.class_names import MOST
from groupwise.errors import DataError
from groupwise.files.dates import FORMS, forms_of
from groupwise.files.source import Chunks, Source, column_of
from groupwise.files.text import amount, listed, quoted, shown
from groupwise.groups.values import value_name
from groupwise.progress import progress_bar

Kind = Literal["number", "text", "boolean", "levels"]
"""How a column is read: as numbers, text as it stands, true and false, or names of values, in which
1 and 1.0 are the same and so are True and true."""
KINDS: tuple[Kind, ...] = get_args(Kind)
MISSING = ("NA", "N/A", "NaN", "nan", "null")
"""What stands for a missing number, besides an empty cell."""
ABSENT = {"", *(text.lower() for text in MISSING)}
"""The same in small letters, among true and false."""
TRUTH = {"true": True, "false": False}
EXACT = 2**53
"""Whole numbers beyond it are identifiers: as numbers some would fall together."""
TOGETHER = 256
"""Rows that are looked at together, where a file is so wide that it comes in fewer."""
FEW_BAD = 0.02
"""Where bad rows are skipped, a column is one of numbers although this share of cells are none."""
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
    ``bad`` cells of a column of numbers hold none, in rows that are skipped. ``forms`` are the ways
    to write dates in which all its texts are written; ``truth`` says whether all its texts are true
    and false, ``absent`` how many stand for a missing value if they are.
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
    bad: int = 0
    base: float | None = None
    """Where the numbers count the rows in file order, what they begin with; None where not."""
    truth: bool = True
    absent: int = 0
    first_absent: int = 0

    @property
    def counts(self) -> bool:
        """Does it number the rows, from 0 or 1?"""
        return self.kind == "number" and self.base is not None and not self.missing

    @property
    def reading(self) -> Kind:
        """How the column is read where it is a feature or a group."""
        return "boolean" if self.kind == "text" and self.truth else self.kind

    def finish(self) -> None:
        """Decide what it holds when all rows were looked at."""
        if self.missing == self.rows:
            self.kind, self.truth = "text", False
        if self.kind == "number":
            if self.values is not None:
                self.values.difference_update(MISSING)
        elif self.truth:
            self.values = {value.strip().lower() for value in self.values or ()} - ABSENT
            self.missing += self.absent
            first = [row for row in (self.first_missing, self.first_absent) if row]
            self.first_missing = min(first, default=0)
            self.text = self.text.strip().lower()
            seen: dict[str, tuple[int, int]] = {}
            for value, (count, row) in (self.seen or {}).items():
                name = value.strip().lower()
                if name not in ABSENT:
                    before, first_row = seen.get(name, (0, row))
                    seen[name] = before + count, min(row, first_row)
            self.seen = seen

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

    def check_numbers(self, what: str) -> None:
        """Refuse a column of text, or with infinite numbers."""
        if self.kind == "text":
            raise DataError(
                f"The {what} column {quoted(self.name)} holds {quoted(self.text)} in row "
                f"{self.text_row}, which is no number."
            )
        if self.infinite:
            raise DataError(self.infinity)

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
        """How every column is read."""
        return {name: profile.reading for name, profile in self.columns.items()}

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
                if name is not None and not source.is_open:
                    found.column(name, what)
            labels = None
            for name in sorted(found.columns, key=lambda name: name != target):  # the label first
                profile = found.columns[name]
                numbers = _look(profile, table, labels, source.ragged is not None)
                if name == target:
                    labels = _labels(profile, table, numbers)
            if order is not None:
                keys += column_of(table, order).chunks
            found.rows += table.num_rows
            advance(table.num_rows, position)
    if not found.rows:
        raise DataError(f"{shown(source.name)} has no rows.")
    for profile in found.columns.values():
        profile.finish()
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


def _spared(profile: Profile, column: Any, start: int) -> Any:
    """The numbers of a column in which hardly a cell holds anything else; None where many do."""
    numbers, bad = leniently(column)
    if len(bad) > FEW_BAD * (len(column) - numbers.null_count):
        return None
    profile.missing -= len(bad)
    profile.bad += len(bad)
    return numbers


def _look(profile: Profile, table: pa.Table, labels: Any, skip: bool = False) -> Any:
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
            numbers = _spared(profile, column, start) if skip else None
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
        with np.errstate(all="ignore"):
            sums = np.array([x.size, x.sum(), (x * x).sum(), (x * y).sum(), y.sum(), (y * y).sum()])
        profile.sums = sums if profile.sums is None else profile.sums + sums
    return x


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
    if start == 0 and values.size and values[0] in (0.0, 1.0):
        profile.base = float(values[0])
    if profile.base is not None:
        counted = np.arange(start, start + values.size) + profile.base
        profile.base = profile.base if (values == counted).all() else None
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


def as_kind(column: Any, kind: Kind) -> Any:
    """The column as it is read; ``ArrowInvalid`` where that cannot be done."""
    if kind == "number":
        return as_numbers(column)
    if kind == "text":
        return column.cast(pa.string())
    coded = column.cast(pa.string()).combine_chunks().dictionary_encode()
    texts = coded.dictionary.to_pylist()
    named = [_level(text) if kind == "levels" else _truth(text) for text in texts]
    values = pa.array(named, pa.string() if kind == "levels" else pa.bool_())
    return pa.chunked_array([values.take(coded.indices)])


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
    """Whether these are whole numbers too long to be told apart as float64."""
    largest = compute.max(compute.abs(numbers)).as_py()
    if largest is not None and EXACT < largest < float(2**63):
        with suppress(pa.ArrowInvalid):
            column.cast(pa.int64())
            return True
    return False


def first_text(column: Any) -> tuple[int, str]:
    """The first row, counted from 0, that holds no number, and what it holds."""
    bad = leniently(column)[1]
    return next(iter(bad.items()), (0, str(column[0].as_py())))
