"""Whoever looks does not make those wait who ask for predictions."""

import asyncio
import gc
import random
import sqlite3
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import closing
from typing import Any

import pytest

from groupwise.serve import looks, run
from groupwise.serve.declared import declared_model, target_of
from groupwise.serve.run import open_store
from groupwise.serve.state import State
from tests.serve.running import (
    PATH,
    SETTINGS,
    Here,
    asynchronous,
    inside,
    is_problem,
    label,
    made,
    row,
)


async def learned(client, count: int = 6) -> None:
    draw = random.Random(1)
    for number in range(count):
        one = row(draw)
        await client.post(f"{PATH}/predict", json={"id": str(number), "row": one})
        await client.post(f"{PATH}/labels", json={"id": str(number), "label": label(one)})


@pytest.mark.parametrize("asked", ["", "?group=always_on"])
@asynchronous
async def test_history_is_read_beside_the_event_loop(file, monkeypatch, asked):
    threads = []

    def line(text, does=looks._line):
        threads.append(threading.get_ident())
        return does(text)

    async with inside(file) as (app, client):
        await made(client)
        await learned(client)
        await app.looks.sample(app.service.engines["costs"])
        monkeypatch.setattr(looks, "_line", line)
        (point,) = (await client.get(f"{PATH}/history{asked}")).json()["points"]
        assert list(point) == ["event", "at", "settled", "outstanding", "groups"]
        assert (point["event"], point["settled"], point["outstanding"]) == (12, 6, 0)
        assert len(point["groups"]["always_on"]) == len(looks.FIGURES)
        assert (await client.get("/models/costs")).status_code == 200
    assert len(threads) == 2
    assert threading.get_ident() not in threads


@pytest.mark.parametrize("line", [b"{", b'{"settled": "\xb2"}', 7, None], ids=str)
@asynchronous
async def test_history_that_a_disk_has_changed(file, line):
    async with inside(file) as (app, client):
        await made(client)
        await learned(client)
        await app.looks.sample(app.service.engines["costs"])
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("PRAGMA writable_schema = 1")
            text = other.execute("SELECT sql FROM sqlite_master WHERE name = 'history'").fetchone()
            lax = "UPDATE sqlite_master SET sql = ? WHERE name = 'history'"
            other.execute(lax, (text[0].replace(" NOT NULL", ""),))
        with closing(sqlite3.connect(file)) as other, other:
            other.execute("UPDATE history SET content = ?", (line,))
        for page in (f"{PATH}/history", "/models/costs"):
            said = is_problem(await client.get(page), 500, "internal")
            assert "Restore the store from a copy" in said


@asynchronous
async def test_long_settings_are_read_beside_the_event_loop(file):
    """Once: they stay what they are."""
    settings = SETTINGS + "#\n" * 1_000
    threads = []

    def read(text, does=target_of):
        threads.append(threading.get_ident())
        return does(text)

    async with inside(file) as (_, client):
        await made(client, settings)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("groupwise.serve.app.target_of", read)
            for _ in range(2):
                assert (await client.get(PATH)).json()["target"] == "costs"
    assert threading.get_ident() not in threads
    assert target_of.cache_info().hits >= 1


@asynchronous
async def test_who_repeats_makes_nobody_wait_for_another_machine(file, monkeypatch):
    """What only a store elsewhere remembers is read beside the event loop, and once."""
    store: Any = open_store(file)
    monkeypatch.setattr(store, "is_near", False)
    threads = []

    def answer(*about, does=store.answer):
        threads.append(threading.get_ident())
        return does(*about)

    monkeypatch.setattr(store, "answer", answer)
    async with inside(file, store=store) as (app, client):
        await made(client)
        await learned(client)
        await client.post(f"{PATH}/predict", json={"id": "open", "row": row(random.Random(2))})
        await app.service.engines["costs"].snapshot()
        draw = random.Random(1)
        rows: list[Any] = [{"id": str(number), "row": row(draw)} for number in range(6)]
        labels = [{"id": one["id"], "label": label(one["row"])} for one in rows]
        found = await client.post(f"{PATH}/predict", json=rows[0])
        assert found.json()["ticket"] == 0
        found = await client.post(f"{PATH}/predict/batch", json={"rows": rows})
        assert [one["ticket"] for one in found.json()["predictions"]] == [*range(6)]
        assert len(threads) == 6
        again = await client.post(f"{PATH}/labels", json=[*labels, {"ticket": 3, "label": 1}])
        outcomes = [one["outcome"] for one in again.json()["labels"]]
        assert outcomes == [*["already"] * 6, "conflict"]
        found = await client.post(f"{PATH}/labels", json=labels[1])
        assert found.json() == {"id": "1", "outcome": "already"}
        assert (await client.post(f"{PATH}/forget", json={"id": "2"})).status_code == 409
        assert (await client.post(f"{PATH}/forget", json=[{"ticket": 4}])).is_success
        assert (await client.get(f"{PATH}/tickets/~5")).json()["label"] == labels[5]["label"]
        assert (await client.get(f"{PATH}/tickets/open")).json()["outcome"] == "open"
        for one in ("new", "~7", "~-1"):
            assert (await client.get(f"{PATH}/tickets/{one}")).status_code == 404
    assert len(threads) == 9
    assert threading.get_ident() not in threads


