"""A store that was damaged, or written by another version: told in one line, and left as it is."""

import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from groupwise.serve import service as services
from groupwise.serve.engine import load
from groupwise.serve.errors import StoreError
from groupwise.serve.run import Settings, check, existing_store, open_store
from tests.serve.running import PATH, asynchronous, inside, label, made, row

ROUNDS = 12


async def rounds(client, name):
    draw = random.Random(name)
    for number in range(ROUNDS):
        one = row(draw)
        body = {"id": f"{name} {number}", "row": one}
        assert (await client.post(f"{PATH}/predict", json=body)).is_success
        if number % 2:
            given = {"id": f"{name} {number}", "label": label(one)}
            assert (await client.post(f"{PATH}/labels", json=given)).is_success


@asynchronous
async def crashed(place):
    """A store with two snapshots and events after each; whoever wrote it was killed."""
    async with inside(place) as (app, client):
        await made(client)
        engine = app.service.engines["costs"]
        for name in ("first", "second"):
            await rounds(client, name)
            await engine.snapshot()
        await rounds(client, "third")
        digest = engine.state.freeze().to_bytes()[1]

        async def nothing():
            pass

        engine.snapshot = nothing
    return digest


@asynchronous
async def served(place):
    """Start, and end in good order; the digest meanwhile."""
    async with inside(place) as (app, _):
        return app.service.engines["costs"].state.freeze().to_bytes()[1]


def record_of(place):
    store = open_store(place, writer=False)
    try:
        (record,) = store.models()
        return record, [*store.log(record.model, store.snapshots(record.model)[0].seq)]
    finally:
        store.close()


def change(place, statement, *values):
    """Do something to a store, behind its back."""
    store: Any = open_store(place, writer=False)
    try:
        with store._writing() as cursor:
            store._execute(cursor, statement, values)
    finally:
        store.close()


def test_no_event_is_replayed_by_other_arithmetic(place, monkeypatch):
    """Who wrote the log has to end it with a snapshot; from that the other one goes on."""
    digest, own = crashed(place), services.numerics()
    before = record_of(place)
    assert before[0].numerics == own
    assert len(before[1]) == ROUNDS * 3 // 2
    monkeypatch.setattr(services, "numerics", lambda: "another machine")
    with pytest.raises(StoreError, match=r"written by other arithmetic .*SIGTERM"):
        served(place)
    assert record_of(place) == before
    monkeypatch.undo()
    assert served(place) == digest
    monkeypatch.setattr(services, "numerics", lambda: "another machine")
    assert served(place) == digest
    assert record_of(place)[0].numerics == "another machine"
    change(place, f"UPDATE parts SET content = ? WHERE seq = {NEWEST}", b"nonsense")
    with pytest.raises(StoreError, match="no whole snapshot"):  # there is none of the other's
        served(place)


def test_no_event_is_replayed_by_other_arithmetic_where_the_last_snapshot_is_damaged(
    place, monkeypatch
):
    digest = crashed(place)
    assert served(place) == digest  # which ends with a snapshot
    change(place, f"UPDATE parts SET content = ? WHERE seq = {NEWEST}", b"nonsense")
    monkeypatch.setattr(services, "numerics", lambda: "another machine")
    with pytest.raises(StoreError, match=r"last snapshot is damaged.*SIGTERM"):
        served(place)
    monkeypatch.undo()
    assert served(place) == digest  # it writes that snapshot again
    assert check(Settings(place), print)
    monkeypatch.setattr(services, "numerics", lambda: "another machine")
    assert served(place) == digest


def test_a_check_by_other_arithmetic_says_so(place, monkeypatch):
    crashed(place)
    change(place, f"UPDATE snapshots SET digest = 'x' WHERE seq = {NEWEST}")
    monkeypatch.setattr("groupwise.serve.run.numerics", lambda: "another machine")
    said: list[str] = []
    assert not check(Settings(place), said.append)
    assert "another state" in said[0]
    assert "check it with the version that wrote it" in said[0]


