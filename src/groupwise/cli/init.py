"""``groupwise init``: groups and features proposed from a file's columns."""

from pathlib import Path
from typing import Annotated

import typer

from groupwise.cli.options import Data, Drop, FeaturesText, GroupsText, LabelRange, Target, warn


def command(
    data: Data,
    target: Target = None,
    groups: GroupsText = None,
    features: FeaturesText = None,
    drop: Drop = None,
    label_range: LabelRange = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FILE.toml", help="Write it there, not to standard output."),
    ] = None,
) -> None:
    """Propose groups and features for a file, as TOML to edit and give to run --config.

    Without --target, the last column of numbers is taken for the label.
    """
    from groupwise.files.plan import planned
    from groupwise.files.settings import as_toml
    from groupwise.writing import write

    with planned(
        data,
        strict=False,
        target=target,
        groups=groups,
        features=features,
        drop=drop,
        range=label_range,
    ) as (_, plan):
        notes = (*plan.notes, *plan.warnings)
    text = as_toml(plan, notes)
    if out is None:
        typer.echo(text, nl=False)
        return
    write(out, text)
    warn(*notes)
    typer.echo(f"Wrote {out}")
