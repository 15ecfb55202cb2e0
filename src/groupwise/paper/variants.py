"""Variants of an experiment over seeds: every group's regret over time, as tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from groupwise.arrays import Vector
from groupwise.groups import ALWAYS_ON
from groupwise.model import Groupwise
from groupwise.paper.claims import Check, Outcome, Request
from groupwise.paper.engine import in_processes
from groupwise.regret.curves import Curve, Recorder, moments
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number, over_seeds

POINTS = 25
ROUNDING = 1e-9
THIRD = 1.0 / 3.0
WARM = 3
"""Rounds after which all kernels are compiled."""

REGRET, CERTIFICATE = "Regret", "Certificate"
COLUMNS = (
    Column("Group", numeric=False),
    Column("Rounds"),
    Column("baseline", REGRET),
    Column("ours", REGRET),
    Column("ratio", REGRET),
    Column("bound", CERTIFICATE),
    Column("status", CERTIFICATE, numeric=False),
    Column("own best", CERTIFICATE, numeric=False),
)


@dataclass(frozen=True, eq=False)
class Trace:
    """One run: a curve and a status for every group, and whose best is not the overall best."""

    curves: Mapping[str, Curve]
    status: Mapping[str, str]
    differs: frozenset[str]


@dataclass
class Following:
    """Counts the rounds of a run, and takes down the model's regret table after some of them."""

    model: Groupwise
    rounds: int
    recorder: Recorder = field(default_factory=Recorder)

    def __iter__(self) -> Iterator[int]:
        wanted = set(moments(self.rounds, POINTS).tolist())
        for time in range(1, self.rounds + 1):
            yield time
            if time in wanted:
                self.recorder.record(time, self.model.regret())

    def trace(self) -> Trace:
        """The whole run; the always-on group comes last."""
        ordered = sorted(self.model.regret(), key=lambda r: (r["group"] == ALWAYS_ON, r["group"]))
        rows = {row["group"]: row for row in ordered}
        curves = self.recorder.curves()
        return Trace(
            {group: curves[group].at(moments(self.rounds, POINTS)) for group in rows},
            {group: row["status"] for group, row in rows.items()},
            frozenset(
                group
                for group, row in rows.items()
                if ALWAYS_ON in rows
                and self.model.best_elsewhere(group, ALWAYS_ON) > row["best_loss"] + ROUNDING
            ),
        )


@dataclass(frozen=True)
class Variant:
    """A way to run an experiment. ``simulate(seed, rounds)`` must be picklable.

    ``claims`` is "third" where our regret must be at most a third of the baseline's on every group
    whose best differs from the overall best, "certificate" where it must be below the certificate.
    """

    name: str
    title: str
    simulate: Callable[[int, int], Trace]
    claims: str


def simulate_all(
    variants: Sequence[Variant], request: Request, seeds: Sequence[int], rounds: int
) -> dict[str, list[Trace]]:
    """Every variant's runs, by its name; of the seeds and rounds, as many as are asked for."""
    seeds = seeds[: request.seeds]
    calls = [
        partial(v.simulate, seed, request.rounds or rounds) for v in variants for seed in seeds
    ]
    for variant in variants:  # what all processes need is compiled once, and said to be
        variant.simulate(seeds[0], WARM)
    traces = list(in_processes(calls, request.jobs, request.what))
    return {
        variant.name: traces[i * len(seeds) : (i + 1) * len(seeds)]
        for i, variant in enumerate(variants)
    }


def outcome_of(
    variants: Sequence[Variant], request: Request, seeds: Sequence[int], rounds: int
) -> Outcome:
    """Tables, figures, claims and numbers of all variants."""
    traces = simulate_all(variants, request, seeds, rounds)
    checks, numbers = [], {}
    for variant in variants:
        of_seeds = traces[variant.name]
        judged = judged_groups(of_seeds)
        for group in of_seeds[0].curves:
            regret, baseline, certificate = means(of_seeds, group)
            numbers[f"{variant.name}/{group}/regret"] = regret
            numbers[f"{variant.name}/{group}/baseline"] = baseline
            claim = f"{variant.title}: on {group} our mean regret is"
            if variant.claims == "certificate":
                found = f"{number(regret)} below {number(certificate)}"
                checks.append(Check(f"{claim} below the certificate", regret <= certificate, found))
            elif variant.claims == "third" and group in judged:
                found = f"{number(regret)} of {number(baseline)}"
                holds = regret <= THIRD * baseline
                checks.append(Check(f"{claim} at most a third of the baseline’s", holds, found))
    return Outcome(
        [table_of(variant, traces[variant.name]) for variant in variants],
        [
            figure_of(
                f"{variant.name}-regret",
                f"{variant.title}: regret against time. Mean ± one standard deviation over the "
                "seeds.",
                (traces[variant.name], "baseline_regret", "baseline"),
                (traces[variant.name], "regret", "our algorithm"),
            )
            for variant in variants
        ],
        checks,
        numbers,
    )


def judged_groups(of_seeds: Sequence[Trace]) -> list[str]:
    """The groups whose best differs from the overall best, in at least half of the runs."""
    half = len(of_seeds) / 2
    return [g for g in of_seeds[0].curves if sum(g in trace.differs for trace in of_seeds) >= half]


def finals(of_seeds: Sequence[Trace], group: str, what: str) -> Vector:
    """The last value of a group's curve, in every run."""
    return np.array([getattr(trace.curves[group], what)[-1] for trace in of_seeds])


def means(of_seeds: Sequence[Trace], group: str) -> tuple[float, ...]:
    """The mean final regret, baseline regret and certificate of a group."""
    kinds = ("regret", "baseline_regret", "certificate")
    return tuple(float(finals(of_seeds, group, what).mean()) for what in kinds)


def table_of(variant: Variant, of_seeds: Sequence[Trace]) -> Table:
    """One variant's final figures."""
    judged = judged_groups(of_seeds)
    rows = []
    for group in of_seeds[0].curves:
        regret, baseline, certificate = means(of_seeds, group)
        missed = variant.claims == "third" and group in judged and regret > THIRD * baseline
        rows.append(
            (
                Cell(group),
                Cell(f"{finals(of_seeds, group, 'rounds').mean():,.0f}"),
                Cell(over_seeds(finals(of_seeds, group, "baseline_regret"))),
                Cell(over_seeds(finals(of_seeds, group, "regret"))),
                Cell(number(regret / baseline) if baseline > 0.0 else "–", "bad" if missed else ""),
                Cell(number(certificate, 1)),
                Cell(of_seeds[0].status[group]),
                Cell("yes" if group in judged else "no"),
            )
        )
    note = f"Means ± standard deviations over {len(of_seeds)} seeds; expected losses. Own best: "
    note += "whether the group’s best is another than everybody’s."
    return Table(variant.title, COLUMNS, tuple(rows), note)


def figure_of(name: str, caption: str, *lines: tuple[Sequence[Trace], str, str]) -> Figure:
    """A panel per group of the first runs; lines are runs, what of their curves, and a label."""
    panels = (
        Panel(
            group,
            tuple(
                Line.over_seeds(
                    label,
                    np.mean([trace.curves[group].rounds for trace in of_seeds], axis=0),
                    np.array([getattr(trace.curves[group], what) for trace in of_seeds]),
                    colour,
                )
                for colour, (of_seeds, what, label) in enumerate(lines)
            ),
        )
        for group in lines[0][0][0].curves
    )
    return Figure(name, caption, "rounds of the group", "regret", tuple(panels))
