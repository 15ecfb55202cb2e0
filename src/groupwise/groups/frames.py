"""Which groups every row of a frame is in, a column at a time.

Columns of a frame of any library are read as numpy arrays and distinct values; ``features/`` reads
them the same way.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeVar

import numpy as np
import numpy.typing as npt

from groupwise.errors import FeatureError, GroupError
from groupwise.groups.declarations import (
    EVERYBODY,
    And,
    By,
    Cut,
    Group,
    Leaf,
    Member,
    Not,
    Or,
    Pairs,
    Values,
    Weight,
    Where,
)
from groupwise.groups.rows import CutReader, as_values
from groupwise.groups.values import REMEMBERED_TYPES, is_missing

Integers = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Booleans = npt.NDArray[np.bool_]
Kind = Literal["number", "boolean", "text", "objects"]
Answer = TypeVar("Answer")

# Every integer up to here has a float64 of its own.
_EXACT = 2**53
# A range of integers this wide is counted in a table rather than sorted.
_TABLE = 1 << 20
# Rows that are taken at a time where every group of a closed family is looked at.
_CHUNK = 1 << 16


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
        if self.kind != "number":
            return None
        if self.values.dtype.kind == "f" or not self.length:
            return self.values.astype(np.float64)
        if int(self.values.max()) > _EXACT or int(self.values.min()) < -_EXACT:
            return None
        return self.values.astype(np.float64)

    @cached_property
    def distinct(self) -> tuple[list[Any], Integers]:
        """The values that occur, and for each row the position of its value, -1 when missing."""
        if self.kind == "text":
            return self.levels, self.codes
        if self.kind == "objects":
            return _distinct_objects(self.objects)
        missing = self.missing
        if missing is None:
            found, codes = _distinct_numbers(self.values)
            return found.tolist(), codes
        found, inverse = _distinct_numbers(self.values[~missing])
        codes = np.full(self.length, -1, dtype=np.int64)
        codes[~missing] = inverse
        return found.tolist(), codes

    def answers(self, question: Callable[[Any], Answer]) -> list[Answer | None]:
        """Ask something of every distinct value; an error names the first row that caused one.

        A level that no row has (an unused category) may stay unanswered.
        """
        values, codes = self.distinct
        found: list[Answer | None] = []
        errors: dict[int, GroupError] = {}
        for position, value in enumerate(values):
            try:
                found.append(question(value))
            except GroupError as error:
                found.append(None)
                errors[position] = error
        if errors:
            bad = np.flatnonzero(np.isin(codes, list(errors)))
            if len(bad):
                first = errors[int(codes[bad[0]])]
                first.row = int(bad[0])
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
            names = list(self._frame.columns)
        except Exception as problem:
            raise error(
                f"A {type(frame).__name__} cannot be read as a frame: {problem} "
                "Give a pandas, polars or pyarrow table with distinct column names."
            ) from None
        self.names: list[str] = names
        self.length: int = self._frame.shape[0]
        self._columns: dict[str, Column] = {}

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def column(self, name: str) -> Column:
        """Read a column."""
        found = self._columns.get(name)
        if found is None:
            found = self._columns[name] = _read(self._frame.get_column(name), name, self.length)
        return found


def as_table(frame: object, error: type[GroupError] | type[FeatureError]) -> Table:
    """Give the table of a frame; a table is taken as it is."""
    return frame if isinstance(frame, Table) else Table(frame, error)


def _read(series: Any, name: str, length: int) -> Column:
    import narwhals as nw

    dtype = series.dtype
    native = series.to_native()
    pandas_dtype = getattr(native, "dtype", None) if series.implementation.is_pandas() else None
    if dtype == nw.Boolean or (dtype.is_numeric() and dtype in _plain_numbers()):
        kind: Kind = "boolean" if dtype == nw.Boolean else "number"
        if isinstance(pandas_dtype, np.dtype):
            # A plain numpy column has no nulls: NaN is a number that is not one.
            return Column(name, kind, length, values=native.to_numpy())
        nulls = series.is_null().to_numpy().astype(np.bool_)
        if nulls.any():
            series = series.fill_null(False if kind == "boolean" else 0)
        values = np.asarray(series.to_numpy())
        if kind == "boolean":
            values = values.astype(np.bool_)
        elif values.dtype.kind not in "iuf":
            values = values.astype(np.float64)
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
            categories = native.cat.categories.tolist()
            return _text(name, length, native.cat.codes.to_numpy(), categories)
        return _coded(name, series.to_list())
    objects = native.tolist() if pandas_dtype is not None else series.to_list()
    if {type(value) for value in objects} <= {str, type(None)}:
        return _coded(name, objects)
    # In a column of objects every sign of absence means the same.
    objects = [None if is_missing(value) else value for value in objects]
    if {type(value) for value in objects} <= {str, type(None)}:
        return _coded(name, objects)
    return Column(name, "objects", length, objects=objects)


def _plain_numbers() -> tuple[Any, ...]:
    import narwhals as nw

    signed = (nw.Int8, nw.Int16, nw.Int32, nw.Int64)
    unsigned = (nw.UInt8, nw.UInt16, nw.UInt32, nw.UInt64)
    return (*signed, *unsigned, nw.Float32, nw.Float64)


def _text(name: str, length: int, codes: npt.NDArray[Any], levels: list[Any]) -> Column:
    return Column(name, "text", length, codes=codes.astype(np.int64), levels=levels)


def _coded(name: str, values: list[Any]) -> Column:
    positions: dict[Any, int] = {}
    for value in dict.fromkeys(values):
        if value is not None:
            positions[value] = len(positions)
    levels = list(positions)
    positions[None] = -1
    codes = np.fromiter(map(positions.__getitem__, values), dtype=np.int64, count=len(values))
    return _text(name, len(values), codes, levels)


def _distinct_numbers(values: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], Integers]:
    if values.dtype.kind == "b":
        return np.array([False, True]), values.astype(np.int64)
    if values.dtype.kind in "iu" and len(values):
        low, high = int(values.min()), int(values.max())
        if high - low < _TABLE and low > -_EXACT and high < _EXACT:
            shifted = values.astype(np.int64) - low
            return _distinct_codes(shifted, high - low + 1, low)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
    found, inverse = np.unique(values, return_inverse=True)
    return found, inverse.astype(np.int64)


def _distinct_codes(codes: Integers, size: int, low: int) -> tuple[Integers, Integers]:
    positions, inverse = compress(codes, size)
    return positions + low, inverse


def compress(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """Give the codes that occur, ascending, and for each code its position among them.

    >>> [part.tolist() for part in compress(np.array([7, 3, 7]), 10)]
    [[3, 7], [1, 0, 1]]
    """
    if size > max(_TABLE, 4 * len(codes)):
        found, inverse = np.unique(codes, return_inverse=True)
        return found, inverse.astype(np.int64)
    occurs = np.zeros(size, dtype=np.bool_)
    occurs[codes] = True
    found = np.flatnonzero(occurs).astype(np.int64)
    lookup = np.zeros(size, dtype=np.int64)
    lookup[found] = np.arange(len(found))
    return found, lookup[codes]


def _distinct_objects(objects: list[Any]) -> tuple[list[Any], Integers]:
    remembered = frozenset(REMEMBERED_TYPES)
    positions: dict[tuple[type, Any], int] = {}
    values: list[Any] = []
    codes = np.full(len(objects), -1, dtype=np.int64)
    for row, value in enumerate(objects):
        if is_missing(value):
            continue
        if type(value) in remembered:
            position = positions.setdefault((type(value), value), len(values))
        else:
            position = len(values)
        if position == len(values):
            values.append(value)
        codes[row] = position
    return values, codes


@dataclass(frozen=True)
class FrameMembership:
    """The groups of every row: row t is in members[indices[indptr[t]:indptr[t + 1]]].

    ``members`` are in order of first appearance; ``weights`` stand beside ``indices``.
    """

    members: list[Member]
    indptr: Integers
    indices: Integers
    weights: Floats

    @cached_property
    def names(self) -> list[str]:
        """The names of the groups, to show them."""
        return [member.name for member in self.members]


@dataclass(frozen=True)
class Block:
    """The groups of every row in one declaration: an entry per row and group, rows ascending."""

    values: Sequence[Values]
    """Which groups of the declaration these are; each once."""
    rows: Integers
    codes: Integers
    weights: Floats | None = None
    """None where every weight is 1."""


@dataclass(frozen=True)
class LeafCodes:
    """The one group of each row in a leaf (-1 for none) and its weight (None: always 1)."""

    values: Sequence[Values]
    codes: Integers
    weights: Floats | None = None


def membership(
    declarations: Sequence[Group],
    always_on: bool,
    frame: Table,
    member: Callable[[int, Values], Member],
) -> FrameMembership:
    """Find the groups of every row of a frame; ``member`` gives the group that values mean."""
    read = FrameReader(frame)
    blocks = [read.block(declaration) for declaration in declarations]
    numbers = list(range(len(blocks)))
    if always_on:
        everyone = np.arange(frame.length, dtype=np.int64)
        blocks.append(Block([()], everyone, np.zeros(frame.length, dtype=np.int64)))
        numbers.append(EVERYBODY)
    merged, indptr = interleave(blocks, frame.length)
    present, indices = _by_first_appearance(merged.codes, len(merged.values))
    declared = np.repeat(numbers, [len(block.values) for block in blocks])
    members = [member(int(declared[code]), merged.values[code]) for code in present.tolist()]
    weights = merged.weights if merged.weights is not None else np.ones(len(indices))
    return FrameMembership(members, indptr, indices, weights)


class FrameReader:
    """Reads declarations off one frame; each leaf once."""

    def __init__(self, frame: Table) -> None:
        self.frame = frame
        self.leaves: dict[Leaf, LeafCodes] = {}

    def column(self, name: str) -> Column:
        """Read a group column, or say that it is absent."""
        if name not in self.frame:
            raise GroupError(
                f"The frame has no column {name!r}, which a group declaration reads. "
                "Add the column (null where it is unknown), or drop that declaration."
            )
        return self.frame.column(name)

    def leaf(self, declaration: Leaf) -> LeafCodes:
        """Find the group of every row in a leaf."""
        if declaration not in self.leaves:
            self.leaves[declaration] = _leaf(declaration, self.column(declaration.column))
        return self.leaves[declaration]

    def block(self, declaration: Group) -> Block:
        """Find the groups of every row in a declaration."""
        if isinstance(declaration, Leaf):
            found = self.leaf(declaration)
            rows = np.flatnonzero(found.codes >= 0)
            weights = None if found.weights is None else found.weights[rows]
            return Block(found.values, rows, found.codes[rows], weights)
        if isinstance(declaration, And):
            joined, *others = [self.block(part) for part in declaration.parts]
            for other in others:
                joined = join(joined, other, self.frame.length)
            return joined
        if isinstance(declaration, Pairs):
            sides = [self.block(part) for part in declaration.parts]
            blocks = [
                join(sides[left], sides[right], self.frame.length, (left, right))
                for (left, right), _ in declaration.combinations
            ]
            return interleave(blocks, self.frame.length)[0]
        return self.dense_block(declaration)

    def dense_block(self, declaration: Group) -> Block:
        """Find the groups of every row in ``|`` or ``~``, group by group."""
        rows: list[Integers] = [np.zeros(0, dtype=np.int64)]
        codes: list[Integers] = [np.zeros(0, dtype=np.int64)]
        weights: list[Floats] = [np.zeros(0)]
        # The leaves are read even from a frame without rows, so that an absent column is an error.
        for column in declaration.columns:
            self.column(column)
        for low in range(0, self.frame.length, _CHUNK):
            part = slice(low, min(low + _CHUNK, self.frame.length))
            dense = self.dense(declaration, part)
            row, code = np.nonzero(dense > 0.0)
            rows.append(row + low)
            codes.append(code)
            weights.append(dense[row, code])
        values = [(number,) for number in range(len(declaration.names))]
        return Block(values, np.concatenate(rows), np.concatenate(codes), np.concatenate(weights))

    def dense(self, declaration: Group, part: slice) -> Floats:
        """Give rows by groups of a closed family, 0 where a row is not in the group."""
        if isinstance(declaration, Leaf):
            found = self.leaf(declaration)
            codes = found.codes[part]
            dense = np.zeros((len(codes), len(found.values)))
            rows = np.flatnonzero(codes >= 0)
            dense[rows, codes[rows]] = 1.0 if found.weights is None else found.weights[part][rows]
            return dense
        sides = [self.dense(member, part) for member in declaration.members]
        if isinstance(declaration, Not):
            complement = 1.0 - sides[0]
            for column in declaration.columns:
                missing = self.column(column).missing
                if missing is not None:
                    complement[missing[part]] = 0.0
            return complement
        if isinstance(declaration, Pairs):
            two = [_outer(pair, False) for pair in itertools.combinations(sides, 2)]
            return np.concatenate(two, axis=1)
        return _outer(sides, isinstance(declaration, Or))


def _outer(sides: Sequence[Floats], union: bool) -> Floats:
    combined = sides[0]
    for other in sides[1:]:
        left, right = combined[:, :, None], other[:, None, :]
        both: Floats = np.maximum(left, right) if union else left * right
        combined = both.reshape(len(both), both.shape[1] * both.shape[2])
    return combined


def join(left: Block, right: Block, length: int, which: Values = ()) -> Block:
    """Intersect two blocks row by row, the left one in the outer loop.

    ``which`` comes before the values of both.
    """
    starts = _indptr(right.rows, length)
    repeats = (starts[1:] - starts[:-1])[left.rows]
    of_left = np.repeat(np.arange(len(left.rows)), repeats)
    ends = np.cumsum(repeats)
    within = np.arange(len(of_left)) - np.repeat(ends - repeats, repeats)
    rows = left.rows[of_left]
    of_right = starts[rows] + within
    width = len(right.values)
    keys = left.codes[of_left] * width + right.codes[of_right]
    found, codes = compress(keys, len(left.values) * width)
    values = [
        (*which, *left.values[key // width], *right.values[key % width]) for key in found.tolist()
    ]
    if left.weights is None and right.weights is None:
        return Block(values, rows, codes)
    weights = np.ones(len(rows)) if left.weights is None else left.weights[of_left]
    if right.weights is not None:
        weights = weights * right.weights[of_right]
    kept = np.flatnonzero(weights > 0.0)
    return Block(values, rows[kept], codes[kept], weights[kept])


def interleave(blocks: Sequence[Block], length: int) -> tuple[Block, Integers]:
    """Put blocks into one, row by row and within a row in the order of the blocks."""
    indptr = np.zeros(length + 1, dtype=np.int64)
    counts = [np.bincount(block.rows, minlength=length).astype(np.int64) for block in blocks]
    np.cumsum(sum(counts, np.zeros(length, dtype=np.int64)), out=indptr[1:])
    total = int(indptr[-1])
    codes = np.empty(total, dtype=np.int64)
    weights = None if all(block.weights is None for block in blocks) else np.ones(total)
    values: list[Values] = []
    cursor = indptr[:-1].copy()
    for block, count in zip(blocks, counts, strict=True):
        starts = np.cumsum(count) - count
        place = (cursor - starts)[block.rows] + np.arange(len(block.rows))
        codes[place] = block.codes + len(values)
        if weights is not None and block.weights is not None:
            weights[place] = block.weights
        values.extend(block.values)
        cursor += count
    rows = np.repeat(np.arange(length), indptr[1:] - indptr[:-1])
    return Block(values, rows, codes, weights), indptr


def _indptr(rows: Integers, length: int) -> Integers:
    indptr = np.zeros(length + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=length), out=indptr[1:])
    return indptr


def _by_first_appearance(codes: Integers, size: int) -> tuple[Integers, Integers]:
    """Give the codes that occur, in order of first appearance, and all codes by that order."""
    first = np.full(size, -1, dtype=np.int64)
    # Written from the end, so that the earliest entry of a code is the one that stays.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    order = present[np.argsort(first[present])]
    renumbered = np.full(size, -1, dtype=np.int64)
    renumbered[order] = np.arange(len(order))
    return order, renumbered[codes]


def _leaf(declaration: Leaf, column: Column) -> LeafCodes:
    if isinstance(declaration, By):
        return _by(declaration, column)
    if isinstance(declaration, Cut):
        intervals = [(number,) for number in range(len(declaration.names))]
        return LeafCodes(intervals, _cut(declaration, column))
    if isinstance(declaration, Where):
        holds = _where(declaration, column)
        return LeafCodes([()], np.where(holds, 0, -1).astype(np.int64))
    assert isinstance(declaration, Weight)
    weights = _weights(declaration, column)
    return LeafCodes([()], np.where(weights > 0.0, 0, -1).astype(np.int64), weights)


def _by(declaration: By, column: Column) -> LeafCodes:
    found = [values or ("",) for values in column.answers(declaration.values_of)]
    codes = column.distinct[1]
    number = {values: position for position, values in enumerate(dict.fromkeys(found))}
    if len(number) < len(found):
        # 1, 1.0 and "1" in a column of objects are one group.
        codes = _look_up(np.array([number[values] for values in found], dtype=np.int64), codes)
    return LeafCodes(list(number), codes)


def _cut(declaration: Cut, column: Column) -> Integers:
    if column.numbers is None:
        places = column.answers(CutReader(declaration, as_values).locate)
        table = np.array([-1 if place is None else place for place in places], dtype=np.int64)
        return _look_up(table, column.distinct[1])
    side = "left" if declaration.closed == "right" else "right"
    edges = np.array(declaration.edges)
    found: Integers = np.searchsorted(edges, column.numbers, side=side).astype(np.int64)  # type: ignore[call-overload]
    if column.missing is not None:
        found[column.missing] = -1
    return found


def _where(declaration: Where, column: Column) -> Booleans:
    if column.numbers is None or not declaration.is_ordered:
        table = np.array([bool(holds) for holds in column.answers(declaration.holds)], dtype=bool)
        looked_up: Booleans = _look_up(table.astype(np.int64), column.distinct[1]) == 1
        return looked_up
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}
    holds = np.asarray(compare[declaration.operator](column.numbers, declaration.value))
    if column.missing is not None:
        holds = holds & ~column.missing
    found: Booleans = holds.astype(np.bool_)
    return found


def _weights(declaration: Weight, column: Column) -> Floats:
    values = column.numbers
    if values is None:
        table = np.array([weight or 0.0 for weight in column.answers(declaration.weight_of)])
        codes = column.distinct[1]
        looked_up: Floats = np.append(table, 0.0)[codes]
        return looked_up
    if column.missing is not None:
        values = np.where(column.missing, 0.0, values)
    bad = np.flatnonzero(~((values >= 0.0) & (values <= 1.0)))
    if len(bad):
        row = int(bad[0])
        try:
            declaration.weight_of(column.values[row].item())
        except GroupError as error:
            error.row = row
            raise
    return values


def _look_up(table: Integers, codes: Integers) -> Integers:
    """Take table[codes], with -1 for -1."""
    found: Integers = np.append(table, -1)[codes]
    return found
