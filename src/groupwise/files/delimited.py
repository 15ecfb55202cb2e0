"""CSV: a header and rows, in which all cells are text."""

import csv
import itertools
import re
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow_csv

from groupwise.errors import DataError
from groupwise.files.columnar import check_names, no_rows, nothing
from groupwise.files.text import shown
from groupwise.files.unpacking import OURS, UNPACKING

if TYPE_CHECKING:
    from groupwise.files.source import Chunks, Source

BLOCK = 1 << 22
"""Bytes of CSV at a time; a row must fit in."""
HEADER_LIMIT = 1 << 20
WIDEST = 1 << 26
"""Bytes of a header at most."""
DELIMITERS = ",;\t|"
SAID = re.compile(r"sep=(.)\r?\n", re.IGNORECASE)
"""A first line in which spreadsheets say what stands between cells."""
DECIMAL, THOUSANDS = "decimal", "thousands"
"""What commas may be in numbers."""
LOOKED_AT = 1_000
"""So many of the first rows tell whether decimals have commas."""
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected \d+ columns, got (\d+)")
APART = ". \u00a0\u202f'"
"""What may set thousands apart where decimals have commas."""
POWER = r"([eE][+-]?\d+)?"
COMMA = re.compile(rf"[+-]?(\d+|\d{{1,3}}([{APART}]\d{{3}})+),\d+{POWER}")
"""A number with a decimal comma, thousands set apart or not."""
POINTED = rf"^[+-]?(\d+|\d{{1,3}}([{APART}]\d{{3}})+)(,\d+{POWER})?$"
GROUPED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d+)?")
"""A number whose thousands are set apart by commas."""
POINT = re.compile(r"[+-]?\d*\.(\d{1,2}|\d{4,})")
"""A number whose point can only be a decimal point."""


class Header(NamedTuple):
    """The names of the columns, what stands between cells, and what commas are in their numbers.

    ``blank`` is how many lines there are before the names.
    """

    names: list[str]
    delimiter: str
    commas: list[str]
    blank: int


