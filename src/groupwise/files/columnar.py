"""Tables that have columns and types: Parquet, Arrow, Excel and SQLite, in one normal form."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.feather as arrow_feather
import pyarrow.parquet as arrow_parquet

from groupwise.errors import DataError
from groupwise.extras import needed_by
from groupwise.files.text import listed, quoted, shown
from groupwise.groups.values import value_name

if TYPE_CHECKING:
    from groupwise.files.source import Chunks, Source

ROWS = 50_000
"""Rows at a time."""


def check_names(source: "Source", names: Sequence[str]) -> None:
    """Refuse columns that cannot be told apart."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{shown(source.name)} has two columns called {listed(sorted(twice)[:1])}. "
            "Give every column a name of its own."
        )


def _no_rows(source: "Source") -> DataError:
    return DataError(f"{shown(source.name)} has a header but no rows.")


def _chosen(source: "Source", schema: Any, columns: Sequence[str] | None) -> list[str]:
    """The columns to read: those asked for that are neither nested nor bytes."""
    check_names(source, schema.names)
    wanted = None if columns is None else {*columns}
    return [
        field.name
        for field in schema
        if not _is_unread(field.type) and (wanted is None or field.name in wanted)
    ]


def _is_unread(kind: Any) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind)
    return bool(pa.types.is_nested(kind) or binary or pa.types.is_fixed_size_binary(kind))


def _given(
    source: "Source", batches: Any, names: list[str], total: int | Callable[[], int]
) -> "Chunks":
    """Batches in normal form, each with the position in the file after it.

    ``total`` is how many rows there are, or says where the file is read.
    """
    done = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        done += batch.num_rows
        table = pa.Table.from_batches([batch]).select(names)
        arrays = [plain(column) for column in table.columns]
        position = source.size * done // total if isinstance(total, int) else total()
        yield pa.table(arrays, names=names), position
    if not done:
        raise _no_rows(source)


