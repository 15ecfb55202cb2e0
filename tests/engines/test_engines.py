"""Engines by name, and tasks in threads."""

import socket
import subprocess
import sys
from threading import Event, Timer
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

import groupwise as gw
from groupwise.engines import LocalEngine, checked_engine, each, opened
from groupwise.engines.fingerprint import fingerprint
from groupwise.engines.ray import RayEngine, disagreement, size_of
from groupwise.errors import ConfigurationError, EngineError, LabelError
from tests.engines import tasks


def test_engines_by_name():
    for engine in ("local", "ray", "ray://head:10001"):
        assert checked_engine(engine) == engine
    for other in ("spark", "", None, 3):
        with pytest.raises(ConfigurationError, match="no engine"):
            checked_engine(other)  # type: ignore[arg-type]


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_map_keeps_the_order(jobs):
    with opened("local", jobs) as engine:
        assert list(each(engine, tasks.double, [(i,) for i in range(20)])) == [*range(0, 40, 2)]
        one = engine.submit(tasks.add, engine.put(1), engine.submit(tasks.double, 4))
        assert engine.get(engine.submit(tasks.add, one, one)) == 18
        with pytest.raises(LabelError, match="row 7: 5 is no label"):
            engine.get(engine.submit(tasks.double, engine.submit(tasks.refuse, 5)))


def test_an_interrupt_ends_a_run_at_once():
    """Also in a task whose result is asked for at the end alone; further ones are not begun."""
    rng, seen = np.random.default_rng(0), []

    class Interrupted(LocalEngine):
        def submit(self, function, *arguments):
            seen.append(function.__name__)
            now = function.__name__ == "record" and seen.count("record") == 3
            return super().submit(tasks.interrupt if now else function, *arguments)

    X, y = rng.random((100, 3)), rng.random(100)
    with pytest.raises(KeyboardInterrupt), Interrupted(1) as engine:
        gw.replay(X, y, np.ones((100, 1)), segment=10, engine=engine)
    assert (seen.count("add_up"), seen[-1]) == (3, "record")


def test_an_interrupt_says_nothing_of_tasks_that_wait(caplog):
    """However many wait for one another."""
    with LocalEngine(2) as engine:
        begin = Event()
        one = engine.submit(begin.wait)
        for _ in range(2_000):
            one = engine.submit(tasks.add, one, 1)
        Timer(0.2, begin.set).start()  # when the engine is shut down already, as by an interrupt
    assert caplog.messages == []


def test_threads_that_cannot_be_had_are_an_error(monkeypatch):
    """And not a wait for a result that never comes."""

    def refused(*_):
        raise RuntimeError("can't start new thread")

    with LocalEngine(2) as engine:
        monkeypatch.setattr("threading.Thread.start", refused)
        with pytest.raises(RuntimeError, match="start new thread"):
            engine.submit(tasks.double, 1)
        monkeypatch.undo()


def test_linear_algebra_has_one_thread():
    """In tasks; and whoever comes out last gives back what there was."""
    with threadpool_limits(2, user_api="blas"):
        before = tasks.threads()
        with opened("local", 2) as engine:
            other = opened("local", 2)
            other.__enter__()
            assert {*engine.get(engine.submit(tasks.threads))} == {1}
        assert {*tasks.threads()} == {1}
        other.__exit__(None, None, None)
        assert tasks.threads() == before


def test_an_engine_that_is_given_stays_open():
    with opened("local", 2) as engine:
        with opened(engine) as same:
            assert same is engine
        assert engine.get(engine.submit(tasks.double, 2)) == 4


