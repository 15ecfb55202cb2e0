"""The service's speed, as ratios of one run: `python -m benchmarks.serving` (part of `make bench`).

One server process, 64 connections on loopback, one process that asks. Where it writes must be a
disk: on a tmpfs nothing would be measured.
"""

import argparse
import asyncio
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

CONNECTIONS = 64
SECONDS = 1.0
TURNS = 8
GROUPS = 1_000
PATH = "/v1/models/costs"
SETTINGS = """
target = "costs"
range = [0.0, 60.0]
indicators = false
features = { age = [18.0, 64.0], bmi = [15.0, 50.0] }
groups = [{ by = "sex" }, { by = "smoker" }, { by = "ward" }]
"""


def body(draw: random.Random, id: str, wards: int = 5) -> dict[str, Any]:
    row = {
        "sex": draw.choice(["female", "male"]),
        "age": draw.randint(18, 64),
        "bmi": draw.uniform(15.0, 50.0),
        "smoker": draw.choice(["yes", "no"]),
        "ward": f"w{draw.randrange(wards)}",
    }
    return {"id": id, "row": row}


# Servers, each in a process of its own.


def serve(kind: str, port: int, folder: Path) -> None:
    """Run one of the services that are compared."""
    if kind == "river":
        import uvicorn

        uvicorn.run(_river(), port=port, log_level="error", access_log=False)
        return
    from groupwise.serve.app import App
    from groupwise.serve.looks import Looks
    from groupwise.serve.run import Server, tune
    from groupwise.serve.service import Service
    from groupwise.serve.sqlite import SqliteStore

    class Forgetful(SqliteStore):
        """Commits nothing: what durability costs is what it saves."""

        def commit(self, batches: Any) -> None:
            pass

    store = (SqliteStore if kind == "durable" else Forgetful)(folder / f"{kind}.db")
    tune()
    app = App(Service(store), Looks(), lambda error: os._exit(1))
    Server(app, "127.0.0.1", port).run()


def _river() -> Any:
    """FastAPI around one model of river, as people write it."""
    from fastapi import FastAPI
    from pydantic import BaseModel
    from river import compose, linear_model, preprocessing

    class Asked(BaseModel):
        id: str | None = None
        row: dict[str, float | int | str]

    numbers = compose.SelectType(float, int) | preprocessing.StandardScaler()
    texts = compose.SelectType(str) | preprocessing.OneHotEncoder()
    model = (numbers + texts) | linear_model.BayesianLinearRegression()
    draw = random.Random(0)
    for number in range(500):
        model.learn_one(body(draw, str(number))["row"], 10.0)
    app = FastAPI()

    @app.get("/ready")
    async def ready() -> dict[str, bool]:
        return {"ready": True}

    @app.post(f"{PATH}/predict")
    async def predict(asked: Asked) -> dict[str, Any]:
        return {"id": asked.id, "prediction": model.predict_one(asked.row)}

    return app


class Running:
    """A server, from its start to its end."""

    def __init__(self, kind: str, folder: Path, port: int) -> None:
        self.port = port
        command = [sys.executable, "-m", "benchmarks.serving", "--serve", kind]
        self.process = subprocess.Popen([*command, "--port", str(port), "--folder", str(folder)])

    async def __aenter__(self) -> "Running":
        for _ in range(3_000):
            try:
                status, _ = await ask(self.port, request("GET", "/ready"))
                if status == 200:
                    return self
            except OSError:
                pass
            await asyncio.sleep(0.05)
        raise SystemExit("a server never became ready")

    async def __aexit__(self, *error: object) -> None:
        self.process.kill()
        self.process.wait()


# Whoever asks.


def request(method: str, path: str, content: bytes = b"") -> bytes:
    head = f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(content) + content


def posted(path: str, value: Any) -> bytes:
    return request("POST", PATH + path, json.dumps(value).encode())


async def answer(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head[9:12])
    at = head.lower().index(b"content-length:") + 15
    return status, await reader.readexactly(int(head[at : head.index(b"\r", at)]))


async def ask(port: int, content: bytes) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 26)
    writer.write(content)
    try:
        return await answer(reader)
    finally:
        writer.close()


