"""kill −9 at any moment: what was acknowledged is there, once, and the state is that of no kill."""

import asyncio
import json
import os
import random

import httpx
import pytest

from groupwise.serve.run import open_store
from groupwise.serve.state import State
from groupwise.serve.store import LABEL, PREDICT
from tests.serve.running import PATH, SETTINGS, Running, label, row

CLIENTS = 8


class Load:
    """Clients that predict and label, keep what was acknowledged, and ask again for the rest."""

    def __init__(self, url: str, seed: int) -> None:
        self.url = url
        self.draw = random.Random(seed)
        self.answers: dict[str, dict] = {}
        self.labels: dict[str, float] = {}
        self.open: list[str] = []
        self.rows: dict[str, dict] = {}
        self.unsure: list[tuple[str, dict]] = []
        self.count = 0

    async def run(self) -> None:
        """Until the service is gone."""
        limits = httpx.Limits(max_connections=CLIENTS)
        async with httpx.AsyncClient(base_url=self.url, limits=limits, timeout=20) as client:
            again, self.unsure = self.unsure, []
            for path, body in again:
                await self._send(client, path, body)
            await asyncio.gather(*(self._one(client) for _ in range(CLIENTS)))

    async def _one(self, client) -> None:
        while True:
            self.count += 1
            if self.open and self.draw.random() < 0.45:
                name = self.open.pop(self.draw.randrange(len(self.open)))
                path, body = "labels", {"id": name, "label": label(self.rows[name])}
            else:
                name = f"row {self.count}"
                self.rows[name] = row(self.draw)
                path, body = "predict", {"id": name, "row": self.rows[name]}
            if not await self._send(client, path, body):
                return

    async def _send(self, client, path: str, body: dict) -> bool:
        try:
            response = await client.post(f"{PATH}/{path}", json=body)
        except httpx.HTTPError:
            self.unsure.append((path, body))
            return False
        assert response.status_code == 200, response.text
        found = response.json()
        if path == "predict":
            assert self.answers.setdefault(body["id"], found) == found
            self.open.append(body["id"])
        else:
            assert found["outcome"] in ("settled", "already")
            self.labels[body["id"]] = body["label"]
        return True


def kills(place: str, times: int, seed: int = 0, options: tuple[str, ...] = ()) -> Load:
    """Kill a service under load so many times, and compare what is left with a run of its log."""
    service = Running(place, "--keep-log", "--snapshot-seconds", "0.5", *options).start()
    draw = random.Random(seed)
    load = Load(service.url, seed)
    try:
        httpx.put(f"{service.url}{PATH}", content=SETTINGS, timeout=120).raise_for_status()
        first = httpx.get(f"{service.url}{PATH}/snapshot", timeout=60).content
        checked = 0
        for _ in range(times):
            asyncio.run(_load_and_kill(service, load, draw.uniform(0.02, 1.2)))
            service.start()
            names = [*load.answers]
            _check(service, load, names[checked:] + draw.sample(names, min(20, len(names))))
            checked = len(names)
        _check(service, load, [*load.answers])
        response = httpx.get(f"{service.url}{PATH}/snapshot", timeout=60)
        status, said = service.stop()
        assert status == 0, said
    finally:
        service.end()
    _check_log(place, load, first, response.headers["x-groupwise-digest"])
    return load


async def _load_and_kill(service: Running, load: Load, seconds: float) -> None:
    running = asyncio.create_task(load.run())
    await asyncio.sleep(seconds)
    assert not running.done()
    service.kill()
    await running


def _check(service: Running, load: Load, names: list[str]) -> None:
    """Whatever was acknowledged is there, as it was."""
    with httpx.Client(base_url=service.url, timeout=60) as client:
        for name in names:
            found = client.get(f"{PATH}/tickets/{name}").json()
            assert found["answer"] == load.answers[name]
            if name in load.labels:
                assert (found["outcome"], found["label"]) == ("settled", load.labels[name])


def _check_log(place: str, load: Load, first: bytes, digest: str) -> None:
    """Nothing is there twice, and an uninterrupted run of the same events gives the same bits."""
    store = open_store(place, writer=False)
    try:
        (record,) = store.models()
        events = list(store.log(record.model, 0))
    finally:
        store.close()
    assert [seq for seq, _ in events] == list(range(1, len(events) + 1))
    predicted = [event for _, event in events if event.kind == PREDICT]
    settled = [event.number for _, event in events if event.kind == LABEL]
    assert [event.number for event in predicted] == list(range(len(predicted)))
    assert len({event.key for event in predicted}) == len(predicted)
    assert len(set(settled)) == len(settled)
    keys = {event.number: event.key for event in predicted}
    assert load.answers.keys() <= {*keys.values()}
    labels = {keys[event.number]: json.loads(event.body) for _, event in events if event.kind == 2}
    assert load.labels.items() <= labels.items()
    uninterrupted = State.thawed(first, "the first snapshot")
    uninterrupted.replay(events)
    assert uninterrupted.freeze().to_bytes()[1] == digest


def test_a_few_kills(place):
    options = ("--lease", "2") if place.startswith("postgresql") else ()
    load = kills(place, 2, options=options)
    assert len(load.labels) > 10


@pytest.mark.slow
def test_many_kills(place):
    times = int(os.environ.get("KILLS", "30"))
    load = kills(place, times, seed=1, options=("--lease", "2"))
    assert len(load.labels) > 5 * times
