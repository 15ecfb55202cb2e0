"""Columns of a frame of any library, as numpy arrays and distinct values.

Groups and features read them the same way.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from groupwise.errors import FeatureError, GroupError
from groupwise.groups.values import REMEMBERED_TYPES, is_missing

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Kind = Literal["number", "boolean", "text", "objects"]
Answer = TypeVar("Answer")

# The types of columns that numpy has too.
_NUMBERS = {"Float32", "Float64"} | {f"{i}{b}" for i in ("Int", "UInt") for b in (8, 16, 32, 64)}
# Every integer up to here has a float64 of its own.
_EXACT = 2**53
# A range of integers this wide is counted in a table rather than sorted.
_TABLE = 1 << 20


@dataclass
class Column:
    """One column: an array of numbers, text as codes into its levels, or a list of objects."""

    name: str
    kind: Kind
    length: int
    values: npt.NDArray[Any] = field(default_factory=lambda: np.zeros(0))
    """Numbers and booleans; whatever stands at a null is not to be read."""
    nulls: Booleans | None = None
    """Where numbers and booleans are absent; None when nowhere. NaN is a value here."""
    codes: Integers = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    """Text: the position among ``levels``, -1 where absent."""
    levels: list[Any] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)

    @cached_property
    def missing(self) -> Booleans | None:
        """Where the value is unknown, NaN included; None when nowhere."""
        if self.kind in ("text", "objects"):
            found = self.distinct[1] < 0
        else:
            found = np.zeros(self.length, dtype=np.bool_) if self.nulls is None else self.nulls
            if self.values.dtype.kind == "f":
                found = found | np.isnan(self.values)
        return found if found.any() else None

    @cached_property
    def numbers(self) -> Floats | None:
        """The column as float64; None when it holds no numbers, or some would be rounded."""
        whole = self.values.dtype.kind != "f" and self.length > 0
        rounded = (
            whole and not -_EXACT <= int(self.values.min()) <= int(self.values.max()) <= _EXACT
        )
        return None if self.kind != "number" or rounded else self.values.astype(np.float64)

    @cached_property
    def distinct(self) -> tuple[list[Any], Integers]:
        """The values that occur, and for each row the position of its value, -1 when missing."""
        if self.kind == "text":
            return self.levels, self.codes
        if self.kind == "objects":
            return _distinct_objects(self.objects)
        present = slice(None) if self.missing is None else ~self.missing
        codes = np.full(self.length, -1, dtype=np.int64)
        found, codes[present] = _distinct_numbers(self.values[present])
        return found.tolist(), codes

    def value(self, row: int) -> Any:
        """The value of a row, as a row would have it."""
        if self.kind == "text":
            return [*map(str, self.levels), None][self.codes[row]]
        if self.kind == "objects":
            return self.objects[row]
        null = self.nulls is not None and self.nulls[row]
        return None if null else self.values[row].item()

    def answers(self, question: Callable[[Any], Answer]) -> list[Answer | None]:
        """Ask something of every distinct value; an error names the first row that caused one.

        A level that no row has (an unused category) may stay unanswered.
        """
        values, codes = self.distinct
        found: list[Answer | None] = [None] * len(values)
        errors: dict[int, GroupError] = {}
        for position, value in enumerate(values):
            try:
                found[position] = question(value)
            except GroupError as error:
                errors[position] = error
        bad = np.flatnonzero(np.isin(codes, list(errors))).tolist() if errors else []
        if bad:
            first = errors[int(codes[bad[0]])]
            first.row = bad[0]
            raise first
        return found


class Table:
    """A frame whose columns are read once, when first asked for.

    Groups and features read the same frame; hand both one table and the work is shared.

    >>> import polars
    >>> table = Table(polars.DataFrame({"sex": ["male", "female", "male"]}))
    >>> table.column("sex").distinct[1].tolist()
    [0, 1, 0]
    """

    def __init__(
        self, frame: object, error: type[GroupError] | type[FeatureError] = GroupError
    ) -> None:
        import narwhals as nw

        try:
            self._frame: nw.DataFrame[Any] = nw.from_native(frame, eager_only=True)
            self.names = list(self._frame.columns)
            self._known = set(self.names)
        except Exception as problem:
            raise error(
                f"A {type(frame).__name__} cannot be read as a frame: {problem} "
                "Give a pandas, polars or pyarrow table with distinct column names."
            ) from None
        self.length: int = self._frame.shape[0]
        self.made: dict[str, Column] = {}
        """Columns that were made of the others, which features are."""
        self._columns: dict[str, Column] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._known

    def column(self, name: str) -> Column:
        """Read a column."""
        if name not in self._columns:
            self._columns[name] = _read(self._frame.get_column(name), name, self.length)
        return self._columns[name]

    def series(self, name: str) -> Any:
        """A column as narwhals has it."""
        return self._frame.get_column(name)

    def add(self, column: Column, lasting: bool = True) -> None:
        """Add a column that was made of others; to be read by its name where it is ``lasting``."""
        self.made[column.name] = column
        if lasting:
            self._columns[column.name] = column
            self._known.add(column.name)


def as_table(frame: object, error: type[GroupError] | type[FeatureError]) -> Table:
    """Give the table of a frame; a table is taken as it is."""
    return frame if isinstance(frame, Table) else Table(frame, error)


def _read(series: Any, name: str, length: int) -> Column:
    import narwhals as nw

    dtype = series.dtype
    native = series.to_native()
    pandas_dtype = getattr(native, "dtype", None) if series.implementation.is_pandas() else None
    if dtype == nw.Boolean or str(dtype) in _NUMBERS:
        kind: Kind = "boolean" if dtype == nw.Boolean else "number"
        if isinstance(pandas_dtype, np.dtype):
            # A plain numpy column has no nulls: NaN is a number that is not one.
            return Column(name, kind, length, values=native.to_numpy())
        nulls = series.is_null().to_numpy().astype(np.bool_)
        if nulls.any():
            series = series.fill_null(False if kind == "boolean" else 0)
        values = np.asarray(series.to_numpy())
        if kind == "boolean" or values.dtype.kind not in "iuf":
            values = values.astype(np.bool_ if kind == "boolean" else np.float64)
        return Column(name, kind, length, values=values, nulls=nulls if nulls.any() else None)
    if dtype == nw.String:
        if series.implementation.is_pandas() and str(pandas_dtype) != "object":
            codes, levels = native.factorize()
            return _text(name, length, np.asarray(codes), levels.tolist())
        if series.implementation.is_pyarrow():
            coded = native.combine_chunks().dictionary_encode()
            if hasattr(coded, "indices"):
                positions = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                return _text(name, length, positions, coded.dictionary.to_pylist())
    if dtype in (nw.Categorical, nw.Enum):
        if pandas_dtype is not None and hasattr(native, "cat"):
            return _text(name, length, native.cat.codes.to_numpy(), native.cat.categories.tolist())
        return _coded(name, series.to_list())
    objects = native.tolist() if pandas_dtype is not None else series.to_list()
    text = {str, type(None)}
    if not set(map(type, objects)) <= text:
        # In a column of objects every sign of absence means the same.
        objects = [None if is_missing(value) else value for value in objects]
    if set(map(type, objects)) <= text:
        return _coded(name, objects)
    return Column(name, "objects", length, objects=objects)


def _text(name: str, length: int, codes: npt.NDArray[Any], levels: list[Any]) -> Column:
    return Column(name, "text", length, codes=codes.astype(np.int64), levels=levels)


def _coded(name: str, values: list[Any]) -> Column:
    levels = [value for value in dict.fromkeys(values) if value is not None]
    positions = {**{value: code for code, value in enumerate(levels)}, None: -1}
    codes = np.fromiter(map(positions.__getitem__, values), dtype=np.int64, count=len(values))
    return _text(name, len(values), codes, levels)


def _distinct_numbers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Integers]:
    if values.dtype.kind == "b":
        return np.array([False, True]), values.astype(np.int64)
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _TABLE and low > -_EXACT and high < _EXACT:
            positions, inverse = compress(values.astype(np.int64) - low, high - low + 1)
            return positions + low, inverse
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    found, inverse = np.unique(values, return_inverse=True)
    return found, inverse.astype(np.int64)


def compress(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """Give the codes that occur, ascending, and for each code its position among them.

    >>> [part.tolist() for part in compress(np.array([7, 3, 7]), 10)]
    [[3, 7], [1, 0, 1]]
    """
    if size > max(_TABLE, 4 * len(codes)):
        found, inverse = np.unique(codes, return_inverse=True)
        return found, inverse.astype(np.int64)
    lookup = np.zeros(size, dtype=np.int64)
    lookup[codes] = 1
    found = np.flatnonzero(lookup).astype(np.int64)
    lookup[found] = np.arange(len(found))
    return found, lookup[codes]


def first_places(codes: Integers, size: int) -> Integers:
    """Find where each code first occurs, -1 where it does not."""
    first = np.full(size + 1, -1, dtype=np.int64)
    # Written from the end, so that the earliest place stays; -1 falls on the spare last entry.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return first[:size]


def _distinct_objects(objects: list[Any]) -> tuple[list[Any], Integers]:
    positions: dict[tuple[type, Any], int] = {}
    values: list[Any] = []
    codes = np.full(len(objects), -1, dtype=np.int64)
    for row, value in enumerate(objects):
        if not is_missing(value):
            key = value if type(value) in REMEMBERED_TYPES else row
            codes[row] = positions.setdefault((type(value), key), len(values))
            if codes[row] == len(values):
                values.append(value)
    return values, codes
