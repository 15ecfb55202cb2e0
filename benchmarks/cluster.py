"""Ray beside threads of the same machine: what it costs, and what the driver holds.

python -m benchmarks.cluster            both; a few minutes
python -m benchmarks.cluster cost       processor time of 10⁶ rows at d = 128
python -m benchmarks.cluster memory     the driver of 10⁵ and of 10⁷ rows
python -m benchmarks.cluster estimate   --estimate beside what is measured, at three sizes
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROWS, WIDTH, SEGMENT = 1_000_000, 128, 50_000
COST, GROWTH, MOST = 1.35, 50.0, 400.0
TURNS = 3


def processor_time() -> float:
    """Seconds of this process and of all that it has started, so far."""
    tick = os.sysconf("SC_CLK_TCK")
    parents, seconds = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(place.name)] = int(fields[1])
        seconds[int(place.name)] = (int(fields[11]) + int(fields[12])) / tick
    total = 0.0
    for process in seconds:
        above = process
        while above not in (0, os.getpid()):
            above = parents.get(above, 0)
        total += seconds[process] if above else 0.0
    return total


def cost() -> bool:
    """Processor time on Ray over that in threads, two workers each."""
    import groupwise as gw
    from groupwise.engines import opened

    rng = np.random.default_rng(0)
    x = rng.random((ROWS, WIDTH))
    x[:, 0] = 1.0
    y = np.clip(x @ rng.random(WIDTH) / WIDTH * 2.0, 0.0, 1.0)
    groups = np.column_stack([x[:, 1] < 0.5, np.ones(ROWS)]).astype(np.float64)
    found: dict[str, list[float]] = {"local": [], "ray": []}
    digests = set()
    for _ in range(TURNS):
        for name, seconds in found.items():
            with opened(name, 2) as engine:
                warm = slice(0, 4_096)
                gw.replay(x[warm], y[warm], groups[warm], segment=1_024, engine=engine, keep=())
                before, start = processor_time(), time.monotonic()
                result = gw.replay(x, y, groups, segment=SEGMENT, engine=engine, keep=())
                seconds.append(processor_time() - before)
            wall = time.monotonic() - start
            print(f"{name}: {seconds[-1]:.1f} s of processor time, {wall:.1f} s")
            digests.add(result.prediction.tobytes())
    ratio = float(np.median(found["ray"]) / np.median(found["local"]))
    met = ratio <= COST and len(digests) == 1
    print(f"Ray / local: {ratio:.2f} (target {COST}), {'met' if met else 'missed'}")
    return met


def table(path: Path, rows: int, width: int) -> Path:
    """A Parquet file, written a part at a time."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng, writer = np.random.default_rng(0), None
    for start in range(0, rows, 100_000):
        count = min(100_000, rows - start)
        x = rng.random((count, width))
        columns = {f"x{i}": x[:, i] for i in range(width)}
        columns["g"] = rng.choice(["a", "b", "c"], count)
        columns["y"] = x.mean(axis=1) + rng.normal(0.0, 0.1, count)
        part = pa.table(columns)
        writer = writer or parquet.ParquetWriter(path, part.schema)
        writer.write_table(part)
    assert writer is not None
    writer.close()
    return path


def driver(path: str, engine: str) -> None:
    """A run in segments, and the most memory that this process had."""
    from groupwise.files.plan import planned
    from groupwise.files.run import run_in_segments
    from groupwise.files.segments import Asked

    with (
        tempfile.TemporaryDirectory() as folder,
        planned(path, target="y", groups="g", hinges=False) as (found, plan),
    ):
        asked = Asked(100_000, engine, jobs=2)
        run_in_segments(found, plan, Path(folder) / "out", asked, progress=False)
    # What getrusage tells may be that of the process which has started this one.
    said = Path("/proc/self/status").read_text()
    print(int(said.split("VmHWM:")[1].split()[0]) / 1024.0)


def memory() -> bool:
    """The most memory of the driver: it must not grow with the rows."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        for rows in (100_000, 10_000_000):
            path = table(Path(folder) / f"{rows}.parquet", rows, 3)
            start = time.monotonic()
            command = [sys.executable, "-m", "benchmarks.cluster", "driver", str(path), "ray"]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            found.append(float(said.split()[-1]))
            print(f"{rows:,} rows: driver {found[-1]:.0f} MB, {time.monotonic() - start:.0f} s")
    met = found[1] - found[0] <= GROWTH and max(found) <= MOST
    print(f"growth {found[1] - found[0]:.0f} MB (target {GROWTH:g}), {'met' if met else 'missed'}")
    return met


def estimate() -> bool:
    """The estimate beside what is measured, at three sizes."""
    from groupwise.files import segments
    from groupwise.files.estimate import estimate as estimated
    from groupwise.files.plan import planned
    from groupwise.files.segments import Asked

    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        for rows, width, segment in (
            (100_000, 20, 20_000),
            (300_000, 60, 50_000),
            (100_000, 126, 20_000),
        ):
            path = table(Path(folder) / f"{width}.parquet", rows, width)
            with planned(str(path), target="y", groups="g", hinges=False) as (found, plan):
                asked = Asked(segment, jobs=1)
                # Once whole: a fresh machine's memory costs more when it is first touched.
                warm = Path(folder) / f"w{width}"
                segments.run(plan.model(), found, plan, asked, warm, progress=False)
                guess = estimated(found, plan, asked, 1).cpu
                start = time.process_time()
                segments.run(
                    plan.model(), found, plan, asked, Path(folder) / f"m{width}", progress=False
                )
                truth = time.process_time() - start
            worst = max(worst, abs(guess / truth - 1.0))
            print(f"{rows:,} rows, d = {width}: {guess:.1f} s estimated, {truth:.1f} s measured")
    print(f"off by at most {worst:.0%} (target 25 %), {'met' if worst <= 0.25 else 'missed'}")
    return worst <= 0.25


def main() -> None:
    """Run what was asked for, or everything."""
    jobs = {"cost": cost, "memory": memory, "estimate": estimate}
    if sys.argv[1:2] == ["driver"]:
        driver(*sys.argv[2:])
        return
    met = [jobs[name]() for name in sys.argv[1:] or jobs]
    raise SystemExit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
