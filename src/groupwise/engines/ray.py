"""Tasks on a Ray cluster.

Tasks are functions without state of their own: where a worker or a node is lost, Ray runs again
what was under way there, and what was made there and is needed still, from the arguments that it
knows (its lineage). The results are the same bytes then, provided that all machines compute the
same: a worker finds that out with a tiny stream before its first task.
"""

import logging
import os
import socket
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from groupwise.engines.fingerprint import fingerprint
from groupwise.errors import EngineError, GroupwiseError
from groupwise.extras import installing, needed_by

RETRIES = 16
"""So often is a task begun again that is lost with its worker or node; not if it raises."""
ATTEMPTS = 4
"""So often is a head node asked that does not start a server for this client in time."""
NOBODY = "ray client connection timeout"
"""What Ray says where nobody has answered a client."""
PATIENCE = 10.0
"""Seconds to wait for somebody to answer at an address."""
LOOK = 2.0
"""Seconds between two looks at whether the head node is still there, while a value is awaited."""
ADDRESS = "RAY_ADDRESS"
DETAILS = "details = "
"""So begins the line of an error of gRPC that says what it is."""

TOKEN = (
    " Has it the Ray and the Python that are here? If it asks for a token, set RAY_AUTH_MODE=token "
    "and RAY_AUTH_TOKEN."
)
LOST = (
    "The connection to the Ray cluster was lost: {}. Is its head node still there? Where it was "
    "lost, start the cluster and the run again."
)

_same: set[str] = set()
"""What this process has compared its own digits with."""


