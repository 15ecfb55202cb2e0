"""Who commits: the thread, or the event loop where there is little and the disk is quick."""

import asyncio
import itertools
import random
import threading
import time

import pytest

from groupwise.serve import committer
from groupwise.serve.engine import load
from groupwise.serve.errors import FullError
from groupwise.serve.sqlite import SqliteStore
from tests.serve.running import PATH, asynchronous, inside, is_problem, label, made, row


class Watched(SqliteStore):
    """A store that remembers which thread committed how many events, and can be slow or full."""

    def __init__(self, path, pause=0.0):
        self.seen: list[tuple[bool, int]] = []
        self.pause = pause
        self.is_full = False
        super().__init__(path)

    def commit(self, batches):
        is_main = threading.current_thread() is threading.main_thread()
        self.seen.append((is_main, sum(len(batch.events) for batch in batches)))
        time.sleep(self.pause)
        if self.is_full:
            raise FullError("no room")
        super().commit(batches)


@pytest.fixture(autouse=True)
def nothing_else(monkeypatch):
    """No clock wakes the thread: who commits is certain."""
    monkeypatch.setattr("groupwise.serve.service.TICK", 600.0)


async def _alone(client, count, name="alone"):
    draw = random.Random(name)
    for number in range(count):
        body = {"id": f"{name} {number}", "row": row(draw)}
        assert (await client.post(f"{PATH}/predict", json=body)).is_success


async def _together(client, count, name):
    draw = random.Random(name)
    asked = [
        client.post(f"{PATH}/predict", json={"id": f"{name} {i}", "row": row(draw)})
        for i in range(count)
    ]
    assert all(one.is_success for one in await asyncio.gather(*asked))


@asynchronous
async def test_few_events_change_no_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(committer, "QUICK", 60.0)
    store = Watched(tmp_path / "near.db")
    async with inside("", store=store) as (_, client):
        await made(client)
        await _alone(client, 20)
        assert store.seen == [(True, 1)] * 20
        store.seen.clear()
        await _together(client, 40, "few")
        assert sum(count for _, count in store.seen) == 40
        assert any(is_main and count > 1 for is_main, count in store.seen)
        monkeypatch.setattr(committer, "FEW", 4)
        store.seen.clear()
        await _together(client, 40, "many")
        assert sum(count for _, count in store.seen) == 40
        assert all(count <= 4 for is_main, count in store.seen if is_main)
        assert any(count > 4 for is_main, count in store.seen if not is_main)
        assert load(store, store.models()[0]).seq == 100


@asynchronous
async def test_a_slow_disk_and_another_machine_are_left_to_the_thread(tmp_path, monkeypatch):
    monkeypatch.setattr(committer, "AGAIN", 10)
    store = Watched(tmp_path / "slow.db", pause=2 * committer.QUICK)
    async with inside("", store=store) as (_, client):
        await made(client)
        await _alone(client, 24)
        here = [place for place, (is_main, _) in enumerate(store.seen) if is_main]
        assert here[0] == 0
        assert len(here) in (2, 3)  # it is tried again, once the thread sleeps
        assert all(later - sooner > 10 for sooner, later in itertools.pairwise(here))
        store.pause = 0.0
        monkeypatch.setattr(committer, "QUICK", 60.0)
        await _alone(client, 30, "quick again")
        assert store.seen[-15:] == [(True, 1)] * 15
    store = Watched(tmp_path / "far.db")
    store.is_near = False
    async with inside("", store=store) as (_, client):
        await made(client)
        await _alone(client, 5)
        assert store.seen == [(False, 1)] * 5


@asynchronous
async def test_what_the_loop_cannot_commit_did_not_happen(tmp_path, monkeypatch):
    monkeypatch.setattr(committer, "QUICK", 60.0)
    store = Watched(tmp_path / "full.db")
    async with inside("", store=store) as (app, client):
        await made(client)
        await _alone(client, 3)
        store.is_full = True
        one = row(random.Random(5))
        refused = await client.post(f"{PATH}/predict", json={"id": "late", "row": one})
        is_problem(refused, 507, "no-room")
        assert store.seen[-1] == (True, 1)
        store.is_full = False
        while (again := await client.get(f"{PATH}/tickets/late")).status_code in (503, 507):
            await asyncio.sleep(0.01)
        is_problem(again, 404, "unknown")
        while not (again := await client.get("/ready")).is_success:
            await asyncio.sleep(0.01)
        assert (await client.post(f"{PATH}/predict", json={"id": "late", "row": one})).is_success
        given = {"id": "late", "label": label(one)}
        assert (await client.post(f"{PATH}/labels", json=given)).json()["outcome"] == "settled"
        state = app.service.engines["costs"].state
        assert load(store, store.models()[0]).freeze().to_bytes()[1] == state.freeze().to_bytes()[1]
