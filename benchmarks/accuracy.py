"""Real streams, predict then learn, against other online learners; certificates; small data sets.

    make bench-accuracy DATA=../shared/data    # or: python -m benchmarks.accuracy --data FOLDER

One fixed default for every file. What the certificates are worth, against those of a single ridge
a group with Specialists; on how many groups of small data sets the default is worse than a single
model; and the error of everybody on the whole stream and on the worst group (of those declared, and
of those that groupwise proposes), with and without past labels as features. It takes about an hour
on two cores, most of it river's forests; --keep FOLDER keeps the predictions of the others, and
later runs read them there.
"""

import argparse
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import groupwise as gw
from benchmarks.peers import PEERS, Predictor
from benchmarks.real_streams import SMALL, STREAMS, Stream
from groupwise.progress import progress_bar, stepping

Members = Mapping[str, NDArray[np.int64]]
LEAST = 100
"""The worst group is one of at least so many rows, and so are those whose certificates count."""
MARGIN = 0.002
"""A loss larger by this share is worse than another."""
TOLERANCE = 1.05
"""The worst group's error may exceed that of the best peer by this factor."""
COMMAND, DECLARED = "groupwise run", "groupwise, declared groups"
PLAIN = "Ridge(1.0), Specialists"


class Outcome(NamedTuple):
    """What groupwise predicted, its regret table, and the rows of each of its groups."""

    prediction: NDArray[np.float64]
    rows: list[dict[str, Any]]
    members: Members


class Score(NamedTuple):
    """Root mean square errors, in the units of the label."""

    whole: float
    worst: float
    group: str


def score(prediction: NDArray[np.float64], stream: Stream, members: Members) -> Score:
    """The error on all rows, and the largest on a group."""
    squares = (prediction - stream.label) ** 2
    large = {name: squares[rows].mean() for name, rows in members.items() if len(rows) >= LEAST}
    group = max(large, key=lambda name: float(large[name]))
    return Score(float(np.sqrt(squares.mean())), float(np.sqrt(large[group])), group)


def of_groupwise(stream: Stream, groups: Sequence[Any] | None = None, **parts: Any) -> Outcome:
    """The default of the library, or other parts, on the declared groups or on others."""
    declared = stream.groups if groups is None else groups
    model = gw.Groupwise(declared, loss=stream.loss, **parts)
    prediction = model.replay(stream.frame, stream.target).prediction
    return Outcome(prediction, model.regret().rows, stream.members())


def of_command(stream: Stream) -> Outcome:
    """What `groupwise run FILE --target COLUMN --order COLUMN` does, without its output."""
    from groupwise.files.run import Following

    with stream.planned() as (found, plan):
        following = Following(found, plan)
        said: list[float] = []
        members: defaultdict[str, list[int]] = defaultdict(list)
        for part in following.pieces(f"groupwise run, {stream.name}", None, True):
            assert part.replay is not None, "every row has a label"
            for row in range(len(part.replay.prediction)):
                for name in part.replay.groups(row):
                    members[name].append(len(said) + row)
            said.extend(part.replay.prediction)
        rows = following.finished(False).table.rows
    return Outcome(np.array(said), rows, {name: np.array(one) for name, one in members.items()})


def of_peers(
    streams: Sequence[Stream],
    peers: Mapping[str, Predictor] = PEERS,
    keep: Path | None = None,
    jobs: int = -1,
) -> Iterator[tuple[Stream, str, NDArray[np.float64]]]:
    """The predictions of each peer on each stream, kept in a folder if one is given."""
    from joblib import Parallel, delayed

    work = [(stream, name) for stream in streams for name in peers]
    rows = sum(len(stream.frame) for stream, _ in work)
    with progress_bar(rows, "peers") as advance:
        done = Parallel(n_jobs=jobs, return_as="generator")(
            delayed(_kept)(stream, name, peers[name], keep) for stream, name in work
        )
        for (stream, name), prediction in zip(work, done, strict=True):
            advance(len(stream.frame))
            yield stream, name, prediction


