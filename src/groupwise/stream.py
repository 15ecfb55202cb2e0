"""Running Algorithm 1 over a stretch of a stream whose labels come at once.

The learners do not depend on what is played, so each group's learner can run through its own rounds
alone, groups in parallel; then the aggregator goes through the rows in order; then the ledger,
again by group. Every number comes out of the same steps, in the same order, as in the per-round
loop, so the two agree bit for bit.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.kernels import ledger as ledgers
from groupwise.kernels import renewal, ridge, rounds
from groupwise.kernels.schedule import by_group, share_out
from groupwise.learners.ridge import RidgeBank
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction
from groupwise.regret.ledger import Ledger, baseline_of
from groupwise.states import Index, Vector

CHUNK = 4_096
"""Rows at a time: enough to keep the threads busy, few enough to stay in the cache."""
NOBODY = 0.5
"""The scaled play where no group is awake: the middle of the range."""


class Chunk(NamedTuple):
    """Some consecutive rows: sparse features, awake groups, scaled labels."""

    indptr: Index
    indices: Index
    values: Vector
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
        return cls(
            np.empty(rows), np.empty(rows), np.empty(rows), np.empty(shape), np.empty(shape)
        )


class Subsequences:
    """A chunk by group: where each group's rounds are, and which thread takes which groups."""

    def __init__(self, chunk: Chunk, jobs: int) -> None:
        count = int(chunk.groups.max()) + 1 if chunk.groups.size else 0
        self.starts, self.entries = by_group(chunk.groups, count)
        self.rows = np.repeat(np.arange(chunk.labels.size), np.diff(chunk.member_indptr))
        sizes = np.diff(self.starts)
        job = share_out(sizes, np.argsort(-sizes, kind="stable"), jobs)
        present = np.flatnonzero(sizes)
        shares = [present[job[present] == j] for j in range(jobs)]
        self.shares = [share for share in shares if share.size]

    def places(self, chunk: Chunk) -> tuple[Vector | Index, ...]:
        """Where the rounds are, as the kernels take it."""
        rows = (chunk.indptr, chunk.indices, chunk.values, chunk.labels)
        return (self.starts, self.entries, self.rows, chunk.weights, *rows)


class _Work:
    """A chunk on its way: its parts, and room for what comes of it."""

    def __init__(self, chunk: Chunk, jobs: int, learners: int) -> None:
        self.chunk = chunk
        self.parts = Subsequences(chunk, jobs)
        self.outcome = Outcome.empty(chunk.labels.size, chunk.groups.size, learners)
        self.losses = np.empty_like(self.outcome.advice)
        self.baseline = np.empty(chunk.labels.size)


class Stream:
    """Drives a reduction and its ledger over chunks.

    The chunks are pipelined: while the aggregator goes through one, the learners are already at the
    next. ``number`` is the ticket number of the first row, ``baseline`` the group whose first
    learner is the single model to compare with (-1: none).
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
        with ThreadPoolExecutor(self.jobs) as pool:
            learning: list[Future[None]] = []
            recording: list[Future[None]] = []
            previous: _Work | None = None
            for chunk in chunks:  # this one is made ready while the learners are at the previous
                work = _Work(chunk, self.jobs, len(self.reduction.learners))
                _finish(learning)
                learning = self._learners(pool, work)
                if previous is not None:
                    self._aggregator(previous)
                    _finish(recording)
                    recording = self._recorders(pool, previous)
                    done(previous.outcome)
                previous = work
            if previous is not None:
                _finish(learning)
                self._aggregator(previous)
                _finish(recording)
                _finish(self._recorders(pool, previous))
                done(previous.outcome)

    def _learners(self, pool: ThreadPoolExecutor, work: "_Work") -> "list[Future[None]]":
        """Start every group's learner on its own rounds of the chunk."""
        ((bank, _),) = self.reduction.banks
        features = len(work.chunk.features)
        self.reduction.widen(features)
        places = work.parts.places(work.chunk)
        sums, hindsight = self.ledger.sums, self.ledger.hindsight
        task: Any = ridge.step_subsequences
        width, advice = bank.width(features), work.outcome.advice
        state = (bank.state, bank.parameters, sums, hindsight)
        return [
            pool.submit(partial(task, *state, share, *places, width, advice))
            for share in work.parts.shares
        ]

    def _aggregator(self, work: "_Work") -> None:
        """The aggregator over the rows of the chunk."""
        chunk, reduction = work.chunk, self.reduction
        rounds.settle_stream(
            reduction.settings,
            reduction.state,
            chunk.member_indptr,
            chunk.groups,
            chunk.weights,
            chunk.labels,
            self.number,
            NOBODY,
            *work.outcome,
            work.losses,
        )
        self.number += chunk.labels.size
        ledgers.baseline_losses(
            chunk.member_indptr, chunk.groups, work.losses, self.baseline, work.baseline
        )

    def _recorders(self, pool: ThreadPoolExecutor, work: "_Work") -> "list[Future[None]]":
        """Start the ledger on every group's rounds of the chunk."""
        ledger, outcome = self.ledger, work.outcome
        parts = work.parts
        places = parts.starts, parts.entries, parts.rows, work.chunk.weights
        figures = work.losses, outcome.expected, outcome.realised, work.baseline
        task = ledgers.record_subsequences
        return [
            pool.submit(task, ledger.state, share, *places, *figures)
            for share in parts.shares
        ]

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
                cells = slice(chunk.indptr[t], chunk.indptr[t + 1])
                row = Row(chunk.indices[cells], chunk.values[cells], chunk.features)
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


def _finish(futures: "list[Future[None]]") -> None:
    for future in futures:
        future.result()