class RayEngine:
    """A Ray cluster that this process is connected to.

    ``digits`` is the fingerprint that all workers must have, ``room`` how many bytes the smallest
    object store among the nodes holds.
    """

    def __init__(self, ray: Any) -> None:
        self._ray = ray
        with self._told():
            self._head = _head(ray)
            nodes = self._nodes()
            self.workers = max(1, int(sum(node["Resources"]["CPU"] for node in nodes)))
            stores = [node["Resources"].get("object_store_memory", np.inf) for node in nodes]
            self.room = min(stores)
            self._task = ray.remote(num_cpus=1, max_retries=RETRIES)(_run)
            self.digits = self._agreed(nodes)

    def put(self, value: Any) -> Any:
        """A handle to a value, which is copied to the cluster."""
        size = size_of(value)
        if size > self.room:
            raise self._too_small(size)
        self._look()  # without a head node this would end the process, and say nothing
        with self._told():
            return self._ray.put(value)

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A handle to what the function gives."""
        with self._told():
            task = self._task.options(name=function.__name__)
            return task.remote(self.digits, function, *arguments)

    def get(self, handle: Any) -> Any:
        """The value, once it is there. Arrays in it cannot be written to."""
        with self._told():
            while self._head is not None and not self._is_there(handle):
                self._look()
            return self._ray.get(handle)

    def _is_there(self, handle: Any) -> bool:
        """Is a value made, or has it failed, before it is time to look around again?"""
        ready, _ = self._ray.wait([handle], timeout=LOOK, fetch_local=False)
        return bool(ready)

    def _look(self) -> None:
        """Raise EngineError if nobody answers at the head node any more.

        Ray itself would wait for a minute, and then end the process.
        """
        if self._head is None:
            return
        patient = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(self._head, PATIENCE).close()
                return
            except OSError as error:
                if time.monotonic() > patient:
                    raise EngineError(LOST.format(error.strerror or error)) from None
                time.sleep(PATIENCE / 10)

    def _nodes(self) -> list[Mapping[str, Any]]:
        """Those that run tasks; of a cluster that has just been started there may be none yet."""
        patient = time.monotonic() + PATIENCE
        while True:
            nodes = self._ray.nodes()
            found = [one for one in nodes if one["Alive"] and one["Resources"].get("CPU")]
            if found:
                return found
            if time.monotonic() > patient:
                raise EngineError("The Ray cluster has no node with a CPU to run tasks on.")
            time.sleep(PATIENCE / 10)

    def _agreed(self, nodes: Sequence[Mapping[str, Any]]) -> str:
        """What every node computes of the tiny stream, once all are found to agree."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        lost = self._ray.exceptions
        asked = {}
        for node in nodes:
            here = NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            asked[node["NodeID"]] = self._task.options(scheduling_strategy=here).remote(
                None, fingerprint
            )
        found: dict[str, str] = {}
        for node in nodes:
            name = f"{node['NodeManagerAddress']} ({node['NodeID'][:8]})"
            try:
                found[name] = self._ray.get(asked[node["NodeID"]])
            except (lost.TaskUnschedulableError, lost.NodeDiedError):
                continue  # it has left meanwhile
            except lost.RayError as error:
                raise EngineError(
                    f"Node {name} cannot run groupwise: {_said(error)}. Install the same version "
                    "of groupwise there as here."
                ) from None
        if not found:
            raise EngineError("All nodes of the Ray cluster have left.")
        agreed = Counter(found.values()).most_common(1)[0][0]
        others = [name for name, digits in found.items() if digits != agreed]
        if others:
            raise EngineError(disagreement(others[0], found[others[0]], agreed))
        return agreed

    def _too_small(self, size: float) -> EngineError:
        return EngineError(
            f"A segment takes {size / 1e6:,.0f} MB, and the smallest object store of the Ray "
            f"cluster holds {self.room / 1e6:,.0f} MB. Make segments shorter, or start its nodes "
            "with a larger --object-store-memory."
        )

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Errors of tasks as they were raised, and those of the cluster in one line."""
        errors = self._ray.exceptions
        try:
            yield
        except errors.RayTaskError as error:
            cause = getattr(error, "cause", None)
            if isinstance(cause, (GroupwiseError, OSError)):
                raise cause from None
            raise
        except (errors.ObjectStoreFullError, errors.OutOfDiskError):
            raise EngineError(
                "The object stores of the Ray cluster are full. Make segments shorter, or start "
                "its nodes with a larger --object-store-memory, or with more disk for what is "
                "spilled."
            ) from None
        except errors.OutOfMemoryError:
            raise EngineError(
                "A node of the Ray cluster has run out of memory. Make segments shorter, or start "
                "fewer workers on it (--num-cpus)."
            ) from None
        except ConnectionError as error:
            raise EngineError(LOST.format(_said(error))) from None
        except errors.RayError as error:
            raise EngineError(
                f"A task was lost {RETRIES} times, or all nodes have left the Ray cluster: "
                f"{_said(error)}."
            ) from None


@contextmanager
def connected(engine: str, jobs: int | None = None) -> Iterator[RayEngine]:
    """A cluster, for as long as it is used: the one that there is a connection to is left open."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # its default, without a word
    with needed_by("The engine ray"):
        import ray
    begun = not ray.is_initialized()
    if not begun and engine.startswith("ray://") and _head(ray) is not None:
        raise EngineError(
            f"This process is connected to a Ray cluster already, and not to {engine}. Say "
            'engine="ray" for that one, or call ray.shutdown() first.'
        )
    if begun:
        # Of tasks that wait for one that has failed, which says why itself.
        os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")
        _connect(ray, engine if engine.startswith("ray://") else os.environ.get(ADDRESS), jobs)
    try:
        yield RayEngine(ray)
    finally:
        if begun:
            ray.shutdown()


