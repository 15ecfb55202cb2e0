"""Models of earlier versions, and what must come out when a later one goes on with them.

    PYTHONPATH=<an earlier version>/src python tests/snapshots/make.py files schema_1
    PYTHONPATH=<an earlier version>/src python tests/snapshots/make.py figures schema_1
    PYTHONPATH=<an earlier version>/src python tests/snapshots/make.py figures scratch

``files`` writes a snapshot in mid-stream and its outstanding tickets for every case, ``figures``
what the version on the path makes of the files that are there. ``schema_1`` was written by commit
3173f1a, the last to keep to that schema, and ``schema_2`` by 7bb41e1; all figures are those of
7bb41e1. ``tests/test_compatibility.py`` goes on with the same code and compares. Do not make the
files again to please a test: they stand for those that people have kept.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import numpy as np

import groupwise as gw
from groupwise.learners import FTPL, ContextualFTPL, Foreign, Ridge

FOLDER = Path(__file__).parent
SCRATCH_FIGURES = "figures_without_files.json"

Rounds = list[tuple[dict[str, Any], Any]]
"""Rows with their labels."""

# ------------------------------------------------------------------------------------------------
# Streams. Nothing but Random.random is drawn from: its sequence is promised for every Python.


def pick(rng: Random, options: Any) -> Any:
    """One of the options."""
    return options[int(rng.random() * len(options))]


def shuffled(rng: Random, items: list[Any]) -> list[Any]:
    """The items in another order."""
    keys = [rng.random() for _ in items]
    return [items[i] for i in sorted(range(len(items)), key=keys.__getitem__)]


def people(rng: Random, count: int, later: bool) -> Rounds:
    """People with a label in [0, 1]; ``later`` there are a region and a feature more."""
    rounds = []
    for _ in range(count):
        sex, region = pick(rng, "fm"), pick(rng, ("north", "east", "south", "west")[: 3 + later])
        age, bmi = rng.random(), 2.0 * rng.random() - 0.5
        row = {"sex": sex, "region": region, "age": age, "bmi": bmi}
        if later:
            row["income"] = rng.random()
        label = 0.2 + 0.3 * age + 0.2 * bmi * (1 if sex == "f" else -1) + 0.3 * rng.random()
        rounds.append((row, min(1.0, max(0.0, label))))
    return rounds


def labelled(label: Callable[[float], float]) -> Callable[[Random, int, bool], Rounds]:
    """People with another label."""

    def rows(rng: Random, count: int, later: bool) -> Rounds:
        return [(row, label(y)) for row, y in people(rng, count, later)]

    return rows


def smokers(rng: Random, count: int, later: bool) -> Rounds:
    """People who smoke, or are likely to."""
    rounds = people(rng, count, later)
    for row, _ in rounds:
        row["smoker"] = rng.random() < 0.3
        row["likely"] = pick(rng, (0.0, 1.0, rng.random()))
    return rounds


def some_missing(rng: Random, count: int, later: bool) -> Rounds:
    """People some of whom do not say where they are from."""
    rounds = people(rng, count, later)
    return [({**row, "region": pick(rng, (row["region"], None))}, y) for row, y in rounds]


def one_hot(rng: Random, count: int, later: bool) -> Rounds:
    """Two columns of levels: each adds up to the same constant, so they are collinear."""
    rounds = []
    for _ in range(count):
        row = {"a": pick(rng, "uv"), "b": pick(rng, "xyz"[: 2 + later]), "one": 1.0}
        rounds.append((row, 0.25 * (row["a"] == "u") + 0.25 * (row["b"] == "x") + rng.random() / 2))
    return rounds


def many_levels(rng: Random, count: int, later: bool) -> Rounds:
    """A column with many values, most cells of a row are 0; in later rows there are still more."""
    rounds = []
    for t in range(count):
        code = int(80 * rng.random()) if later else t % 66
        age = rng.random()
        row = {"code": f"c{code}", "age": age, "bmi": 0.0}
        rounds.append((row, 0.5 * age + 0.5 * rng.random()))
    return rounds


def wide(rng: Random, count: int, later: bool) -> Rounds:
    """Seventy numbers, all there."""
    del later
    rounds = []
    for _ in range(count):
        row = {f"x{i}": rng.random() for i in range(70)}
        rounds.append((row, 0.5 * row["x0"] + 0.5 * row["x1"]))
    return rounds


def weather(label: Callable[[Random, int, int], Any]) -> Callable[[Random, int, bool], Rounds]:
    """Two bits and a group column; ``later`` the column has a third value. For actions."""

    def rows(rng: Random, count: int, later: bool) -> Rounds:
        rounds = []
        for _ in range(count):
            a, b = int(rng.random() < 0.5), int(rng.random() < 0.5)
            rain = pick(rng, ("no", "yes", "hail")[: 2 + later])
            row = {"a": a, "b": b, "rain": rain, "share": pick(rng, (0.0, 0.25, 1.0))}
            rounds.append((row, label(rng, a, b)))
        return rounds

    return rows


def bit(rng: Random, a: int, b: int) -> int:
    """A label 0 or 1, mostly the first bit."""
    del b
    return int(rng.random() < (0.9 if a else 0.1))


def bits(rng: Random, a: int, b: int) -> list[int]:
    """Two labels."""
    return [bit(rng, a, b), int(rng.random() < (0.2 if b else 0.7))]


def costs(rng: Random, a: int, b: int) -> list[float]:
    """The costs of six edges."""
    del a, b
    return [0.9 * rng.random() for _ in range(6)]


def three_costs(rng: Random, a: int, b: int) -> list[float]:
    """Costs of any sign that every action's are within [-1, 1] for."""
    del a, b
    return [2.0 * rng.random() / 3.0 - 1.0 / 3.0 for _ in range(3)]