def test_an_engine_needs_segments():
    model = gw.Groupwise([gw.by("a")])
    frame = {"a": ["x", "y"], "b": [0.0, 1.0], "y": [0.5, 0.5]}
    pl = pytest.importorskip("polars")
    with pytest.raises(ConfigurationError, match="segment="):
        model.replay(pl.DataFrame(frame), "y", engine="ray")
    with pytest.raises(ConfigurationError, match="'spark'"):
        model.replay(pl.DataFrame(frame), "y", segment=1, engine="spark")
    assert model.issued == 0


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("ray://127.0.0.1:9", "No Ray cluster answers at ray://127.0.0.1:9"),
        ("ray://nobody.invalid:10001", "No Ray cluster answers"),
        ("ray://head", "no address of a Ray cluster"),
        ("ray://", "no address of a Ray cluster"),
    ],
)
def test_nobody_answers(address, said):
    pytest.importorskip("ray")
    with pytest.raises(EngineError, match=said) as raised, opened(address):
        pass
    assert "\n" not in str(raised.value)


BROKEN = """Request is not sent. Last exception: <_Rendezvous of RPC that terminated with:
\tstatus = StatusCode.NOT_FOUND
\tdetails = "the session is cleaned up."
>"""


@pytest.mark.parametrize(
    ("error", "kind", "said"),
    [
        (ConnectionError("gone\nand more"), EngineError, "connection .* was lost: gone"),
        (
            ConnectionError(BROKEN),
            EngineError,
            r"was lost: the session is cleaned up\. Is its head",
        ),
        (
            ConnectionError(BROKEN.replace("the session is cleaned up.", "")),
            EngineError,
            "not sent",
        ),
        (OSError(28, "No space left on device"), OSError, "No space left"),
    ],
)
def test_errors_in_one_line(error, kind, said):
    """A cluster that is lost; and a task that cannot write, which is no matter of the cluster."""
    ray = pytest.importorskip("ray")
    engine = object.__new__(RayEngine)
    engine._ray = ray
    if kind is OSError:
        error = ray.exceptions.RayTaskError("write", "a\ntraceback", error).as_instanceof_cause()
    with pytest.raises(kind, match=said) as raised, engine._told():
        raise error
    assert "\n" not in str(raised.value)


SLOW = 'Traceback (most recent call last):\n  File "x"\nRuntimeError: too slow.\n'


@pytest.mark.parametrize(
    ("error", "busy", "said", "times"),
    [
        (ConnectionAbortedError(f"Failure from server:\n{SLOW}"), 3, "connected", 4),
        (ConnectionAbortedError(f"Failure from server:\n{SLOW}"), 9, "RuntimeError: too slow", 4),
        (ConnectionError("Request can't be sent: disconnected"), 3, "connected", 4),
        (ConnectionError("Request can't be sent: disconnected"), 9, "Request can't be sent", 4),
        (ConnectionError("ray client connection timeout"), 1, "ray client connection timeout", 1),
    ],
)
def test_a_head_that_is_busy(monkeypatch, error, busy, said, times):
    """It may start a client's server too late, or lose it, but not for ever; what it says is said.

    Where nobody has answered, Ray itself has asked again.
    """
    ray = pytest.importorskip("ray")
    asked = []

    def init(address, **_):
        asked.append(address)
        raise error if len(asked) <= busy else LookupError("connected")

    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match=f"^Cannot connect to Ray at {address}: {said}"):
            opened(address).__enter__()
    assert asked == [address] * times


class Nodes:
    """A cluster whose nodes come one look after another; it has no tasks."""

    def __init__(self, *looks):
        self.looks = list(looks)
        self.exceptions = pytest.importorskip("ray").exceptions

    def nodes(self):
        found = self.looks.pop(0)
        if isinstance(found, Exception):
            raise found
        return [{"Alive": alive, "Resources": {"CPU": 2.0}} for alive in found]


def test_a_cluster_that_has_just_been_started(monkeypatch):
    """It may have no node that runs tasks yet; but not for ever."""
    monkeypatch.setattr("groupwise.engines.ray.PATIENCE", 0.2)
    engine = object.__new__(RayEngine)
    engine._ray = Nodes([], [False], [False, True])
    assert [one["Alive"] for one in engine._nodes()] == [True]
    engine._ray = Nodes(*[[False]] * 100)
    with pytest.raises(EngineError, match="no node with a CPU"):
        engine._nodes()


