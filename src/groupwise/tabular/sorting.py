"""A file's rows in the order of a column, without holding them all.

Only the keys are in memory, and each row's place in the order: about 16 bytes a row. The rows
themselves are dealt out to temporary files, each a stretch of the order, and sorted stretch by
stretch.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.errors import DataError
from groupwise.tabular.cells import as_numbers, frame
from groupwise.tabular.proposal import missing
from groupwise.tabular.scan import Scan
from groupwise.tabular.text import quoted

if TYPE_CHECKING:
    import pyarrow as pa

    from groupwise.tabular.plan import Plan

STRETCHES = 200
"""Temporary files at most."""
STRETCH = 50_000
"""Rows in one at least."""
PLACE = "groupwise place"


def places(scan: Scan, order: str) -> Any:
    """For each row its place in the order; None where the rows are in order already.

    Rows with equal keys stay in file order.
    """
    import pyarrow.compute as compute

    profile = scan.columns[order]
    if profile.missing:
        raise DataError(missing(profile) + f" Rows are to be sorted by {quoted(order)}.")
    keys = scan.keys
    if profile.kind == "number":
        numbers = as_numbers(keys).to_numpy()
        sequence = np.argsort(numbers, kind="stable")
    else:
        sequence = compute.sort_indices(keys).to_numpy()
    if (np.diff(sequence.astype(np.int64)) > 0).all():
        return None
    ranks = np.empty(scan.rows, dtype=np.int64)
    ranks[sequence] = np.arange(scan.rows)
    return ranks


def in_order(scan: Scan, plan: "Plan", ranks: Any) -> "Iterator[tuple[Any, pa.Table]]":
    """Row numbers (from 1) and rows, in order, a stretch at a time."""
    import pyarrow as pa

    stretch = max(STRETCH, -(-scan.rows // STRETCHES))
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        files = [Path(folder) / str(i) for i in range(-(-scan.rows // stretch))]
        _deal(scan, plan, ranks, stretch, files)
        for number, file in enumerate(files):
            with pa.OSFile(str(file)) as stream, pa.ipc.open_stream(stream) as reader:
                table = reader.read_all()
            file.unlink()
            place = table.column(PLACE).to_numpy()
            within = np.argsort(ranks[place], kind="stable")
            assert ranks[place[within[0]]] == number * stretch
            yield place[within] + 1, table.drop_columns([PLACE]).take(pa.array(within))


def _deal(scan: Scan, plan: "Plan", ranks: Any, stretch: int, files: list[Path]) -> None:
    import pyarrow as pa

    writers: dict[int, Any] = {}
    start = 0
    try:
        for table, _ in scan.source.chunks(list(plan.kinds)):
            rows = frame(table, plan.kinds, scan.source.name, start + 1)
            place = np.arange(start, start + rows.num_rows)
            rows = rows.append_column(PLACE, pa.array(place))
            goes_to = ranks[place] // stretch
            for number in np.unique(goes_to).tolist():
                if number not in writers:
                    sink = pa.OSFile(str(files[number]), "wb")
                    writers[number] = sink, pa.ipc.new_stream(sink, rows.schema)
                chosen = pa.array(np.flatnonzero(goes_to == number))
                writers[number][1].write_table(rows.take(chosen))
            start += rows.num_rows
    finally:
        for sink, writer in writers.values():
            writer.close()
            sink.close()
