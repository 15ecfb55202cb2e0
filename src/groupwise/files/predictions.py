"""Predictions as CSV, a piece of the stream at a time."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.csv as arrow

from groupwise.groups import FrameMembership

SEPARATOR = "; "
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins so would be a formula to a spreadsheet; it gets an apostrophe before it."""


@contextmanager
def prediction_file(file: IO[bytes], labels: bool = True) -> Iterator[Callable[..., None]]:
    """Columns row, prediction, label where it is known, and the awake groups.

    Gives a function that takes these columns and writes some rows.
    """
    label = {"label": pa.float64()} if labels else {}
    kinds = {"row": pa.int64(), "prediction": pa.float64(), **label, "groups": pa.string()}
    file.write((",".join(kinds) + "\n").encode())
    schema, options = pa.schema(kinds), arrow.WriteOptions(include_header=False)
    with arrow.CSVWriter(file, schema, write_options=options) as writer:
        yield lambda *columns: writer.write_table(pa.table(list(columns), schema=schema))


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def joined(membership: FrameMembership) -> Any:
    """The awake groups of every row, as one text."""
    names = pa.array([str(name) for name in membership.names], pa.string())
    cells = names.take(pa.array(membership.indices))
    rows = pa.ListArray.from_arrays(pa.array(membership.indptr.astype(np.int32)), cells)
    text = compute.binary_join(rows, SEPARATOR)
    if any(name.startswith(FORMULA) for name in membership.names):
        risky = compute.match_substring_regex(text, r"^[=+\-@\t\r]")
        text = compute.if_else(risky, compute.binary_join_element_wise("'", text, ""), text)
    return text
