"""The compiled learners of a model together: one call for all of them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector, capacity
from groupwise.errors import FeatureError, TooLargeError
from groupwise.kernels import columns, stretch
from groupwise.kernels.cells import of_sparse
from groupwise.kernels.compiled import ready
from groupwise.kernels.layout import LANES, address, room, rooms
from groupwise.learners.compiled import CompiledBank
from groupwise.learners.divisions import Division, check_columns, named_from, roster_prefix
from groupwise.learners.recorders import LinearRecorder, Recorder
from groupwise.losses import Loss
from groupwise.protocols import Awake, Bank, Hindsight, Row
from groupwise.store import Store

NONE: Index = np.zeros(0, dtype=np.int64)
NOBODY = -1


def joint(bounds: "Sequence[Vector | None]") -> Vector | None:
    """The bounds of several banks together; None where one has none."""
    known = [part for part in bounds if part is not None]
    return np.concatenate(known) if known and len(known) == len(bounds) else None


class Crew(Bank):
    """The compiled banks of a model and what records for hindsight: one call for all of them.

    Where groups have different learners there is a division for every roster, and ``division`` has
    the number of every group's: a group knows nothing of the banks of others.

    Parameters
    ----------
    banks : the compiled banks, of the first division.
    loss : the model's; with square loss hindsight is that of the best linear model.
    intercept : is there a feature that is 1 in every row?
    always_on : is the last awake group of every row the always-on one?
    recorder : what to record in place of what the loss and the banks ask for.
    """

    compiled = True

    def __init__(
        self,
        banks: Sequence[CompiledBank],
        loss: Loss,
        intercept: bool = False,
        always_on: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        self.always_on = always_on
        self.nodes = loss.nodes
        self.loss = loss
        linear = LinearRecorder(loss, intercept) if loss.linear_hindsight else Recorder()
        self._usual = recorder or linear
        """What records for banks that have no class of their own."""
        self.divisions: list[Division] = []
        self.division = NONE
        self.seen = Store(columns.COLUMNS, keeper=self)
        """The columns of each group: the features that its own rows have had."""
        self._room = (1, room(1))
        self.join(banks)

    def join(self, banks: Sequence[CompiledBank]) -> None:
        """A further division."""
        own = [found for bank in banks if (found := bank.recorder(self.loss)) is not None]
        self.divisions.append(Division(list(banks), own[0] if own else self._usual))
        self.columns = self.divisions[0].columns()
        self._gather()

    def divide(self, division: Index) -> None:
        """Take the numbers of the groups' divisions, which may change where they are."""
        self.division = division
        self._gather()

    def of(self, group: int) -> Division:
        """The division of a group."""
        return self.divisions[self.division[group] if len(self.divisions) > 1 else 0]

    def _shares(self, groups: Index) -> Iterator[tuple[Division, Any]]:
        """Every division that some groups are in, and which of them those are."""
        if len(self.divisions) == 1:
            yield self.divisions[0], slice(None)
            return
        numbers = self.division[groups]
        for number in np.unique(numbers).tolist():
            yield self.divisions[number], numbers == number

    @property
    def banks(self) -> list[CompiledBank]:
        """Those of all divisions."""
        return [bank for one in self.divisions for bank in one.banks]

    @property
    def width(self) -> int:
        """How many columns its advice has."""
        return self._experts // self.nodes

    @property
    def recorder(self) -> Recorder:
        """What records for the first division."""
        return self.divisions[0].recorder

    @property
    def comparator(self) -> str:  # type: ignore[override]
        """What ``hindsight`` is the loss of."""
        return self.recorder.comparator

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        for bank in self.banks:
            bank.restart()
        self._gather()

    @property
    def frees(self) -> bool:  # type: ignore[override]
        """Can groups be given up? Rows that are kept for hindsight cannot."""
        return not any(one.recorder.afterwards for one in self.divisions)

    def free_learners(self, groups: Index) -> None:
        """Give up what some groups have learned, not what was recorded of them."""
        for bank in self.banks:
            bank.store.free(groups)

    def free(self, groups: Index) -> None:
        """Give up all that is kept of some groups."""
        for store in (self.seen, *self._stores):
            store.free(groups)

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Groups get other numbers; all others from ``start`` on are given up."""
        for store in dict.fromkeys((self.seen, *self._stores)):  # divisions share some
            store.renumber(start, old, new)

    def _gather(self) -> None:
        """The message for the kernels: who is to be called, and the stretch of single rounds."""
        for one in self.divisions:
            one.recorder.supply()
        self._experts = self.nodes * max(len(one.columns()) for one in self.divisions)
        self._each = max(one.recorder.each for one in self.divisions)
        told = [bank.size for bank in self.banks if bank.lead is not None]
        tells = any(bank.leans for bank in self.banks)
        self._leading = max(told, default=0) if tells else 0
        by_division = [one.parts(tells) for one in self.divisions]
        parts = [part for some in by_division for part in some]
        self._stores = [part[0] for part in parts]
        begin = np.cumsum([0, *map(len, by_division)])
        awake, features = self._room
        self._one = np.arange(awake), np.zeros(awake, dtype=np.int64), *self._workplace()
        entries, rows, work, marks = self._one
        counts, places, indices = (np.zeros(n, dtype=np.int64) for n in (awake, awake, features))
        values, positions = np.zeros(features), np.zeros(awake * features, dtype=np.int64)
        named, leading = np.zeros_like(positions), np.zeros(self._leading * features)
        indptr, label, stands_for = np.zeros(2, dtype=np.int64), np.zeros(1), np.ones(1)
        none, anchors = np.zeros(0), np.zeros(2 * awake * self._each)
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
            *(begin, int(len(self.divisions) > 1), self.division),
            stretch.words([advise for _, advise, _, _, _ in parts]),
            stretch.words([learn for _, _, learn, _, _ in parts]),
            stretch.words([store.address for store in self._stores]),
            np.array([first for *_, first, _ in parts], dtype=np.int64),
            stretch.words([lead for *_, lead in parts]),
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

    def reserve_as(self, groups: Index, others: Index) -> None:
        """Make room for groups that will have the columns that others have, if these have most."""
        counts = np.empty_like(others)
        columns.count(self.seen.address, others, counts)
        counts = np.where(2 * counts >= self._room[1], counts, 1)
        self.seen.reserve(groups, rooms(counts))
        self._fit(groups, counts, int(counts.max(initial=1)))

    def _fit(self, groups: Index, counts: Index, features: int) -> None:
        """Make room for so many columns, of so many features, in the records of groups."""
        wanted = rooms(np.where(4 * counts < 3 * features, counts, features))
        try:
            for division, own in self._shares(groups):
                for store in division.stores().values():
                    store.reserve(groups[own], wanted[own], room(features))
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
        if not self.frees:  # else nothing is kept, and windows do not yet have their learners
            for division, own in self._shares(rounds.groups):
                division.recorder.keep_all(rounds if isinstance(own, slice) else rounds.of(own))
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
                for division, own in self._shares(awake.groups):
                    some = Awake(awake.groups[own], awake.weights[own])
                    if isinstance(own, slice) or division.recorder.wants(some.groups):
                        division.recorder.keep(some, (indices, values), label, stands_for)
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
        shape = len(advice), self.width, self.nodes
        return advice if self.nodes == 1 else advice.reshape(shape)

    def run(self, rounds: Any, out: Vector) -> None:
        """Take groups off the queue of a stretch of the stream until it is empty.

        Where others lean to the always-on group, whoever is first runs that one before all others.
        """
        cells, parts = rounds.cells, rounds.parts
        places, positions, counts, origins, named = rounds.laid_out[self]
        work, marks = self._workplace()  # kept until the kernels are through
        most = max((one.recorder for one in self.divisions), key=lambda one: one.each)
        anchors = most.anchors(rounds)
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
        own = self.features(group)
        return self.of(group).recorder.best(group, own, room(own.size))

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return joint([bank.bounds(group) for bank in self.of(group).banks])

    measured = True

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """The least of the banks' bounds."""
        banks = self.of(group).banks
        found = [bank.a_priori(group, rounds, known, clipped) for bank in banks]
        return min((bound for bound in found if bound is not None), default=None)

    def _named(self, groups: int, order: Sequence[int]) -> Iterator[tuple[str, Division, Index]]:
        """What comes before the names of each division's arrays in a file, and its groups.

        What records for all of them alike is the first's.
        """
        everybody = np.arange(groups)
        if len(order) == 1:
            yield "", self.divisions[order[0]], everybody
            return
        yield "", Division([], self._usual), everybody
        for place, number in enumerate(order):
            banks, recorder = self.divisions[number]
            own = Recorder() if recorder is self._usual else recorder
            whose = np.flatnonzero(self.division[:groups] == number)
            yield roster_prefix(place), Division(banks, own), whose

    def save(
        self, groups: int, features: int, order: Sequence[int] | None = None
    ) -> dict[str, Any]:
        """The state of the first groups, as arrays by name; each in its own columns.

        ``order`` has the divisions that are to be saved, in the order of their numbers in the file.
        """
        counts = self.seen.column("count", groups)[:, 0]
        kept = self.seen.flat("feature", np.arange(groups), counts)
        moved = np.repeat(self.seen.column("moved", groups)[:, 0], counts)
        in_order = np.arange(kept.size) - np.repeat(np.cumsum(counts) - counts, counts)
        found = {"columns.count": counts, "columns.feature": np.where(moved, kept, in_order)}
        for prefix, division, whose in self._named(groups, order or range(len(self.divisions))):
            for name, store in division.stores().items():
                fields = store.save(whose, counts[whose])
                found |= {f"{prefix}{name}.{field}": array for field, array in fields.items()}
            more = division.recorder.save()
            found |= {f"{prefix}{name}": array for name, array in more.items()}
        return found

    def features(self, group: int) -> Index:
        """Which features the columns of a group are."""
        count = int(self.seen.of(group).count[0])
        if count == 0:
            return NONE
        own = self.seen.of(group)
        features: Index = own.feature[:count] if own.moved[0] else np.arange(count)
        return features

    def name(self, groups: Index, features: Sequence[Index]) -> None:
        """Say of groups which features their columns are."""
        counts = np.array([mine.size for mine in features], dtype=np.int64)
        self.seen.reserve(groups, rooms(counts))
        self.seen.fill("count", groups, counts[:, None])
        for group, mine in zip(groups.tolist(), features, strict=True):
            own = self.seen.of(group)
            own.feature[: mine.size] = mine
            own.moved[0] = not np.array_equal(mine, np.arange(mine.size))
        columns.rehash(self.seen.address, groups)

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave; before schema 4 all groups had all columns."""
        if "columns.count" in arrays:
            counts, kept = arrays["columns.count"], arrays["columns.feature"]
        else:
            counts = np.full(groups, features, dtype=np.int64)
            kept = np.tile(np.arange(features), groups)
        check_columns(counts, kept, groups, room(features))
        starts = np.cumsum(counts) - counts
        spans = zip(starts.tolist(), counts.tolist(), strict=True)
        self.name(np.arange(groups), [kept[first : first + size] for first, size in spans])
        for before, division, whose in self._named(groups, range(len(self.divisions))):
            banks = {bank.name: bank for bank in division.banks}
            for name, store in division.stores().items():
                own = named_from(f"{before}{name}.", arrays)
                if name in banks:
                    own = banks[name].completed(own, counts[whose])
                store.load(own, whose, counts[whose])
            division.recorder.load(named_from(before, arrays), groups, features)
            division.recorder.check(self.seen.address)
        self._gather()
        self._extend(1, room(features))

    def __getstate__(self) -> dict[str, Any]:
        own = ("always_on", "columns", "nodes", "loss", "seen", "_usual", "_room")
        kept = (*own, "divisions", "division")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.seen.kept_by(self)
        self._gather()
