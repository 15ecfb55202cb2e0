"""What enumerating all policies costs and gains: time as the class grows, and regret."""

import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.classification import BITS, CONTEXTS, FIELDS, labeller, stump_table
from groupwise.paper.classification import GROUPS as GROUPS_OF_STREAM
from groupwise.paper.engine import in_processes
from groupwise.paper.lending import generated_stream
from groupwise.paper.routing import corridor, grid_edges, grid_oracle
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number

ROUNDS = 60
"""Rounds that are timed; the median counts."""
WARM = 3
"""Rounds after which all kernels are compiled."""
ENUMERABLE = 40_000
"""Up to this many policies the baseline is run."""
GROUPS = [gw.by("g")]
LENGTH, SEEDS = 4_000, (3_000, 3_001, 3_002, 3_003)
"""The streams on which regrets are compared."""
FLAT = 10.0
"""How many times longer a round may take on the largest class than on the smallest."""


def run(request: Request) -> Outcome:
    """Three families of classes."""
    rounds = request.rounds or ROUNDS
    calls = [
        partial(measure, size, rounds) for measure, sizes in FAMILIES.values() for size in sizes
    ]
    for measure, sizes in FAMILIES.values():
        measure(sizes[0], WARM)
    # One at a time: it is their time that counts.
    found = iter(list(in_processes(calls, 1, request.what, "classes")))
    families = {family: list(islice(found, len(sizes))) for family, (_, sizes) in FAMILIES.items()}
    checks = []
    for family in ("Stumps for n labels", "Paths through a grid"):
        first, *_, last = cases = families[family]
        slowest = [case for case in cases if case[2] is not None][-1]
        checks += [
            Check(
                f"{family}: from {first[0]:,} to {last[0]:,} policies our round takes at "
                f"most {FLAT:g} times longer",
                last[1] / first[1] <= FLAT,
                f"{number(last[1] / first[1], 1)} times",
            ),
            Check(
                f"{family}: with {slowest[0]:,} policies enumeration is slower",
                slowest[2] > slowest[1],
                f"{number(slowest[2] / slowest[1], 1)} times",
            ),
        ]
    columns = tuple(Column(title) for title in ("Policies", "Ours, µs", "Enumerated, µs", "Ratio"))
    tables = [
        Table(
            family,
            columns,
            tuple(
                (
                    Cell(f"{count:,}"),
                    Cell(number(ours, 0)),
                    Cell("–" if theirs is None else number(theirs, 0), "" if theirs else "faint"),
                    Cell("–" if theirs is None else number(theirs / ours, 1)),
                )
                for count, ours, theirs in cases
            ),
            "The median time of a whole round, two groups awake. –: not run, it would not fit.",
        )
        for family, cases in families.items()
    ]
    length = min(LENGTH, 20 * rounds) if request.rounds else LENGTH
    runs = [partial(regrets, length, seed) for seed in SEEDS[: request.seeds]]
    lost = np.array(list(in_processes(runs, request.jobs, request.what))).mean(axis=0)
    tables.append(_regret_table(length, lost))
    checks.append(
        Check(
            f"Stumps, {length:,} rounds: where all policies can be tried, regret is less",
            bool(lost[1].max() < lost[0].max()),
            f"worst group {number(lost[1].max(), 1)} against {number(lost[0].max(), 1)}",
        )
    )
    figures = {"regret/ours": float(lost[0].max()), "regret/enumerated": float(lost[1].max())}
    return Outcome(tables, [_figure(families)], checks, figures)


def regrets(rounds: int, seed: int) -> Vector:
    """The regret of every group: ours, and with all 14 stumps enumerated, on the same stream."""
    stream = generated_stream(rounds, seed)
    table = np.vstack([np.zeros(len(CONTEXTS)), np.ones(len(CONTEXTS)), stump_table()])
    policies, ours = gw.oracles.FiniteClass(table, CONTEXTS), labeller("transductive", 1, seed)
    theirs = gw.enumerated.BlumLykouris(policies, ours.declarations, features=FIELDS, seed=seed)
    for row, label in zip(stream.rows, stream.labels.tolist(), strict=True):
        for model in (ours, theirs):
            model.learn_one(row, int(label))
    return np.array(
        [[model.regret()[group]["regret"] for group in stream.groups] for model in (ours, theirs)]
    )


def _regret_table(rounds: int, lost: Vector) -> Table:
    names = (*(f"group{g}=1" for g in range(GROUPS_OF_STREAM)), "always_on")
    columns = (Column("Group", numeric=False), Column("Ours"), Column("Enumerated"))
    return Table(
        f"Regret on stumps, {rounds:,} rounds",
        columns,
        tuple(
            (Cell(name), Cell(number(ours, 1)), Cell(number(theirs, 1)))
            for name, ours, theirs in zip(names, *lost.tolist(), strict=True)
        ),
        "The stream of the classification experiment, nothing adaptive in it; means over the "
        "seeds. Perturbed leaders pay for their noise, and enumeration does not: where the "
        "policies are few enough to try them all, that is the better choice.",
    )


