"""Two things at once: models that are made, replaced and deleted while others ask, and failures."""

import asyncio
import gc
import random
import threading
import time
from contextlib import suppress
from typing import Any

import pytest

from groupwise.serve import engine as engines
from groupwise.serve import service as services
from groupwise.serve.access import new_token
from groupwise.serve.engine import Ageing, load
from groupwise.serve.errors import FullError, ServiceError, StaleError, UnavailableError
from groupwise.serve.run import open_store
from groupwise.serve.sqlite import SqliteStore
from groupwise.serve.state import Frozen
from tests.serve.running import PATH, SETTINGS, asynchronous, inside, is_problem, label, made, row

OTHER = SETTINGS.replace("60.0", "70.0")


class Gate:
    """Lets a function of another thread wait until the test opens it."""

    def __init__(self, inner):
        self.inner = inner
        self.reached, self.open = threading.Event(), threading.Event()

    def __call__(self, *arguments):
        self.reached.set()
        assert self.open.wait(60)
        return self.inner(*arguments)

    async def until_reached(self):
        assert await asyncio.to_thread(self.reached.wait, 60)


async def predicted(client, name, one):
    return await client.post(f"{PATH}/predict", json={"id": name, "row": one})


async def ready(client):
    while not (await client.get("/ready")).is_success:
        await asyncio.sleep(0.01)


@asynchronous
async def test_a_row_that_comes_while_a_model_is_replaced_stays(file, monkeypatch):
    async with inside(file) as (app, client):
        await made(client)
        gate = Gate(services._first)
        monkeypatch.setattr(services, "_first", gate)
        replacing = asyncio.create_task(client.put(PATH, content=OTHER))
        await gate.until_reached()
        one = row(random.Random(1))
        assert (await predicted(client, "a", one)).is_success
        gate.open.set()
        is_problem(await replacing, 409, "conflict")
        assert (await client.get(f"{PATH}/tickets/a")).json()["outcome"] == "open"
        assert (await client.get(PATH)).json()["settings"] == SETTINGS
        given = {"id": "a", "label": label(one)}
        assert (await client.post(f"{PATH}/labels", json=given)).json()["outcome"] == "settled"
        record = app.service.engines["costs"].record
        assert load(app.service.store, record).seq == 2


@asynchronous
async def test_a_snapshot_of_a_deleted_model_is_not_one_of_its_successor(place, monkeypatch):
    async with inside(place) as (app, client):
        await made(client)
        for number in range(3):
            assert (await predicted(client, str(number), row(random.Random(1)))).is_success
        gate = Gate(Frozen.to_bytes)
        monkeypatch.setattr(Frozen, "to_bytes", lambda self: gate(self))
        old = app.service.engines["costs"]
        snapping = asyncio.create_task(old.snapshot())
        await gate.until_reached()
        assert (await client.delete(PATH)).status_code == 204
        monkeypatch.undo()
        await made(client, OTHER)
        gate.open.set()
        with pytest.raises(StaleError):
            await snapping
        with pytest.raises(StaleError):
            await old.put_history(3, 0.0, b"{}", 10)
        new = app.service.engines["costs"]
        assert old.record.model != new.record.model
        assert [one.seq for one in app.service.store.snapshots(new.record.model)] == [0]
        assert load(app.service.store, new.record).seq == 0


@asynchronous
async def test_models_are_taken_by_the_thread_that_commits(file, monkeypatch):
    async with inside(file) as (_, client):
        await made(client)
        assert (await client.put("/v1/models/other", content=OTHER)).is_success
    names = []
    take = SqliteStore.take

    def watched(self, *about):
        names.append(threading.current_thread().name)
        return take(self, *about)

    monkeypatch.setattr(SqliteStore, "take", watched)
    async with inside(file) as (_, client):
        assert names == ["groupwise commits"] * 2
        assert (await predicted(client, "a", row(random.Random(1)))).is_success


@asynchronous
async def test_a_model_is_deleted_once(file):
    async with inside(file) as (_, client):
        await made(client)
        found = await asyncio.gather(client.delete(PATH), client.delete(PATH))
        assert sorted(one.status_code for one in found) == [204, 404]
        again = await asyncio.gather(*(client.put(PATH, content=SETTINGS) for _ in range(3)))
        assert sorted(one.status_code for one in again) == [200, 200, 201]


@asynchronous
async def test_a_deletion_that_fails_leaves_what_is_durable(file, monkeypatch):
    """Also where an event before it could not be written, and memory is ahead of the store."""
    store = open_store(file)
    async with inside("", store=store) as (app, client):
        await made(client)
        one = row(random.Random(1))
        assert (await predicted(client, "a", one)).is_success

        def full(*about):
            raise FullError("no room")

        for name in ("commit", "delete", "probe"):
            monkeypatch.setattr(store, name, full)
        refused = await asyncio.gather(
            predicted(client, "b", one), client.delete(PATH), predicted(client, "c", one)
        )
        assert all(found.status_code in (404, 503, 507) for found in refused)
        monkeypatch.undo()
        await ready(client)
        assert (await client.get(f"{PATH}/tickets/a")).is_success
        assert (await predicted(client, "d", one)).json()["ticket"] == 1
        record = app.service.engines["costs"].record
        assert [one.key for one in load(store, record).open.values()] == ["a", "d"]
        assert (await client.delete(PATH)).status_code == 204


