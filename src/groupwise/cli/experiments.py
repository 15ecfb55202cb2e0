"""``groupwise reproduce`` for the experiments beyond the paper's tables."""

from collections.abc import Sequence
from pathlib import Path

import typer


def run_experiments(
    names: Sequence[str], seeds: int | None, data: Path | None, out: Path, jobs: int | None
) -> bool:
    """Run them one after another; True if all that they claim holds."""
    from groupwise.experiments import Plan, run
    from groupwise.report.tables import console, show

    screen = console()
    holds = True
    for name in names:
        plan = Plan(out=out, seeds=seeds, jobs=jobs, data=data)
        outcome, page = run(name, plan, lambda table: show(screen, table))
        typer.echo(f"The page is {page.resolve()}")
        holds = holds and all(check.holds for check in outcome.checks)
    return holds
