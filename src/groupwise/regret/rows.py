"""The rows of a stream that are kept, for hindsight that has no finite sums.

Of every group the first ``limit`` rows are kept, and saved with the model. A replay has all rows in
memory anyway: as long as there are not too many, the others are held on to as well, until the model
is saved and loaded. A row is kept once, however many groups it is in.
"""

import copy
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import LARGEST, Flags, Index, Vector, enlarge
from groupwise.kernels.cells import Cells
from groupwise.kernels.columns import stranger

AT_ONCE = 1024
"""Single rounds that are brought together."""
BUDGET = 1 << 25
"""Numbers in rows beyond those that are kept for good: some 500 megabytes with their positions."""


class Block(NamedTuple):
    """Consecutive rows: features, labels, and the groups that they are in."""

    cells: Cells
    labels: Vector
    member_indptr: Index
    groups: Index
    weights: Vector
    kept: Flags
    """Which rows are kept for good."""

    def some(self, rows: Flags) -> "Block":
        """Some of the rows."""
        cells, full = self.cells, self.cells.full
        numbers = np.repeat(rows, np.diff(cells.indptr))
        members = np.repeat(rows, np.diff(self.member_indptr))
        return Block(
            Cells(
                _ends(np.diff(cells.indptr)[rows]),
                cells.indices[numbers],
                cells.values[numbers],
                full[rows],
            ),
            self.labels[rows],
            _ends(np.diff(self.member_indptr)[rows]),
            self.groups[members],
            self.weights[members],
            self.kept[rows],
        )


def _ends(sizes: Index) -> Index:
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _positions(cells: Cells) -> Index:
    """The column of every value."""
    sizes = np.diff(cells.indptr)
    from_start = np.arange(cells.values.size) - np.repeat(cells.indptr[:-1], sizes)
    positions: Index = np.where(np.repeat(cells.full, sizes), from_start, cells.indices)
    return positions


def joined(blocks: list[Block]) -> Block:
    """Several blocks as one."""

    def all_of(parts: list[Any]) -> Any:
        return np.concatenate(parts)

    cells = [block.cells for block in blocks]
    return Block(
        Cells(
            _ends(all_of([np.diff(one.indptr) for one in cells])),
            *(all_of([getattr(one, name) for one in cells]) for name in Cells._fields[1:]),
        ),
        all_of([block.labels for block in blocks]),
        _ends(all_of([np.diff(block.member_indptr) for block in blocks])),
        *(all_of([getattr(block, name) for block in blocks]) for name in Block._fields[3:]),
    )


