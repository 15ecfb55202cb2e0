"""An answer leaves after its event is on the disk, and what cannot be written did not happen."""

import asyncio
import itertools
import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from groupwise.serve import committer
from groupwise.serve.engine import load
from groupwise.serve.errors import FullError, StaleError
from groupwise.serve.run import open_store
from groupwise.serve.sqlite import SqliteStore
from groupwise.serve.store import LABEL, Answer, Batch, Event, SnapshotRecord
from tests.serve.running import (
    PATH,
    SETTINGS,
    Running,
    asynchronous,
    inside,
    is_problem,
    label,
    made,
    row,
)


def traceable() -> bool:
    """Is there a strace, and may it look?"""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode == 0


@pytest.mark.skipif(not traceable(), reason="strace is missing, or may not look")
def test_fdatasync_comes_before_the_response(file, tmp_path):
    trace = tmp_path / "trace"
    looked = "trace=fdatasync,fsync,write,pwrite64,writev,send,sendto,sendmsg,read,recv,recvfrom"
    before = ["strace", "-f", "-y", "-s", "64", "-e", looked, "-o", str(trace)]
    with Running(file, before=before) as service, httpx.Client(timeout=60) as client:
        client.put(f"{service.url}{PATH}", content=SETTINGS).raise_for_status()
        draw = random.Random(0)
        for number in range(5):
            one = row(draw)
            body: dict = {"id": str(number), "row": one}
            client.post(f"{service.url}{PATH}/predict", json=body).raise_for_status()
            body = {"id": str(number), "label": label(one)}
            client.post(f"{service.url}{PATH}/labels", json=body).raise_for_status()
    asked = re.compile(r"(recv|recvfrom|read)\(.*POST /v1/models/costs/(predict|labels) ")
    sent = re.compile(r"(send|sendto|sendmsg|write|writev)\(\d+<(?:TCP|socket).*HTTP/1\.1 200")
    written = re.compile(r"(pwrite64|write)\(\d+<[^>]*groupwise\.db-wal>")
    synced = re.compile(r"(fdatasync|fsync)\(\d+<[^>]*groupwise\.db-wal>")
    resumed = re.compile(r"<\.\.\. (fdatasync|fsync) resumed>")
    begun: set[str] = set()
    rounds = 0
    since: list[str] | None = None
    for line in trace.read_text(errors="replace").splitlines():
        thread, said = line.split(maxsplit=1)
        if asked.search(said):
            since = []
        elif since is None:
            continue
        elif written.search(said):
            since.append("written")
        elif synced.search(said):
            if "unfinished" in said:
                begun.add(thread)
            else:
                since.append("synced")
        elif resumed.search(said) and thread in begun:
            begun.discard(thread)
            since.append("synced")
        elif sent.search(said):
            assert "written" in since, "the response leaves before anything is written"
            last = len(since) - 1 - since[::-1].index("written")
            assert "synced" in since[last:], "the response leaves before the disk has it"
            rounds, since = rounds + 1, None
    assert rounds == 10


class Slow(SqliteStore):
    """A store whose commits wait to be let through; only a thread can."""

    is_near = False

    def __init__(self, path, **options):
        super().__init__(path, **options)
        self.gate = threading.Event()
        self.gate.set()

    def commit(self, batches):
        self.gate.wait()
        super().commit(batches)


@asynchronous
async def test_nothing_is_answered_while_the_commit_lasts(tmp_path, monkeypatch):
    monkeypatch.setattr(committer, "MOST_EVENTS", 4)
    store = Slow(tmp_path / "slow.db")
    async with inside("", store=store) as (_, client):
        await made(client)
        one = row(random.Random(1))
        store.gate.clear()

        def post(path, body):
            return asyncio.create_task(client.post(f"{PATH}/{path}", json=body))

        waiting = [
            post("predict", {"id": "a", "row": one}),
            post("predict", {"id": "a", "row": one}),
            post("labels", {"id": "a", "label": 1.0}),
            post("labels", {"id": "a", "label": 1.0}),
            asyncio.create_task(client.get(f"{PATH}/tickets/a")),
            asyncio.create_task(client.get(f"{PATH}/regret")),
            asyncio.create_task(client.get(f"{PATH}/snapshot")),
        ]
        for number in range(2):
            waiting.append(post("predict", {"id": str(number), "row": one}))
        done, _ = await asyncio.wait(waiting, timeout=0.3)
        assert not done
        busy = await client.post(f"{PATH}/predict", json={"id": "more", "row": one})
        is_problem(busy, 503, "busy")
        assert busy.headers["retry-after"] == "1"
        store.gate.set()
        found = await asyncio.gather(*waiting)
        assert [response.status_code for response in found] == [200] * len(found)
        assert found[0].json() == found[1].json()
        assert [response.json()["outcome"] for response in found[2:4]] == ["settled", "already"]
        assert (await client.post(f"{PATH}/predict", json={"id": "more", "row": one})).is_success


