"""``groupwise reproduce``: the paper's tables and figures, next to the published ones."""

import warnings
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import warn


class Order(StrEnum):
    """The orders of the rows."""

    shuffled = "shuffled"
    sorted = "sorted"
    both = "both"


class Play(StrEnum):
    """How advice becomes one prediction."""

    sample = "sample"
    mean = "mean"


def command(
    experiments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EXPERIMENT",
            help="synthetic-mean, synthetic-min, synthetic-max, synthetic-permutation, medical, "
            "adult, or all (the default). Beyond the paper's tables: routing, "
            "classification-transductive, classification-separator, lending, enumeration, "
            "ablation, rates, claims.",
            show_default=False,
        ),
    ] = None,
    order: Annotated[
        Order, typer.Option(metavar="shuffled|sorted|both", help="The order of the rows.")
    ] = Order.both,
    seeds: Annotated[
        int | None,
        typer.Option(
            metavar="SEEDS",
            min=1,
            help="How many seeds; all by default: the paper's ten.",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Where insurance.csv, adult_reconstruction.csv and adult_uci.csv.gz are; what is "
            "not there is downloaded.",
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(metavar="DIR", help="Where tables, figures and index.html go.")
    ] = Path("reproduction"),
    jobs: Annotated[
        int | None,
        typer.Option(
            metavar="RUNS",
            min=1,
            help="Runs at a time; one per core by default.",
            show_default=False,
        ),
    ] = None,
    engine: Annotated[
        str, typer.Option(metavar="ENGINE", help="local, ray, or the ray:// address of a cluster.")
    ] = "local",
    preset: Annotated[
        str,
        typer.Option(metavar="NAME", help="paper, or recommended: what models have by default."),
    ] = "paper",
    aggregator: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="adanormalhedge, specialists or prod.", show_default=False
        ),
    ] = None,
    learner: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="ridge, forward, recommended, or portfolio: four ridges on every group.",
            show_default=False,
        ),
    ] = None,
    intersections: Annotated[
        int,
        typer.Option(
            metavar="1|2", min=1, max=2, help="2 adds the intersections of every two groups."
        ),
    ] = 1,
    forward: Annotated[
        bool, typer.Option("--forward", help="Forward ridge; the same as --learner forward.")
    ] = False,
    play: Annotated[
        Play | None,
        typer.Option(
            metavar="sample|mean",
            help="Draw one expert and report the expected loss, or play the mean of the advice. "
            "Without it: sample with adanormalhedge, its own with the others.",
            show_default=False,
        ),
    ] = None,
    clip: Annotated[
        bool, typer.Option("--clip", help="Clip the advice to the label's range.")
    ] = False,
    no_always_on: Annotated[
        bool, typer.Option("--no-always-on", help="Run without the group of everybody.")
    ] = False,
) -> None:
    """The paper's tables and figures, next to the published ones.

    Exits with 1 where a figure misses its tolerance under the paper's settings, or a claim of an
    experiment does not hold.
    Starting again in the same folder goes on where it was interrupted.
    """
    from groupwise.datasets import PAPER_SEEDS
    from groupwise.paper.beyond import STUDIES, run
    from groupwise.paper.claims import Request
    from groupwise.paper.published import ORDERS, chosen_settings, refuse_unknown
    from groupwise.paper.reproduction import Plan, reproduce
    from groupwise.paper.tables import EXACT, NOTE, summary_table, table_of
    from groupwise.report.tables import console, show

    screen = console()
    refuse_unknown(experiments or (), STUDIES)
    beyond = [name for name in experiments or () if name in STUDIES]
    holds = True
    for name in beyond:
        request = Request(out=out, seeds=seeds, jobs=jobs, data=data, say=warn, what=name)
        outcome, page = run(name, request, lambda table: show(screen, table))
        typer.echo(f"The page is {page.resolve()}")
        holds = holds and all(check.holds for check in outcome.checks)
    experiments = [name for name in experiments or () if name not in STUDIES]
    if beyond and not experiments:
        raise typer.Exit(0 if holds else 1)
    plan = Plan(
        experiments=tuple(experiments),
        orders=ORDERS if order is Order.both else (order.value,),
        seeds=len(PAPER_SEEDS) if seeds is None else seeds,
        data=data,
        out=out,
        jobs=jobs,
        engine=engine,
        settings=chosen_settings(
            preset=preset,
            learner=learner,
            aggregator=aggregator,
            forward=forward,
            play=None if play is None else play.value,
            clip=clip,
            always_on=not no_always_on,
            intersections=intersections,
        ),
    )
    # What joblib says about work that an interrupt leaves undone is no news to who interrupted.
    warnings.filterwarnings("ignore", message=".*still being processed by the workers")
    try:
        reproduction = reproduce(
            plan,
            say=warn,
            show=lambda result: show(screen, table_of(result).without(EXACT)),
            progress=True,
        )
    except KeyboardInterrupt:
        raise KeyboardInterrupt("The same command goes on from here.") from None
    show(screen, summary_table(reproduction.results))
    screen.print(NOTE, style="dim", markup=False)
    typer.echo(f"The page is {reproduction.page.resolve()}")
    if not holds or any(result.misses for result in reproduction.results):
        raise typer.Exit(1)
