"""This machine: threads, each of which takes the next task whose arguments are there."""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from threading import Lock
from types import TracebackType
from typing import Any


class LocalEngine:
    """Runs tasks in threads of this process; arguments are handed over as they are.

    Parameters
    ----------
    workers : how many tasks run at a time; with one, each runs at once, where it is submitted.

    >>> with LocalEngine(2) as engine:
    ...     three = engine.submit(sum, [1, 2])
    ...     engine.get(engine.submit(max, three, 2))
    3
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._pool = ThreadPoolExecutor(workers) if workers > 1 else None

    def __enter__(self) -> "LocalEngine":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def put(self, value: Any) -> Any:
        """The value itself, as a handle."""
        handle: Future[Any] = Future()
        handle.set_result(value)
        return handle

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a function as soon as all its arguments are there and a thread is free."""
        task = _Task(function, arguments, self._pool)
        task.begin()
        return task.result

    def get(self, handle: Any) -> Any:
        """The value, once it is there."""
        return handle.result() if isinstance(handle, Future) else handle


class _Task:
    """A function on its way: it waits for its arguments without keeping a thread."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        pool: ThreadPoolExecutor | None,
    ) -> None:
        self.function, self.arguments, self.pool = function, arguments, pool
        self.result: Future[Any] = Future()
        self._awaited = [one for one in arguments if isinstance(one, Future)]
        self._missing = 1 + len(self._awaited)
        self._lock = Lock()

    def begin(self) -> None:
        """Look for what is missing."""
        for one in self._awaited:
            one.add_done_callback(self._came)
        self._came(None)

    def _came(self, argument: Any) -> None:
        with self._lock:
            self._missing -= 1
            ready = self._missing == 0
        if not ready:
            return
        if self.pool is None:
            self._run()
            return
        if argument is None:
            self.pool.submit(self._run)  # an error where no thread can be had is the caller's
            return
        # An engine that is shut down takes none: nobody waits for this any more, nor for what it is
        # an argument of. To tell them all, each from within the one before, goes too deep.
        with suppress(RuntimeError):
            self.pool.submit(self._run)

    def _run(self) -> None:
        try:
            given = [one.result() if isinstance(one, Future) else one for one in self.arguments]
            found = self.function(*given)
        except BaseException as error:
            self.result.set_exception(error)
            # Ctrl-C: who asks for this result may come late, or never.
            if self.pool is None and not isinstance(error, Exception):
                raise
        else:
            self.arguments = ()
            self.result.set_result(found)
