"""``groupwise serve`` that dies at one step of what it does; and a process that forks such quickly.

``python -m tests.serve.mortal STEP CALL STATEMENT serve …`` is a service with a death before it.
``python -m tests.serve.mortal`` alone has imported and compiled everything, and forks a service for
every line that it is told: a restart takes as long as the service itself needs, not Python.
"""

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

STEPS = {
    "commit": 60,
    "put_part": 3,
    "put_answers": 6,
    "put_snapshot": 2,
    "forget_answers": 2,
    "take": 2,
}
"""What a store is asked to do, and at most at which call of it a service dies."""
STATEMENTS = 6
ALONE = {"OPENBLAS_NUM_THREADS": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
"""No threads of numpy's and pyarrow's, which would not be there after a fork."""


class Death(NamedTuple):
    """When a service dies: before a statement of a call of a step, or after the last."""

    step: str
    call: int
    statement: int

    @classmethod
    def drawn(cls, draw: random.Random) -> "Death":
        """One of all that there are."""
        step = draw.choice([*STEPS])
        return cls(step, draw.randint(1, STEPS[step]), draw.randrange(STATEMENTS))

    def await_here(self) -> None:
        """Let this process die so."""
        from groupwise.serve.postgres import PostgresStore
        from groupwise.serve.sqlite import SqliteStore

        for kind in (SqliteStore, PostgresStore):
            self._await_in(kind)

    def _await_in(self, kind: Any) -> None:
        usual, execute = getattr(kind, self.step), kind._execute
        calls = statements = 0

        def step(store: Any, *about: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls == self.call and not self.statement:
                die()
            found = usual(store, *about, **options)
            if calls == self.call:
                die()
            return found

        def statement(store: Any, *about: Any) -> Any:
            nonlocal statements
            if calls == self.call:
                statements += 1
                if statements == self.statement:
                    die()
            return execute(store, *about)

        setattr(kind, self.step, step)
        kind._execute = statement


def die() -> None:
    """At once, as whoever is killed."""
    os.kill(os.getpid(), signal.SIGKILL)


class Child:
    """A service that the nursery forked; as ``subprocess.Popen`` has it."""

    def __init__(self, nursery: "Nursery", pid: int, said: Path) -> None:
        self._nursery, self._said = nursery, said
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """How it ended; None while it lives."""
        if self.returncode is None:
            self.returncode = self._nursery.tell({"poll": self.pid})["status"]
        return self.returncode

    def send_signal(self, sig: int) -> None:
        """Send it a signal."""
        os.kill(self.pid, sig)

    def communicate(self, timeout: float = 60.0) -> tuple[str, None]:
        """What it said, when it has ended."""
        ends = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > ends:
                raise subprocess.TimeoutExpired("groupwise serve", timeout)
            time.sleep(0.005)
        return self._said.read_text(), None


class Nursery:
    """A process without threads that has loaded all that a service needs, and forks it."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.serve.mortal"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **ALONE},
        )
        self._children = 0

    def tell(self, what: dict[str, Any]) -> dict[str, Any]:
        """Ask it to do something; what came of it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(what) + "\n")
        self._process.stdin.flush()
        found: dict[str, Any] = json.loads(self._process.stdout.readline())
        return found

    def start(self, arguments: list[str], death: Death | None) -> Child:
        """Fork a service."""
        self._children += 1
        said = Path(self._folder.name) / str(self._children)
        found = self.tell({"start": arguments, "death": death, "said": str(said)})
        return Child(self, found["pid"], said)

    def __enter__(self) -> "Nursery":
        return self

    def __exit__(self, *error: object) -> None:
        self._process.kill()
        self._process.communicate()
        self._folder.cleanup()


def _asked(source: IO[str], sink: IO[str]) -> dict[str, Any] | None:
    """Fork whenever that is asked: what a child is to do, and None in the parent at the end."""
    for line in source:
        asked = json.loads(line)
        if "poll" in asked:
            pid, status = os.waitpid(asked["poll"], os.WNOHANG)
            answer: dict[str, Any] = {"status": os.waitstatus_to_exitcode(status) if pid else None}
        else:
            pid = os.fork()
            if pid == 0:
                return dict(asked)
            os.setpgid(pid, pid)  # before anybody knows of it, who might kill its group
            answer = {"pid": pid}
        sink.write(json.dumps(answer) + "\n")
        sink.flush()
    return None


def _loaded() -> None:
    """Import and compile what a service does, without a thread."""
    import gc

    for name in ("cli", "serve.postgres", "serve.run"):
        import_module(f"groupwise.{name}")
    from groupwise.serve.declared import declared_model
    from groupwise.serve.service import numerics
    from groupwise.serve.state import State
    from groupwise.serve.warm import warm
    from tests.serve.running import SETTINGS

    numerics()
    model = declared_model(SETTINGS, "of the tests")
    warm(model)
    content, _ = State(model).freeze().to_bytes()
    State.thawed(content, "a snapshot")
    assert len(os.listdir("/proc/self/task")) == 1, "a child has only the thread that forks it"
    gc.freeze()


def main() -> None:
    """One service with its death, or whatever is asked for."""
    if sys.argv[1:]:
        step, call, statement = sys.argv[1:4]
        death, arguments = Death(step, int(call), int(statement)), sys.argv[4:]
        death.await_here()
    else:
        _loaded()
        asked = _asked(sys.stdin, sys.stdout)
        if asked is None:
            return
        os.setpgid(0, 0)
        nothing = os.open(os.devnull, os.O_RDONLY)
        said = os.open(asked["said"], os.O_WRONLY | os.O_CREAT)
        for file, place in ((nothing, 0), (said, 1), (said, 2)):
            os.dup2(file, place)
        arguments = asked["start"]
        if asked["death"] is not None:
            Death(*asked["death"]).await_here()
    from groupwise.__main__ import main as run

    sys.argv = ["groupwise", *arguments]
    run()


if __name__ == "__main__":
    main()
