"""Progress bars for anything that may take over two seconds."""

import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from typing import TypeVar

PATIENCE = 2.0
"""Seconds before a bar appears: what is done sooner needs none."""
BETWEEN = 0.2
"""Seconds between two states of a line."""
SILENCE = 10.0
"""Seconds without a word, at most, where there is no terminal; later twice as many each time."""

T = TypeVar("T")
Advance = Callable[..., None]
"""Takes how many rows are done now, and where the bar then is; by default at the rows so far."""


@contextmanager
def progress_bar(
    total: int, what: str, show: bool = True, unit: str = "rows", steady: bool = False
) -> Iterator[Advance]:
    """A bar on standard error with rows, rate and time left; yields a function that advances it.

    Its length may be measured in something else than rows, such as bytes of a file. It appears on a
    terminal only, and not before two seconds have passed. Without rich, which the extra ``cli``
    brings, it is a line with the same figures. Where single things take long, a ``steady`` bar
    appears when it is first advanced, be it by 0, and where there is no terminal lines say how far
    it is.
    """
    if not show:
        yield lambda rows, place=None: None
    elif steady and not sys.stderr.isatty():
        with _words(total, what, unit) as advance:
            yield advance
    else:
        with (_bar if find_spec("rich") else _line)(total, what, unit, steady) as advance:
            yield advance


def stepping(things: Sequence[T], what: str, show: bool, unit: str) -> Iterator[T]:
    """These things, one after another, with a bar that says how far it is."""
    with progress_bar(len(things), what, show, unit) as advance:
        for thing in things:
            yield thing
            advance(1)


@contextmanager
def patiently(text: str) -> Iterator[None]:
    """Say what is being waited for, if it takes long and no bar can tell how far it is."""
    say = partial(print, f"groupwise: {text}", file=sys.stderr, flush=True)
    timer = threading.Timer(PATIENCE, say)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def _words(total: int, what: str, unit: str) -> Iterator[Advance]:
    """Lines, the first after ten seconds, the next after twenty more, and so on."""
    count, done = 0, threading.Event()

    def advance(rows: int, place: int | None = None) -> None:
        nonlocal count
        count += rows

    def speak() -> None:
        pause = SILENCE
        while not done.wait(pause):
            print(f"groupwise: {what}, {count:,} of {total:,} {unit}", file=sys.stderr, flush=True)
            pause *= 2.0

    speaker = threading.Thread(target=speak, daemon=True)
    speaker.start()
    try:
        yield advance
    finally:
        done.set()
        speaker.join()


@contextmanager
def _bar(total: int, what: str, unit: str, steady: bool) -> Iterator[Advance]:
    """A bar of rich's."""
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    started, patience = time.monotonic(), 0.0 if steady else PATIENCE
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn(f"{{task.fields[rows]:,}} {unit}, {{task.fields[rate]}} {unit}/s", markup=False),
        TextColumn("left:"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    task = bar.add_task(what, total=total, rows=0, rate="0")
    count = 0

    def advance(rows: int, place: int | None = None) -> None:
        nonlocal count
        count += rows
        elapsed = time.monotonic() - started
        if bar.console.is_terminal and elapsed >= patience and not bar.live.is_started:
            bar.start()
        reached = count if place is None else place
        bar.update(task, completed=reached, rows=count, rate=_rate(count, elapsed))

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()


@contextmanager
def _line(total: int, what: str, unit: str, steady: bool) -> Iterator[Advance]:
    """A line that is written over."""
    started, patience = time.monotonic(), 0.0 if steady else PATIENCE
    written, count, width = 0.0, 0, 0

    def advance(rows: int, place: int | None = None) -> None:
        nonlocal count, width, written
        count, now = count + rows, time.monotonic()
        if sys.stderr.isatty() and now - started >= patience and now - written > BETWEEN:
            done, rate = (count if place is None else place), _rate(count, now - started)
            text = f"{what} {done / max(total, 1):.0%} {count:,} {unit}, {rate} {unit}/s"
            print(f"\r{text:{width}}", end="", file=sys.stderr, flush=True)
            written, width = now, max(width, len(text))

    try:
        yield advance
    finally:
        if width:
            print(f"\r{'':{width}}\r", end="", file=sys.stderr, flush=True)


def _rate(count: int, elapsed: float) -> str:
    rate = count / max(elapsed, 1e-9)
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
