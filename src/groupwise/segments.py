"""A stream in segments of time: learners begin each with the sums of all rows before it.

A replay is bound by its longest chain: the always-on group learns from every row in order. But a
ridge learner is a function of sums, and sums add up. So, for segments of so many rows,

1. every segment's sums are added up, one apart from another (``add_up``);
2. in order, they make what learners begin each segment with (``follow``), and hindsight
   (``record``): a few matrices per segment;
3. the learners go through every segment, one apart from another (``learn``);
4. the aggregator and the books go through what was said, in order (``settle``).

What is computed is a function of the rows and of where segments begin, not of how many workers
there are or where they are: the tasks are functions of plain values, and an engine
(``protocols.Engine``) runs them. From the numbers of a replay without segments these differ by
rounding, as every segment begins with sums that were rounded otherwise.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.beginnings import decay, lay_leaning
from groupwise.kernels.cells import Cells
from groupwise.kernels.hindsight import TOGETHER
from groupwise.layers import AnyLayer, reduction_for
from groupwise.learners import beginnings
from groupwise.learners.beginnings import Adding, Apart, Beginnings, Passed
from groupwise.learners.crew import Crew
from groupwise.learners.logged import Logged
from groupwise.learners.recorders import Recorder, SegmentRecorder
from groupwise.learners.rosters import Rosters
from groupwise.losses import Loss
from groupwise.protocols import AnyAggregator, Engine
from groupwise.reduction import Reduction
from groupwise.regret.hindsight import Factor
from groupwise.regret.sums import GroupSums, merged
from groupwise.stream import NONE, Chunk, Laid, Outcome, Stream

AHEAD = 2
"""Segments per worker that are on their way at once."""


class Parts(NamedTuple):
    """A model's configuration, as tasks need it."""

    layer: AnyLayer | None
    learners: Sequence[Any] | Rosters
    """Of every group; of tasks, the same for all."""
    aggregator: AnyAggregator
    loss: Loss
    play: str | None
    clip: bool
    seed: int
    width: int
    always_on: bool
    intercept: bool
    offset: float | None = None
    """What labels are shifted by for hindsight; None where it is not that of a linear model."""
    keep: bool = False
    """Are advice and weights wanted?"""
    afresh: bool = False
    """Does the aggregator begin anew with every segment?"""

    def reduction(self) -> Reduction:
        """Algorithm 1 of these parts, which has seen nothing."""
        return reduction_for(*self[:10])

    @property
    def adding(self) -> tuple[Adding, ...]:
        """The learners but those that come with the rows."""
        assert not isinstance(self.learners, Rosters)
        return tuple(one for one in self.learners if not isinstance(one, Logged))

    @property
    def forgetting(self) -> list[float]:
        """The factors by which learners forget, each once."""
        return sorted({float(one.forgetting) for one in self.adding})


class Segment(NamedTuple):
    """Some consecutive rows of a stream, encoded."""

    rows: tuple[Chunk, ...]
    number: int
    """That of the first ticket."""
    origin: int
    """That of the first ticket of the whole replay."""
    baseline: int
    groups: int
    """How many groups there are by its end."""
    new: Index
    """Which of them were not there before."""
    masses: Vector
    """The prior masses of these."""
    step: int
    """Rows at a time."""

    def chunks(self, bare: bool = False) -> Iterator[Chunk]:
        """The rows, a few at a time; ``bare`` without their features."""
        for whole in self.rows:
            if bare:
                whole = whole._replace(cells=no_cells(whole.labels.size))
            for start in range(0, whole.labels.size, self.step):
                yield _own(whole.part(start, min(start + self.step, whole.labels.size)))

    def packed(self) -> "Segment":
        """The same without the positions of cells where they tell nothing: half the bytes."""
        rows = [
            one._replace(cells=one.cells._replace(indices=one.cells.indices[:0].copy()))
            if one.cells.full.all()
            else one
            for one in self.rows
        ]
        return self._replace(rows=tuple(rows))

    def awake(self) -> Index:
        """The groups that are awake in some row."""
        found: Index = np.unique(np.concatenate([chunk.groups for chunk in self.rows]))
        return found


