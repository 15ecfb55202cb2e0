"""Compiled functions on plain arrays: no classes, no validation.

Nothing here is imported by ``import groupwise``: numba is loaded by the first model or replay, and
what it compiles is cached on disk. No ``fastmath`` anywhere, so that a number never depends on
which driver computed it; where a fused multiply-add is wanted it is written out.
"""

import sys
import threading
import time
from functools import partial
from types import TracebackType
from typing import ClassVar

COMPILE_NOTICE_SECONDS = 1.0


class compiling:
    """Say on standard error that kernels are being compiled, if that takes over a second.

    Wraps what may be the first use of a kernel. It is the cache that knows whether something is
    compiled or only loaded, and calls ``begins`` and ``ends``: the time between counts, not what
    loading takes. What was said once is not said again.
    """

    _open: ClassVar[int] = 0
    _depth: ClassVar[int] = 0
    """How many functions are being compiled, one for the sake of the other."""
    _began: ClassVar[float] = 0.0
    _spent: ClassVar[float] = 0.0
    _said: ClassVar[bool] = False
    _timer: ClassVar[threading.Timer | None] = None

    def __enter__(self) -> None:
        compiling._open += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        compiling._open -= 1
        if compiling._open == 0 and compiling._depth > 0:  # what failed to compile has no end
            compiling._depth = 1
            compiling.ends()

    @staticmethod
    def begins(kept: bool) -> None:
        """Something is not in the cache; is there one that it can be put into?"""
        if compiling._open == 0:
            return
        compiling._depth += 1
        if compiling._depth > 1 or compiling._said:
            return
        compiling._began = time.monotonic()
        left = max(0.0, COMPILE_NOTICE_SECONDS - compiling._spent)
        compiling._timer = threading.Timer(left, partial(compiling._say, kept))
        compiling._timer.daemon = True
        compiling._timer.start()

    @staticmethod
    def ends() -> None:
        """What began last is compiled."""
        if compiling._depth == 0:
            return
        compiling._depth -= 1
        if compiling._depth == 0 and compiling._timer is not None:
            compiling._timer.cancel()
            compiling._timer = None
            compiling._spent += time.monotonic() - compiling._began

    @staticmethod
    def _say(kept: bool) -> None:
        compiling._said = True
        then = (
            "this happens once, later runs use the cache."
            if kept
            else "set NUMBA_CACHE_DIR to a folder that can be written to make that once."
        )
        print("groupwise: compiling its kernels;", then, file=sys.stderr, flush=True)
