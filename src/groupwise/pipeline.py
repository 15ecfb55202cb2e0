"""Segments whose rows tasks read by themselves: nobody holds the stream, nor its beginning.

What a row is in numbers depends on the rows before it: on which groups and values were met, and on
what makers remember (``gw.past``, ``gw.hinges``, ``gw.encoded``). A *reader* is that knowledge.
With makers, readers go through the segments in order. Without, a task looks through its segment
with the reader that the first segment left; where it meets nothing new, which is the rule, what it
found stands as it is, and all segments are read at once. Else that segment is read again with the
reader that the segments before it leave. The numbers are the same either way.
"""

import copy
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from groupwise import segmented
from groupwise.errors import GroupwiseError
from groupwise.features import Derived, Encoder
from groupwise.features.experts import Experts
from groupwise.groups import Groups, Member
from groupwise.learners.beginnings import Beginnings
from groupwise.losses import Loss
from groupwise.protocols import Engine
from groupwise.reading import ReadFrame, read_frame
from groupwise.registry import Registry
from groupwise.regret.table import RegretTable, regret_table
from groupwise.segments import (
    Added,
    Carried,
    Learned,
    Parts,
    Segment,
    Settled,
    add_up,
    follow,
    learn,
    record,
    settle,
)
from groupwise.stream import rows_at_a_time


class Reader(NamedTuple):
    """What is known before a row: how frames become numbers. Nobody changes it."""

    loss: Loss
    groups: Groups
    encoder: Encoder
    registry: Registry
    derived: Derived | None
    experts: Experts | None

    def read(self, frame: Any, target: str) -> ReadFrame:
        """A frame, read and checked."""
        parts = self.loss, self.groups, self.encoder, self.registry
        return read_frame(frame, target, *parts, self.derived, self.experts)

    def after(self, read: ReadFrame) -> "Reader":
        """What is known after the rows of a frame."""
        twin = self._replace(derived=read.derived)
        if not is_new(read):
            return twin
        encoder, registry = copy.deepcopy((self.encoder, self.registry))
        registry.admit(read.groups)
        encoder.admit(read.encoded)
        return twin._replace(encoder=encoder, registry=registry)


def is_new(read: ReadFrame) -> bool:
    """Has a frame a group or a feature that was not met before?"""
    return bool(read.groups or read.encoded.new)


class Encoded(NamedTuple):
    """The rows of a segment in numbers, and what is known after them."""

    segment: Segment
    members: list[Member]
    """The groups that are awake, in the order of ``segment.awake()``."""
    learned: int
    """How many rows have somebody awake."""
    reader: Reader | None


class Handles(NamedTuple):
    """What an engine has of a segment, or will have."""

    first: int
    """Its first row, counted from 0."""
    frame: Any
    encoded: Any
    reader: Any
    """After its rows; or ``Encoded`` that have it."""
    begin: Any
    recorded: Any
    settled: Any


# The tasks.


def known(given: Any) -> Reader:
    """The reader that is meant: itself, or that after encoded rows."""
    reader = given.reader if isinstance(given, Encoded) else given
    assert isinstance(reader, Reader)
    return reader


@contextmanager
def at_row(first: int) -> Iterator[None]:
    """Say of an error at which row of the stream it is, and not of the segment."""
    try:
        yield
    except GroupwiseError as error:
        if error.row is not None:
            error.row += first
        raise


def scout(reader: Reader, frame: Any, target: str, place: tuple[int, int]) -> ReadFrame:
    """Look through a segment with what is known early on."""
    with at_row(place[0]):
        return reader.read(frame, target)


def advance(given: Any, found: ReadFrame, frame: Any, target: str) -> Reader:
    """What is known after a segment."""
    reader = known(given)
    return reader.after(reader.read(frame, target)) if is_new(found) else reader


