"""Predictions as CSV, a piece of the stream at a time."""

from typing import IO, TYPE_CHECKING, Any, Self

import numpy as np

if TYPE_CHECKING:
    from groupwise.groups import FrameMembership

SEPARATOR = "; "
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Text that begins so would be a formula to a spreadsheet; it gets an apostrophe before it."""


class PredictionFile:
    """Columns row, prediction, label where it is known, and the awake groups."""

    def __init__(self, file: IO[bytes], labels: bool = True) -> None:
        import pyarrow as pa
        import pyarrow.csv as arrow

        columns = ["row", "prediction", *(["label"] if labels else []), "groups"]
        kinds = [pa.int64(), pa.float64(), *([pa.float64()] if labels else []), pa.string()]
        file.write((",".join(columns) + "\n").encode())
        self.schema = pa.schema(list(zip(columns, kinds, strict=True)))
        options = arrow.WriteOptions(include_header=False)
        self.writer = arrow.CSVWriter(file, self.schema, write_options=options)

    def write(self, rows: Any, prediction: Any, labels: Any, groups: Any) -> None:
        """Some rows; ``labels`` is None where they are not known."""
        import pyarrow as pa

        columns = [rows, prediction, *([] if labels is None else [labels]), groups]
        self.writer.write_table(pa.table(columns, schema=self.schema))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.writer.close()


def guarded(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text


def joined(membership: "FrameMembership") -> Any:
    """The awake groups of every row, as one text."""
    import pyarrow as pa
    import pyarrow.compute as compute

    names = pa.array([str(name) for name in membership.names], pa.string())
    cells = names.take(pa.array(membership.indices))
    rows = pa.ListArray.from_arrays(pa.array(membership.indptr.astype(np.int32)), cells)
    text = compute.binary_join(rows, SEPARATOR)
    if any(name.startswith(FORMULA) for name in membership.names):
        risky = compute.match_substring_regex(text, r"^[=+\-@\t\r]")
        text = compute.if_else(risky, compute.binary_join_element_wise("'", text, ""), text)
    return text
