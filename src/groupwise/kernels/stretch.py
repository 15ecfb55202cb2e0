"""The rounds of a group, and running the compiled parts of a model over them.

A *stretch* is some consecutive rounds of one group. A compiled learner is two kernels: ``advise``,
for one round whose label is unknown, and ``learn``, for a stretch whose labels are known: advice
before every update, then the update. The loops here bring them their rounds, one at a time
(``advise``, ``step``) or group by group from a queue that threads share (``run``). The learners'
kernels are the same in all of them, and so are the numbers.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import types

from groupwise.arrays import LARGEST, Flags, Index, Vector
from groupwise.kernels.addresses import INTERPRETED, address_of, call, next_of
from groupwise.kernels.cells import padded, tidy
from groupwise.kernels.columns import FULL, admit, columns_of, lay, name
from groupwise.kernels.compiled import entry, inlined, lean
from groupwise.kernels.layout import Message, address, open_place
from groupwise.kernels.vectors import prefetch

if TYPE_CHECKING:
    from groupwise.protocols import Awake

MANY = 256
"""Groups from which on they are taken several at a time, and fetched ahead."""
FETCHED = 192
"""Numbers at the front of a record that are fetched ahead."""
MARKS = 16
"""Whole numbers that a kernel may work with."""
KEEP = MARKS - 1
"""The one by which a kernel asks for the row to be kept."""
READY, NO_ROOM, TOO_LARGE, TO_KEEP = range(4)
"""What single rounds come back with."""


class Stretch(NamedTuple):
    """Rounds ``first`` to ``last`` of a group, and room to work in.

    Round i is row ``rows[i]``, whose features are ``values[indptr[row]:indptr[row + 1]]`` in those
    of the group's columns that ``cells_of`` tells, and whose label is ``labels[row]``; its weight
    in the group is ``weights[entries[i]]``, and the advice of learner k goes to
    ``advice[entries[i] * columns + column + k]``.
    """

    group: int
    width: int
    """How many of the group's columns have been used, in whole vectors; all others are 0."""
    first: int
    last: int
    column: int
    columns: int
    entries: Index
    rows: Index
    weights: Vector
    labels: Vector
    indptr: Index
    values: Vector
    places: Index
    """Where the positions of a round begin; FULL where it has none (``kernels.columns``)."""
    positions: Index
    advice: Vector
    anchors: Vector
    """Weights and labels of parabolas, for the kernels that sum them up, by entry; or nothing."""
    stands_for: Vector
    """One number: how many rounds a label stands for in the books; 1 unless feedback is partial."""
    work: Vector
    marks: Index
    leader: int
    """The always-on group, to whose models others lean; −1 where there is none."""
    features: int
    leading: Vector
    """θ of the k-th of the leader's learners before row t is learned from, by feature, is
    ``leading[(t * learners + k) * features:]``, where somebody leans to it."""
    origin: int
    known: int
    """The group has so many columns: they are the features ``named[origin:origin + known]``."""
    named: Index


class Crew(NamedTuple):
    """The compiled parts of a model: for each its kernels, its state and its first column."""

    begin: Index
    """Where the parts of each division begin, and where the last ones end."""
    divided: int
    """Is there more than one division of groups, with learners of its own?"""
    division: Index
    """The division of every group, where there are several."""
    advise: Index
    """0 for a part that gives no advice."""
    learn: Index
    states: Index
    first: Index
    lead: Index
    """The kernels by which a part tells what others lean to; 0 for a part that tells nothing."""
    leads: int
    """Does somebody lean to the always-on group, which is the last awake one?"""
    seen: int
    """The columns of the groups."""
    counts: Index
    """How many columns each awake group has with the row."""
    indices: Index
    full: Flags
    stretch: Index
    """The message of the stretch that single rounds use; from here on what is in it."""
    entries: Index
    labels: Vector
    indptr: Index
    values: Vector
    places: Index
    positions: Index
    stands_for: Vector
    marks: Index
    named: Index
    features: int
    """How many features there is room for."""
    awake: int
    """How many awake groups there is room for."""


class AwakeGroups(NamedTuple):
    """The awake groups of a round, for kernels."""

    count: int
    groups: Index
    weights: Vector