class Flaky(SqliteStore):
    """A store that fails now and then: before it has written, or after, when nobody can know."""

    draw = random.Random(0)
    often = 0.0

    def commit(self, batches):
        fails = self.draw.random() < self.often
        if fails and self.draw.random() < 0.5:
            raise FullError("no room")
        super().commit(batches)
        if fails:
            raise FullError("no answer")


@asynchronous
async def test_failed_commits_take_memory_back_to_what_is_durable(tmp_path, monkeypatch):
    """Clients ask again until they are answered; the log then says what they were told, once."""
    from groupwise.serve import service as served

    monkeypatch.setattr(served, "AGAIN", (0.001, 0.01))
    store = Flaky(tmp_path / "flaky.db")
    draw = random.Random(7)
    failures = 0
    answers, labels, rows = {}, {}, {}
    async with inside("", store=store) as (_, client):
        await made(client)
        Flaky.often = 0.15

        async def ask(path, body):
            nonlocal failures
            while True:
                response = await client.post(f"{PATH}/{path}", json=body)
                if response.status_code == 200:
                    return response.json()
                failures += 1
                assert response.status_code in (503, 507), response.text
                await asyncio.sleep(0.001)

        async def one(name):
            rows[name] = row(draw)
            answers[name] = await ask("predict", {"id": name, "row": rows[name]})
            await asyncio.sleep(draw.random() * 0.02)
            labels[name] = label(rows[name])
            found = await ask("labels", {"id": name, "label": labels[name]})
            assert found["outcome"] in ("settled", "already")

        names = [f"n{number}" for number in range(150)]
        for start in range(0, len(names), 10):
            await asyncio.gather(*map(one, names[start : start + 10]))
        Flaky.often = 0.0
        for name in names:
            while (found := await client.get(f"{PATH}/tickets/{name}")).status_code == 503:
                await asyncio.sleep(0.01)
            assert found.json()["answer"] == answers[name]
            assert found.json()["label"] == labels[name]
        digest = (await client.get(f"{PATH}/snapshot")).headers["x-groupwise-digest"]
        state = load(store, store.models()[0])
        assert state.freeze().to_bytes()[1] == digest
        assert len(state.recent) == len(names) == state.model.issued
        assert state.seq == 2 * len(names)
    assert failures > 20


async def _fill(client, store_fills, store_empties, finds_room=False):
    """Write until there is no room, look, make room, and go on.

    A store that finds room by itself, in the log that it puts into its file, may go on earlier.
    """
    draw = random.Random(2)
    acknowledged = []
    for number in range(20):
        body = {"id": f"early {number}", "row": row(draw)}
        assert (await client.post(f"{PATH}/predict", json=body)).is_success
        acknowledged.append(body["id"])
    store_fills()
    for number in range(300):
        body = {"id": f"late {number}", "row": {**row(draw), "more": "x" * 2000}}
        response = await client.post(f"{PATH}/predict", json=body)
        if not response.is_success:
            break
        acknowledged.append(body["id"])
    detail = is_problem(response, 507, "no-room")
    assert "cannot be written" in detail
    assert response.headers["retry-after"]
    if not finds_room:
        refused = await client.post(f"{PATH}/labels", json={"id": acknowledged[0], "label": 1.0})
        assert refused.status_code in (503, 507)
    while (found := await client.get(f"{PATH}/tickets/{acknowledged[-1]}")).status_code != 200:
        assert found.status_code in (503, 507)
        await asyncio.sleep(0.02)
    missing = await client.get(f"{PATH}/tickets/{body['id']}")
    is_problem(missing, 404, "unknown")
    if not finds_room:
        assert (await client.get("/ready")).status_code == 503
    store_empties()
    while not (again := await client.post(f"{PATH}/predict", json=body)).is_success:
        assert again.status_code in (503, 507), again.text
        await asyncio.sleep(0.02)
    for name in acknowledged:
        assert (await client.get(f"{PATH}/tickets/{name}")).json()["outcome"] == "open"
        given = {"id": name, "label": 1.0}
        assert (await client.post(f"{PATH}/labels", json=given)).json()["outcome"] == "settled"
    assert (await client.get("/ready")).status_code == 200


def synchronous(store: SqliteStore) -> int:
    """1 where commits do not wait for the disk, 2 where they do."""
    return int(store._connection.execute("PRAGMA synchronous").fetchone()[0])


def test_only_what_belongs_to_a_snapshot_that_is_to_come_is_not_synced(tmp_path):
    store = SqliteStore(tmp_path / "groupwise.db")
    first = SnapshotRecord(0, 0.0, "", "")
    record, fence = store.create("costs", "", "", first, b"")
    answers = (Answer(n, f"{n}", b"", b"{}", "settled", b"1", 0.0, 1.0) for n in itertools.count())
    unsynced: list[Callable[[], None]] = [
        lambda: store.put_part(record.model, fence, 1, 0, b"some"),
        lambda: store.put_answers(record.model, fence, [next(answers)]),
    ]
    numbers = itertools.count(1)
    event = Event(LABEL, 0, None, b"1", 0, 1.0)
    synced: list[Callable[[], None]] = [
        lambda: store.commit([Batch(record.model, fence, next(numbers), [event])]),
        lambda: store.put_snapshot(record.model, fence, first._replace(seq=1), 2, False),
        lambda: store.forget_answers(record.model, fence, 0.0),
    ]
    for before in unsynced:
        for after in synced:
            before()
            assert synchronous(store) == 1
            after()
            assert synchronous(store) == 2
    assert [*store.keys(record.model)] == ["0", "1", "2"]
    store.close()