@asynchronous
async def test_a_table_is_passed_on_as_it_came(file):
    async with inside(file) as (app, client):
        await made(client)
        await learned(client)
        found = (await client.get(f"{PATH}/regret")).json()
        table = await app.looks.regret(app.service.engines["costs"])
        assert "values" not in vars(table)  # nobody has read it in the event loop
        assert found == table.values
        assert found["event"] == 12


@asynchronous
async def test_few_tables_are_kept(file):
    """However many groups are asked for; those that history and alerts come from stay."""
    async with inside(file) as (app, client):
        await made(client)
        await learned(client)
        engine = app.service.engines["costs"]
        await app.looks.regret(engine, looks.LINE_GROUPS)
        for largest in range(40):
            found = await client.get(f"{PATH}/regret?largest={largest}")
            assert len(found.json()["rows"]) == min(largest, 8)
        tables = app.looks._of(engine).tables
        assert ("regret", looks.LINE_GROUPS) in tables
        assert ("regret", 39) in tables
        assert len(tables) == looks.TABLES + 1


class Late(Here):
    """Tables that are there when more has been asked for."""

    meanwhile: Callable[[], Awaitable[None]] | None = None

    async def ask(self, contents, question):
        if self.meanwhile is not None:
            await self.meanwhile()
        return await super().ask(contents, question)


@asynchronous
async def test_a_line_of_history_is_of_one_moment(file):
    late, draw = Late(), random.Random(2)
    async with inside(file, looks=looks.Looks(late)) as (app, client):
        await made(client)
        await learned(client)

        async def more() -> None:
            rows = [{"id": f"late {number}", "row": row(draw)} for number in range(5)]
            await client.post(f"{PATH}/predict/batch", json={"rows": rows})

        late.meanwhile = more
        await app.looks.sample(app.service.engines["costs"])
        (point,) = (await client.get(f"{PATH}/history")).json()["points"]
        assert (point["event"], point["settled"], point["outstanding"]) == (12, 6, 0)


@asynchronous
async def test_history_goes_on_after_whatever_failed(file, monkeypatch):
    looked = asyncio.Event()

    async def sample(engine):
        if looked.is_set():
            again.set()
        looked.set()
        raise RuntimeError("once more")

    again = asyncio.Event()
    some = looks.Looks(Here(), sample=0.01)
    monkeypatch.setattr(some, "sample", sample)
    async with inside(file, looks=some) as (_, client):
        await made(client)
        await asyncio.wait_for(again.wait(), 20)


@asynchronous
async def test_tickets_that_are_durable_hold_nothing_of_their_commit(file):
    draw = random.Random(1)
    async with inside(file) as (app, client):
        await made(client)
        state = app.service.engines["costs"].state
        await client.post(f"{PATH}/predict", json={"id": "one", "row": row(draw)})
        many = [{"id": f"{number}", "row": row(draw)} for number in range(300)]
        await client.post(f"{PATH}/predict/batch", json={"rows": many})
        assert len(state.open) == 301
        assert all(one.group is None for one in state.open.values())
        await client.post(f"{PATH}/labels", json={"id": "one", "label": 1.0})
        some = [{"id": f"{number}", "label": 1.0} for number in range(200)]
        await client.post(f"{PATH}/labels", json=some)
        await client.post(f"{PATH}/forget", json={"id": "250"})
        assert len(state.recent) == 202
        assert all(one.group is None for one in state.recent.values())


def test_looking_for_garbage_is_short(monkeypatch):
    """Requests wait meanwhile: few objects are looked through at a time."""
    before, looked = gc.get_threshold(), []

    def look(phase, about):
        if phase == "start":
            looked.append(len(gc.get_objects(about["generation"])))

    monkeypatch.setattr(sys, "setswitchinterval", lambda seconds: None)
    state, draw = State(declared_model(SETTINGS, "costs")), random.Random(1)
    gc.collect()
    gc.callbacks.append(look)
    try:
        run.tune()
        for number in range(4_000):
            state.predict(str(number), row(draw), 0.0)
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*before)
    assert looked
    assert max(looked) < 10_000


@asynchronous
async def test_who_asks_for_few_groups_leaves_figures_and_alerts_as_they_are(file):
    """Prometheus sees all groups whatever somebody else asked for in between."""
    async with inside(file) as (app, client):
        await made(client)
        await learned(client)
        engine = app.service.engines["costs"]

        async def groups():
            lines = (await client.get("/metrics")).text.splitlines()
            return sum(line.startswith("groupwise_regret{") for line in lines)

        await client.get(f"{PATH}/regret?largest=2")
        assert await groups() == 0
        await app.looks.sample(engine)
        assert await groups() == 8
        await client.post(f"{PATH}/predict", json={"row": row(random.Random(3))})
        await client.get(f"{PATH}/regret?largest=2")  # of a later event
        assert await groups() == 8
        assert len(app.looks.last(engine)["rows"]) == 8