# ------------------------------------------------------------------------------------------------
# Cases


@dataclass(frozen=True)
class Case:
    """A model, the rows that it meets, and how many before and after the file is written."""

    make: Callable[[], Any]
    rows: Callable[[Random, int, bool], Rounds] = people
    frame: str | None = "pyarrow"
    """Of which library the frame is that is replayed at the end; None where none can be."""
    lead: int = 0
    """How many rows are replayed before anything else."""
    before: int = 50
    after: int = 24


BY = (gw.by("sex"), gw.by("region"))
EDGES = [("s", "u"), ("s", "v"), ("u", "t"), ("v", "t"), ("u", "v"), ("v", "u")]
AHEAD = [("s", "u"), ("s", "v"), ("u", "t"), ("v", "t"), ("u", "v"), ("s", "t")]
THREE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.0, 0.5], [0.2, 0.3, 0.5]]
CONTEXTS = [[0, 0], [0, 1], [1, 0], [1, 1]]
TABLE = [[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0]]
LABELS = [[[x, 1 - x] for x in row] for row in TABLE] + [[[0, 0]] * 4]
PORTFOLIO = [Ridge(1.0), Ridge(0.01), Ridge(100.0), Ridge(1.0, forward=True)]


EARLIER = {"intercept": False, "max_levels": None}
"""What models of earlier versions did by default, where they knew no such choice."""


def model_of(*arguments: Any, **options: Any) -> gw.Groupwise:
    """A model with the defaults that the figures were made with."""
    known = signature(gw.Groupwise).parameters
    given = dict(zip(known, arguments, strict=False)) | options
    earlier = {name: value for name, value in EARLIER.items() if name in known}
    return gw.Groupwise(**earlier | parts_of(given) | given)


def parts_of(options: dict[str, Any]) -> dict[str, Any]:
    """The learner and the aggregator that earlier versions had by default."""
    log = isinstance(options.get("loss"), gw.losses.Log)
    return {} if log else {"learner": Ridge(), "aggregator": gw.aggregators.AdaNormalHedge()}


def of(*groups: Any, **options: Any) -> Callable[[], gw.Groupwise]:
    """How to make a model with these groups."""
    return lambda: model_of(list(groups or BY), **options)


def acting(learner: Any, loss: Any, *groups: Any, **options: Any) -> Callable[[], gw.Groupwise]:
    """How to make a model whose predictions are actions."""
    declared = list(groups or [gw.by("rain")])
    return lambda: model_of(declared, learner=learner(), loss=loss, **options)


def paths(edges: Any = EDGES, **options: Any) -> FTPL:
    return FTPL(gw.oracles.ShortestPath(edges, "s", "t"), cost_norm=6.0, **options)


def stumps(separator: bool = False) -> ContextualFTPL:
    oracle = gw.oracles.Stumps()
    if separator:
        return ContextualFTPL(oracle, oracle.separator(2), "separator")
    return ContextualFTPL(oracle, CONTEXTS)


def tables(table: Any = TABLE, separator: bool = False) -> ContextualFTPL:
    oracle = gw.oracles.FiniteClass(table, CONTEXTS)
    if separator:
        return ContextualFTPL(oracle, oracle.separator(), "separator")
    return ContextualFTPL(oracle, CONTEXTS)


def labeller(seed: int = 0) -> gw.Groupwise:
    """A fresh model for partial feedback."""
    return model_of(
        [gw.by("rain")], stumps(), loss=gw.losses.ZeroOne(), features=["a", "b"], seed=seed
    )


