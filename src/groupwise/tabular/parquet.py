"""Parquet: columns with types of their own."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupwise.errors import DataError
from groupwise.tabular.source import Source
from groupwise.tabular.text import shown

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 50_000


def chunks(source: Source, columns: Sequence[str] | None) -> Iterator["tuple[pa.Table, int]"]:
    """Whole numbers and numbers as they are, everything else as text; nested columns left out."""
    import pyarrow as pa
    import pyarrow.parquet as arrow

    try:
        with arrow.ParquetFile(source.path) as file:
            total = file.metadata.num_rows
            names = [
                field.name
                for field in file.schema_arrow
                if not pa.types.is_nested(field.type) and (columns is None or field.name in columns)
            ]
            if not total:
                raise DataError(f"{shown(source.name)} has a header but no rows.")
            done = 0
            for batch in file.iter_batches(ROWS, columns=names):
                done += batch.num_rows
                table = pa.Table.from_batches([batch]).select(names)
                arrays = [_plain(column) for column in table.columns]
                yield pa.table(dict(zip(names, arrays, strict=True))), source.size * done // total
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, OSError) as error:
        raise DataError(f"Cannot read {shown(source.name)}: {shown(str(error))}.") from None


def _plain(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as compute

    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = kind.value_type
    if pa.types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 63 bits: an identifier
            return column.cast(pa.string())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64())
        return compute.if_else(compute.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    return column.cast(pa.string())
