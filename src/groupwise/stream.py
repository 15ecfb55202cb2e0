"""Running Algorithm 1 over a stretch of a stream whose labels come at once.

The learners do not depend on what is played, so each group's learner can run through its own rounds
alone, groups in parallel; the aggregator and the ledger go through the rows in order. Every number
comes out of the same steps, in the same order, as in the per-round loop, so the two agree bit for
bit.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.arrays import room
from groupwise.errors import ConfigurationError
from groupwise.kernels import renewal, ridge, rounds
from groupwise.kernels.cells import Cells
from groupwise.kernels.schedule import Parts, subsequences
from groupwise.learners.ridge import RidgeBank
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction
from groupwise.regret.ledger import Ledger, baseline_of
from groupwise.states import Index, Vector

CHUNK = 4_096
"""Rows at a time: enough to keep the threads busy, few enough to stay in the cache."""
NOBODY = 0.5
"""The scaled play where no group is awake: the middle of the range."""


def rows_at_a_time(groups: int) -> int:
    """How many rows a chunk has: more with many groups, so that each has several rounds in it."""
    return CHUNK * min(8, 1 + groups // 16_384)


class Chunk(NamedTuple):
    """Some consecutive rows: features, awake groups, scaled labels."""

    cells: Cells
    member_indptr: Index
    groups: Index
    weights: Vector
    labels: Vector
    features: Sequence[str]


class Outcome(NamedTuple):
    """What happened on a chunk; scaled. Advice and probabilities align with the chunk's groups."""

    prediction: Vector
    expected: Vector
    realised: Vector
    advice: Vector
    probabilities: Vector

    @classmethod
    def empty(cls, rows: int, entries: int, learners: int) -> "Outcome":
        """Room for a chunk of this size."""
        shape = (entries, learners)
        return cls(np.empty(rows), np.empty(rows), np.empty(rows), np.empty(shape), np.empty(shape))


class _Work:
    """A chunk on its way: its rounds by group, and room for what comes of it."""

    def __init__(self, chunk: Chunk, slots: NDArray[np.int32], learners: int) -> None:
        self.chunk = chunk
        self.parts = Parts(*subsequences(chunk.member_indptr, chunk.groups, slots))
        self.queue = np.zeros(1, dtype=np.int64)
        self.outcome = Outcome.empty(chunk.labels.size, chunk.groups.size, learners)


class Stream:
    """Drives a reduction and its ledger over chunks.

    The chunks are pipelined: while the aggregator goes through one, the learners are already at the
    next. This thread is one of the ``jobs``; when it is through with the aggregator and has made
    the next chunk ready it helps the others with the learners, a group at a time. ``number`` is the
    ticket number of the first row, ``baseline`` the group whose first learner is the single model
    to compare with (-1: none).
    """

    def __init__(
        self, reduction: Reduction, ledger: Ledger, baseline: int, number: int, jobs: int | None
    ) -> None:
        self.reduction = reduction
        self.ledger = ledger
        self.baseline = baseline
        self.number = number
        self.jobs = job_count(jobs)

    def run(self, chunks: Iterable[Chunk], done: Callable[[Outcome], None]) -> None:
        """Run all chunks; ``done`` is called with each one's outcome, in order."""
        if not self.reduction.compiled:
            for chunk in chunks:
                done(self._round_by_round(chunk))
            return
        slots = np.full(len(self.reduction.state.mass), -1, dtype=np.int32)
        with ThreadPoolExecutor(max(1, self.jobs - 1)) as pool:
            before: _Work | None = None
            at_work: list[Future[None]] = []
            for chunk in chunks:
                work = _Work(chunk, slots, len(self.reduction.learners))
                self._finish(before, at_work)
                at_work = [pool.submit(self._learn, work) for _ in range(self.jobs - 1)]
                self._settle(before, done)
                before = work
            self._finish(before, at_work)
            self._settle(before, done)

    def _learn(self, work: _Work) -> None:
        """Take groups off the queue and run their learners on their rounds of the chunk."""
        ((bank, _),) = self.reduction.banks
        chunk = work.chunk
        ridge.step_subsequences(
            work.queue,
            bank.state,
            bank.parameters,
            self.ledger.sums,
            self.ledger.hindsight,
            work.parts,
            chunk.weights,
            chunk.cells,
            chunk.labels,
            room(len(chunk.features)),
            work.outcome.advice,
        )

    def _finish(self, work: _Work | None, others: list[Future[None]]) -> None:
        """Help with the learners until all are through the chunk."""
        if work is not None:
            self._learn(work)
        for other in others:
            other.result()

    def _settle(self, work: _Work | None, done: Callable[[Outcome], None]) -> None:
        """The aggregator and the ledger over the rows of a chunk."""
        if work is None:
            return
        chunk = work.chunk
        rounds.settle_stream(
            self.reduction.settings,
            self.reduction.state,
            self.ledger.state,
            chunk.member_indptr,
            chunk.groups,
            chunk.weights,
            chunk.labels,
            self.number,
            self.baseline,
            NOBODY,
            *work.outcome,
            np.empty_like(work.outcome.advice),
        )
        self.number += chunk.labels.size
        done(work.outcome)

    def _round_by_round(self, chunk: Chunk) -> Outcome:
        """The slow way, for learners or aggregators written in Python."""
        reduction, ledger = self.reduction, self.ledger
        outcome = Outcome.empty(chunk.labels.size, chunk.groups.size, len(reduction.learners))
        for t, label in enumerate(chunk.labels.tolist()):
            first, last = chunk.member_indptr[t : t + 2]
            if first == last:
                outcome.prediction[t] = NOBODY
                outcome.expected[t] = outcome.realised[t] = reduction.loss_of(NOBODY, label)
            else:
                awake = Awake(chunk.groups[first:last], chunk.weights[first:last])
                row = Row(*chunk.cells.row(t), chunk.features)
                play, settled = reduction.learn(self.number, awake, row, label)
                baseline = baseline_of(settled.losses, awake, self.baseline)
                ledger.record(awake, row, label, settled, settled, baseline)
                upkeep(reduction, ledger, awake)
                outcome.prediction[t] = play.prediction
                outcome.expected[t] = settled.charged
                outcome.realised[t] = settled.realised
                outcome.advice[first:last] = play.advice
                outcome.probabilities[first:last] = play.probabilities
            self.number += 1
        return outcome


def upkeep(reduction: Reduction, ledger: Ledger, awake: Awake) -> None:
    """Rid ridge learners whose turn it is of the rounding of their earlier rounds."""
    if ledger.hindsight:
        for bank, _ in reduction.banks:
            if isinstance(bank, RidgeBank):
                renewal.upkeep(bank.state, bank.parameters, ledger.sums, awake.groups)


def job_count(jobs: int | None) -> int:
    """How many threads to use: the number given, or one per core."""
    if jobs is None:
        has_affinity = hasattr(os, "sched_getaffinity")
        return len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1
    if isinstance(jobs, bool) or not isinstance(jobs, int) or jobs < 1:
        raise ConfigurationError(f"jobs must be a positive whole number or None, not {jobs!r}.")
    return jobs
