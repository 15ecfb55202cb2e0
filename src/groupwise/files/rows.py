"""The rows of a file, so many at a time, each with its number in the file.

In file order, or in that of some columns without holding them all: only the keys are in memory,
and each row's place in the order, about 16 bytes a row. The rows themselves are dealt out to
temporary files, each a stretch of the order, and sorted stretch by stretch.
"""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from groupwise.errors import DataError, FeatureError, GroupError, LabelError
from groupwise.files.aside import Aside
from groupwise.files.ordering import misplaced, places
from groupwise.files.profile import Kind
from groupwise.files.scan import Scan, as_kind, leniently, unknown_column
from groupwise.files.source import Chunks, Source, column_of
from groupwise.files.text import quoted, shown
from groupwise.progress import progress_bar

SKIP = "--skip-bad leaves such rows out."
AT_MOST = 50_000
"""Rows at a time: what bounds the memory."""
STRETCHES = 200
"""Temporary files at most."""
STRETCH = 50_000
"""Rows in one at least."""
PLACE = "groupwise place"


class Piece(NamedTuple):
    """Rows, and their numbers in the file, counted from 1."""

    numbers: Any
    frame: pa.Table


@contextmanager
def in_file(source: Source, numbers: Any, instead: str = SKIP) -> Iterator[None]:
    """Work on rows of these numbers; where one is refused, say which row of the file it is.

    ``instead`` says what to do about it.
    """
    try:
        yield
    except (LabelError, FeatureError, GroupError) as error:
        if error.row is None and len(numbers) > 1:
            raise DataError(f"{shown(source.name)}: {error}") from None
        place = source.located(int(numbers[error.row or 0]))
        raise DataError(f"{place}: {error.message} {instead}") from None


def without(piece: Piece, rows: Any) -> Piece:
    """The same rows but for some, given by their places."""
    kept = np.ones(len(piece.numbers), dtype=np.bool_)
    kept[rows] = False
    return Piece(piece.numbers[kept], piece.frame.filter(pa.array(kept)))


def _good(piece: Piece, aside: Aside | None) -> Piece:
    """The rows that are not known to be bad."""
    if aside is None or not aside.bad:
        return piece
    bad = np.isin(piece.numbers, list(aside.bad))
    return without(piece, bad) if bad.any() else piece


def pieces(
    scan: Scan,
    kinds: Mapping[str, Kind],
    order: Sequence[str],
    size: int,
    aside: Aside | None = None,
) -> Iterator[Piece]:
    """All rows in the order of some columns, or of the file, with columns of these kinds.

    Where bad ones are skipped, they are noted in ``aside``.
    """
    scan.source.check()  # and again at the end: rows are read for the second time
    ranks = places(scan, order) if order else None
    if aside is not None:
        numbers = numbers_of(scan.source, 0, scan.rows)
        for row, reason in misplaced(scan, order):
            aside.add(numbers[row], reason)
    if ranks is None:
        yield from in_file_order(scan.source, kinds, size, aside=aside)
    else:
        for numbers, rows in in_order(scan, kinds, ranks, aside):
            for place in range(0, rows.num_rows, size):
                yield _good(Piece(numbers[place : place + size], rows.slice(place, size)), aside)
    scan.source.check()


def in_file_order(
    source: Source,
    kinds: Mapping[str, Kind],
    size: int,
    target: str | None = None,
    what: str | None = None,
    aside: Aside | None = None,
) -> Iterator[Piece]:
    """Pieces of a file; a bar says how much of the file is done, where ``what`` names the work.

    Columns that are not there are an error; with JSON only the label's, ``target``.
    """
    start = 0
    with progress_bar(source.size, what or "", what is not None) as advance:
        for table, position in in_pieces(as_frames(source, kinds, target, aside), size):
            yield _good(Piece(numbers_of(source, start, table.num_rows), table), aside)
            start += table.num_rows
            advance(table.num_rows, position)


def numbers_of(source: Source, start: int, count: int) -> Any:
    """The numbers in the file, from 1, of rows that were read; ragged ones were not."""
    if not source.ragged:
        return np.arange(start + 1, start + count + 1)
    whole = np.arange(1, start + count + len(source.ragged) + 1)
    return np.setdiff1d(whole, list(source.ragged))[start : start + count]


