"""Variants of an experiment over seeds: every group's regret over time, as tables and figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from groupwise.arrays import Vector
from groupwise.groups import ALWAYS_ON
from groupwise.model import Groupwise
from groupwise.paper.claims import Check, Outcome
from groupwise.paper.engine import in_processes
from groupwise.regret.curves import Curve, Recorder, moments
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number, over_seeds

POINTS = 25
ROUNDING = 1e-9
THIRD = 1.0 / 3.0

COLUMNS = (
    Column("Group", numeric=False),
    Column("Rounds"),
    Column("Baseline’s regret"),
    Column("Our regret"),
    Column("Ratio"),
    Column("Certificate"),
    Column("Status", numeric=False),
    Column("Best differs from overall", numeric=False),
)


@dataclass(frozen=True, eq=False)
class Trace:
    """One run: a curve and a status for every group, and whose best is not the overall best."""

    curves: Mapping[str, Curve]
    status: Mapping[str, str]
    differs: frozenset[str]


class Following:
    """Counts the rounds of a run, and takes down the model's regret table after some of them."""

    def __init__(self, model: Groupwise, rounds: int) -> None:
        self.model = model
        self.rounds = rounds
        self._moments = moments(rounds, POINTS)
        self._recorder = Recorder()

    def __iter__(self) -> Iterator[int]:
        wanted = set(self._moments.tolist())
        for time in range(1, self.rounds + 1):
            yield time
            if time in wanted:
                self._recorder.record(time, self.model.regret())

    def trace(self) -> Trace:
        """The whole run."""
        table = self.model.regret()
        rows = {row["group"]: row for row in sorted(table, key=lambda row: row["group"])}
        rows |= {ALWAYS_ON: rows.pop(ALWAYS_ON)} if ALWAYS_ON in rows else {}  # it comes last
        curves = self._recorder.curves()
        differs = (
            group
            for group, row in rows.items()
            if ALWAYS_ON in rows
            and self.model.best_elsewhere(group, ALWAYS_ON) > row["best_loss"] + ROUNDING
        )
        return Trace(
            {group: curves[group].at(self._moments) for group in rows},
            {group: row["status"] for group, row in rows.items()},
            frozenset(differs),
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
    variants: Sequence[Variant], seeds: Sequence[int], rounds: int, jobs: int | None
) -> dict[str, list[Trace]]:
    """Every variant's runs, by its name."""
    calls = [partial(variant.simulate, seed, rounds) for variant in variants for seed in seeds]
    traces = list(in_processes(calls, jobs))
    starts = range(0, len(traces), len(seeds))
    return {
        variant.name: traces[start : start + len(seeds)]
        for variant, start in zip(variants, starts, strict=True)
    }


def outcome_of(variants: Sequence[Variant], traces: Mapping[str, Sequence[Trace]]) -> Outcome:
    """Tables, figures, claims and numbers of all variants."""
    checks, numbers = [], {}
    for variant in variants:
        of_seeds = traces[variant.name]
        judged = judged_groups(of_seeds)
        for group in of_seeds[0].curves:
            regret, baseline, certificate = means(of_seeds, group)
            numbers[f"{variant.name}/{group}/regret"] = regret
            numbers[f"{variant.name}/{group}/baseline"] = baseline
            if variant.claims == "third" and group in judged:
                checks.append(
                    Check(
                        f"{variant.title}: on {group} our mean regret is at most a third of the "
                        "baseline’s",
                        regret <= THIRD * baseline,
                        f"{number(regret)} of {number(baseline)}",
                    )
                )
            if variant.claims == "certificate":
                checks.append(
                    Check(
                        f"{variant.title}: on {group} our mean regret is below the certificate",
                        regret <= certificate,
                        f"{number(regret)} below {number(certificate)}",
                    )
                )
    tables = [table_of(variant, traces[variant.name]) for variant in variants]
    figures = [figure_of(variant, traces[variant.name]) for variant in variants]
    return Outcome(tables, figures, checks, numbers)


def judged_groups(of_seeds: Sequence[Trace]) -> list[str]:
    """The groups whose best differs from the overall best, in at least half of the runs."""
    half = len(of_seeds) / 2
    groups = of_seeds[0].curves
    return [group for group in groups if sum(group in t.differs for t in of_seeds) >= half]


def finals(of_seeds: Sequence[Trace], group: str, what: str) -> Vector:
    """The last value of a group's curve, in every run."""
    return np.array([getattr(trace.curves[group], what)[-1] for trace in of_seeds])


def means(of_seeds: Sequence[Trace], group: str) -> tuple[float, float, float]:
    """The mean final regret, baseline regret and certificate of a group."""
    regret, baseline, certificate = (
        float(finals(of_seeds, group, what).mean())
        for what in ("regret", "baseline_regret", "certificate")
    )
    return regret, baseline, certificate


def line(of_seeds: Sequence[Trace], group: str, what: str, label: str, colour: int) -> Line:
    """A group's curve over all runs."""
    rounds = np.mean([trace.curves[group].rounds for trace in of_seeds], axis=0)
    values = np.array([getattr(trace.curves[group], what) for trace in of_seeds])
    return Line.over_seeds(label, rounds, values, colour)


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
    note = f"Means ± standard deviations over {len(of_seeds)} seeds; expected losses."
    return Table(variant.title, COLUMNS, tuple(rows), note)


def figure_of(variant: Variant, of_seeds: Sequence[Trace]) -> Figure:
    """One variant's regret over time, a panel per group."""
    panels = []
    for group in of_seeds[0].curves:
        baseline = line(of_seeds, group, "baseline_regret", "baseline", 0)
        ours = line(of_seeds, group, "regret", "our algorithm", 1)
        panels.append(Panel(group, (baseline, ours)))
    caption = f"{variant.title}: regret against time. Mean ± one standard deviation over the seeds."
    return Figure(f"{variant.name}-regret", caption, "rounds of the group", "regret", tuple(panels))
