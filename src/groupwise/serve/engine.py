"""One model that is served: requests become events, and are answered when these are durable."""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

from groupwise.errors import GroupwiseError
from groupwise.files.text import listed
from groupwise.serve.committer import Committer, Group
from groupwise.serve.errors import (
    ConflictError,
    InvalidError,
    ServiceError,
    StoreError,
    UnavailableError,
    UnknownError,
)
from groupwise.serve.seen import Seen
from groupwise.serve.state import (
    UNNAMED,
    Contents,
    Frozen,
    Issued,
    Row,
    State,
    same_label,
)
from groupwise.serve.store import (
    FORGOTTEN,
    PART,
    SETTLED,
    Answer,
    Event,
    ModelRecord,
    SnapshotRecord,
    Store,
)

LOG = logging.getLogger("groupwise.serve")
SLICE = 128
"""So much of a batch is done before others have their turn."""
ANSWERS = 120
"""So many settled tickets are written at once: events wait for as long as that takes."""
KEPT = 2
"""Snapshots."""
ADDED = 2_000
"""So many ids are noted at once."""
FIELDS = 5
"""So many are named of those in which rows differ."""
RECALLED = 4_096
"""Tickets that were read of a store on another machine, and are held for a while."""
PAUSE = 0.02
"""Seconds between steps of a snapshot while events come."""
ALREADY, CONFLICT, UNKNOWN, INVALID = "already", "conflict", "unknown", "invalid"


@dataclass(frozen=True)
class Ageing:
    """When a snapshot is taken, and what is kept for how long."""

    events: int = 100_000
    seconds: float = 60.0
    keep_log: bool = False
    remember: float = 30 * 86_400.0
    """Seconds for which the ids of settled tickets are known."""


@dataclass(frozen=True)
class Outcome:
    """What came of a label or of forgetting."""

    id: str
    outcome: str
    detail: str | None = None


@dataclass
class Counts:
    """What happened since the start."""

    predictions: int = 0
    repeated: int = 0
    labels: dict[str, int] = field(default_factory=dict)
    lag: Callable[[float], None] = lambda seconds: None
    """Told how long every label took to come."""

    def label(self, outcome: str) -> None:
        """Count a label."""
        self.labels[outcome] = self.labels.get(outcome, 0) + 1