def enumerating(policies: Any, loss: Any = None, **options: Any) -> Callable[[], gw.Groupwise]:
    return lambda: gw.enumerated.BlumLykouris(policies(), [gw.by("rain")], loss=loss, **options)


def of_actions(make: Callable[[], Any], label: Any, **more: Any) -> Case:
    return Case(make, weather(label), frame=None, **more)


FIELDS = ["a", "b"]
NUMBERS: Any = {"features": ["age", "bmi"], "indicators": False}
SPECIALISTS = gw.aggregators.Specialists()
ROAD, THREES = gw.losses.Linear(0.0, 3.0), gw.losses.Linear(-1.0, 1.0)
BIT, TWO = gw.losses.ZeroOne(), gw.losses.Hamming(labels=2)
MAPPED = {"age": (0.0, 2.0), "bmi": (-1.0, 3.0), "sex": None, "likely": None}
DECLARED = (
    gw.by("sex") & gw.by("region"),
    gw.cut("age", [0.3, 0.6], labels=["young", "middle", "old"], closed="left"),
    gw.cut("bmi", [0.0, 0.5, 1.0]),
    gw.where("region", "in", ["north", "west"]) | gw.where("age", ">", 0.8),
    ~gw.where("smoker", "==", True),
    gw.where("sex", "!=", "f") & ~gw.weight("likely"),
    gw.weight("likely") | gw.where("bmi", "<=", 0.2),
)