def _timed(model: gw.Groupwise, rounds: list[tuple[dict[str, Any], Any]]) -> float:
    """The median time of a round, in microseconds."""
    times = []
    for row, label in rounds:
        start = time.perf_counter()
        model.learn(model.predict(row), label)
        times.append(time.perf_counter() - start)
    return float(np.median(times[len(times) // 4 :])) * 1e6


Case = tuple[int, float, Any]
"""Policies, our microseconds, theirs or None."""


def _case(
    count: int,
    rounds: list[Any],
    ours: gw.Groupwise,
    theirs: Callable[[], gw.enumerated.BlumLykouris],
) -> Case:
    """So many policies, which are enumerated where they are not too many."""
    enumerated = _timed(theirs(), rounds) if count <= ENUMERABLE else None
    return count, _timed(ours, rounds), enumerated


def _stream(rng: np.random.Generator, rounds: int, labels: int | None = None) -> list[Any]:
    """Random contexts in two groups, with random labels: 0 or 1, or so many of them."""
    return [
        (
            {**dict(zip(FIELDS, rng.integers(0, 2, BITS).tolist(), strict=True)), "g": t % 2},
            rng.integers(0, 2, labels),
        )
        for t in range(rounds)
    ]


def _stumps(labels: int, rounds: int) -> Case:
    def enumerated() -> gw.enumerated.BlumLykouris:
        single = np.vstack([np.zeros(64), np.ones(64), stump_table()])
        every = [np.stack(each, axis=1) for each in itertools.product(single, repeat=labels)]
        policies = gw.oracles.FiniteClass(np.stack(every), CONTEXTS)
        return gw.enumerated.BlumLykouris(policies, GROUPS, loss=loss, features=FIELDS)

    loss = gw.losses.Hamming(labels)
    ours = gw.Groupwise(
        GROUPS,
        gw.learners.ContextualFTPL(gw.oracles.Stumps(), CONTEXTS),
        loss=loss,
        features=FIELDS,
    )
    stream = _stream(np.random.default_rng(labels), rounds, labels)
    return _case((2 * BITS + 2) ** labels, stream, ours, enumerated)


def _paths(size: int, rounds: int) -> Case:
    def enumerated() -> gw.enumerated.BlumLykouris:
        steps = range(2 * (size - 1))
        every = list(itertools.combinations(steps, size - 1))
        paths = np.zeros((len(every), edges))
        for path, downs in zip(paths, every, strict=True):
            path[corridor("".join("D" if step in downs else "R" for step in steps), size)] = 1.0
        return gw.enumerated.BlumLykouris(gw.oracles.Finite(paths), GROUPS, loss=loss)

    edges, loss = len(grid_edges(size)), gw.losses.Linear(0.0, 2.0 * (size - 1))
    rng = np.random.default_rng(size)
    stream = [({"g": t % 2}, rng.random(edges)) for t in range(rounds)]
    ours = gw.Groupwise(GROUPS, gw.learners.FTPL(grid_oracle(size), float(edges)), loss=loss)
    return _case(math.comb(2 * (size - 1), size - 1), stream, ours, enumerated)


def _table(count: int, rounds: int) -> Case:
    rng = np.random.default_rng(count)
    policies = gw.oracles.FiniteClass(rng.integers(0, 2, (count, len(CONTEXTS))), CONTEXTS)
    learner = gw.learners.ContextualFTPL(policies, CONTEXTS)
    ours = gw.Groupwise(GROUPS, learner, loss=gw.losses.ZeroOne(), features=FIELDS)
    theirs = partial(gw.enumerated.BlumLykouris, policies, GROUPS, features=FIELDS)
    return _case(count, _stream(rng, rounds), ours, theirs)


FAMILIES: dict[str, tuple[Callable[[int, int], Case], Sequence[int]]] = {
    "Stumps for n labels": (_stumps, range(1, 7)),
    "Paths through a grid": (_paths, (4, 5, 6, 7, 8, 9, 10, 12, 13)),
    "A plain table": (_table, (10, 100, 1_000, 10_000, 40_000)),
}
"""What measures a case of each family, and the sizes of these."""


def _figure(families: dict[str, list[Case]]) -> Figure:
    def line(label: str, cases: list[Case], time: int) -> Line:
        counts, times = (np.log10([float(case[i]) for case in cases]) for i in (0, time))
        return Line(label, counts, times, colour=time % 2, style="marked")

    panels = tuple(
        Panel(
            family,
            (
                line("enumerated", [case for case in cases if case[2] is not None], 2),
                line("ours", cases, 1),
            ),
        )
        for family, cases in families.items()
    )
    caption = "The time of a round against the size of the class, both as powers of ten."
    return Figure("enumeration-time", caption, "log₁₀ policies", "log₁₀ µs", panels)


STUDY = Study(
    "What enumerating all policies costs",
    "Blum and Lykouris run one expert for every pair of policy and group, so a round takes time "
    "linear in the number of policies. The reduction calls an oracle once for every awake "
    "group. On classes with structure, stumps for n labels ((2d + 2)ⁿ policies) and paths "
    "through a grid (binomially many), the oracle uses it, and the time of a round hardly grows "
    "while the class grows to millions, where enumeration is hopeless. On a plain table of "
    "policies without structure the oracle must look at every row as well: then both are "
    "linear, and the reduction is not the faster one (it calls the oracle for every awake "
    "group, at the prediction and again at the label). When to enumerate: where there are so few "
    "policies that trying all of them is affordable. Then nothing is paid for perturbed leaders, "
    "and regret is less.",
    run,
)
