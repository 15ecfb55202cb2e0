"""Rows of files from one number to another, so that a task reads its own and no others.

Parquet is read by row group. Of other formats a file is read from its beginning on: many short
files, or Parquet, serve a run in segments better than a long one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pyarrow as pa

from groupwise.errors import DataError
from groupwise.files import columnar
from groupwise.files.scan import Scan
from groupwise.files.several import Several, files_of
from groupwise.files.source import Chunks, Source
from groupwise.files.text import shown
from groupwise.files.unpacking import PARQUET


class Unit(NamedTuple):
    """Rows that are read together: a row group of a Parquet file, or a whole file."""

    source: Source
    group: int | None
    before: int
    """How many rows the file has before them."""
    rows: int

    def chunks(self, columns: Sequence[str] | None) -> Chunks:
        """The rows, some at a time."""
        self.source.check()
        if self.group is None:
            return self.source.chunks(columns)
        return columnar.parquet(self.source, columns, self.group)


@dataclass(frozen=True)
class Range(Source):
    """The rows of a stream from ``first`` on, ``rows`` many, counted from 0."""

    units: tuple[Unit, ...] = ()
    skipped: int = 0
    """Rows of the first unit that come before."""
    first: int = 0
    rows: int = 0

    @property
    def size(self) -> int:
        """Rows stand for bytes here."""
        return self.rows

    def located(self, number: int) -> str:
        """Where a row is, by its number in the range: in which file."""
        place = self.skipped + number
        for unit in self.units:
            if place <= unit.rows:
                return unit.source.located(unit.before + place)
            place -= unit.rows
        return super().located(number)

    def chunks(self, columns: Sequence[str] | None = None) -> Chunks:
        """The rows, some at a time, with how many there are up to their end."""
        done = 0
        for table in _cut(self._tables(columns), self.skipped, self.rows):
            done += table.num_rows
            yield table, done

    def _tables(self, columns: Sequence[str] | None) -> Iterator[pa.Table]:
        names = None
        for unit in self.units:
            for table, _ in unit.chunks(columns):
                names = names or table.column_names
                yield table if self.is_open else table.select(names)


def _cut(tables: Iterator[pa.Table], skipped: int, rows: int) -> Iterator[pa.Table]:
    """So many rows, after those that are skipped. No more is read than is needed."""
    for table in tables:
        part = table.slice(skipped, rows)
        skipped = max(0, skipped - table.num_rows)
        rows -= part.num_rows
        if part.num_rows:
            yield part
        if not rows:
            return


def units_of(found: Scan) -> list[Unit]:
    """What the files are made of, in the order of their rows."""
    units: list[Unit] = []
    whole = found.source
    for place, source in enumerate(files_of(whole)):
        # Workers may begin elsewhere.
        bare = replace(source, unread={}, path=source.path.absolute())
        bare.check()
        before = 0
        rows = whole.counts[place] if isinstance(whole, Several) else found.rows
        if source.format != PARQUET:
            if rows:
                units.append(Unit(bare, None, 0, rows))
            continue
        with columnar.opened_parquet(source) as file:
            counts = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
        for group, count in enumerate(counts):
            if count:
                units.append(Unit(bare, group, before, count))
            before += count
        if before != rows:
            raise DataError(f"{shown(source.name)} was changed while it was read. Begin again.")
    return units


def ranges(units: Sequence[Unit], size: int) -> Iterator[Range]:
    """The rows of all units, so many at a time."""
    total = sum(unit.rows for unit in units)
    place, begins = 0, 0
    """The first unit that is needed, and its first row."""
    for first in range(0, total, size):
        rows = min(size, total - first)
        while begins + units[place].rows <= first:
            begins += units[place].rows
            place += 1
        needed, covered = [], begins
        for unit in units[place:]:
            if covered >= first + rows:
                break
            needed.append(unit)
            covered += unit.rows
        one = units[place].source
        about = one.name, one.path, one.format, one.compressed, one.origin
        yield Range(*about, units=tuple(needed), skipped=first - begins, first=first, rows=rows)
