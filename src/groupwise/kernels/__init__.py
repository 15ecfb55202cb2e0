"""Compiled functions on plain arrays: no classes, no validation.

Nothing here is imported by ``import groupwise``: numba is loaded by the first model or replay, and
what it compiles is cached on disk. No ``fastmath`` anywhere, so that a number never depends on
which driver computed it; where a fused multiply-add is wanted it is written out.
"""

import sys
import threading
from functools import partial
from types import TracebackType
from typing import ClassVar

COMPILE_NOTICE_SECONDS = 1.0


class compiling:
    """Say on standard error that kernels are being compiled, if that takes over a second.

    Wraps what may be the first use of a kernel. It is the cache that knows whether something is
    compiled or only loaded, and calls ``begins``; what was said once is not said again.
    """

    _open: ClassVar[int] = 0
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
        if compiling._timer is not None and compiling._open == 0 and compiling._timer.is_alive():
            compiling._timer.cancel()
            compiling._timer = None

    @staticmethod
    def begins(kept: bool) -> None:
        """Something is not in the cache; is there one that it can be put into?"""
        if compiling._open == 0 or compiling._timer is not None:
            return
        then = (
            "this happens once, later runs use the cache."
            if kept
            else "set NUMBA_CACHE_DIR to a folder that can be written to make that once."
        )
        say = partial(print, "groupwise: compiling its kernels;", then, file=sys.stderr, flush=True)
        compiling._timer = threading.Timer(COMPILE_NOTICE_SECONDS, say)
        compiling._timer.daemon = True
        compiling._timer.start()
