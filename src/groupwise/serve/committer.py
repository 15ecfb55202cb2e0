"""Making events durable: the event loop appends, one thread commits, whoever waits is told."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from groupwise.serve.errors import (
    BusyError,
    ConflictError,
    ServiceError,
    StaleError,
    UnavailableError,
)
from groupwise.serve.store import Batch, Event, Store

MOST_EVENTS, MOST_BYTES = 20_000, 64 << 20
"""So much may wait to become durable."""
FEW, QUICK, AGAIN = 128, 0.001, 100
"""So few events the event loop commits itself, if that took at most so many seconds the last time.
A slower disk is left to the thread, and tried again after so many commits."""
LONGEST = 0.002
"""Seconds for which events wait for others, as long as every turn of the event loop brings some."""

Found = TypeVar("Found")


class Group:
    """Events that are committed together: all those that came while the ones before were."""

    __slots__ = ("batches", "bytes", "count", "done", "error", "stale")

    def __init__(self) -> None:
        self.batches: dict[int, Batch] = {}
        self.count = self.bytes = 0
        self.done = asyncio.Event()
        self.error: ServiceError | None = None
        self.stale: dict[int, ServiceError] = {}

    async def durable(self, model: int) -> None:
        """Wait until they are durable; an error where they will never be."""
        if not self.done.is_set():
            await self.done.wait()
        error = self.error or self.stale.get(model)
        if error is not None:
            raise type(error)(*error.args)


class Committer:
    """One thread that writes to a store, in the order in which it was asked.

    It is woken when all that came together is collected: when a turn of the event loop brings
    nothing more, or for the first has waited long enough. What is alone does not wait. Where that
    is little and the disk is quick, the event loop commits it in the thread's stead: threads that
    take turns at the interpreter wait for each other longer than for such a disk.

    A failed commit fails all that came after it too, and whatever comes until ``resume``. In the
    event loop ``failed`` is called then, and ``lost`` where another process has taken a model.
    """

    def __init__(
        self,
        store: Store,
        failed: Callable[[ServiceError], None],
        lost: Callable[[int, ServiceError], None],
    ) -> None:
        self._store = store
        self._failed = failed
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._collecting = Group()
        self._jobs: deque[tuple[Callable[[Store], Any], asyncio.Future[Any]]] = deque()
        self._wake = threading.Condition()
        self._busy = self._ending = self._called = False
        """Is the thread at work, is it to end, and has the event loop been asked to wake it?"""
        self._looked, self._since = 0, 0.0
        """How many events waited at the last look, and since when."""
        self._took, self._left = 0.0, 0
        """Seconds of the last commit in the event loop, and how many the thread has had since."""
        self._backlog = self._bytes = 0
        self.appended = 0
        """How many events ever came."""
        self.broken: ServiceError | None = None
        self.observe: Callable[[float, int], None] = lambda seconds, events: None
        """Told of every commit: how long it took, and how many events it had."""
        self._thread = threading.Thread(target=self._run, name="groupwise commits", daemon=True)
        self._thread.start()

    # In the event loop.

    def check(self) -> None:
        """An error where nothing can be appended now."""
        if self.broken is not None:
            raise type(self.broken)(*self.broken.args)
        if self._backlog >= MOST_EVENTS or self._bytes >= MOST_BYTES:
            raise BusyError(f"{self._backlog:,} events wait to be written. Try again in a second.")

    def append(self, model: int, fence: int, first: int, events: Sequence[Event]) -> Group:
        """Add events from a number on, which ``check`` has let through; what to wait for."""
        size = sum(len(event.body) for event in events)
        with self._wake:
            group = self._collecting
            if self.broken is not None:
                group.error = self.broken
                group.done.set()
                return group
            batch = group.batches.get(model)
            if batch is None:
                batch = group.batches[model] = Batch(model, fence, first, [])
            batch.events.extend(events)
            group.count += len(events)
            group.bytes += size
            self._backlog += len(events)
            self.appended += len(events)
            self._bytes += size
            if not self._busy and not self._called:
                self._look()
        return group

    def _look(self) -> None:
        """See in the next turn of the event loop what has come together by then."""
        self._called = True
        self._looked, self._since = 0, self._loop.time()
        self._loop.call_soon(self._call)

    def _call(self) -> None:
        """Wake the thread for what came together, or do it here."""
        with self._wake:
            self._called = False
            group = self._collecting
            if self._busy or not group.batches:
                return
            if self._looked < group.count > 1 and self._loop.time() - self._since < LONGEST:
                self._called, self._looked = True, group.count
                self._loop.call_soon(self._call)  # others may be on their way
                return
            is_quick = self._took <= QUICK or self._left >= AGAIN
            if group.count > FEW or not (is_quick and self._store.is_near):
                self._busy = True
                self._wake.notify()
                return
            self._collecting = Group()
            self._took, self._left = self._commit(group), 0  # the thread cannot wake before
        self._finish(group)

    def run(self, job: Callable[[Store], Found]) -> "asyncio.Future[Found]":
        """Let the thread do something with the store, after what was appended before."""
        future: asyncio.Future[Found] = self._loop.create_future()
        with self._wake:
            if self._ending:
                future.set_exception(UnavailableError("The service ends."))
                return future
            self._jobs.append((job, future))
            self._busy = True
            self._wake.notify()
        return future

    def resume(self) -> None:
        """Go on after a failed commit: memory is what is durable again."""
        with self._wake:
            self.broken = None
            self._collecting = Group()

    async def close(self) -> None:
        """End when everything is done that was asked for."""
        with self._wake:
            self._ending = True
            self._wake.notify()
        await asyncio.to_thread(self._thread.join)

    # In the thread.

    def _run(self) -> None:
        while True:
            with self._wake:
                while not self._is_due():
                    self._busy = False
                    if self._ending:
                        return
                    self._wake.wait()
                group = self._collecting
                job = self._jobs.popleft() if self._jobs else None
                if group.batches:
                    self._collecting = Group()
            if group.batches:
                self._commit(group)
                self._left += 1
                self._rest(job is not None, self._finish, group)
            if job is not None:
                self._rest(False, self._do(*job))

    def _is_due(self) -> bool:
        """Is there anything to do? What is being collected waits until it is called for."""
        waits = bool(self._collecting.batches) and (self._busy or self._ending)
        return waits or bool(self._jobs)

    def _rest(self, busy: bool, tell: Callable[..., None], *about: Any) -> None:
        """Something is done: let the event loop tell whoever waits, and see what has come since."""
        with self._wake:
            self._busy = busy or bool(self._jobs)
        self._loop.call_soon_threadsafe(self._told, tell, *about)

    def _commit(self, group: Group) -> float:
        """Commit some events; the seconds that it took."""
        began = time.perf_counter()
        batches = dict(group.batches)
        while batches:
            try:
                self._store.commit([*batches.values()])
                break
            except StaleError as error:
                if error.model not in batches:
                    self._break(group, error)
                    break
                del batches[error.model]
                group.stale[error.model] = error
                self._loop.call_soon_threadsafe(self._lost, error.model, error)
            except ConflictError as error:  # numbers that are taken: an earlier commit did happen
                self._break(group, UnavailableError(str(error)))
                break
            except ServiceError as error:
                self._break(group, error)
                break
            except Exception as error:  # whatever it is, nothing may be acknowledged
                self._break(group, UnavailableError(f"The store failed: {error!r}."))
                break
        took = time.perf_counter() - began
        self.observe(took, group.count)
        return took

    def _break(self, group: Group, error: ServiceError) -> None:
        group.error = error
        with self._wake:
            self.broken = error
            later, self._collecting = self._collecting, Group()
        later.error = error
        if later.batches:
            self._loop.call_soon_threadsafe(self._finish, later)
        self._loop.call_soon_threadsafe(self._failed, error)

    def _do(self, job: Callable[[Store], Any], future: "asyncio.Future[Any]") -> Callable[[], None]:
        """Do something; what tells of it."""
        found: Any = None
        problem: Exception | None = None
        try:
            found = job(self._store)
        except Exception as error:
            problem = error

        def tell() -> None:
            if future.cancelled():
                return
            if problem is not None:
                future.set_exception(problem)
            else:
                future.set_result(found)

        return tell

    # In the event loop, when something is done.

    def _told(self, tell: Callable[..., None], *about: Any) -> None:
        """Tell whoever waits; and what was collected meanwhile has its turn."""
        tell(*about)
        with self._wake:
            if self._collecting.batches and not self._busy and not self._called:
                self._look()

    def _finish(self, group: Group) -> None:
        """Some events are durable, or will never be."""
        with self._wake:
            self._backlog -= group.count
            self._bytes -= group.bytes
        group.batches = {}
        group.done.set()