class KeptRows:
    """The first ``limit`` rows of every group and, while there is room, those of replays.

    >>> rows = KeptRows(limit=1)
    >>> for label in (0.0, 1.0):
    ...     rows.add(np.array([0]), np.ones(1), np.array([0, 2]), np.array([1.0, 3.0]), label)
    >>> features, labels, weights = rows.of(0)
    >>> features.toarray(), labels
    (array([[1., 0., 3.],
           [1., 0., 3.]]), array([0., 1.]))
    """

    def __init__(self, limit: int, largest: float = 1.0) -> None:
        self.limit = limit
        self.largest = largest
        """No label is larger."""
        self._blocks: list[Block] = []
        self._recent: list[tuple[Index, Vector, Index, Vector, float]] = []
        self._counts = np.zeros(0, dtype=np.int64)
        """How many rows of each group are here, as far as they matter."""
        self._more = 0
        """How many numbers there are in rows that are not kept for good; -1: there may be none."""
        self._sorted: tuple[Block, Index, Index] | None = None

    def add(
        self, groups: Index, weights: Vector, indices: Index, values: Vector, label: float
    ) -> None:
        """Keep the row of a single round: one of its groups has had fewer than ``limit``."""
        self._recent.append((groups, weights, indices, values, label))
        if len(self._recent) >= AT_ONCE:
            self._gather()

    def _gather(self) -> None:
        """Bring single rounds together."""
        if not self._recent:
            return
        groups, weights, indices, values, labels = zip(*self._recent, strict=True)
        self._recent = []
        rows = len(labels)
        indptr, members = (_ends(np.array([one.size for one in x])) for x in (indices, groups))
        self._append(
            Block(
                Cells(indptr, np.concatenate(indices), np.concatenate(values), _none(rows)),
                np.array(labels),
                members,
                np.concatenate(groups),
                np.concatenate(weights),
                np.ones(rows, dtype=np.bool_),
            )
        )

    def _append(self, block: Block) -> None:
        self._blocks.append(block)
        self._sorted = None
        if block.groups.size:
            self._room(int(block.groups.max()) + 1)
            self._counts += np.bincount(block.groups, minlength=self._counts.size)

    def _room(self, groups: int) -> None:
        if groups > self._counts.size:
            self._counts = enlarge(self._counts, (2 * groups,))

    def add_rows(
        self,
        cells: Cells,
        member_indptr: Index,
        groups: Index,
        weights: Vector,
        labels: Vector,
        parts: Any,
    ) -> None:
        """Hold on to the rows of a chunk, ``parts`` of which are by group."""
        self._gather()
        if groups.size == 0:
            return
        if cells.full.all():  # they need no positions, which are half of what they take
            cells = cells._replace(indices=np.broadcast_to(np.int64(0), cells.values.shape))
        self._room(int(groups.max()) + 1)
        sizes = np.diff(parts.starts)
        before = np.repeat(self._counts[parts.groups] - parts.starts[:-1], sizes)
        early = before + np.arange(before.size) < self.limit
        kept = np.zeros(labels.size, dtype=np.bool_)
        kept[parts.rows[early]] = True
        block = Block(cells, labels, member_indptr, groups, weights, kept)
        if self._more >= 0:
            self._more += int(np.diff(cells.indptr)[~kept].sum()) + labels.size
        if self._more > BUDGET:
            self._more = -1
            self._blocks = [one.some(one.kept) for one in self._blocks]
        if self._more < 0:
            block = block.some(kept)
            self._room(int(groups.max()) + 1)
        self._append(block)

    def of(self, group: int) -> tuple[Any, Vector, Vector]:
        """A group's rows, in order: features as a sparse matrix, labels and weights."""
        from scipy.sparse import csr_array

        self._gather()
        if self._sorted is None:
            blocks = [block for block in self._blocks if block.labels.size]
            if not blocks:
                return csr_array((0, 0)), np.zeros(0), np.zeros(0)
            whole = joined(blocks)
            self._blocks = [whole]
            order = np.argsort(whole.groups, kind="stable")
            self._sorted = whole, order, whole.groups[order]
        whole, order, groups = self._sorted
        entries = order[slice(*np.searchsorted(groups, [group, group + 1]))]
        rows = np.searchsorted(whole.member_indptr, entries, "right") - 1
        mask = np.zeros(whole.labels.size, dtype=np.bool_)
        mask[rows] = True
        cells = whole.some(mask).cells
        positions = _positions(cells)
        shape = rows.size, int(positions.max(initial=-1)) + 1
        matrix = csr_array((cells.values.copy(), positions, cells.indptr), shape=shape)
        matrix.eliminate_zeros()
        return matrix, whole.labels[rows], whole.weights[entries]

    def save(self) -> dict[str, Any]:
        """Those that are kept for good, as arrays by name."""
        self._gather()
        blocks = [block.some(block.kept) for block in self._blocks]
        empty = Block(
            Cells(_ends(_NO), _NO, np.zeros(0), _none(0)),
            np.zeros(0),
            _ends(_NO),
            _NO,
            np.zeros(0),
            _none(0),
        )
        whole = joined([empty, *blocks])
        values = whole.cells.values
        there = np.concatenate([[0], np.cumsum(values != 0.0)])
        return {
            "indptr": there[whole.cells.indptr].astype(np.int64),
            "indices": _positions(whole.cells)[values != 0.0],
            "values": values[values != 0.0],
            "labels": whole.labels,
            "members": whole.member_indptr,
            "groups": whole.groups,
            "weights": whole.weights,
        }

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave, checked."""
        indptr, members = arrays["indptr"], arrays["members"]
        labels, rows = arrays["labels"], arrays["labels"].size
        if labels.shape != (rows,) or (labels < 0.0).any() or (labels > self.largest).any():
            raise ValueError("labels of the kept rows are none")
        for ends, size in ((indptr, arrays["values"].size), (members, arrays["groups"].size)):
            if ends.shape != (rows + 1,) or ends.dtype != np.int64:
                raise ValueError("the kept rows do not fit")
            if ends[0] != 0 or ends[-1] != size or (np.diff(ends) < 0).any():
                raise ValueError("the kept rows are not one after the other")
        fits = (("indices", "values", features), ("groups", "weights", groups))
        for name, other, most in fits:
            numbers = arrays[name]
            if numbers.shape != arrays[other].shape or numbers.dtype != np.int64:
                raise ValueError(f"{name} of the kept rows do not fit")
            if ((numbers < 0) | (numbers >= most)).any():
                raise ValueError(f"{name} of the kept rows are beyond what there is")
        for name in ("labels", "values", "weights"):
            if arrays[name].dtype != np.float64 or (np.abs(arrays[name]) > LARGEST).any():
                raise ValueError(f"{name} of the kept rows are beyond what there is")
        if (arrays["weights"] <= 0.0).any():
            raise ValueError("a weight of the kept rows is not above 0")
        pairs = np.repeat(np.arange(rows), np.diff(members)) * groups + arrays["groups"]
        if np.unique(pairs).size < pairs.size:
            raise ValueError("a kept row is twice in a group")
        cells = Cells(indptr, arrays["indices"], arrays["values"], _none(rows))
        kept = np.ones(rows, dtype=np.bool_)
        if rows:
            self._append(
                Block(cells, arrays["labels"], members, arrays["groups"], arrays["weights"], kept)
            )

    def check(self, seen: int) -> None:
        """Raise ValueError unless groups have all features of their rows (``kernels.columns``)."""
        for cells, _, members, groups, _, _ in self._blocks:
            if stranger(seen, cells.indptr, cells.indices, cells.values, members, groups) >= 0:
                raise ValueError("a kept row has a feature that its group has not")

    def __deepcopy__(self, memo: Any) -> "KeptRows":
        copied = copy.copy(self)  # nobody changes a block
        vars(copied).update(
            _blocks=list(self._blocks), _recent=list(self._recent), _counts=self._counts.copy()
        )
        return copied


_NO: Index = np.zeros(0, dtype=np.int64)


def _none(rows: int) -> Flags:
    return np.zeros(rows, dtype=np.bool_)
