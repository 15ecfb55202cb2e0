"""Compiled functions on plain arrays: no classes, no validation.

Nothing here is imported by ``import groupwise``: numba is loaded by the first model or replay, and
what it compiles is cached on disk. No ``fastmath`` anywhere, so that a number never depends on
which driver computed it; where a fused multiply-add is wanted it is written out.
"""

import contextlib
import sys
import threading
from pathlib import Path
from types import TracebackType

COMPILE_NOTICE_SECONDS = 1.0


class compiling:
    """Say on standard error that kernels are being compiled, if that takes over a second.

    Wraps the first use of the kernels in a process; every later use is silent.
    """

    _done = False

    def __enter__(self) -> None:
        self._timer = None
        first, compiling._done = not compiling._done, True
        if first:
            self._timer = threading.Timer(COMPILE_NOTICE_SECONDS, self._say)
            self._timer.daemon = True
            self._timer.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()

    @staticmethod
    def _say() -> None:
        print(
            "groupwise: compiling its kernels; this happens once, later runs use the cache.",
            file=sys.stderr,
            flush=True,
        )


def _forget_outdated() -> None:
    """Delete what was compiled from other sources than these.

    numba looks only at the file of a function itself, not at those that it calls into.
    """
    folder = Path(__file__).parent
    files = sorted(folder.glob("*.py"))
    stamp = repr([(file.name, file.stat().st_mtime_ns, file.stat().st_size) for file in files])
    note = folder / "__pycache__" / "sources.txt"
    with contextlib.suppress(OSError):
        if note.exists() and note.read_text() == stamp:
            return
        for compiled in note.parent.glob("*.nb[ci]"):
            compiled.unlink()
        note.parent.mkdir(exist_ok=True)
        note.write_text(stamp)


_forget_outdated()
