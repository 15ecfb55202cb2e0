"""ray://HOST:PORT: a driver beside the cluster; and a head node that is lost in mid-run."""

import fcntl
import json
import os
import random
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path

import polars as pl
import pytest

from tests.engines.conftest import STORE, UNHURRIED
from tests.engines.test_ray import people

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("ray"),
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes are not listed"),
]
ROOT = Path(__file__).parents[2]
LONG = 600.0
"""Seconds after which a process is taken to hang: a client may be connecting for four minutes."""
TURNS = 3
OWN = range(24_000, 32_000)
"""Ports below those that systems give to whoever asks for any; Ray's own begin at 23,000."""
HEAD = """
import os, signal, sys, threading
from ray.scripts.scripts import main

def end():
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGTERM)

threading.Thread(target=end, daemon=True).start()
main()
"""
"""``ray``, which ends when the tests do, however that comes."""


def free_ports(count):
    """Ports that are free, and that connections of other programs are not given meanwhile."""
    found = []
    for port in random.Random(os.urandom(8)).sample(OWN, len(OWN)):
        with suppress(OSError), socket.create_server(("", port)):
            found.append(port)
        if len(found) == count:
            break
    return found


def tree(process):
    """A process and all that it has started, by number."""
    parents = {}
    for place in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            about = place.read_text("utf-8", "replace").rpartition(")")[2].split()
            parents[int(place.parent.name)] = int(about[1])
    found = {process.pid}
    while more := {one for one, parent in parents.items() if parent in found} - found:
        found |= more
    return found


