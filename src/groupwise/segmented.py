"""Replays in segments: of models and of arrays, cut, run on an engine, and carried on."""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from groupwise.engines import LOCAL, opened
from groupwise.errors import ConfigurationError
from groupwise.kernels.hindsight import OFFSET
from groupwise.kernels.layout import room
from groupwise.learners import beginnings
from groupwise.learners.logged import Logged
from groupwise.learners.recorders import LinearRecorder
from groupwise.protocols import Engine
from groupwise.reduction import Reduction
from groupwise.regret.sums import GroupSums, is_few, taken, written
from groupwise.segments import Carried, Parts, Segment, Settled, crew_of, run
from groupwise.stream import Chunk, Outcome

STREAM, SEGMENT = "stream", "segment"
"""Where aggregators begin: with the stream, or anew with every segment."""


def checked(
    segment: int | None,
    aggregators_at: str,
    reduction: Reduction,
    engine: str | Engine | None = None,
) -> int:
    """How many rows a segment has, if these can be; 0 where there are no segments."""
    if aggregators_at not in (STREAM, SEGMENT):
        raise ConfigurationError(
            f'aggregators_at must be "{STREAM}" or "{SEGMENT}", not {aggregators_at!r}.'
        )
    if segment is None:
        if aggregators_at == SEGMENT:
            raise ConfigurationError('aggregators_at="segment" needs segment=, the rows of each.')
        if engine not in (None, LOCAL):
            raise ConfigurationError("An engine runs segments: give segment=, the rows of each.")
        return 0
    if isinstance(segment, bool) or not isinstance(segment, int) or segment < 1:
        raise ConfigurationError(f"segment must be a number of rows, 1 or more, not {segment!r}.")
    refuse(reduction)
    return segment


class Cutter:
    """Cuts encoded rows, as they come, into segments of so many.

    Parameters
    ----------
    size : the rows of a segment.
    number : that of the first ticket.
    groups : how many groups there are already.
    """

    def __init__(self, size: int, number: int, groups: int) -> None:
        self.size, self.number, self.origin = size, number, number
        self.groups = self.known = groups
        self._masses: list[float] = []
        self._waiting: list[Chunk] = []
        self._rows = 0

    def cut(
        self, rows: Chunk, masses: Sequence[float], baseline: int, step: int
    ) -> Iterator[Segment]:
        """The segments that are whole with these rows, whose new groups have these masses."""
        self._masses += masses
        self._rest = baseline, step
        start, count = 0, rows.labels.size
        while start < count:
            stop = min(count, start + self.size - self._rows)
            self._waiting.append(rows.part(start, stop))
            self._rows += stop - start
            start = stop
            if self._rows == self.size:
                yield self._segment()

    def rest(self) -> Iterator[Segment]:
        """What is left, if anything."""
        if self._rows:
            yield self._segment()

    def _segment(self) -> Segment:
        rows, (baseline, step) = tuple(self._waiting), self._rest
        last = max([self.groups, *(int(one.groups.max(initial=-1)) + 1 for one in rows)])
        new = np.arange(self.groups, last)
        masses = np.array(self._masses[self.groups - self.known : last - self.known])
        found = Segment(
            *(rows, self.number, self.origin, baseline, last, new, masses, step),
        )
        self.number, self.groups = self.number + self._rows, last
        self._waiting, self._rows = [], 0
        return found


def replay(
    parts: Parts,
    reduction: Reduction,
    groups: int,
    segments: Iterable[Segment],
    engine: str | Engine | None,
    jobs: int | None,
    done: Callable[[Outcome], None],
) -> Carried:
    """Run segments from where a reduction with so many groups is; returns where they end."""
    parts = parts._replace(offset=offset_of(reduction))
    start = carried_from(reduction, groups)
    with opened(engine, jobs) as chosen:
        return run(parts, start, segments, chosen, done)


def after(parts: Parts, reduction: Reduction, carried: Carried, features: int) -> Reduction:
    """The reduction at the end, in the place of that which the segments began with."""
    found = parts.reduction()
    offset = offset_of(reduction)
    if offset is not None:
        crew_of(found).recorder.load({"hindsight.offset": np.array([offset])}, 0, 0)
    found.stands_for = reduction.stands_for
    carry_over(carried, found, features)
    return found


def refuse(reduction: Reduction) -> None:
    """Raise ConfigurationError where learners are no functions of sums."""
    if reduction.windows is not None:
        raise ConfigurationError(
            "Windows come and go with the rounds of their groups, not with segments. Leave windows "
            "or segment out."
        )
    if reduction.divided is not None:
        raise ConfigurationError(
            "Segments are for models whose groups all have the same learners. Leave segment out: "
            "groups run in parallel then."
        )
    for one in reduction.learners:
        if not (getattr(one, "adds_up", False) or isinstance(one, Logged)):
            raise ConfigurationError(
                f"{getattr(one, 'name', type(one).__name__)} cannot begin a segment: what it has "
                "learned does not add up over rows, as that of learners.Ridge does. Leave segment "
                "out: groups run in parallel then."
            )
    if all(isinstance(one, Logged) for one in reduction.learners):
        raise ConfigurationError("Segments are for learners.Ridge, and there is none.")


def offset_of(reduction: Reduction) -> float | None:
    """What labels are shifted by for hindsight."""
    recorder = crew_of(reduction).recorder
    if not isinstance(recorder, LinearRecorder):
        return None
    return float(recorder.stores["hindsight"].parameters[OFFSET])


def carried_from(reduction: Reduction, groups: int) -> Carried:
    """What a model has learned and recorded so far."""
    crew = crew_of(reduction)
    begin = beginnings.of_crew(crew, groups)
    figures = beginnings.figures(crew, np.array(list(begin), dtype=np.int64))
    recorded: dict[int, GroupSums] = {}
    if offset_of(reduction) is not None:
        sums, products = crew.recorder.stores.values()
        for group in range(min(groups, len(sums))):
            if sums.block[group] < 0 or products.block[group] < 0:
                continue
            features = crew.features(group)
            width = room(features.size)
            own = taken(sums.part(group, width), products.part(group, width), features)
            if own.factors[0] != 0:
                recorded[group] = own
    known = dict(zip(begin, figures, strict=True))
    return Carried(begin, recorded, Settled(reduction.save_settled(groups), groups, known, None))


def carry_over(carried: Carried, reduction: Reduction, features: int) -> None:
    """Make a model, which has learned nothing yet, what it is after the last segment."""
    crew, settled = crew_of(reduction), carried.settled
    everybody = np.arange(settled.groups)
    reduction.load_settled(dict(settled.state), settled.groups)
    reduction.reserve(everybody, features)
    beginnings.take_up(crew, everybody, carried.beginnings, calm=False)
    bank = beginnings.bank_of(crew)
    for group, (minimum, determinant) in settled.figures.items():
        own = bank.store.of(group)
        own.minimum[:], own.log_determinant[:] = minimum, determinant
    if carried.recorded:
        sums, products = crew.recorder.stores.values()
        for group, own in carried.recorded.items():
            for store in (sums, products):
                store.reserve(np.array([group]), own.width)
            if not is_few(own):
                sums.give_late(np.array([group]))
            written(own, sums.of(group), products.of(group))
    crew.reserve(everybody, features)