CASES = {
    # ridge learners
    "plain": Case(of()),
    "forward": Case(of(learner=Ridge(0.5, forward=True)), frame="polars"),
    "forgetting": Case(of(learner=Ridge(1.0, forgetting=0.99))),
    # γᵗ passes a millionth, where the penalty is renewed, after the file is written
    "forgetting_renewed": Case(of(learner=Ridge(1.0, forgetting=0.8))),
    "forgetting_beside": Case(
        of(learner=[Ridge(0.1, forgetting=0.95), Ridge(1.0), Ridge(2.0, True, 0.9)], **NUMBERS),
        frame="pandas",
    ),
    "portfolio": Case(of(gw.by("sex"), learner=PORTFOLIO), frame="polars"),
    # renewed by eigenvectors at 16,384 rounds: in a round of its own, and in a replay
    "stiff": Case(of(gw.by("a"), learner=Ridge(1e-6)), one_hot, lead=16_320, before=56, after=60),
    "stiff_in_a_replay": Case(
        of(gw.by("a"), learner=[Ridge(1e-6), Ridge(1.0), Ridge(1e-5, True)]),
        one_hot,
        lead=16_300,
        before=40,
    ),
    # aggregators, losses
    "sampled": Case(of(play="sample", seed=7), frame="pandas"),
    "specialists": Case(of(aggregator=SPECIALISTS)),
    "specialists_portfolio": Case(
        of(
            aggregator=SPECIALISTS,
            learner=PORTFOLIO,
            prior={"sex=f": 3.0, "region=west": 0.25},
            **NUMBERS,
        )
    ),
    "square_of_a_range": Case(of(loss=gw.losses.Square(-3.0, 5.0)), labelled(lambda y: 8 * y - 3)),
    "absolute": Case(of(loss=gw.losses.Absolute(0.0, 2.0), **NUMBERS), labelled(lambda y: 2 * y)),
    "absolute_sampled": Case(
        of(
            loss=gw.losses.Absolute(),
            learner=PORTFOLIO[:2],
            play="sample",
            seed=2**40 + 3,
            **NUMBERS,
        )
    ),
    "log_with_a_floor": Case(of(loss=gw.losses.Log(floor=0.01)), frame="polars"),
    "log_specialists": Case(
        of(loss=gw.losses.Log(), aggregator=SPECIALISTS), labelled(lambda y: float(y > 0.5))
    ),
    "unbounded": Case(of(loss=gw.losses.Unbounded()), labelled(lambda y: 40 * y - 12)),
    "not_clipped": Case(
        of(loss=gw.losses.Square(-3.0, 5.0), clip=False, learner=Ridge(0.01), **NUMBERS),
        labelled(lambda y: 8 * y - 3),
    ),
    # groups
    "fractional": Case(of(gw.weight("likely"), gw.by("sex")), smokers, frame="polars"),
    "fractional_portfolio": Case(
        of(gw.weight("likely"), gw.by("sex"), learner=PORTFOLIO, play="sample", **NUMBERS),
        smokers,
        frame="pandas",
    ),
    "fractional_specialists": Case(
        of(gw.weight("likely"), ~gw.weight("likely"), aggregator=SPECIALISTS), smokers
    ),
    "fractional_forgetting": Case(of(gw.weight("likely"), learner=Ridge(forgetting=0.97)), smokers),
    "prior": Case(of(prior={"sex=f": 5.0, "always_on": 0.5, "region=west": 2.0}, **NUMBERS)),
    "intersections": Case(
        of(*BY, gw.by("smoker"), intersections=2, features=["age", "sex"], indicators=False),
        smokers,
    ),
    "pairs": Case(
        of(
            gw.by("sex"),
            gw.pairs(gw.by("sex"), gw.by("region"), gw.weight("likely")),
            prior={"sex=f & region=west": 4.0},
            features=["age", "bmi", "sex"],
        ),
        smokers,
        frame="polars",
    ),
    "declarations": Case(of(*DECLARED, features=["age", "bmi"], indicators=False), smokers),
    "declarations_in_no_group": Case(
        of(
            gw.by("region") & gw.where("age", ">", 0.5),
            ~gw.where("region", "==", "north") & gw.where("sex", "==", "m"),
            always_on=False,
        ),
        some_missing,
        frame="polars",
    ),
    "nobody_sampled": Case(
        of(gw.by("region"), always_on=False, play="sample", seed=3), some_missing
    ),
    # features
    "features_list": Case(of(features=["age", "bmi", "sex"])),
    "features_mapping": Case(of(features=MAPPED, learner=PORTFOLIO[1:3]), smokers, frame="pandas"),
    "no_indicators": Case(of(gw.cut("age", [0.5]), gw.by("sex"), indicators=False)),
    "indicators": Case(
        of(gw.cut("age", [0.5]), gw.where("bmi", ">", 0.4), gw.weight("likely"), features=["bmi"]),
        smokers,
    ),
    "many_features": Case(
        lambda: model_of([], learner=Ridge(0.1)),
        many_levels,
        before=90,
    ),
    "wide": Case(lambda: model_of([]), wide, before=29, after=12),
    # actions
    "ftpl_paths": of_actions(acting(paths, ROAD, seed=4), costs),
    "ftpl_paths_without_cycles": of_actions(acting(lambda: paths(AHEAD), ROAD), costs),
    "ftpl_finite": of_actions(
        acting(lambda: FTPL(gw.oracles.Finite(THREE), cost_norm=1.0), THREES), three_costs
    ),
    "ftpl_two_learners": of_actions(
        acting(lambda: [paths(), paths(horizon=50)], ROAD, prior={"rain=no": 2.0}), costs
    ),
    "ftpl_fractional": of_actions(
        acting(paths, ROAD, gw.weight("share"), gw.by("rain"), seed=6), costs
    ),
    "ftpl_nobody": of_actions(
        acting(paths, ROAD, gw.where("rain", "==", "yes"), always_on=False), costs
    ),
    "contextual_transductive": of_actions(acting(stumps, BIT, features=FIELDS, seed=1), bit),
    "contextual_separator": of_actions(acting(lambda: stumps(True), BIT, features=FIELDS), bit),
    "contextual_hamming": of_actions(acting(stumps, TWO, features=FIELDS), bits),
    "contextual_hamming_separator": of_actions(
        acting(lambda: stumps(True), TWO, features=FIELDS, seed=8), bits
    ),
    "contextual_table": of_actions(acting(tables, BIT, features=FIELDS), bit),
    "contextual_table_hamming": of_actions(
        acting(lambda: tables(LABELS), TWO, features=FIELDS), bits
    ),
    "contextual_table_hamming_separator": of_actions(
        acting(lambda: tables(LABELS, separator=True), TWO, features=FIELDS), bits
    ),
    "contextual_two_learners": of_actions(
        acting(lambda: [stumps(), tables()], BIT, features=FIELDS, seed=9), bit
    ),
    "contextual_fractional": of_actions(
        acting(stumps, BIT, gw.weight("share"), features={"a": (0, 1), "b": (0, 1)}), bit
    ),
    "enumerated_finite": of_actions(
        enumerating(lambda: gw.oracles.Finite(THREE), THREES, seed=2), three_costs
    ),
    "enumerated_table": of_actions(
        enumerating(lambda: gw.oracles.FiniteClass(TABLE, CONTEXTS), features=FIELDS), bit
    ),
    "enumerated_hamming": of_actions(
        enumerating(lambda: gw.oracles.FiniteClass(LABELS, CONTEXTS), TWO, features=FIELDS), bits
    ),
    # partial feedback
    "pay": of_actions(lambda: gw.PayForFeedback(labeller(), horizon=500), bit, before=90, after=80),
    "pay_unknown": of_actions(lambda: gw.PayForFeedback(labeller(1)), bit, before=100, after=80),
    "pay_keep_state": of_actions(
        lambda: gw.PayForFeedback(labeller(2), keep_state=True), bit, before=100, after=80
    ),
    "pay_paths": of_actions(
        lambda: gw.PayForFeedback(acting(paths, ROAD)(), horizon=300), costs, before=80, after=60
    ),
    "pay_ridge": Case(
        lambda: gw.PayForFeedback(model_of(list(BY), loss=gw.losses.Square(0.0, 2.0))),
        labelled(lambda y: 2 * y),
        frame=None,
        before=90,
        after=90,
    ),
    "apple": of_actions(
        lambda: gw.AppleTasting(labeller(3), horizon=500), bit, before=90, after=80
    ),
    "apple_unknown": of_actions(lambda: gw.AppleTasting(labeller(4)), bit, before=100, after=80),
}

