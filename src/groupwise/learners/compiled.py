"""Compiled learners: a table of axes and two kernels each, run together without the interpreter."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index, Vector, capacity
from groupwise.errors import TooLargeError
from groupwise.kernels import stretch
from groupwise.kernels.compiled import Kernel, ready
from groupwise.kernels.hindsight import SUMS, record
from groupwise.kernels.layout import Layout, address, room
from groupwise.losses import Loss
from groupwise.protocols import Awake, Bank, Row
from groupwise.regret.hindsight import gram_matrix, least_squares_loss
from groupwise.store import Arrays, Store


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

    def __init__(self, columns: Sequence[int], parameters: ArrayLike) -> None:
        self.columns = list(columns)
        self.parameters = np.ascontiguousarray(parameters, dtype=np.float64).ravel()
        self.store = self.fresh()

    def kernels(self) -> tuple[Kernel, Kernel]:
        """For advice and for learning: those that this configuration needs."""
        return self.advise, self.learn

    def fresh(self) -> Store:
        """Room for learners that have seen nothing."""
        return Store(self.layout, len(self.columns), 0, self.parameters, self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.store.kept_by(self)

    def work_size(self, width: int) -> int:
        """How many numbers the kernels work with, in ``stretch.work``, for groups so wide."""
        return width

    def upkeep(self, group: int) -> None:
        """What is rarely needed; called where a kernel calls ``place.upkeep``."""

    def opened(self, groups: Index, first: int) -> None:
        """Some groups have new columns, from ``first`` on, which are 0."""

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups; a group's columns that are not there yet are 0."""
        return self.store.save(groups, features)

    def load(self, arrays: Arrays, groups: int, features: int, width: int) -> None:
        """Take over what :meth:`save` gave."""
        self.store.load(arrays, groups, features, width)

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return None

    def a_priori(self, group: int, best: float) -> float | None:
        """See :meth:`groupwise.protocols.Bank.a_priori`."""
        return None


