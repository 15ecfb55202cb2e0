"""One writer per model: a second one is refused, and one that was replaced writes nothing more."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from typing import Any

import httpx
import pytest

from groupwise.serve.engine import load
from groupwise.serve.errors import StaleError, StoreError, UnavailableError
from groupwise.serve.run import open_store
from groupwise.serve.store import Batch, SnapshotRecord
from tests.serve.running import (
    PATH,
    SETTINGS,
    Running,
    asynchronous,
    free_port,
    inside,
    is_problem,
    made,
    place_of,
    row,
)


def serve(place: str, *options: str) -> subprocess.CompletedProcess:
    """A service that should not come to be."""
    command = [sys.executable, "-m", "groupwise", "serve", "--store", place]
    command += ["--port", str(free_port()), *options]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.slow
def test_a_second_process_is_refused(place):
    with Running(place) as first:
        with httpx.Client(base_url=first.url, timeout=60) as client:
            client.put(PATH, content=SETTINGS).raise_for_status()
            second = serve(place)
            assert second.returncode == 2
            assert "Another process writes" in second.stderr
            body = {"id": "a", "row": row(random.Random(1))}
            assert client.post(f"{PATH}/predict", json=body).is_success
        assert first.stop()[0] == 0


def test_a_file_has_one_writer(file):
    first = open_store(file)
    with pytest.raises(StaleError, match="Another process writes"):
        open_store(file)
    open_store(file, writer=False).close()  # who comes for tokens takes nothing
    first.close()
    open_store(file).close()


@asynchronous
async def test_a_stale_writer_cannot_commit(place):
    """Another takes the model behind its back; here by force, where a lock would not allow it."""
    async with inside(place) as (app, client):
        await made(client)
        body = {"id": "a", "row": row(random.Random(1))}
        await client.post(f"{PATH}/predict", json=body)
        record = app.service.engines["costs"].record
        if place.startswith("postgresql"):
            other: Any = open_store(place, lease=0.5)
            with pytest.raises(StaleError, match="Another process writes"):
                other.take(record.model)
            other._execute(
                other._connection.cursor(), "UPDATE models SET expires = 0"
            )  # as after a pause
        else:
            os.unlink(place + ".lock")
            other = open_store(place)
        fence = other.take(record.model)
        answers = await asyncio.gather(
            *(
                client.post(f"{PATH}/predict", json={**body, "id": str(number)})
                for number in range(5)
            ),
            client.post(f"{PATH}/labels", json={"id": "a", "label": 1.0}),
        )
        for answer in answers:
            is_problem(answer, 503, "elsewhere")
        is_problem(await client.get(f"{PATH}/tickets/a"), 503, "elsewhere")
        with pytest.raises(StaleError):
            await app.service.committer.run(lambda s: s.delete(record.model, fence - 1))
        state = load(other, record)
        assert state.seq == 1
        assert [one.key for one in state.open.values()] == ["a"]
        other.close()


def test_a_writer_that_is_paused_amid_a_transaction(tmp_path):
    """What it had locked is free again when its lease is over, and it writes nothing more."""
    first: Any = open_store(place_of("postgres", tmp_path), lease=0.5)
    nothing = SnapshotRecord(0, 0.0, "", "")
    record, fence = first.create("costs", SETTINGS, "x", nothing, b"")
    second: Any = open_store(first._address, lease=0.5)
    writing = first._writing()
    writing.__enter__().execute("UPDATE models SET expires = expires")  # and here it is stopped
    began = time.monotonic()
    assert second.take(record.model) == fence + 1
    assert time.monotonic() - began < 20
    with pytest.raises(UnavailableError):
        writing.__exit__(None, None, None)
    with pytest.raises(StaleError):
        first.commit([Batch(record.model, fence, 1, [])])
    first.close()
    second.close()


@pytest.mark.slow
def test_a_paused_writer_that_resumes(tmp_path):
    """Paused past its lease, replaced, and resumed: nothing that it is asked for then stays."""
    place = place_of("postgres", tmp_path)
    first = Running(place, "--lease", "1").start()
    second = Running(place, "--lease", "1")
    try:
        with httpx.Client(base_url=first.url, timeout=30) as client:
            client.put(PATH, content=SETTINGS).raise_for_status()
            body = {"id": "a", "row": row(random.Random(1))}
            client.post(f"{PATH}/predict", json=body).raise_for_status()
            assert first.process is not None
            os.kill(first.process.pid, signal.SIGSTOP)
            time.sleep(1.5)
            second.start()
            with httpx.Client(base_url=second.url, timeout=30) as new:
                mine = {"id": "b", "row": row(random.Random(2))}
                found = new.post(f"{PATH}/predict", json=mine).json()
                os.kill(first.process.pid, signal.SIGCONT)
                stale = client.post(f"{PATH}/predict", json={**body, "id": "c"})
                if stale.json()["type"].endswith("unavailable"):  # paused amid a transaction
                    stale = client.post(f"{PATH}/predict", json={**body, "id": "c"})
                is_problem(stale, 503, "elsewhere")
                assert new.get(f"{PATH}/tickets/b").json()["answer"] == found
                assert new.get(f"{PATH}/tickets/a").status_code == 200
                assert new.get(f"{PATH}/tickets/c").status_code == 404
                assert new.get(PATH).json()["events"] == 2
            first.stop()
            assert second.stop()[0] == 0
    finally:
        first.end()
        second.end()


@pytest.mark.slow
def test_a_paused_process_keeps_its_file(file):
    """A lock does not end while its process lives: nobody can replace the writer of a file."""
    with Running(file) as first:
        assert first.process is not None
        os.kill(first.process.pid, signal.SIGSTOP)
        second = serve(file)
        os.kill(first.process.pid, signal.SIGCONT)
        assert second.returncode == 2
        assert "Another process writes" in second.stderr


@pytest.mark.slow
def test_two_processes_may_serve_two_models(tmp_path):
    place = place_of("postgres", tmp_path)
    with Running(place, "--model", "costs") as one, Running(place, "--model", "other") as other:
        httpx.put(f"{one.url}{PATH}", content=SETTINGS, timeout=60).raise_for_status()
        found = httpx.put(f"{other.url}{PATH}", content=SETTINGS, timeout=60)
        is_problem(found, 503, "elsewhere")
        made_there = httpx.put(f"{other.url}/v1/models/other", content=SETTINGS, timeout=60)
        assert made_there.status_code == 201
        for service, name in ((one, "costs"), (other, "other")):
            body = {"id": "a", "row": row(random.Random(1))}
            url = f"{service.url}/v1/models/{name}/predict"
            assert httpx.post(url, json=body, timeout=60).is_success


def test_a_check_of_a_store_that_is_not_there(tmp_path):
    from groupwise.serve.run import Settings, check

    place = tmp_path / "typo.db"
    with pytest.raises(StoreError, match="There is no store"):
        check(Settings(store=str(place)), print)
    assert not place.exists()


@pytest.mark.parametrize("word", [b"CREATE TABLE tokens", b"sqlite_autoindex_tokens"])
def test_a_file_whose_tables_are_damaged(tmp_path, word):
    """What SQLite says of it may be no text."""
    place = tmp_path / "groupwise.db"
    open_store(str(place)).close()
    content = place.read_bytes()
    assert word in content
    place.write_bytes(content.replace(word, word[:7] + b"\xfe" + word[8:]))
    with pytest.raises(StoreError, match="Cannot use"):
        open_store(str(place))


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_a_file_has_one_writer_whatever_links_lead_to_it(tmp_path):
    (tmp_path / "other").mkdir()
    file, link = tmp_path / "groupwise.db", tmp_path / "other" / "link.db"
    first = open_store(str(file))
    link.symlink_to(file)
    with pytest.raises(StaleError, match="Another process writes"):
        open_store(str(link))
    first.close()
    open_store(str(link)).close()
    assert [one.name for one in (tmp_path / "other").iterdir()] == ["link.db"]


@asynchronous
async def test_a_commit_that_happens_after_it_failed(place, monkeypatch):
    """The connection was lost, nothing was found, and then it was written after all.

    What comes next has the numbers of that: it is refused for now, and asked again.
    """
    store = open_store(place)
    async with inside("", store=store) as (app, client):
        await made(client)
        one, lost = row(random.Random(1)), []

        def fails(batches):
            lost.append(batches)
            raise UnavailableError("the connection is gone")

        async def settled():
            while not (await client.get("/ready")).is_success:
                await asyncio.sleep(0.01)

        with monkeypatch.context() as patch:
            patch.setattr(store, "commit", fails)
            refused = await client.post(f"{PATH}/predict", json={"id": "a", "row": one})
            is_problem(refused, 503, "unavailable")
        await settled()
        assert (await client.get(f"{PATH}/tickets/a")).status_code == 404
        await app.service.committer.run(lambda store: store.commit(lost[0]))
        refused = await client.post(f"{PATH}/predict", json={"id": "b", "row": one})
        assert refused.status_code in (503, 507), refused.text
        assert refused.headers["retry-after"]
        await settled()
        for number, name in enumerate("ab"):
            found = await client.post(f"{PATH}/predict", json={"id": name, "row": one})
            assert found.json()["ticket"] == number
        assert load(store, store.models()[0]).seq == 2