async def load(
    port: int, requests: list[bytes], connections: int = CONNECTIONS, seconds: float = SECONDS
) -> list[float]:
    """Send requests over connections for a while; the seconds that each took."""
    ends = time.perf_counter() + seconds
    times: list[float] = []
    waiting = iter(requests)

    async def one() -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for content in waiting:
            began = time.perf_counter()
            if began > ends:
                break
            writer.write(content)
            status, text = await answer(reader)
            if status != 200:
                raise SystemExit(f"{status}: {text!r}")
            times.append(time.perf_counter() - began)
        writer.close()

    await asyncio.gather(*(one() for _ in range(connections)))
    return times


def alone(port: int, requests: list[bytes], folder: Path) -> tuple[list[float], list[float]]:
    """Requests over one plain socket, and syncs of the disk, in turns; the seconds that each took.

    In turns, since a disk that is asked without a pause answers sooner than one that has rested, as
    it has for a client that is alone.
    """
    times, disk = [], Disk(folder, len(requests))
    with disk, socket.create_connection(("127.0.0.1", port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.settimeout(60.0)
        for content in requests:
            began = time.perf_counter()
            connection.sendall(content)
            text = b""
            while not text.endswith(b"}\n"):
                more = connection.recv(1 << 16)
                if not more:
                    raise SystemExit(f"the connection was closed: {text!r}")
                text += more
            times.append(time.perf_counter() - began)
            if text[9:12] != b"200":
                raise SystemExit(f"{text!r}")
            disk.sync()
    return times, disk.times


async def settled(port: int, name: str, count: int, size: int = 1) -> None:
    """Send the labels of the first requests of a turn: a stream that goes on has few open."""
    ids = [
        f"{name} {i}" if size == 1 else f"{name} {i} {j}" for i in range(count) for j in range(size)
    ]
    asked = [
        posted("/labels", [{"id": one, "label": 20.0} for one in ids[start : start + 1_000]])
        for start in range(0, len(ids), 1_000)
    ]
    await load(port, asked, 4, 600.0)


def predictions(count: int, name: str, wards: int = 5) -> list[bytes]:
    draw = random.Random(name)
    return [posted("/predict", body(draw, f"{name} {i}", wards)) for i in range(count)]


def batches(count: int, size: int, name: str) -> list[bytes]:
    draw = random.Random(name)
    return [
        posted("/predict/batch", {"rows": [body(draw, f"{name} {i} {j}") for j in range(size)]})
        for i in range(count)
    ]


async def prepared(port: int, labels: int = 500, wards: int = 5) -> None:
    """A model that has learned something."""
    await ask(port, request("PUT", PATH, SETTINGS.encode()))
    draw = random.Random(1)
    rows = [body(draw, f"early {number}", wards) for number in range(labels)]
    for start in range(0, labels, 500):
        some = rows[start : start + 500]
        for content in (
            posted("/predict/batch", {"rows": some}),
            posted("/labels", [{"id": one["id"], "label": one["row"]["age"] / 2} for one in some]),
        ):
            status, text = await ask(port, content)
            if status != 200:
                raise SystemExit(f"{status}: {text!r}")


class Disk:
    """A file of so many pages, each of which is written once and synced."""

    def __init__(self, folder: Path, pages: int = 1) -> None:
        kind = subprocess.run(
            ["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True, check=False
        ).stdout.strip()
        if kind in ("tmpfs", "ramfs"):
            raise SystemExit(f"{folder} is a {kind}, which nothing is synced to: --folder a disk.")
        self.times: list[float] = []
        self.file = (folder / "page").open("wb")
        self.file.write(
            bytes(4096 * pages)
        )  # there is room already, as in a log that is used again
        os.fsync(self.file.fileno())
        self.file.seek(0)

    def sync(self) -> None:
        """Write a page; how long fdatasync takes."""
        self.file.write(os.urandom(4096))
        self.file.flush()
        began = time.perf_counter()
        os.fdatasync(self.file.fileno())
        self.times.append(time.perf_counter() - began)

    def __enter__(self) -> "Disk":
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()


async def compare(folder: Path, first: int) -> list[tuple[str, float, float, bool, str]]:
    """(what, measured, target, at least?, note) for every ratio."""
    async with (
        Running("durable", folder, first) as durable,
        Running("forgetful", folder, first + 1) as forgetful,
        Running("river", folder, first + 2) as river,
    ):
        for server in (durable, forgetful):
            await prepared(server.port)
        names = {"durable": durable, "forgetful": forgetful, "river": river}
        rates: dict[str, list[float]] = {name: [] for name in (*names, "batches")}
        disk: list[float] = []
        lone: list[float] = []
        for turn in range(TURNS):
            for name, server in names.items():
                asked = predictions(60_000, f"{name} {turn}")
                done = await load(server.port, asked)
                rates[name].append(len(done) / SECONDS)
                if name != "river":
                    await settled(server.port, f"{name} {turn}", len(done))
            done = await load(durable.port, batches(2_000, 100, f"batch {turn}"))
            rates["batches"].append(100 * len(done) / SECONDS)
            await settled(durable.port, f"batch {turn}", len(done), 100)
            times = alone(durable.port, predictions(500, f"alone {turn}"), folder)
            for found, some in zip((lone, disk), times, strict=True):
                found += some[20:]
            await settled(durable.port, f"alone {turn}", 500)
        rate = {name: float(np.median(found[1:])) for name, found in rates.items()}
    (folder / "large").mkdir()
    async with Running("durable", folder / "large", first + 3) as large:
        await prepared(large.port, 20 * GROUPS, GROUPS)
        calm, busy = await stalled(large.port)

    def over(one: str, other: str) -> float:
        """How much faster one was: the median over the turns, in each of which both had theirs."""
        return float(np.median([a / b for a, b in zip(rates[one], rates[other], strict=True)][1:]))

    notes = (
        f"{rate['durable']:,.0f} durable, {rate['forgetful']:,.0f} not, {rate['river']:,.0f} river"
    )
    return [
        (
            "durable predict / without durability",
            over("durable", "forgetful"),
            0.8,
            True,
            notes,
        ),
        ("durable predict / FastAPI + river", over("durable", "river"), 1.5, True, notes),
        (
            "batches of 100 / single requests",
            over("batches", "durable"),
            4.0,
            True,
            f"{rate['batches']:,.0f} events/s",
        ),
        (
            "p50 of a lone client / fdatasync",
            float(np.median(lone) / np.median(disk)),
            5.0,
            False,
            f"{1e3 * np.median(lone):.2f} ms, disk {1e3 * np.median(disk):.2f} ms",
        ),
        (
            f"p99 with regret of {GROUPS:,} groups / without",
            busy / calm,
            2.0,
            False,
            f"{1e3 * busy:.1f} ms, {1e3 * calm:.1f} ms",
        ),
    ]


async def stalled(port: int) -> tuple[float, float]:
    """p99 of predictions without and with tables of regret being computed."""
    await ask(port, request("GET", f"{PATH}/regret"))

    async def tables(ending: asyncio.Event) -> int:
        count = 0
        while not ending.is_set():
            status, text = await ask(port, request("GET", f"{PATH}/regret"))
            if status != 200:
                raise SystemExit(f"{status}: {text!r}")
            count += 1
        return count

    found: dict[str, list[float]] = {"calm": [], "busy": []}
    for turn in range(TURNS):
        for name in found:
            ending = asyncio.Event()
            beside = asyncio.create_task(tables(ending)) if name == "busy" else None
            asked = predictions(60_000, f"{name} {turn}", GROUPS)
            times = await load(port, asked)
            ending.set()
            if beside is not None:
                await beside
            found[name].append(float(np.quantile(times, 0.99)))
            await settled(port, f"{name} {turn}", len(times))
    return float(np.median(found["calm"])), float(np.median(found["busy"]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--serve", help="run a server: durable, forgetful or river")
    parser.add_argument("--port", type=int, default=18_200)
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.port, given.folder)
        return
    with tempfile.TemporaryDirectory(dir=given.folder, prefix=".serving-") as folder:
        Disk(Path(folder)).file.close()
        lines = asyncio.run(compare(Path(folder), given.port))
    missed = 0
    for what, measured, target, at_least, note in lines:
        met = measured >= target if at_least else measured <= target
        missed += not met
        sign = "≥" if at_least else "≤"
        print(f"{what:45} {measured:6.2f} {sign} {target:g}  {'' if met else 'MISSED'}  {note}")
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
