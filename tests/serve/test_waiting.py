"""Open tickets in a snapshot: what comes back settles as what went in would have."""

import json
from typing import Any

import msgspec
import numpy as np
import pytest

import groupwise as gw
from groupwise import archive
from groupwise.serve.errors import StoreError
from groupwise.serve.state import OURS, TICKETS, State
from groupwise.snapshot import restored
from groupwise.ticket import Ticket

ROWS: list[dict[str, Any]] = [
    {"sex": sex, "age": age, "smoker": place / 7.0, "ward": f"w{place % 4}"}
    for place, (sex, age) in enumerate(
        [("male", 41), ("female", 23.5), ("male", 70), ("other", 18), ("female", 55), ("male", 33)]
    )
]


MODELS = {
    "numbers": lambda: gw.Groupwise([gw.by("sex"), gw.cut("age", [30.0, 50.0])]),
    "one learner": lambda: gw.Groupwise([gw.by("sex")], learner=gw.learners.Ridge(1.0)),
    "weights": lambda: gw.Groupwise([gw.by("sex"), gw.weight("smoker")]),
    "made": lambda: gw.Groupwise(
        [gw.by("sex")],
        features=["age", gw.past("y", lags=(1,), by="sex"), gw.encoded("ward"), gw.hinges()],
    ),
    "yes or no": lambda: gw.Groupwise([gw.by("sex")], loss=gw.losses.Log()),
    "classes": lambda: gw.Groupwise([gw.by("sex")], loss=gw.losses.Log(classes=["a", "b", "c"])),
}
LABELS: dict[str, list[Any]] = {
    "yes or no": [0, 1, 1, 0, 1, 0],
    "classes": ["a", "b", "c", "a", "c", "b"],
}


def filled(name):
    """A state with tickets that were settled, forgotten and are open."""
    state = State(MODELS[name]())
    labels = LABELS.get(name, [0.1, 0.9, 0.4, 0.2, 0.7, 0.3])
    for turn in range(4):
        for place, row in enumerate(ROWS):
            issued, _, _ = state.predict(f"{turn} {place}" if place else None, row, at=1.5 * turn)
            if (turn + place) % 3 == 0:
                state.settle(issued, json.dumps(labels[place]).encode(), at=9.0)
            elif (turn + place) % 7 == 1:
                state.forget(issued, at=9.5)
    return state, labels


def settle_all(state, labels):
    for issued in [*state.open.values()][::-1]:
        place = 0 if issued.key is None else int(issued.key.split()[1])
        state.settle(issued, json.dumps(labels[place]).encode(), at=20.0)


@pytest.mark.parametrize("name", MODELS)
def test_tickets_come_back_as_they_were(name):
    state, labels = filled(name)
    content, digest = state.freeze().to_bytes()
    again = State.thawed(content, "a snapshot")
    assert len(again.open) == len(state.open) > 5
    for number, issued in state.open.items():
        other = again.open[number]
        assert (other.key, other.at) == (issued.key, issued.at)
        assert again.answer(other) == state.answer(issued)
        assert again.tickets[number].content() == state.tickets[number].content()
    assert again.freeze().to_bytes() == (content, digest)
    settle_all(state, labels)
    settle_all(again, labels)
    assert again.freeze().to_bytes()[1] == state.freeze().to_bytes()[1]
    assert [dict(one) for one in again.model.regret().rows] == [
        dict(one) for one in state.model.regret().rows
    ]


def test_the_digest_tells_tickets_apart():
    one = filled("numbers")[0]
    other = State.thawed(one.freeze().to_bytes()[0], "a snapshot")
    assert one.freeze().to_bytes()[1] == other.freeze().to_bytes()[1]
    first = next(iter(other.tickets.values()))
    first.play.said[0, 0, 0] = np.nextafter(first.play.said[0, 0, 0], 2.0)
    assert one.freeze().to_bytes()[1] != other.freeze().to_bytes()[1]


def test_a_snapshot_opens_as_a_model():
    state, _ = filled("numbers")
    content, _ = state.freeze().to_bytes()
    header, arrays = archive.from_bytes(content, "a snapshot")
    assert OURS in header
    assert TICKETS in arrays
    model = restored("a snapshot", header, arrays)
    assert model.regret().rows == state.model.regret().rows


