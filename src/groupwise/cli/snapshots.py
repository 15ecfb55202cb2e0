"""Commands that start from a snapshot: ``regret``, ``predict`` and ``learn``."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import (
    STANDARD_OUTPUT,
    ExpertsHere,
    Ids,
    Jobs,
    Rows,
    SkipBad,
    Snapshot,
    TableName,
    TargetHere,
    TokenText,
    Url,
    tell,
    warn,
)
from groupwise.errors import ConfigurationError, OutputError


def regret(
    model: Snapshot,
    every: Annotated[bool, typer.Option("--all", help="Show all groups, however many.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: all figures.")] = False,
    last: Annotated[
        int | None,
        typer.Option(
            metavar="ROUNDS",
            min=1,
            help="Of the last rounds of every group, within the shortest stretch that there is; "
            "for models with --windows.",
        ),
    ] = None,
) -> None:
    """Show regret and certificate of every group that a snapshot has seen."""
    from groupwise.files.snapshots import look
    from groupwise.files.tables import FIRST, summary
    from groupwise.report.tables import console, json_text, show

    table, measure, calibration = look(model, last)
    if as_json:
        record = {"schema": 1, "units": measure.units(table.rows), "rows": table.rows}
        record["comparator"] = table.comparator
        record["a_priori"] = table.foreknown
        record |= {} if last is None else {"last": last}
        typer.echo(json_text({**record, **calibration, "rounds": table.settled}), nl=False)
        return
    if not table.rows:
        typer.echo("The model has seen no row yet.")
        return
    first = None if every else FIRST
    ranked = measure.ranked(table.rows)
    show(console(), summary(ranked, measure, first=first, experts=table.experts))
    typer.echo(f"{table.settled:,} settled rounds; regret is against {table.comparator}.")
    if last is not None:
        typer.echo(
            f"Rounds are those of the shortest stretch that covers the last {last:,} of a group, "
            "or all that it has."
        )
    typer.echo(table.foreknown.replace("a_priori", "a priori"))  # as the heading has it
    if any(row["best_kind"] == "bracket" for row in table.rows):
        typer.echo(
            "Where the best is a range, it lies within, and regret is what it is at most: of every "
            "group a snapshot keeps some rows only. The run that made it had all of them."
        )


def predict(
    model: Snapshot,
    rows: Rows,
    target: TargetHere = None,
    expert: ExpertsHere = None,
    table: TableName = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.csv", help="Write there, not to standard output, which - is too."
        ),
    ] = None,
    url: Url = None,
    token: TokenText = None,
    id_column: Ids = None,
) -> None:
    """Predict rows with a snapshot: CSV with row, prediction and awake groups.

    Probabilities have columns such as probability:yes, one for the positive value of two, or one
    for each of several classes.
    Nothing is learned and the snapshot stays as it is. Labels in the rows are not looked at.
    With --url a service predicts, and issues a ticket for every row; --target names the label there
    unless the model's settings do.
    """
    from groupwise.files import snapshots
    from groupwise.files.source import opened

    out = None if out == STANDARD_OUTPUT else out
    with opened(rows, table, skip_bad) as source:
        if url is None:
            asked = snapshots.Further(target, expert or (), skip_bad)
            count, remarks = snapshots.predict(model, source, out, asked)
            warn(*remarks)
        else:
            from groupwise.client import Client
            from groupwise.serve.remote import Remote

            with Client(url, token, str(model)) as client:
                remote = Remote(client, id_column)
                warn(*remote.remarks(target))
                count = remote.predict(source, target, out)
    if out is not None:
        tell(out, f"{count:,} prediction{'s' * (count != 1)} in {out}")


def learn(
    model: Snapshot,
    rows: Rows,
    target: TargetHere = None,
    expert: ExpertsHere = None,
    table: TableName = None,
    skip_bad: SkipBad = False,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.gw", help="Write the model there, not over the old one."),
    ] = None,
    widen: Annotated[
        bool,
        typer.Option(
            "--widen",
            help="Make the range of labels as wide as those in the rows. What was learned stays.",
        ),
    ] = False,
    jobs: Jobs = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Do not wait for another process, but give up.")
    ] = False,
    url: Url = None,
    token: TokenText = None,
    id_column: Ids = None,
) -> None:
    """Predict and learn further rows, and write the snapshot anew.

    The snapshot is replaced in one step when all rows are learned: until then, and whenever
    something goes wrong, it is the old one.
    Where another process is learning into it, this one waits until it has.
    With --url a service predicts and learns the rows.
    """
    from groupwise.files import snapshots
    from groupwise.files.source import opened

    if out == STANDARD_OUTPUT:
        raise ConfigurationError("A snapshot is a file: give --out a name, such as next.gw.")
    if url is not None:
        if out is not None or no_wait or jobs is not None or widen or skip_bad:
            raise ConfigurationError(
                "--out, --jobs, --no-wait, --widen and --skip-bad are for snapshots, without --url."
            )
        from groupwise.client import Client
        from groupwise.serve.remote import Remote

        with opened(rows, table) as source, Client(url, token, str(model)) as client:
            found = Remote(client, id_column).learn(source, target)
        told = ", ".join(f"{count:,} {outcome}" for outcome, count in sorted(found.items()))
        sent = sum(found.values())
        typer.echo(f"{sent:,} label{'s' * (sent != 1)} sent: {told or 'none'}")
        if found.keys() - {"settled", "already"}:
            raise typer.Exit(1)
        return
    place = model if out is None else out

    def waiting() -> None:
        if no_wait:
            raise OutputError(
                f"Another process is learning into {place}. Try again later; without --no-wait "
                "this one waits."
            )
        warn(f"waiting for {place}, which another process is learning into.")

    with opened(rows, table, skip_bad) as source:
        asked = snapshots.Further(target, expert or (), skip_bad, widen)
        learned = snapshots.learn(model, source, place, asked, jobs, waiting)
    warn(*learned.remarks)
    tell(
        place,
        f"{learned.told}. The model is {place}",
    )
