"""Making events durable: the event loop appends, one thread commits, whoever waits is told."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from groupwise.serve.errors import BusyError, ServiceError, StaleError, UnavailableError
from groupwise.serve.store import Batch, Event, Store

MOST_EVENTS, MOST_BYTES = 20_000, 64 << 20
"""So much may wait to become durable."""
FEW, QUICK, AGAIN = 64, 0.001, 100
"""So few events the event loop commits itself, if that took at most so many seconds the last time.
A slower disk is left to the thread, and tried again after so many commits."""

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

    It is woken when all that came together is collected. Where that is little, the thread has
    nothing else to do and the disk is quick, the event loop commits it in the thread's stead:
    threads that take turns at the interpreter wait for each other longer than for such a disk.

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
        self._sleeping = self._ending = self._called = False
        self._took, self._left = 0.0, 0
        """Seconds of the last commit in the event loop, and how many the thread has had since."""
        self._backlog = self._bytes = 0
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
            self._bytes += size
            if self._sleeping and not self._called:
                self._called = True
                self._loop.call_soon(self._call)
        return group

    def _call(self) -> None:
        """Wake the thread for what came together, or do it here."""
        with self._wake:
            self._called = False
            group = self._collecting
            if not self._sleeping or not group.batches:
                return
            is_quick = self._took <= QUICK or self._left >= AGAIN
            if group.count > FEW or not (is_quick and self._store.is_near):
                self._sleeping = False
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
            self._sleeping = False
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
                while not (self._collecting.batches or self._jobs):
                    if self._ending:
                        return
                    self._sleeping = True
                    self._wake.wait()
                self._sleeping = False
                group = self._collecting
                if group.batches:
                    self._collecting = Group()
                job = self._jobs.popleft() if self._jobs else None
            if group.batches:
                self._commit(group)
                self._left += 1
                self._loop.call_soon_threadsafe(self._finish, group)
            if job is not None:
                self._do(*job)

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

    def _finish(self, group: Group) -> None:
        """In the event loop: tell those who wait."""
        with self._wake:
            self._backlog -= group.count
            self._bytes -= group.bytes
        group.batches = {}
        group.done.set()

    def _do(self, job: Callable[[Store], Any], future: "asyncio.Future[Any]") -> None:
        try:
            found = job(self._store)
        except Exception as error:
            self._tell(future, None, error)
        else:
            self._tell(future, found, None)

    def _tell(self, future: "asyncio.Future[Any]", found: Any, error: Exception | None) -> None:
        def tell() -> None:
            if future.cancelled():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(found)

        self._loop.call_soon_threadsafe(tell)
