"""CSV: a header, then rows; commas, or what the header suggests."""

import csv
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupwise.errors import DataError
from groupwise.tabular.source import Source, open_bytes
from groupwise.tabular.text import listed, shown

if TYPE_CHECKING:
    import pyarrow as pa

BLOCK = 1 << 22
"""Bytes at a time; a row must fit in."""
HEADER_LIMIT = 1 << 20
DELIMITERS = ",;\t|"
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected \d+ columns, got (\d+)")


def chunks(source: Source, columns: Sequence[str] | None) -> Iterator["tuple[pa.Table, int]"]:
    """All cells as text; an empty one is missing."""
    import pyarrow as pa

    names, delimiter = header(source)
    wanted = [i for i, name in enumerate(names) if columns is None or name in columns]
    count = 0
    try:
        with pa.OSFile(str(source.path)) as file:
            for batch in _reader(source, file, len(names), delimiter, wanted):
                count += batch.num_rows
                table = pa.Table.from_batches([batch])
                yield table.rename_columns([names[i] for i in wanted]), file.tell()
    except (pa.ArrowInvalid, OSError) as error:
        raise _refusal(source, str(error), len(names), delimiter) from None
    if not count:
        raise DataError(f"{shown(source.name)} has a header but no rows.")


def _reader(
    source: Source,
    file: Any,
    width: int,
    delimiter: str,
    wanted: Sequence[int],
    threads: bool = True,
) -> Any:
    import pyarrow as pa
    import pyarrow.csv as arrow

    # Columns are called by number here, so that a header of any kind does no harm.
    numbers = [str(i) for i in range(width)]
    return arrow.open_csv(
        pa.CompressedInputStream(file, "gzip") if source.compressed else file,
        read_options=arrow.ReadOptions(
            block_size=BLOCK,
            column_names=numbers,
            skip_rows_after_names=1,
            use_threads=threads,
        ),
        parse_options=arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            include_columns=[str(i) for i in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def header(source: Source) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter: the sign that occurs most in the header."""
    try:
        with open_bytes(source) as file:
            start = file.read(HEADER_LIMIT)
    except (OSError, EOFError) as error:
        raise DataError(f"Cannot unpack {shown(source.name)}: {error}.") from None
    if b"\x00" in start:
        raise DataError(f"{shown(source.name)} is no text file. Give CSV, Parquet or JSON Lines.")
    text = start.decode("utf-8-sig", errors="replace")
    if not text.strip():
        raise DataError(f"{shown(source.name)} is empty. Give a file with a header and rows.")
    first_line = text.lstrip("\r\n").split("\n", 1)[0]
    delimiter = max(DELIMITERS, key=lambda sign: (first_line.count(sign), sign == ","))
    names = next(row for row in csv.reader(text.splitlines(True), delimiter=delimiter) if row)
    if "�" in "".join(names):
        raise _not_text(source)
    names = [name.strip() or f"column {number}" for number, name in enumerate(names, 1)]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise DataError(
            f"{shown(source.name)} has two columns called {listed(sorted(twice)[:1])}. "
            "Give every column a name of its own."
        )
    return names, delimiter


def _refusal(source: Source, message: str, width: int, delimiter: str) -> DataError:
    if _RAGGED.search(message):
        row, found = _ragged_row(source, width, delimiter)
        return DataError(
            f"Row {row} of {shown(source.name)} has {found} cells and the header has {width}. "
            "Make all rows equally long; put quotes around cells that hold the delimiter."
        )
    if "UTF8" in message:
        return _not_text(source)
    if "Empty CSV" in message:
        return DataError(f"{shown(source.name)} has a header but no rows.")
    return DataError(f"Cannot read {shown(source.name)}: {shown(message)}.")


def _ragged_row(source: Source, width: int, delimiter: str) -> tuple[str, str]:
    """Which row has how many cells: rows are counted only when one thread reads them."""
    import pyarrow as pa

    message = ""
    with pa.OSFile(str(source.path)) as file:
        try:
            for _ in _reader(source, file, width, delimiter, [0], threads=False):
                pass
        except pa.ArrowInvalid as error:
            message = str(error)
    found = _RAGGED.search(message)
    if found is None or found[1] is None:
        return "?", "?"
    return str(int(found[1]) - 1), found[2]  # the header is not counted


def _not_text(source: Source) -> DataError:
    """Say in which line the encoding is wrong."""
    with open_bytes(source) as file:
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
