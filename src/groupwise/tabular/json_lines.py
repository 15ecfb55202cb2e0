"""JSON Lines: an object per line."""

import itertools
import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from groupwise.errors import DataError
from groupwise.groups.values import value_name
from groupwise.tabular.source import Source
from groupwise.tabular.text import quoted, shown

if TYPE_CHECKING:
    import pyarrow as pa

LINES = 20_000


def chunks(source: Source, columns: Sequence[str] | None) -> Iterator["tuple[pa.Table, int]"]:
    """All values as text; null, NaN and absent ones are missing.

    Numbers are written so that reading them again gives the same number.
    """
    import gzip

    import pyarrow as pa

    number = 0
    with source.path.open("rb") as file:
        lines: Any = gzip.GzipFile(fileobj=file) if source.compressed else file
        while True:
            try:
                taken = list(itertools.islice(lines, LINES))
            except (OSError, EOFError) as error:
                raise DataError(f"Cannot unpack {shown(source.name)}: {error}.") from None
            if not taken:
                break
            first = number + 1
            number += len(taken)
            rows = [
                _row(source, place, line) for place, line in enumerate(taken, first) if line.strip()
            ]
            if not rows:
                continue
            names = dict.fromkeys(itertools.chain.from_iterable(rows))
            kept = [name for name in names if columns is None or name in columns]
            try:
                arrays = [pa.array([row.get(n) for row in rows], pa.string()) for n in kept]
            except UnicodeEncodeError:
                raise DataError(
                    f"Between lines {first} and {number} of {shown(source.name)} there is half a "
                    "character (a lone surrogate)."
                ) from None
            yield pa.table(dict(zip(kept, arrays, strict=True))), file.tell()


def _row(source: Source, number: int, line: bytes) -> dict[str, str | None]:
    try:
        found = json.loads(line)
    except UnicodeDecodeError:
        raise DataError(f"Line {number} of {shown(source.name)} is not UTF-8 text.") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise DataError(f"Line {number} of {shown(source.name)} is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise DataError(
            f"Line {number} of {shown(source.name)} holds {type(found).__name__}, not an object. "
            'Write one object per line, such as {"age": 41, "sex": "male"}.'
        )
    return {name: _cell(source, number, name, value) for name, value in found.items()}


def _cell(source: Source, number: int, name: str, value: Any) -> str | None:
    if value is None or value == "" or value != value:
        return None
    if isinstance(value, (dict, list)):
        raise DataError(
            f"Line {number} of {shown(source.name)} has a {type(value).__name__} in "
            f"{quoted(name)}. Give text, numbers, true, false or null."
        )
    if isinstance(value, float) and abs(value) == float("inf"):
        return str(value)
    return value_name(value, name)