def owned(array: Any) -> Any:
    """An array that kernels take, also where it comes from memory that others share."""
    return array if array.flags.c_contiguous and array.flags.writeable else array.copy()


class _Lent:
    """An array that others share, as kernels take it that only read: without a copy of it."""

    def __init__(self, array: Vector) -> None:
        self.array = array
        there = {"data": (array.ctypes.data, False)}
        self.__array_interface__ = dict(array.__array_interface__) | there


def _own(chunk: Chunk) -> Chunk:
    indptr, indices, values, full = chunk.cells
    read = values if values.flags.writeable else np.asarray(_Lent(values))
    cells = Cells(owned(indptr), owned(indices), read, owned(full))
    arrays = map(owned, (*chunk[1:5], chunk.logged))
    indptr, groups, weights, labels, logged = arrays
    return Chunk(cells, indptr, groups, weights, labels, chunk.features, logged)


def no_cells(rows: int) -> Cells:
    """Rows without features."""
    none = np.zeros(0, dtype=np.int64)
    indptr = np.zeros(rows + 1, dtype=np.int64)
    return Cells(indptr, none, np.zeros(0), np.zeros(rows, dtype=np.bool_))


class Added(NamedTuple):
    """The sums of a segment."""

    groups: Index
    """Those that are awake in it, ascending; all that follows is in their order."""
    counts: Index
    """How many rounds each has."""
    weights: tuple[Vector, ...]
    """Those of the rounds; none of any group where all are 1."""
    masses: Mapping[float, Vector]
    """Σ w as faded as they are at the end, by forgetting factor."""
    sums: tuple[list[GroupSums], ...]
    """For hindsight first, where there is such; then for every factor."""
    passed: tuple[Mapping[float, Apart], ...]
    """Rows for learners of every forgetting factor."""


class Learned(NamedTuple):
    """What learners said in a segment, and what they have in sums of their own."""

    said: Vector
    groups: Index
    figures: Vector


class Settled(NamedTuple):
    """Aggregator and books after a segment, and what happened in it."""

    state: Mapping[str, Any]
    groups: int
    figures: Mapping[int, Vector]
    """M and ln det(A/λ) of every group's learners."""
    outcome: Outcome | None


class Carried(NamedTuple):
    """A model between two segments, as plain values."""

    beginnings: Beginnings
    recorded: Mapping[int, GroupSums]
    settled: Settled


def crew_of(reduction: Reduction) -> Crew:
    """The compiled learners of a reduction."""
    crew = reduction.banks[0]
    assert isinstance(crew, Crew)
    return crew


# The tasks.


def add_up(parts: Parts, segment: Segment) -> Added:
    """The sums of a segment: a function of its rows alone."""
    recorder = SegmentRecorder(parts.offset, parts.forgetting)
    crew = Crew([], parts.loss, recorder=recorder)
    chunks = [(chunk.groups, chunk.weights) for chunk in segment.rows]
    groups = np.concatenate([one for one, _ in chunks])
    weights = np.concatenate([one for _, one in chunks])
    plain: Vector = np.bincount(groups, weights, segment.groups).astype(np.float64)
    recorder.begin(plain)
    slots = np.full(segment.groups, -1, dtype=np.int32)
    for chunk in segment.chunks():
        work = Laid(chunk, segment.number, slots, [crew], segment.baseline)
        crew.reserve(work.parts.groups, work.features)
        crew.run(work, np.empty(0))
    awake, counts = np.unique(groups, return_counts=True)
    apart: tuple[Vector, ...] = ()
    if recorder.each and (weights != 1.0).any():
        in_order = weights[np.argsort(groups, kind="stable")]
        apart = tuple(np.split(in_order, np.cumsum(counts)[:-1]))
    sums = tuple(recorder.of(group, crew.features(group)) for group in awake.tolist())
    masses = {1.0: plain[awake]}
    masses |= {one: recorder.masses[awake, k] for k, one in enumerate(recorder.factors.tolist())}
    own = [{gamma: one[recorder.places[gamma]] for gamma in parts.forgetting} for one in sums]
    passed = _passed(parts, segment, awake, own, plain)
    return Added(awake, counts, apart, masses, sums, passed)


