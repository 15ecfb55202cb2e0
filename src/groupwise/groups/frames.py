"""Which groups every row of a frame is in, a column at a time."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..errors import GroupError
from .base import ALWAYS_ON, Group, Leaf
from .columns import Booleans, Column, Floats, Integers, Table, compress
from .compounds import And, Not, Or, Pairs, needs_parentheses
from .leaves import By, Cut, Weight, Where
from .rows import CutReader

# Rows that are taken at a time where every group of a closed family is looked at.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class FrameMembership:
    """The groups of every row: row t is in names[indices[indptr[t]:indptr[t + 1]]].

    `names` are in order of first appearance; `weights` stand beside `indices`.
    """

    names: list[str]
    indptr: Integers
    indices: Integers
    weights: Floats


@dataclass(frozen=True)
class Block:
    """The groups of every row in one declaration: an entry per row and group, rows ascending."""

    names: Sequence[str]
    rows: Integers
    codes: Integers
    weights: Floats | None = None
    """None where every weight is 1."""


@dataclass(frozen=True)
class LeafCodes:
    """The one group of each row in a leaf (-1 for none) and its weight (None: always 1)."""

    names: Sequence[str]
    codes: Integers
    weights: Floats | None = None


def membership(declarations: Sequence[Group], always_on: bool, frame: Table) -> FrameMembership:
    """Find the groups of every row of a frame.

    >>> import polars
    >>> from groupwise.groups import by
    >>> frame = Table(polars.DataFrame({"sex": ["male", "female"]}))
    >>> found = membership([by("sex")], True, frame)
    >>> found.names, found.indices.tolist()
    (['sex=male', 'always_on', 'sex=female'], [0, 1, 2, 1])
    """
    read = FrameReader(frame)
    blocks = [read.block(declaration) for declaration in declarations]
    if always_on:
        everyone = np.arange(frame.length, dtype=np.int64)
        blocks.append(Block([ALWAYS_ON], everyone, np.zeros(frame.length, dtype=np.int64)))
    merged, indptr = interleave(blocks, frame.length)
    names, indices = _by_first_appearance(merged, indptr)
    weights = merged.weights if merged.weights is not None else np.ones(len(indices))
    return FrameMembership(names, indptr, indices, weights)


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
            return Block(found.names, rows, found.codes[rows], weights)
        if isinstance(declaration, And):
            joined, *others = [self.side(part) for part in declaration.parts]
            for other in others:
                joined = join(joined, other, self.frame.length)
            return joined
        if isinstance(declaration, Pairs):
            sides = [self.side(part) for part in declaration.parts]
            blocks = [
                join(left, right, self.frame.length)
                for left, right in itertools.combinations(sides, 2)
            ]
            return interleave(blocks, self.frame.length)[0]
        return self.dense_block(declaration)

    def side(self, part: Group) -> Block:
        """Read one part of an intersection, its names ready to be joined."""
        found = self.block(part)
        if not needs_parentheses(part, "&"):
            return found
        names = [f"({name})" for name in found.names]
        return Block(names, found.rows, found.codes, found.weights)

    def dense_block(self, declaration: Group) -> Block:
        """Find the groups of every row in `|` or `~`, group by group."""
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
        return Block(
            declaration.names, np.concatenate(rows), np.concatenate(codes), np.concatenate(weights)
        )

    def dense(self, declaration: Group, part: slice) -> Floats:
        """Give rows by groups of a closed family, 0 where a row is not in the group."""
        if isinstance(declaration, Leaf):
            found = self.leaf(declaration)
            codes = found.codes[part]
            dense = np.zeros((len(codes), len(found.names)))
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


def join(left: Block, right: Block, length: int) -> Block:
    """Intersect two blocks row by row, the left one in the outer loop."""
    starts = _indptr(right.rows, length)
    repeats = (starts[1:] - starts[:-1])[left.rows]
    of_left = np.repeat(np.arange(len(left.rows)), repeats)
    ends = np.cumsum(repeats)
    within = np.arange(len(of_left)) - np.repeat(ends - repeats, repeats)
    rows = left.rows[of_left]
    of_right = starts[rows] + within
    size = len(left.names) * len(right.names)
    keys = left.codes[of_left] * len(right.names) + right.codes[of_right]
    found, codes = compress(keys, size)
    names = [
        f"{left.names[key // len(right.names)]} & {right.names[key % len(right.names)]}"
        for key in found.tolist()
    ]
    if left.weights is None and right.weights is None:
        return Block(names, rows, codes)
    weights = np.ones(len(rows)) if left.weights is None else left.weights[of_left]
    if right.weights is not None:
        weights = weights * right.weights[of_right]
    kept = np.flatnonzero(weights > 0.0)
    return Block(names, rows[kept], codes[kept], weights[kept])


def interleave(blocks: Sequence[Block], length: int) -> tuple[Block, Integers]:
    """Put blocks into one, row by row and within a row in the order of the blocks."""
    indptr = np.zeros(length + 1, dtype=np.int64)
    counts = [np.bincount(block.rows, minlength=length).astype(np.int64) for block in blocks]
    np.cumsum(sum(counts, np.zeros(length, dtype=np.int64)), out=indptr[1:])
    total = int(indptr[-1])
    codes = np.empty(total, dtype=np.int64)
    weights = None if all(block.weights is None for block in blocks) else np.ones(total)
    names: list[str] = []
    cursor = indptr[:-1].copy()
    for block, count in zip(blocks, counts, strict=True):
        starts = np.cumsum(count) - count
        place = (cursor - starts)[block.rows] + np.arange(len(block.rows))
        codes[place] = block.codes + len(names)
        if weights is not None and block.weights is not None:
            weights[place] = block.weights
        names.extend(block.names)
        cursor += count
    rows = np.repeat(np.arange(length), indptr[1:] - indptr[:-1])
    return Block(names, rows, codes, weights), indptr


def _indptr(rows: Integers, length: int) -> Integers:
    indptr = np.zeros(length + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=length), out=indptr[1:])
    return indptr


def _by_first_appearance(block: Block, indptr: Integers) -> tuple[list[str], Integers]:
    """Number names by where they first occur; the same name twice in a row is an error."""
    number = {name: position for position, name in enumerate(dict.fromkeys(block.names))}
    codes = block.codes
    if len(number) < len(block.names):
        codes = np.array([number[name] for name in block.names], dtype=np.int64)[codes]
        _check_distinct(list(number), block.rows, codes)
    first = np.full(len(number), -1, dtype=np.int64)
    # Written from the end, so that the earliest entry of a code is the one that stays.
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    present = np.flatnonzero(first >= 0)
    order = present[np.argsort(first[present])]
    renumbered = np.full(len(number), -1, dtype=np.int64)
    renumbered[order] = np.arange(len(order))
    listed = list(number)
    return [listed[code] for code in order.tolist()], renumbered[codes]


def _check_distinct(names: list[str], rows: Integers, codes: Integers) -> None:
    order = np.lexsort((codes, rows))
    same = (np.diff(rows[order]) == 0) & (np.diff(codes[order]) == 0)
    if same.any():
        twice = order[int(np.flatnonzero(same)[0])]
        raise GroupError(twice_message(names[int(codes[twice])]), row=int(rows[twice]))


def twice_message(name: str) -> str:
    """Say that a row is in two groups of the same name."""
    return (
        f"Two declarations put the row in a group named {name!r}. "
        "Group names must be distinct: drop one declaration, or rename a column or label."
    )


def _leaf(declaration: Leaf, column: Column) -> LeafCodes:
    if isinstance(declaration, By):
        return _by(declaration, column)
    if isinstance(declaration, Cut):
        return LeafCodes(declaration.names, _cut(declaration, column))
    if isinstance(declaration, Where):
        holds = _where(declaration, column)
        return LeafCodes(declaration.names, np.where(holds, 0, -1).astype(np.int64))
    assert isinstance(declaration, Weight)
    weights = _weights(declaration, column)
    return LeafCodes(declaration.names, np.where(weights > 0.0, 0, -1).astype(np.int64), weights)


def _by(declaration: By, column: Column) -> LeafCodes:
    names = [name if name is not None else "" for name in column.answers(declaration.name_of)]
    codes = column.distinct[1]
    number = {name: position for position, name in enumerate(dict.fromkeys(names))}
    if len(number) < len(names):
        # 1, 1.0 and "1" in a column of objects are one group.
        codes = _look_up(np.array([number[name] for name in names], dtype=np.int64), codes)
    return LeafCodes(list(number), codes)


def _cut(declaration: Cut, column: Column) -> Integers:
    if column.numbers is None:
        places = column.answers(CutReader(declaration).locate)
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
