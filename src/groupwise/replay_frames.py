"""Whole streams of frames through a model, at compiled speed: the loop's numbers.

A frame is checked whole before anything changes.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise import segmented
from groupwise.accounts import Accounts
from groupwise.arrays import Vector
from groupwise.assignment import Assignment
from groupwise.class_names import ClassName
from groupwise.errors import FeatureError
from groupwise.features import Derived
from groupwise.features.experts import Experts
from groupwise.figures import Figures, Gathered, path_of, refuse_actions, run
from groupwise.groups import FrameMembership, Groups, Member
from groupwise.protocols import Engine
from groupwise.reading import ReadFrame, frames_of, read_frame
from groupwise.reduction import Reduction
from groupwise.segments import Parts, Segment
from groupwise.stream import Stream, rows_at_a_time
from groupwise.ticket import Settled


@dataclass(frozen=True, eq=False)
class FrameReplay:
    """What ``Groupwise.replay`` returns: a figure per row, in the label's units.

    ``loss`` is that of the prediction, ``expected_loss`` its expectation over the aggregator's
    draw. ``groups(t)`` are the awake groups of row t. ``path`` says which way was taken: "compiled"
    or "python". Where the loss names classes, ``prediction`` has a column for each of ``classes``.
    ``interval`` has the ends of the intervals, where the model issues such: NaN where one is empty,
    or nobody is awake. Regret is the model's: ``model.regret()``.
    """

    prediction: Vector
    loss: Vector
    expected_loss: Vector
    path: str
    memberships: tuple[FrameMembership, ...]
    classes: Sequence[ClassName] | None = None
    interval: Vector | None = None

    def groups(self, row: int) -> list[str]:
        """The names of the groups that a row was in."""
        for membership in self.memberships:
            rows = membership.indptr.size - 1
            if row < rows:
                first, last = membership.indptr[row : row + 2]
                return [membership.names[g] for g in membership.indices[first:last].tolist()]
            row -= rows
        raise IndexError(row)


def joined(
    reduction: Reduction, found: Sequence[tuple[Figures, Sequence[FrameMembership]]]
) -> FrameReplay:
    """What came of one frame after another."""
    prediction, loss, expected = (np.concatenate([one[i] for one, _ in found]) for i in range(3))
    memberships = tuple(membership for _, some in found for membership in some)
    about = path_of(reduction), memberships, reduction.loss.classes
    issued = [one.interval for one, _ in found if one.interval is not None]
    return FrameReplay(
        prediction, loss, expected, *about, np.concatenate(issued) if issued else None
    )


class FrameReplays(Accounts):
    """The replays of a model."""

    assignment: Assignment
    groups: Groups
    _derived: Derived | None
    _logged: Experts | None
    _next: int
    _parts: Parts
    _settled: Settled

    def replay(
        self,
        frame: Any,
        target: str,
        jobs: int | None = None,
        progress: bool = False,
        segment: int | None = None,
        aggregators_at: str = segmented.STREAM,
        engine: str | Engine | None = None,
    ) -> FrameReplay:
        """Predict and learn every row of a frame in order, at compiled speed.

        The same numbers as the loop ``model.learn_one(row, y)``, bit for bit, and the model goes on
        from there. A call that raises leaves the model as it was. Other threads that want the model
        wait until it is through.

        Parameters
        ----------
        frame : a frame of pandas, polars or pyarrow; or an iterable of frames, or a pyarrow
            dataset, taken one after another, so that the stream need not fit in memory.
        target : the column of the labels.
        jobs : threads; one per core by default. The numbers do not depend on it.
        progress : show a progress bar.
        segment : so many rows at a time learners begin anew with the sums of all rows before, so
            that segments run in parallel, one long group too (``groupwise.segments``). The numbers
            are the loop's up to rounding, and the same for any ``jobs`` and ``engine``. For
            ``learners.Ridge``.
        aggregators_at : "segment" lets the aggregator begin anew with every segment as well, for
            streams that change: certificates are then sums of those of the segments.
        engine : where segments run: "local", this machine, by default; "ray", or the ray://
            address of a cluster (``groupwise.engines``); or a ``protocols.Engine``.
        """
        refuse_actions(self._reduction)
        size = segmented.checked(segment, aggregators_at, self._reduction, engine)
        frames = iter(frames_of(frame))
        with self.lock:
            read = self._read(next(frames, None), target)  # the first before anything is copied
            with self.all_or_nothing():
                reads = itertools.chain([read], (self._read(one, target) for one in frames))
                if size:
                    afresh = aggregators_at == segmented.SEGMENT
                    found = [self._in_segments(reads, size, afresh, engine, jobs, progress)]
                else:
                    found = [self._replay(one, jobs, progress) for one in reads]
        self._encoder.announce()
        return joined(self._reduction, found)

    def _read(self, frame: Any, target: str) -> ReadFrame:
        """A frame, read and checked. Changes nothing."""
        if frame is None:
            raise FeatureError("There is no frame to replay.")
        parts = self.loss, self.groups, self._encoder, self._registry
        return read_frame(frame, target, *parts, self._derived, self._logged)

    def _rosters(self, new: Sequence[Member]) -> Sequence[int]:
        """Which learners new groups have, where not all have the same."""
        return self.assignment.numbers(new, self.groups, self._reduction.enlist)

    def _admit(self, read: ReadFrame) -> list[float]:
        """Admit what is new in a frame; returns the prior masses of groups that are."""
        masses = self._registry.masses(read.groups)
        self._registry.admit(read.groups)
        self._encoder.admit(read.encoded)
        self._derived = read.derived
        return masses

    def _count(self, rows: int, learned: int) -> None:
        """Count rows whose labels came at once, and those that somebody was awake for."""
        self._settled.add_range(self._next, self._next + rows)
        self._next += rows
        self._version += learned

    def _replay(
        self, read: ReadFrame, jobs: int | None, progress: bool
    ) -> tuple[Figures, Sequence[FrameMembership]]:
        """Predict and learn the rows of a frame."""
        registry, rows = self._registry, read.rows
        numbers = np.arange(len(registry), len(registry) + len(read.groups))
        new = numbers, registry.masses(read.groups), self._rosters(read.groups)
        self._reduction.reserve(np.unique(rows.groups), len(rows.features), *new)
        self._admit(read)
        stream = Stream(self._reduction, registry.everybody, self._next, jobs)
        shape = rows.labels.size, rows.groups.size
        figures = run(stream, read.chunks(self._reduction, len(registry)), shape, (), progress)
        self._count(rows.labels.size, read.learned)
        return figures, [read.membership]

    def _in_segments(
        self,
        reads: Iterable[ReadFrame],
        size: int,
        afresh: bool,
        engine: str | Engine | None,
        jobs: int | None,
        progress: bool,
    ) -> tuple[Figures, Sequence[FrameMembership]]:
        """The same for frames, of which every segment of so many rows is a task of its own."""
        registry, before, learned = self._registry, self._reduction, 0
        memberships: list[FrameMembership] = []
        cutter = segmented.Cutter(size, self._next, len(registry))
        parts = self._parts._replace(afresh=afresh)

        def segments() -> Iterator[Segment]:
            nonlocal learned
            for read in reads:
                memberships.append(read.membership)
                learned += read.learned
                masses, names = self._admit(read), read.rows.features
                step = rows_at_a_time(before, len(registry), len(names))
                yield from cutter.cut(read.rows, masses, registry.everybody, step)
            yield from cutter.rest()

        with Gathered(self.loss, progress) as gathered:
            about = engine, jobs, gathered.add
            carried = segmented.replay(parts, before, cutter.known, segments(), *about)
        self._reduction = segmented.after(parts, before, carried, len(self._encoder.names))
        self._count(gathered.rows, learned)
        return gathered.figures(), memberships
