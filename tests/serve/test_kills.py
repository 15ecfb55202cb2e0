"""kill −9 at any moment: what was acknowledged is there, once, and the state is that of no kill.

``KILLS=1000 SEED=1`` in the environment (``make kills COUNT=1000``) kills so often, services that
are forked by a process which has everything loaded.
"""

import asyncio
import json
import os
import random
import signal
import sqlite3
import time
from collections import deque
from contextlib import closing, nullcontext
from typing import Any

import httpx
import pytest

from groupwise.serve.run import POSTGRES as ADDRESSES
from groupwise.serve.run import Settings, check, open_store
from groupwise.serve.state import State
from groupwise.serve.store import FORGET, LABEL, PREDICT, Event, numbered
from tests.serve.mortal import Death, Nursery
from tests.serve.running import PATH, SETTINGS, Running, label, row

CLIENTS = 8
LATEST = 30
"""So many requests may be sent twice, also while the first is on its way."""
MANY = 500
OFTEN = ("--lease", "2", "--snapshot-seconds", "0.1")
AMID, EARLY = 0.3, 0.15
"""Shares of the kills: at a step of the store's work, and before the service is ready."""
TOLD = 50
"""Kills after which a line is printed."""
LAST = 3.0
"""Seconds until a service is killed whose own death does not come."""


