"""``groupwise compare``: audit another model's logged predictions."""

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
    prediction: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="The column of the other model's predictions; again for a further model.",
            show_default=False,
        ),
    ],
    target: Target = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    drop: Drop = None,
    label_range: LabelRange = None,
    order: Order = None,
    config: Config = None,
    learner: LearnerName = None,
    aggregator: AggregatorName = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where compare.json and report.html go.", show_default=False
        ),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Audit logged predictions: their regret on every group against the best linear model.

    Beside it stands what groupwise and a single model would have had on the same rows. Prediction
    columns are never features or groups.
    """
    from groupwise.files.compare import compare
    from groupwise.files.plan import planned
    from groupwise.files.run import REPORT

    with planned(
        data,
        config,
        prediction,
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
        compared = compare(found, plan, prediction, out, jobs)
    show_summary(compared)
    if out is not None:
        typer.echo(f"The report is {(out / REPORT).resolve()}")
