"""With and without the always-on group."""

from functools import partial

from groupwise.paper import classification, routing
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.variants import Trace, Variant, finals, line, simulate_all
from groupwise.report.figures import Figure, Panel
from groupwise.report.tables import Cell, Column, Table, number, over_seeds

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


def run(request: Request) -> Outcome:
    """Routing with fixed levels, and classification with one label, both ways."""
    seeds = SEEDS[: request.seeds]
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
        traces = simulate_all(variants, seeds, request.rounds or rounds, request.jobs)
        tables.append(_table(title, traces))
        figures.append(_figure(title, traces))
        for group, curve in traces["without"][0].curves.items():
            for name, runs in traces.items():
                numbers[f"{title}/{group}/{name}"] = float(finals(runs, group, "regret").mean())
            difference = numbers[f"{title}/{group}/with"] - numbers[f"{title}/{group}/without"]
            size = float(curve.rounds[-1])
            checks.append(
                Check(
                    f"{title}: on {group} the always-on group costs at most {SLACK:g} a round",
                    difference <= SLACK * unit * size,
                    f"{number(difference, 1)} in {size:,.0f} rounds",
                )
            )
    return Outcome(tables, figures, checks, numbers)


def _table(title: str, traces: dict[str, list[Trace]]) -> Table:
    columns = (Column("Group", numeric=False), Column("With"), Column("Without"))
    rows = tuple(
        (
            Cell(group),
            *(Cell(over_seeds(finals(traces[n], group, "regret"))) for n in ("with", "without")),
        )
        for group in traces["without"][0].curves
    )
    note = f"Our regret: means ± standard deviations over {len(traces['with'])} seeds."
    return Table(title.capitalize(), columns, rows, note)


def _figure(title: str, traces: dict[str, list[Trace]]) -> Figure:
    panels = []
    for group in traces["without"][0].curves:
        without = line(traces["without"], group, "regret", "without always_on", 0)
        with_it = line(traces["with"], group, "regret", "with always_on", 1)
        panels.append(Panel(group, (without, with_it)))
    caption = f"Our regret in {title}, with and without the always-on group."
    return Figure(f"ablation-{title}", caption, "rounds of the group", "regret", tuple(panels))


STUDY = Study(TITLE, ABOUT, run)