class Head:
    """A head node of two CPUs that only who has its token may use.

    It waits so many seconds for a client's server, twice as long as by default.
    """

    def __init__(self, folder, seconds=60):
        pytest.importorskip("ray")
        for place in range(TURNS):
            if self.starts(folder / str(place), seconds):
                return
        pytest.fail(f"Ray does not start: {self.said}")

    def starts(self, folder, seconds):
        """Start on ports that are free; somebody else may take one meanwhile."""
        self.port, client = free_ports(2)
        self.address = f"ray://127.0.0.1:{client}"
        self.own = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(16)}
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("RAY_")},
            **UNHURRIED,
            **self.own,
            "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": str(seconds),
            "GRPC_ENABLE_FORK_SUPPORT": "false",  # what it forks runs other programs
            "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]),
        }
        start = f"start --head --block --port={self.port} --ray-client-server-port={client}"
        more = f"--num-cpus=2 --object-store-memory={STORE} --include-dashboard=false"
        rest = f"--min-worker-port=0 --max-worker-port=0 --temp-dir={folder} --disable-usage-stats"
        self.logs, self.output = folder / "session_latest" / "logs", folder.with_suffix(".txt")
        with self.output.open("wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-c", HEAD, *start.split(), *more.split(), *rest.split()],
                env=self.environment,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        until = time.monotonic() + LONG
        while time.monotonic() < until and self.process.poll() is None:
            self.said = self.output.read_text("utf-8", "replace")
            # It listens to clients long before there is a node that runs their tasks.
            if "Ray runtime started" in self.said:
                with suppress(OSError), socket.create_connection(("127.0.0.1", client), 1.0):
                    return True
            time.sleep(0.2)
        self.kill()
        return False

    def why(self, process):
        """What a driver said that has ended too early, and what the head says of it."""
        said = [*process.communicate(timeout=LONG), f"The head: {self.process.poll()}"]
        for place in (self.output, *sorted(self.logs.glob("ray_client_server*"))):
            said += [f"{place.name}:", *place.read_text("utf-8", "replace").splitlines()[-40:]]
        return "\n".join(said)

    @contextmanager
    def start(self, *arguments, **more):
        """A driver, which is no part of the cluster; whatever is found of it, it ends."""
        with subprocess.Popen(
            [sys.executable, "-m", "tests.engines.driver", *map(str, arguments)],
            env={**self.environment, **more},
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            try:
                yield process
            finally:
                process.kill()

    def run(self, *arguments, **more):
        """The exit code of a driver, and what it said."""
        with self.start(*arguments, **more) as process:
            _, said = process.communicate(timeout=LONG)
        lines = [one for one in said.splitlines() if "compiling its kernels" not in one]
        return process.returncode, lines

    def servers(self):
        """The processes that it has started for clients."""
        found = []
        for one in tree(self.process):
            with suppress(OSError):
                words = Path(f"/proc/{one}/cmdline").read_bytes().split(b"\0")
                if b"ray.util.client.server" in words and b"--mode=specific-server" in words:
                    found.append(one)
        return found

    def kill(self):
        """The head and all that it has started, without a word to anybody."""
        for one in tree(self.process):
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait(LONG)

    def stop(self):
        """The same, once it was asked to end by itself."""
        every = tree(self.process)
        self.process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        for one in every & {int(place.name) for place in Path("/proc").glob("[0-9]*")}:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        self.process.wait(LONG)


@pytest.fixture
def folder():
    """A short name: sockets have one."""
    with tempfile.TemporaryDirectory(prefix="gw-", ignore_cleanup_errors=True) as name:
        yield Path(name)


@pytest.fixture
def head(request, folder):
    """One at a time on a machine: for their clients' servers all heads take the same ports."""
    seconds = getattr(request, "param", 60)
    with (Path(tempfile.gettempdir()) / f"groupwise-one-head-{os.getuid()}").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        head = Head(folder, seconds)
        yield head
        head.stop()


@pytest.fixture
def files(tmp_path):
    frame = people(4_000)
    frame[:1_700].write_parquet(tmp_path / "a.parquet", row_group_size=700)
    frame[1_700:].write_parquet(tmp_path / "b.parquet", row_group_size=900)
    return [tmp_path / "a.parquet", tmp_path / "b.parquet"]


def contents(out):
    """Predictions, regret rows and snapshot of a run."""
    parts = {one.name: one.read_bytes() for one in (out / "predictions").iterdir()}
    assert parts
    rows = json.loads((out / "regret.json").read_text("utf-8"))["rows"]
    return parts, rows, (out / "model.gw").read_bytes()


def test_a_client(head, files, tmp_path):
    """Replays and a run by command: the same bytes as on this machine; what is wrong, in a line."""
    found = []
    for engine, name in (("local", "local"), (head.address, "client")):
        place = tmp_path / f"replay-{name}"
        place.mkdir()
        assert head.run("replay", engine, place) == (0, [])
        command = "run", *files, "--target", "pay", "--segment", 500
        out = tmp_path / name
        code, said = head.run(*command, "--engine", engine, "--out", out)
        assert code == 0, said
        assert said == []
        found.append(({one.name: one.read_bytes() for one in place.iterdir()}, contents(out)))
    assert found[0] == found[1]

    before = sorted(tmp_path.iterdir())
    frame = people(4_000).to_dicts()
    frame[2_999]["pay"] = None
    pl.DataFrame(frame[1_700:]).write_parquet(files[1])
    code, said = head.run(*command, "--engine", head.address, "--out", tmp_path / "bad")
    assert code == 2
    assert len(said) == 1
    assert "Row 1300 of" in said[0]
    assert "the label is missing" in said[0]
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("head", [30], indirect=True)
def test_a_server_that_hangs(head, tmp_path):
    """The first that the head starts for a client: another is asked for, without a word.

    As soon as the head gives it up, and not when all is closed that was opened for it.
    """
    stopped: list[int] = []
    with head.start("replay", head.address, tmp_path) as process:
        until = time.monotonic() + LONG
        while not stopped:
            assert process.poll() is None, head.why(process)
            assert time.monotonic() < until
            stopped = head.servers()
            time.sleep(0.05)
        os.kill(stopped[0], signal.SIGSTOP)
        began = time.monotonic()
        while not {*head.servers()} - {*stopped}:
            assert process.poll() is None, head.why(process)
            assert time.monotonic() - began < 100.0  # of which 30 are the head's
            time.sleep(0.05)
        _, said = process.communicate(timeout=LONG)
    assert process.returncode == 0, said
    assert [one for one in said.splitlines() if "compiling its kernels" not in one] == []
    assert (tmp_path / "model.gw").is_file()


def test_a_token_that_is_missing(head, files, tmp_path):
    command = "run", *files, "--target", "pay", "--segment", 500, "--engine", head.address
    other = {"RAY_AUTH_TOKEN": "0" * 32}
    start = time.monotonic()
    code, said = head.run(*command, "--out", tmp_path / "out", **other)
    assert time.monotonic() - start < 90.0
    assert code == 2
    assert len(said) == 1, said
    assert f"Cannot connect to Ray at {head.address}" in said[0]
    assert "RAY_AUTH_TOKEN" in said[0]
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("engine", ["client", "ray"])
def test_a_head_that_is_lost(head, files, tmp_path, engine):
    """In mid-run, for good: one line, and nothing of the run."""
    before = sorted(tmp_path.iterdir())
    command = "run", *files, "--target", "pay", "--segment", 20, "--out", tmp_path / "out"
    address = head.address if engine == "client" else "ray"
    more = {} if engine == "client" else {"RAY_ADDRESS": f"127.0.0.1:{head.port}"}
    with head.start(*command, "--engine", address, **more) as process:
        until = time.monotonic() + LONG
        while len([*tmp_path.glob(".groupwise-*/predictions/part-*")]) < 3:
            assert process.poll() is None, head.why(process)
            assert time.monotonic() < until
            time.sleep(0.05)
        head.kill()
        lost = time.monotonic()
        _, said = process.communicate(timeout=LONG)
    assert time.monotonic() - lost < 60.0
    assert process.returncode == 2
    assert "Traceback" not in said
    (line,) = [one for one in said.splitlines() if one.startswith("groupwise: The conn")]
    assert "connection to the Ray cluster was lost" in line
    assert said.splitlines()[-1] == line
    assert sorted(tmp_path.iterdir()) == before
