"""Lending as apple tasting: whether an applicant repays is seen only if the loan is given.

The stream's labels are known to the experiment, and not to the lender. Applicants are the people of
the UCI Adult data, or a generated stand-in.
"""

import csv
import gzip
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.datasets._files import ENVIRONMENT, DataFile, locate
from groupwise.errors import DatasetError
from groupwise.paper import classification as generated
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.engine import in_processes
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number, over_seeds

SEEDS = tuple(range(1_000, 1_005))
LENGTHS = (1_000, 3_162, 10_000, 31_623, 100_000)
SLOPE = 0.70
WARM = 1_000
"""Rounds after which all kernels are compiled, and all groups were seen."""
WAYS = {
    "horizon known": {"known": True, "keep_state": False},
    "unknown, restarting": {"known": False, "keep_state": False},
    "unknown, keeping state": {"known": False, "keep_state": True},
}

FILE = DataFile(
    name="adult.data",
    address="https://archive.ics.uci.edu/ml/machine-learning-databases/adult/adult.data",
    sha256="5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
)
TABLE_NAMES = ("adult_uci.csv.gz", "adult_uci.csv")
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)
STAND_IN_ROWS = 30_000
REAL, GENERATED = "Applicants", "Generated applicants"
"""What the tables call them."""
STAND_IN_SEED = 21

FIELDS = [
    "over_35",
    "over_50",
    "some_college",
    "degree",
    "married",
    "full_time",
    "long_hours",
    "office",
    "self_employed",
    "has_gains",
    "has_losses",
    "native",
]
GROUP_FIELDS = ["sex", "race", "age_group"]

Record = dict[str, str]


class Stream(NamedTuple):
    """Rows for the model, their bits, labels, and who is in which group."""

    rows: Sequence[dict[str, Any]]
    bits: Vector
    labels: Vector
    membership: NDArray[np.bool_]
    groups: tuple[str, ...]


class Tasted(NamedTuple):
    """Per group: rounds, a single learner's regret, ours with payments, what the lender estimates.

    In the order of the table's columns.
    """

    rounds: Vector
    baseline: Vector
    regret: Vector
    estimate: Vector
    payments: Vector


def run(request: Request) -> Outcome:
    """The slope on generated streams, then the applicants."""
    seeds = SEEDS[: request.seeds]
    longest = request.rounds or LENGTHS[-1]
    lengths = [length for length in LENGTHS if length <= longest] or [longest]
    people, who, note = applicants(request.data, request.rounds)
    if who == GENERATED:
        request.say(note)
    tasks = [partial(on_generated, length, seed) for length in lengths for seed in seeds]
    tasks += [partial(on_applicants, people, way, seed) for way in WAYS for seed in seeds]
    on_generated(WARM, seeds[0])  # what all processes need is compiled once, and said to be
    on_applicants(stream_of(stand_in(WARM)), next(iter(WAYS)), seeds[0])
    found = list(in_processes(tasks, request.jobs, request.what))
    worst = np.array([tasted.regret.max() for tasted in found[: len(lengths) * len(seeds)]])
    worst = worst.reshape(len(lengths), -1).mean(axis=1)
    on_people = np.array_split(np.array(found[len(lengths) * len(seeds) :]), len(WAYS))
    lent = dict(zip(WAYS, on_people, strict=True))
    x = np.log10(np.array(lengths, dtype=np.float64))
    y = np.log10(np.where(worst > 0.0, worst, np.nan))  # a few rounds may have no regret
    drawn = np.isfinite(y)
    slope = float(np.polyfit(x[drawn], y[drawn], 1)[0]) if drawn.sum() > 1 else np.nan
    tables = [
        _slope_table(lengths, worst),
        *(table_of(f"{who}, {way}", lent[way], people) for way in WAYS),
    ]
    numbers = {
        f"{way}/{group}/regret": float(runs[:, 2, g].mean())
        for way, runs in lent.items()
        for g, group in enumerate(people.groups)
    }
    check = Check(
        f"The worst group’s regret grows with a slope of at most {SLOPE} in log-log",
        slope <= SLOPE,
        number(slope),
    )
    x, y = x[drawn], y[drawn]
    fit = np.asarray(np.mean(y) - slope * np.mean(x) + slope * x if y.size else y, dtype=np.float64)
    lines = (
        Line("worst group’s regret", x, y, colour=1, style="marked"),
        Line(f"slope {slope:.2f}", x, fit, colour=0, style="dashed"),
    )
    figure = Figure(
        "lending-slope",
        "The worst group’s regret, payments included, against the length of the stream, both as "
        "powers of ten.",
        "log₁₀ T",
        "log₁₀ regret",
        (Panel("known horizon", lines),),
        columns=1,
    )
    return Outcome(tables, [figure], [check], {"slope": slope, **numbers}, [note])