STRETCH, CREW, AWAKE = Message(Stretch), Message(Crew), Message(AwakeGroups)
open_stretch, open_crew, open_awake = STRETCH.open, CREW.open, AWAKE.open
GROUP, USED, FIRST, LAST, COLUMN = (
    STRETCH.slots[x] for x in ("group", "width", "first", "last", "column")
)
WEIGHTS, ADVICE = STRETCH.slots["weights"], STRETCH.slots["advice"]
LEADER, ORIGIN, KNOWN = (STRETCH.slots[x] for x in ("leader", "origin", "known"))


@inlined
def cells_of(stretch, i):
    """Where the cells of round i are: ``positions[first:last]`` and ``values[start:stop]``.

    A row without positions is full: its values are those of the group's first columns. Otherwise
    positions are in no order, and one may come twice, with a value of 0.
    """
    row, first = stretch.rows[i], stretch.places[i]
    start, stop = stretch.indptr[row], stretch.indptr[row + 1]
    if first == FULL:
        return 0, 0, start, stop
    return first, first + stop - start, start, stop


@inlined
def division_of(crew, group):
    """The division that a group is in."""
    return crew.division[group] if crew.divided != 0 else 0


@inlined
def _lay_out(crew, awake, xi, xv, said):
    """Write a row into the stretch of single rounds; READY, unless there is no room for it."""
    last = 0
    for k in range(xi.size):
        last = max(last, xi[k])
    if awake.count > crew.awake or padded(last + 1) > crew.features:
        return NO_ROOM
    listed, size = tidy(xi, xv, crew.indices, crew.values)
    seen = open_place(crew.seen)
    for a in range(awake.count):
        group = awake.groups[a]
        if group >= seen.groups or seen.block[group] < 0:
            return NO_ROOM
        start = a * crew.features
        given, values = crew.indices[:listed], crew.values[:size]
        own, out = columns_of(seen, group), crew.positions[start : start + size]
        count, written = lay(own, given, values, listed < size, out)
        crew.counts[a] = count
        crew.places[a] = start if written > 0 else FULL
        if padded(count) > seen.width[group]:
            return NO_ROOM
        division = division_of(crew, group)
        for part in range(crew.begin[division], crew.begin[division + 1]):
            place = open_place(crew.states[part])
            if group >= place.groups or place.width[group] < padded(count):
                return NO_ROOM
    crew.indptr[1] = size
    crew.full[0] = listed < size
    crew.stretch[WEIGHTS] = address_of(awake.weights)
    crew.stretch[ADVICE] = address_of(said)
    return READY


@inlined
def _admit(crew, seen, a, group):
    """Make the columns of the row that was laid out the group's own."""
    own = columns_of(seen, group)
    if crew.counts[a] > own.count[0]:
        size, start = crew.indptr[1], a * crew.features
        given, values = crew.indices[:size], crew.values[:size]
        positions = crew.positions[start : start + size]
        admit(own, given, values, crew.full[0], positions, crew.counts[a])


@inlined
def _round_of(crew, a, group, part):
    """Make the stretch of single rounds that of one awake group, for one part of the crew."""
    crew.stretch[GROUP] = group
    crew.stretch[USED] = padded(crew.counts[a])
    crew.stretch[FIRST] = a
    crew.stretch[LAST] = a + 1
    crew.stretch[COLUMN] = crew.first[part]
    crew.stretch[ORIGIN] = a * crew.features
    crew.stretch[KNOWN] = crew.counts[a]


@inlined
def _follow(crew, awake):
    """Write down what the always-on group's learners think now, for those who lean to it."""
    seen, size = open_place(crew.seen), crew.indptr[1]
    for a in range(awake.count):
        start = a * crew.features
        given, values = crew.indices[:size], crew.values[:size]
        written = 0 if crew.places[a] == FULL else size
        positions = crew.positions[start : start + written]
        out = crew.named[start : start + crew.counts[a]]
        name(columns_of(seen, awake.groups[a]), given, values, crew.full[0], positions, out)
    last = awake.count - 1
    crew.stretch[LEADER] = awake.groups[last]
    division = division_of(crew, awake.groups[last])
    for part in range(crew.begin[division], crew.begin[division + 1]):
        if crew.lead[part] != 0:
            _round_of(crew, last, awake.groups[last], part)
            call(crew.lead[part], crew.states[part], address_of(crew.stretch))