def test_tickets_that_were_written_as_text_are_read():
    state, labels = filled("numbers")
    header, arrays = state.model.contents()
    kept = [
        [one.key, one.at, state.tickets[number].to_json()] for number, one in state.open.items()
    ]
    header[OURS] = {"seq": state.seq, "open": kept}
    again = State.thawed(archive.to_bytes(header, arrays), "an old snapshot")
    assert again.seq == state.seq
    assert [*again.open] == [*state.open]
    content, _ = again.freeze().to_bytes()
    twice = State.thawed(content, "a snapshot of it")
    for one in (state, again, twice):
        settle_all(one, labels)
    digests = {one.freeze().to_bytes()[1] for one in (state, again, twice)}
    assert len(digests) == 1


def test_a_ticket_from_text_is_still_one_of_the_model():
    state, labels = filled("numbers")
    number = next(iter(state.open))
    text = state.tickets[number].to_json()
    again = State.thawed(state.freeze().to_bytes()[0], "a snapshot")
    assert again.tickets[number].to_json() == text
    again.model.learn(Ticket.from_json(text), labels[0])


def test_rows_are_the_same_whatever_order_and_kind_of_number():
    state = State(MODELS["numbers"]())
    issued, _, _ = state.predict("a", {"sex": "male", "age": 41, "b": True, "n": None}, at=0.0)
    again = State.thawed(state.freeze().to_bytes()[0], "a snapshot")
    settled = State.thawed(state.freeze().to_bytes()[0], "a snapshot")
    settled.settle(settled.open[0], b"0.5", at=1.0)
    for one, known in ((state, issued), (again, again.open[0]), (settled, settled.recent[0])):
        assert one.is_for(known, {"n": None, "b": True, "age": 41.0, "sex": "male"})
        others: tuple[dict[str, Any], ...] = (
            {"sex": "male", "age": 41, "b": 1, "n": None},
            {"sex": "male", "age": 41, "b": "true", "n": None},
            {"sex": "male", "age": "41", "b": True, "n": None},
            {"sex": "male", "age": 41.5, "b": True, "n": None},
            {"sex": "male", "age": 41, "b": True},
            {"sex": "male", "age": 41, "b": True, "n": 0},
        )
        assert not any(one.is_for(known, other) for other in others)
    big, _, _ = state.predict("b", {"sex": "male", "age": 41, "x": 1e90}, at=0.0)
    assert state.is_for(big, {"sex": "male", "age": 41, "x": 1e90})
    assert not state.is_for(big, {"sex": "male", "age": 41, "x": 2**63 - 1})


def _with(change):
    """A snapshot in which something of the tickets was changed."""
    header, arrays = archive.from_bytes(filled("numbers")[0].freeze().to_bytes()[0], "one")
    tickets = msgspec.msgpack.decode(arrays[TICKETS].tobytes())
    found = change(header[OURS], tickets, header)
    content = msgspec.msgpack.encode(tickets) if found is None else found
    return archive.to_bytes(header, {**arrays, TICKETS: np.frombuffer(content, np.uint8)})


@pytest.mark.parametrize(
    "change",
    [
        lambda ours, tickets, header: b"\xdd\xff\xff\xff\xff",
        lambda ours, tickets, header: b"\xdd\x00\x00\x00\x01" + b"\x91" * 100_000,
        lambda ours, tickets, header: msgspec.msgpack.encode({"a": 1}),
        lambda ours, tickets, header: ours.pop("seq") and None,
        lambda ours, tickets, header: ours.update(seq="many"),
        lambda ours, tickets, header: ours.update(groups=[]),
        lambda ours, tickets, header: ours.update(groups=[[1]] * 9),
        lambda ours, tickets, header: ours.update(losses=[{"kind": "os.system"}]),
        lambda ours, tickets, header: tickets[0].__setitem__(5, [-1, -1, -1]),
        lambda ours, tickets, header: tickets[0].__setitem__(5, []),
        lambda ours, tickets, header: tickets[0].__setitem__(6, [1.0]),
        lambda ours, tickets, header: tickets[0].__setitem__(7, -1),
        lambda ours, tickets, header: tickets[0].__setitem__(
            8, [0.5, [1 << 40, 9, 9], b"12345678"]
        ),
        lambda ours, tickets, header: tickets[0].__setitem__(8, [0.5, [1], b"12345678"]),
        lambda ours, tickets, header: tickets[0].__setitem__(8, {"prediction": "a"}),
        lambda ours, tickets, header: tickets[0].__setitem__(2, "first"),
        lambda ours, tickets, header: tickets[0].pop(),
    ],
)
def test_damaged_tickets_are_a_clear_error(change):
    with pytest.raises(StoreError, match=r"The tickets in a snapshot are damaged .*from a copy"):
        State.thawed(_with(change), "a snapshot")
