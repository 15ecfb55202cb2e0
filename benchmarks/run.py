"""All speed and memory targets in one run: `make bench` prints the table and writes results.json.

Everything is seeded and offline, and every figure is a ratio of two measurements of the same run,
so it says something on any machine. A time is the best of several repeats.
"""

import ctypes
import gc
import json
import platform
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import groupwise as gw
from benchmarks import streams
from benchmarks.naive import naive, naive_logistic
from groupwise.reduction import Reduction

RESULTS = Path(__file__).parent / "results.json"


class Measured(NamedTuple):
    """One line of the table."""

    work: str
    measured: float
    target: float
    at_least: bool
    unit: str
    note: str

    @property
    def met(self) -> bool:
        """Is the target reached?"""
        return bool(self.measured >= self.target if self.at_least else self.measured <= self.target)


def best_of(repeats: int, *calls: Callable[[], Any]) -> list[float]:
    """Seconds of the quickest of several runs of each call; a first one is for warming up.

    The calls take turns, so that whatever else the machine is doing hits all of them.
    """
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    for _ in range(repeats):
        for call, seconds in zip(calls, times, strict=True):
            gc.collect()
            started = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - started)
    return [min(seconds) for seconds in times]


def per_row(seconds: float, rows: int) -> str:
    """A time as microseconds a row."""
    return f"{seconds / rows * 1e6:.2f} µs a row"


def replay(stream: streams.Stream, **options: Any) -> Any:
    """The paper's settings, one ridge a group as in the plain loop, nothing kept."""
    ridge, mixing = gw.learners.Ridge(), gw.aggregators.AdaNormalHedge()
    return gw.replay(
        *stream, learner=ridge, aggregator=mixing, play="sample", clip=False, keep=(), **options
    )


def against_naive(work: str, stream: streams.Stream, rows: int, target: float) -> Measured:
    """Replay of the whole stream against the plain loop on its first rows."""
    head = stream.head(rows)
    ours, plain = best_of(15, lambda: replay(stream), lambda: naive(*head))
    ours, plain = ours / len(stream.label), plain / rows
    note = f"{ours * 1e6:.2f} against {plain * 1e6:.0f} µs a row"
    return Measured(work, plain / ours, target, True, "× naive", note)


def synthetic() -> Measured:
    """The paper's synthetic size."""
    work = "synthetic, T = 100,000, d = 25, 6 groups, 3 awake"
    return against_naive(work, streams.synthetic(100_000), 2_000, 150.0)


def adult_like() -> Measured:
    """Adult's size and sparsity."""
    work = "Adult-like, T = 49,531, d = 96, 12 non-zeros, 13 groups, 5 awake"
    return against_naive(work, streams.adult_like(), 500, 50.0)


def probabilities() -> list[Measured]:
    """Logistic learners: a replay against the plain loop, and a streaming round against ridge's."""
    stream = streams.synthetic(100_000)
    stream = stream._replace(label=(stream.label > np.median(stream.label)).astype(np.float64))
    rows, log = 1_000, gw.losses.Log()
    head = stream.head(rows)
    ours, plain = best_of(
        9,
        lambda: gw.replay(*stream, learner=gw.learners.Logistic(), loss=log, keep=()),
        lambda: naive_logistic(*head),
    )
    ours, plain = ours / len(stream.label), plain / rows
    dictionaries, numbers = streams.dictionaries(3_000)
    labels = [float(number > 0.5) for number in numbers]

    def rounds(model: gw.Groupwise) -> None:
        for row, label in zip(dictionaries, labels, strict=True):
            model.learn(model.predict(row), label)

    declared = [gw.by("colour"), gw.by("shape")]
    mixing = gw.aggregators.Specialists()
    logistic = gw.Groupwise(declared, gw.learners.Logistic(), loss=log, aggregator=mixing)
    ridge = gw.Groupwise(declared, gw.learners.Ridge(), aggregator=mixing)
    one, other = best_of(9, lambda: rounds(logistic), lambda: rounds(ridge))
    return [
        Measured(
            "Logistic, synthetic size",
            plain / ours,
            60.0,
            True,
            "× naive",
            f"{ours * 1e6:.2f} against {plain * 1e6:.0f} µs a row",
        ),
        Measured(
            "a streaming round with Logistic, d = 25, 3 awake",
            one / other,
            1.4,
            False,
            "× Ridge's",
            f"{per_row(one, len(labels))} and {per_row(other, len(labels))}",
        ),
    ]


