"""A file of rows: what it is called, which format it has, and its rows a chunk at a time.

- CSV: a header, then rows; commas, or what the header suggests. All cells are text, and an empty
  one is missing.
- JSON Lines: an object per line. All values become text; null, NaN and absent ones are missing, and
  numbers are written so that reading them again gives the same number.
- Parquet: whole numbers and numbers as they are, everything else as text, nested columns left out.
"""

import csv
import gzip
import hashlib
import itertools
import json
import re
import shutil
import stat
import sys
import tempfile
import zlib
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow_csv
import pyarrow.parquet as arrow_parquet

from groupwise.errors import DataError
from groupwise.files.text import listed, quoted, shown
from groupwise.groups.values import value_name
from groupwise.progress import patiently

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
STANDARD_INPUT = "-"
BLOCK = 1 << 22
"""Bytes of CSV at a time; a row must fit in."""
HEADER_LIMIT = 1 << 20
DELIMITERS = ",;\t|"
LINES = 20_000
"""Lines of JSON at a time."""
ROWS = 50_000
"""Rows of Parquet at a time."""
UNPACKING = (OSError, EOFError, zlib.error)
"""What a compressed file can do when it is read."""
_RAGGED = re.compile(r"(?:Row #(\d+): )?Expected \d+ columns, got (\d+)")

Chunks = Iterator[tuple[pa.Table, int]]


@dataclass(frozen=True)
class Source:
    """A file whose rows can be read any number of times."""

    name: str
    path: Path
    format: str
    compressed: bool

    @property
    def size(self) -> int:
        """Bytes as they lie on the disk."""
        return self.path.stat().st_size

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of the bytes as they lie on the disk."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def chunks(self, columns: Sequence[str] | None = None) -> Chunks:
        """Tables of text and numbers in file order, each with the position in the file after it.

        ``columns`` names those to read; all by default.
        """
        return READERS[self.format](self, columns)

    def open(self) -> BinaryIO:
        """The bytes of a text file, unpacked."""
        return cast(BinaryIO, gzip.open(self.path)) if self.compressed else self.path.open("rb")


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """The file of this name; for ``-`` what comes from standard input.

    A run reads its rows twice, so what can be read once, as pipes can, goes to a temporary file
    first.
    """
    path, standard = Path(name), name == STANDARD_INPUT
    if not standard and not _is_read_once(path):
        yield _source(name, path)
        return
    name = "standard input" if standard else name
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        spooled = Path(folder) / "rows"
        try:
            waiting = f"reading {shown(name)} to its end; the rest begins when all rows have come."
            with patiently(waiting), spooled.open("wb") as file:
                if standard:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                else:
                    with path.open("rb") as pipe:
                        shutil.copyfileobj(pipe, file)
        except OSError as error:
            raise DataError(f"Cannot read {shown(name)}: {error.strerror or error}.") from None
        yield _source(name, spooled, sniffed=True)


def _is_read_once(path: Path) -> bool:
    """Is it a pipe, or another thing that is neither a file nor a folder?"""
    with suppress(OSError):
        kind = path.stat().st_mode
        return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))
    return False


def _source(name: str, path: Path, sniffed: bool = False) -> Source:
    """What a file is; ``sniffed`` where its name may not say so."""
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise DataError(f"Cannot read {shown(name)}: {error.strerror or error}.") from None
    if not start:
        raise DataError(f"{shown(name)} is empty. Give a file with a header and rows.")
    found = Source(name, path, "Parquet" if start == PARQUET else "CSV", start.startswith(GZIP))
    objects = start != PARQUET and name.lower().removesuffix(".gz").endswith(JSON_ENDINGS)
    if sniffed and not objects:
        with suppress(*UNPACKING), found.open() as file:
            objects = file.read(64).lstrip().startswith(b"{")
    return replace(found, format="JSON Lines") if objects else found


def _csv(source: Source, columns: Sequence[str] | None) -> Chunks:
    names, delimiter = _header(source)
    wanted = [i for i, name in enumerate(names) if columns is None or name in columns]
    count = 0
    try:
        with pa.OSFile(str(source.path)) as file:
            for batch in _reader(source, file, len(names), delimiter, wanted):
                count += batch.num_rows
                # Without any name of its own the reader takes all columns: hence the selection.
                table = pa.Table.from_batches([batch]).select([str(i) for i in wanted])
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
        parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(numbers, pa.string()),
            include_columns=[str(i) for i in wanted],
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=True,
        ),
    )