def encode(
    parts: Parts,
    given: Any,
    found: ReadFrame | None,
    frame: Any,
    target: str,
    place: tuple[int, int],
) -> Encoded:
    """A segment in numbers; what is known after it only where nobody has looked through it.

    ``place`` is its first row in the stream, and the number of the stream's first ticket.
    """
    reader, (number, origin) = known(given), place
    with at_row(number):
        new = found is None or is_new(found)
        read = reader.read(frame, target) if new or found is None else found
    after = reader.after(read)
    groups, before, features = len(after.registry), len(reader.registry), len(after.encoder.names)
    rows = read.rows._replace(features=list(after.encoder.names))
    segment = Segment(
        rows=(rows,),
        number=origin + number,
        origin=origin,
        baseline=after.registry.everybody,
        groups=groups,
        new=np.arange(before, groups),
        masses=np.array(reader.registry.masses(read.groups)),
        step=rows_at_a_time(parts.reduction(), groups, features),
    )
    members = [after.registry.members[group] for group in segment.awake().tolist()]
    return Encoded(segment.packed(), members, read.learned, after if found is None else None)


def add_up_of(parts: Parts, encoded: Encoded) -> Added:
    """See ``segments.add_up``."""
    return add_up(parts, encoded.segment)


def learn_of(parts: Parts, begin: Beginnings, encoded: Encoded) -> Learned:
    """See ``segments.learn``."""
    return learn(parts, begin, encoded.segment)


def settle_of(parts: Parts, before: Settled, encoded: Encoded, learned: Learned) -> Settled:
    """See ``segments.settle``."""
    return settle(parts, before, encoded.segment, learned)


def account(
    parts: Parts,
    given: Any,
    begin: Beginnings,
    recorded: Any,
    settled: Settled,
    rows: int,
    largest: int | None,
) -> RegretTable:
    """The regret table after a segment, of the largest groups."""
    reader, features = known(given), len(known(given).encoder.names)
    carried = Carried(begin, recorded, settled)
    reduction = segmented.after(parts, parts.reduction(), carried, features)
    return regret_table(reduction, reader.registry.names, features, rows, largest)


# The driver.


class Pipeline:
    """Runs segments on an engine, a few ahead of what is taken.

    Parameters
    ----------
    engine : where tasks run.
    parts : the configuration of the model.
    carried, reader : what was learned, recorded and met before.
    target : the column of the labels.
    origin : the number of the first ticket.
    """

    def __init__(
        self,
        engine: Engine,
        parts: Parts,
        carried: Carried,
        reader: Reader,
        target: str,
        origin: int = 0,
    ) -> None:
        self.engine, self.target, self.origin = engine, target, origin
        self.parts = engine.put(parts)
        self.hindsight = parts.offset is not None
        self.reader = engine.put(reader)
        self.begin, self.recorded, self.settled = (engine.put(one) for one in carried)
        self.in_order = reader.derived is not None
        self._early: Any = None

    def next(self, first: int, read: Callable[..., Any], *arguments: Any) -> Handles:
        """Submit everything about the segment that begins with row ``first``.

        ``read(*arguments)`` gives its rows as a frame, in a task.
        """
        engine, parts = self.engine, self.parts
        frame = engine.submit(read, *arguments)
        before, place = self.reader, (first, self.origin)
        if self.in_order or self._early is None:
            encoded = engine.submit(encode, parts, before, None, frame, self.target, place)
            self.reader = encoded
            self._early = engine.submit(known, encoded)
        else:
            found = engine.submit(scout, self._early, frame, self.target, place)
            self.reader = engine.submit(advance, before, found, frame, self.target)
            encoded = engine.submit(encode, parts, before, found, frame, self.target, place)
        added = engine.submit(add_up_of, parts, encoded)
        learned = engine.submit(learn_of, parts, self.begin, encoded)
        self.begin = engine.submit(follow, parts, self.begin, added)
        if self.hindsight:
            self.recorded = engine.submit(record, self.recorded, added)
        self.settled = engine.submit(settle_of, parts, self.settled, encoded, learned)
        state = self.reader, self.begin, self.recorded, self.settled
        return Handles(first, frame, encoded, *state)

    def finish(self) -> tuple[Carried, Reader]:
        """What was learned, recorded and met, when all segments are through."""
        get = self.engine.get
        settled = get(self.settled)._replace(outcome=None)
        return Carried(get(self.begin), get(self.recorded), settled), known(get(self.reader))


def in_turn(engine: Engine, things: Iterable[Any], ahead: int) -> Iterator[Any]:
    """The values of handles, in their order, while a few further ones are asked for."""
    waiting: list[Any] = []
    for handle in things:
        waiting.append(handle)
        if len(waiting) > ahead * engine.workers:
            yield engine.get(waiting.pop(0))
    while waiting:
        yield engine.get(waiting.pop(0))
