"""Compiled learners: a table of axes and two kernels each, run together without the interpreter."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index, Vector, capacity
from groupwise.errors import FeatureError, TooLargeError
from groupwise.kernels import columns, stretch
from groupwise.kernels.cells import of_sparse
from groupwise.kernels.compiled import Kernel, ready
from groupwise.kernels.layout import LANES, Layout, address, room, rooms
from groupwise.learners.recorders import LinearRecorder, Recorder
from groupwise.losses import Loss
from groupwise.protocols import Awake, Bank, Hindsight, Row
from groupwise.store import Arrays, Store

NONE: Index = np.zeros(0, dtype=np.int64)
NOBODY = -1


def joint(bounds: "Sequence[Vector | None]") -> Vector | None:
    """The bounds of several banks together; None where one has none."""
    known = [part for part in bounds if part is not None]
    return np.concatenate(known) if known and len(known) == len(bounds) else None


class CompiledBank:
    """One kind of compiled learner, a copy for every group. To be derived from.

    Parameters
    ----------
    columns : which of a group's experts these are.
    parameters : what the kernels need of the configuration, as ``place.parameters``.
    """

    name: ClassVar[str]
    """What its arrays are called in a file."""
    layout: ClassVar[Layout]
    """The table of a group's record (``kernels.layout``)."""
    advise: ClassVar[Kernel]
    """Advice on the one round of a stretch (``kernels.stretch``); changes nothing."""
    learn: ClassVar[Kernel]
    """Advice, then the update, for every round of a stretch."""
    lead: ClassVar[Kernel | None] = None
    """Writes what the always-on group's learners think to ``stretch.leading``, where those of other
    groups lean to it; ``learn`` does so before every update. None where nobody leans."""
    nodes: int = 1
    """How many of the kernels' learners make one of ``columns``: its chain of dichotomies."""

    def __init__(self, columns: Sequence[int], parameters: ArrayLike) -> None:
        self.columns = list(columns)
        self.parameters = np.ascontiguousarray(parameters, dtype=np.float64).ravel()
        self.store = self.fresh()

    def kernels(self) -> tuple[Kernel, Kernel]:
        """For advice and for learning: those that this configuration needs."""
        return self.advise, self.learn

    @property
    def size(self) -> int:
        """How many learners the kernels see in a group."""
        return len(self.columns) * self.nodes

    def fresh(self) -> Store:
        """Room for learners that have seen nothing."""
        return Store(self.layout, self.size, 0, self.parameters, self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.store.kept_by(self)

    def work_size(self, width: int) -> int:
        """How many numbers the kernels work with, in ``stretch.work``, for groups so wide."""
        return width

    def recorder(self, loss: Loss) -> Recorder | None:
        """What keeps the hindsight of this kind's own class; None where it has none."""
        return None

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.store = self.fresh()

    def upkeep(self, group: int) -> None:
        """What is rarely needed; called where a kernel calls ``place.upkeep``."""

    def begun(self, groups: Index) -> None:
        """Some groups are new: their records hold the first values."""

    def opened(self, groups: Index, first: int) -> None:
        """Some groups have new columns, from ``first`` on, which are 0."""

    def completed(self, arrays: Arrays, counts: Index) -> Arrays:
        """The arrays of a file, checked; with what an older version did not write."""
        return arrays

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return None

    measured = True

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """See :meth:`groupwise.protocols.Bank.a_priori`."""
        return None


class Crew(Bank):
    """The compiled banks of a model and what records for hindsight: one call for all of them.

    Parameters
    ----------
    banks : the compiled banks.
    loss : the model's; with square loss hindsight is that of the best linear model.
    intercept : is there a feature that is 1 in every row?
    always_on : is the last awake group of every row the always-on one?
    """

    compiled = True

    def __init__(
        self,
        banks: Sequence[CompiledBank],
        loss: Loss,
        intercept: bool = False,
        always_on: bool = False,
    ) -> None:
        self.banks = list(banks)
        self.always_on = always_on
        self.columns = [column for bank in banks for column in bank.columns]
        self.nodes = loss.nodes
        own = [found for bank in banks if (found := bank.recorder(loss)) is not None]
        linear = LinearRecorder(loss, intercept) if loss.linear_hindsight else Recorder()
        self.recorder = own[0] if own else linear
        self.seen = Store(columns.COLUMNS, keeper=self)
        """The columns of each group: the features that its own rows have had."""
        self._room = (1, room(1))
        self.restart()

    @property
    def comparator(self) -> str:  # type: ignore[override]
        """What ``hindsight`` is the loss of."""
        return self.recorder.comparator

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        for bank in self.banks:
            bank.restart()
        self._gather()

    def _gather(self) -> None:
        """The message for the kernels: who is to be called, and the stretch of single rounds."""
        self.recorder.supply()
        learned = [bank.store for bank in self.banks]
        recorded = list(self.recorder.stores.values())
        sizes = [len(bank.columns) * self.nodes for bank in self.banks]
        firsts = np.cumsum([0, *sizes]).tolist()[:-1]
        self._experts = sum(sizes)
        kernels = [[kernel.pointer for kernel in bank.kernels()] for bank in self.banks]
        parts = list(zip(learned, *zip(*kernels, strict=True), firsts, strict=True))
        silent = [
            (store, 0, kernel.pointer, 0)
            for store, kernel in zip(recorded, self.recorder.kernels, strict=True)
        ]
        parts = [*parts, *silent] if self.recorder.afterwards else [*silent, *parts]
        self._stores = [part[0] for part in parts]
        tells = {id(bank.store): bank.lead.pointer for bank in self.banks if bank.lead is not None}
        lead = [tells.get(id(store), 0) for store in self._stores]
        self._leading = max((bank.size for bank in self.banks if bank.lead is not None), default=0)
        awake, features = self._room
        self._one = np.arange(awake), np.zeros(awake, dtype=np.int64), *self._workplace()
        entries, rows, work, marks = self._one
        counts, places, indices = (np.zeros(n, dtype=np.int64) for n in (awake, awake, features))
        values, positions = np.zeros(features), np.zeros(awake * features, dtype=np.int64)
        named, leading = np.zeros_like(positions), np.zeros(self._leading * features)
        indptr, label, stands_for = np.zeros(2, dtype=np.int64), np.zeros(1), np.ones(1)
        none, anchors = np.zeros(0), np.zeros(2 * awake * self.recorder.each)
        cells: Any = indptr, values, places, positions
        leads: Any = NOBODY, features, leading, 0, 0, named
        alone: Any = (entries, label, *cells, stands_for, marks, named, features, awake)
        self._alone = stretch.STRETCH.pack(
            stretch.Stretch(
                *(0, 0, 0, 0, 0, max(1, self._experts), entries, rows, none, label),
                *(*cells, none, anchors, stands_for, work, marks),
                *leads,
            )
        )
        self._anchors, self._thoughts = anchors, leading
        self._crew = stretch.Crew(
            len(self._stores),
            stretch.words([advise for _, advise, _, _ in parts]),
            stretch.words([learn for _, _, learn, _ in parts]),
            stretch.words([store.address for store in self._stores]),
            np.array([first for *_, first in parts], dtype=np.int64),
            stretch.words(lead),
            int(self.always_on and self._leading > 0),
            self.seen.address,
            *(counts, indices, np.zeros(1, dtype=np.bool_)),
            self._alone,
            *alone,
        )
        self._message = stretch.CREW.pack(self._crew)
        self._address = address(self._message)
        self._said = np.empty((3, awake, self._experts))  # of a label; who needs it copies it
        self._advise, self._step = ready(stretch.SIGNATURES)

    def _workplace(self) -> tuple[Vector, Index]:
        """Room for the kernels to work in, for groups as wide as the widest."""
        self._widest = max([0, *(int(x.width.max(initial=0)) for x in self._stores)])
        size = max([0, *(bank.work_size(self._widest) for bank in self.banks)])
        return np.empty(size), np.empty(stretch.MARKS, dtype=np.int64)

    def reserve(self, groups: Index, features: int) -> None:
        """Make room for these groups with the columns that they have, and for rows so long."""
        self.seen.reserve(groups, LANES)
        counts = np.empty_like(groups)
        columns.count(self.seen.address, groups, counts)
        self._fit(groups, counts, features)
        self._extend(1, room(features))

    def _fit(self, groups: Index, counts: Index, features: int) -> None:
        """Make room for so many columns, of so many features, in the records of groups."""
        wanted = rooms(np.where(4 * counts < 3 * features, counts, features))
        try:
            for store in self._stores:
                store.reserve(groups, wanted, room(features))
        except (MemoryError, OSError) as problem:
            raise FeatureError(
                f"There is no memory for {features:,} features: the learner of a group holds a "
                "number for every two that its rows have had. Name those to use with "
                "features=[...], or let values share some with gw.hashed(n)."
            ) from problem
        if any(x.width.max(initial=0) > self._widest for x in self._stores):
            self._gather()

    def _extend(self, awake: int, features: int) -> None:
        """Room to lay out rows of so many features, of so many groups."""
        groups, longest = self._room
        if awake > groups or features > longest:
            self._room = capacity(awake, groups), capacity(features, longest)
            self._gather()

    def _make_room(self, awake: Awake, row: Row) -> None:
        """Make room for a row and its groups."""
        groups, counts = awake.groups, np.empty_like(awake.groups)
        self.reserve(groups, len(row.names))
        self._extend(len(groups), 1)
        _, indices, values, full = of_sparse(np.array([0, row.values.size]), *row[:2])
        positions = np.empty_like(indices)
        columns.counted(self.seen.address, groups, indices, values, full[0], positions, counts)
        self.seen.reserve(groups, rooms(counts), room(len(row.names)))
        self._fit(groups, counts, len(row.names))

    def lay_out(self, rounds: Any) -> tuple[Index, Index, Index, Index, Index]:
        """Where the cells of every round lie among its group's columns, some of which are new."""
        self.recorder.keep_all(rounds)
        cells, (groups, starts, _, rows) = rounds.cells, rounds.parts
        counts = np.empty_like(groups)
        self.seen.reserve(groups, LANES)
        state, features = self.seen.address, len(rounds.names)
        columns.most_columns(state, groups, starts, rows, cells.indptr, features, counts)
        self.seen.reserve(groups, rooms(counts))
        places = np.empty_like(rows)
        positions = np.empty(int(np.diff(cells.indptr)[rows].sum()), dtype=np.int64)
        columns.lay_out(state, groups, starts, rows, *cells, places, positions, counts)
        origins = np.zeros_like(counts)
        named = NONE
        if self._leading:
            origins = np.cumsum(counts) - counts
            named = np.empty(int(counts.sum()), dtype=np.int64)
            columns.names(state, groups, counts, origins, named)
        return places, positions, counts, origins, named

    def begun(self, groups: Index) -> None:
        """Some groups are new: they have no columns yet."""

    def opened(self, groups: Index, first: int) -> None:
        """Some groups have room for more columns."""
        columns.rehash(self.seen.address, groups)

    def advice(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group as ``said[0]``; ``said[1]`` is for the weights."""
        said = np.empty((2, len(awake.groups), self._experts))
        place = awake.address or stretch.addressed(awake)
        indices, values, _, _, _ = row
        while answer := self._advise(self._address, place, indices, values, said):
            if answer == stretch.TOO_LARGE:
                raise TooLargeError("A feature is not a finite number of at most 1e100.")
            self._make_room(awake, row)
        return said

    def updated(
        self, number: int, attempt: int, awake: Awake, row: Row, label: float, stands_for: float
    ) -> Vector:
        """The same as of now, with room for losses; then learners and sums are updated."""
        place = awake.address or stretch.addressed(awake)
        indices, values, _, _, _ = row
        while True:
            answer = self._step(
                self._address, place, indices, values, label, stands_for, self._said
            )
            if answer == stretch.READY:
                return self._said
            if answer == stretch.TO_KEEP:
                self.recorder.keep(awake, (indices, values), label, stands_for)
                return self._said
            self._make_room(awake, row)

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group. Changes nothing."""
        return self._by_node(self.advice(number, attempt, awake, row)[0])

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Every awake group's learners learn from a label, and so do the sums."""
        self.updated(0, 0, awake, row, label, 1.0)

    def step(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Vector:
        """The advice as of now, then the update, then hindsight."""
        said = self.updated(number, attempt, awake, row, label, stands_for)
        return self._by_node(said[0, : len(awake.groups)])

    def _by_node(self, advice: Vector) -> Vector:
        """Advice with a last axis for the nodes of chains, where there are such."""
        shape = len(advice), len(self.columns), self.nodes
        return advice if self.nodes == 1 else advice.reshape(shape)

    def run(self, rounds: Any, out: Vector) -> None:
        """Take groups off the queue of a stretch of the stream until it is empty.

        Where others lean to the always-on group, whoever is first runs that one before all others.
        """
        cells, parts = rounds.cells, rounds.parts
        places, positions, counts, origins, named = rounds.laid_out[self]
        work, marks = self._workplace()  # kept until the kernels are through
        anchors = np.empty(2 * parts.entries.size * self.recorder.each)
        some: Any = places, positions, out, anchors, np.ones(1), work, marks
        leader = rounds.leader if self._leading and rounds.leader in parts.groups else NOBODY
        with rounds.leading:
            begins = rounds.thoughts is None
            if begins:
                size = rounds.labels.size * self.remembered(rounds.features)
                rounds.thoughts = np.zeros(0 if leader == NOBODY else size)
            words = stretch.STRETCH.pack(
                stretch.Stretch(
                    *(0, 0, 0, 0, 0, max(1, self._experts), parts.entries, parts.rows),
                    *(rounds.weights, rounds.labels, cells.indptr, cells.values),
                    *(*some, leader, room(rounds.features), rounds.thoughts, 0, 0, named),
                )
            )
            whole = parts.groups, parts.starts, counts, origins
            if begins and leader != NOBODY:
                place = np.flatnonzero(parts.groups == leader)
                groups = parts.groups[: place[0] + 1]
                stretch.run(self._address, words, place, groups, *whole[1:], NOBODY)
        stretch.run(self._address, words, rounds.queue, *whole, leader)

    def remembered(self, features: int) -> int:
        """How many numbers a stretch remembers of every row, for those who lean to everybody."""
        return self._leading * room(features)

    def hindsight(self, group: int, features: int) -> Hindsight | None:
        """The scaled loss of the best of the class; None where that is not known."""
        count = int(self.seen.of(group).count[0])
        return self.recorder.best(group, self._features(group, count), room(count))

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return joint([bank.bounds(group) for bank in self.banks])

    measured = True

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """The least of the banks' bounds."""
        found = [bank.a_priori(group, rounds, known, clipped) for bank in self.banks]
        return min((bound for bound in found if bound is not None), default=None)

    def _named(self) -> dict[str, Store]:
        """The stores by the names that they have in a file."""
        return self.recorder.stores | {bank.name: bank.store for bank in self.banks}

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name; each in its own columns."""
        counts = self.seen.column("count", groups)[:, 0]
        kept = self.seen.flat("feature", np.arange(groups), counts)
        moved = np.repeat(self.seen.column("moved", groups)[:, 0], counts)
        in_order = np.arange(kept.size) - np.repeat(np.cumsum(counts) - counts, counts)
        fields = {"columns": {"count": counts, "feature": np.where(moved, kept, in_order)}}
        fields |= {name: store.save(groups, counts) for name, store in self._named().items()}
        named = {f"{name}.{field}": a for name, own in fields.items() for field, a in own.items()}
        return named | self.recorder.save()

    def _features(self, group: int, count: int) -> Index:
        """Which features the columns of a group are."""
        if count == 0:
            return NONE
        own = self.seen.of(group)
        features: Index = own.feature[:count] if own.moved[0] else np.arange(count)
        return features

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave; before schema 4 all groups had all columns."""
        if "columns.count" in arrays:
            counts, kept = arrays["columns.count"], arrays["columns.feature"]
        else:
            counts = np.full(groups, features, dtype=np.int64)
            kept = np.tile(np.arange(features), groups)
        _check_columns(counts, kept, groups, room(features))
        self.seen.reserve(np.arange(groups), rooms(counts))
        self.seen.fill("count", np.arange(groups), counts[:, None])
        for group, first in enumerate((np.cumsum(counts) - counts).tolist()):
            own, mine = self.seen.of(group), kept[first : first + counts[group]]
            own.feature[: mine.size] = mine
            own.moved[0] = not np.array_equal(mine, np.arange(mine.size))
        columns.rehash(self.seen.address, np.arange(groups))
        banks = {bank.name: bank for bank in self.banks}
        for name, store in self._named().items():
            prefix = f"{name}."
            own = {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}
            store.load(banks[name].completed(own, counts) if name in banks else own, groups, counts)
        self.recorder.load(arrays, groups, features)
        self._gather()
        self._extend(1, room(features))

    def __getstate__(self) -> dict[str, Any]:
        kept = ("banks", "always_on", "columns", "nodes", "recorder", "seen", "_room")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.seen.kept_by(self)
        self._gather()


def _check_columns(counts: Index, kept: Index, groups: int, features: int) -> None:
    """Numbers that kernels take for features and columns must be ones."""
    if counts.shape != (groups,) or counts.dtype != np.int64 or kept.dtype != np.int64:
        raise ValueError("columns are not one count per group")
    if (counts < 0).any() or (counts > features).any() or kept.shape != (counts.sum(),):
        raise ValueError("columns do not fit their counts")
    pairs = np.repeat(np.arange(groups), counts) * features + kept
    if (kept < 0).any() or (kept >= features).any() or np.unique(pairs).size < pairs.size:
        raise ValueError("columns are not different features")