def taste(lender: gw.AppleTasting, stream: Stream) -> Tasted:
    """Run the lender; losses are expectations over the aggregator's draw, acceptances forced."""
    lost, alone = np.empty((2, len(stream.labels)))
    for t, (row, label) in enumerate(zip(stream.rows, stream.labels.tolist(), strict=True)):
        ticket = lender.predict(row)
        wrong = np.abs(ticket.advice - label)
        lost[t] = 1.0 - label if ticket.wants_label else float(ticket.weights @ wrong)
        alone[t] = 1.0 - label if ticket.wants_label else wrong[-1]  # always_on comes last
        if ticket.wants_label:
            lender.learn(ticket, int(label))
    explored = {row["group"]: row for row in lender.regret()}
    unknown = {"regret": np.nan, "payments": 0.0}  # of groups that were never explored
    table = [explored.get(group, unknown) for group in stream.groups]
    best = np.array([best_stump_loss(stream, group) for group in stream.membership.T])
    return Tasted(
        stream.membership.sum(axis=0).astype(np.float64),
        stream.membership.T @ alone - best,
        stream.membership.T @ lost - best,
        np.array([row["regret"] for row in table]),
        np.array([row["payments"] for row in table]),
    )


def best_stump_loss(stream: Stream, member: NDArray[np.bool_]) -> float:
    """The errors of the best stump on a group's rounds."""
    labels = stream.labels[member]
    wrong = np.append(np.abs(stream.bits[member] - labels[:, None]).sum(axis=0), labels.sum())
    return float(min(wrong.min(), len(labels) - wrong.max()))  # of a stump, or of its opposite


def on_generated(length: int, seed: int) -> Tasted:
    """One run on a generated stream, with the horizon known."""
    lender = gw.AppleTasting(generated.labeller("transductive", 1, seed), horizon=length)
    return taste(lender, generated_stream(length, seed))


def generated_stream(length: int, seed: int) -> Stream:
    """The stream of the classification experiment, nothing adaptive in it."""
    rng = np.random.default_rng(seed)
    stumps = generated.stump_table()
    chosen = rng.permutation(len(stumps))[: generated.GROUPS + 1]
    context = rng.integers(len(generated.CONTEXTS), size=length)
    member = rng.random((length, generated.GROUPS)) < generated.MEMBERSHIP
    active = np.where(member.any(axis=1), member.argmax(axis=1), generated.GROUPS)
    labels = np.abs(stumps[chosen[active], context] - (rng.random(length) < generated.NOISE))
    bits = generated.CONTEXTS[context]
    names = [f"group{g}" for g in range(generated.GROUPS)]
    rows = [
        dict(zip([*generated.FIELDS, *names], cells, strict=True))
        for cells in np.column_stack([bits, member]).astype(int).tolist()
    ]
    groups = (*(f"{name}=1" for name in names), "always_on")
    return Stream(rows, bits, labels, np.insert(member, member.shape[1], True, axis=1), groups)


