"""A file of rows: what it is called, which format it has, and its rows a chunk at a time.

Every format gives tables of text and numbers in one normal form, so that the same rows are the same
whatever file they are in. Whole numbers and numbers are as they are; true and false are these
texts; dates are written as Python writes them; what is empty, null or NaN is missing.

- CSV: a header, then rows; commas, or what the header suggests, and decimal commas where the cells
  have them. All cells are text.
- JSON Lines, an object per line, and arrays of objects. All values become text, and numbers are
  written so that reading them again gives the same number.
- Parquet, Arrow and Feather, Excel, SQLite: numbers as they are, everything else as text. Columns
  that are nested or hold bytes are left out, with a word.
"""

import gzip
import hashlib
import shutil
import stat
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO, cast

import pyarrow as pa

from groupwise.errors import DataError
from groupwise.files import columnar, delimited, objects, remote
from groupwise.files.text import shown
from groupwise.files.unpacking import (
    ARRAY,
    ARROW,
    CSV,
    EXCEL,
    FEATHER,
    LINES,
    PARQUET,
    SQLITE,
    STREAM,
    encoding_of,
    format_of,
    packing_of,
    recode,
    unpack,
)
from groupwise.progress import patiently

STANDARD_INPUT = "-"
PARQUET_SIGN = b"PAR1"

Chunks = Iterator[tuple[pa.Table, int]]

READERS: dict[str, Any] = {
    CSV: delimited.chunks,
    LINES: objects.lines,
    ARRAY: objects.array,
    PARQUET: columnar.parquet,
    ARROW: columnar.arrow,
    STREAM: columnar.stream,
    FEATHER: columnar.feather,
    EXCEL: columnar.excel,
    SQLITE: columnar.sqlite,
}