@entry
def advise(message, awake_message, xi, xv, said):
    """The advice of every awake learner on a row, to the front of ``said``. Changes nothing."""
    crew, awake = open_crew(message), open_awake(awake_message)
    for k in range(xv.size):
        if not abs(xv[k]) <= LARGEST:
            return TOO_LARGE
    if _lay_out(crew, awake, xi, xv, said) != READY:
        return NO_ROOM
    if crew.leads != 0:
        _follow(crew, awake)
    for a in range(awake.count):
        division = division_of(crew, awake.groups[a])
        for part in range(crew.begin[division], crew.begin[division + 1]):
            if crew.advise[part] != 0:
                _round_of(crew, a, awake.groups[a], part)
                call(crew.advise[part], crew.states[part], address_of(crew.stretch))
    return READY


@entry
def step(message, awake_message, xi, xv, label, stands_for, said):
    """The same, and then every awake learner is updated with the label.

    TO_KEEP where a learner wants the row to be kept.
    """
    crew, awake = open_crew(message), open_awake(awake_message)
    if _lay_out(crew, awake, xi, xv, said) != READY:
        return NO_ROOM
    crew.labels[0] = label
    crew.stands_for[0] = stands_for
    crew.marks[KEEP] = 0
    if crew.leads != 0:
        _follow(crew, awake)
    seen = open_place(crew.seen)
    for a in range(awake.count):
        _admit(crew, seen, a, awake.groups[a])
        division = division_of(crew, awake.groups[a])
        for part in range(crew.begin[division], crew.begin[division + 1]):
            _round_of(crew, a, awake.groups[a], part)
            call(crew.learn[part], crew.states[part], address_of(crew.stretch))
    return READY if crew.marks[KEEP] == 0 else TO_KEEP


@lean
def run(message, stretch, queue, groups, starts, counts, origins, but):
    """All rounds of groups from the queue, each in its order, until the queue is empty.

    Group ``groups[i]``, which has ``counts[i]`` columns, has the rounds ``starts[i]`` to
    ``starts[i + 1]`` of ``stretch``, the words of a message. The group ``but`` is left out.
    """
    crew = open_crew(message)
    total = groups.size
    batch = 1 + total // MANY
    turn = next_of(queue, batch)
    while turn < total:
        last = min(turn + batch, total)
        for i in range(turn, last):
            # Many groups are not in the cache; what is needed soon is on its way meanwhile.
            if total > MANY and i + 4 < last:
                division = division_of(crew, groups[i + 4])
                for part in range(crew.begin[division], crew.begin[division + 1]):
                    place = open_place(crew.states[part])
                    for table in (place.block, place.late, place.width):
                        prefetch(table, groups[i + 4], 1)
                    if groups[i + 2] < place.groups:
                        prefetch(place.pool, place.block[groups[i + 2]], FETCHED)
            if groups[i] == but:
                continue
            stretch[GROUP] = groups[i]
            stretch[USED] = padded(max(counts[i], 1))
            stretch[ORIGIN], stretch[KNOWN] = origins[i], counts[i]
            stretch[FIRST], stretch[LAST] = starts[i], starts[i + 1]
            division = division_of(crew, groups[i])
            for part in range(crew.begin[division], crew.begin[division + 1]):
                stretch[COLUMN] = crew.first[part]
                call(crew.learn[part], crew.states[part], address_of(stretch))
        turn = next_of(queue, batch)


_CELLS = (types.int64, types.int64, types.int64[::1], types.float64[::1])
_SAID = types.float64[:, :, ::1]
SIGNATURES = {
    advise: (*_CELLS, _SAID),
    step: (*_CELLS, types.float64, types.float64, _SAID),
}


def words(values: list[Any]) -> Any:
    """An array of addresses."""
    words = np.empty(len(values), dtype=object if INTERPRETED else np.int64)
    for i, value in enumerate(values):  # one by one: lists would become rows of a matrix
        words[i] = value
    return words


def addressed(awake: "Awake") -> Any:
    """Where kernels find the awake groups of a round."""
    if not awake.address:
        awake.message = AWAKE.pack(AwakeGroups(len(awake.groups), awake.groups, awake.weights))
        awake.address = address(awake.message)
    return awake.address