def _passed(
    parts: Parts,
    segment: Segment,
    awake: Index,
    sums: Sequence[Mapping[float, GroupSums]],
    weights: Vector,
) -> tuple[Mapping[float, Apart], ...]:
    """The sums of groups as learners take them in; where columns lean, once more without that."""
    found = [{x: Apart(y.rows, y.right, np.zeros(y.width)) for x, y in one.items()} for one in sums]
    gammas = parts.forgetting
    parameters = beginnings.bank_of(crew_of(parts.reduction())).parameters if gammas else NONE
    least = {
        gamma: min((x for x in parts.adding if x.forgetting == gamma), key=lambda x: x.penalty)
        for gamma in gammas
    }
    leaning: dict[int, dict[float, tuple[_Steady, Vector, int]]] = {}
    for group, one in zip(awake.tolist(), sums, strict=True):
        for gamma, own in one.items():
            chosen = beginnings.multiples_for(own, least[gamma], parameters)
            if chosen is not None:
                leaning.setdefault(group, {})[gamma] = _Steady(own.width), *chosen
    if not leaning:
        return tuple(found)
    slots, left = np.full(segment.groups, -1, dtype=np.int32), weights.copy()
    factors, masses = np.array(gammas), np.zeros((weights.size, len(gammas)))
    features = dict(zip(awake.tolist(), (one[gammas[0]].features for one in sums), strict=True))
    for chunk in segment.chunks():
        work = Laid(chunk, segment.number, slots, [], segment.baseline)
        members = work.indptr, work.groups, work.weights, work.labels
        cells = np.empty(2 * work.groups.size * len(gammas))
        decay(*members, factors, left, masses, cells)
        weighted = cells.reshape(-1, len(gammas), 2)
        for i, group in enumerate(work.parts.groups.tolist()):
            if group not in leaning:
                continue
            some = slice(*work.parts.starts[i : i + 2])
            rows, entries = work.parts.rows[some], work.parts.entries[some]
            columns = np.full(int(features[group].max(initial=-1)) + 1, -1)
            columns[features[group]] = np.arange(features[group].size)
            for gamma, (factor, multiples, pivot) in leaning[group].items():
                labels, matrix = np.empty(rows.size), np.zeros((rows.size, factor.width))
                each = weighted[entries, gammas.index(gamma)]  # of all groups it would take long
                lay_leaning(*work.cells, rows, each, columns, multiples, pivot, matrix, labels)
                factor.add(matrix, labels)
    for i, group in enumerate(awake.tolist()):
        for gamma, (factor, multiples, pivot) in leaning.get(group, {}).items():
            found[i][gamma] = Apart(*factor.whole(), multiples, pivot)
    return tuple(found)


class _Steady:
    """A factor of rows, the same for whatever chunks these come in."""

    def __init__(self, width: int) -> None:
        self._factor = Factor(width)
        self.width = self._factor.right.size
        self._rows, self._labels = np.zeros((0, self.width)), np.zeros(0)

    def add(self, rows: Vector, labels: Vector) -> None:
        """Fold in rows, so many at a time; what is left over waits for more."""
        rows, labels = np.concatenate([self._rows, rows]), np.concatenate([self._labels, labels])
        whole = labels.size - labels.size % TOGETHER
        self._factor.add(rows[:whole], labels[:whole])
        self._rows, self._labels = rows[whole:], labels[whole:]

    def whole(self) -> tuple[Vector, Vector]:
        """The factor of all rows, and its labels."""
        self._factor.add(self._rows, self._labels)
        self._rows, self._labels = self._rows[:0], self._labels[:0]
        return self._factor.matrix, self._factor.right


