"""``groupwise predict``: predictions for rows, from a snapshot that stays as it is."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import Rows, Snapshot, Target


def command(
    model: Snapshot,
    rows: Rows,
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write there, not to standard output.")
    ] = None,
) -> None:
    """Predict rows with a snapshot: CSV with row, prediction and awake groups.

    Nothing is learned and the snapshot stays as it is. Labels in the rows are not looked at.
    """
    from groupwise.files.snapshots import predict
    from groupwise.files.source import opened

    with opened(rows) as source:
        count = predict(model, source, target, out)
    if out is not None:
        typer.echo(f"{count:,} predictions in {out}")