def test_a_cluster_that_is_lost_at_once(monkeypatch):
    """Before the first task: one line."""
    monkeypatch.setattr("groupwise.engines.ray._head", lambda ray: None)
    with pytest.raises(EngineError, match="connection to the Ray cluster was lost: gone") as raised:
        RayEngine(Nodes(ConnectionError("gone\nand more")))
    assert "\n" not in str(raised.value)


def test_a_client_that_cannot_connect_goes_at_once(monkeypatch):
    """What it has open is cut off before it waits for that: the head may keep it for minutes."""
    ray = pytest.importorskip("ray")
    from ray.util.client.worker import Worker

    done = []

    class Channel:
        def close(self):
            done.append("cut off")

    def init(**_):
        worker: Any = object.__new__(Worker)
        worker.channel = Channel()
        worker.close()
        raise ConnectionAbortedError("too slow")

    monkeypatch.setattr(Worker, "close", lambda worker: done.append("waited"))
    waits = Worker.close
    monkeypatch.setattr(ray, "init", init)
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"ray://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(EngineError, match="too slow"):
            opened(address).__enter__()
    assert done == ["cut off", "waited"] * 4
    assert Worker.close is waits


def test_a_cluster_where_ray_has_no_client(monkeypatch):
    """It needs gRPC, which Ray by itself does not."""
    ray = pytest.importorskip("ray")

    def init(**_):
        raise LookupError("connected")

    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setitem(sys.modules, "ray.util.client.worker", None)
    monkeypatch.setattr(ray, "init", init)
    with pytest.raises(EngineError, match="Cannot start Ray on this machine: connected"):
        opened("ray").__enter__()


class Answering:
    """A cluster whose nodes say these digits, or are lost in this way."""

    def __init__(self, *digits):
        self.exceptions = pytest.importorskip("ray").exceptions
        self.digits = {f"{place:056x}": said for place, said in enumerate(digits)}
        self.nodes = [
            {"NodeID": one, "NodeManagerAddress": f"host-{int(one, 16)}"} for one in self.digits
        ]

    def options(self, scheduling_strategy):
        return SimpleNamespace(remote=lambda *_: scheduling_strategy.node_id)

    def get(self, node):
        said = self.digits[node]
        if isinstance(said, Exception):
            raise said
        return said


def test_all_nodes_agree_on_digits():
    """Or the one that does not is named; those that have left meanwhile are not waited for."""
    ray = pytest.importorskip("ray")
    gone, broken = ray.exceptions.NodeDiedError("gone"), ray.exceptions.RaySystemError("no module")

    def agreed(*digits):
        engine: Any = object.__new__(RayEngine)
        engine._ray = engine._task = Answering(*digits)
        return engine._agreed(engine._ray.nodes)

    assert agreed("1:x", gone, "1:x") == "1:x"
    for digits, said in (
        (("1:x", "1:y", "1:x"), r"Node host-1 \(0{8}\) does not compute the digits that others do"),
        (("1:x", "1:x", "2:x"), "Node host-2 .* has groupwise 2, and others 1"),
        (("1:x", broken), "Node host-1 .* cannot run groupwise: .*no module.* same version"),
        ((gone, gone), "All nodes of the Ray cluster have left"),
    ):
        with pytest.raises(EngineError, match=said) as raised:
            agreed(*digits)
        assert "\n" not in str(raised.value)


def test_the_tiny_stream_is_the_same_in_another_process():
    code = "from groupwise.engines.fingerprint import fingerprint; print(fingerprint())"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == fingerprint()


def test_digits_tell(monkeypatch):
    """One digit in the last place of one function is another fingerprint."""
    plain, exp = fingerprint(), np.exp

    def off(x):
        found = exp(x)
        found.flat[0] = np.nextafter(found.flat[0], np.inf)
        return found

    monkeypatch.setattr(np, "exp", off)
    assert fingerprint.__wrapped__() != plain


def test_what_is_said_of_a_node():
    assert "Node b has groupwise 2, and others 1" in disagreement("b", "2:x", "1:x")
    assert disagreement("b", "1:x", "1:y").startswith("Node b does not compute the digits")


def test_sizes_count_arrays():
    one = np.zeros(100)
    assert size_of({"a": (one, [one]), "b": "text"}) == 1600