def wide() -> Measured:
    """The share of the matrix-multiply rate that replay reaches on wide dense rows."""
    stream = streams.synthetic(20_000, 256)
    square = np.random.default_rng(0).random((1536, 1536))
    seconds, multiply = best_of(5, lambda: replay(stream), lambda: square @ square)
    flops = 4.0 * 256**2 * stream.membership.sum()  # P x and the rank-one update, multiply and add
    rate = 2.0 * 1536**3 / multiply
    note = f"{flops / seconds / 1e9:.1f} of {rate / 1e9:.1f} GFlop/s"
    return Measured(
        "d = 256 dense, T = 20,000, 6 groups", flops / seconds / rate, 0.4, True, "of matmul", note
    )


def per_round() -> list[Measured]:
    """Predict and learn from dictionaries against river's Bayesian linear regression."""
    from river.linear_model import BayesianLinearRegression

    rows, labels = streams.dictionaries(3_000)
    declared = [gw.by("colour"), gw.by("shape")]
    ridge = gw.learners.Ridge()
    model = gw.Groupwise(declared, ridge, indicators=False, intercept=False)  # as river's are
    one = [BayesianLinearRegression()]
    three = [BayesianLinearRegression() for _ in range(3)]

    def ours() -> None:
        for row, label in zip(rows, labels, strict=True):
            model.learn(model.predict(row), label)

    def river(models: list[Any]) -> None:
        for row, label in zip(rows, labels, strict=True):
            for other in models:
                other.predict_one(row)
                other.learn_one(row, label)

    seconds, single, each = best_of(7, ours, lambda: river(one), lambda: river(three))
    mine = per_row(seconds, len(rows))
    return [
        Measured(
            "per round from a dict, d = 25, 3 awake",
            single / seconds,
            2.5,
            True,
            "× one river BLR",
            f"{mine} against {per_row(single, len(rows))}",
        ),
        Measured(
            "the same",
            each / seconds,
            7.0,
            True,
            "× one per awake group",
            f"{mine} against {per_row(each, len(rows))}",
        ),
    ]


def many_groups() -> list[Measured]:
    """The cost of a row with 100,000 groups against one with 100."""
    rows = 100_000
    counts = (100, 100_000)
    ridge = gw.learners.Ridge()
    calls = [
        partial(gw.replay, *streams.many_groups(rows, count), learner=ridge, keep=())
        for count in counts
    ]
    replays = dict(zip(counts, best_of(10, *calls), strict=True))
    seconds = best_of(5, *map(_streaming_rounds, counts))
    rounds = {count: each / STREAMED for count, each in zip(counts, seconds, strict=True)}
    return [
        Measured(
            "100,000 groups against 100: a streaming round",
            rounds[100_000] / rounds[100],
            1.5,
            False,
            "×",
            f"{rounds[100_000] * 1e6:.1f} and {rounds[100] * 1e6:.1f} µs",
        ),
        Measured(
            "100,000 groups against 100: a replay row",
            replays[100_000] / replays[100],
            3.0,
            False,
            "×",
            f"{per_row(replays[100_000], rows)} and {per_row(replays[100], rows)}",
        ),
    ]


STREAMED = 2_000