def in_pieces(tables: Chunks, rows: int) -> Chunks:
    """The same rows, so many at a time, each time with the position of the last table read."""
    held: list[Any] = []
    count = position = 0
    for table, position in tables:
        held.append(table)
        count += table.num_rows
        if count >= rows:
            whole = pa.concat_tables(held)
            for place in range(0, count - count % rows, rows):
                yield whole.slice(place, rows), position
            held, count = [whole.slice(count - count % rows)], count % rows
    if count:
        yield pa.concat_tables(held), position


def as_frames(
    source: Source,
    kinds: Mapping[str, Kind],
    target: str | None = None,
    aside: Aside | None = None,
) -> Chunks:
    """The chunks of a file with columns of these kinds, each with the position after it.

    A column that a chunk of JSON lacks is missing in all its rows, and so is a cell that cannot be
    read so, where such rows are set aside.
    """
    start = 0
    for table, position in source.chunks(list(kinds)):
        required = {target} if source.is_open else kinds.keys()
        there = {*table.column_names}
        absent = [name for name in kinds if name in required and name not in there]
        if absent and not start:
            what = "for the label" if absent[0] == target else "that the model reads"
            every = next(iter(source.chunks()))[0].column_names
            raise unknown_column(absent[0], every, source, what)
        arrays = {}
        for name, kind in kinds.items():
            column = column_of(table, name)
            try:
                arrays[name] = as_kind(column, kind)
            except pa.ArrowInvalid:
                held = "numbers" if kind == "number" else "true and false"
                arrays[name], bad = leniently(column, kind)
                for row, value in bad.items():
                    number = int(numbers_of(source, start + row, 1)[0])
                    reason = (
                        f"{quoted(value)} stands in the column {quoted(name)}, which holds {held} "
                        "elsewhere."
                    )
                    if aside is None or not aside.skip:
                        place = source.located(number)
                        raise DataError(f"{place}: {reason} {SKIP}") from None
                    aside.add(number, reason)
        start += table.num_rows
        yield pa.table(arrays), position


def first_rows(scan: Scan, kinds: Mapping[str, Kind], order: Sequence[str], count: int) -> pa.Table:
    """So many of the first rows, in the order of some columns, or of the file."""
    ranks = places(scan, order) if order else None
    found: list[pa.Table] = []
    start = taken = 0
    spared = None if scan.source.ragged is None else Aside(scan.source, True)
    for rows, _ in as_frames(scan.source, kinds, aside=spared):
        place = (
            np.arange(start, start + rows.num_rows) if ranks is None else ranks[start:][: len(rows)]
        )
        start += rows.num_rows
        chosen = np.flatnonzero(place < count)
        found.append(rows.take(pa.array(chosen)).append_column(PLACE, pa.array(place[chosen])))
        taken += len(chosen)
        if taken >= min(count, scan.rows):
            break
    return pa.concat_tables(found).sort_by(PLACE).drop_columns([PLACE])


def in_order(
    scan: Scan, kinds: Mapping[str, Kind], ranks: Any, aside: Aside | None = None
) -> Iterator[Piece]:
    """All rows in order, a stretch at a time."""
    stretch = max(STRETCH, -(-scan.rows // STRETCHES))
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        files = [Path(folder) / str(i) for i in range(-(-scan.rows // stretch))]
        _deal(scan.source, kinds, ranks, stretch, files, aside)
        numbers = numbers_of(scan.source, 0, scan.rows)
        for number, file in enumerate(files):
            with pa.OSFile(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
                table = reader.read_all()
            file.unlink()
            place = table.column(PLACE).to_numpy()
            within = np.argsort(ranks[place], kind="stable")
            assert ranks[place[within[0]]] == number * stretch
            yield Piece(numbers[place[within]], table.drop_columns([PLACE]).take(pa.array(within)))


def _deal(
    source: Source,
    kinds: Mapping[str, Kind],
    ranks: Any,
    stretch: int,
    files: list[Path],
    aside: Aside | None,
) -> None:
    writers: dict[int, Any] = {}
    start = 0
    with ExitStack() as opened:
        for rows, _ in as_frames(source, kinds, aside=aside):
            place = np.arange(start, start + rows.num_rows)
            rows = rows.append_column(PLACE, pa.array(place))
            goes_to = ranks[place] // stretch
            for number in np.unique(goes_to).tolist():
                if number not in writers:
                    sink = opened.enter_context(pa.OSFile(str(files[number]), "wb"))
                    writers[number] = opened.enter_context(pa.ipc.new_stream(sink, rows.schema))
                chosen = pa.array(np.flatnonzero(goes_to == number))
                writers[number].write_table(rows.take(chosen))
            start += rows.num_rows