def _header(source: Source) -> tuple[list[str], str]:
    """The names of the columns, and the delimiter: the sign that occurs most in the header."""
    try:
        with source.open() as file:
            start = file.read(HEADER_LIMIT)
    except UNPACKING as error:
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
    _check_names(source, names)
    return names, delimiter


def _check_names(source: Source, names: Sequence[str]) -> None:
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{shown(source.name)} has two columns called {listed(sorted(twice)[:1])}. "
            "Give every column a name of its own."
        )


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
    try:
        with pa.OSFile(str(source.path)) as file:
            deque(_reader(source, file, width, delimiter, [0], threads=False), maxlen=0)
    except pa.ArrowInvalid as error:
        found = _RAGGED.search(str(error))
        if found and found[1]:
            return str(int(found[1]) - 1), found[2]  # the header is not counted
    return "?", "?"


def _not_text(source: Source) -> DataError:
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


def _json_lines(source: Source, columns: Sequence[str] | None) -> Chunks:
    first = 1
    try:
        with source.path.open("rb") as file:
            lines: Any = gzip.GzipFile(fileobj=file) if source.compressed else file
            while taken := list(itertools.islice(lines, LINES)):
                numbered = enumerate(taken, first)
                rows = [_row(source, number, line) for number, line in numbered if line.strip()]
                cells = {
                    name: pa.array([row.get(name) for row in rows], pa.string())
                    for name in dict.fromkeys(itertools.chain.from_iterable(rows))
                    if columns is None or name in columns
                }
                if rows:
                    yield pa.table(cells), file.tell()
                first += len(taken)
    except UNPACKING as error:
        raise DataError(f"Cannot unpack {shown(source.name)}: {error}.") from None
    except UnicodeEncodeError:
        raise DataError(
            f"Between lines {first} and {first + len(taken) - 1} of {shown(source.name)} there is "
            "half a character (a lone surrogate)."
        ) from None


def _row(source: Source, number: int, line: bytes) -> dict[str, str | None]:
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        raise DataError(f"Line {number} of {shown(source.name)} is not UTF-8 text.") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"Line {number} of {shown(source.name)} is not JSON: {error}.") from None
    except ValueError:  # of so many digits that nobody meant to compute with them
        raise DataError(
            f"Line {number} of {shown(source.name)} holds a whole number of over "
            f"{sys.get_int_max_str_digits():,} digits. Write it as text."
        ) from None
    if not isinstance(found, dict):
        raise DataError(
            f"Line {number} of {shown(source.name)} holds {type(found).__name__}, not an object. "
            'Write one object per line, such as {"age": 41, "sex": "male"}.'
        )
    return {name: _cell(source, number, name, value) for name, value in found.items()}


def _cell(source: Source, number: int, name: str, value: Any) -> str | None:
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, (dict, list)):
        raise DataError(
            f"Line {number} of {shown(source.name)} has a {type(value).__name__} in "
            f"{quoted(name)}. Give text, numbers, true, false or null."
        )
    infinite = isinstance(value, float) and abs(value) == float("inf")
    return str(value) if infinite else value_name(value, name)


def _parquet(source: Source, columns: Sequence[str] | None) -> Chunks:
    try:
        with arrow_parquet.ParquetFile(source.path) as file:
            total = file.metadata.num_rows
            _check_names(source, file.schema_arrow.names)
            names = [
                field.name
                for field in file.schema_arrow
                if not pa.types.is_nested(field.type) and (columns is None or field.name in columns)
            ]
            if not total:
                raise DataError(f"{shown(source.name)} has a header but no rows.")
            done = 0
            for batch in file.iter_batches(ROWS, columns=names):
                done += batch.num_rows
                table = pa.Table.from_batches([batch]).select(names)
                arrays = [_plain(column) for column in table.columns]
                yield pa.table(dict(zip(names, arrays, strict=True))), source.size * done // total
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"Cannot read {shown(source.name)}: {shown(str(error))}.") from None


def _plain(column: Any) -> Any:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if pa.types.is_integer(column.type):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 63 bits: an identifier
            return column.cast(pa.string())
    if pa.types.is_floating(column.type) or pa.types.is_decimal(column.type):
        numbers = column.cast(pa.float64())
        return compute.if_else(compute.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    return column.cast(pa.string())


READERS = {"CSV": _csv, "JSON Lines": _json_lines, "Parquet": _parquet}


def column_of(table: pa.Table, name: str) -> Any:
    """A column of a chunk; missing in all rows where the chunk does not have it."""
    place = table.schema.get_field_index(name)  # by a table of names, whatever their number
    if place < 0:
        return pa.chunked_array([pa.nulls(len(table), pa.string())])
    return table.column(place)
