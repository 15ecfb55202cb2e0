"""What a run in segments will cost, found out by running the beginning of it.

The tasks of a few short segments, of two lengths, are run one after another and timed. Of every
kind of task that gives a line, seconds = a + b · rows: reading, learning and settling grow with the
rows, the sums of a segment with the square of the features. The first segment takes longer, as
nobody has looked through it before. The rest is arithmetic: how many segments there are, which
tasks wait for the ones before them, and what each hands on.
"""

import math
import pickle
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupwise.engines.ray import size_of
from groupwise.files import segments
from groupwise.files.plan import Plan
from groupwise.files.scan import Scan
from groupwise.files.segments import Asked

PROBE, SHORTER = 32_768, 4
"""Rows of the segments that are tried, and how many times shorter others are."""
TRIED = 4
"""Segments of each length; the first, in which everything is new, is another matter."""
CHAINS: Mapping[str, tuple[str, ...]] = {
    "settling in order (aggregator and books)": ("settle_of",),
    "what learners begin with": ("follow",),
    "sums for hindsight": ("record",),
    "reading in order (features of the past)": ("encode",),
}
"""Tasks of which each waits for the one of the segment before; reading does with makers only."""
STREAMED = ("read", "scout", "encode", "add_up_of", "learn_of", "settle_of", "write")
GIVEN = {"read": 3, "scout": 2, "encode": 4, "add_up_of": 2, "learn_of": 1, "settle_of": 2}
"""How many tasks take what a task gives: so often may it move."""


