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
from groupwise.files.columnar import check_names
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
LOOKED_AT = 1_000
"""So many of the first rows tell whether decimals have commas."""
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected \d+ columns, got (\d+)")
COMMA = re.compile(r"[+-]?(\d+|\d{1,3}(\.\d{3})+),\d+")
"""A number with a decimal comma, thousands set apart by points or not."""
POINT = re.compile(r"[+-]?\d*\.(\d{1,2}|\d{4,})")
"""A number whose point can only be a decimal point."""


class Header(NamedTuple):
    """The names of the columns, what stands between cells, and whether decimals have commas."""

    names: list[str]
    delimiter: str
    commas: bool


def chunks(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a CSV file."""
    names, delimiter, commas = header(source)
    asked = None if columns is None else {*columns}
    wanted = [i for i, name in enumerate(names) if asked is None or name in asked]
    count = 0
    try:
        with pa.OSFile(str(source.path)) as file:
            threads = source.ragged is None  # rows are counted only when one thread reads them
            for batch in _reader(source, file, len(names), delimiter, wanted, threads):
                count += batch.num_rows
                # Without any name of its own the reader takes all columns: hence the selection.
                table = pa.Table.from_batches([batch]).select([str(i) for i in wanted])
                if commas:
                    table = pa.table([_pointed(one) for one in table.columns], table.schema)
                yield table.rename_columns([names[i] for i in wanted]), file.tell()
    except (pa.ArrowInvalid, OSError) as error:
        raise _refusal(source, str(error), len(names), delimiter) from None
    if not count:
        raise DataError(f"{shown(source.name)} has a header but no rows.")


def _reader(
    source: "Source",
    file: Any,
    width: int,
    delimiter: str,
    wanted: Sequence[int],
    threads: bool = True,
) -> Any:

    def skip(row: Any) -> str:
        assert source.ragged is not None
        reason = f"it has {row.actual_columns} cells and the header has {row.expected_columns}."
        source.ragged[int(row.number or 1) - 1] = reason  # the header is not counted
        return "skip"

    # Columns are called by number here, so that a header of any kind does no harm.
    numbers = [str(i) for i in range(width)]
    return arrow_csv.open_csv(
        pa.CompressedInputStream(file, "gzip") if source.compressed else file,
        read_options=arrow_csv.ReadOptions(
            block_size=BLOCK,
            column_names=numbers,
            skip_rows_after_names=1,
            use_threads=threads,
        ),
        parse_options=arrow_csv.ParseOptions(
            delimiter=delimiter,
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
        raise DataError(f"{shown(source.name)} is empty. Give a file with a header and rows.")
    first_line = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=lambda sign: (first_line.count(sign), sign == ","))
    rows = csv.reader(text.splitlines(True), delimiter=delimiter)
    try:
        names = next(row for row in rows if row)
        commas = delimiter != "," and _has_commas(rows, whole)
    except (csv.Error, StopIteration) as error:
        raise DataError(f"Cannot read the header of {shown(source.name)}: {error}.") from None
    if "�" in "".join(names):
        raise _not_text(source)
    names = [name.strip() or f"column {number}" for number, name in enumerate(names, 1)]
    check_names(source, names)
    return Header(names, delimiter, commas)


def _has_commas(rows: Any, whole: bool) -> bool:
    """Have decimals commas? Some have one, and none has a point; a last row may be cut off."""
    first = list(itertools.islice(rows, LOOKED_AT))
    kept = first if whole or len(first) == LOOKED_AT else first[:-1]
    cells = [cell for row in kept for cell in row]
    return any(map(COMMA.fullmatch, cells)) and not any(map(POINT.fullmatch, cells))


def _pointed(column: Any) -> Any:
    """Cells that are numbers with decimal commas, or thousands set apart by points, as others are.

    Text stays as it is.
    """
    number = compute.match_substring_regex(column, r"^[+-]?(\d+|\d{1,3}(\.\d{3})+)(,\d+)?$")
    if not compute.any(number).as_py():
        return column
    bare = compute.replace_substring(compute.replace_substring(column, ".", ""), ",", ".")
    return compute.if_else(number, bare, column)


def _refusal(source: "Source", message: str, width: int, delimiter: str) -> DataError:
    if _RAGGED.search(message):
        row, found = _ragged_row(source, width, delimiter)
        return DataError(
            f"Row {row} of {shown(source.name)} has {found} cells and the header has {width}. "
            "Make all rows equally long; put quotes around cells that hold the delimiter; "
            "--skip-bad leaves such rows out."
        )
    if "UTF8" in message:
        return _not_text(source)
    if "Empty CSV" in message:
        return DataError(f"{shown(source.name)} has a header but no rows.")
    return DataError(f"Cannot read {shown(source.name)}: {shown(message)}.")


def _ragged_row(source: "Source", width: int, delimiter: str) -> tuple[str, str]:
    """Which row has how many cells: rows are counted only when one thread reads them."""
    try:
        with pa.OSFile(str(source.path)) as file:
            deque(_reader(source, file, width, delimiter, [0], threads=False), maxlen=0)
    except pa.ArrowInvalid as error:
        found = _RAGGED.search(str(error))
        if found and found[1]:
            return str(int(found[1]) - 1), found[2]  # the header is not counted
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