class Crew(Bank):
    """The compiled banks of a model and the sums of hindsight: one call for all of them.

    Parameters
    ----------
    banks : the compiled banks.
    loss : the model's; with square loss the sums give the best linear model in hindsight.
    """

    compiled = True

    def __init__(self, banks: Sequence[CompiledBank], loss: Loss) -> None:
        self.banks = list(banks)
        self.columns = [column for bank in banks for column in bank.columns]
        self.linear = loss.linear_hindsight
        if self.linear:
            self.comparator = "the best linear model in hindsight"
        self.sums = Store(SUMS) if self.linear else None
        self.restart()

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        for bank in self.banks:
            bank.store = bank.fresh()
        self._room = (1, room(1))
        self._gather()

    def _gather(self) -> None:
        """The message for the kernels: who is to be called, and the stretch of single rounds."""
        stores = [] if self.sums is None else [self.sums]
        self._stores = [*stores, *(bank.store for bank in self.banks)]
        silent = [0] * len(stores)
        firsts = np.cumsum([0, *(len(bank.columns) for bank in self.banks)]).tolist()
        awake, width = self._room
        self._one = np.arange(awake), np.zeros(awake, dtype=np.int64), *self._workplace(width)
        entries, rows, work, marks = self._one
        cells = np.zeros(width, dtype=np.int64), np.zeros(width), np.zeros(1, dtype=np.bool_)
        indptr, label, stands_for = np.zeros(2, dtype=np.int64), np.zeros(1), np.ones(1)
        none = np.zeros(0)
        self._alone = stretch.STRETCH.pack(
            stretch.Stretch(
                *(0, 0, 0, 0, max(1, len(self.columns)), entries, rows, none, label, indptr),
                *(*cells, none, stands_for, work, marks),
            )
        )
        kernels = [[kernel.pointer for kernel in bank.kernels()] for bank in self.banks]
        learn = [record.pointer] * len(stores) + [learn for _, learn in kernels]
        self._crew = stretch.Crew(
            len(self._stores),
            stretch.words([*silent, *(advise for advise, _ in kernels)]),
            stretch.words(learn),
            stretch.words([store.address for store in self._stores]),
            np.array([*silent, *firsts[:-1]], dtype=np.int64),
            self._alone,
            *(entries, label, indptr, *cells, stands_for, width, awake),
        )
        self._message = stretch.CREW.pack(self._crew)
        self._address = address(self._message)
        self._experts = len(self.columns)
        self._said = np.empty((3, awake, self._experts))  # of a label; who needs it copies it
        self._advise, self._step = ready(stretch.SIGNATURES)

    def _workplace(self, width: int) -> tuple[Vector, Index]:
        """Room for the kernels to work in."""
        size = max([0, *(bank.work_size(width) for bank in self.banks)])
        return np.empty(size), np.empty(stretch.MARKS, dtype=np.int64)

    def reserve(self, groups: Index, features: int) -> None:
        """Make room for these groups and so many features."""
        for store in self._stores:
            store.reserve(groups, room(features))
        self._widest(1, room(features))

    def _widest(self, awake: int, width: int) -> None:
        """Room to work in for rounds of so many groups, and for groups so wide."""
        groups, columns = self._room
        if awake > groups or width > columns:
            self._room = capacity(awake, groups), capacity(width, columns)
            self._gather()

    def _make_room(self, awake: Awake, row: Row) -> None:
        """Make room for a row and its groups."""
        self.reserve(awake.groups, len(row.names))
        self._widest(len(awake.groups), 1)

    def advice(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group as ``said[0]``; ``said[1]`` is for the weights."""
        said = np.empty((2, len(awake.groups), self._experts))
        place = awake.address or stretch.addressed(awake)
        indices, values, _, _ = row
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
        indices, values, _, _ = row
        while self._step(self._address, place, indices, values, label, stands_for, self._said):
            self._make_room(awake, row)
        return self._said

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group. Changes nothing."""
        advice: Vector = self.advice(number, attempt, awake, row)[0]
        return advice

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Every awake group's learners learn from a label, and so do the sums."""
        self.updated(0, 0, awake, row, label, 1.0)

    def step(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Vector:
        """The advice as of now, then the update, then hindsight."""
        said = self.updated(number, attempt, awake, row, label, stands_for)
        advice: Vector = said[0, : len(awake.groups)]
        return advice

    def run(self, rounds: Any, out: Vector) -> None:
        """Take groups off the queue of a stretch of the stream until it is empty."""
        cells, parts = rounds.cells, rounds.parts
        work, marks = self._workplace(self._room[1])
        one = np.ones(1)
        words = stretch.STRETCH.pack(
            stretch.Stretch(
                *(0, 0, 0, 0, max(1, len(self.columns)), parts.entries, parts.rows),
                *(rounds.weights, rounds.labels, *cells, out, one, work, marks),
            )
        )
        stretch.run(self._address, words, rounds.queue, parts.groups, parts.starts)

    def hindsight(self, group: int, features: int) -> float | None:
        """The scaled loss of the best linear model; None where that is no least-squares fit."""
        if not self.linear:
            return None
        assert self.sums is not None
        own = self.sums.of(group)
        width = min(features, own.moment.size)
        gram = gram_matrix(own, width)
        return least_squares_loss(gram, own.moment[:width], float(own.power[0]))

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return joint([bank.bounds(group) for bank in self.banks])

    def a_priori(self, group: int, best: float) -> float | None:
        """The least of the banks' bounds."""
        found = [bank.a_priori(group, best) for bank in self.banks]
        return min((bound for bound in found if bound is not None), default=None)

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name."""
        fields = {} if self.sums is None else {"hindsight": self.sums.save(groups, features)}
        fields |= {bank.name: bank.save(groups, features) for bank in self.banks}
        return {f"{name}.{field}": a for name, own in fields.items() for field, a in own.items()}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""
        parts: dict[str, Any] = {} if self.sums is None else {"hindsight": self.sums}
        for name, part in (parts | {bank.name: bank for bank in self.banks}).items():
            own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(name)}
            part.load(own, groups, features, room(features))
        self._widest(1, room(features))

    def __getstate__(self) -> dict[str, Any]:
        kept = ("banks", "columns", "linear", "comparator", "sums", "_room")
        return {name: getattr(self, name) for name in kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._gather()