def _connect(ray: Any, address: str | None, jobs: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
    if address is None:
        quiet |= {"num_cpus": jobs, "include_dashboard": False}
    elif address not in ("auto", "local"):
        _knock(address)
    logging.getLogger("ray.util.client").setLevel(logging.CRITICAL)
    # What a client says of its stream of logs, which sets a level of its own, goes nowhere.
    logging.getLogger("ray.util.client.logsclient").handlers = [logging.NullHandler()]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong is said once
            _init(ray, address or "local", quiet)
        if ray.util.client.ray.is_connected():
            warnings.filterwarnings("ignore", module=r"ray\.util\.client")  # of many small tasks
            # What its server prints, of tasks too that wait for one that has failed.
            ray.util.client.ray.get_context().client_worker.log_client.disable_logs()
    except ImportError as error:
        raise EngineError(
            f"Cannot connect to {address}: {_said(error)}. {installing('ray')}."
        ) from None
    except Exception as error:  # whatever Ray raises where nobody answers, or another version does
        where = "start Ray on this machine" if address is None else f"connect to Ray at {address}"
        token = "" if address is None else TOKEN
        raise EngineError(f"Cannot {where}: {_said(error)}.{token}") from None


def _init(ray: Any, address: str, options: Mapping[str, Any]) -> None:
    """Connect; for a client the head node starts a server first, and waits for it 30 seconds only.

    It forks while other threads of its own are in gRPC, and now and then the new process hangs; a
    head that is busy may need longer; another one on its machine may take the port meanwhile; and
    a server may end before it has answered. None of this is so for ever. Where nobody speaks Ray,
    or a token is refused, Ray itself has tried for half a minute.
    """
    if not address.startswith("ray://"):
        ray.init(address=address, **options)
        return
    for left in reversed(range(ATTEMPTS)):
        try:
            with _going_at_once():
                ray.init(address=address, **options)
        except ConnectionError as error:
            if left == 0 or NOBODY in str(error):
                raise
        else:
            return


@contextmanager
def _going_at_once() -> Iterator[None]:
    """Let a client that could not connect go at once.

    It would wait for what it has open: for its stream of logs, which the head node tries to pass on
    from the server that does not answer, five times for 30 seconds each.
    """
    from ray.util.client.worker import Worker

    wait: Callable[[Any], None] = Worker.close

    def cut_off(self: Any) -> None:
        self._in_shutdown = True
        if self.channel is not None:
            self.channel.close()
        wait(self)

    Worker.close = cut_off  # type: ignore[method-assign,unused-ignore]
    try:
        yield
    finally:
        Worker.close = wait  # type: ignore[method-assign,unused-ignore]


def _head(ray: Any) -> tuple[str, int] | None:
    """Where the head node answers; None for a client, which finds out by itself that it does not.

    The client tries for half a minute (RAY_CLIENT_RECONNECT_GRACE_PERIOD) to connect again.
    """
    if ray.util.client.ray.is_connected():
        return None
    host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
    return host.strip("[]"), int(port)


def _knock(address: str) -> None:
    """Does anybody listen there? Ray itself would try for minutes."""
    host, _, port = address.removeprefix("ray://").partition("/")[0].rpartition(":")
    if not (host and port.isdigit()):
        raise EngineError(
            f"{address!r} is no address of a Ray cluster. Give ray://HOST:PORT, as in "
            "ray://head:10001."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except OSError as error:
        raise EngineError(
            f"No Ray cluster answers at {address}: {error.strerror or error}. Is it started "
            "(ray start --head), and is the port that of its clients (10001) open?"
        ) from None


def _run(digits: str | None, function: Callable[..., Any], *arguments: Any) -> Any:
    """A task, in a worker."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):  # a worker has one core
        if digits is not None and digits not in _same:
            mine = fingerprint()
            if mine != digits:
                raise EngineError(disagreement(_here(), mine, digits))
            _same.add(digits)
        return function(*arguments)


def _here() -> str:
    import ray

    mine = ray.get_runtime_context().get_node_id()
    nodes: list[Any] = ray.nodes()  # type: ignore[no-untyped-call,unused-ignore]
    address = next((one["NodeManagerAddress"] for one in nodes if one["NodeID"] == mine), "?")
    return f"{address} ({mine[:8]})"


def disagreement(node: str, mine: str, others: str) -> str:
    """What to say of a node that does not compute what others do."""
    (version, _), (other, _) = (one.split(":") for one in (mine, others))
    if version != other:
        return f"Node {node} has groupwise {version}, and others {other}. Install the same."
    return (
        f"Node {node} does not compute the digits that others do: {mine} and not {others}. Its "
        "processor, numpy, scipy or numba is another: a task that is repeated there would change "
        "the results. Leave it out, or give all nodes one image and one type of machine."
    )


def size_of(value: Any) -> int:
    """Bytes of the arrays in a value."""
    if isinstance(value, np.ndarray):
        return int(value.nbytes)
    if isinstance(value, (tuple, list)):
        return sum(map(size_of, value))
    if isinstance(value, Mapping):
        return sum(map(size_of, value.values()))
    return int(getattr(value, "nbytes", 0))


def _said(error: BaseException) -> str:
    """The first line of what an error says, without a full stop.

    The last, if it is a traceback; what gRPC has for details, if it is an error of that.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    for line in lines:
        if line.startswith(DETAILS) and line != f'{DETAILS}""':
            return line.removeprefix(DETAILS).strip('"').rstrip(".")
    traced = any(line.startswith("Traceback (") for line in lines)
    return (lines[-1 if traced else 0] if lines else type(error).__name__).rstrip(".")