def test_nothing_is_written_behind_a_hole(tmp_path):
    """After a write that failed all that was not synced is put into the file before the next."""
    store = SqliteStore(tmp_path / "groupwise.db")
    record, fence = store.create("costs", "", "", SnapshotRecord(0, 0.0, "", ""), b"")
    event = Event(LABEL, 0, None, b"1", 0, 1.0)
    store.put_part(record.model, fence, 1, 0, b"some")  # not synced
    said: list[str] = []
    store._connection.set_trace_callback(said.append)
    store.commit([Batch(record.model, fence, 1, [event])])
    assert not any("wal_checkpoint" in one for one in said)
    with pytest.raises(FullError):
        store.commit([Batch(record.model, fence, 1, [event])])  # the number is taken
    said.clear()
    store.commit([Batch(record.model, fence, 2, [event])])
    first = next(one for one in said if "synchronous" not in one)
    assert first == "PRAGMA wal_checkpoint(TRUNCATE)"
    said.clear()
    store.commit([Batch(record.model, fence, 3, [event])])
    assert not any("wal_checkpoint" in one for one in said)
    store.close()


def test_many_answers_at_once(tmp_path):
    store = SqliteStore(tmp_path / "groupwise.db")
    store._connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 999)
    record, fence = store.create("costs", "", "", SnapshotRecord(0, 0.0, "", ""), b"")
    answers = [Answer(n, f"{n}", b"", b"{}", "settled", b"1", 0.0, 1.0) for n in range(1_000)]
    store.put_answers(record.model, fence, answers)
    assert sorted(map(int, store.keys(record.model))) == [*range(1_000)]
    store.close()


def test_answers_of_a_stale_writer_are_refused(tmp_path):
    store = SqliteStore(tmp_path / "groupwise.db")
    record, fence = store.create("costs", "", "", SnapshotRecord(0, 0.0, "", ""), b"")
    answers = [Answer(n, f"{n}", b"", b"{}", "settled", b"1", 0.0, 1.0) for n in range(3)]
    store.put_answers(record.model, fence, answers[:2])
    store.put_answers(record.model, fence, answers[:2])  # known already: nothing happens
    store.take(record.model)
    with pytest.raises(StaleError):
        store.put_answers(record.model, fence, answers)
    assert [*store.keys(record.model)] == ["0", "1"]
    store.close()


@asynchronous
async def test_a_full_file(file):
    store: Any = open_store(file)

    def fills():
        (pages,) = store._connection.execute("PRAGMA page_count").fetchone()
        store._connection.execute(f"PRAGMA max_page_count = {pages + 8}")

    def empties():
        store._connection.execute("PRAGMA max_page_count = 1000000")

    async with inside("", store=store) as (_, client):
        await made(client)
        await _fill(client, fills, empties)
        digest = (await client.get(f"{PATH}/snapshot")).headers["x-groupwise-digest"]
        assert load(store, store.models()[0]).freeze().to_bytes()[1] == digest


@asynchronous
async def test_a_full_database(tmp_path):
    from tests.serve.running import place_of

    store: Any = open_store(place_of("postgres", tmp_path))

    def fills():
        store._reader.execute(
            "CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"
        )
        for table in ("log", "probe"):
            store._reader.execute(
                f"CREATE TRIGGER full_disk BEFORE INSERT ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION full_disk()"
            )

    def empties():
        for table in ("log", "probe"):
            store._reader.execute(f"DROP TRIGGER full_disk ON {table}")

    async with inside("", store=store) as (_, client):
        await made(client)
        await _fill(client, fills, empties)


@pytest.mark.slow
@pytest.mark.parametrize(("most", "finds_room"), [(4_096, False), (300_000, True)])
def test_a_limit_of_the_system_on_files(file, most, finds_room):
    """A running service whose files may grow no further, and then may again."""
    with Running(file) as service:
        assert service.process is not None
        pid = service.process.pid

        async def run():
            async with httpx.AsyncClient(base_url=service.url, timeout=60) as client:
                await made(client)
                await _fill(
                    client,
                    lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (most, -1)),
                    lambda: resource.prlimit(pid, resource.RLIMIT_FSIZE, (-1, -1)),
                    finds_room,
                )

        asyncio.run(run())
        status, said = service.stop()
        assert status == 0, said
    check = subprocess.run(
        [sys.executable, "-m", "groupwise", "serve", "--check", "--store", file],
        capture_output=True,
        text=True,
        check=False,
    )
    assert check.returncode == 0, check.stdout
    assert "agree" in check.stdout
