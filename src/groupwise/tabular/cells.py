"""Columns as they come from a file, turned into numbers or text."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from groupwise.errors import DataError
from groupwise.tabular.text import quoted, shown

if TYPE_CHECKING:
    import pyarrow as pa

Kind = Literal["number", "text"]
MISSING = ("NA", "N/A", "NaN", "nan", "null")
"""What stands for a missing number, besides an empty cell."""
EXACT = 2**53
"""Whole numbers beyond it are identifiers: as numbers some would fall together."""


def as_numbers(column: Any) -> Any:
    """The column as float64, missing cells null; ``ArrowInvalid`` where that cannot be done."""
    import pyarrow as pa
    import pyarrow.compute as compute

    if not pa.types.is_string(column.type):
        return column.cast(pa.float64())
    try:
        numbers = column.cast(pa.float64())
    except pa.ArrowInvalid:
        column = compute.utf8_trim_whitespace(column)
        absent = compute.is_in(column, pa.array(["", *MISSING]))
        column = compute.if_else(absent, pa.scalar(None, pa.string()), column)
        return column.cast(pa.float64())
    return compute.if_else(compute.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)


def are_identifiers(column: Any, numbers: Any) -> bool:
    """Whether these are whole numbers too long to be told apart as float64."""
    import pyarrow as pa
    import pyarrow.compute as compute

    largest = compute.max(compute.abs(numbers)).as_py()
    if largest is None or not EXACT < largest < float(2**63):
        return False
    try:
        column.cast(pa.int64())
    except pa.ArrowInvalid:
        return False
    return True


def frame(table: "pa.Table", kinds: Mapping[str, Kind], source: str, start: int) -> "pa.Table":
    """A table whose columns have these kinds; ``start`` is the number of its first row.

    A column that the table lacks is missing in all its rows.
    """
    import pyarrow as pa

    arrays = {}
    for name, kind in kinds.items():
        if name not in table.column_names:
            column: Any = pa.nulls(table.num_rows, pa.string())
        else:
            column = table.column(name)
        if kind == "text":
            arrays[name] = column if pa.types.is_string(column.type) else column.cast(pa.string())
            continue
        try:
            arrays[name] = as_numbers(column)
        except pa.ArrowInvalid:
            row, value = _first_text(column)
            raise DataError(
                f"Row {start + row} of {shown(source)} has {quoted(value)} in the column "
                f"{quoted(name)}, which holds numbers elsewhere."
            ) from None
    return pa.table(arrays)


def _first_text(column: Any) -> tuple[int, str]:
    for row, value in enumerate(column.to_pylist()):
        try:
            float(value if value is not None and value.strip() not in ("", *MISSING) else 0)
        except ValueError:
            return row, value
    return 0, "text"


def in_pieces(tables: "Iterator[pa.Table]", rows: int) -> "Iterator[pa.Table]":
    """The same rows, so many at a time."""
    import pyarrow as pa

    held: list[Any] = []
    count = 0
    for table in tables:
        held.append(table)
        count += table.num_rows
        if count < rows:
            continue
        whole = pa.concat_tables(held)
        for place in range(0, count - count % rows, rows):
            yield whole.slice(place, rows)
        held, count = [whole.slice(count - count % rows)], count % rows
    if count:
        yield pa.concat_tables(held)


def missing_columns(names: Sequence[str], have: Sequence[str]) -> list[str]:
    """The names that are not among the columns."""
    return [name for name in names if name not in have]
