"""With and without the always-on group."""

from functools import partial

from groupwise.paper import classification, routing
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.variants import Variant, figure_of, finals, simulate_all
from groupwise.report.tables import Cell, Column, Table, number, over_seeds

SEEDS = tuple(range(1_000, 1_010))
SLACK = 0.10
"""By how much of the group's rounds regret may differ (scaled losses)."""


def run(request: Request) -> Outcome:
    """Routing with fixed levels, and classification with one label, both ways."""
    columns = (Column("Group", numeric=False), Column("With"), Column("Without"))
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
        traces = simulate_all(variants, request, SEEDS, rounds)
        rows = []
        for group, curve in traces["without"][0].curves.items():
            both = {name: finals(runs, group, "regret") for name, runs in traces.items()}
            rows.append((Cell(group), *(Cell(over_seeds(regrets)) for regrets in both.values())))
            for name, regrets in both.items():
                numbers[f"{title}/{group}/{name}"] = float(regrets.mean())
            difference = numbers[f"{title}/{group}/with"] - numbers[f"{title}/{group}/without"]
            size = float(curve.rounds[-1])
            checks.append(
                Check(
                    f"{title}: on {group} the always-on group costs at most {SLACK:g} a round",
                    difference <= SLACK * unit * size,
                    f"{number(difference, 1)} in {size:,.0f} rounds",
                )
            )
        note = f"Our regret: means ± standard deviations over {len(traces['with'])} seeds."
        tables.append(Table(title.capitalize(), columns, tuple(rows), note))
        figures.append(
            figure_of(
                f"ablation-{title}",
                f"Our regret in {title}, with and without the always-on group.",
                (traces["without"], "regret", "without always_on"),
                (traces["with"], "regret", "with always_on"),
            )
        )
    return Outcome(tables, figures, checks, numbers)


STUDY = Study(
    "With and without the always-on group",
    "The always-on group holds every round. Its learner is the single model that the reduction "
    "is compared with, it gives everybody a regret guarantee, and it covers rounds that no "
    "other group is in. Here the routing and classification experiments are run with and "
    "without it. Where every round is in some group, as in routing (rain, or no rain), leaving "
    "it out changes little: the aggregator has one expert less to rule out. The price of having "
    "it is small, and the guarantee for everybody goes with it.",
    run,
)
