"""Tables that have columns and types: Parquet, Arrow, Excel and SQLite, in one normal form."""

import logging
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
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
EXACT = 2**53
"""Beyond it whole numbers are not all told apart as float64."""
UNREAD = "it holds {}, which are not read"
"""Why a column is left out that holds neither numbers nor text, in a clause."""


def check_names(source: "Source", names: Sequence[str]) -> None:
    """Refuse columns that cannot be told apart."""
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise DataError(
            f"{shown(source.name)} has two columns called {listed(sorted(twice)[:1])}. "
            "Give every column a name of its own."
        )


class NoRowsError(DataError):
    """A file has no rows, which does not matter where others have some."""

    def __init__(self, message: str, columns: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.columns = columns


def nothing(name: str) -> NoRowsError:
    """Of a file without a header."""
    return NoRowsError(f"{shown(name)} is empty. Give a file with a header and rows.")


def no_rows(source: "Source", columns: Sequence[str]) -> NoRowsError:
    """Of a file with a header, those of its columns that were to be read."""
    return NoRowsError(f"{shown(source.name)} has a header but no rows.", columns)


def asked_for(names: Sequence[str], columns: Sequence[str] | None) -> list[str]:
    """The names, or those of them that are to be read."""
    return [name for name in names if columns is None or name in columns]


def _chosen(source: "Source", schema: Any, columns: Sequence[str] | None) -> list[str]:
    """The columns to read: those asked for that hold numbers or text. The others are noted."""
    check_names(source, schema.names)
    wanted = None if columns is None else {*columns}
    for field in schema:
        if what := _unread(field.type):
            source.unread[field.name] = UNREAD.format(what)
    return [
        name
        for name in schema.names
        if name not in source.unread and (wanted is None or name in wanted)
    ]


def _unread(kind: Any) -> str:
    """What a column holds that is neither number nor text."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if isinstance(kind, pa.BaseExtensionType):
        kind = kind.storage_type
    if pa.types.is_run_end_encoded(kind):
        kind = kind.value_type
    if pa.types.is_map(kind) or pa.types.is_struct(kind) or pa.types.is_union(kind):
        return "objects"
    if pa.types.is_nested(kind):
        return "lists"
    sized = pa.types.is_fixed_size_binary(kind) or pa.types.is_binary_view(kind)
    if sized or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return "bytes"
    return "intervals" if pa.types.is_interval(kind) else ""


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
        raise no_rows(source, names)


def parquet(source: "Source", columns: Sequence[str] | None, group: int | None = None) -> "Chunks":
    """The rows of a Parquet file, or of one of its row groups."""
    with opened_parquet(source) as file:
        names = _chosen(source, file.schema_arrow, columns)
        if not file.metadata.num_rows:
            raise no_rows(source, names)
        groups = None if group is None else [group]
        # Arrow's threads are no quicker here, and keep what they have freed, each for itself.
        batches = file.iter_batches(ROWS, groups, names, use_threads=False)
        yield from _given(source, batches, names, file.metadata.num_rows)


@contextmanager
def opened_parquet(source: "Source") -> Iterator[Any]:
    """A Parquet file, wherever it lies."""
    with _readable(source), ExitStack() as stack:
        place = stack.enter_context(source.raw()) if source.remote else source.path
        yield stack.enter_context(
            arrow_parquet.ParquetFile(place, pre_buffer=False)
        )  # it would keep all that was read


def arrow(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of an Arrow file, which is what Feather is called since its second version."""
    return _batches(source, columns, pa.ipc.open_file)


def stream(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of an Arrow stream."""
    return _batches(source, columns, pa.ipc.open_stream)


def _batches(
    source: "Source", columns: Sequence[str] | None, opened: Callable[[Any], Any]
) -> "Chunks":
    """The rows of what Arrow writes, a batch at a time, long ones in parts."""
    with _readable(source), pa.OSFile(str(source.path)) as file, opened(file) as reader:
        names = _chosen(source, reader.schema, columns)
        numbered = getattr(reader, "num_record_batches", None)  # of a file, not of a stream
        every = reader if numbered is None else map(reader.get_batch, range(numbered))
        short = (one.slice(at, ROWS) for one in every for at in range(0, one.num_rows, ROWS))
        yield from _given(source, short, names, file.tell)


def feather(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a Feather file of the first version."""
    with _readable(source):
        table = arrow_feather.read_table(source.path)
        names = _chosen(source, table.schema, columns)
        yield from _given(source, table.to_batches(ROWS), names, table.num_rows)


@contextmanager
def _readable(source: "Source") -> Iterator[None]:
    """Say of a file that cannot be read what is wrong with it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(source, error) from None


def _unreadable(source: "Source", error: Exception) -> DataError:
    return DataError(f"Cannot read {shown(source.name)}: {shown(str(error)).rstrip('.')}.")


def excel(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a sheet of a workbook, the first row of which is the header."""
    with needed_by("Reading Excel"):
        import fastexcel
    for name in ("fastexcel", "calamine"):  # which tell of empty columns and charts
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        book = fastexcel.read_excel(str(source.path))
        names = book.sheet_names
        if source.table is None:
            names = [name for name in names if _is_seen(book.load_sheet(name, n_rows=1))]
        chosen = _table(source, names, "sheet")
        sheet = book.load_sheet(chosen, schema_sample_rows=None, skip_whitespace_tail_rows=True)
        batch = sheet.to_arrow() if sheet.height else None
        top = book.load_sheet(chosen, header_row=None, n_rows=1, dtypes="string").to_arrow()
    except fastexcel.FastExcelError as error:
        said = str(error).split("\n", 1)[0]
        raise DataError(f"Cannot read {shown(source.name)}: {shown(said)}.") from None
    said_names = [str(one[0].as_py() or "").strip() for one in top.columns]
    there = [name or f"column {place}" for place, name in enumerate(said_names, 1)]
    check_names(source, there)
    if batch is None:
        raise no_rows(source, asked_for(there, columns))
    table = pa.Table.from_batches([batch]).rename_columns(there)
    wanted = _chosen(source, table.schema, columns)
    yield from _given(source, table.to_batches(ROWS), wanted, table.num_rows)


def _is_seen(sheet: Any) -> bool:
    """Does a sheet hold anything, and is it not hidden?"""
    return bool(sheet.width) and sheet.visible == "visible"


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
            base.text_factory = partial(_text, source)
            listing = "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            tables = [name for (name,) in base.execute(listing) if not name.startswith("sqlite_")]
            chosen = _table(source, tables, "table")
            table = _name(chosen)
            about = "SELECT name, upper(type) FROM pragma_table_xinfo(?) WHERE hidden <> 1"
            there = dict(base.execute(about, (chosen,)))
            (total,) = base.execute(f"SELECT count(*) FROM {table}").fetchone()
            if not total:
                raise no_rows(source, asked_for(list(there), columns))
            if columns is None:
                holds = ", ".join(f"max(typeof({_name(name)}) = 'blob')" for name in there)
                found = base.execute(f"SELECT {holds} FROM {table}").fetchone()
                blobs = [name for name, blob in zip(there, found, strict=True) if blob]
                source.unread.update(dict.fromkeys(blobs, UNREAD.format("bytes")))
                columns = [name for name in there if name not in blobs]
            wanted = {name: kind for name, kind in there.items() if name in columns}
            named = ", ".join(map(_name, wanted)) or "NULL"
            rows_of = base.execute(f"SELECT {named} FROM {table}")
            done = 0
            while rows := rows_of.fetchmany(ROWS):
                done += len(rows)
                cells = list(zip(*rows, strict=True)) if wanted else []
                arrays = {
                    name: pa.array([_cell(source, name, one, kind) for one in column], pa.string())
                    for (name, kind), column in zip(wanted.items(), cells, strict=True)
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


def _cell(source: "Source", name: str, value: Any, kind: str) -> str | None:
    """A value of a database as text; it has no booleans, but columns that are declared so."""
    if value is None or isinstance(value, str):
        return value or None
    if isinstance(value, bytes):
        raise DataError(f"Column {quoted(name)} of {shown(source.name)} holds bytes.")
    if kind.startswith("BOOL") and value in (0, 1):
        return "true" if value else "false"
    return written(value, name)


def written(value: Any, name: str) -> str:
    """A value as text; a number that is not exact to the last digit is not written out to it."""
    if isinstance(value, float) and abs(value) > EXACT:
        return repr(value)
    return value_name(value, name)


def plain(column: Any) -> Any:
    """A column in normal form: whole numbers, numbers, or text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain(column.cast(kind.value_type))
    if pa.types.is_run_end_encoded(kind):
        return plain(pa.chunked_array(map(compute.run_end_decode, column.chunks), kind.value_type))
    if pa.types.is_integer(kind):
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 63 bits: an identifier
            return column.cast(pa.string())
    if pa.types.is_decimal(kind):  # by way of text, which is read to the nearest number
        return column.cast(pa.string()).cast(pa.float64())
    if pa.types.is_floating(kind):
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