def _streaming_rounds(groups: int) -> Callable[[], None]:
    """Rounds with five awake groups, by a model that knows this many."""
    import pandas

    generator = np.random.default_rng(0)
    fifth = groups // 5
    fields = [f"g{i}" for i in range(5)]
    numbers = [f"x{i}" for i in range(25)]
    model = gw.Groupwise(
        [gw.by(field) for field in fields],
        gw.learners.Ridge(),
        features=numbers,
        indicators=False,
        intercept=False,
        always_on=False,
    )
    first = pandas.DataFrame(generator.random((fifth, 25)), columns=numbers)
    for field in fields:
        first[field] = np.arange(fifth).astype(str)
    first["y"] = generator.random(fifth)
    model.replay(first, "y")
    rows = pandas.DataFrame(generator.random((STREAMED, 25)), columns=numbers)
    for field in fields:
        rows[field] = generator.integers(0, fifth, STREAMED).astype(str)
    stream = rows.to_dict("records")

    def rounds() -> None:
        for row in stream:
            model.learn(model.predict(row), 0.5)

    return rounds


def threads() -> Measured:
    """Two threads against one on twelve groups."""
    stream = streams.synthetic(50_000)
    doubled = stream._replace(membership=np.hstack([stream.membership] * 2))
    one, two = best_of(20, lambda: replay(doubled, jobs=1), lambda: replay(doubled, jobs=2))
    return Measured(
        "two threads against one, 12 groups",
        one / two,
        1.6,
        True,
        "×",
        f"{per_row(one, 50_000)} and {per_row(two, 50_000)}",
    )


def segments() -> list[Measured]:
    """One always-on group of 200 columns, in segments of time: two threads, and what it costs."""
    rows, rng = 200_000, np.random.default_rng(0)
    X = rng.normal(size=(rows, 200))
    y = np.clip(0.5 + 0.02 * X @ rng.normal(size=200) + 0.05 * rng.normal(size=rows), 0.0, 1.0)
    members = np.ones((rows, 1))

    def run(jobs: int, segment: int | None = 25_000) -> Callable[[], Any]:
        options: Any = {"learner": gw.learners.Ridge(), "keep": (), "segment": segment}
        return lambda: gw.replay(X, y, members, jobs=jobs, **options)

    plain, one, two = best_of(3, run(1, None), run(1), run(2))
    how = f"{per_row(plain, rows)} without, {per_row(one, rows)} and {per_row(two, rows)} in them"
    work = "one group, 200 features, in segments"
    return [
        Measured(f"{work}: two threads against one", one / two, 1.6, True, "×", how),
        Measured(f"{work}: work against none", one / plain, 1.4, False, "×", how),
    ]