@asynchronous
async def test_a_replacement_that_fails_leaves_the_model_that_was_there(file):
    """Both are one transaction: here what is written last of the new model fails."""
    store: Any = open_store(file)
    async with inside("", store=store) as (_, client):
        await made(client)
        store._connection.execute(
            "CREATE TRIGGER fails BEFORE INSERT ON parts BEGIN SELECT RAISE(FAIL, 'no room'); END"
        )
        is_problem(await client.put(PATH, content=OTHER), 507, "no-room")
        store._connection.execute("DROP TRIGGER fails")
        await ready(client)
        assert (await client.get(PATH)).json()["settings"] == SETTINGS
        assert (await predicted(client, "a", row(random.Random(1)))).is_success
        assert [one.settings for one in store.models()] == [SETTINGS]


@pytest.mark.parametrize("again", [SETTINGS, OTHER])
@asynchronous
async def test_a_model_whose_maker_was_not_told_is_there_when_asked_again(
    place, monkeypatch, again
):
    store = open_store(place)
    async with inside("", store=store) as (_, client):
        create = store.create

        def create_and_lost(*about):
            create(*about)
            raise UnavailableError("the connection is gone")

        monkeypatch.setattr(store, "create", create_and_lost)
        is_problem(await client.put(PATH, content=SETTINGS), 503, "unavailable")
        monkeypatch.undo()
        assert (await client.put(PATH, content=again)).status_code == 200
        assert (await client.get(PATH)).json()["settings"] == again
        assert (await predicted(client, "a", row(random.Random(1)))).is_success
        assert (await client.put(PATH, content=again)).status_code == 200


@asynchronous
async def test_a_stale_writer_stays_stale_after_a_deletion(file):
    async with inside(file) as (app, client):
        await made(client)
        one = row(random.Random(1))
        engine = app.service.engines["costs"]
        await app.service.committer.run(lambda store: store.take(engine.record.model))
        is_problem(await predicted(client, "a", one), 503, "elsewhere")
        is_problem(await client.delete(PATH), 503, "elsewhere")
        assert isinstance(engine.unavailable, StaleError)


@asynchronous
async def test_ids_are_known_though_nobody_knows_whether_a_snapshot_was_written(file, monkeypatch):
    """It was, and its answer was lost; then the state is read from it."""
    store = open_store(file)
    async with inside("", store=store) as (app, client):
        await made(client)
        one = row(random.Random(1))
        first = await predicted(client, "a", one)
        await client.post(f"{PATH}/labels", json={"id": "a", "label": label(one)})
        put, engine = store.put_snapshot, app.service.engines["costs"]

        def put_and_lost(*about):
            put(*about)
            raise UnavailableError("the connection is gone")

        monkeypatch.setattr(store, "put_snapshot", put_and_lost)
        with pytest.raises(UnavailableError):
            await engine.snapshot()
        monkeypatch.undo()
        app.service._failed(UnavailableError("whatever"))
        await ready(client)
        assert not engine.state.recent  # only the store knows it
        again = await predicted(client, "a", one)
        assert again.content == first.content
        await engine.snapshot()


@asynchronous
async def test_what_is_due_goes_on_whatever_fails(file, monkeypatch):
    """A snapshot that cannot be taken keeps nobody from theirs, nor tokens from being known."""
    store = open_store(file)
    gate = Gate(Frozen.to_bytes)
    async with inside("", Ageing(seconds=0.0), store=store) as (app, client):
        await made(client)
        assert (await client.put("/v1/models/other", content=OTHER)).is_success
        broken, other = app.service.engines["costs"], app.service.engines["other"]

        async def fails():
            raise TypeError("as if by accident")

        monkeypatch.setattr(broken, "snapshot", fails)
        one = row(random.Random(1))
        assert (await predicted(client, "a", one)).is_success
        await client.post("/v1/models/other/predict", json={"row": one})
        while other.unsnapped:
            await asyncio.sleep(0.01)
        monkeypatch.setattr(Frozen, "to_bytes", lambda self: gate(self))
        await client.post("/v1/models/other/predict", json={"row": one})
        await gate.until_reached()  # a long snapshot
        store.put_token(new_token("all", ["admin"])[1])
        while not app.service.tokens:
            await asyncio.sleep(0.01)
        gate.open.set()


@asynchronous
async def test_a_recovery_goes_on_whatever_fails(file, monkeypatch):
    monkeypatch.setattr(services, "AGAIN", (0.01, 0.01))
    store = open_store(file)
    async with inside("", store=store) as (app, client):
        await made(client)
        turns = iter([ValueError("odd"), FullError("no room")])

        def fails():
            with suppress(StopIteration):
                raise next(turns)

        monkeypatch.setattr(store, "probe", fails)
        app.service._failed(UnavailableError("whatever"))
        await ready(client)
        assert (await predicted(client, "a", row(random.Random(1)))).is_success


