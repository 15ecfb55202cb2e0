"""How long a round takes as the class grows: the reduction, and enumerating all policies."""

import itertools
import math
import time
from typing import Any

import numpy as np

from groupwise.enumerated import BlumLykouris
from groupwise.experiments.grid import grid_edges, grid_oracle
from groupwise.experiments.outcome import Check, Outcome, Plan
from groupwise.groups import by
from groupwise.learners import FTPL, ContextualFTPL
from groupwise.losses import Hamming, Linear, ZeroOne
from groupwise.model import Groupwise
from groupwise.oracles import Finite, FiniteClass, Stumps
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number

TITLE = "What enumerating all policies costs"
ABOUT = (
    "Blum and Lykouris run one expert for every pair of policy and group, so a round takes time "
    "linear in the number of policies. The reduction calls an oracle once for every awake "
    "group. On classes with structure, stumps for n labels ((2d + 2)ⁿ policies) and paths "
    "through a grid (binomially many), the oracle uses it, and the time of a round hardly grows "
    "while the class grows to millions, where enumeration is hopeless. On a plain table of "
    "policies without structure the oracle must look at every row as well: then both are "
    "linear, and the reduction is not the faster one (it calls the oracle for every awake "
    "group, at the prediction and again at the label)."
)
SEEDS = (0,)
BITS = 6
ROUNDS = 60
"""Rounds that are timed; the median counts."""
ENUMERABLE = 40_000
"""Up to this many policies the baseline is run."""
FEATURES = [f"bit{i}" for i in range(BITS)]
CONTEXTS = np.array(list(itertools.product([0.0, 1.0], repeat=BITS)))
FLAT = 10.0
"""How many times longer a round may take on the largest class than on the smallest."""


def run(plan: Plan) -> Outcome:
    """Three families of classes."""
    rounds = plan.rounds or ROUNDS
    families = {
        "Stumps for n labels": [_stumps(n, rounds) for n in range(1, 7)],
        "Paths through a grid": [_paths(size, rounds) for size in (4, 5, 6, 7, 8, 9, 10, 12, 13)],
        "A plain table": [_table(count, rounds) for count in (10, 100, 1_000, 10_000, 40_000)],
    }
    checks = []
    for family in ("Stumps for n labels", "Paths through a grid"):
        cases = families[family]
        growth = cases[-1][1] / cases[0][1]
        checks.append(
            Check(
                f"{family}: from {cases[0][0]:,} to {cases[-1][0]:,} policies our round takes at "
                f"most {FLAT:g} times longer",
                growth <= FLAT,
                f"{number(growth, 1)} times",
            )
        )
        slowest = [case for case in cases if case[2] is not None][-1]
        checks.append(
            Check(
                f"{family}: with {slowest[0]:,} policies enumeration is slower",
                slowest[2] > slowest[1],
                f"{number(slowest[2] / slowest[1], 1)} times",
            )
        )
    tables = [_as_table(family, cases) for family, cases in families.items()]
    return Outcome(tables, [_figure(families)], checks, {})


