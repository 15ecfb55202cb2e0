"""Commands that start from a file of rows: ``init``, ``run`` and ``compare``."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import (
    AggregatorName,
    Classes,
    Config,
    Data,
    Drop,
    Experts,
    FeaturesText,
    GroupsText,
    Intersections,
    Interval,
    Jobs,
    LabelRange,
    LearnerName,
    Missing,
    NoHinges,
    NoIntercept,
    Order,
    PastText,
    Positive,
    Preset,
    SkipBad,
    TableName,
    Target,
    Task,
    show_summary,
    show_task,
    tell,
    warn,
)


def run(
    data: Data,
    target: Target = None,
    task: Task = None,
    classes: Classes = None,
    positive: Positive = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    past: PastText = None,
    no_hinges: NoHinges = False,
    drop: Drop = None,
    expert: Experts = None,
    label_range: LabelRange = None,
    order: Order = None,
    table: TableName = None,
    missing: Missing = None,
    skip_bad: SkipBad = False,
    config: Config = None,
    preset: Preset = None,
    learner: LearnerName = None,
    aggregator: AggregatorName = None,
    intersections: Intersections = None,
    interval: Interval = None,
    no_intercept: NoIntercept = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the results go.")] = Path(
        "groupwise-run"
    ),
    jobs: Jobs = None,
) -> None:
    """Predict every row of a file, learning as it goes, and report the regret on every group.

    Writes predictions.csv, regret.json, model.gw (to go on from) and report.html to --out.
    Predictions are numbers, the probability of yes (in a column such as probability:yes), or that
    of every class: see --task.
    Groups and features that are not given are proposed from the columns, and printed as TOML to
    keep and edit.
    """
    from groupwise.files import run as running
    from groupwise.files.plan import planned
    from groupwise.files.text import rows_in

    with planned(
        data,
        config,
        target=target,
        task=task,
        classes=classes,
        positive=positive,
        groups=groups,
        features=features,
        past=past,
        hinges=False if no_hinges else None,
        drop=drop,
        experts=expert,
        range=label_range,
        order=order,
        table=table,
        missing=missing,
        skip_bad=skip_bad,
        preset=preset,
        learner=learner,
        aggregator=aggregator,
        intersections=intersections,
        interval=interval,
        intercept=False if no_intercept else None,
    ) as (found, plan):
        warn(*plan.warnings)
        if plan.proposed:
            typer.echo("# Proposed from the columns; keep it in a file and give it with --config.")
            typer.echo(plan.toml())
        show_task(found, plan)
        finished = running.run(found, plan, out, jobs)
    show_summary(finished)
    warn(*finished.warnings[len(plan.warnings) :])
    speed = found.rows / max(finished.seconds, 1e-9)
    typer.echo(f"{rows_in(found.rows)} in {finished.seconds:.1f} s, {speed:,.0f} rows/s.")
    typer.echo(f"The report is {(out / running.REPORT).resolve()}")


def init(
    data: Data,
    target: Target = None,
    task: Task = None,
    classes: Classes = None,
    positive: Positive = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    past: PastText = None,
    no_hinges: NoHinges = False,
    drop: Drop = None,
    expert: Experts = None,
    label_range: LabelRange = None,
    order: Order = None,
    table: TableName = None,
    missing: Missing = None,
    skip_bad: SkipBad = False,
    interval: Interval = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Write it there, not to standard output."),
    ] = None,
) -> None:
    """Propose groups and features for a file, as TOML to edit and give to run --config.

    Without --target, the last column of numbers is taken for the label.
    """
    from groupwise.files.plan import planned
    from groupwise.writing import write

    with planned(
        data,
        strict=False,
        target=target,
        task=task,
        classes=classes,
        positive=positive,
        groups=groups,
        features=features,
        past=past,
        hinges=False if no_hinges else None,
        drop=drop,
        experts=expert,
        range=label_range,
        order=order,
        table=table,
        missing=missing,
        skip_bad=skip_bad,
        interval=interval,
    ) as (_, plan):
        notes = (*plan.notes, *plan.warnings)
    text = plan.toml(notes)
    if out is None:
        typer.echo(text, nl=False)
        return
    write(out, text)
    warn(*notes)
    tell(out, f"Wrote {out}")


def compare(
    data: Data,
    prediction: Annotated[
        list[str],
        typer.Option(
            metavar="COLUMN",
            help="The column of the other model's predictions, or of its probabilities for the "
            "positive value; with more classes the NAME of columns NAME:class. Again for a further "
            "model.",
            show_default=False,
        ),
    ],
    target: Target = None,
    task: Task = None,
    classes: Classes = None,
    positive: Positive = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    past: PastText = None,
    no_hinges: NoHinges = False,
    drop: Drop = None,
    expert: Experts = None,
    label_range: LabelRange = None,
    order: Order = None,
    table: TableName = None,
    missing: Missing = None,
    skip_bad: SkipBad = False,
    config: Config = None,
    preset: Preset = None,
    learner: LearnerName = None,
    aggregator: AggregatorName = None,
    intersections: Intersections = None,
    interval: Interval = None,
    no_intercept: NoIntercept = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where compare.json and report.html go.", show_default=False
        ),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Audit logged predictions: their regret on every group against the best model in hindsight.

    Beside it stands what groupwise and a single model would have had on the same rows, and for
    probabilities the calibration of all. Prediction columns are never features or groups.
    """
    from groupwise.files import run as running
    from groupwise.files.plan import planned

    with planned(
        data,
        config,
        prediction,
        target=target,
        task=task,
        classes=classes,
        positive=positive,
        groups=groups,
        features=features,
        past=past,
        hinges=False if no_hinges else None,
        drop=drop,
        experts=expert,
        range=label_range,
        order=order,
        table=table,
        missing=missing,
        skip_bad=skip_bad,
        preset=preset,
        learner=learner,
        aggregator=aggregator,
        intersections=intersections,
        interval=interval,
        intercept=False if no_intercept else None,
    ) as (found, plan):
        warn(*plan.warnings)
        show_task(found, plan)
        compared = running.compare(found, plan, out, jobs)
    show_summary(compared)
    warn(*compared.warnings[len(plan.warnings) :])
    if out is not None:
        typer.echo(f"The report is {(out / running.REPORT).resolve()}")
