"""With and without the always-on group."""

from functools import partial

import numpy as np

from groupwise.experiments import classification, routing
from groupwise.experiments.outcome import Check, Outcome, Plan
from groupwise.experiments.trace import Trace
from groupwise.experiments.variants import Variant, simulate_all
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, mean_and_spread, number

TITLE = "With and without the always-on group"
ABOUT = (
    "The always-on group holds every round. Its learner is the single model that the reduction "
    "is compared with, it gives everybody a regret guarantee, and it covers rounds that no "
    "other group is in. Here the routing and classification experiments are run with and "
    "without it. Where every round is in some group, as in routing (rain, or no rain), leaving "
    "it out changes little: the aggregator has one expert less to rule out. The price of having "
    "it is small, and the guarantee for everybody goes with it."
)
SEEDS = tuple(range(1_000, 1_010))
SLACK = 0.10
"""By how much of the group's rounds regret may differ (scaled losses)."""


def run(plan: Plan) -> Outcome:
    """Routing with fixed levels, and classification with one label, both ways."""
    seeds = SEEDS[: plan.seeds]
    tables, figures, checks, numbers = [], [], [], {}
    for title, rounds, unit, simulate in (
        ("routing", routing.ROUNDS, float(routing.PATH), partial(routing.simulate, "fixed")),
        (
            "classification",
            classification.ROUNDS,
            1.0,
            partial(classification.simulate, "transductive", 1, 0.0),
        ),
    ):
        variants = [
            Variant("with", title, simulate, ""),
            Variant("without", title, partial(simulate, always_on=False), ""),
        ]
        traces = simulate_all(variants, seeds, plan.rounds or rounds, plan.jobs)
        tables.append(_table(title, traces))
        figures.append(_figure(title, traces))
        for group in traces["without"][0].groups:
            for name in traces:
                numbers[f"{title}/{group}/{name}"] = float(_final(traces[name], group).mean())
            difference = numbers[f"{title}/{group}/with"] - numbers[f"{title}/{group}/without"]
            runs = traces["without"]
            size = float(runs[0].rounds[runs[0].groups.index(group), -1])
            checks.append(
                Check(
                    f"{title}: on {group} the always-on group costs at most {SLACK:g} a round",
                    difference <= SLACK * unit * size,
                    f"{number(difference, 1)} in {size:,.0f} rounds",
                )
            )
    return Outcome(tables, figures, checks, numbers)


def _final(traces: list[Trace], group: str) -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return np.array([trace.regret[trace.groups.index(group), -1] for trace in traces])


def _table(title: str, traces: dict[str, list[Trace]]) -> Table:
    columns = (Column("Group", numeric=False), Column("With"), Column("Without"))
    rows = []
    for group in traces["without"][0].groups:
        found = [_final(traces[name], group) for name in ("with", "without")]
        cells = (mean_and_spread((float(f.mean()), float(f.std())), 1) for f in found)
        rows.append((Cell(group), *(Cell(cell) for cell in cells)))
    note = f"Our regret: means ± standard deviations over {len(traces['with'])} seeds."
    return Table(title.capitalize(), columns, tuple(rows), note)


def _figure(title: str, traces: dict[str, list[Trace]]) -> Figure:
    panels = []
    for group in traces["without"][0].groups:
        lines = []
        for colour, name in enumerate(("without", "with")):
            runs = traces[name]
            g = runs[0].groups.index(group)
            x = np.mean([trace.rounds[g] for trace in runs], axis=0)
            y = np.array([trace.regret[g] for trace in runs])
            lines.append(Line(f"{name} always_on", x, y.mean(axis=0), y.std(axis=0), colour))
        panels.append(Panel(group, tuple(lines)))
    caption = f"Our regret in {title}, with and without the always-on group."
    return Figure(f"ablation-{title}", caption, "rounds of the group", "regret", tuple(panels))