def _timed(model: Groupwise, rounds: list[tuple[dict[str, Any], Any]]) -> float:
    """The median time of a round, in microseconds."""
    times = []
    for row, label in rounds:
        start = time.perf_counter()
        model.learn(model.predict(row), label)
        times.append(time.perf_counter() - start)
    return float(np.median(times[len(times) // 4 :])) * 1e6


Case = tuple[int, float, Any]
"""Policies, our microseconds, theirs or None."""


def _stumps(labels: int, rounds: int) -> Case:
    rng = np.random.default_rng(labels)
    stream = [
        (
            {**dict(zip(FEATURES, rng.integers(0, 2, BITS).tolist(), strict=True)), "g": t % 2},
            rng.integers(0, 2, labels),
        )
        for t in range(rounds)
    ]
    loss = Hamming(labels)
    ours = Groupwise([by("g")], ContextualFTPL(Stumps(), CONTEXTS), loss=loss, features=FEATURES)
    count = (2 * BITS + 2) ** labels
    theirs = None
    if count <= ENUMERABLE:
        single = np.array(
            [np.zeros(64), np.ones(64), *(c for bit in CONTEXTS.T for c in (bit, 1.0 - bit))]
        )
        table = np.stack(
            [np.stack(each, axis=1) for each in itertools.product(single, repeat=labels)]
        )
        policies = FiniteClass(table, CONTEXTS)
        theirs = _timed(BlumLykouris(policies, [by("g")], loss=loss, features=FEATURES), stream)
    return count, _timed(ours, stream), theirs


def _paths(size: int, rounds: int) -> Case:
    rng = np.random.default_rng(size)
    edges = grid_edges(size)
    stream = [({"g": t % 2}, rng.random(len(edges))) for t in range(rounds)]
    loss = Linear(0.0, 2.0 * (size - 1))
    ours = Groupwise([by("g")], FTPL(grid_oracle(size), float(len(edges))), loss=loss)
    count = math.comb(2 * (size - 1), size - 1)
    theirs = None
    if count <= ENUMERABLE:
        theirs = _timed(BlumLykouris(Finite(_all_paths(size)), [by("g")], loss=loss), stream)
    return count, _timed(ours, stream), theirs


def _all_paths(size: int) -> Any:
    edges = grid_edges(size)
    number_of = {edge: i for i, edge in enumerate(edges)}
    steps = 2 * (size - 1)
    found = []
    for downs in itertools.combinations(range(steps), size - 1):
        action = np.zeros(len(edges))
        node = (0, 0)
        for step in range(steps):
            following = (node[0] + 1, node[1]) if step in downs else (node[0], node[1] + 1)
            action[number_of[node, following]] = 1.0
            node = following
        found.append(action)
    return np.array(found)


def _table(count: int, rounds: int) -> Case:
    rng = np.random.default_rng(count)
    policies = FiniteClass(rng.integers(0, 2, (count, len(CONTEXTS))), CONTEXTS)
    stream = [
        (
            {**dict(zip(FEATURES, rng.integers(0, 2, BITS).tolist(), strict=True)), "g": t % 2},
            int(rng.integers(2)),
        )
        for t in range(rounds)
    ]
    learner = ContextualFTPL(policies, CONTEXTS)
    ours = Groupwise([by("g")], learner, loss=ZeroOne(), features=FEATURES)
    theirs = BlumLykouris(policies, [by("g")], features=FEATURES)
    return count, _timed(ours, stream), _timed(theirs, stream)


def _as_table(family: str, cases: list[Case]) -> Table:
    columns = tuple(Column(title) for title in ("Policies", "Ours, µs", "Enumerated, µs", "Ratio"))
    rows = tuple(
        (
            Cell(f"{count:,}"),
            Cell(number(ours, 0)),
            Cell("–" if theirs is None else number(theirs, 0), "" if theirs else "faint"),
            Cell("–" if theirs is None else number(theirs / ours, 1)),
        )
        for count, ours, theirs in cases
    )
    note = "The median time of a whole round, two groups awake. –: not run, it would not fit."
    return Table(family, columns, rows, note)


def _figure(families: dict[str, list[Case]]) -> Figure:
    panels = []
    for family, cases in families.items():
        run = [case for case in cases if case[2] is not None]
        lines = (
            Line(
                "enumerated",
                np.log10([float(case[0]) for case in run]),
                np.log10([case[2] for case in run]),
                colour=0,
                style="marked",
            ),
            Line(
                "ours",
                np.log10([float(case[0]) for case in cases]),
                np.log10([case[1] for case in cases]),
                colour=1,
                style="marked",
            ),
        )
        panels.append(Panel(family, lines))
    caption = "The time of a round against the size of the class, both as powers of ten."
    return Figure("enumeration-time", caption, "log₁₀ policies", "log₁₀ µs", tuple(panels))
