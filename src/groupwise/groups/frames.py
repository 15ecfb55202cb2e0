"""Which groups every row of a frame is in, a column at a time."""

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from groupwise.errors import GroupError
from groupwise.groups.algebra import EVERYBODY, And, Group, Leaf, Member, Not, Pairs, Values
from groupwise.groups.columns import Column, Floats, Integers, Table, compress, first_places

# Rows that are taken at a time where every group of a closed family is looked at.
_CHUNK = 1 << 16


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
    first = first_places(merged.codes, len(merged.values))
    present = np.flatnonzero(first >= 0)
    present = present[np.argsort(first[present])]
    renumbered = np.full(len(first), -1, dtype=np.int64)
    renumbered[present] = np.arange(len(present))
    declared = np.repeat(numbers, [len(block.values) for block in blocks])
    members = [member(int(declared[code]), merged.values[code]) for code in present.tolist()]
    weights = merged.weights if merged.weights is not None else np.ones(len(merged.codes))
    return FrameMembership(members, indptr, renumbered[merged.codes], weights)


class FrameReader:
    """Reads declarations off one frame; each leaf once."""

    def __init__(self, frame: Table) -> None:
        self.frame = frame
        self.leaves: dict[Leaf, Block] = {}

    def column(self, name: str) -> Column:
        """Read a group column, or say that it is absent."""
        if name not in self.frame:
            raise GroupError(
                f"The frame has no column {name!r}, which a group declaration reads. "
                "Add the column (null where it is unknown), or drop that declaration."
            )
        return self.frame.column(name)

    def block(self, declaration: Group) -> Block:
        """Find the groups of every row in a declaration."""
        if isinstance(declaration, Leaf):
            if declaration not in self.leaves:
                self.leaves[declaration] = _leaf(declaration, self.column(declaration.column))
            return self.leaves[declaration]
        sides = [self.block(part) for part in declaration.members]
        if isinstance(declaration, And):
            return functools.reduce(partial(join, length=self.frame.length), sides)
        if isinstance(declaration, Pairs):
            blocks = [
                join(sides[left], sides[right], self.frame.length, (left, right))
                for left, right in declaration.combinations
            ]
            return interleave(blocks, self.frame.length)[0]
        return self.family(declaration, sides)

    def family(self, declaration: Group, sides: Sequence[Block]) -> Block:
        """Find the groups of every row in ``|`` or ``~``, group by group."""
        pairs = zip(sides, declaration.members, strict=True)
        numbered = [_numbered(side, member.every) for side, member in pairs]
        missing = []
        if isinstance(declaration, Not):
            # The complement of what is unknown is unknown: every column must be there.
            missing = [self.column(name).missing for name in declaration.columns]
        found = []
        for low in range(0, max(self.frame.length, 1), _CHUNK):
            part = slice(low, min(low + _CHUNK, self.frame.length))
            dense = functools.reduce(_union, [_dense(side, part) for side in numbered])
            if isinstance(declaration, Not):
                dense = 1.0 - dense
            for absent in missing:
                if absent is not None:
                    dense[absent[part]] = 0.0
            rows, codes = np.nonzero(dense > 0.0)
            found.append((rows + low, codes, dense[rows, codes]))
        return Block(declaration.every, *map(np.concatenate, zip(*found, strict=True)))


def _numbered(block: Block, every: Sequence[Values]) -> Block:
    """The same block with every group of a closed family in it, in the order of the names."""
    number = {values: place for place, values in enumerate(every)}
    places = np.array([number[values] for values in block.values], dtype=np.int64)
    return Block(every, block.rows, places[block.codes], block.weights)


def _dense(block: Block, part: slice) -> Floats:
    """Give some rows by all groups, 0 where a row is not in the group."""
    dense = np.zeros((part.stop - part.start, len(block.values)))
    kept = slice(*np.searchsorted(block.rows, (part.start, part.stop)).tolist())
    weights = 1.0 if block.weights is None else block.weights[kept]
    dense[block.rows[kept] - part.start, block.codes[kept]] = weights
    return dense


def _union(left: Floats, right: Floats) -> Floats:
    """The greater of the weights in every two groups."""
    both: Floats = np.maximum(left[:, :, None], right[:, None, :])
    return both.reshape(len(both), both.shape[1] * both.shape[2])


def _leaf(declaration: Leaf, column: Column) -> Block:
    """Find the group of every row in a leaf: from numbers where it can be, or distinct values."""
    numbers, intervals = column.numbers, declaration.intervals
    if declaration.weighs and numbers is not None:
        weights = numbers if column.missing is None else np.where(column.missing, 0.0, numbers)
        if ((weights >= 0.0) & (weights <= 1.0)).all():  # or asking each value says what is wrong
            rows = np.flatnonzero(weights > 0.0)
            return Block([()], rows, np.zeros(len(rows), dtype=np.int64), weights[rows])
    answers: Sequence[tuple[Values, float] | None]
    if intervals is None or numbers is None:
        answers, positions = column.answers(declaration.read), column.distinct[1]
    else:
        answers = [None if values is None else (values, 1.0) for values in intervals.groups]
        positions = np.searchsorted(intervals.edges, numbers, side=intervals.side)
        if column.missing is not None:
            positions[column.missing] = -1
    # 1, 1.0 and "1" in a column of objects are one group.
    distinct = dict.fromkeys(answer[0] for answer in answers if answer is not None)
    number = {values: code for code, values in enumerate(distinct)}
    table = [-1 if answer is None else number[answer[0]] for answer in answers]
    codes = np.array([*table, -1], dtype=np.int64)[positions]
    rows = np.flatnonzero(codes >= 0)
    if not declaration.weighs:
        return Block(list(number), rows, codes[rows])
    of_answers = np.array([0.0 if answer is None else answer[1] for answer in answers])
    return Block(list(number), rows, codes[rows], of_answers[positions[rows]])


def join(left: Block, right: Block, length: int, which: Values = ()) -> Block:
    """Intersect two blocks row by row, the left one in the outer loop.

    ``which`` comes before the values of both.
    """
    counts = np.bincount(right.rows, minlength=length)
    repeats = counts[left.rows]
    of_left = np.repeat(np.arange(len(left.rows)), repeats)
    within = np.arange(len(of_left)) - np.repeat(np.cumsum(repeats) - repeats, repeats)
    rows = left.rows[of_left]
    of_right = (np.cumsum(counts) - counts)[rows] + within
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
