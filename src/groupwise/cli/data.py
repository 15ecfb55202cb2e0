"""Commands that start from a file of rows: ``init``, ``run`` and ``compare``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwise.cli.options import (
    STANDARD_OUTPUT,
    AggregatorName,
    AggregatorsAt,
    By,
    Classes,
    Config,
    Data,
    Drop,
    EngineName,
    Estimated,
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
    Segment,
    SegmentAudited,
    SkipBad,
    TableName,
    Target,
    Task,
    Windows,
    check_engine,
    show_summary,
    show_task,
    tell,
    warn,
)
from groupwise.writing import check_folder

if TYPE_CHECKING:
    from groupwise.files.plan import Plan
    from groupwise.files.scan import Scan
    from groupwise.files.segments import Asked


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
    windows: Windows = False,
    no_intercept: NoIntercept = False,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where the results go.")] = Path(
        "groupwise-run"
    ),
    jobs: Jobs = None,
    segment: Segment = None,
    engine: EngineName = "local",
    aggregators_at: AggregatorsAt = "stream",
    estimate: Estimated = False,
    by: By = None,
) -> None:
    """Predict every row of a file, learning as it goes, and report the regret on every group.

    Writes predictions.csv, regret.json, model.gw (to go on from) and report.html to --out; with
    --segment a folder predictions with Parquet in the place of the first.
    Predictions are numbers, the probability of yes (in a column such as probability:yes), or that
    of every class: see --task.
    Groups and features that are not given are proposed from the columns, and printed as TOML to
    keep and edit.
    """
    from groupwise.files import run as running
    from groupwise.files.plan import planned
    from groupwise.files.segments import Asked
    from groupwise.files.text import rows_in

    check_engine(engine, segment, aggregators_at, by, estimate)
    check_folder(out)
    options: dict[str, Any] = {
        "target": target,
        "task": task,
        "classes": classes,
        "positive": positive,
        "groups": groups,
        "features": features,
        "past": past,
        "hinges": False if no_hinges else None,
        "drop": drop,
        "experts": expert,
        "range": label_range,
        "order": order,
        "table": table,
        "missing": missing,
        "skip_bad": skip_bad,
        "preset": preset,
        "learner": learner,
        "aggregator": aggregator,
        "intersections": intersections,
        "interval": interval,
        "windows": windows or None,
        "intercept": False if no_intercept else None,
    }
    if by is not None:
        _run_by(data, config, options, by, out, jobs, engine)
        return
    with planned(data, config, **options) as (found, plan):
        warn(*plan.warnings)
        if plan.proposed:
            said = "Proposed from the columns; keep it"
            if len(plan.proposed) == 1:
                said = f"Settings of this run, its {plan.proposed[0]} proposed; keep them"
            typer.echo(f"# {said} in a file and give it with --config.")
            typer.echo(plan.toml())
        show_task(found, plan)
        if segment is None:
            finished = running.run(found, plan, out, jobs)
        elif estimate:
            _show_estimate(found, plan, Asked(segment, engine, aggregators_at, jobs))
            return
        else:
            asked = Asked(segment, engine, aggregators_at, jobs)
            finished = running.run_in_segments(found, plan, out, asked)
    show_summary(finished)
    warn(*finished.warnings[len(plan.warnings) :])
    speed = found.rows / max(finished.seconds, 1e-9)
    typer.echo(f"{rows_in(found.rows)} in {finished.seconds:.1f} s, {speed:,.0f} rows/s.")
    typer.echo(f"The report is {(out / running.REPORT).resolve()}")


def _show_estimate(found: "Scan", plan: "Plan", asked: "Asked") -> None:
    """Say what a run will cost."""
    from groupwise.engines import opened
    from groupwise.files.estimate import estimate

    with opened(asked.engine, asked.jobs) as engine:
        workers = engine.workers
    for line in estimate(found, plan, asked, workers).told():
        typer.echo(line)


def _run_by(
    data: list[str],
    config: Path | None,
    options: dict[str, Any],
    column: str,
    out: Path,
    jobs: int | None,
    engine: str,
) -> None:
    """A run for every value of a column."""
    from groupwise.files.by import Job, run_by
    from groupwise.files.text import rows_in, shown

    place = None if config is None else config.resolve()
    for one in run_by(Job(tuple(data), place, options, column, out, jobs), engine, warn):
        warn(*(f"{shown(column)} = {shown(one.value)}: {said}" for said in one.warnings))
        mean = one.loss / one.rows
        typer.echo(f"{shown(one.value)}: {rows_in(one.rows)}, mean loss {mean:.6g}")
    typer.echo(f"A folder for each is in {out.resolve()}")


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
    windows: Windows = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml", help="Write it there, not to standard output, which - is too."
        ),
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
        windows=windows or None,
    ) as (_, plan):
        notes = (*plan.notes, *plan.warnings)
    text = plan.toml(notes)
    if out in (None, STANDARD_OUTPUT):
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
            metavar="DIR",
            help="Where compare.json and report.html go. Without it, nothing is written.",
            show_default=False,
        ),
    ] = None,
    jobs: Jobs = None,
    segment: SegmentAudited = None,
    engine: EngineName = "local",
) -> None:
    """Audit logged predictions: their regret on every group against the best model in hindsight.

    Beside it stands what groupwise and a single model would have had on the same rows, and for
    probabilities the calibration of all. Prediction columns are never features or groups.
    With --segment nothing is learned: rows are added up, in parallel, and each model stands beside
    the best of every group alone.
    """
    from groupwise.files import run as running
    from groupwise.files.plan import planned

    check_engine(engine, segment, "stream", None, False)
    if out is not None:
        check_folder(out)
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
        if segment is not None:
            from groupwise.files.audit import audit
            from groupwise.files.segments import Asked

            for name, told in audit(found, plan, Asked(segment, engine, jobs=jobs), out).items():
                typer.echo(f"{name}\n{told}")
            return
        compared = running.compare(found, plan, out, jobs)
    show_summary(compared)
    warn(*compared.warnings[len(plan.warnings) :])
    if out is not None:
        typer.echo(f"The report is {(out / running.REPORT).resolve()}")