class Watch:
    """An engine that runs every task at once, in this thread, and takes down what it costs."""

    workers = 1

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.bytes: dict[str, list[int]] = defaultdict(list)

    def put(self, value: Any) -> Any:
        """The value itself."""
        return value

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call it, and take down the time."""
        start = time.thread_time()
        result = function(*arguments)
        self.seconds[function.__name__].append(time.thread_time() - start)
        self.bytes[function.__name__].append(bytes_of(result))
        return result

    def get(self, handle: Any) -> Any:
        """The value itself."""
        return handle


def bytes_of(value: Any) -> int:
    """How many bytes a result is, as it would be sent."""
    known = size_of(value)
    return known or len(pickle.dumps(value, protocol=5))


@dataclass(frozen=True)
class Estimate:
    """What a run costs: seconds of one core, bytes, and what all others wait for.

    ``seconds`` and ``bytes`` are those of one segment, by kind of task; ``more`` are the seconds
    that the first one takes beyond them.
    """

    rows: int
    segments: int
    workers: int
    seconds: Mapping[str, float]
    bytes: Mapping[str, float]
    in_order: bool
    more: float = 0.0

    @property
    def cpu(self) -> float:
        """Seconds of one core, in all."""
        return self.segments * sum(self.seconds.values()) + self.more

    @property
    def chain(self) -> tuple[str, float]:
        """The longest chain of tasks that wait for one another, and its seconds."""
        found = {
            name: self.segments * sum(self.seconds.get(task, 0.0) for task in tasks)
            for name, tasks in CHAINS.items()
            if self.in_order or "encode" not in tasks
        }
        return max(found.items(), key=lambda item: item[1])

    @property
    def busy(self) -> int:
        """How many workers have something to do: no more than there are segments."""
        return min(self.workers, self.segments)

    @property
    def wall(self) -> float:
        """Seconds until it is through: of all cores, or of the longest chain."""
        return max(self.cpu / self.busy, self.chain[1])

    @property
    def bottleneck(self) -> str:
        """What more workers would not help with, or that they would."""
        name, seconds = self.chain
        if seconds >= self.cpu / self.busy:
            return f"{name}, one segment after another"
        if self.workers >= self.segments:
            return "the segments: shorter ones would give more workers something to do"
        useful = int(self.cpu / seconds) if seconds else self.segments
        return f"the cores: up to {min(useful, self.segments):,} workers make it faster"

    @property
    def state(self) -> float:
        """Bytes that are carried from segment to segment: learners, hindsight, aggregator."""
        return sum(self.bytes.get(task, 0.0) for task in ("follow", "record"))

    @property
    def memory(self) -> float:
        """Bytes on all workers: segments that are on their way, and two states each."""
        segment = sum(self.bytes.get(task, 0.0) for task in STREAMED)
        under_way = min(self.segments, segments.AHEAD * self.workers + 1)
        return under_way * segment + 2 * self.workers * self.state

    @property
    def moved(self) -> float:
        """Bytes that tasks take from others, at most: where these run on another node."""
        each = sum(GIVEN.get(task, 1) * size for task, size in self.bytes.items())
        return self.segments * each

    def told(self) -> list[str]:
        """It all, in a few lines."""
        return [
            f"{self.rows:,} rows in {_many(self.segments, 'segment')}, on "
            + _many(self.workers, "worker"),
            f"core hours    {_amount(self.cpu / 3600)} ({_amount(self.cpu)} s)",
            f"time          {_amount(self.wall)} s at best",
            f"memory        {self.memory / 1e6:,.0f} MB on all workers, besides "
            "0.3 GB for each of them",
            f"state         {self.state / 1e6:,.1f} MB from segment to segment",
            f"bytes moved   {self.moved / 1e9:,.2f} GB at most between workers",
            f"bottleneck    {self.bottleneck}",
        ]


def _amount(figure: float) -> str:
    """Two digits of what is small, and no exponents.

    >>> [_amount(figure) for figure in (6.63e-5, 0.0, 0.239, 9.96, 23.9, 5_300.0)]
    ['0.000066', '0', '0.24', '10', '24', '5,300']
    """
    if not 0.0 < figure < 9.95:
        return f"{figure:,.0f}"
    return f"{figure:.{max(0, 1 - math.floor(math.log10(figure)))}f}"


def _many(count: int, what: str) -> str:
    return f"{count:,} {what}{'s' * (count != 1)}"


def estimate(found: Scan, plan: Plan, asked: Asked, workers: int) -> Estimate:
    """Try the beginning of a run, and say what all of it will cost on so many workers."""
    segments.refuse(plan)
    long = min(asked.segment, PROBE, max(1, found.rows // 2))
    sizes = sorted({long, max(1, long // SHORTER)})
    watches = {size: _tried(found, plan, asked, size) for size in sizes}
    count = -(-found.rows // asked.segment)
    rows = found.rows / count
    tasks = watches[long].seconds
    others = [one for task in ("scout", "encode") for one in (tasks.get(task) or [0.0])[-1:]]
    first = tasks["encode"][0] - sum(others)  # nobody has looked through its rows before
    return Estimate(
        rows=found.rows,
        segments=count,
        workers=workers,
        seconds={task: _line(watches, "seconds", task, rows) for task in tasks},
        bytes={task: _line(watches, "bytes", task, rows) for task in tasks},
        in_order=plan.model().makes_features,
        more=max(0.0, first) * rows / long,
    )


def _tried(found: Scan, plan: Plan, asked: Asked, size: int) -> Watch:
    """The beginning of the run, in segments of so many rows."""
    watch = Watch()
    with tempfile.TemporaryDirectory(prefix="groupwise-") as folder:
        trial = Asked(size, watch, asked.aggregators_at)
        where = Path(folder) / "probe"
        segments.run(plan.model(), found, plan, trial, where, progress=False, most=TRIED)
    return watch


def _line(watches: Mapping[int, Watch], what: str, task: str, rows: float) -> float:
    """What a task costs with so many rows, by the line through what was tried."""
    points = []
    for size, watch in watches.items():
        values = getattr(watch, what).get(task, [0.0])
        points.append((size, float(min(values[1:] or values))))  # others were disturbed
    (short, low), (long, high) = points[0], points[-1]
    slope = max(0.0, (high - low) / (long - short)) if long > short else 0.0
    return max(0.0, high + slope * (rows - long))
