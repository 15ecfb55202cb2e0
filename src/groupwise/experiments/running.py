"""From a name to tables, figures and a page in a folder."""

import json
import math
from collections.abc import Callable
from importlib import import_module
from importlib.resources import files
from pathlib import Path
from typing import Any

from groupwise.errors import ConfigurationError
from groupwise.experiments.outcome import Check, Outcome, Plan
from groupwise.report.figures import draw, inline
from groupwise.report.page import Illustration, Page, Section, html, versions
from groupwise.report.tables import Cell, Column, Table, json_text, latex
from groupwise.writing import folder, write

NAMES = (
    "routing",
    "classification-transductive",
    "classification-separator",
    "lending",
    "enumeration",
    "ablation",
)


def module_of(name: str) -> Any:
    """The experiment's module."""
    if name not in NAMES:
        raise ConfigurationError(f"There is no experiment {name!r}; there are {', '.join(NAMES)}.")
    return import_module(f"groupwise.experiments.{name.replace('-', '_')}")


def run(
    name: str, plan: Plan, show: Callable[[Table], None] = lambda table: None
) -> tuple[Outcome, Path]:
    """Run an experiment; tables, figures and a page go to a folder of its name in ``plan.out``."""
    module = module_of(name)
    outcome: Outcome = module.run(plan)
    if plan.whole:
        outcome = compared(outcome, expected(name))
    out = folder(Path(plan.out) / name)
    for table in (*outcome.tables, claims(outcome)):
        show(table)
    record = {
        "name": name,
        "numbers": outcome.numbers,
        "checks": [check.__dict__ for check in outcome.checks],
    }
    write(out / f"{name}.json", json_text(record))
    write(out / f"{name}.tex", "\n".join(latex(table) for table in outcome.tables))
    drawn = []
    for figure in outcome.figures:
        drawing = draw(figure)
        write(out / f"{figure.name}.svg", drawing.svg)
        write(out / f"{figure.name}.pdf", drawing.pdf)
        names = {kind.upper(): f"{figure.name}.{kind}" for kind in ("svg", "pdf")}
        drawn.append(Illustration(figure, inline(figure, drawing), names))
    section = Section(
        module.TITLE,
        name,
        [*outcome.tables, *drawn, *outcome.notes],
        {"JSON": f"{name}.json", "LaTeX": f"{name}.tex"},
    )
    page = Page(
        module.TITLE,
        [module.ABOUT],
        claims(outcome),
        [section],
        {"Made with": versions()},
    )
    return outcome, write(out / "index.html", html(page))


def claims(outcome: Outcome) -> Table:
    """What was claimed, and what was found."""
    columns = tuple(Column(title, numeric=False) for title in ("Claim", "Found", "Holds"))
    rows = tuple(
        (
            Cell(check.claim),
            Cell(check.found),
            Cell("yes" if check.holds else "no", "good" if check.holds else "bad"),
        )
        for check in outcome.checks
    )
    return Table("Claims", columns, rows)


def expected(name: str) -> dict[str, Any]:
    """What ``expected.json`` says: numbers, and by how much they may differ."""
    home = files("groupwise.experiments").joinpath(name.replace("-", "_"), "expected.json")
    found: dict[str, Any] = json.loads(home.read_text("utf-8"))
    return found


def compared(outcome: Outcome, wanted: dict[str, Any]) -> Outcome:
    """The outcome with one claim more: its numbers are the expected ones."""
    tolerance = wanted["tolerance"]
    far = [
        f"{key}: {outcome.numbers.get(key, math.nan):.4g}, expected {value:.4g}"
        for key, value in wanted["numbers"].items()
        if not abs(outcome.numbers.get(key, math.nan) - value)
        <= tolerance["absolute"] + tolerance["relative"] * abs(value)
    ]
    found = "; ".join(far[:3]) if far else f"all {len(wanted['numbers'])} are"
    check = Check("The numbers are those in expected.json", not far, found)
    return Outcome(
        outcome.tables, outcome.figures, [*outcome.checks, check], outcome.numbers, outcome.notes
    )
