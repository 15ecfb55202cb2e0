"""A service in a process of its own, to be killed; and one inside the test, to be looked into."""

import asyncio
import http.client
import inspect
import io
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx
import pytest

from groupwise.errors import GroupwiseError
from groupwise.serve.app import App
from groupwise.serve.engine import Ageing
from groupwise.serve.errors import InvalidError
from groupwise.serve.looks import Looks
from groupwise.serve.reader import Reader, answered, packed, received
from groupwise.serve.run import open_store
from groupwise.serve.service import Service
from tests.serve.mortal import Child, Death, Nursery

PATH = "/v1/models/costs"
POSTGRES = "GROUPWISE_POSTGRES"
"""The address of a server for the tests, in the environment."""
STORES = ("sqlite", "postgres")
SETTINGS = """
target = "costs"
range = [0.0, 60.0]
features = { age = [18.0, 64.0], bmi = [15.0, 50.0] }
groups = [{ by = "sex" }, { by = "smoker" }, { cut = "age", edges = [35.0, 50.0] }]
"""


def row(draw) -> dict:
    return {
        "sex": draw.choice(["female", "male"]),
        "age": draw.randint(18, 64),
        "bmi": draw.uniform(15.0, 50.0),
        "smoker": draw.choice(["yes", "no", "no"]),
    }


def label(one: dict) -> float:
    return 0.9 * one["bmi"] if one["smoker"] == "yes" else 0.25 * one["age"]


def place_of(kind: str, folder: Path) -> str:
    """A new store of a kind; skips where there is no server for it."""
    if kind == "sqlite":
        return str(folder / "groupwise.db")
    address = os.environ.get(POSTGRES)
    if not address:
        pytest.skip(f"no PostgreSQL server: {POSTGRES} names none (.ci/postgres FOLDER starts one)")
    import psycopg

    name = f"test_{uuid.uuid4().hex}"
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
    return address.replace("/postgres", f"/{name}")


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Running:
    """``groupwise serve`` in a process of its own."""

    def __init__(
        self,
        place: str,
        *options: str,
        before: list[str] | None = None,
        nursery: Nursery | None = None,
    ) -> None:
        self.place = place
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.options = options
        self.before = before or []
        self.nursery = nursery
        """What forks it; None for a process that begins anew."""
        self.process: subprocess.Popen | Child | None = None

    def start(self, wait: bool = True, death: Death | None = None) -> "Running":
        arguments = ["serve", "--store", self.place, "--port", str(self.port), "--sample", "0"]
        arguments += self.options
        if self.nursery is not None:
            self.process = self.nursery.start(arguments, death)
        else:
            program = ["groupwise"] if death is None else ["tests.serve.mortal", *map(str, death)]
            self.process = subprocess.Popen(
                [*self.before, sys.executable, "-m", *program, *arguments],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        if wait:
            self.wait()
        return self

    def wait(self, seconds: float = 120.0) -> None:
        """Until it is ready."""
        assert self.process is not None
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            if self.process.poll() is not None:
                raise AssertionError(self.process.communicate()[0])
            if self.is_ready():
                return
            time.sleep(0.01)
        raise AssertionError("it is never ready")

    def is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/ready")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        assert self.process is not None
        with suppress(ProcessLookupError):  # it may have died by itself
            os.killpg(self.process.pid, signal.SIGKILL)  # whatever watches it too
        self.process.communicate(timeout=60)

    def stop(self) -> tuple[int, str]:
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        said, _ = self.process.communicate(timeout=60)
        status = self.process.returncode
        assert status is not None
        return status, said

    def __enter__(self) -> "Running":
        return self.start()

    def __exit__(self, *error: object) -> None:
        self.end()

    def end(self) -> None:
        """However it is."""
        if self.process is not None and self.process.poll() is None:
            self.kill()


@asynccontextmanager
async def inside(place: str, ageing: Ageing | None = None, store=None, looks=None):
    """A service inside this process: the app, and a client of it."""
    problems: list[Exception] = []
    service = Service(store or open_store(place), ageing)
    app = App(service, looks or Looks(Here()), problems.append)
    async with app.starlette.router.lifespan_context(app.starlette):
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            while not service.ready and not problems:
                await asyncio.sleep(0.005)
            if not problems:
                yield app, client
    if problems:  # it has let go of the store
        raise problems[0]


class Here(Reader):
    """Tables computed in this process."""

    async def ask(self, contents, question):
        sent = io.BytesIO(b"".join(packed(contents, question)))
        try:
            return await asyncio.to_thread(answered, *received(sent))
        except GroupwiseError as error:
            raise InvalidError(str(error)) from error


def asynchronous(test):
    """Run a test in an event loop of its own."""

    def run(*arguments, **options):
        return asyncio.run(asyncio.wait_for(test(*arguments, **options), 400))

    run.__name__, run.__doc__ = test.__name__, test.__doc__
    vars(run)["__signature__"] = inspect.signature(test)
    return run


async def made(client, settings=SETTINGS):
    response = await client.put(PATH, content=settings)
    assert response.status_code == 201, response.text


def is_problem(response, status, kind):
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/problem+json"
    found = response.json()
    assert found["type"] == f"urn:groupwise:problem:{kind}"
    assert found["status"] == status
    assert found["detail"]
    return found["detail"]