class Engine:
    """A model, its tickets, and the way to the store. All calls are made in the event loop."""

    def __init__(
        self,
        record: ModelRecord,
        fence: int,
        state: State,
        store: Store,
        committer: Committer,
        ageing: Ageing,
        seen: Seen,
    ) -> None:
        self.record = record
        self.counts = Counts()
        self.unavailable: ServiceError | None = None
        """Why it can answer nothing now."""
        self.state = state
        known = store.snapshots(record.model)
        self.snapshots = [one for one in known if one.seq <= state.since]  # later ones are damaged
        self.broken: Callable[[ServiceError], None] = lambda error: None
        self._fence = fence
        self._store = store
        self._committer = committer
        self._ageing = ageing
        self._last: Group | None = None
        self._seen = seen
        """The ids that the store remembers."""
        self._recalled: dict[tuple[str | None, int | None], Answer] = {}
        """What it remembers of some of them; what is settled stays as it is."""
        self._snapshotting = asyncio.Lock()

    # Requests.

    async def predict(self, key: str | None, row: Row) -> bytes:
        """The answer for a row: the one that was given for this id, if there is one."""
        await self._recall([(key, None)])
        self._writable()
        issued, answer, event = self._predict(key, row, time.time())
        if event is not None:
            issued.group = self._append(event)
        await self._durable(issued)
        return answer

    async def predict_many(
        self, items: Sequence[tuple[str | None, Row]]
    ) -> list[bytes | GroupwiseError]:
        """The same for many rows; an error in the place of those that are refused."""
        found: list[bytes | GroupwiseError] = []
        tickets: list[Issued] = []
        await self._recall((key, None) for key, _ in items)
        for first in range(0, len(items), SLICE):
            if first:
                await asyncio.sleep(0)  # others have their turn
            self._writable()
            answers, some = self._predict_some(items[first : first + SLICE])
            found += answers
            tickets += some
        await self._durable(*tickets)
        return found

    def _predict_some(
        self, items: Sequence[tuple[str | None, Row]]
    ) -> tuple[list[bytes | GroupwiseError], list[Issued]]:
        """The answers for some rows, and their tickets."""
        found: list[bytes | GroupwiseError] = []
        tickets: list[Issued] = []
        made: list[Issued] = []
        events: list[Event] = []
        at = time.time()
        try:
            if self._all_new(items):
                self._apply(self.state.predict_many, items, at, found, made, events)
                self.counts.predictions += len(made)
                tickets = made
            else:
                for key, row in items:
                    try:
                        issued, answer, event = self._predict(key, row, at)
                    except (ConflictError, InvalidError) as error:
                        found.append(error)
                        continue
                    found.append(answer)
                    tickets.append(issued)
                    if event is not None:
                        made.append(issued)
                        events.append(event)
        finally:  # what happened in memory is written, whatever happened after it
            if events:
                group = self._append(*events)
                for issued in made:
                    issued.group = group
        return found, tickets

    def _predict(self, key: str | None, row: Row, at: float) -> tuple[Issued, bytes, Event | None]:
        """A ticket, its answer, and what happened; None where the ticket was there."""
        if key is not None:
            known = self._find(key, None)
            if known is not None:
                if not self.state.is_for(known, row):
                    names = self.state.other_fields(known, row)
                    others = f", which differs in {listed(names, FIELDS)}" if names else ""
                    raise ConflictError(
                        f"The id {key!r} has a prediction for another row{others}. Send the fields "
                        "that were sent at first, or give every row an id of its own."
                    )
                self.counts.repeated += 1
                return known, self.state.answer(known), None
        made: tuple[Issued, bytes, Event] = self._apply(self.state.predict, key, row, at)
        self.counts.predictions += 1
        return made

    def _all_new(self, items: Sequence[tuple[str | None, Row]]) -> bool:
        """Has none of these ids a prediction, and are they different?"""
        keys = [key for key, _ in items if key is not None]
        if len(set(keys)) < len(keys) or not self.state.knows_none(keys):
            return False
        return all(self._find(key, None) is None for key in self._seen.doubtful(keys))

    async def label(self, id: str | None, number: int | None, label: bytes) -> Outcome:
        """Settle a ticket with its label."""
        await self._recall([_named(id, number)])
        outcome, issued = self._label(id, number, label)
        if issued is not None:
            await self._durable(issued)
        return outcome

    async def label_many(
        self, items: Sequence[tuple[str | None, int | None, bytes]]
    ) -> list[Outcome]:
        """The same for many."""
        found: list[Outcome] = []
        tickets: list[Issued] = []
        await self._recall(_named(*item[:2]) for item in items)
        for place, item in enumerate(items):
            await _turn(place)
            outcome, issued = self._label(*item)
            found.append(outcome)
            if issued is not None:
                tickets.append(issued)
        await self._durable(*tickets)
        return found

    def _label(
        self, id: str | None, number: int | None, label: bytes
    ) -> tuple[Outcome, Issued | None]:
        self._writable()
        issued = self._find(*_named(id, number))
        name = id if id is not None else f"{UNNAMED}{number}"
        if issued is None:
            found = Outcome(name, UNKNOWN, "There is no such ticket.")
        elif issued.outcome == SETTLED and same_label(issued.label, label):
            found = Outcome(issued.id, ALREADY)
        elif issued.outcome is not None:
            said = "it was forgotten" if issued.outcome == FORGOTTEN else "it has another label"
            found = Outcome(issued.id, CONFLICT, f"The ticket is settled already: {said}.")
        else:
            found = self._settle(issued, label)
        self.counts.label(found.outcome)
        return found, issued

    def _settle(self, issued: Issued, label: bytes) -> Outcome:
        try:
            event = self._apply(self.state.settle, issued, label, time.time())
        except InvalidError as error:
            return Outcome(issued.id, INVALID, str(error))
        issued.group = self._append(event)
        self.counts.lag(issued.settled - issued.at)
        return Outcome(issued.id, SETTLED)

    async def forget(self, items: Sequence[tuple[str | None, int | None]]) -> list[Outcome]:
        """Drop tickets whose labels will never come."""
        found: list[Outcome] = []
        tickets: list[Issued] = []
        await self._recall(_named(*item) for item in items)
        for place, item in enumerate(items):
            await _turn(place)
            outcome, issued = self._forget(*item)
            found.append(outcome)
            if issued is not None:
                tickets.append(issued)
        await self._durable(*tickets)
        return found

    def _forget(self, id: str | None, number: int | None) -> tuple[Outcome, Issued | None]:
        self._writable()
        issued = self._find(*_named(id, number))
        if issued is None:
            return Outcome(id if id is not None else f"{UNNAMED}{number}", UNKNOWN), None
        if issued.outcome == SETTLED:
            found = Outcome(issued.id, CONFLICT, "The ticket has a label, which was learned from.")
        elif issued.outcome == FORGOTTEN:
            found = Outcome(issued.id, ALREADY)
        else:
            event = self._apply(self.state.forget, issued, time.time())
            issued.group = self._append(event)
            found = Outcome(issued.id, FORGOTTEN)
        return found, issued

    async def ticket(self, id: str) -> tuple[Issued, bytes]:
        """What is known of a ticket, and what was answered."""
        await self._recall([_named(id, None)])
        self.check()
        issued = self._find(*_named(id, None))
        if issued is None:
            raise UnknownError(f"There is no ticket {id!r}.")
        known, answer = copy(issued), self.state.answer(issued)
        await self._durable(issued)  # a label that comes meanwhile is durable later
        return known, answer

    async def frozen(self) -> Frozen:
        """The state as it is now, once it is durable."""
        self.check()
        frozen, group = self.state.freeze(), self._last
        await self._written(group)
        return frozen

    async def contents(self) -> tuple[int, Contents]:
        """The number of the last event, and the model after it, once that is durable."""
        self.check()
        seq, found, group = self.state.seq, self.state.model.contents(), self._last
        await self._written(group)
        return seq, found

    async def settled(self) -> None:
        """Wait until all that was asked for is durable, or has failed."""
        while (group := self._last) is not None and not group.done.is_set():
            await group.done.wait()

    @property
    def outstanding(self) -> int:
        """Tickets without a label."""
        return len(self.state.open)

    # Events.

    def check(self) -> None:
        """An error where it can answer nothing now."""
        if self.unavailable is not None:
            raise type(self.unavailable)(*self.unavailable.args)

    def _writable(self) -> None:
        self.check()
        self._committer.check()

    def _find(self, key: str | None, number: int | None) -> Issued | None:
        found = self.state.find(key, number)
        if found is not None or not self._is_doubtful(key, number):
            return found
        answer = self._recalled.get((key, number))
        if answer is None:
            answer = self._store.answer(self.record.model, key, number)
        return None if answer is None else Issued.from_answer(answer)

    def _is_doubtful(self, key: str | None, number: int | None) -> bool:
        """May the store know a ticket that memory does not hold?"""
        if key is not None:
            return key in self._seen
        return number is not None and 0 <= number < self.state.model.issued

    async def _recall(self, names: Iterable[tuple[str | None, int | None]]) -> None:
        """Read what only a store on another machine knows, while others have their turn."""
        if self._store.is_near:
            return
        for name in names:
            if name in self._recalled or not self._is_doubtful(*name) or self.state.find(*name):
                continue
            answer = await asyncio.to_thread(self._store.answer, self.record.model, *name)
            if answer is not None:
                if len(self._recalled) >= RECALLED:
                    self._recalled.clear()
                self._recalled[name] = answer

    def _apply(self, change: Callable[..., Any], *about: Any) -> Any:
        """Let an event happen in memory; what the model refuses has not happened."""
        try:
            return change(*about)
        except GroupwiseError as error:
            raise InvalidError(str(error)) from error
        except Exception as error:  # nobody knows how much of it happened
            self.broken(UnavailableError("The model failed; it goes back to what is durable."))
            raise error

    def _append(self, *events: Event) -> Group:
        first = self.state.seq - len(events) + 1
        self._last = self._committer.append(self.record.model, self._fence, first, events)
        return self._last

    async def _durable(self, *tickets: Issued) -> None:
        """Wait until all is durable that happened to tickets, which may wait long themselves."""
        waited = {id(one.group): one.group for one in tickets if one.group is not None}
        for group in waited.values():
            await self._written(group)
        for one in tickets:
            if id(one.group) in waited:  # something else may have happened to it since
                one.group = None

    async def _written(self, group: Group | None) -> None:
        if group is not None:
            await group.durable(self.record.model)

    # From memory to the store and back.

    def load(self) -> State:
        """The durable state, from the store; for another thread, while nothing is appended."""
        return load(self._store, self.record)

    def adopt(self, state: State) -> None:
        """Go on from what is durable."""
        self.state, self._last, self.unavailable = state, None, None

    def history(self) -> list[tuple[int, float, bytes]]:
        """The lines of history that were kept."""
        return self._store.history(self.record.model)

    async def put_history(self, seq: int, at: float, line: bytes, most: int) -> None:
        """Keep a line of history."""
        about = self.record.model, self._fence, seq, at, line, most
        await self._committer.run(lambda store: store.put_history(*about))

    @property
    def held(self) -> tuple[int, int]:
        """Its number in the store, and the fence that it is written under."""
        return self.record.model, self._fence

    @property
    def unsnapped(self) -> int:
        """Events after the last snapshot."""
        return self.state.seq - (self.snapshots[0].seq if self.snapshots else 0)

    @property
    def is_due(self) -> bool:
        """Should a snapshot be taken?"""
        if not self.unsnapped or self.unavailable is not None or self._snapshotting.locked():
            return False
        age = time.time() - self.snapshots[0].at if self.snapshots else float("inf")
        late = not 0.0 <= age < self._ageing.seconds  # a clock may have been set back
        return late or self.unsnapped >= self._ageing.events

    async def snapshot(self) -> None:
        """Write the state to the store, and drop what it makes needless."""
        async with self._snapshotting:
            state = self.state
            frozen = await self.frozen()
            if self.snapshots and self.snapshots[0].seq == frozen.seq:
                return
            content, digest, check = await asyncio.to_thread(_packed, frozen)
            written = self.record.model, self._fence
            for part, first in enumerate(range(0, len(content), PART)):
                about = *written, frozen.seq, part, content[first : first + PART]
                await self._step(frozen, lambda s, about=about: s.put_part(*about))  # type: ignore[misc]
            recent = [*frozen.recent.values()]
            for first in range(0, len(recent), ADDED):  # before only the store knows them
                self._seen.add(
                    one.key for one in recent[first : first + ADDED] if one.key is not None
                )
                await asyncio.sleep(0)
            for first in range(0, len(recent), ANSWERS):
                some = [one.to_answer() for one in recent[first : first + ANSWERS]]
                await self._step(frozen, lambda s, some=some: s.put_answers(*written, some))  # type: ignore[misc]
            record = SnapshotRecord(frozen.seq, time.time(), digest, check)
            keep = KEPT, self._ageing.keep_log
            await self._committer.run(lambda s: s.put_snapshot(*written, record, *keep))
            self.snapshots = [record, *self.snapshots][:KEPT]
            for first in range(0, len(recent), ADDED):
                for one in recent[first : first + ADDED]:
                    state.drop(one)
                await asyncio.sleep(0)
            before = record.at - self._ageing.remember
            await self._committer.run(lambda s: s.forget_answers(*written, before))
            LOG.info("%s: snapshot at event %d", self.record.name, frozen.seq)

    async def _step(self, frozen: Frozen, job: Callable[[Store], None]) -> None:
        """Let the thread write something of a snapshot; requests that come go before the next.

        Unless the next snapshot is due: it must not fall behind.
        """
        known = self._committer.appended
        await self._committer.run(job)
        due = self.state.seq - frozen.seq >= self._ageing.events
        if self._committer.appended > known and not due:
            await asyncio.sleep(PAUSE)