def test_tables_of_a_newer_version(place):
    crashed(place)
    if place.startswith("postgresql"):
        change(place, "UPDATE version SET tables = 99")
    else:
        change(place, "PRAGMA user_version = 99")
    for opened in (served, lambda place: check(Settings(place), print)):
        with pytest.raises(StoreError, match=r"newer groupwise .*Upgrade"):
            opened(place)


def test_a_check_of_what_is_whole_changes_nothing(place):
    digest = crashed(place)
    said: list[str] = []
    assert check(Settings(place), said.append)
    assert said == ["costs: 2 snapshots and the log agree; 54 events, 18 tickets open"]
    assert served(place) == digest


def test_a_check_of_what_holds_no_models(place):
    """There is no store before one is made, and looking makes none."""
    if not place.startswith("postgres"):
        Path(place).touch()
    for _ in range(2):
        with pytest.raises(StoreError, match="There is no store"):
            check(Settings(place), print)
    open_store(place).close()
    said: list[str] = []
    assert check(Settings(place), said.append)
    assert len(said) == 1
    assert said[0].endswith(" has no models.")


@pytest.mark.parametrize("version", [0, 1, 7])
def test_a_file_of_another_program_stays_as_it_is(tmp_path, version):
    file = tmp_path / "bookmarks.sqlite"
    with closing(sqlite3.connect(file)) as other:
        other.executescript(f"CREATE TABLE models (a); PRAGMA user_version = {version}")
    content = file.read_bytes()
    for opened in (open_store, existing_store):
        with pytest.raises(StoreError, match="of another program"):
            opened(str(file))
    assert file.read_bytes() == content


@asynchronous
async def test_a_check_finds_what_would_not_be_served(place):
    """What is remembered of settled tickets has no digest; it has to be read to be seen."""
    async with inside(place) as (app, client):
        await made(client)
        await rounds(client, "first")
        await app.service.engines["costs"].snapshot()
    assert check(Settings(place), print)
    change(place, "UPDATE answers SET answer = ?", b'{"id": "\xb2"}')
    said: list[str] = []
    assert not check(Settings(place), said.append)
    assert "settled tickets is damaged" in said[0]


NEWEST = "(SELECT max(seq) FROM snapshots)"


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        (f"UPDATE parts SET content = ? WHERE seq = {NEWEST}", "is damaged"),
        (f"UPDATE snapshots SET digest = 'x' WHERE seq = {NEWEST}", "another state"),
        (f"DELETE FROM log WHERE first = {NEWEST} - 1", "lacks event 35"),
        (f"DELETE FROM log WHERE first = {NEWEST} + 2", "lacks event 38"),
        ("UPDATE log SET content = ? WHERE first = (SELECT max(first) FROM log)", "is damaged"),
    ],
)
def test_a_check_finds_what_is_damaged(place, statement, said):
    crashed(place)
    change(place, statement, *([b"nonsense"] if "?" in statement else []))
    found: list[str] = []
    assert not check(Settings(place), found.append)
    assert said in found[0]


def test_a_damaged_snapshot_is_passed_over(place):
    """The one before it and the longer log give the same state."""
    digest = crashed(place)
    change(place, f"UPDATE parts SET content = ? WHERE seq = {NEWEST}", b"nonsense")
    assert served(place) == digest
    store = open_store(place, writer=False)
    assert load(store, store.models()[0]).freeze().to_bytes()[1] == digest
    store.close()


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE parts SET content = ?", "no whole snapshot"),
        ("UPDATE log SET content = ? WHERE first = (SELECT max(first) FROM log)", "is damaged"),
        (f"DELETE FROM log WHERE first = {NEWEST} + 2", "lacks event 38"),
    ],
)
def test_what_cannot_be_restored_is_not_served(place, statement, said):
    crashed(place)
    change(place, statement, *([b"nonsense"] if "?" in statement else []))
    with pytest.raises(StoreError, match=said):
        served(place)