class Load:
    """Clients that predict, label and forget, keep what was acknowledged, and ask again."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.draw = random.Random(seed)
        self.answers: dict[str, dict] = {}
        self.labels: dict[str, float] = {}
        self.forgotten: set[str] = set()
        self.open: list[str] = []
        self.rows: dict[str, dict] = {}
        self.unsure: list[tuple[str, dict | list]] = []
        self.latest: deque[tuple[str, dict | list]] = deque(maxlen=LATEST)

    async def run(self) -> None:
        """Until the service is gone."""
        limits = httpx.Limits(max_connections=CLIENTS)
        async with httpx.AsyncClient(
            base_url=self.url, limits=limits, timeout=20, verify=False
        ) as client:
            again, self.unsure = self.unsure, []
            await asyncio.gather(*(self._one(client, again) for _ in range(CLIENTS)))
            self.unsure += again

    async def _one(self, client, again) -> None:
        alive = True
        while alive:
            path, body = again.pop() if again else self._next()
            self.latest.append((path, body))
            alive = await self._send(client, path, body)

    def _next(self) -> tuple[str, dict | list]:
        """What is asked next: something new, or what was asked not long ago."""
        what = self.draw.random()
        if what < 0.1 and self.latest:
            return self.draw.choice(self.latest)
        if what < 0.45 and self.open:
            return "labels", self._label()
        if what < 0.5 and self.open:
            return "labels", [self._label() for _ in range(min(10, len(self.open)))]
        if what < 0.55 and self.open:
            return "forget", {"id": self._taken()}
        if what < 0.65:
            count = self.draw.choice((2, 20, 150))
            return "predict/batch", {"rows": [self._row() for _ in range(count)]}
        return "predict", self._row()

    def _taken(self) -> str:
        return self.open.pop(self.draw.randrange(len(self.open)))

    def _label(self) -> dict:
        name = self._taken()
        return {"id": name, "label": label(self.rows[name])}

    def _row(self) -> dict:
        name = f"row {len(self.rows)}"
        self.rows[name] = row(self.draw)
        return {"id": name, "row": self.rows[name]}

    async def _send(self, client, path: str, body) -> bool:
        try:
            response = await client.post(f"{PATH}/{path}", json=body)
        except httpx.HTTPError:
            self.unsure.append((path, body))
            return False
        assert response.status_code == 200, response.text
        self._note(path, body, response.json())
        return True

    def _note(self, path: str, body, found) -> None:
        """Keep what was acknowledged."""
        if path == "predict/batch":
            for one in found["predictions"]:
                self._predicted(one)
        elif path == "predict":
            self._predicted(found)
        elif path == "forget":
            assert found["outcome"] in ("forgotten", "already")
            self.forgotten.add(body["id"])
        elif isinstance(body, list):
            for one, known in zip(body, found["labels"], strict=True):
                self._labelled(one, known)
        else:
            self._labelled(body, found)

    def _predicted(self, found: dict) -> None:
        assert "ticket" in found, found
        if found["id"] not in self.answers:
            self.open.append(found["id"])
        assert self.answers.setdefault(found["id"], found) == found

    def _labelled(self, asked: dict, found: dict) -> None:
        assert found["id"] == asked["id"]
        assert found["outcome"] in ("settled", "already")
        self.labels[asked["id"]] = asked["label"]


class Kills:
    """A service that is killed again and again, and whoever asks it."""

    def __init__(self, place: str, seed: int, nursery: Nursery | None) -> None:
        self.service = Running(place, *OFTEN, nursery=nursery)
        self.draw = random.Random(seed)
        self.load = Load(self.service.url, seed)
        self.counts = dict.fromkeys(("early", "amid", "loaded"), 0)
        """Kills before the service was ready, by its own death, and at any moment under load."""
        self._started = 0.1
        """Seconds that a start took."""
        self._checked = 0

    def begin(self) -> bytes:
        """A new model, as it is before the first event."""
        self.service.start()
        url = f"{self.service.url}{PATH}"
        httpx.put(url, content=SETTINGS, timeout=120).raise_for_status()
        first = httpx.get(f"{url}/snapshot", timeout=60).content
        self.service.kill()
        return first

    def once(self) -> None:
        """A life, from its start to its end."""
        how = self.draw.random()
        death = Death.drawn(self.draw) if EARLY < how < EARLY + AMID else None
        if how < EARLY:
            start(self.service, wait=False)
            time.sleep(self.draw.uniform(0.0, 1.2 * self._started))
            self.counts["early"] += 1
        else:
            began = time.monotonic()
            lives = start(self.service, death)
            self._started = time.monotonic() - began
            if lives and self._check(death):
                asyncio.run(self._loaded(death))
            self.counts["loaded" if death is None else "amid"] += 1
        self.service.kill()

    def _check(self, death: Death | None) -> bool:
        """Whatever was acknowledged since the last check is there, and some of what was before."""
        names = [*self.load.answers]
        some = names[self._checked :] + self.draw.sample(names, min(20, len(names)))
        try:
            check_names(self.service, self.load, some)
        except httpx.TransportError:  # its own death came meanwhile; the next life is asked
            assert death is not None
            return False
        self._checked = len(names)
        return True

    async def _loaded(self, death: Death | None) -> None:
        """Let it live under load for a while, or until its own death."""
        running = asyncio.create_task(self.load.run())
        await asyncio.wait([running], timeout=LAST if death else self.draw.uniform(0.02, 1.0))
        assert death is not None or not running.done()
        self.service.kill()
        await running

    def end(self) -> str:
        """Everything is there; the digest of the state."""
        start(self.service)
        check_names(self.service, self.load, [*self.load.answers])
        response = httpx.get(f"{self.service.url}{PATH}/snapshot", timeout=60)
        status, said = self.service.stop()
        assert status == 0, said
        return response.headers["x-groupwise-digest"]


def start(service: Running, death: Death | None = None, wait: bool = True) -> bool:
    """Start it; False where its own death came first. The session of the one before may last."""
    for _ in range(50):
        service.start(wait=False, death=death)
        try:
            if wait:
                service.wait()
            return True
        except AssertionError as error:
            assert service.process is not None
            if death is not None and service.process.returncode == -signal.SIGKILL:
                return False
            if "Another process writes" not in str(error):
                raise
            time.sleep(0.1)
    raise AssertionError("another process still writes")


def check_names(service: Running, load: Load, names: list[str]) -> None:
    """What was acknowledged is as it was: to ask for it again makes no event."""
    with httpx.Client(base_url=service.url, timeout=60, verify=False) as client:
        events = client.get(PATH).json()["events"]
        for first in range(0, len(names), MANY):
            some = names[first : first + MANY]
            rows = [{"id": name, "row": load.rows[name]} for name in some]
            found = client.post(f"{PATH}/predict/batch", json={"rows": rows}).json()
            assert found["predictions"] == [load.answers[name] for name in some]
            known = [name for name in some if name in load.labels]
            asked = [{"id": name, "label": load.labels[name]} for name in known]
            outcomes = client.post(f"{PATH}/labels", json=asked).json()["labels"]
            assert outcomes == [{"id": name, "outcome": "already"} for name in known]
            gone = [name for name in some if name in load.forgotten]
            outcomes = client.post(f"{PATH}/forget", json=[{"id": name} for name in gone]).json()
            assert outcomes["forgotten"] == [{"id": name, "outcome": "already"} for name in gone]
        for name in names[:10]:
            found = client.get(f"{PATH}/tickets/{name}").json()
            assert found["answer"] == load.answers[name]
            if name in load.labels:
                assert (found["outcome"], found["label"]) == ("settled", load.labels[name])
        assert client.get(PATH).json()["events"] == events


def keep_log(place: str) -> None:
    """Let a store copy what it drops of its log to a table beside it."""
    open_store(place).close()
    if not place.startswith(ADDRESSES):
        statements = (
            "CREATE TABLE dropped AS SELECT * FROM log WHERE 0",
            "CREATE TRIGGER keep BEFORE DELETE ON log BEGIN INSERT INTO dropped VALUES "
            "(OLD.model, OLD.first, OLD.last, OLD.content); END",
        )
        with closing(sqlite3.connect(place)) as connection:
            for one in statements:
                connection.execute(one)
            connection.commit()
        return
    import psycopg

    with psycopg.connect(place, autocommit=True) as connection:
        connection.execute("SET search_path = groupwise")
        connection.execute("CREATE TABLE dropped AS SELECT * FROM log WHERE false")
        connection.execute(
            "CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
            "INSERT INTO dropped VALUES (OLD.model, OLD.first, OLD.last, OLD.content); "
            "RETURN OLD; END $$"
        )
        connection.execute(
            "CREATE TRIGGER keep BEFORE DELETE ON log FOR EACH ROW EXECUTE FUNCTION keep()"
        )


def whole_log(place: str) -> list[tuple[int, Event]]:
    """All events from the first on; an error where one is missing, or there twice."""
    store: Any = open_store(place, writer=False)
    try:
        assert len(store.models()) == 1
        parts = [
            row
            for table in ("dropped", "log")
            for row in store._rows(f"SELECT first, last, content FROM {table}")
        ]
    finally:
        store.close()
    events = [*numbered(sorted(parts), 0)]
    assert sum(last - first + 1 for first, last, _ in parts) == len(events)
    return events


def check_log(place: str, load: Load, first: bytes, digest: str) -> None:
    """Nothing is there twice, and an uninterrupted run of the same events gives the same bits."""
    said: list[str] = []
    assert check(Settings(place), said.append), said
    events = whole_log(place)
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    predicted = [event for _, event in events if event.kind == PREDICT]
    settled = [event for _, event in events if event.kind == LABEL]
    forgotten = [event.number for _, event in events if event.kind == FORGET]
    assert [event.number for event in predicted] == list(range(len(predicted)))
    assert len({event.key for event in predicted}) == len(predicted)
    ended = [*forgotten, *(event.number for event in settled)]
    assert len(set(ended)) == len(ended)
    keys = {event.number: event.key for event in predicted}
    assert load.answers.keys() <= {*keys.values()}
    labels = {keys[event.number]: json.loads(event.body) for event in settled}
    assert load.labels.items() <= labels.items()
    assert load.forgotten <= {keys[number] for number in forgotten}
    uninterrupted = State.thawed(first, "the first snapshot")
    uninterrupted.replay(events)
    assert uninterrupted.freeze().to_bytes()[1] == digest


def killed(place: str, times: int, seed: int = 0, nursery: Nursery | None = None) -> Kills:
    """Kill a service so many times, and compare what is left with a run of all that happened."""
    keep_log(place)
    kills = Kills(place, seed, nursery)
    try:
        first = kills.begin()
        for turn in range(1, times + 1):
            kills.once()
            if turn % TOLD == 0:
                print(f"{turn} {kills.counts} {len(kills.load.answers):,} predictions", flush=True)
        digest = kills.end()
    finally:
        kills.service.end()
    check_log(place, kills.load, first, digest)
    return kills


def test_a_few_kills(place):
    kills = killed(place, 3, seed=3)
    assert len(kills.load.labels) > 10


@pytest.mark.slow
def test_many_kills(place):
    times = os.environ.get("KILLS")
    seed = int(os.environ.get("SEED", "1"))
    with nullcontext() if times is None else Nursery() as nursery:
        kills = killed(place, int(times or 30), seed, nursery)
    assert len(kills.load.labels) > 5 * int(times or 30)
    if int(times or 30) >= 30:
        assert all(kills.counts.values())
