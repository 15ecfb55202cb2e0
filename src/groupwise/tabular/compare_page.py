"""The report of an audit: one page."""

from typing import TYPE_CHECKING

from groupwise.report.page import Page, html, versions
from groupwise.tabular.page import (
    ahead,
    all_section,
    certified,
    curve_section,
    data,
    settings,
    warning_section,
    worst_section,
)
from groupwise.tabular.summary import comparison_summary
from groupwise.tabular.text import shown

if TYPE_CHECKING:
    from groupwise.tabular.compare import Comparison


def compare_page(compared: "Comparison") -> str:
    """The report as HTML."""
    plan, rows = compared.plan, compared.rows
    players = {shown(name, 30): key for name, key in compared.players.items()}
    name = shown(compared.scan.source.name.rsplit("/", 1)[-1])
    _, (first, *more) = comparison_summary(compared)
    text = (
        f"The predictions of {' and '.join(players)} for {shown(plan.target)}, as logged in "
        f"{compared.scan.rows:,} rows, beside what groupwise and a single online model would have "
        "predicted on the same rows, each before its label was learned from. "
        f"{certified(compared.table)}"
    )
    logged = {shown(name, 30): curves for name, curves in compared.logged.items()}
    return html(
        Page(
            title=f"{name}: logged predictions on every group",
            headline=first,
            lead=[*more, text, *ahead(plan)],
            summary=None,
            sections=[
                worst_section(rows, compared.unit, plan.target, players),
                curve_section(rows, compared.curves, compared.unit, logged),
                *warning_section(plan.warnings),
                *all_section(rows, compared.unit, plan.target, players),
            ],
            facts={
                "Settings": settings(plan, compared.features),
                "Data": data(compared.scan),
                "Made with": versions(),
            },
        )
    )
