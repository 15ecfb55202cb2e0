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
    from groupwise.files.plan import guess_target, make_plan
    from groupwise.files.scan import scan
    from groupwise.files.settings import as_toml, request_from
    from groupwise.files.source import opened
    from groupwise.writing import write

    request = request_from(
        None, target=target, groups=groups, features=features, drop=drop, range=label_range
    )
    with opened(data) as source:
        found = scan(source, request.target, progress=True)
        notes = []
        if request.target is None:
            request = request.with_options(target=guess_target(found))
            notes.append("The label is guessed: the last column of numbers.")
        plan = make_plan(found, request, strict=False)
    notes += [f"Left out: {problem}" for problem in plan.left_out]
    text = as_toml(plan, [*notes, *plan.warnings])
    if out is None:
        typer.echo(text, nl=False)
        return
    write(out, text)
    for note in (*notes, *plan.warnings):
        warn(note)
    typer.echo(f"Wrote {out}")
