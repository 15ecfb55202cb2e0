"""A file of rows: what it is called, where its bytes are, which format they have."""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from groupwise.errors import DataError
from groupwise.tabular.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

GZIP, PARQUET = b"\x1f\x8b", b"PAR1"
JSON_ENDINGS = (".jsonl", ".ndjson", ".json")
STANDARD_INPUT = "-"


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

    def chunks(self, columns: Sequence[str] | None = None) -> Iterator["tuple[pa.Table, int]"]:
        """Tables of text and numbers in file order, each with the position in the file after it.

        ``columns`` names those to read; all by default.
        """
        if self.format == "Parquet":
            from groupwise.tabular.parquet import chunks
        elif self.format == "JSON Lines":
            from groupwise.tabular.json_lines import chunks
        else:
            from groupwise.tabular.comma_separated import chunks
        return chunks(self, columns)


@contextmanager
def opened(name: str) -> Iterator[Source]:
    """The file of this name; for ``-`` what comes from standard input.

    A run reads its rows twice, so standard input goes to a temporary file first.
    """
    if name != STANDARD_INPUT:
        yield _source(name, Path(name))
        return
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        spooled = Path(folder) / "standard-input"
        with spooled.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield _source("standard input", spooled)


def open_bytes(source: Source) -> BinaryIO:
    """The bytes of a text file, unpacked."""
    import gzip
    from typing import cast

    if source.compressed:
        return cast(BinaryIO, gzip.open(source.path, "rb"))
    return source.path.open("rb")


def _source(name: str, path: Path) -> Source:
    try:
        with path.open("rb") as file:
            start = file.read(4)
    except OSError as error:
        raise DataError(f"Cannot read {shown(name)}: {error.strerror or error}.") from None
    if not start:
        raise DataError(f"{shown(name)} is empty. Give a file with a header and rows.")
    if start == PARQUET:
        return Source(name, path, "Parquet", False)
    compressed = start.startswith(GZIP)
    plain = name.lower().removesuffix(".gz")
    text = Source(name, path, "JSON Lines", compressed)
    if plain.endswith(JSON_ENDINGS):
        return text
    if name == "standard input" and _first_character(text) == b"{":
        return text
    return Source(name, path, "CSV", compressed)


def _first_character(source: Source) -> bytes:
    try:
        with open_bytes(source) as file:
            return file.read(64).lstrip()[:1]
    except (OSError, EOFError):
        return b""
