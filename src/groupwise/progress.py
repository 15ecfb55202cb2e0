"""Progress bars for anything that may take over two seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 2.0
"""Seconds before a bar appears: what is done sooner needs none."""

Advance = Callable[[int, int], None]
"""Takes how many rows are done, and how far that is on the bar's own scale."""


@contextmanager
def progress_bar(
    total: int, what: str, show: bool = True, unit: str = "rows"
) -> Iterator[Callable[[int], None]]:
    """A bar on standard error with rows, rate and time left; yields a function that advances it."""
    with meter(total, what, show, unit) as advance:
        yield lambda count: advance(count, count)


@contextmanager
def meter(total: int, what: str, show: bool = True, unit: str = "rows") -> Iterator[Advance]:
    """A bar whose length is measured in something else than rows, such as bytes of a file.

    It appears on a terminal only, and not before two seconds have passed.
    """
    if not show:
        yield lambda rows, done: None
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TaskProgressColumn,
        TextColumn,
        TimeRemainingColumn,
    )

    started = time.monotonic()
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
    terminal = bar.console.is_terminal
    task = bar.add_task(what, total=total, rows=0, rate="0")
    count = 0

    def advance(rows: int, done: int) -> None:
        nonlocal count
        count += rows
        elapsed = time.monotonic() - started
        if terminal and elapsed > PATIENCE and not bar.live.is_started:
            bar.start()
        rate = count / max(elapsed, 1e-9)
        shown = f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"
        bar.update(task, advance=done, rows=count, rate=shown)

    try:
        yield advance
    finally:
        if bar.live.is_started:
            bar.stop()