def chunks(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a CSV file."""
    top = header(source)
    names = top.names
    asked = None if columns is None else {*columns}
    wanted = [i for i, name in enumerate(names) if asked is None or name in asked]
    count = 0
    try:
        with pa.OSFile(str(source.path)) as file:
            threads = source.ragged is None  # rows are counted only when one thread reads them
            for batch in _reader(source, file, top, wanted, threads):
                count += batch.num_rows
                # Without any name of its own the reader takes all columns: hence the selection.
                table = pa.Table.from_batches([batch]).select([str(i) for i in wanted])
                if any(top.commas):
                    commas = [top.commas[i] for i in wanted]
                    pointed = map(_pointed, table.columns, commas)
                    table = pa.table(list(pointed), table.schema)
                yield table.rename_columns([names[i] for i in wanted]), file.tell()
    except (pa.ArrowInvalid, OSError) as error:
        raise _refusal(source, str(error), top, [names[i] for i in wanted]) from None
    if not count:
        raise no_rows(source, [names[i] for i in wanted])


def _reader(
    source: "Source", file: Any, top: Header, wanted: Sequence[int], threads: bool = True
) -> Any:
    def skip(row: Any) -> str:
        assert source.ragged is not None
        reason = f"it has {row.actual_columns} cells and the header has {row.expected_columns}."
        source.ragged[int(row.number or 1) - 1 - top.blank] = reason  # the header is not counted
        return "skip"

    # Columns are called by number here, so that a header of any kind does no harm.
    numbers = [str(i) for i in range(len(top.names))]
    return arrow_csv.open_csv(
        pa.CompressedInputStream(file, "gzip") if source.compressed else file,
        read_options=arrow_csv.ReadOptions(
            block_size=BLOCK,
            skip_rows=top.blank,
            column_names=numbers,
            skip_rows_after_names=1,
            use_threads=threads,
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=top.delimiter,
            newlines_in_values=True,
            invalid_row_handler=None if source.ragged is None else skip,
        ),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            include_columns=[str(i) for i in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def header(source: "Source") -> Header:
    """What the first rows tell. The delimiter is the sign that occurs most in the header."""
    limit = HEADER_LIMIT
    try:
        with source.open() as file:
            start = file.read(limit)
            while b"\n" not in start.strip(b"\r\n") and len(start) == limit < WIDEST:
                start += file.read(limit)
                limit *= 2
    except UNPACKING as error:
        raise DataError(f"Cannot unpack {shown(source.name)}: {error}.") from None
    if b"\x00" in start:
        raise DataError(f"{shown(source.name)} is no text file. Give {OURS}.")
    whole = len(start) < limit
    text = start.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise nothing(source.name)
    before = text[: len(text) - len(text.lstrip("\r\n"))]
    said = SAID.match(text, len(before))
    before += said[0] if said else ""
    text = text[len(before) :]
    first_line = text.split("\n", 1)[0]
    counts = said[1] if said else first_line
    delimiter = max(DELIMITERS, key=lambda sign: (counts.count(sign), sign == ","))
    rows = csv.reader(text.splitlines(True), delimiter=delimiter)
    try:
        names = next(row for row in rows if row)
        commas = _commas(rows, delimiter, len(names), whole)
    except (csv.Error, StopIteration) as error:
        raise DataError(f"Cannot read the header of {shown(source.name)}: {error}.") from None
    if "�" in "".join(names):
        raise _not_text(source)
    names = [name.strip() or f"column {number}" for number, name in enumerate(names, 1)]
    check_names(source, names)
    return Header(names, delimiter, commas, len(before.splitlines()))


def _commas(rows: Any, delimiter: str, width: int, whole: bool) -> list[str]:
    """What commas are in the numbers of each column, or nothing. A last row may be cut off.

    They are decimal commas where some column has such cells and none with a point; in a column
    with points they are not. Between thousands they stand where that is plain, and where cells are
    set apart by commas themselves.
    """
    first = list(itertools.islice(rows, LOOKED_AT))
    kept = first if whole or len(first) == LOOKED_AT else first[:-1]
    columns = [[row[place] for row in kept if place < len(row)] for place in range(width)]
    grouped = [one for cells in columns for one in cells if "," in one and GROUPED.fullmatch(one)]
    if any("." in one or one.count(",") > 1 or delimiter == "," for one in grouped):
        return [THOUSANDS] * width
    pointed = [any(map(POINT.fullmatch, cells)) for cells in columns]
    fits = [
        not has_points and any(map(COMMA.fullmatch, cells))
        for cells, has_points in zip(columns, pointed, strict=True)
    ]
    if delimiter == "," or not any(fits):
        return [""] * width
    return ["" if has_points else DECIMAL for has_points in pointed]


def _pointed(column: Any, commas: str) -> Any:
    """Cells that are numbers with commas, as others are. Text stays as it is."""
    pattern = POINTED if commas == DECIMAL else f"^{GROUPED.pattern}$"
    number = compute.match_substring_regex(column, pattern) if commas else pa.array([False])
    if not compute.any(number).as_py():
        return column
    apart = f"[{APART}]" if commas == DECIMAL else ","
    bare = compute.replace_substring_regex(column, apart, "")
    return compute.if_else(number, compute.replace_substring(bare, ",", "."), column)


def _refusal(source: "Source", message: str, top: Header, wanted: Sequence[str]) -> DataError:
    if _RAGGED.search(message):
        row, found = _ragged_row(source, top)
        title = " If the first line is a title and no header, take it away." if row == "1" else ""
        return DataError(
            f"Row {row} of {shown(source.name)} has {found} cells and the header has "
            f"{len(top.names)}. Make all rows equally long; put quotes around cells that hold the "
            f"delimiter; --skip-bad leaves such rows out.{title}"
        )
    if "UTF8" in message:
        return _not_text(source)
    if "Empty CSV" in message or ("straddling" in message and source.size < BLOCK):
        return no_rows(source, wanted)
    if "straddling" in message:
        return DataError(
            f"{shown(source.name)} has a row of over {BLOCK >> 20} MB. Is a quote not closed?"
        )
    return DataError(f"Cannot read {shown(source.name)}: {shown(message)}.")


def _ragged_row(source: "Source", top: Header) -> tuple[str, str]:
    """Which row has how many cells: rows are counted only when one thread reads them."""
    try:
        with pa.OSFile(str(source.path)) as file:
            deque(_reader(source, file, top, [0], threads=False), maxlen=0)
    except pa.ArrowInvalid as error:
        found = _RAGGED.search(str(error))
        if found and found[1]:
            return str(int(found[1]) - 1 - top.blank), found[2]  # the header is not counted
    return "?", "?"


def _not_text(source: "Source") -> DataError:
    """Say in which line the encoding is wrong."""
    with suppress(*UNPACKING), source.open() as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode("utf-8")
            except UnicodeDecodeError as error:
                return DataError(
                    f"{shown(source.name)} is not UTF-8 text: line {number} holds the byte "
                    f"0x{line[error.start]:02x}. Convert it, for example with "
                    "iconv -f latin1 -t utf-8."
                )
    return DataError(f"{shown(source.name)} is not UTF-8 text.")
