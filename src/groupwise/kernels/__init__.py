"""Compiled functions on plain arrays: no classes, no validation.

Nothing here is imported by ``import groupwise``: numba is loaded by the first model or replay, and
what it compiles is cached on disk. No ``fastmath`` anywhere, so that a number never depends on
which driver computed it; where a fused multiply-add is wanted it is written out.
"""

import sys
import threading
import time
from contextlib import ContextDecorator
from functools import partial
from types import TracebackType
from typing import ClassVar

COMPILE_NOTICE_SECONDS = 1.0


class compiling(ContextDecorator):
    """Say on standard error that kernels are being compiled, if that takes over a second.

    Wraps what may be the first use of a kernel. It is the cache that knows whether something is
    compiled or only loaded, and calls ``begins`` and ``ends``: the time between counts, not what
    loading takes. It is said once in what is wrapped; on a terminal it is a line with the seconds
    so far, which is there while something is compiled and then is gone.
    """

    _open: ClassVar[int] = 0
    _depth: ClassVar[int] = 0
    """How many functions are being compiled, one for the sake of the other."""
    _began: ClassVar[float] = 0.0
    _spent: ClassVar[float] = 0.0
    _said: ClassVar[bool] = False
    _shown: ClassVar[int] = 0
    """How long the line on the terminal is."""
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
        if compiling._open == 0 and compiling._said:
            compiling._said, compiling._spent = False, 0.0

    @staticmethod
    def begins(kept: bool) -> None:
        """Something is not in the cache; is there one that it can be put into?"""
        if compiling._open == 0:
            return
        compiling._depth += 1
        if compiling._depth > 1:
            return
        compiling._began = time.monotonic()
        if not compiling._said or sys.stderr.isatty():
            compiling._later(max(0.0, COMPILE_NOTICE_SECONDS - compiling._spent), kept)

    @staticmethod
    def _later(seconds: float, kept: bool) -> None:
        compiling._timer = threading.Timer(seconds, partial(compiling._say, kept))
        compiling._timer.daemon = True
        compiling._timer.start()

    @staticmethod
    def ends() -> None:
        """What began last is compiled."""
        if compiling._depth == 0:
            return
        compiling._depth -= 1
        if compiling._depth > 0:
            return
        if compiling._timer is not None:
            compiling._timer.cancel()
            compiling._timer = None
        compiling._spent += time.monotonic() - compiling._began
        compiling._wipe()

    @staticmethod
    def _say(kept: bool) -> None:
        if compiling._depth == 0:
            return
        compiling._said = True
        why = "once for each kind of model" if kept else "set NUMBA_CACHE_DIR to keep them"
        text = f"groupwise: compiling its kernels ({why})"
        if not sys.stderr.isatty():
            print(text, file=sys.stderr, flush=True)
            return
        seconds = compiling._spent + time.monotonic() - compiling._began
        text = f"{text} {seconds:.0f} s"
        compiling._shown = len(text)
        print(f"\r{text}", end="", file=sys.stderr, flush=True)
        compiling._later(COMPILE_NOTICE_SECONDS, kept)

    @staticmethod
    def _wipe() -> None:
        """Take the line off the terminal."""
        if compiling._shown:
            print(f"\r{'':{compiling._shown}}\r", end="", file=sys.stderr, flush=True)
            compiling._shown = 0
