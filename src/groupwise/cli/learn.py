"""``groupwise learn``: go on with a stream from a snapshot."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import Jobs, Rows, Snapshot, Target


def command(
    model: Snapshot,
    rows: Rows,
    target: Target = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.gw", help="Write the model there, not over the old one."),
    ] = None,
    jobs: Jobs = None,
) -> None:
    """Predict and learn further rows, and write the snapshot anew.

    The snapshot is replaced in one step when all rows are learned: until then, and whenever
    something goes wrong, it is the old one.
    """
    from groupwise.files.snapshots import learn
    from groupwise.files.source import opened

    place = model if out is None else out
    with opened(rows) as source:
        learned = learn(model, source, target, place, jobs)
    typer.echo(
        f"{learned.rows:,} rows learned, {learned.settled:,} in all; their typical error is "
        f"{learned.error:.6g}. The model is {place}"
    )