@dataclass(frozen=True)
class Source:
    """A file whose rows can be read any number of times.

    ``path`` is where its rows are read from, unpacked unless ``compressed`` by gzip; ``origin`` the
    file as it was given, packed by ``packing``; ``table`` which table or sheet of it to read.
    """

    name: str
    path: Path
    format: str
    compressed: bool
    origin: Path
    packing: str = ""
    table: str | None = None
    ragged: dict[int, str] | None = None
    """Rows that are no rows, left out by number; None where such a one is an error."""
    unread: dict[str, str] = field(default_factory=dict)
    """Columns that hold neither numbers nor text, and why they are left out, in a clause."""
    remote: bool = False
    """Is it read where it lies, by its URL?"""
    stamp: tuple[int, int] | tuple[str, ...] | None = None
    """Bytes, and when they were last changed, as the file was opened; of a URL what is told."""

    @cached_property
    def size(self) -> int:
        """Bytes as they lie on the disk, where rows are read from."""
        return int(remote.size(self.name)) if self.remote else self.path.stat().st_size

    @property
    def is_open(self) -> bool:
        """May rows have fields that others lack?"""
        return self.format in (LINES, ARRAY)

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of the bytes as they lie on the disk, packed or not."""
        with self.raw() as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def raw(self) -> Any:
        """The bytes as they lie on the disk, packed or not."""
        return remote.open(self.name) if self.remote else self.origin.open("rb")

    def check(self) -> None:
        """Raise DataError unless the file is what it was when it was opened."""
        if self.stamp is None:
            return
        try:
            now = remote.stamp(self.name) if self.remote else _stamp(self.path)
        except OSError:
            raise DataError(
                f"{shown(self.name)} is gone, or lies where a worker does not see it. Give files "
                "that all nodes have, unpacked."
            ) from None
        if now != self.stamp:
            raise DataError(f"{shown(self.name)} was changed while it was read. Begin again.")

    def located(self, number: int) -> str:
        """Where a row is, by its number, for messages."""
        return f"Row {number} of {shown(self.name)}"

    def chunks(self, columns: Sequence[str] | None = None) -> Chunks:
        """Tables of text and numbers in file order, each with the position in the file after it.

        ``columns`` names those to read; all by default.
        """
        found: Chunks = READERS[self.format](self, columns)
        return found

    def open(self) -> BinaryIO:
        """The bytes of a text file, unpacked."""
        return cast(BinaryIO, gzip.open(self.path)) if self.compressed else self.path.open("rb")


@contextmanager
def opened(name: str, table: str | None = None, skip: bool = False) -> Iterator[Source]:
    """The file of this name; for ``-`` what comes from standard input.

    A run reads its rows twice, so what can be read once, as pipes can, goes to a temporary file
    first, and so does what is packed, but for text in gzip. ``table`` is the table of a database,
    or the sheet of a workbook; ``skip`` says that rows which are none are left out. What a URL
    names is read where it lies if it is Parquet, and else comes to a temporary file too.
    """
    path, standard = Path(remote.local(name) or name), name == STANDARD_INPUT
    with ExitStack() as stack:
        piped = standard or is_read_once(path)
        if remote.is_url(name) and remote.local(name) is None:
            if remote.begins(name, PARQUET_SIGN):
                stamp = remote.stamp(name)
                found = Source(name, path, PARQUET, False, path, remote=True, stamp=stamp)
                yield replace(found, ragged={}) if skip else found
                return
            path = stack.enter_context(_place())
            with patiently(f"fetching {shown(name)}."):
                remote.fetch(name, path)
        if piped:
            name = "standard input" if standard else name
            path = stack.enter_context(_spooled(name, None if standard else path))
        if path.is_dir():
            raise DataError(
                f"{shown(name)} is a folder. Give the files in it, by a pattern in quotes if there "
                "are many: 'FOLDER/*.csv'."
            )
        try:
            packing = packing_of(path)
        except OSError as error:
            raise DataError(f"Cannot read {shown(name)}: {error.strerror or error}.") from None
        if not path.stat().st_size:
            raise columnar.nothing(name)
        found = _source(name, path, packing, piped, table, stack)
        yield replace(found, ragged={}) if skip else found


def _source(
    name: str, path: Path, packing: str | None, piped: bool, table: str | None, stack: ExitStack
) -> Source:
    """What a file is, and where its rows can be read from."""
    origin, inner = path, name
    gzipped = packing == "gzip" and format_of(name, path, piped)[0] in (CSV, LINES)
    gzipped = gzipped and encoding_of(path, packed=True) is None
    if packing is not None and not gzipped:
        path = stack.enter_context(_place())
        with patiently(f"unpacking {shown(name)}."):
            inner = unpack(name, origin, packing, path)
        if not path.stat().st_size:
            raise columnar.nothing(name)
        if packing_of(path) is not None:
            raise DataError(f"{shown(name)} is packed twice. Unpack it once.")
    encoding = None if gzipped else encoding_of(path)
    if encoding is not None:
        packed, path = path, stack.enter_context(_place())
        recode(name, packed, encoding, path)
    format, compressed = format_of(inner, path, piped or inner != name)
    if table is not None and format not in (EXCEL, SQLITE):
        raise DataError(f"--table is for Excel and SQLite, and {shown(name)} is {format}.")
    about = name, path, format, compressed, origin, packing or "", table
    return Source(*about, stamp=_stamp(path))


def _stamp(path: Path) -> tuple[int, int]:
    """Bytes, and the second of the last change: machines may know finer ones differently."""
    about = path.stat()
    return about.st_size, int(about.st_mtime)


@contextmanager
def _place() -> Iterator[Path]:
    """A file that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        yield Path(folder) / "rows"


@contextmanager
def _spooled(name: str, pipe: Path | None) -> Iterator[Path]:
    """All that comes from a pipe, or from standard input."""
    with _place() as place:
        try:
            waiting = f"reading {shown(name)} to its end; the rest begins when all rows have come."
            with patiently(waiting), place.open("wb") as file:
                if pipe is None:
                    shutil.copyfileobj(sys.stdin.buffer, file)
                else:
                    with pipe.open("rb") as stream:
                        shutil.copyfileobj(stream, file)
        except OSError as error:
            raise DataError(f"Cannot read {shown(name)}: {error.strerror or error}.") from None
        yield place


def is_read_once(path: Path) -> bool:
    """Is it a pipe, or another thing that is neither a file nor a folder?"""
    with suppress(OSError):
        kind = path.stat().st_mode
        return not (stat.S_ISREG(kind) or stat.S_ISDIR(kind))
    return False


def column_of(table: pa.Table, name: str) -> Any:
    """A column of a chunk; missing in all rows where the chunk does not have it."""
    place = table.schema.get_field_index(name)  # by a table of names, whatever their number
    if place < 0:
        return pa.chunked_array([pa.nulls(len(table), pa.string())])
    return table.column(place)
