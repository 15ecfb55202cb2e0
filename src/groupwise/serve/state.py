"""A model with its tickets, in memory: what events do to it, what is kept of it, what comes back.

Nothing here waits, reads a clock or writes: the same events give the same state, bit for bit.
"""

import hashlib
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from groupwise import archive
from groupwise.errors import GroupwiseError
from groupwise.model import Groupwise
from groupwise.protocols import Awake
from groupwise.serve import waiting
from groupwise.serve.errors import StoreError
from groupwise.serve.store import FORGET, FORGOTTEN, LABEL, PREDICT, SETTLED, Answer, Event
from groupwise.serve.waiting import Waiting
from groupwise.snapshot import restored
from groupwise.ticket import Ticket

UNNAMED = "~"
"""With it begins the id of a ticket for which the caller gave none; its number follows."""
WHOLE = 1 << 63
"""Whole numbers in rows are smaller."""
REMEMBERED = 4_096
"""Sets of groups whose text is remembered."""
OURS, TICKETS = "service", "service.tickets"
"""What a snapshot holds besides the model."""

Contents = tuple[dict[str, Any], archive.Arrays]
"""A model as its file holds it."""
Row = Mapping[str, bool | int | float | str | None]
_encode = msgspec.json.Encoder().encode
_sorted = msgspec.json.Encoder(order="sorted").encode
_decode = msgspec.json.Decoder().decode


_told = attrgetter(*Answer._fields)


class Issued(msgspec.Struct, eq=False, gc=False):
    """A ticket that was issued: its answer, and once it is settled how."""

    number: int
    key: str | None
    at: float
    row: bytes = b""
    """A digest of the row, once it is settled, where there is an id to ask for it again."""
    answer: bytes = b""
    """What was answered, once it is settled; until then its ticket tells."""
    outcome: str | None = None
    label: bytes = b""
    settled: float = 0.0
    group: Any = None
    """What its last event is committed with, until that is durable."""

    @property
    def id(self) -> str:
        """The caller's id, or the one that stands for it."""
        return f"{UNNAMED}{self.number}" if self.key is None else self.key

    def to_answer(self) -> Answer:
        """What is remembered of it."""
        return Answer._make(_told(self))

    @classmethod
    def from_answer(cls, found: Answer) -> "Issued":
        """The same from what is remembered."""
        issued = cls(found.number, found.key, found.at)
        issued.row, issued.answer = found.row, found.answer
        issued.outcome, issued.label, issued.settled = found.outcome, found.label, found.settled
        return issued


def digest_of(row: Row) -> bytes:
    """Rows with the same fields and values have the same; 1 and 1.0 are one value, true is not."""
    plain = {name: _whole(one) if type(one) is float else one for name, one in row.items()}
    return hashlib.blake2b(_sorted(plain), digest_size=16).digest()


def _of(row: Row, name: str) -> bytes:
    """What a row says of a field, if anything."""
    return digest_of({name: row[name]} if name in row else {})


def _whole(value: float) -> float:
    return int(value) if value.is_integer() and abs(value) < WHOLE else value


def same_label(one: bytes, other: bytes) -> bool:
    """Do they say the same? 1 and 1.0 do, 1 and true do not."""
    if one == other:
        return True
    values = _decode(one), _decode(other)
    kinds = [isinstance(value, bool) for value in values]
    return kinds[0] == kinds[1] and bool(values[0] == values[1])


class Answered(msgspec.Struct, omit_defaults=True, gc=False):
    """What a prediction is answered with, in this order."""

    id: str
    ticket: int
    prediction: Any
    probabilities: dict[str, float] | None = None
    interval: tuple[float, float] | None = None
    groups: Any = None
    version: int = -1


def answer_of(ticket: Ticket, key: str | None, groups: Any) -> bytes:
    """The same of a ticket, with its groups as they are written."""
    number, prediction = ticket.number, ticket.prediction
    found = Answered(f"{UNNAMED}{number}" if key is None else key, number, prediction)
    if type(prediction) is not float:
        found.prediction, found.probabilities = _in_parts(prediction)
    else:
        found.interval = ticket.interval
    found.groups, found.version = groups, ticket.version
    return _encode(found)