def audit() -> Measured:
    """Logged predictions audited by `compare --segment` against the replay that `compare` does."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    from groupwise.files.audit import audit as added
    from groupwise.files.plan import planned
    from groupwise.files.run import compare
    from groupwise.files.segments import Asked

    rows, rng = 100_000, np.random.default_rng(0)
    X = {f"x{k}": rng.normal(size=rows) for k in range(12)}
    label = np.clip(0.5 + 0.1 * X["x0"] + 0.05 * rng.normal(size=rows), 0.0, 1.0)
    mine = np.clip(label + 0.1 * X["x1"], 0.0, 1.0)
    city = rng.choice([f"c{k}" for k in range(8)], rows)
    table, asked = pa.table({**X, "city": city, "y": label, "mine": mine}), Asked(20_000, jobs=1)
    settings: Any = {"target": "y", "groups": "city"}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        parquet.write_table(table, path, row_group_size=20_000)
        with (
            planned(str(path), None, ["mine"], **settings) as (found, plan),
            planned(str(path), None, ["mine"], hinges=False, **settings) as (same, plain),
        ):
            slow, quick, fewer = best_of(
                2,
                lambda: compare(found, plan, None, 1, progress=False),
                lambda: added(found, plan, asked, progress=False),
                lambda: compare(same, plain, None, 1, progress=False),
            )
    how = f"{per_row(slow, rows)} and {per_row(quick, rows)}; --no-hinges {per_row(fewer, rows)}"
    return Measured("audit by sums against a replay", slow / quick, 5.0, True, "×", how)


def portfolio() -> Measured:
    """Four learners on every group and pair of groups, against a plain loop over these experts."""
    stream = streams.synthetic(20_000)
    shapes, colours = stream.membership[:, :3], stream.membership[:, 3:5]
    pairs = [shapes[:, i] * colours[:, j] for i in range(3) for j in range(2)]
    crossed = stream._replace(membership=np.column_stack([stream.membership, *pairs]))
    ridges = [gw.learners.Ridge(p) for p in (0.01, 1.0, 100.0)]
    ridges.append(gw.learners.Ridge(1.0, forward=True))
    rows = 500
    experts = np.repeat(crossed.membership, 4, axis=1)
    head = crossed.features[:rows], crossed.label[:rows], experts[:rows]
    mixing = gw.aggregators.Specialists()
    seconds, plain = best_of(
        4,
        lambda: gw.replay(*crossed, learner=ridges, keep=(), aggregator=mixing),
        lambda: naive(*head),
    )
    ours, plain = seconds / len(stream.label), plain / rows
    return Measured(
        "4 learners × (groups + pairs), synthetic",
        plain / ours,
        40.0,
        True,
        "× naive",
        f"{ours * 1e6:.2f} against {plain * 1e6:.0f} µs a row",
    )


def second_order() -> Measured:
    """Prod's rounds against those of Specialists, the learners apart: advice comes ready."""
    rows, awake = 20_000, 7
    draw, everybody = np.random.default_rng(0), np.arange(awake)
    middle = 0.2 + 0.6 * draw.random(rows)
    labels = np.clip(middle + 0.05 * draw.normal(size=rows), 0.0, 1.0)
    spread = 0.05 * np.linspace(0.05, 0.5, awake) * draw.normal(size=(rows, awake))
    advice = np.clip(middle[:, None] + spread, 0.0, 1.0).reshape(-1, 1)
    members = np.tile(everybody, rows), np.ones(rows * awake)
    stream = np.arange(0, rows * awake + 1, awake), *members, labels
    figures = [np.empty(rows) for _ in range(3)]
    room = [np.empty_like(advice) for _ in range(2)]

    def rounds(aggregator: Any) -> None:
        reduction = Reduction([gw.learners.Ridge()], aggregator, gw.losses.Square())
        reduction.reserve(everybody, 1, everybody, np.ones(awake))
        reduction.settle_stream(*stream, 0, -1, 0.5, *figures, advice, *room)

    mixers = gw.aggregators.Prod(), gw.aggregators.Specialists()
    prod, specialists = best_of(9, *(partial(rounds, one) for one in mixers))
    return Measured(
        "the rounds of Prod, 7 awake",
        prod / specialists,
        3.0,
        False,
        "× Specialists'",
        f"{per_row(prod, rows)} and {per_row(specialists, rows)}",
    )


def memory() -> Measured:
    """Peak memory beyond the input of a replay of a million rows, in a process of its own."""
    used = float(_child("from benchmarks.run import memory_child; memory_child()"))
    return Measured(
        "T = 1,000,000, d = 25, advice not kept",
        used,
        200.0,
        False,
        "MB",
        "peak above input and compiled kernels",
    )


def memory_child() -> None:
    """Print the megabytes that the replay adds; the input is made without copies."""
    replay(streams.synthetic(100))
    rows = 1_000_000
    features = np.empty((rows, 25))
    np.random.default_rng(0).random(out=features)
    membership = np.zeros((rows, 6), dtype=np.uint8)
    for group, (start, step) in enumerate([(0, 3), (1, 3), (2, 3), (0, 2), (1, 2), (0, 1)]):
        membership[start::step, group] = 1
    label = features[:, 0].copy()
    ctypes.CDLL(None).malloc_trim(0)  # what compiling has left free would hide what is taken now
    before = _resident()
    peak, done = [before], threading.Event()

    def watch() -> None:
        while not done.wait(0.001):
            peak[0] = max(peak[0], _resident())

    watcher = threading.Thread(target=watch)
    watcher.start()
    stream: Any = features, label, membership
    kept = replay(stream)
    done.set()
    watcher.join()
    print((max(peak[0], _resident()) - before) / 2**20)
    del kept