def parquet(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a Parquet file."""
    try:
        with arrow_parquet.ParquetFile(source.path) as file:
            names = _chosen(source, file.schema_arrow, columns)
            if not file.metadata.num_rows:
                raise _no_rows(source)
            batches = file.iter_batches(ROWS, columns=names)
            yield from _given(source, batches, names, file.metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from None


def arrow(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of an Arrow file, which is what Feather is called since its second version."""
    try:
        with pa.OSFile(str(source.path)) as stream, pa.ipc.open_file(stream) as file:
            names = _chosen(source, file.schema, columns)
            batches = (file.get_batch(i) for i in range(file.num_record_batches))
            yield from _given(source, _short(batches), names, stream.tell)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from None


def stream(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of an Arrow stream."""
    try:
        with pa.OSFile(str(source.path)) as file, pa.ipc.open_stream(file) as reader:
            names = _chosen(source, reader.schema, columns)
            yield from _given(source, _short(reader), names, file.tell)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from None


def feather(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a Feather file of the first version."""
    try:
        table = arrow_feather.read_table(source.path)
        names = _chosen(source, table.schema, columns)
        yield from _given(source, table.to_batches(ROWS), names, table.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from None


def _short(batches: Any) -> Iterator[Any]:
    for batch in batches:
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS)


def _unreadable(source: "Source", error: Exception) -> DataError:
    return DataError(f"Cannot read {shown(source.name)}: {shown(str(error))}.")


def excel(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a sheet of a workbook, the first row of which is the header."""
    with needed_by("Reading Excel"):
        import fastexcel
    try:
        book = fastexcel.read_excel(str(source.path))
        names = book.sheet_names
        if source.table is None:
            names = [name for name in names if book.load_sheet(name, n_rows=1).width]
        sheet = book.load_sheet(_table(source, names, "sheet"), schema_sample_rows=None)
        batch = sheet.to_arrow() if sheet.height else None
    except fastexcel.FastExcelError as error:
        said = str(error).split("\n", 1)[0]
        raise DataError(f"Cannot read {shown(source.name)}: {shown(said)}.") from None
    if batch is None:
        raise _no_rows(source)
    there = [
        f"column {place}" if name in ("", f"__UNNAMED__{place - 1}") else name
        for place, name in enumerate(map(str.strip, batch.schema.names), 1)
    ]
    table = pa.Table.from_batches([batch]).rename_columns(there)
    wanted = _chosen(source, table.schema, columns)
    yield from _given(source, table.to_batches(ROWS), wanted, table.num_rows)


def _table(source: "Source", names: Sequence[str], what: str) -> str:
    """The table that was asked for, or the only one."""
    if source.table is not None:
        if source.table not in names:
            raise DataError(
                f"{shown(source.name)} has no {what} {quoted(source.table)}. It has: "
                f"{listed(names)}."
            )
        return source.table
    if len(names) != 1:
        raise DataError(
            f"{shown(source.name)} has {len(names):,} {what}s: {listed(names)}. Say which to read: "
            "--table NAME."
            if names
            else f"{shown(source.name)} has no {what} with rows."
        )
    return names[0]


def sqlite(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a table, or view, of a database, in the order in which it gives them."""
    try:
        with closing(
            sqlite3.connect(f"{source.path.resolve().as_uri()}?mode=ro", uri=True)
        ) as base:
            base.text_factory = bytes
            listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            tables = [_text(source, name) for (name,) in base.execute(listing)]
            tables = [name for name in tables if not name.startswith("sqlite_")]
            table = _name(_table(source, tables, "table"))
            about = [
                (_text(source, one[1]), _text(source, one[2]).upper())
                for one in base.execute(f"PRAGMA table_info({table})")
            ]
            wanted = [(n, kind) for n, kind in about if columns is None or n in columns]
            (total,) = base.execute(f"SELECT count(*) FROM {table}").fetchone()
            if not total:
                raise _no_rows(source)
            chosen = ", ".join(_name(name) for name, _ in wanted) or "NULL"
            found = base.execute(f"SELECT {chosen} FROM {table}")
            done = 0
            while rows := found.fetchmany(ROWS):
                done += len(rows)
                cells = list(zip(*rows, strict=True)) if wanted else []
                arrays = {
                    name: pa.array([_cell(source, one, kind) for one in column], pa.string())
                    for (name, kind), column in zip(wanted, cells, strict=True)
                }
                yield pa.table(arrays), source.size * done // total
    except sqlite3.Error as error:
        raise _unreadable(source, error) from None


def _name(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _text(source: "Source", value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise DataError(f"{shown(source.name)} holds text that is not UTF-8.") from None


def _cell(source: "Source", value: Any, kind: str) -> str | None:
    """A value of a database as text; it has no booleans, but columns that are declared so."""
    if value is None or value == b"":
        return None
    if isinstance(value, bytes):
        return _text(source, value)
    if kind.startswith("BOOL") and value in (0, 1):
        return "true" if value else "false"
    return str(value) if abs(value) == float("inf") else value_name(value, "")


def plain(column: Any) -> Any:
    """A column in normal form: whole numbers, numbers, or text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 63 bits: an identifier
            return column.cast(pa.string())
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        numbers = column.cast(pa.float64())
        return compute.if_else(compute.is_nan(numbers), pa.scalar(None, pa.float64()), numbers)
    if pa.types.is_duration(kind):
        seconds = {"s": 1e0, "ms": 1e3, "us": 1e6, "ns": 1e9}[kind.unit]
        return compute.divide(column.cast(pa.int64()).cast(pa.float64()), seconds)
    text = column.cast(pa.string())
    if pa.types.is_temporal(kind):
        return _as_python_has_it(text)
    return compute.if_else(compute.equal(text, ""), pa.scalar(None, pa.string()), text)


def _as_python_has_it(text: Any) -> Any:
    """Dates and times as Python writes them: no fraction of 0, and one of microseconds."""
    for pattern, other in (
        (r"\.(\d{6})\d+", r".\1"),
        (r"\.(\d{3})(\D|$)", r".\1000\2"),
        (r"\.000000", ""),
        (r"Z$", "+00:00"),
        (r"([+-]\d\d)(\d\d)$", r"\1:\2"),
    ):
        text = compute.replace_substring_regex(text, pattern, other)
    return text