def _in_parts(prediction: Any) -> tuple[Any, dict[str, float] | None]:
    """A prediction that is more than a number: the most probable of named classes, or an action."""
    if isinstance(prediction, Mapping):
        shares = {_class_name(one): share for one, share in prediction.items()}
        return max(prediction, key=prediction.__getitem__), shares
    return prediction.tolist() if hasattr(prediction, "tolist") else prediction, None


def _class_name(name: Any) -> str:
    return name if isinstance(name, str) else _encode(name).decode()


@dataclass(frozen=True)
class Frozen:
    """A state as it was at one event, to be written down by another thread."""

    seq: int
    contents: Contents
    open: dict[int, Issued]
    tickets: dict[int, Ticket]
    recent: dict[int, Issued]

    def to_bytes(self) -> tuple[bytes, str]:
        """A file that ``groupwise.load`` opens, and the digest of the state."""
        header, arrays = self.contents
        each = zip(self.open.values(), self.tickets.values(), strict=True)
        tables, content = waiting.packed(Waiting(one.key, one.at, ticket) for one, ticket in each)
        found = hashlib.sha256(json.dumps([header, self.seq, tables], sort_keys=True).encode())
        found.update(content)
        for name in sorted(arrays):
            array = arrays[name]
            found.update(f"{name} {array.dtype.str} {array.shape} ".encode())
            found.update(np.ascontiguousarray(array).data)
        whole = {**header, OURS: {"seq": self.seq, **tables}}
        tickets = {TICKETS: np.frombuffer(content, np.uint8)}
        return archive.to_bytes(whole, {**arrays, **tickets}), found.hexdigest()