def _resident() -> int:
    """The bytes of memory that this process has now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def intervals() -> Measured:
    """A replay with intervals around its predictions against one without, everything default."""
    stream = streams.synthetic(100_000)
    plain, ours = best_of(
        9,
        lambda: gw.replay(*stream, keep=()),
        lambda: gw.replay(*stream, keep=(), intervals=0.9),
    )
    rows = len(stream.label)
    note = f"{per_row(ours, rows)} and {per_row(plain, rows)}"
    return Measured("intervals, synthetic size", ours / plain, 1.15, False, "× without", note)


def windows() -> Measured:
    """A replay with windows against one without, everything default."""
    stream = streams.synthetic(30_000)
    plain, ours = best_of(
        5,
        lambda: gw.replay(*stream, keep=()),
        lambda: gw.replay(*stream, keep=(), windows=True),
    )
    rows, fewest = len(stream.label), np.count_nonzero(stream.membership, axis=0).min()
    target = 1.2 * (1.0 + np.log2(fewest))
    note = f"{per_row(ours, rows)} and {per_row(plain, rows)}; 1.2 (1 + log₂ {fewest:,})"
    return Measured("windows, synthetic size", ours / plain, target, False, "× without", note)


def start_up() -> list[Measured]:
    """How long a fresh process takes for the import, and for the help page."""
    return [
        Measured(
            name, best_of(5, partial(_fresh, arguments))[0], 0.5, False, "s", "a fresh process"
        )
        for name, arguments in (
            ("import groupwise", ["-c", "import groupwise"]),
            ("groupwise --help", ["-m", "groupwise", "--help"]),
        )
    ]


def _fresh(arguments: list[str]) -> None:
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)


def other_settings() -> list[Measured]:
    """A round over all awake learners in routing and classification, against plain NumPy."""
    from benchmarks import settings

    return [
        Measured(
            line["work"],
            line["ratio"],
            5.0,
            True,
            "× plain",
            f"{line['seconds_ours'] * 1e6:.1f} against {line['seconds_plain'] * 1e6:.0f} µs",
        )
        for line in settings.measure()
    ]


def _child(code: str) -> str:
    found = subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent.parent,
    )
    return found.stdout.strip().splitlines()[-1]


def main() -> None:
    """Measure everything, print the table, write the results."""
    console = Console()
    jobs: list[Callable[[], Measured | list[Measured]]] = [
        synthetic,
        adult_like,
        probabilities,
        wide,
        per_round,
        many_groups,
        threads,
        segments,
        audit,
        memory,
        portfolio,
        second_order,
        intervals,
        windows,
        start_up,
        other_settings,
    ]
    wanted = sys.argv[1:]
    table = Table("work", "measured", "target", "", "how", title="groupwise benchmarks")
    for column in (1, 2):
        table.columns[column].justify = "right"
    lines: list[Measured] = []
    with console.status("measuring") as status:
        for job in jobs:
            name = job.__name__
            if wanted and name not in wanted:
                continue
            status.update(f"measuring {name.replace('_', ' ')}")
            found = job()
            lines += found if isinstance(found, list) else [found]
    for line in lines:
        sign = "≥" if line.at_least else "≤"
        table.add_row(
            line.work,
            f"{line.measured:.3g} {line.unit}",
            f"{sign} {line.target:g}",
            "[green]met" if line.met else "[red]missed",
            line.note,
        )
    console.print(table)
    machine = {"python": platform.python_version(), "machine": platform.machine()}
    RESULTS.write_text(
        json.dumps(
            {**machine, "lines": [{**line._asdict(), "met": line.met} for line in lines]}, indent=1
        )
    )
    console.print(f"written to {RESULTS}")


if __name__ == "__main__":
    main()
