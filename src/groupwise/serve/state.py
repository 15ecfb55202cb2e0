"""A model with its tickets, in memory: what events do to it, what is kept of it, what comes back.

Nothing here waits, reads a clock or writes: the same events give the same state, bit for bit.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from groupwise import archive
from groupwise.errors import GroupwiseError
from groupwise.model import Groupwise
from groupwise.serve.errors import StoreError
from groupwise.serve.store import FORGET, LABEL, PREDICT, Answer, Event
from groupwise.snapshot import restored
from groupwise.ticket import Ticket

SETTLED, FORGOTTEN = "settled", "forgotten"
UNNAMED = "~"
"""With it begins the id of a ticket for which the caller gave none; its number follows."""
OURS = "service"
"""What a snapshot holds besides the model."""

Row = Mapping[str, bool | int | float | str | None]
_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


class Issued:
    """A ticket that was issued: its answer, and once it is settled how."""

    __slots__ = (
        *("answer", "at", "group", "key", "label", "number", "outcome", "row", "settled", "ticket"),
    )

    def __init__(
        self, number: int, key: str | None, row: bytes, answer: bytes, ticket: Any, at: float
    ) -> None:
        self.number = number
        self.key = key
        self.row = row
        """A digest of the row, where there is an id to ask for it again."""
        self.answer = answer
        self.ticket: Ticket | None = ticket
        self.at = at
        self.outcome: str | None = None
        self.label = b""
        self.settled = 0.0
        self.group: Any = None
        """What its last event is committed with."""

    @property
    def id(self) -> str:
        """The caller's id, or the one that stands for it."""
        return f"{UNNAMED}{self.number}" if self.key is None else self.key

    def to_answer(self) -> Answer:
        """What is remembered of it."""
        assert self.outcome is not None
        known = self.number, self.key, self.row, self.answer
        return Answer(*known, self.outcome, self.label, self.at, self.settled)

    @classmethod
    def from_answer(cls, found: Answer) -> "Issued":
        """The same from what is remembered."""
        issued = cls(found.number, found.key, found.row, found.answer, None, found.at)
        issued.outcome, issued.label, issued.settled = found.outcome, found.label, found.settled
        return issued


def digest_of(row: Row) -> bytes:
    """Rows with the same fields and values have the same."""
    return hashlib.blake2b(_sorted(row), digest_size=16).digest()


def same_label(one: bytes, other: bytes) -> bool:
    """Do they say the same? 1 and 1.0 do, 1 and true do not."""
    if one == other:
        return True
    values = _decode(one), _decode(other)
    kinds = [isinstance(value, bool) for value in values]
    return kinds[0] == kinds[1] and bool(values[0] == values[1])


def answer_of(ticket: Ticket, key: str | None) -> bytes:
    """What a prediction is answered with."""
    prediction = ticket.prediction
    shown: dict[str, Any] = {}
    if isinstance(prediction, Mapping):
        shown["probabilities"] = {_class_name(one): share for one, share in prediction.items()}
        prediction = max(prediction, key=prediction.__getitem__)
    elif hasattr(prediction, "tolist"):
        prediction = prediction.tolist()
    return _encode(
        {
            "id": f"{UNNAMED}{ticket.number}" if key is None else key,
            "ticket": ticket.number,
            "prediction": prediction,
            **shown,
            "groups": ticket.groups,
            "version": ticket.version,
        }
    )


def _class_name(name: Any) -> str:
    return name if isinstance(name, str) else _encode(name).decode()


@dataclass(frozen=True)
class Frozen:
    """A state as it was at one event, to be written down by another thread."""

    seq: int
    contents: tuple[dict[str, Any], archive.Arrays]
    open: tuple[Issued, ...]
    tickets: tuple[Ticket, ...]
    recent: tuple[Issued, ...]

    def to_bytes(self) -> tuple[bytes, str]:
        """A file that ``groupwise.load`` opens, and the digest of the state."""
        header, arrays = self.contents
        kept = [
            [one.key, one.at, ticket.to_json()]
            for one, ticket in zip(self.open, self.tickets, strict=True)
        ]
        found = hashlib.sha256(json.dumps([header, self.seq, kept], sort_keys=True).encode())
        for name in sorted(arrays):
            array = arrays[name]
            found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            found.update(array.tobytes())
        whole = {**header, OURS: {"seq": self.seq, "open": kept}}
        return archive.to_bytes(whole, arrays), found.hexdigest()