def _kept(stream: Stream, name: str, predict: Predictor, keep: Path | None) -> NDArray[np.float64]:
    """A peer's predictions, read where they were kept for the same rows."""
    from threadpoolctl import threadpool_limits

    if keep is None:
        with threadpool_limits(1):
            return predict(stream)
    rows = pd.util.hash_pandas_object(stream.frame, index=False).to_numpy().tobytes()
    columns = repr([*stream.frame.columns, *(group.to_dict() for group in stream.groups)])
    key = hashlib.sha256(columns.encode() + rows).hexdigest()[:16]
    file = keep / f"{stream.name}, {name}, {key}.npy"
    if not file.exists():
        np.save(file, _kept(stream, name, predict, None))
    return np.load(file)


def accuracy_table(
    streams: Sequence[Stream], found: Mapping[tuple[str, bool, str], Score], groups: str
) -> Table:
    """Errors of everybody on every stream, and whether ours are the least."""
    table = Table(
        *("stream", "model", "RMSE", "worst group", "which"),
        *("RMSE, past", "worst group, past", "which, past"),
        title=f"root mean square error, on all rows and on the worst {groups} group of ≥ {LEAST}",
    )
    for stream in streams:
        every = [name for of, _, name in found if of == stream.name]
        names = dict.fromkeys(every)
        for name in names:
            cells = [_cells(found.get((stream.name, past, name))) for past in (False, True)]
            table.add_row(f"{stream.name}, {stream.unit}", name, *cells[0], *cells[1])
        for ours in (COMMAND, DECLARED):
            table.add_row(stream.name, verdict(stream, ours, found), style="bold")
        table.add_section()
    for column in (2, 3, 5, 6):
        table.columns[column].justify = "right"
    return table


def _cells(one: Score | None) -> list[str]:
    if one is None:
        return ["", "", ""]
    return [_amount(one.whole), _amount(one.worst), one.group]


def _amount(error: float) -> str:
    """Four digits, or what it is to have diverged."""
    return f"{error:,.4g}" if error < 1e5 else "diverged"


def verdict(stream: Stream, ours: str, found: Mapping[tuple[str, bool, str], Score]) -> str:
    """Ours against the least error of a peer, with past labels or without."""
    scores = {name: one for (of, _, name), one in found.items() if of == stream.name}
    peers = [
        one
        for (of, _, name), one in found.items()
        if of == stream.name and name not in (COMMAND, DECLARED)
    ]
    if ours not in scores:
        return f"{ours}: not run"
    whole = scores[ours].whole / min(one.whole for one in peers)
    worst = scores[ours].worst / min(one.worst for one in peers)
    met = "met" if whole <= 1.0 and worst <= TOLERANCE else "missed"
    return f"{ours}: {whole:.3f} of the best peer, worst group {worst:.3f}: {met}"


def worth(outcome: Outcome) -> float:
    """The median over groups of certificate / best loss."""
    large = [row for row in outcome.rows if row["rounds"] >= LEAST]
    return median(row["certificate"] / row["best_loss"] for row in large)


def certificate_table(figures: Mapping[str, Sequence[float]]) -> Table:
    """Certificates in units of the best loss: by the command, then in pairs ours and before."""
    table = Table(
        *("stream", COMMAND, DECLARED, PLAIN, f"{DECLARED}, past", f"{PLAIN}, past", "verdict"),
        title=f"median certificate / best loss over groups of ≥ {LEAST} rounds",
    )
    for name, row in figures.items():
        command, ours, before, ours_past, before_past = row
        half = max(command, ours_past) <= before_past / 2.0 and ours <= before / 2.0
        cells = [f"{figure:.3f}" for figure in row]
        table.add_row(name, *cells, f"at most half: {'met' if half else 'missed'}")
    for column in range(1, 6):
        table.columns[column].justify = "right"
    return table


class Worse(NamedTuple):
    """Groups of a small data set on which the mixture lost more than others did."""

    groups: int
    than_alone: list[str]
    than_baseline: list[str]


