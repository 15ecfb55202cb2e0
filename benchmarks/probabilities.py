"""Log loss on real streams, on the whole and on the worst group, against river, in one run.

    python -m benchmarks.probabilities --data ../shared/data

Adult (is the income above 50,000?) and bike sharing (is an hour's count above its median?), both in
the order of their files, predict then learn, everything default. Everybody gets the same features:
numbers, a 0/1 column for every value of a text, and one for every group. River's logistic
regression has its scaler before it, for the numbers (of columns that are mostly 0 it would leave
nothing): with its default, and with the best of four learning rates, chosen afterwards for each
file.
"""

import argparse
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

import groupwise as gw
from groupwise.arrays import Vector

RATES = (0.001, 0.01, 0.1, 1.0)
LEAST = 300
"""The worst group is one of at least so many rows."""
TARGETS = {"Adult": 0.331, "bike sharing": 0.20}


class Stream(NamedTuple):
    """Rows in order, 0/1 labels in the column y, and the groups that are declared."""

    frame: pd.DataFrame
    groups: list[Any]


def adult(folder: Path) -> Stream:
    """Income above 50,000, by sex, race, age and kind of work."""
    frame = pd.read_csv(folder / "adult_uci.csv.gz", skipinitialspace=True, keep_default_na=False)
    frame["y"] = frame.pop("income").str.contains(">50K").astype(float)
    ages = gw.cut("age", [25, 35, 45, 55, 65])
    groups = [gw.by("sex"), gw.by("race"), ages, gw.by("workclass")]
    return Stream(frame.drop(columns="split"), groups)


def bike(folder: Path) -> Stream:
    """A count above the median, by hour, day, season and weather."""
    frame = pd.read_csv(folder / "bike_sharing_hour.csv.gz")
    frame["y"] = (frame["cnt"] > frame["cnt"].median()).astype(float)
    names = ("hr", "weekday", "workingday", "season", "weathersit")
    counted = ["cnt", "casual", "registered", "instant", "dteday"]
    return Stream(frame.drop(columns=counted), [gw.by(name) for name in names])


def of_groupwise(stream: Stream) -> tuple[Vector, list[list[str]]]:
    """The losses of every row, and the groups that it is in."""
    model = gw.Groupwise(stream.groups, loss=gw.losses.Log())
    result = model.replay(stream.frame, "y")
    return result.loss, [result.groups(t) for t in range(len(stream.frame))]


def of_one(stream: Stream, groups: list[list[str]]) -> Vector:
    """A single Logistic for everybody."""
    names = sorted({name for one in groups for name in one})
    members = np.array([[float(name in one) for name in names] for one in groups])
    indicators = pd.DataFrame(members, columns=[f"in {name}" for name in names])
    model = gw.Groupwise([], gw.learners.Logistic(), loss=gw.losses.Log())
    return model.replay(pd.concat([stream.frame, indicators], axis=1), "y").loss


def rows_for_river(
    stream: Stream, groups: list[list[str]]
) -> Iterator[tuple[dict[str, float], bool]]:
    """Numbers, a feature for every value of a text, and one for every group."""
    for row, names in zip(stream.frame.to_dict("records"), groups, strict=True):
        label = row.pop("y") > 0.5
        texts = {f"{name}={value}": 1.0 for name, value in row.items() if isinstance(value, str)}
        numbers = {n: float(value) for n, value in row.items() if not isinstance(value, str)}
        yield {**numbers, **texts, **dict.fromkeys(names, 1.0)}, label


def of_river(stream: Stream, groups: list[list[str]], rate: float | None) -> Vector:
    """River's logistic regression, numbers scaled."""
    from river import compose, linear_model, optim, preprocessing

    optimizer = None if rate is None else optim.SGD(rate)
    numbers = {name for name, kind in stream.frame.dtypes.items() if kind.kind in "if"} - {"y"}
    scaled = compose.Select(*numbers) | preprocessing.StandardScaler()
    model = (scaled + compose.Discard(*numbers)) | linear_model.LogisticRegression(optimizer)
    losses = []
    for row, label in rows_for_river(stream, groups):
        p = min(max(model.predict_proba_one(row).get(label, 0.0), 1e-15), 1.0)
        losses.append(-math.log(p))
        model.learn_one(row, label)
    return np.array(losses)


def worst(losses: Vector, groups: list[list[str]]) -> tuple[float, str]:
    """The largest mean loss of a group, and its name."""
    members: dict[str, list[int]] = {}
    for row, names in enumerate(groups):
        for name in names:
            members.setdefault(name, []).append(row)
    means = {name: float(losses[rows].mean()) for name, rows in members.items()}
    large = [name for name, rows in members.items() if len(rows) >= LEAST]
    return max((means[name], name) for name in large)


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    folder = parser.parse_args().data
    table = Table("stream", "model", "mean log loss", "worst group", "which", title="nats a row")
    for column in (2, 3):
        table.columns[column].justify = "right"
    makers: dict[str, Callable[[Path], Stream]] = {"Adult": adult, "bike sharing": bike}
    with Progress(transient=True) as progress:
        task = progress.add_task("measuring", total=2 * (3 + len(RATES)))
        for name, make in makers.items():
            stream = make(folder)
            ours, groups = of_groupwise(stream)
            progress.advance(task)
            found = {"groupwise": ours, "one Logistic for everybody": of_one(stream, groups)}
            progress.advance(task)
            found["river LogisticRegression"] = of_river(stream, groups, None)
            progress.advance(task)
            tried = []
            for rate in RATES:
                tried.append((rate, of_river(stream, groups, rate)))
                progress.advance(task)
            rate, best = min(tried, key=lambda one: float(one[1].mean()))
            found[f"river, rate {rate:g} (best of four)"] = best
            for model, losses in found.items():
                size, which = worst(losses, groups)
                table.add_row(name, model, f"{losses.mean():.4f}", f"{size:.4f}", which)
            verdict = "met" if ours.mean() <= TARGETS[name] else "missed"
            table.add_section()
            table.add_row(name, f"target: at most {TARGETS[name]:g}", verdict)
            table.add_section()
    Console().print(table)


if __name__ == "__main__":
    main()