class State:
    """A model and its tickets.

    >>> import groupwise as gw
    >>> state = State(gw.Groupwise([gw.by("sex")]))
    >>> issued, event = state.predict("first", {"sex": "male"}, at=0.0)
    >>> state.settle(issued, b"0.5", at=1.0).kind == LABEL, issued.outcome
    (True, 'settled')
    """

    def __init__(self, model: Groupwise, seq: int = 0) -> None:
        self.model = model
        self.seq = seq
        """The number of the last event."""
        self.open: dict[int, Issued] = {}
        self.recent: dict[int, Issued] = {}
        """Settled after the last snapshot, and perhaps not remembered elsewhere."""
        self._by_key: dict[str, Issued] = {}

    def find(self, key: str | None, number: int | None) -> Issued | None:
        """A ticket by the caller's id or its number; None where memory does not hold it."""
        if key is not None:
            return self._by_key.get(key)
        assert number is not None
        return self.open.get(number) or self.recent.get(number)

    def predict(self, key: str | None, row: Row, at: float) -> tuple[Issued, Event]:
        """Issue a ticket."""
        body, known = _encode(row), b"" if key is None else digest_of(row)
        ticket = self.model.predict(row)
        answer = answer_of(ticket, key)
        issued = Issued(ticket.number, key, known, answer, ticket, at)
        self._admit(issued)
        self.seq += 1
        return issued, Event(PREDICT, ticket.number, key, body, zlib.crc32(answer), at)

    def _admit(self, issued: Issued) -> None:
        self.open[issued.number] = issued
        if issued.key is not None:
            self._by_key[issued.key] = issued

    def settle(self, issued: Issued, label: bytes, at: float) -> Event:
        """Learn from a label."""
        assert issued.ticket is not None
        self.model.learn(issued.ticket, _decode(label))
        return self._close(issued, LABEL, label, SETTLED, at)

    def forget(self, issued: Issued, at: float) -> Event:
        """Drop a ticket whose label will never come."""
        assert issued.ticket is not None
        self.model.forget(issued.ticket)
        return self._close(issued, FORGET, b"", FORGOTTEN, at)

    def _close(self, issued: Issued, kind: int, label: bytes, outcome: str, at: float) -> Event:
        issued.outcome, issued.label, issued.settled, issued.ticket = outcome, label, at, None
        self.recent[issued.number] = self.open.pop(issued.number)
        self.seq += 1
        return Event(kind, issued.number, None, label, 0, at)

    def drop(self, remembered: Iterable[Issued]) -> None:
        """Settled tickets that are remembered elsewhere need not be held here."""
        for one in remembered:
            self.recent.pop(one.number, None)
            if one.key is not None:
                self._by_key.pop(one.key, None)

    def replay(self, events: Iterable[tuple[int, Event]]) -> int:
        """Do again what happened, and count it; an error where something else comes of it."""
        count = 0
        for seq, event in events:
            try:
                if event.kind == PREDICT:
                    issued, made = self.predict(event.key, _decode(event.body), event.at)
                    same = issued.number == event.number and made.check == event.check
                else:
                    issued = self.open[event.number]
                    if event.kind == LABEL:
                        self.settle(issued, event.body, event.at)
                    else:
                        self.forget(issued, event.at)
                    same = True
            except (GroupwiseError, KeyError, msgspec.DecodeError) as error:
                raise StoreError(
                    f"Event {seq} of the log cannot be repeated: {error!r}."
                ) from error
            if not same or self.seq != seq:
                raise StoreError(
                    f"Event {seq} of the log gives another answer than it did. The arithmetic is "
                    "another one (processor, numba, numpy), or the store is damaged."
                )
            count += 1
        return count

    def freeze(self) -> Frozen:
        """The state as it is now."""
        waiting = tuple(self.open.values())
        tickets = tuple(one.ticket for one in waiting if one.ticket is not None)
        recent = tuple(self.recent.values())
        return Frozen(self.seq, self.model.contents(), waiting, tickets, recent)

    @classmethod
    def thawed(cls, content: bytes, name: str) -> "State":
        """The state that :meth:`Frozen.to_bytes` wrote."""
        header, arrays = archive.from_bytes(content, name)
        ours = header.pop(OURS, {"seq": 0, "open": []})
        model = restored(name, header, arrays)
        if not isinstance(model, Groupwise):
            raise StoreError(f"{name} holds a model in {type(model).__name__}.")
        state = cls(model, int(ours["seq"]))
        for key, at, text in ours["open"]:
            ticket = Ticket.from_json(text)
            known = b"" if key is None else digest_of(ticket.row)
            state._admit(
                Issued(ticket.number, key, known, answer_of(ticket, key), ticket, float(at))
            )
        return state
