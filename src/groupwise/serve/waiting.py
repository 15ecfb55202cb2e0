"""Tickets that wait for their labels, as a snapshot keeps them: some hundred bytes each.

All are written at every snapshot, beside the predictions that go on, so that this has to be quick:
groups and losses are written once, and what was advised as the bytes that it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from groupwise.groups import Member
from groupwise.losses import Loss, loss_from_dict
from groupwise.protocols import Play
from groupwise.ticket import Ticket, play_from_dict, play_to_dict


class Waiting(NamedTuple):
    """An open ticket, and what its caller knows it by."""

    key: str | None
    at: float
    ticket: Ticket


class Kept(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """The same in plain values."""

    key: str | None
    at: float
    number: int
    version: int
    row: dict[str, Any]
    members: list[int]
    """Their places in the table of groups."""
    memberships: list[float]
    loss: int
    """Its place in the table of losses."""
    play: Any
    """The prediction, the shape of what was said and its bytes, or all of it as JSON has it."""
    wants_label: bool
    derived: dict[str, Any] | None
    signature: bytes
    """What it is known by where the model's key is not in it."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Kept]).decode


def packed(tickets: Iterable[Waiting]) -> tuple[dict[str, Any], bytes]:
    """The tables of groups and losses, and the tickets."""
    groups, losses = Table(_group), Table(Loss.to_dict)
    together: dict[Any, list[int]] = {}
    """The places of groups that were awake together."""
    parts = [_encode(_kept(one, groups, losses, together)) for one in tickets]
    content = b"".join([b"\xdd" + len(parts).to_bytes(4, "big"), *parts])  # an array of MessagePack
    return {"groups": groups.entries, "losses": losses.entries}, content


def unpacked(tables: Mapping[str, Any], content: bytes, key: bytes) -> Iterator[Waiting]:
    """The tickets that :func:`packed` wrote, of the model with this key."""
    members = [Member(place, tuple(values), name) for place, values, name in tables["groups"]]
    losses = [loss_from_dict(one) for one in tables["losses"]]
    for one in _decode(content):
        play = _play(one.play)
        if not play.advice.shape[0] == len(one.members) == len(one.memberships):
            raise ValueError("a play has a row per group")
        if min(one.members, default=0) < 0 or one.loss < 0:
            raise ValueError("the places in a table are counted from 0")
        ticket = Ticket(
            number=one.number,
            row=one.row,
            members=[members[place] for place in one.members],
            memberships=one.memberships,
            play=play,
            loss=losses[one.loss],
            version=one.version,
            issuer=one.signature or key,
            wants_label=one.wants_label,
            derived=one.derived,
            signed=bool(one.signature),
        )
        yield Waiting(one.key, one.at, ticket)


class Table:
    """Different things, numbered as they come."""

    def __init__(self, plain: Any) -> None:
        self.entries: list[Any] = []
        self._plain = plain
        self._by_content: dict[bytes, int] = {}
        self._by_object: dict[int, tuple[int, Any]] = {}

    def place(self, thing: Any) -> int:
        """The number of a thing; two that are written in the same way have the same."""
        known = self._by_object.get(id(thing))
        if known is None:
            entry = self._plain(thing)
            place = self._by_content.setdefault(_encode(entry), len(self.entries))
            if place == len(self.entries):
                self.entries.append(entry)
            known = self._by_object[id(thing)] = place, thing
        return known[0]


def _group(member: Member) -> list[Any]:
    return [member.declaration, [*member.values], member.name]


def _kept(waiting: Waiting, groups: Table, losses: Table, known: dict[Any, list[int]]) -> Kept:
    ticket = waiting.ticket
    members = known.get(ticket.awake)
    if members is None:
        members = [groups.place(one) for one in ticket.members]
        if ticket.awake is not None:
            known[ticket.awake] = members
    return Kept(
        waiting.key,
        waiting.at,
        ticket.number,
        ticket.version,
        ticket.row,  # type: ignore[arg-type]
        members,
        ticket.memberships,  # type: ignore[arg-type]
        losses.place(ticket.loss),
        _plain(ticket.play),
        ticket.wants_label,
        ticket.derived,
        ticket.issuer if ticket.signed else b"",
    )


def _plain(play: Any) -> Any:
    said = play.said
    if type(play) is Play and isinstance(said, np.ndarray) and said.dtype == np.float64:
        return float(play.prediction), said.shape, said.tobytes()
    return play_to_dict(play)


def _play(plain: Sequence[Any] | Mapping[str, Any]) -> Any:
    if isinstance(plain, Mapping):
        return play_from_dict(plain)
    prediction, shape, content = plain
    said = np.frombuffer(content, np.float64).reshape(shape).copy()
    if said.ndim != 3 or len(said) != 2:
        raise ValueError("what was said is advice and weights")
    return Play(float(prediction), said)