def on_applicants(people: Stream, way: str, seed: int) -> Tasted:
    """One run over all applicants in random order."""
    order = np.random.default_rng(seed).permutation(len(people.labels))
    stream = Stream(
        [people.rows[i] for i in order.tolist()],
        people.bits[order],
        people.labels[order],
        people.membership[order],
        people.groups,
    )
    learner = gw.learners.ContextualFTPL(
        gw.oracles.Stumps(), gw.oracles.Stumps().separator(len(FIELDS)), "separator"
    )
    model = gw.Groupwise(
        [gw.by(field) for field in GROUP_FIELDS],
        learner,
        loss=gw.losses.ZeroOne(),
        features=FIELDS,
        seed=seed,
    )
    horizon = len(order) if WAYS[way]["known"] else None
    return taste(gw.AppleTasting(model, horizon, WAYS[way]["keep_state"]), stream)


def _slope_table(lengths: list[int], worst: Any) -> Table:
    return Table(
        "Generated streams, horizon known",
        (Column("T"), Column("Worst group’s regret"), Column("per T^{2/3}")),
        tuple(
            (Cell(f"{t:,}"), Cell(number(w, 1)), Cell(number(w / t ** (2 / 3), 3)))
            for t, w in zip(lengths, worst.tolist(), strict=True)
        ),
    )


def table_of(title: str, runs: Any, people: Stream) -> Table:
    """One way's figures by group."""
    columns = (
        Column("Group", numeric=False),
        Column("Rounds"),
        Column("single learner", "Regret"),
        Column("ours", "Regret"),
        Column("estimate", "Lender’s"),
        Column("payments", "Lender’s"),
    )
    return Table(
        title,
        columns,
        tuple(
            (Cell(group), Cell(f"{rounds[0]:,.0f}"), *(Cell(_known(some)) for some in others))
            for group, (rounds, *others) in zip(people.groups, runs.transpose(2, 1, 0), strict=True)
        ),
        "Regrets with forced acceptances, and what the lender estimates of its own; means ± "
        "standard deviations over the seeds. A group of which no round was explored has no "
        "estimate.",
    )


def _known(values: Vector) -> str:
    """Mean and spread of what is known of some seeds."""
    finite = values[np.isfinite(values)]
    return over_seeds(finite) if finite.size else "–"


def applicants(data: str | os.PathLike[str] | None, limit: int | None) -> tuple[Stream, str, str]:
    """The stream of applicants in the file's order, what to call them, and where they come from.

    Without the file they are generated, unless a place was given where it should be.
    """
    try:
        path = find(data)
    except DatasetError as error:
        named = data or os.environ.get(ENVIRONMENT)
        if named and not Path(named).is_dir():
            raise
        if data is not None:
            raise DatasetError(
                f"Neither {TABLE_NAMES[0]} nor {FILE.name} is in {data}, and {FILE.address} cannot "
                "be downloaded. Put one of them there, or leave out --data: then applicants are "
                "generated."
            ) from error
        records, who = stand_in(), GENERATED
        note = (
            f"The applicants are {len(records):,} generated people, not those of the UCI Adult "
            f"data, which cannot be had. Give --data the folder that {TABLE_NAMES[0]} is in."
        )
    else:
        records, who = read(path), REAL
        note = (
            f"The applicants are {len(records):,} people of the UCI Adult data, from {path.name}."
        )
    return stream_of(records[:limit]), who, note


def find(data: str | os.PathLike[str] | None) -> Path:
    """The file that is given, or one in the folder; else the UCI's own file, downloaded."""
    if data is not None and Path(data).is_file():
        return Path(data)
    places = [Path(place) for place in (data, os.environ.get(ENVIRONMENT)) if place]
    tables = (place / name for place in places for name in TABLE_NAMES)
    return next(filter(Path.is_file, tables), None) or locate(FILE, data_dir=data)


