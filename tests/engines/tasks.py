"""Tasks for engines, in a module that workers find too."""

import os
import signal
from pathlib import Path

from groupwise.errors import LabelError


def double(value):
    return 2 * value


def add(first, second):
    return first + second


def refuse(value):
    raise LabelError(f"{value} is no label.", row=7)


def fail(value):
    raise ZeroDivisionError(value)


def interrupt(*_):
    raise KeyboardInterrupt


def threads():
    """How many threads each library of linear algebra has."""
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_info

    return [one["num_threads"] for one in threadpool_info() if one["user_api"] == "blas"]


def once_killed(marker, function, *arguments):
    """Call a function; but the worker that begins this for the first time is killed."""
    try:
        Path(marker).touch(exist_ok=False)
    except FileExistsError:
        return function(*arguments)
    os.kill(os.getpid(), signal.SIGKILL)


class Around:
    """An engine that something happens to: ``before`` is called with every task's name."""

    def __init__(self, engine, before):
        self.engine, self.before, self.workers = engine, before, engine.workers

    def put(self, value):
        return self.engine.put(value)

    def submit(self, function, *arguments):
        instead = self.before(function)
        if instead is not None:
            return self.engine.submit(once_killed, instead, function, *arguments)
        return self.engine.submit(function, *arguments)

    def get(self, handle):
        return self.engine.get(handle)