NOT_IN_SCHEMA_1 = (
    *("absolute_sampled", "fractional_portfolio", "fractional_specialists"),
    *("declarations_in_no_group", "features_list", "indicators", "not_clipped"),
    *("square_of_a_range", "fractional_forgetting", "wide", "ftpl_fractional"),
    *("ftpl_paths_without_cycles", "ftpl_nobody", "contextual_hamming", "contextual_fractional"),
    *("contextual_table_hamming", "contextual_table_hamming_separator", "enumerated_hamming"),
    *("pay_keep_state", "pay_paths", "apple_unknown"),
)
"""Cases whose parts others have, left out to keep the folder small."""
CASES_OF = {
    "schema_1": [name for name in CASES if name not in NOT_IN_SCHEMA_1],
    "schema_2": list(CASES),
}


# ------------------------------------------------------------------------------------------------
# Writing files, and going on with them


def write(name: str, folder: Path) -> None:
    """The snapshot of a case in mid-stream, and its outstanding tickets."""
    case, rng = CASES[name], Random(f"before {name}")
    with patch("os.urandom", lambda count: hashlib.sha256(name.encode()).digest()[:count]):
        model = case.make()
    if case.lead:
        model.replay(frame_of(case.rows(rng, case.lead, False), "pyarrow"), "y")
    outstanding = []
    for t, (row, label) in enumerate(case.rows(rng, case.before, False)):
        ticket = model.predict(row)
        if t % (case.before // 5) == 5 or t == case.before - 1:
            outstanding.append((ticket, label))
        elif t % 17 == 11:
            model.forget(ticket)
        else:
            settle(model, ticket, label)
    model.save(folder / f"{name}.gw")
    tickets = {"outstanding": outstanding, "issued later": []}
    if isinstance(model, gw.Groupwise):
        tickets["issued later"] = [
            (model.predict(row), label) for row, label in case.rows(rng, 2, True)
        ]
    written = {
        when: [[json.loads(ticket.to_json()), label] for ticket, label in pairs]
        for when, pairs in tickets.items()
    }
    lines = [
        f"{json.dumps(when)}: [\n" + ",\n".join(json.dumps(pair) for pair in pairs) + "\n]"
        for when, pairs in written.items()
    ]
    (folder / f"{name}.tickets.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


def read(name: str, folder: Path) -> tuple[Any, dict[str, Any]]:
    """What :func:`write` wrote: the model and its tickets."""
    tickets = json.loads((folder / f"{name}.tickets.json").read_text())
    return gw.load(folder / f"{name}.gw"), {
        when: [(gw.Ticket.from_json(json.dumps(text)), label) for text, label in pairs]
        for when, pairs in tickets.items()
    }


def settle(model: Any, ticket: gw.Ticket, label: Any) -> None:
    """Learn from a label, or drop the ticket where the label is never seen."""
    if isinstance(model, gw.AppleTasting) and ticket.prediction != 1:
        model.forget(ticket)
    else:
        model.learn(ticket, label)


def go_on(name: str, model: Any, tickets: dict[str, Any]) -> dict[str, Any]:
    """What comes of a loaded model: late labels, new rows, a replay, and rows again."""
    case, rng = CASES[name], Random(f"after {name}")
    loaded = [[row["group"], row["regret"], row["certificate"]] for row in model.regret()]
    figures = {"regret when loaded": plain(loaded)}
    for ticket, label in tickets["issued later"]:
        settle(model, ticket, label)
    late = shuffled(rng, tickets["outstanding"])
    figures.update(run(model, case.rows(rng, case.after, True), late, "predictions"))
    for ticket, label in late:
        settle(model, ticket, label)
    if case.frame is not None:
        rounds = case.rows(rng, 60 if case.lead else 16, True)
        result = model.replay(frame_of(rounds, case.frame), "y")
        figures["replay predictions"] = plain(result.prediction)
        figures["replay losses"] = plain([result.loss, result.expected_loss])
        figures["replay groups"] = [result.groups(t) for t in (0, 7, 15)]
        figures["replay path"] = result.path
        figures.update(run(model, case.rows(rng, 8, True), [], "last predictions"))
    figures.update(probe(name, model))
    return figures


def run(model: Any, rounds: Rounds, late: list[Any], key: str) -> dict[str, Any]:
    """Rows one by one, now and then a late label between them; what the tickets say."""
    predictions, wanted, said = [], [], []
    for t, (row, label) in enumerate(rounds):
        if t % 4 == 2 and late:
            settle(model, *late.pop())
        ticket = model.predict(row)
        predictions.append(plain(ticket.prediction))
        wanted.append(ticket.wants_label)
        if t % 8 == 0:
            said.append([plain(ticket.groups), plain(ticket.advice), plain(ticket.weights)])
        settle(model, ticket, label)
    figures = {key: predictions, f"{key}: groups, advice, weights": said}
    return figures if all(wanted) else {**figures, f"{key}: labels wanted": wanted}


def probe(name: str, model: Any) -> dict[str, Any]:
    """What a model says in the end; changes nothing."""
    rounds = CASES[name].rows(Random(f"probe {name}"), 4, True)
    figures = {
        "probes": [plain(model.predict_one(row)) for row, _ in rounds],
        "regret in the end": table(model),
    }
    if hasattr(model, "free_labels"):
        figures["free labels"] = plain([model.free_labels, model.free_loss])
    return figures


def table(model: Any) -> dict[str, Any]:
    """The regret table, group by group: its columns once, then a row for each."""
    found = model.regret()
    later = ("best_error", "best_kind", "best_low", "best_high", "note")
    rows = [{k: value for k, value in row.items() if k not in later} for row in found]
    return {
        "columns": list(rows[0]) if rows else [],
        "rows": [plain(list(row.values())) for row in rows],
        "comparator": found.comparator.partition(", of the form")[0],  # which came later
        "settled": found.settled,
    }


def frame_of(rounds: Rounds, library: str) -> Any:
    """The rounds as a frame, labels in column ``y``."""
    import importlib

    columns = {key: [row[key] for row, _ in rounds] for key in rounds[0][0]}
    columns["y"] = [label for _, label in rounds]
    module = importlib.import_module(library)
    make = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "table"}[library]
    return getattr(module, make)(columns)


def plain(value: Any) -> Any:
    """Figures as JSON keeps them to the last bit: floating-point numbers in hexadecimal."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    return value


# ------------------------------------------------------------------------------------------------
# What no file can hold, from scratch


class Mean:
    """A learner of one's own: the weighted mean of the labels, drawn to the middle."""

    def __init__(self) -> None:
        self.total, self.weight = 0.5, 1.0

    def advise(self, row: Any, weight: float) -> float:
        del row, weight
        return self.total / self.weight

    def update(self, row: Any, label: float, weight: float) -> None:
        del row
        self.total += weight * label
        self.weight += weight


class Slope:
    """Another: a step down the gradient, by the features' names."""

    takes_weights = False

    def __init__(self) -> None:
        self.slopes: dict[str, float] = {}

    def advise(self, row: Any, weight: float) -> float:
        del weight
        return 0.5 + sum(self.slopes.get(key, 0.0) * x for key, x in row.mapping().items())

    def update(self, row: Any, label: float, weight: float) -> None:
        error = label - self.advise(row, weight)
        for key, x in row.mapping().items():
            self.slopes[key] = self.slopes.get(key, 0.0) + 0.125 * error * x


class Gentle:
    """An aggregator of one's own."""

    def log_weights(self, regret: Any, absolute: Any, loss: Any) -> Any:
        del loss
        return regret / np.sqrt(1.0 + absolute)

    def bound(self, regret: Any, absolute: Any, prior: Any, loss: Any) -> Any:
        del regret, loss
        return 2.0 * np.sqrt(1.0 + absolute) / prior

    def plays(self, loss: Any) -> tuple[str, ...]:
        del loss
        return "mean", "sample"


class Cheapest:
    """An oracle of one's own: one of three coordinates."""

    dimension = 3

    def minimise(self, costs: Any) -> Any:
        return np.eye(3)[int(np.argmin(costs))]


class Constants:
    """An oracle of one's own for labels: always 0 or always 1."""

    def minimise(self, contexts: Any, costs: Any) -> Callable[[Any], int]:
        del contexts
        best = int(np.sum(costs) < 0.0)
        return lambda x: best


def river_model() -> Any:
    from river.linear_model import LinearRegression

    return LinearRegression()


def sklearn_model() -> Any:
    from sklearn.linear_model import SGDRegressor

    return SGDRegressor(learning_rate="constant", eta0=0.05, random_state=0)


FUNCTIONS = [lambda x: 0, lambda x: 1, lambda x: int(x[0] > 0.5), lambda x: int(x[1] > 0.5)]

SCRATCH = {
    "river": Case(lambda: model_of(list(BY), Foreign(river_model()), **NUMBERS)),
    "sklearn": Case(lambda: model_of(list(BY), Foreign(sklearn_model()), **NUMBERS)),
    "ridge_and_river": Case(
        lambda: model_of(list(BY), [Ridge(0.5), Foreign(river_model())], **NUMBERS)
    ),
    "sklearn_and_ridges": Case(
        lambda: model_of(
            [gw.by("sex"), gw.weight("likely")],
            [Foreign(sklearn_model()), Ridge(0.5), Ridge(2.0, forward=True)],
            play="sample",
            **NUMBERS,
        ),
        smokers,
        frame="polars",
    ),
    "own_learner": Case(of(gw.by("sex"), gw.weight("likely"), learner=Mean()), smokers),
    "own_learner_with_features": Case(of(learner=Slope()), frame="polars"),
    "own_learners_and_ridges": Case(
        of(learner=[Ridge(1.0), Mean(), Ridge(0.1, forgetting=0.9), Slope()], play="sample", seed=5)
    ),
    "own_learner_specialists": Case(of(learner=Mean(), aggregator=SPECIALISTS), frame="pandas"),
    "own_aggregator": Case(of(aggregator=Gentle(), learner=PORTFOLIO)),
    "own_aggregator_sampled": Case(
        of(aggregator=Gentle(), learner=Mean(), play="sample", prior={"sex=f": 2.0})
    ),
    "own_aggregator_of_actions": of_actions(
        acting(paths, ROAD, aggregator=Gentle(), seed=12), costs
    ),
    "own_oracle": of_actions(acting(lambda: FTPL(Cheapest(), cost_norm=1.0), THREES), three_costs),
    "own_oracle_of_policies": of_actions(
        acting(lambda: ContextualFTPL(Constants(), CONTEXTS), BIT, features=FIELDS), bit
    ),
    "enumerated_functions": of_actions(enumerating(lambda: FUNCTIONS, features=FIELDS), bit),
    "pay_own_learner": Case(
        lambda: gw.PayForFeedback(model_of(list(BY), Mean())), frame=None, after=80
    ),
    "ridge_with_zero_one": Case(
        of(loss=BIT, learner=Ridge(), play="sample"), labelled(lambda y: float(y > 0.5))
    ),
}
FROM_ELSEWHERE = ("river", "sklearn", "ridge_and_river", "sklearn_and_ridges")
"""Those whose figures other packages compute, too."""


def from_scratch(name: str) -> dict[str, Any]:
    """What a model makes of a stream, some labels late."""
    case, rng = SCRATCH[name], Random(f"scratch {name}")
    model = case.make()
    late = shuffled(rng, [(model.predict(row), y) for row, y in case.rows(rng, 5, False)])
    figures = run(model, case.rows(rng, case.after, False), late, "predictions")
    figures["regret"] = table(model)
    if case.frame is not None:
        result = model.replay(frame_of(case.rows(rng, 24, False), case.frame), "y")
        figures["replay predictions"] = plain(result.prediction)
        figures["replay losses"] = plain([result.loss, result.expected_loss])
        figures["replay path"] = result.path
    figures.update(run(model, case.rows(rng, 8, False), [], "last predictions"))
    figures["regret in the end"] = table(model)
    return figures


REPLAYS: dict[str, dict[str, Any]] = {
    "plain": {},
    "sparse": {"sparse": True},
    "sparse_features": {"sparse": "X", "learner": [Ridge(0.1), Ridge(1.0)], "width": 40},
    "sparse_membership": {"sparse": "membership", "prior": [1.0, 2.0, 3.0, 4.0]},
    "fractional": {"fractional": True, "learner": Ridge(0.7, forward=True)},
    "fractional_sparse_portfolio": {"fractional": True, "sparse": True, "learner": PORTFOLIO[1:]},
    "sampled": {"play": "sample", "seed": 9, "learner": PORTFOLIO[1:3]},
    "specialists": {"aggregator": SPECIALISTS, "fractional": True},
    "forgetting": {"learner": [Ridge(1.0, forgetting=0.9), Ridge(0.5)]},
    "log": {"loss": gw.losses.Log(floor=0.05), "learner": Ridge()},
    "absolute": {"loss": gw.losses.Absolute(-1.0, 2.0)},
    "not_clipped": {"loss": gw.losses.Square(-1.0, 2.0), "clip": False, "learner": Ridge(0.001)},
    "unbounded": {"loss": gw.losses.Unbounded()},
    "own_learner": {"learner": [Mean(), Ridge()], "fractional": True},
    "own_aggregator": {"aggregator": Gentle()},
}
REPLAYED_ROWS = 30


def replayed(name: str, jobs: int) -> dict[str, Any]:
    """What ``gw.replay`` makes of arrays."""
    import scipy.sparse

    options, rng = dict(REPLAYS[name]), Random(f"replay {name}")
    sparse, fractional = options.pop("sparse", ""), options.pop("fractional", False)
    width = options.pop("width", 5)
    features = np.array(
        [[pick(rng, (0.0, 2.0 * rng.random() - 1.0)) for _ in range(width)]
         for _ in range(REPLAYED_ROWS)]
    )  # fmt: skip
    labels = np.array([min(1.0, max(0.0, 0.5 + x[:3].sum() / 3.0)) for x in features])
    membership = np.array(
        [[float(rng.random() < 0.5) * (rng.random() if fractional else 1.0) for _ in range(3)]
         + [1.0] for _ in range(REPLAYED_ROWS)]
    )  # fmt: skip
    membership[7] = 0.0
    arrays: dict[str, Any] = {"X": features, "membership": membership}
    for key in arrays:
        if sparse in (True, key):
            arrays[key] = scipy.sparse.csr_matrix(arrays[key])
    names = ["first", "second", "third", "always_on"]
    options = parts_of(options) | options
    result = gw.replay(y=labels, names=names, jobs=jobs, **arrays, **options)
    curves = {group: list(curve) for group, curve in result.curves(points=7).items()}
    return {
        "predictions": plain(result.prediction),
        "losses": plain([result.loss, result.expected_loss]),
        "advice": plain(result.advice),
        "weights": plain(result.weights),
        "path": result.path,
        "regret": table(result),
        "regret curves": plain(curves),
    }


# ------------------------------------------------------------------------------------------------
# What the figures depend on besides this library


def arithmetic() -> dict[str, str]:
    """Fingerprints of what libraries below compute, which need not be the same on all machines.

    ``scalars`` are the C library's functions, which the kernels call; ``arrays`` those of numpy,
    and its random numbers; ``matrices`` products and eigenvectors by BLAS and LAPACK.
    """
    import math

    rng = Random("arithmetic")
    numbers = [rng.random() for _ in range(4_000)]
    values = np.array(numbers)
    scalars = [f(x) for f in (math.exp, math.expm1, math.log, math.log1p) for x in numbers]
    scalars += [math.exp(-20.0 * x) for x in numbers] + [math.expm1(-9.0 * x) for x in numbers]
    scalars += [x**y for x, y in zip(numbers, reversed(numbers), strict=True)]
    arrays = [np.log1p(50.0 * values), np.log(9.0 * values + 1.0), np.sqrt(values)]
    generator = np.random.default_rng(0)
    arrays += [generator.laplace(size=99), generator.random(99)]
    matrices = []
    for size in (1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 24, 40, 70, 75, 80):
        matrix = values[: size * 13 if size < 40 else 50 * size].reshape(-1, size)
        gram = matrix.T @ matrix
        eigenvalues, directions = np.linalg.eigh(gram)
        matrices += [gram, eigenvalues, directions, directions.T @ values[:size], matrix @ gram[0]]
    parts = {"scalars": [np.array(scalars)], "arrays": arrays, "matrices": matrices}
    return {
        key: hashlib.sha256(b"".join(array.tobytes() for array in found)).hexdigest()[:16]
        for key, found in parts.items()
    }


# ------------------------------------------------------------------------------------------------


def keep(path: Path, cases: dict[str, Any]) -> None:
    """Write figures, a line for every part of a case."""
    parts = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in figures.items())
        + "\n}"
        for name, figures in cases.items()
    ]
    head = f'{{\n"arithmetic": {json.dumps(arithmetic())},\n"cases": {{\n'
    path.write_text(head + ",\n".join(parts) + "\n}\n}\n")


def main(what: str, where: str) -> None:
    """See the top of the file."""
    folder = FOLDER / where
    if what == "files" and where in CASES_OF:
        folder.mkdir(exist_ok=True)
        for name in CASES_OF[where]:
            write(name, folder)
    elif what == "figures" and where in CASES_OF:
        figures = {name: go_on(name, *read(name, folder)) for name in CASES_OF[where]}
        keep(folder / "figures.json", figures)
    elif what == "figures" and where == "scratch":
        models = {name: from_scratch(name) for name in SCRATCH}
        arrays = {f"replay: {name}": replayed(name, 1) for name in REPLAYS}
        keep(FOLDER / SCRATCH_FIGURES, {**models, **arrays})
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