def worse_than_single(stream: Stream) -> Worse:
    """Compare the default with the single model, everybody's first learner, and with itself without
    groups, which are features too.
    """
    members = stream.members()
    ours = of_groupwise(stream)
    alone = of_groupwise(stream, groups=())
    losses = [(one.prediction - stream.label) ** 2 for one in (ours, alone)]
    than_alone = [
        name
        for name, rows in members.items()
        if losses[0][rows].sum() > (1.0 + MARGIN) * losses[1][rows].sum()
    ]
    than_baseline = [
        row["group"]
        for row in ours.rows
        if row["group"] in members
        and row["loss"] > (1.0 + MARGIN) * (row["best_loss"] + row["baseline_regret"])
    ]
    return Worse(len(members), than_alone, than_baseline)


def small_table(figures: Mapping[str, Worse]) -> Table:
    """On how many groups a single model did better."""
    table = Table(
        *("data set", "declared groups", "than the single model", "than without groups", "which"),
        title=f"groups with a loss more than {MARGIN:.1%} above that of others",
    )
    for name, one in figures.items():
        which = ", ".join(dict.fromkeys([*one.than_baseline, *one.than_alone]))
        counts = (one.groups, len(one.than_baseline), len(one.than_alone))
        table.add_row(name, *map(str, counts), which)
    every = list(figures.values())
    groups = sum(one.groups for one in every)
    alone = sum(len(one.than_alone) for one in every)
    baseline = sum(len(one.than_baseline) for one in every)
    met = "met" if 20 * baseline <= groups else "missed"
    table.add_section()
    said = f"worse than the single model on at most 1 in 20: {met}"
    table.add_row("all", str(groups), str(baseline), str(alone), said)
    for column in (1, 2, 3):
        table.columns[column].justify = "right"
    return table


def main() -> None:
    """Measure, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--keep", type=Path, help="a folder for the predictions of the peers")
    parser.add_argument("--jobs", type=int, default=-1, help="processes; -1 for all cores")
    arguments = parser.parse_args()
    if arguments.keep is not None:
        arguments.keep.mkdir(parents=True, exist_ok=True)
    console = Console(width=180)
    streams = [make(arguments.data) for make in STREAMS.values()]
    pasts = {stream.name: stream.with_past() for stream in streams if stream.order}
    members: dict[str, dict[str, Members]] = {"declared": {}, "proposed": {}}
    found: dict[str, dict[tuple[str, bool, str], Score]] = {kind: {} for kind in members}
    certificates = {}

    def take(stream: Stream, past: bool, name: str, prediction: NDArray[np.float64]) -> None:
        for kind, groups in members.items():
            found[kind][stream.name, past, name] = score(prediction, stream, groups[stream.name])

    for stream in stepping(streams, "groupwise", True, "streams"):
        full = pasts.get(stream.name, stream)
        command, declared = of_command(stream), of_groupwise(full)
        members["declared"][stream.name] = stream.members()
        members["proposed"][stream.name] = command.members
        take(stream, bool(full.past), COMMAND, command.prediction)
        take(stream, bool(full.past), DECLARED, declared.prediction)
        if full.past:
            plain: dict[str, Any] = {
                "learner": gw.learners.Ridge(1.0),
                "aggregator": gw.aggregators.Specialists(),
            }
            pairs = [of_groupwise(stream), of_groupwise(stream, **plain)]
            pairs += [declared, of_groupwise(full, **plain)]
            certificates[stream.name] = [worth(one) for one in (command, *pairs)]
    console.print(certificate_table(certificates))
    small = stepping(list(SMALL.items()), "small data sets", True, "data sets")
    console.print(
        small_table({name: worse_than_single(make(arguments.data)) for name, make in small})
    )
    every = [*streams, *pasts.values()]
    for one, name, prediction in of_peers(every, PEERS, arguments.keep, arguments.jobs):
        take(one, bool(one.past), name, prediction)
    for kind, scores in found.items():
        console.print(accuracy_table(streams, scores, kind))


if __name__ == "__main__":
    main()
