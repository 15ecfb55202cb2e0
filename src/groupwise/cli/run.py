"""``groupwise run``: a file of rows through a model, to a report."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import (
    AggregatorName,
    Config,
    Data,
    Drop,
    FeaturesText,
    GroupsText,
    Jobs,
    LabelRange,
    LearnerName,
    Order,
    Target,
    show_summary,
    warn,
)


def command(
    data: Data,
    target: Target = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    drop: Drop = None,
    label_range: LabelRange = None,
    order: Order = None,
    config: Config = None,
    learner: LearnerName = None,
    aggregator: AggregatorName = None,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the results go.")] = Path(
        "groupwise-run"
    ),
    jobs: Jobs = None,
) -> None:
    """Predict every row of a file, learning as it goes, and report the regret on every group.

    Writes predictions.csv, regret.json, model.gw (to go on from) and report.html to --out.
    Groups and features that are not given are proposed from the columns, and printed as TOML to
    keep and edit.
    """
    from groupwise.files.plan import planned
    from groupwise.files.run import REPORT, run
    from groupwise.files.settings import as_toml

    with planned(
        data,
        config,
        target=target,
        groups=groups,
        features=features,
        drop=drop,
        range=label_range,
        order=order,
        learner=learner,
        aggregator=aggregator,
    ) as (found, plan):
        warn(*plan.warnings)
        if plan.proposed:
            typer.echo("# Proposed from the columns; keep it in a file and give it with --config.")
            typer.echo(as_toml(plan))
        finished = run(found, plan, out, jobs)
    show_summary(finished)
    warn(*finished.warnings[len(plan.warnings) :])
    typer.echo(f"{found.rows:,} rows in {finished.seconds:.1f} s, {finished.speed:,.0f} rows/s.")
    typer.echo(f"The report is {(out / REPORT).resolve()}")
