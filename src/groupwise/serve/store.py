"""What a store keeps, and what it must promise: what ``commit`` returned from is durable.

A *model* has a name, its settings, and the number of its present writer, the *fence*: whoever takes
a model gets the next number, and a commit with an older one is refused. Its *log* is batches of
events, numbered without gaps. A *snapshot* is the state after one of them. *Answers* are what is
remembered of tickets that were settled before the last snapshot.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol

import msgspec

from groupwise.serve.errors import StoreError

PREDICT, LABEL, FORGET = 1, 2, 3
"""The kinds of events."""
SETTLED, FORGOTTEN = "settled", "forgotten"
"""What became of a ticket that is open no longer."""
PART = 1 << 19
"""A snapshot is written in parts of so many bytes, between which events are committed."""


class Event(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One thing that happened to a model: enough to do it again."""

    kind: int
    number: int
    """The ticket's."""
    key: str | None
    """The caller's id of a prediction."""
    body: bytes
    """The row or the label, as JSON."""
    check: int
    """The checksum of the answer that was given."""
    at: float
    """When, in seconds since 1970."""


class Batch(NamedTuple):
    """Events of one model, in order, from one writer."""

    model: int
    fence: int
    first: int
    events: list[Event]

    @property
    def last(self) -> int:
        """The number of the last event."""
        return self.first + len(self.events) - 1


class ModelRecord(NamedTuple):
    """What a store knows of a model."""

    model: int
    name: str
    settings: str
    created: float
    numerics: str
    """The arithmetic that its last events were made with."""


class SnapshotRecord(NamedTuple):
    """What a store knows of a snapshot besides its content."""

    seq: int
    """The last event in it."""
    at: float
    digest: str
    """Of the state, however it is written down."""
    check: str
    """Of the content."""


class Answer(NamedTuple):
    """A ticket that was settled, and what was answered."""

    number: int
    key: str | None
    row: bytes
    """A digest of the row; empty where no id was given."""
    answer: bytes
    outcome: str
    label: bytes
    at: float
    settled: float


class Token(NamedTuple):
    """Who may do what; the token itself is nowhere."""

    token: str
    name: str
    digest: bytes
    scopes: tuple[str, ...]
    models: tuple[str, ...]
    """None are all."""
    created: float


class Store(Protocol):
    """Where everything is kept. One thread writes; another may read."""

    place: str
    """Its name for people, without any password."""
    is_near: bool
    """Is it on a disk of this machine, where no commit waits for another machine?"""

    def close(self) -> None:
        """Give up what was taken."""

    def models(self) -> list[ModelRecord]:
        """The models there are."""

    def take(self, model: int, numerics: str | None = None) -> int:
        """Become the writer of a model; its fence. StaleError where there is one already."""

    def keep(self) -> None:
        """Stay the writer of what was taken, while nothing is committed."""

    def create(
        self,
        name: str,
        settings: str,
        numerics: str,
        first: SnapshotRecord,
        content: bytes,
        instead: tuple[int, int] | None = None,
    ) -> tuple[ModelRecord, int]:
        """A new model with its first snapshot, and its fence; one (model, fence) goes for it."""

    def delete(self, model: int, fence: int) -> None:
        """Remove a model and all that belongs to it."""

    def commit(self, batches: Sequence[Batch]) -> None:
        """Make events durable, all of them or none."""

    def probe(self) -> None:
        """Write something durably, and take it back: is there room?"""

    def log(self, model: int, after: int) -> Iterator[tuple[int, Event]]:
        """The events after one of them, with their numbers; an error where one is missing."""

    def snapshots(self, model: int) -> list[SnapshotRecord]:
        """The snapshots of a model, the newest first."""

    def content(self, model: int, seq: int) -> bytes:
        """What a snapshot holds."""

    def put_part(self, model: int, fence: int, seq: int, part: int, content: bytes) -> None:
        """Write a part of a snapshot, which is not there before ``put_snapshot``."""

    def put_answers(self, model: int, fence: int, answers: Iterable[Answer]) -> None:
        """Remember settled tickets."""

    def put_snapshot(
        self, model: int, fence: int, record: SnapshotRecord, keep: int, keep_log: bool
    ) -> None:
        """A snapshot is whole: drop all but the last few, and the log before them."""

    def forget_answers(self, model: int, fence: int, before: float) -> None:
        """Drop what is remembered of tickets that were settled before a time."""

    def answer(self, model: int, key: str | None, number: int | None) -> Answer | None:
        """What is remembered of a ticket, by its id or its number."""

    def answers(self, model: int) -> Iterator[Answer]:
        """What is remembered of all tickets."""

    def keys(self, model: int) -> Iterator[str]:
        """The ids of all tickets that are remembered."""

    def put_history(
        self, model: int, fence: int, seq: int, at: float, content: bytes, most: int
    ) -> None:
        """Keep a line of the model's history; of more than ``most``, every other goes."""

    def history(self, model: int) -> list[tuple[int, float, bytes]]:
        """The lines that were kept."""

    def tokens(self) -> list[Token]:
        """All tokens."""

    def put_token(self, token: Token) -> None:
        """Add a token."""

    def drop_token(self, token: str) -> bool:
        """Revoke a token; False where there is none."""


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Event])


def packed(events: Sequence[Event]) -> bytes:
    """Events as a store keeps them, with a checksum before them."""
    body = _ENCODER.encode(events)
    return zlib.crc32(body).to_bytes(4, "big") + body


def unpacked(content: bytes) -> list[Event]:
    """The events that :func:`packed` wrote."""
    try:
        if int.from_bytes(content[:4], "big") != zlib.crc32(content[4:]):
            raise StoreError("A part of the log is damaged. Restore the store from a copy.")
        return _DECODER.decode(content[4:])
    except msgspec.DecodeError as error:
        raise StoreError(
            f"A part of the log cannot be read ({error}). Restore the store from a copy."
        ) from None


def numbered(batches: Iterable[tuple[Any, ...]], after: int) -> Iterator[tuple[int, Event]]:
    """The events of batches (first, last, content) beyond ``after``; an error at a gap."""
    expected = after + 1
    for first, last, content in batches:
        events = unpacked(bytes(content))
        if first > expected or last != first + len(events) - 1:
            raise StoreError(f"The log lacks event {expected}. Restore the store from a copy.")
        for seq, event in enumerate(events, first):
            if seq == expected:
                yield seq, event
                expected += 1