def read(path: Path) -> list[Record]:
    """The records of a file with a header, or of the UCI's own, which has none."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", newline="", encoding="utf-8") as stream:
        lines = [line for line in csv.reader(stream, skipinitialspace=True) if line]
    header, rows = (lines[0], lines[1:]) if "income" in lines[0] else (COLUMNS, lines)
    missing = set(COLUMNS) - set(header)
    if missing or any(len(row) != len(header) for row in rows):
        raise DatasetError(f"{path} is not the Adult data: it lacks {', '.join(sorted(missing))}.")
    return [dict(zip(header, row, strict=True)) for row in rows]


def stand_in(count: int = STAND_IN_ROWS) -> list[Record]:
    """Generated people with the columns that are used; no relation to anybody."""
    rng = np.random.default_rng(STAND_IN_SEED)
    records = []
    for _ in range(count):
        age, school = int(rng.integers(18, 75)), int(rng.integers(5, 17))
        hours, married = int(rng.normal(40, 10)), rng.random() < 0.5
        score = 0.25 * (school - 10) + 0.03 * (age - 40) + 1.5 * married + 0.03 * (hours - 40) - 1.5
        records.append(
            {
                "age": str(age),
                "education-num": str(school),
                "marital-status": "Married-civ-spouse" if married else "Never-married",
                "hours-per-week": str(hours),
                "occupation": str(rng.choice(["Exec-managerial", "Sales", "Craft-repair"])),
                "workclass": "Self-emp-inc" if rng.random() < 0.1 else "Private",
                "capital-gain": str(int(rng.random() < 0.08) * 5_000),
                "capital-loss": str(int(rng.random() < 0.05) * 1_500),
                "native-country": "United-States" if rng.random() < 0.9 else "Mexico",
                "sex": "Male" if rng.random() < 0.6 else "Female",
                "race": str(rng.choice(["White", "Black", "Other"], p=[0.8, 0.15, 0.05])),
                "income": ">50K" if rng.random() < 1.0 / (1.0 + np.exp(-score)) else "<=50K",
            }
        )
    return records


def stream_of(records: list[Record]) -> Stream:
    """Bits, groups and labels."""
    rows = [_row(record) for record in records]
    labels = np.array([float(record["income"].startswith(">50K")) for record in records])
    bits = np.array([[row[field] for field in FIELDS] for row in rows], dtype=np.float64)
    names = sorted({f"{field}={row[field]}" for row in rows for field in GROUP_FIELDS})
    member = np.array(
        [[row[name.split("=")[0]] == name.split("=")[1] for name in names] for row in rows]
    )
    return Stream(
        rows, bits, labels, np.insert(member, member.shape[1], True, axis=1), (*names, "always_on")
    )


def _row(record: Record) -> dict[str, int | str]:
    age, school, hours = (
        int(record[column]) for column in ("age", "education-num", "hours-per-week")
    )
    bits = {
        "over_35": age > 35,
        "over_50": age > 50,
        "some_college": school >= 10,
        "degree": school >= 13,
        "married": record["marital-status"].startswith("Married"),
        "full_time": hours >= 40,
        "long_hours": hours > 45,
        "office": record["occupation"] in ("Exec-managerial", "Prof-specialty", "Tech-support"),
        "self_employed": record["workclass"].startswith("Self"),
        "has_gains": int(record["capital-gain"]) > 0,
        "has_losses": int(record["capital-loss"]) > 0,
        "native": record["native-country"] == "United-States",
    }
    return {
        **{field: int(bit) for field, bit in bits.items()},
        "sex": record["sex"],
        "race": record["race"],
        "age_group": "young" if age <= 35 else "middle" if age <= 50 else "old",
    }


STUDY = Study(
    "Lending: labels only where a loan is given",
    "Apple tasting: the label is seen only where the prediction is 1. One round of every block "
    "of ⌈T^{1/3}⌉ is explored, which means accepted whatever the model says, and only explored "
    "rounds are learned from. First, a generated stream of growing length T, with stumps and "
    "four groups: the regret of the worst group, forced acceptances included, grows like "
    "T^{2/3}. Then applicants, who are the people of the UCI Adult data (or generated ones, where "
    "that cannot be had), an income above 50,000 standing for repayment, stumps on bits of their "
    "records, and groups by sex, race and age. "
    "The horizon is known, or guessed and doubled: starting afresh at each doubling is what the "
    "proof needs, keeping what was learned does better here (measured, not proved). Regret is "
    "computed from all labels, which the lender never sees; what it reports itself is an "
    "estimate from its explored rounds.",
    run,
)