def _packed(frozen: Frozen) -> tuple[bytes, str, str]:
    """What a snapshot holds, the digest of the state, and the checksum of all of it."""
    content, digest = frozen.to_bytes()
    return content, digest, hashlib.sha256(content).hexdigest()


def load(store: Store, record: ModelRecord) -> State:
    """A model as it is in the store: its last snapshot that is whole, and the log after it."""
    for known in store.snapshots(record.model):
        content = store.content(record.model, known.seq)
        if _is_content(content, known):
            state = State.thawed(content, f"The snapshot of {record.name}")
            state.replay(store.log(record.model, known.seq))
            return state
        LOG.error("%s: the snapshot at event %d is damaged", record.name, known.seq)
    raise StoreError(
        f"The store holds no whole snapshot of {record.name}. Restore the store from a copy."
    )


def is_whole(store: Store, model: int, known: SnapshotRecord) -> bool:
    """Is a snapshot as it was written?"""
    return _is_content(store.content(model, known.seq), known)


def _is_content(content: bytes, known: SnapshotRecord) -> bool:
    return hashlib.sha256(content).hexdigest() == known.check


def _named(id: str | None, number: int | None) -> tuple[str | None, int | None]:
    """An id as the caller's, or as the number that stands for it."""
    if id is None or not id.startswith(UNNAMED):
        return id, number
    digits = id[len(UNNAMED) :]
    return None, int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else -1


async def _turn(place: int) -> None:
    if place and place % SLICE == 0:
        await asyncio.sleep(0)
