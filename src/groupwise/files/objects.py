"""JSON: an object per line, or an array of objects; all values become text."""

import codecs
import gzip
import itertools
import json
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from groupwise.errors import DataError
from groupwise.files.columnar import UNREAD, NoRowsError, written
from groupwise.files.text import quoted, shown
from groupwise.files.unpacking import UNPACKING

if TYPE_CHECKING:
    from groupwise.files.source import Chunks, Source

LINES = 20_000
"""Lines, or objects, at a time."""
BLOCK = 1 << 20
"""Characters of an array at a time."""
ADVICE = 'Write an object for every row, such as {"age": 41, "sex": "male"}, or an array of them.'


def lines(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a file with an object per line."""

    def found(file: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        unpacked: Any = gzip.GzipFile(fileobj=file) if source.compressed else file
        numbered = enumerate(unpacked, 1)
        while taken := list(itertools.islice(numbered, LINES)):  # what is damaged is met first
            for number, line in taken:
                if line.strip():
                    place = f"Line {number}"
                    try:
                        yield place, _object(source, place, _loaded(source, place, line))
                    except DataError as error:
                        if source.ragged is None:
                            raise
                        source.ragged[number] = error.message

    return _tables(source, columns, found)


def array(source: "Source", columns: Sequence[str] | None) -> "Chunks":
    """The rows of a file that holds one array of objects."""

    def found(file: Any) -> Iterator[tuple[str, dict[str, Any]]]:
        unpacked: Any = gzip.GzipFile(fileobj=file) if source.compressed else file
        for number, one in enumerate(_items(source, unpacked), 1):
            place = f"Object {number}"
            yield place, _object(source, place, one)

    return _tables(source, columns, found)


def _tables(source: "Source", columns: Sequence[str] | None, objects: Any) -> "Chunks":
    """Objects, so many at a time, as tables of text."""
    wanted = None if columns is None else {*columns}
    place, some = "", False
    try:
        with source.path.open("rb") as file:
            rows = objects(file)
            while taken := list(itertools.islice(rows, LINES)):
                place, some = f"{taken[0][0]} to {taken[-1][0].lower()}", True
                cells = [_cells(source, wanted, *one) for one in taken]
                arrays = {
                    name: pa.array([row.get(name) for row in cells], pa.string())
                    for name in dict.fromkeys(itertools.chain.from_iterable(cells))
                }
                yield pa.table(arrays), file.tell()
    except UnicodeEncodeError:
        raise DataError(
            f"In {place} of {shown(source.name)} there is half a character (a lone surrogate)."
        ) from None
    except UNPACKING as error:
        raise DataError(f"Cannot unpack {shown(source.name)}: {error}.") from None
    if not some:
        raise NoRowsError(f"{shown(source.name)} holds no rows.")


def _loaded(source: "Source", place: str, text: bytes | str) -> Any:
    try:
        return json.loads(text)
    except UnicodeDecodeError:
        raise DataError(f"{place} of {shown(source.name)} is not UTF-8 text.") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"{place} of {shown(source.name)} is not JSON: {error}.") from None
    except ValueError:
        raise _too_long(source, place) from None


def _too_long(source: "Source", place: str) -> DataError:
    """For a number of so many digits that nobody meant to compute with it."""
    return DataError(
        f"{place} of {shown(source.name)} holds a whole number of over "
        f"{sys.get_int_max_str_digits():,} digits. Write it as text."
    )


def _items(source: "Source", file: Any) -> Iterator[Any]:
    """What an array holds, one at a time, whatever its length."""
    text = codecs.getreader("utf-8-sig")(file)
    decoder, held, number, ended = json.JSONDecoder(), text.read(BLOCK), 0, False
    held = held.lstrip()[1:]
    try:
        while True:
            held = held.lstrip(" \t\r\n,")
            if held.startswith("]"):
                rest = (held[1:] + text.read(BLOCK)).strip()
                if rest:
                    raise DataError(
                        f"After its array {shown(source.name)} goes on: {quoted(rest[:20])}. Give "
                        "one array of objects."
                    )
                return
            try:
                found, end = decoder.raw_decode(held)
                whole = end < len(held)
            except (json.JSONDecodeError, RecursionError) as error:
                if ended:
                    raise DataError(
                        f"Object {number + 1} of {shown(source.name)} is not JSON, or the array "
                        f"is not closed: {error}."
                    ) from None
                whole = False
            except ValueError:
                raise _too_long(source, f"Object {number + 1}") from None
            if whole or ended:
                number += 1
                yield found
                held = held[end:]
            else:
                more = text.read(max(BLOCK, len(held)))
                held, ended = held + more, not more
    except UnicodeDecodeError:
        raise DataError(f"{shown(source.name)} is not UTF-8 text.") from None


def _object(source: "Source", place: str, found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise DataError(
            f"{place} of {shown(source.name)} holds {_called(found)}, not an object. {ADVICE}"
        )
    return found


def _called(value: Any) -> str:
    """What JSON calls a value."""
    names = {list: "an array", dict: "an object", str: "text", type(None): "null", bool: "a truth"}
    return names.get(type(value), "a number")


def _cells(
    source: "Source", wanted: set[str] | None, place: str, row: dict[str, Any]
) -> dict[str, str | None]:
    """The values of a row as text; a nested one is noted, or an error where it is wanted."""
    cells: dict[str, str | None] = {}
    for name, value in row.items():
        if wanted is not None and name not in wanted:
            continue
        nested = isinstance(value, (dict, list))
        if nested and wanted is not None:
            raise DataError(
                f"{place} of {shown(source.name)} has {_called(value)} in {quoted(name)}. Give "
                "text, numbers, true, false or null."
            )
        if nested:
            what = "objects" if isinstance(value, dict) else "arrays"
            source.unread.setdefault(name, UNREAD.format(what))
        cells[name] = None if nested else _cell(name, value)
    return cells


def _cell(name: str, value: Any) -> str | None:
    if value is None or value == "" or value != value:
        return None
    return written(value, name)
