"""Running Algorithm 1 over a stretch of a stream whose labels come at once.

The learners do not depend on what is played, so each group's learner can run through its own rounds
alone, groups in parallel; the aggregator and the ledger go through the rows in order. Every number
comes out of the same steps, in the same order, as in the per-round loop, so the two agree bit for
bit.
"""

import copy
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.arrays import Flags, Index, Vector
from groupwise.classes import shown
from groupwise.dyadic import Clocks, Expanded
from groupwise.errors import ConfigurationError, GroupwiseError
from groupwise.kernels.cells import Cells
from groupwise.kernels.layout import room
from groupwise.kernels.schedule import Parts, subsequences
from groupwise.kernels.windows import NEXT
from groupwise.protocols import Awake, Bank, Row
from groupwise.reduction import Reduction

CHUNK = 4_096
"""Rows at a time: enough to keep the threads busy, few enough to stay in the cache."""


REMEMBERED = 1 << 23
"""Numbers that banks remember of a chunk's rows: 64 MB."""


BEGUN = 1 << 21
"""Numbers in what the learners of windows know that begin in a chunk: 16 MB, all kept till its end.
"""
AWAKE, FEWEST = 16, 64
"""Groups of a row, where it is not known how many it has; and rows of such a chunk at least."""


def rows_at_a_time(reduction: Reduction, groups: int, features: int) -> int:
    """How many rows a chunk has: more with many groups, so that each has several rounds in it."""
    each = max(1, *(bank.remembered(features) for bank in reduction.banks))
    rows = min(CHUNK * min(8, 1 + groups // 16_384), max(1, REMEMBERED // each))
    if reduction.windows is None:
        return rows
    begun = 2 * min(groups, AWAKE) / reduction.windows.kind.shortest  # in a row, at most
    numbers = begun * (reduction.experts + 2) * room(features) ** 2
    return max(min(rows, FEWEST), min(rows, int(BEGUN / max(numbers, 1.0))))


NONE: Vector = np.zeros((0, 0))


class Chunk(NamedTuple):
    """Some consecutive rows: features, awake groups, scaled labels."""

    cells: Cells
    member_indptr: Index
    groups: Index
    weights: Vector
    labels: Vector
    features: Sequence[str]
    logged: Vector = NONE
    """What other models predict, scaled: a row for each, with a column per model."""

    def part(self, start: int, stop: int) -> "Chunk":
        """Some of the rows."""
        entries = slice(self.member_indptr[start], self.member_indptr[stop])
        return Chunk(
            self.cells.part(start, stop),
            self.member_indptr[start : stop + 1] - self.member_indptr[start],
            self.groups[entries],
            self.weights[entries],
            self.labels[start:stop],
            self.features,
            self.logged[start:stop] if self.logged.size else NONE,
        )


class Outcome(NamedTuple):
    """What happened on a chunk; scaled. Advice and probabilities align with the chunk's groups."""

    prediction: Vector
    """One per row; where classes are named, with a column for each of them."""
    expected: Vector
    realised: Vector
    advice: Vector
    probabilities: Vector
    ends: Vector = NONE
    """Those of intervals, where there are such, a row each; NaN where nobody is awake."""


class Laid:
    """A chunk for banks to run over: its rounds by row and by group.

    ``number`` is that of its first ticket; ``slots`` has a -1 for every group.
    """

    def __init__(
        self,
        chunk: Chunk,
        number: int,
        slots: NDArray[np.int32],
        banks: Sequence[Bank],
        leader: int,
        clocks: Clocks | None = None,
    ) -> None:
        self.number = number
        self.leader = leader
        """The always-on group; -1 where there is none."""
        self.leading = Lock()
        """Held by who finds out what others lean to: what the leader thinks before every row."""
        self.thoughts: Vector | None = None
        self.reached: int | None = None
        """The row of this chunk that was last asked for, or not settled."""
        self.cells, self.indptr, self.groups, self.weights, self.labels, self.names = chunk[:6]
        self.members = self.indptr, self.groups, self.weights
        """The awake groups of every row; the same with their windows take their place below."""
        self.windows: Expanded | None = None
        self.clocks = clocks
        if clocks is not None:
            self.windows = clocks.expanded(*self.members)
            self.indptr, self.groups, self.weights = self.windows[:3]
            slots = np.full(int(clocks.marks[NEXT]), -1, dtype=np.int32)
        self.logged = chunk.logged if chunk.logged.size else np.zeros((self.labels.size, 0))
        self.features = len(self.names)
        self.parts = Parts(*subsequences(self.indptr, self.groups, slots))
        self.queue = np.zeros(1, dtype=np.int64)
        self.laid_out = {bank: bank.lay_out(self) for bank in banks}

    def __iter__(self) -> Iterator[tuple[slice, int, Awake, Row, float]]:
        for t, label in enumerate(self.labels.tolist()):
            part = slice(*self.indptr[t : t + 2])
            if part.start < part.stop:
                self.reached = t
                awake = Awake(self.groups[part], self.weights[part])
                row = Row(*self.cells.row(t), self.names, (), self.logged[t])
                yield part, self.number + t, awake, row, label

    def of(self, some: Flags) -> "Laid":
        """The same rows with some of the pairs of a row and a group: all or none of a group's."""
        view = copy.copy(self)
        places = np.concatenate([[0], np.cumsum(some)])
        view.indptr = places[self.indptr]
        view.groups, view.weights = self.groups[some], self.weights[some]
        parts, kept = self.parts, some[self.parts.entries]
        whole = kept[parts.starts[:-1]]
        starts = np.concatenate([[0], np.cumsum(np.diff(parts.starts)[whole])])
        entries = places[parts.entries[kept]]
        view.parts = Parts(parts.groups[whole], starts, entries, parts.rows[kept])
        return view


class Work(Laid):
    """A chunk on its way, with room for what comes of it.

    ``silent``: learners have nothing to do with it any more.
    """

    def __init__(
        self,
        chunk: Chunk,
        number: int,
        slots: NDArray[np.int32],
        reduction: Reduction,
        leader: int,
        silent: bool = False,
    ) -> None:
        banks = () if silent else reduction.banks
        super().__init__(chunk, number, slots, banks, leader, reduction.windows)
        rows, entries = self.labels.size, self.groups.size
        prediction, advice, self.said = reduction.room(rows, entries)
        odds = np.empty((entries, reduction.experts))
        self.outcome = Outcome(prediction, np.empty(rows), np.empty(rows), advice, odds)
        if silent:
            return
        # A bank writes to where it is read from where there is no other.
        shapes = [(entries, len(x.columns), *self.said.shape[2:]) for x in reduction.banks]
        alone = reduction.in_order and len(shapes) == 1
        self.advice = [self.said] if alone else [np.empty(shape) for shape in shapes]


class Stream:
    """Drives a reduction over chunks.

    The chunks are pipelined: while the aggregator goes through one, the learners are already at the
    next. This thread is one of the ``jobs``; when it is through with the aggregator and has made
    the next chunk ready it helps the others with the learners, a group at a time. ``number`` is the
    ticket number of the first row, ``baseline`` the group whose first learner is the single model
    to compare with (-1: none).
    """

    def __init__(self, reduction: Reduction, baseline: int, number: int, jobs: int | None) -> None:
        self.reduction = reduction
        self.baseline = baseline
        self.number = self.first = number
        self.jobs = job_count(jobs)

    def run(self, chunks: Iterable[Chunk], done: Callable[[Outcome], None]) -> None:
        """Run all chunks; ``done`` is called with each one's outcome, in order."""
        slots = np.full(len(self.reduction.state), -1, dtype=np.int32)
        number = self.number
        with ThreadPoolExecutor(max(1, self.jobs - 1)) as pool:
            before: Work | None = None
            at_work: list[Future[None]] = []
            for chunk in chunks:
                work = Work(chunk, number, slots, self.reduction, self.baseline)
                number += chunk.labels.size
                self._finish(before, at_work)
                if work.clocks is not None and work.windows is not None:
                    work.clocks.begin(self.reduction, work.windows.log)
                self.reduction.reserve(work.parts.groups, work.features)
                at_work = [pool.submit(self._learn, work, True) for _ in range(self.jobs - 1)]
                self._settle(before, done)
                before = work
            self._finish(before, at_work)
            self._settle(before, done)

    def speak(self, chunks: Iterable[Chunk]) -> Iterator[Vector]:
        """The learners' half alone, in this thread: what they said over each chunk."""
        slots = np.full(len(self.reduction.state), -1, dtype=np.int32)
        for chunk in chunks:
            work = Work(chunk, self.number, slots, self.reduction, self.baseline)
            self.number += chunk.labels.size
            self.reduction.reserve(work.parts.groups, work.features)
            self._finish(work, [])
            yield work.said

    def settle(
        self, chunks: Iterable[Chunk], said: Vector, done: Callable[[Outcome], None]
    ) -> None:
        """The other half: aggregator and books, where what learners said over all is known."""
        slots = np.full(len(self.reduction.state), -1, dtype=np.int32)
        first = 0
        for chunk in chunks:
            work = Work(chunk, self.number, slots, self.reduction, self.baseline, silent=True)
            work.said[:] = said[first : first + chunk.groups.size]
            first += chunk.groups.size
            self.reduction.read(work.said, work.outcome.advice)
            self._settle(work, done)

    def _learn(self, work: Work, compiled: bool) -> None:
        """Run the learners over a chunk: compiled ones, in several threads at once, or others."""
        for bank, advice in zip(self.reduction.banks, work.advice, strict=True):
            if bank.compiled == compiled:
                with self._at_row(work):
                    bank.run(work, advice)

    @contextmanager
    def _at_row(self, work: Work) -> Iterator[None]:
        """Say of an error at which row of the stream it was."""
        try:
            yield
        except GroupwiseError as error:
            if error.row is None and work.reached is not None:
                error.row = work.number - self.first + work.reached
            raise

    def _finish(self, work: Work | None, others: list[Future[None]]) -> None:
        """Help with the learners until all are through the chunk."""
        if work is None:
            return
        self._learn(work, True)
        self._learn(work, False)
        for other in others:
            other.result()
        for bank, advice in zip(self.reduction.banks, work.advice, strict=True):
            bank.finish(work, advice)
            if advice is not work.said:
                work.said[:, bank.columns] = advice
        self.reduction.read(work.said, work.outcome.advice)

    def _settle(self, work: Work | None, done: Callable[[Outcome], None]) -> None:
        """The aggregator and the books over the rows of a chunk."""
        if work is None:
            return
        with self._at_row(work):
            if self.reduction.in_python:
                self._settle_rows(work)
            else:
                self._settle_all(work)
        self.number = work.number + work.labels.size
        if work.clocks is not None and work.windows is not None:
            work.clocks.end(self.reduction, work.windows.log)
        outcome = self.reduction.follow_up(work, self.baseline)
        prediction, _, _, advice, odds = outcome[:5]
        prediction = shown(self.reduction.loss, work.indptr, prediction, advice, odds)
        if work.windows is not None:  # what is shown is of the groups themselves
            own = work.windows.own
            outcome = outcome._replace(advice=advice[own], probabilities=odds[own])
        done(outcome._replace(prediction=prediction))

    def _settle_all(self, work: Work) -> None:
        """The same, for an aggregator that is compiled."""
        rows = work.indptr, work.groups, work.weights, work.labels
        losses = np.empty_like(work.outcome.probabilities)
        numbers = work.number, self.baseline, self.reduction.nobody
        settled = self.reduction.settle_stream(*rows, *numbers, *work.outcome[:5], losses)
        if settled < work.labels.size:
            work.reached = settled
            part = slice(*work.indptr[settled : settled + 2])
            raise self.reduction.refusal(work.outcome.advice[part], work.groups[part])

    def _settle_rows(self, work: Work) -> None:
        """The same, row by row, for an aggregator written in Python."""
        reduction, outcome = self.reduction, work.outcome
        for t, label in enumerate(work.labels.tolist()):
            outcome.prediction[t] = reduction.nobody
            outcome.expected[t] = outcome.realised[t] = reduction.loss_of(reduction.nobody, label)
        for part, number, awake, _, label in work:
            t = number - work.number
            place = np.flatnonzero(awake.groups == self.baseline)
            said = np.empty((3, *outcome.advice[part].shape))
            said[0] = outcome.advice[part]
            baseline = int(place[0]) if place.size else -1
            figures = reduction.conclude(number, awake, said, label, baseline)
            outcome.prediction[t], outcome.expected[t], outcome.realised[t] = figures
            outcome.advice[part], outcome.probabilities[part] = said[:2]


def job_count(jobs: int | None) -> int:
    """How many threads to use: the number given, or one per core."""
    if jobs is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigurationError(f"jobs must be a positive whole number or None, not {jobs!r}.")
    return jobs
