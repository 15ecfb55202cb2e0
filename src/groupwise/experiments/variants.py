"""Running variants of an experiment over seeds, and their regrets as tables and figures."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.experiments.outcome import Check, Outcome
from groupwise.experiments.trace import Trace
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, mean_and_spread, number
from groupwise.states import Vector
from groupwise.stream import job_count

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
    tasks = [(variant, seed) for variant in variants for seed in seeds]
    count = job_count(jobs)
    if count == 1:
        traces = [variant.simulate(seed, rounds) for variant, seed in tasks]
    else:
        import joblib

        parallel: Any = joblib.Parallel(count, "loky")
        traces = parallel(joblib.delayed(v.simulate)(seed, rounds) for v, seed in tasks)
    found: dict[str, list[Trace]] = {variant.name: [] for variant in variants}
    for (variant, _), trace in zip(tasks, traces, strict=True):
        found[variant.name].append(trace)
    return found


def outcome_of(variants: Sequence[Variant], traces: dict[str, list[Trace]]) -> Outcome:
    """Tables, figures, claims and numbers of all variants."""
    checks, numbers = [], {}
    for variant in variants:
        of_seeds = traces[variant.name]
        judged = judged_groups(of_seeds)
        for group in of_seeds[0].groups:
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
    groups = of_seeds[0].groups
    share = np.mean([trace.differs for trace in of_seeds], axis=0)
    return [group for group, part in zip(groups, share.tolist(), strict=True) if part >= 0.5]


def means(of_seeds: Sequence[Trace], group: str) -> tuple[float, float, float]:
    """The mean final regret, baseline regret and certificate of a group."""
    g = of_seeds[0].groups.index(group)
    regret, baseline, certificate = (
        float(np.mean([getattr(trace, key)[g, -1] for trace in of_seeds]))
        for key in ("regret", "baseline", "certificate")
    )
    return regret, baseline, certificate


def table_of(variant: Variant, of_seeds: Sequence[Trace]) -> Table:
    """One variant's final figures."""
    judged = judged_groups(of_seeds)
    rows = []
    for g, group in enumerate(of_seeds[0].groups):
        regret, baseline, certificate = means(of_seeds, group)
        ours = np.array([trace.regret[g, -1] for trace in of_seeds])
        theirs = np.array([trace.baseline[g, -1] for trace in of_seeds])
        missed = variant.claims == "third" and group in judged and regret > THIRD * baseline
        rows.append(
            (
                Cell(group),
                Cell(f"{np.mean([trace.rounds[g, -1] for trace in of_seeds]):,.0f}"),
                Cell(mean_and_spread((baseline, float(theirs.std())), 1)),
                Cell(mean_and_spread((regret, float(ours.std())), 1)),
                Cell(number(regret / baseline) if baseline > 0.0 else "–", "bad" if missed else ""),
                Cell(number(certificate, 1)),
                Cell(of_seeds[0].status[g]),
                Cell("yes" if group in judged else "no"),
            )
        )
    note = f"Means ± standard deviations over {len(of_seeds)} seeds; expected losses."
    return Table(variant.title, COLUMNS, tuple(rows), note)


def figure_of(variant: Variant, of_seeds: Sequence[Trace]) -> Figure:
    """One variant's regret over time, a panel per group."""
    panels = []
    for g, group in enumerate(of_seeds[0].groups):
        x = np.mean([trace.rounds[g] for trace in of_seeds], axis=0)

        def line(label: str, key: str, colour: int, g: int = g, x: Vector = x) -> Line:
            values = np.array([getattr(trace, key)[g] for trace in of_seeds])
            return Line(label, x, values.mean(axis=0), values.std(axis=0), colour)

        lines = (line("baseline", "baseline", 0), line("our algorithm", "regret", 1))
        panels.append(Panel(group, lines))
    caption = f"{variant.title}: regret against time. Mean ± one standard deviation over the seeds."
    return Figure(f"{variant.name}-regret", caption, "rounds of the group", "regret", tuple(panels))
