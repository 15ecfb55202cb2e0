"""The rows of a planned run, so many at a time, each with its number in the file."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.errors import DataError, FeatureError, GroupError, LabelError
from groupwise.tabular.cells import frame, in_pieces
from groupwise.tabular.sorting import in_order, places
from groupwise.tabular.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

    from groupwise.model import Groupwise
    from groupwise.replay_frames import FrameReplay
    from groupwise.tabular.plan import Plan
    from groupwise.tabular.scan import Scan

AT_MOST = 50_000
"""Rows at a time: what bounds the memory."""


class Piece(NamedTuple):
    """Rows, and their numbers in the file, counted from 1."""

    numbers: Any
    frame: "pa.Table"


def pieces(scan: "Scan", plan: "Plan", size: int) -> Iterator[Piece]:
    """All rows in the order asked for."""
    import pyarrow as pa

    ranks = None if plan.order is None else places(scan, plan.order)
    if ranks is None:
        tables = (table for table, _ in scan.source.chunks(list(plan.kinds)))
        start = 1
        for table in in_pieces(_same_columns(tables, plan), size):
            numbers = np.arange(start, start + table.num_rows)
            yield Piece(numbers, frame(table, plan.kinds, scan.source.name, start))
            start += table.num_rows
        return
    for numbers, rows in in_order(scan, plan, ranks):
        for place in range(0, rows.num_rows, size):
            part = slice(place, place + size)
            yield Piece(numbers[part], pa.Table.slice(rows, place, size))


def _same_columns(tables: "Iterator[pa.Table]", plan: "Plan") -> "Iterator[pa.Table]":
    """JSON Lines may lack a column in some chunks, which is then missing there."""
    import pyarrow as pa

    for table in tables:
        for name in plan.kinds:
            if name not in table.column_names:
                table = table.append_column(name, pa.nulls(table.num_rows, pa.string()))
        yield table.select(list(plan.kinds))


def replay(
    model: "Groupwise", piece: Piece, target: str, source: str, jobs: int | None = None
) -> "FrameReplay":
    """Replay a piece; an error names the row of the file."""
    result: FrameReplay = in_file(lambda: model.replay(piece.frame, target, jobs), piece, source)
    return result


def in_file(work: Callable[[], Any], piece: Piece, source: str) -> Any:
    """Do something with a piece; where a row of it is refused, say which row of the file it is."""
    try:
        return work()
    except (LabelError, FeatureError, GroupError) as error:
        if error.row is None:
            raise DataError(f"{shown(source)}: {error}") from None
        row = int(piece.numbers[error.row])
        raise DataError(f"Row {row} of {shown(source)}: {error.message}") from None