class State:
    """A model and its tickets.

    >>> import groupwise as gw
    >>> state = State(gw.Groupwise([gw.by("sex")]))
    >>> issued, answer, event = state.predict("first", {"sex": "male"}, at=0.0)
    >>> state.settle(issued, b"0.5", at=1.0).kind == LABEL, issued.outcome
    (True, 'settled')
    """

    def __init__(self, model: Groupwise, seq: int = 0) -> None:
        self.model = model
        self.seq = seq
        """The number of the last event."""
        self.since = seq
        """The last one in the snapshot that it comes from."""
        self.open: dict[int, Issued] = {}
        self.tickets: dict[int, Ticket] = {}
        """Those of the open ones, in the same order."""
        self.recent: dict[int, Issued] = {}
        """Settled after the last snapshot, and perhaps not remembered elsewhere."""
        self._by_key: dict[str, Issued] = {}
        self._groups: dict[Awake, msgspec.Raw] = {}
        """Groups that were awake together, as answers have them."""

    def find(self, key: str | None, number: int | None) -> Issued | None:
        """A ticket by the caller's id or its number; None where memory does not hold it."""
        if key is not None:
            return self._by_key.get(key)
        assert number is not None
        return self.open.get(number) or self.recent.get(number)

    def knows_none(self, keys: Sequence[str]) -> bool:
        """Does memory hold no ticket with one of these ids?"""
        return self._by_key.keys().isdisjoint(keys)

    def predict(self, key: str | None, row: Row, at: float) -> tuple[Issued, bytes, Event]:
        """Issue a ticket; with what is answered, and what happened."""
        body = _encode(row)
        ticket = self.model.predict(row)
        answer = self._answer(ticket, key)
        issued = Issued(ticket.number, key, at)
        self._admit(issued, ticket)
        self.seq += 1
        return issued, answer, Event(PREDICT, ticket.number, key, body, zlib.crc32(answer), at)

    def predict_many(
        self,
        items: Iterable[tuple[str | None, Row]],
        at: float,
        answers: list[bytes | GroupwiseError],
        made: list[Issued],
        events: list[Event],
    ) -> None:
        """The same for many rows, to the end of three lists; errors stand among the answers."""
        predict, open_, tickets, by_key = self.model.predict, self.open, self.tickets, self._by_key
        for key, row in items:
            try:
                body = _encode(row)
                ticket = predict(row)
                answer = self._answer(ticket, key)
            except GroupwiseError as error:
                answers.append(error)
                continue
            number = ticket.number
            issued = open_[number] = Issued(number, key, at)
            tickets[number] = ticket
            if key is not None:
                by_key[key] = issued
            self.seq += 1
            answers.append(answer)
            made.append(issued)
            events.append(Event(PREDICT, number, key, body, zlib.crc32(answer), at))

    def answer(self, issued: Issued) -> bytes:
        """What was answered."""
        ticket = self.tickets.get(issued.number)
        return issued.answer if ticket is None else self._answer(ticket, issued.key)

    def _answer(self, ticket: Ticket, key: str | None) -> bytes:
        awake = ticket.awake
        groups = None if awake is None else self._groups.get(awake)
        if groups is None:
            groups = msgspec.Raw(_encode(ticket.groups))
            if awake is not None:
                if len(self._groups) >= REMEMBERED:
                    self._groups.clear()
                self._groups[awake] = groups
        return answer_of(ticket, key, groups)

    def is_for(self, issued: Issued, row: Row) -> bool:
        """Was a ticket that has an id issued for this row?"""
        ticket = self.tickets.get(issued.number)
        return digest_of(row) == (issued.row if ticket is None else digest_of(ticket.row))

    def other_fields(self, issued: Issued, row: Row) -> list[str]:
        """The fields in which a row is another than a ticket's; none where that is settled."""
        ticket = self.tickets.get(issued.number)
        if ticket is None:
            return []
        known = ticket.row
        every = [*row, *(name for name in known if name not in row)]
        return [name for name in every if _of(row, name) != _of(known, name)]

    def _admit(self, issued: Issued, ticket: Ticket) -> None:
        self.open[issued.number] = issued
        self.tickets[issued.number] = ticket
        if issued.key is not None:
            self._by_key[issued.key] = issued

    def settle(self, issued: Issued, label: bytes, at: float) -> Event:
        """Learn from a label."""
        self.model.learn(self.tickets[issued.number], _decode(label))
        return self._close(issued, LABEL, label, SETTLED, at)

    def forget(self, issued: Issued, at: float) -> Event:
        """Drop a ticket whose label will never come."""
        self.model.forget(self.tickets[issued.number])
        return self._close(issued, FORGET, b"", FORGOTTEN, at)

    def _close(self, issued: Issued, kind: int, label: bytes, outcome: str, at: float) -> Event:
        issued.outcome, issued.label, issued.settled = outcome, label, at
        self.recent[issued.number] = self.open.pop(issued.number)
        ticket = self.tickets.pop(issued.number)
        issued.answer = self._answer(ticket, issued.key)
        if issued.key is not None:
            issued.row = digest_of(ticket.row)
        self.seq += 1
        return Event(kind, issued.number, None, label, 0, at)

    def drop(self, remembered: Issued) -> None:
        """A settled ticket that is remembered elsewhere need not be held here."""
        self.recent.pop(remembered.number, None)
        if remembered.key is not None:
            self._by_key.pop(remembered.key, None)

    def replay(self, events: Iterable[tuple[int, Event]]) -> int:
        """Do again what happened, and count it; an error where something else comes of it."""
        count = 0
        for seq, event in events:
            try:
                if event.kind == PREDICT:
                    issued, _, made = self.predict(event.key, _decode(event.body), event.at)
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
        known = self.open.copy(), self.tickets.copy(), self.recent.copy()
        return Frozen(self.seq, self.model.contents(), *known)

    @classmethod
    def thawed(cls, file: bytes, name: str) -> "State":
        """The state that :meth:`Frozen.to_bytes` wrote."""
        header, arrays = archive.from_bytes(file, name)
        ours = header.pop(OURS, {"seq": 0, "groups": [], "losses": []})
        content = arrays.pop(TICKETS, None)
        model = restored(name, header, arrays)
        if not isinstance(model, Groupwise):
            raise StoreError(f"{name} holds a model in {type(model).__name__}.")
        try:
            state = cls(model, int(ours["seq"]))
            if content is not None:
                for one in waiting.unpacked(ours, content.tobytes(), bytes.fromhex(header["key"])):
                    state._wait(one)
            for key, at, text in ours.get("open", []):  # as they were written at first
                state._wait(Waiting(key, float(at), Ticket.from_json(text)))
        except Exception as error:  # whatever a file can be made to hold
            raise StoreError(
                f"The tickets in {name} are damaged ({archive.shortened(error)}). Restore the "
                "store from a copy."
            ) from error
        return state

    def _wait(self, one: Waiting) -> None:
        self._admit(Issued(one.ticket.number, one.key, one.at), one.ticket)
