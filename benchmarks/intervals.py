"""Intervals: coverage and width on every group, beside split conformal prediction on each of them.

    make bench-intervals DATA=../shared/data    # or: python -m benchmarks.intervals --data FOLDER

Ours are those of the default with ``intervals=0.9``, around its own predictions, one interval a row
for all groups that the row is in. The other is crepes around scikit-learn's ridge: for every group
alone, refitted whenever 500 more of its rows have come, one half of its past for the model and the
other for the quantile. It begins where a group has 500 rows; widths are compared on the same rows.
Both have the same columns (text and numbers of few values as 0/1 columns for ridge), and both cut
intervals to the range of the labels.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import groupwise as gw
from benchmarks.real_streams import bike, insurance
from groupwise.datasets.synthetic import synthetic
from groupwise.progress import progress_bar

COVERAGE = 0.9
EVERY = 500
"""Rows of a group between two fits; groups with fewer are not looked at."""
FEW = 25
"""Numbers of at most so many values are levels for ridge, as they are groups for groupwise."""
OFF = 0.015
"""So far coverage may be from what is asked for, on any group of at least 500 rounds."""
WIDER = 1.1
"""So much wider than the others' intervals ours may be on average."""

Numbers = NDArray[np.float64]
Members = dict[str, NDArray[np.int64]]


class Stream(NamedTuple):
    """Rows in order: what ridge sees, labels, the rows of every group, and our intervals."""

    name: str
    columns: Numbers
    label: Numbers
    members: Members
    ends: Numbers


class Line(NamedTuple):
    """What came of a group."""

    group: str
    rounds: int
    covered: float
    width: float
    """On the rows on which the others have an interval too."""
    their_covered: float
    their_width: float


def of_files(folder: Path) -> Iterator[Stream]:
    """Insurance and bike hire."""
    for stream in (insurance(folder), bike(folder)):
        model = gw.Groupwise(list(stream.groups), loss=stream.loss, intervals=COVERAGE)
        found = model.replay(stream.frame, stream.target).interval
        assert found is not None
        fields = stream.fields
        few = [name for name in fields if fields[name].nunique() <= FEW]
        columns = pd.get_dummies(fields.astype(dict.fromkeys(few, str)), dtype=float)
        everybody = {"always_on": np.arange(len(fields))}
        members = stream.members() | everybody
        yield Stream(stream.name, columns.to_numpy(float), stream.label, members, found)


def of_paper() -> Iterator[Stream]:
    """The paper's synthetic data, 20,000 rows in a random order."""
    for kind in ("mean", "max", "permutation"):
        data = synthetic(kind, rows=20_000)
        data = data.take(np.random.default_rng(0).permutation(data.rows))
        columns = np.column_stack([data.features, np.ones(data.rows)])
        names, groups = data.group_names, data.membership.astype(float)
        found = gw.replay(columns, data.label, groups, names=names, intervals=COVERAGE, keep=())
        assert found.interval is not None
        members = {name: np.flatnonzero(groups[:, g]) for g, name in enumerate(names)}
        yield Stream(f"synthetic, {kind}", data.features, data.label, members, found.interval)


def inside(ends: Numbers, label: Numbers) -> NDArray[np.bool_]:
    """Which labels are in their intervals; in an empty one none is."""
    return np.asarray((ends[:, 0] <= label) & (label <= ends[:, 1]))


def widths(ends: Numbers) -> Numbers:
    """From end to end; 0 where empty."""
    return np.nan_to_num(np.maximum(ends[:, 1] - ends[:, 0], 0.0))


def split_conformal(stream: Stream, rows: NDArray[np.int64]) -> Numbers:
    """The others' intervals for the rows of a group from the 501st on."""
    from crepes import WrapRegressor
    from sklearn.linear_model import Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    low, high = stream.label.min(), stream.label.max()
    generator = np.random.default_rng(0)
    found = []
    for start in range(EVERY, len(rows), EVERY):
        past, now = generator.permutation(rows[:start]), rows[start : start + EVERY]
        fit, calibrate = past[: start // 2], past[start // 2 :]
        wrapped = WrapRegressor(make_pipeline(StandardScaler(), Ridge()))
        wrapped.fit(stream.columns[fit], stream.label[fit])
        wrapped.calibrate(stream.columns[calibrate], stream.label[calibrate])
        limits = {"y_min": low, "y_max": high}
        found.append(wrapped.predict_int(stream.columns[now], confidence=COVERAGE, **limits))
    return np.concatenate(found)


def lines_of(stream: Stream) -> Iterator[Line]:
    """Every group of more than 500 rows."""
    for group, rows in stream.members.items():
        if len(rows) <= EVERY:
            continue
        later = rows[EVERY:]
        theirs = split_conformal(stream, rows)
        yield Line(
            group,
            len(rows),
            float(inside(stream.ends[rows], stream.label[rows]).mean()),
            float(widths(stream.ends[later]).mean()),
            float(inside(theirs, stream.label[later]).mean()),
            float(widths(theirs).mean()),
        )


def summary(lines: list[Line]) -> tuple[float, float, float]:
    """The largest error of coverage, ours and theirs, and our mean width as a share of theirs.

    Widths are over all pairs of a row and a group that it is in.
    """
    pairs = np.array([line.rounds - EVERY for line in lines], dtype=float)
    ours, theirs = (pairs @ np.array([one[i] for one in lines]) for i in (3, 5))
    off = max(abs(line.covered - COVERAGE) for line in lines)
    their_off = max(abs(line.their_covered - COVERAGE) for line in lines)
    return off, their_off, float(ours / theirs)


def main() -> None:
    """Measure everything and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of the files")
    parser.add_argument("--groups", action="store_true", help="show every group")
    asked = parser.parse_args()
    console = Console()
    found: dict[str, list[Line]] = {}
    streams = [*of_files(asked.data), *of_paper()]
    with progress_bar(sum(len(one.members) for one in streams), "split conformal") as advance:
        for stream in streams:
            found[stream.name] = []
            for line in lines_of(stream):
                found[stream.name].append(line)
                advance(1)
    heads = ("stream", "groups", "off, points", "theirs", "width / theirs", "")
    table = Table(*heads, title=f"intervals that are to cover {COVERAGE:.0%}")
    for name, lines in found.items():
        off, their_off, wider = summary(lines)
        met = off <= OFF and wider <= WIDER
        figures = f"{100 * off:.2f}", f"{100 * their_off:.2f}", f"{wider:.3f}"
        table.add_row(name, str(len(lines)), *figures, "[green]met" if met else "[red]missed")
    console.print(table)
    if asked.groups:
        for name, lines in found.items():
            each = Table(
                *("group", "rounds", "covered", "theirs", "width", "theirs", "ratio"), title=name
            )
            for line in lines:
                shares = f"{line.covered:.3f}", f"{line.their_covered:.3f}"
                sizes = f"{line.width:,.4g}", f"{line.their_width:,.4g}"
                ratio = f"{line.width / line.their_width:.2f}"
                each.add_row(line.group, f"{line.rounds:,}", *shares, *sizes, ratio)
            console.print(each)


if __name__ == "__main__":
    main()