def follow(parts: Parts, before: Beginnings, added: Added) -> Beginnings:
    """What learners begin the next segment with."""
    bank = beginnings.bank_of(crew_of(parts.reduction()))
    after = dict(before)
    for i, group in enumerate(added.groups.tolist()):
        masses = {gamma: float(added.masses[gamma][i]) for gamma in parts.forgetting}
        weights = owned(added.weights[i]) if added.weights else np.zeros(0)
        features = added.sums[i][0].features
        passed = Passed(features, added.passed[i], masses, int(added.counts[i]), weights)
        args = bank.learners, bank.parameters, passed
        after[group] = beginnings.followed(before.get(group), *args)
    return after


def record(before: Mapping[int, GroupSums], added: Added) -> Mapping[int, GroupSums]:
    """The sums for hindsight with those of another segment."""
    after = dict(before)
    for group, own in zip(added.groups.tolist(), added.sums, strict=True):
        after[group] = merged(before.get(group), own[0])
    return after


def learn(parts: Parts, begin: Beginnings, segment: Segment) -> Learned:
    """The learners over a segment: what they say before every label."""
    reduction = parts.reduction()
    crew = crew_of(reduction)
    crew = Crew(crew.banks, parts.loss, parts.intercept, parts.always_on, Recorder())
    reduction.banks[0] = crew
    awake = segment.awake()
    reduction.state.reserve(np.arange(segment.groups)[-1:], 0)  # there may be none yet
    beginnings.take_up(crew, awake, begin, calm=True)
    stream = Stream(reduction, segment.baseline, segment.number, 1)
    stream.first = segment.origin
    said = [one.copy() for one in stream.speak(segment.chunks())]
    return Learned(np.concatenate(said), awake, beginnings.figures(crew, awake))


def settle(parts: Parts, before: Settled, segment: Segment, learned: Learned) -> Settled:
    """The aggregator and the books over a segment."""
    reduction = parts.reduction()
    reduction.banks = []
    reduction.load_settled(dict(before.state), before.groups)
    reduction.reserve(segment.awake(), 0, segment.new, segment.masses)
    if parts.afresh:
        reduction.begin_anew(segment.groups)
    stream = Stream(reduction, segment.baseline, segment.number, 1)
    stream.first = segment.origin
    found: list[Outcome] = []
    stream.settle(segment.chunks(bare=True), learned.said, found.append)
    fields = [np.concatenate([getattr(one, name) for one in found]) for name in Outcome._fields]
    outcome = Outcome(*fields)
    if not parts.keep:
        outcome = outcome._replace(advice=NONE, probabilities=NONE)
    figures = dict(before.figures)
    for group, own in zip(learned.groups.tolist(), learned.figures, strict=True):
        figures[group] = figures[group] + own if group in figures else own
    state = reduction.save_settled(segment.groups)
    return Settled(state, segment.groups, figures, outcome)


# The driver.


def run(
    parts: Parts,
    carried: Carried,
    segments: Iterable[Segment],
    engine: Engine,
    done: Callable[[Outcome], None],
) -> Carried:
    """Run the segments on an engine; ``done`` is called with each one's outcome, in order."""
    given = engine.put(parts)
    begin, recorded, settled = (engine.put(one) for one in carried)
    pending: deque[Any] = deque()

    def finish(most: int) -> None:
        while len(pending) > most:
            done(engine.get(pending.popleft()).outcome)

    for segment in segments:
        finish(AHEAD * engine.workers)
        rows = engine.put(segment.packed())
        added = engine.submit(add_up, given, rows)
        learned = engine.submit(learn, given, begin, rows)
        begin = engine.submit(follow, given, begin, added)
        if parts.offset is not None:
            recorded = engine.submit(record, recorded, added)
        settled = engine.submit(settle, given, settled, rows, learned)
        pending.append(settled)
    finish(0)
    last = engine.get(settled)._replace(outcome=None)
    return Carried(engine.get(begin), engine.get(recorded), last)