@asynchronous
async def test_a_clock_that_is_set_back(file, monkeypatch):
    async with inside(file, Ageing(seconds=1000.0)) as (app, client):
        await made(client)
        one = row(random.Random(1))
        assert (await predicted(client, "a", one)).is_success
        engine, now = app.service.engines["costs"], time.time
        assert not engine.is_due
        monkeypatch.setattr(time, "time", lambda: now() - 86_400.0)
        assert engine.is_due
        await engine.snapshot()
        assert not engine.is_due
        given = {"id": "a", "label": label(one)}
        assert (await client.post(f"{PATH}/labels", json=given)).json()["outcome"] == "settled"
        assert (await client.get("/metrics")).is_success


@asynchronous
async def test_tables_of_a_deleted_model_are_gone(file):
    async with inside(file) as (app, client):
        await made(client)
        assert (await client.get(f"{PATH}/regret")).is_success
        assert len(app.looks._seen) == 1
        await client.delete(PATH)
        for _ in range(200):  # until the thread that deleted it does something else
            await asyncio.sleep(0.02)
            gc.collect()
            if not app.looks._seen:
                break
        assert not app.looks._seen


@pytest.mark.parametrize("where", ["_find", "_apply"])
@asynchronous
async def test_an_error_midway_in_a_batch_loses_nothing_of_it(file, monkeypatch, where):
    """The store cannot be read for one id: what was predicted before it is in the log."""
    async with inside(file) as (app, client):
        await made(client)
        draw = random.Random(1)
        rows = [{"id": f"b{number}", "row": row(draw)} for number in range(120)]
        engine = app.service.engines["costs"]
        does = getattr(engine, where)

        def fails(what, *about):
            if where == "_apply":  # all of them are new, and predicted in one call
                items, *others = about
                does(what, items[:75], *others)
            if where == "_apply" or what == "b75":
                raise ServiceError("as if by accident")
            return does(what, *about)

        monkeypatch.setattr(engine, where, fails)
        monkeypatch.setattr(engine, "_all_new", lambda items: where != "_find")
        found = await client.post(f"{PATH}/predict/batch", json={"rows": rows})
        is_problem(found, 500, "internal")
        monkeypatch.undo()
        found = await client.post(f"{PATH}/predict/batch", json={"rows": rows})
        assert [one["ticket"] for one in found.json()["predictions"]] == [*range(120)]
        assert load(app.service.store, engine.record).seq == 120


@pytest.mark.parametrize("due", [False, True])
@asynchronous
async def test_a_snapshot_lets_requests_go_first_unless_the_next_one_is_due(file, monkeypatch, due):
    monkeypatch.setattr(engines, "PAUSE", 3_600.0)
    ageing = Ageing(events=1 if due else 1_000_000, seconds=1e9)
    async with inside(file, ageing) as (app, client):
        await made(client)
        engine, draw = app.service.engines["costs"], random.Random(0)
        writes = Gate(app.service.store.put_part)
        monkeypatch.setattr(app.service.store, "put_part", writes)
        assert (await predicted(client, "before", row(draw))).is_success
        snapping = asyncio.create_task(engine.snapshot())
        await writes.until_reached()
        meanwhile = asyncio.create_task(predicted(client, "meanwhile", row(draw)))
        while engine.state.seq < 2:
            await asyncio.sleep(0.005)
        writes.open.set()
        assert (await meanwhile).is_success
        if due:
            await asyncio.wait_for(snapping, 60)
            assert engine.snapshots[0].seq >= 1
        else:
            await asyncio.wait([snapping], timeout=0.3)
            assert not snapping.done()
            assert (await predicted(client, "after", row(draw))).is_success
            snapping.cancel()
            await asyncio.wait([snapping])
    assert load(open_store(file), engine.record).seq == (2 if due else 3)


@asynchronous
async def test_a_ticket_says_nothing_of_a_label_that_is_not_durable(file, monkeypatch):
    """It comes when the prediction is durable, before whoever asked for the ticket is told."""
    async with inside(file) as (app, client):
        await made(client)
        engine, one = app.service.engines["costs"], row(random.Random(1))
        labels: list[asyncio.Task] = []

        async def written(group, does=engine._written):
            await does(group)
            if not labels:
                labels.append(asyncio.create_task(engine.label("a", None, b"1.0")))
                await asyncio.sleep(0)

        monkeypatch.setattr(engine, "_written", written)
        _, (known, _) = await asyncio.gather(engine.predict("a", one), engine.ticket("a"))
        assert engine.state.find("a", None).outcome == "settled"
        assert known.outcome is None
        assert (await labels[0]).outcome == "settled"
        assert (await client.get(f"{PATH}/tickets/a")).json()["outcome"] == "settled"
