"""Several files, one after another, as if they were one.

They have the same format and the same columns, each of which holds numbers in all of them or text
in all of them: what would be read otherwise in one file than in the next is refused before
anything is made of it.
"""

import hashlib
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from glob import glob, has_magic

import pyarrow as pa

from groupwise.errors import DataError
from groupwise.files import remote, source
from groupwise.files.columnar import NoRowsError
from groupwise.files.scan import as_numbers, first_text
from groupwise.files.source import Chunks, Source
from groupwise.files.text import quoted, shown
from groupwise.files.unpacking import ARRAY, CSV, LINES

NUMBERS, TEXT = "numbers", "text"
TEXTS = CSV, LINES, ARRAY
"""Formats in which a file without a byte is one without rows, and not one that is damaged."""


@dataclass(frozen=True)
class Several(Source):
    """Files whose rows follow one another."""

    parts: tuple[Source, ...] = ()
    counts: dict[int, int] = field(default_factory=dict)
    """How many rows a file has, once it was read, those included that are none."""

    @cached_property
    def size(self) -> int:
        """Bytes of all of them."""
        return sum(part.size for part in self.parts)

    @cached_property
    def sha256(self) -> str:
        """The fingerprint of their fingerprints, one after another."""
        joined = "".join(part.sha256 for part in self.parts)
        return hashlib.sha256(joined.encode()).hexdigest()

    def check(self) -> None:
        """Raise DataError unless all are what they were when they were opened."""
        for part in self.parts:
            part.check()

    def located(self, number: int) -> str:
        """Where a row is: in which file."""
        for place, part in enumerate(self.parts):
            if place not in self.counts or number <= self.counts[place]:
                return part.located(number)
            number -= self.counts[place]
        return super().located(number)

    def chunks(self, columns: Sequence[str] | None = None) -> Chunks:
        """The rows of all files, columns in the order that they have in the first."""
        before, names = 0, None
        empty: list[NoRowsError] = []
        kinds = (
            Kinds(self) if columns is None and not self.is_open and self.ragged is None else None
        )
        for place, part in enumerate(self.parts):
            rows, start = 0, sum(self.counts.get(one, 0) for one in range(place))
            for table, position in _rows(part, columns, empty):
                rows += table.num_rows
                if names is None:
                    names = table.column_names
                elif not self.is_open:
                    table = table.select(self._same(names, table.column_names, part))
                if kinds is not None:
                    kinds.look(part, table, rows - table.num_rows)
                if self.ragged is not None and part.ragged:
                    self.ragged.update({start + row: why for row, why in part.ragged.items()})
                if table.num_rows:
                    yield table, before + position
            if kinds is not None:
                kinds.compare(part)
            self.counts[place] = rows + len(part.ragged or ())
            before += part.size
        if len(empty) == len(self.parts):
            raise empty[0]

    def _same(self, names: list[str], others: list[str], part: Source) -> list[str]:
        """The names, if another file has the same."""
        first = shown(self.parts[0].name)
        for name in names:
            if name not in others:
                raise DataError(
                    f"{shown(part.name)} has no column {quoted(name)}, which {first} has. Give "
                    "files with the same columns."
                )
        for name in others:
            if name not in names:
                raise DataError(
                    f"{shown(part.name)} has a column {quoted(name)}, which {first} has not. Give "
                    "files with the same columns."
                )
        return names


def _rows(part: Source, columns: Sequence[str] | None, empty: list[NoRowsError]) -> Chunks:
    """The rows of a file; one that has none gives its header, and is noted as ``empty``."""
    try:
        yield from part.chunks(columns)
    except NoRowsError as none:
        empty.append(none)
        if none.columns:
            yield pa.table({name: pa.nulls(0, pa.string()) for name in none.columns}), 0


class Kinds:
    """What the columns of every file hold, numbers or text."""

    def __init__(self, several: Several) -> None:
        self.typed = several.format != CSV
        self.known: dict[str, tuple[str, str]] = {}
        """Of columns that hold something: what it is, and in which file that was seen."""
        self.here: dict[str, str] = {}
        self.said: dict[str, str] = {}

    def look(self, part: Source, table: pa.Table, start: int) -> None:
        """Take note of some rows of a file."""
        for name in table.column_names:
            column = table.column(name)
            if self.here.get(name) == TEXT or column.null_count == len(column):
                continue
            self.here[name] = NUMBERS
            if pa.types.is_string(column.type):
                try:
                    if self.typed:
                        raise pa.ArrowInvalid("text by its type")
                    as_numbers(column)
                except pa.ArrowInvalid:
                    self.here[name] = TEXT
                    row, text = first_text(column) if not self.typed else (0, "")
                    self.said[name] = f": {quoted(text)} in row {start + row + 1}" if text else ""

    def compare(self, part: Source) -> None:
        """Refuse a file whose columns hold something else than those before."""
        for name, kind in self.here.items():
            before, where = self.known.setdefault(name, (kind, part.name))
            if kind != before:
                numbers, text = (where, part.name) if kind == TEXT else (part.name, where)
                raise DataError(
                    f"Column {quoted(name)} holds numbers in {shown(numbers)} and text in "
                    f"{shown(text)}{self.said.get(name, '')}. Make it the same in all files."
                )
        self.here = {}


def named(names: Sequence[str]) -> list[str]:
    """The files that names and patterns stand for, in their order."""
    found: list[str] = []
    for name in names:
        if remote.is_url(name) and remote.local(name) is None:
            matches = remote.matching(name)
        else:
            path = remote.local(name) or name
            plain = not has_magic(path) or os.path.exists(path)
            matches = [name] if plain else sorted(glob(path, recursive=True))
        if not matches:
            raise DataError(f"No file is called like {shown(name)}.")
        found += matches
    twice = [name for name, count in Counter(map(_place, found)).items() if count > 1]
    if twice:
        raise DataError(f"{shown(twice[0])} is given twice. Give every file once.")
    return found


def _place(name: str) -> str:
    """Where a file lies, whatever it is called by."""
    path = remote.local(name) or name
    return path if remote.is_url(path) else os.path.realpath(path)


@contextmanager
def opened(
    names: str | Sequence[str], table: str | None = None, skip: bool = False
) -> Iterator[Source]:
    """The rows of a file, or of several: see :func:`groupwise.files.source.opened`."""
    every = named([names] if isinstance(names, str) else names)
    with ExitStack() as stack:
        parts, empty = [], []
        for name in every:
            try:
                parts.append(stack.enter_context(source.opened(name, table, skip)))
            except NoRowsError as none:
                empty.append(none)
        if empty and (not parts or parts[0].format not in TEXTS):
            raise empty[0]
        first = parts[0]
        if len(parts) == 1:
            yield first
            return
        for part in parts:
            if part.format != first.format:
                raise DataError(
                    f"{shown(first.name)} is {first.format} and {shown(part.name)} is "
                    f"{part.format}. Give files of one format."
                )
        more = len(parts) - 1
        yield Several(
            f"{first.name} and {more:,} more file{'s' * (more > 1)}",
            *(first.path, first.format, first.compressed, first.origin, first.packing, table),
            ragged={} if skip else None,
            unread=first.unread,
            parts=tuple(parts),
        )


def files_of(several: Source) -> tuple[Source, ...]:
    """The files, one or several."""
    return several.parts if isinstance(several, Several) else (several,)
