"""Predictions as CSV, a piece of the stream at a time."""

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow

from groupwise.arrays import Vector
from groupwise.files.profile import Kind
from groupwise.groups import FrameMembership

SEPARATOR = "; "
ENDS = ("interval_low", "interval_high")
"""The columns of an interval's ends; empty where there is none."""
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins so would be a formula to a spreadsheet; it gets an apostrophe before it."""


@contextmanager
def prediction_file(
    file: IO[bytes], columns: Sequence[str], label: Kind | None = None
) -> Iterator[Callable[..., None]]:
    """Columns row, those of the prediction, label where it is known, and the awake groups.

    Gives a function that takes the numbers of some rows, their predictions (a column for each),
    their labels and groups, and writes them.
    """
    schema = schema_of(columns, label)
    header = io.StringIO()
    csv.writer(header, lineterminator="\n").writerow(schema.names)
    heading = header.getvalue().encode()

    def begin() -> None:  # with the first rows: what fails before them leaves nothing
        nonlocal heading
        file.write(heading)
        heading = b""

    options = arrow.WriteOptions(include_header=False)
    with arrow.CSVWriter(file, schema, write_options=options) as writer:

        def write(numbers: Any, predictions: Vector, *rest: Any) -> None:
            begin()
            if label == "text":
                rest = (guarded_all(rest[0]), *rest[1:])
            figures = (
                pa.array(one, from_pandas=True) for one in np.ascontiguousarray(predictions.T)
            )
            columns = [numbers, *figures, *rest]
            writer.write_table(pa.table(columns, schema=schema))

        yield write
        begin()


def schema_of(columns: Sequence[str], label: Kind | None) -> Any:
    """The columns of a file of predictions."""
    kinds = {"row": pa.int64(), **dict.fromkeys(columns, pa.float64())}
    if label is not None:
        kinds["label"] = pa.string() if label == "text" else pa.float64()
    return pa.schema({**kinds, "groups": pa.string()})


def is_formula(text: str) -> bool:
    """Would a spreadsheet take it for a formula?"""
    return text.startswith(FORMULA)


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if is_formula(text) else text


def guarded_all(column: Any) -> Any:
    """The same for a column of text."""
    risky = compute.match_substring_regex(column, r"^[=+\-@\t\r]")
    return compute.if_else(risky, compute.binary_join_element_wise("'", column, ""), column)


def joined(membership: FrameMembership) -> Any:
    """The awake groups of every row, as one text."""
    names = pa.array([str(name) for name in membership.names], pa.string())
    cells = names.take(pa.array(membership.indices))
    rows = pa.ListArray.from_arrays(pa.array(membership.indptr.astype(np.int32)), cells)
    text = compute.binary_join(rows, SEPARATOR)
    return guarded_all(text) if any(map(is_formula, membership.names)) else text
