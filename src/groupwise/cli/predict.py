"""``groupwise predict``: predictions for rows, from a snapshot that stays as it is."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import Snapshot, Target


def command(
    model: Snapshot,
    rows: Annotated[
        str, typer.Argument(metavar="ROWS", help="The rows, as run takes them.", show_default=False)
    ],
    target: Target = None,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write there, not to standard output.")
    ] = None,
) -> None:
    """Predict rows with a snapshot: CSV with row, prediction and awake groups.

    Nothing is learned and the snapshot stays as it is. Labels in the rows are not looked at.
    """
    from groupwise.tabular.continuing import predict
    from groupwise.tabular.source import opened
    from groupwise.writing import replaced

    with opened(rows) as source:
        if out is None:
            predict(model, source, target, None)
            return
        with replaced(out) as part:
            count = predict(model, source, target, part)
    typer.echo(f"{count:,} predictions in {out}")
