"""``groupwise regret``: the regret of every group, from a snapshot."""

from typing import Annotated

import typer

from groupwise.cli.options import Snapshot


def command(
    model: Snapshot,
    every: Annotated[bool, typer.Option("--all", help="Show all groups, however many.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON: all figures.")] = False,
) -> None:
    """Show regret and certificate of every group that a snapshot has seen."""
    from groupwise.files.snapshots import load
    from groupwise.files.tables import FIRST, ranked, summary
    from groupwise.report.tables import console, json_text, show

    loaded, reading = load(model)
    table = loaded.regret()
    if as_json:
        record = {"schema": 1, "rows": table.rows, "comparator": table.comparator}
        typer.echo(json_text({**record, "rounds": table.settled}), nl=False)
        return
    if not table.rows:
        typer.echo("The model has seen no row yet.")
        return
    unit, first = loaded.loss.unit, None if every else FIRST
    show(console(), summary(ranked(table.rows), unit, reading.target, first=first))
    typer.echo(f"{table.settled:,} settled rounds; regret is against {table.comparator}.")
