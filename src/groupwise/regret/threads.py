"""Linear algebra in one thread: many small problems are solved sooner than by several."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

_lock = Lock()
_inside: list[Any] = []
"""What gives the threads back, once for everybody who is inside."""


@cache
def _libraries() -> Any:
    import scipy.linalg  # which brings a library of its own
    from threadpoolctl import ThreadpoolController

    del scipy
    return ThreadpoolController()


@contextmanager
def one_thread() -> Iterator[None]:
    """Have libraries of linear algebra use one thread, until the last who asked for it leaves."""
    with _lock:
        limit = _inside[-1] if _inside else _libraries().limit(limits=1, user_api="blas")
        _inside.append(limit)
    try:
        yield
    finally:
        with _lock:
            _inside.pop()
            if not _inside:
                limit.restore_original_limits()
