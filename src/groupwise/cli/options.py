"""Options that several commands share."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from groupwise.files.plan import Plan
    from groupwise.files.run import Finished
    from groupwise.files.scan import Scan

STANDARD_OUTPUT = Path("-")
"""What --out is called where it is no file."""

Data = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="CSV, Parquet, Arrow or Feather, Excel, SQLite, JSON Lines or a JSON array, also "
        "packed as .gz, .zip, .xz, .zst or .bz2; - for standard input. Several files, patterns "
        "such as 'sales-*.parquet' and URLs are read one after another.",
        show_default=False,
    ),
]
Segment = Annotated[
    int | None,
    typer.Option(
        metavar="ROWS",
        min=1,
        help="Cut the rows into segments of so many, which are computed in parallel: learners "
        "begin each with the sums of all rows before. For labels that are numbers. Predictions are "
        "then Parquet, a file for each segment.",
        show_default=False,
    ),
]
EngineName = Annotated[
    str,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        help="Where segments are computed: local, ray, or the ray:// address of a cluster, whose "
        "nodes all see the files and --out.",
    ),
]
SegmentAudited = Annotated[
    int | None,
    typer.Option(
        "--segment",
        metavar="ROWS",
        min=1,
        help="Audit the rows in segments of so many, which are added up in parallel, without "
        "learning: see above. For labels that are numbers.",
        show_default=False,
    ),
]
By = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="A model of its own for every value of this column, each in a folder of its own.",
        show_default=False,
    ),
]
Estimated = Annotated[
    bool,
    typer.Option(
        "--estimate",
        help="Only say what a run in segments will cost: core hours, memory, bytes moved, and what "
        "the rest waits for. Its beginning is tried for that.",
    ),
]
AggregatorsAt = Annotated[
    str,
    typer.Option(
        metavar="WHERE",
        help="stream, or segment: the aggregator begins anew with every segment, and the "
        "certificates of all add up.",
    ),
]
TableName = Annotated[
    str | None,
    typer.Option(
        "--table",
        metavar="NAME",
        help="The table of an SQLite file, or the sheet of a workbook, where there are several.",
        show_default=False,
    ),
]
Target = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="The column to predict.", show_default=False),
]
TargetHere = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN",
        help="The column that holds the label, which is no field of a row. Without it, the one "
        "that the model was made for, as far as its snapshot or its settings name it.",
        show_default=False,
    ),
]
Task = Annotated[
    str | None,
    typer.Option(
        metavar="TASK",
        help="What the label is: number, probability (yes or no) or classes. Without it, two "
        "values (0 and 1, or two texts) are yes and no, up to 20 texts are classes, and all other "
        "numbers are numbers.",
        show_default=False,
    ),
]
Classes = Annotated[
    str | None,
    typer.Option(
        metavar="NAMES",
        help="The classes of the label, such as 'red, green, blue', also those yet to come. "
        "Without it, looked up in the whole file.",
        show_default=False,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        metavar="VALUE",
        help="Of two values, the one whose probability is predicted. Without it, the second in "
        "order: 1, true, yes.",
        show_default=False,
    ),
]
GroupsText = Annotated[
    str | None,
    typer.Option(
        "--groups",
        metavar="TEXT",
        help="Groups, such as 'sex, age:35|50, region & smoker, bmi>=30': a group per value, cuts, "
        "intersections, comparisons. Without it, text and few-valued columns.",
        show_default=False,
    ),
]
FeaturesText = Annotated[
    str | None,
    typer.Option(
        "--features",
        metavar="TEXT",
        help="Features, such as 'age, bmi:15|55, region, postcode:hashed, job:encoded, time:date'; "
        "numbers are scaled from the range given, or from the column's; hashed values share 256 "
        "features, encoded ones stand for their mean label so far, dates are features by their "
        "parts. Without it, every usable column.",
        show_default=False,
    ),
]
PastText = Annotated[
    str | None,
    typer.Option(
        "--past",
        metavar="TEXT",
        help="Make features of earlier labels, such as 'store: time hour, time hour & time "
        "weekday': of those of the row's store, and among them of those at its hour, and at its "
        "hour on its weekday. all is for those of the whole file, none for none. Without it, "
        "proposed where --order is given and --features is not. See docs/features.md.",
        show_default=False,
    ),
]
NoHinges = Annotated[
    bool,
    typer.Option(
        "--no-hinges",
        help="The effect of a number is a straight line. Without this option the line may bend at "
        "quantiles of the number: see docs/features.md.",
    ),
]
Drop = Annotated[
    str | None,
    typer.Option(metavar="COLUMNS", help="Columns to leave out.", show_default=False),
]
Experts = Annotated[
    list[str] | None,
    typer.Option(
        "--expert",
        metavar="COLUMN",
        help="The column of another model's predictions, or of its probabilities for the positive "
        "value: an expert of every group, than which groupwise is never much worse, and neither "
        "feature nor group. Again for a further one.",
        show_default=False,
    ),
]
ExpertsHere = Annotated[
    list[str] | None,
    typer.Option(
        "--expert",
        metavar="COLUMN",
        help="The column of an expert's predictions, where it has another name than in the run: "
        "once for each expert, in their order.",
        show_default=False,
    ),
]
LabelRange = Annotated[
    str | None,
    typer.Option(
        "--range",
        metavar="LOW,HIGH",
        help="The range of a label that is a number. Without it, looked up in the whole file.",
        show_default=False,
    ),
]
Missing = Annotated[
    str | None,
    typer.Option(
        metavar="WHAT",
        help="What a missing value of a feature is: indicator (the default: it counts as 0, with a "
        "feature beside it that says so), error, or drop (leave the row out).",
        show_default=False,
    ),
]
SkipBad = Annotated[
    bool,
    typer.Option(
        "--skip-bad",
        help="Name rows that cannot be used by number, and go on without them.",
    ),
]
Order = Annotated[
    list[str] | None,
    typer.Option(
        metavar="COLUMN",
        help="Sort the rows by a column; again for one to sort by where rows are alike in it. "
        "Without it, file order.",
        show_default=False,
    ),
]
Config = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE.toml",
        help="Settings, as groupwise init proposes them; options on the command line come first.",
        show_default=False,
    ),
]
LearnerName = Annotated[
    str | None,
    typer.Option(
        "--learner",
        metavar="NAME",
        help="portfolio (the default); ridge or forward for numbers, logistic for probabilities.",
        show_default=False,
    ),
]
AggregatorName = Annotated[
    str | None,
    typer.Option(
        "--aggregator",
        metavar="NAME",
        help="prod (the default), specialists or adanormalhedge for numbers; specialists for "
        "probabilities.",
        show_default=False,
    ),
]
Preset = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="paper: Algorithm 1 as published, for numbers. Other options come first.",
        show_default=False,
    ),
]
Intersections = Annotated[
    int | None,
    typer.Option(
        metavar="2", help="2 adds the intersection of every two groups.", show_default=False
    ),
]
Interval = Annotated[
    float | None,
    typer.Option(
        "--interval",
        metavar="SHARE",
        help="Put an interval around every prediction that covers this share of the labels on "
        "every group, such as 0.9; for labels that are numbers.",
        show_default=False,
    ),
]
Windows = Annotated[
    bool,
    typer.Option(
        "--windows",
        help="Small regret on every recent stretch of every group too, with certificates: it "
        "follows groups that change; for labels that are numbers.",
    ),
]
NoIntercept = Annotated[
    bool,
    typer.Option("--no-intercept", help="Add no feature that is 1 in every row."),
]
Jobs = Annotated[
    int | None,
    typer.Option(
        metavar="THREADS", min=1, help="Threads; one per core by default.", show_default=False
    ),
]
Snapshot = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A snapshot, such as model.gw.", show_default=False)
]
Rows = Annotated[
    str, typer.Argument(metavar="ROWS", help="The rows, as run takes them.", show_default=False)
]

Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Ask a service, such as http://127.0.0.1:8088; MODEL is then a name there.",
        show_default=False,
    ),
]
TokenText = Annotated[
    str | None,
    typer.Option(
        "--token",
        metavar="TOKEN",
        envvar="GROUPWISE_TOKEN",
        help="For the service, where it has tokens.",
        show_default=False,
    ),
]
Ids = Annotated[
    str | None,
    typer.Option(
        "--id",
        metavar="COLUMN",
        help="With --url: the column that names rows. What is sent twice then counts once.",
        show_default=False,
    ),
]
Stored = Annotated[
    str,
    typer.Option(
        "--store",
        metavar="FILE|postgresql://…",
        help="Where everything is kept: an SQLite file, or a PostgreSQL database.",
    ),
]


def warn(*messages: str) -> None:
    """Say something on standard error."""
    for message in messages:
        typer.echo(f"groupwise: {message}", err=True)


def tell(out: Path, message: str) -> None:
    """Say what was written; beside a device or a pipe, which may be standard output itself."""
    from groupwise.writing import is_stream

    typer.echo(message, err=is_stream(out))


def show_task(found: "Scan", plan: "Plan") -> None:
    """What is predicted, where that is a probability."""
    from groupwise.files.labels import described

    if plan.task.is_chance:
        typer.echo(described(plan.task, found.columns[plan.target]))


def check_engine(
    engine: str, segment: int | None, aggregators_at: str, by: str | None, estimated: bool
) -> None:
    """Refuse what does not go together, before anything is read."""
    from groupwise.engines import LOCAL, checked_engine
    from groupwise.errors import ConfigurationError

    if by is not None and (segment is not None or estimated):
        raise ConfigurationError("--by runs every value whole: leave out --segment and --estimate.")
    if checked_engine(engine) != LOCAL and segment is None and by is None:
        raise ConfigurationError(
            f"--engine {engine} needs --segment ROWS, or --by COLUMN: these are its tasks."
        )
    if estimated and segment is None:
        raise ConfigurationError("--estimate needs --segment ROWS.")
    if aggregators_at not in ("stream", "segment"):
        raise ConfigurationError(f"--aggregators-at is stream or segment, not {aggregators_at!r}.")
    if aggregators_at == "segment" and segment is None:
        raise ConfigurationError("--aggregators-at segment needs --segment ROWS.")


def show_summary(finished: "Finished") -> None:
    """The worst groups, and what came of it in a few sentences."""
    from groupwise.files.tables import summary
    from groupwise.report.tables import console, show

    table = summary(
        finished.rows, finished.measure, finished.players, experts=finished.plan.experts
    )
    show(console(), table)
    for sentence in finished.verdicts:
        typer.echo(sentence)
    if finished.plan.task.is_chance:
        typer.echo(f"Regret is against {finished.table.comparator}.")
