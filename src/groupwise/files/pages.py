"""The reports: one page for a run, one for an audit."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupwise.files.tables import (
    BEST,
    ENOUGH,
    OURS,
    SINGLE,
    Row,
    comparison_summary,
    group_table,
    headline,
    most_gained,
    ranked,
    title_of,
    typical_error,
    worst,
)
from groupwise.files.text import amount, shown
from groupwise.regret.curves import Curve
from groupwise.report.figures import Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration, Page, Section, html, versions

if TYPE_CHECKING:
    from groupwise.files.compare import Comparison
    from groupwise.files.plan import Plan
    from groupwise.files.run import Finished
    from groupwise.files.scan import Scan
    from groupwise.regret.table import RegretTable

SHORT = 25
"""So many groups are shown first, and drawn; all of them follow."""
FEW = 40
"""Up to so many, all of them are in the first table."""
POINTS = 3
"""Fewer make no curve."""
PANEL_NAME = 36

NOTE = (
    "Error: the root of the mean squared error, in the label’s own units. Best in hindsight: the "
    "linear model that fits all the group’s rows best, fitted after the fact. Single model: one "
    "online ridge regression for everybody. Regret: squared error beyond that of the best in "
    "hindsight, summed over the group’s rounds; 1 is one prediction off by the whole range of the "
    "label, and below 0 every linear model for the group was beaten. Certificate: the regret "
    "cannot be above it; grey where it says nothing, being above what all rounds together could "
    "lose. Green: at least half a percent better than the single "
    "model, red: worse."
)
SMALL = f"Groups with under {ENOUGH} rounds are grey and come last: on so few, regret is all start."


def run_page(finished: "Finished") -> str:
    """The report of a run as HTML."""
    rows = ranked(finished.table.rows)
    lead = _lead(finished, rows)
    return _page(finished, "regret on every group", headline(rows), lead, rows, finished.warnings)


def compare_page(compared: "Comparison") -> str:
    """The report of an audit as HTML."""
    players = {shown(name, 30): key for name, key in compared.players.items()}
    _, (first, *more) = comparison_summary(compared)
    text = (
        f"The predictions of {' and '.join(players)} for {shown(compared.plan.target)}, as logged "
        f"in {compared.scan.rows:,} rows, beside what groupwise and a single online model would "
        "have predicted on the same rows, each before its label was learned from. "
        f"{_certified(compared.table)}"
    )
    logged = {shown(name, 30): curves for name, curves in compared.logged.items()}
    return _page(
        compared,
        "logged predictions on every group",
        first,
        [*more, text],
        compared.rows,
        compared.plan.warnings,
        players,
        logged,
    )


def _page(
    done: "Finished | Comparison",
    title: str,
    first: str,
    lead: list[str],
    rows: Sequence[Row],
    warnings: Sequence[str],
    players: Mapping[str, str] | None = None,
    logged: Mapping[str, Mapping[str, Curve]] | None = None,
) -> str:
    """A page; ``players`` are further models and ``logged`` the curves of their predictions."""
    plan, unit = done.plan, done.unit
    name = shown(done.scan.source.name.rsplit("/", 1)[-1])
    return html(
        Page(
            title=f"{name}: {title}",
            headline=first,
            lead=[*lead, *_ahead(plan)],
            summary=None,
            sections=[
                _worst_section(rows, unit, plan.target, players),
                _curve_section(rows, done.curves, unit, logged or {}),
                *([Section("Warnings", "warnings", list(warnings))] if warnings else []),
                *_all_section(rows, unit, plan.target, players),
            ],
            facts={
                "Settings": _settings(plan, done.features),
                "Data": _data(done.scan),
                "Made with": versions(),
            },
        )
    )


def _lead(finished: "Finished", rows: Sequence[Row]) -> list[str]:
    found = []
    gained = most_gained(rows)
    if gained is not None and gained is not worst(rows):
        found.append(
            f"Most is gained on {title_of(gained['group'])}: typically off by "
            f"{amount(typical_error(gained))} rather than the single model’s "
            f"{amount(typical_error(gained, 'baseline_regret'))}."
        )
    groups = len(rows) - 1
    found.append(
        f"The column {shown(finished.plan.target)} was predicted for {finished.scan.rows:,} rows "
        "one after another, each before its label was learned from, with a model for everybody and "
        f"one for each of {groups:,} groups. {_certified(finished.table)}"
    )
    return found


def _certified(table: "RegretTable") -> str:
    """Whether regret stayed below the certificates."""
    over = [row for row in table.rows if row["regret"] > row["certificate"] * (1 + 1e-9) + 1e-9]
    if any(row["status"] == "void" for row in table.rows):
        return "Certificates are void: some predictions left the range of the label."
    if over:
        return f"On {len(over):,} groups the regret is above the certificate, which must not be."
    return "On every group the regret is below its certificate, as it must be."


def _ahead(plan: "Plan") -> list[str]:
    """What the run knew before its time."""
    if not plan.looked_ahead:
        return []
    found = list(plan.looked_ahead)
    joined = found[0] if len(found) == 1 else ", ".join(found[:-1]) + " and " + found[-1]
    return [
        f"A look ahead: {joined} came from a first pass over the whole file. A live stream does "
        "not know them; --range, --groups and --features with ranges do without."
    ]


def _worst_section(
    rows: Sequence[Row], unit: float, target: str, others: Mapping[str, str] | None
) -> Section:
    """The worst groups; all of them where they are few."""
    few = len(rows) <= FEW
    title = "Groups" if few else "Worst groups"
    chosen = rows if few else rows[:SHORT]
    table = group_table(chosen, unit, target, title, others, f"{NOTE} {SMALL}")
    return Section(title, "groups", [table])


def _all_section(
    rows: Sequence[Row], unit: float, target: str, others: Mapping[str, str] | None
) -> list[Section]:
    """All groups, where they are many."""
    if len(rows) <= FEW:
        return []
    text = f"All {len(rows):,} groups in the same order: everybody, then by regret per round."
    return [
        Section(
            "All groups",
            "all-groups",
            [text, group_table(rows, unit, target, "All groups", others)],
        )
    ]


def _curve_section(
    rows: Sequence[Row],
    curves: Mapping[str, Curve],
    unit: float,
    others: Mapping[str, Mapping[str, Curve]],
) -> Section:
    """Regret against time, a small panel for each of the worst groups."""
    panels = []
    drawn = {row["group"]: curves[row["group"]].drawn() for row in rows}
    followed = [row for row in rows if drawn[row["group"]].time.size > POINTS]
    for row in (followed or rows)[:SHORT]:
        curve = drawn[row["group"]]
        lines = [
            Line(SINGLE, curve.rounds, curve.baseline_regret / unit, colour=0),
            Line(OURS, curve.rounds, curve.regret / unit, colour=1),
        ]
        for place, (name, logged) in enumerate(others.items()):
            other = logged[row["group"]].drawn()
            lines.append(Line(name, other.rounds, other.regret / unit, colour=2 + place))
        panels.append(Panel(title_of(row["group"], PANEL_NAME), tuple(lines)))
    shown_text = f"The {SHORT} worst of {len(rows):,} groups. " if len(rows) > SHORT else ""
    figure = Figure(
        "regret",
        f"{shown_text}Regret against {BEST} so far, as the group’s rounds go by. A line that "
        "flattens has learned the group; one that keeps climbing has not.",
        "rounds of the group",
        "regret",
        tuple(panels),
    )
    block = Illustration(figure, inline(figure, draw(figure, pdf=False)))
    return Section("Regret over time", "curves", [block])


def _settings(plan: "Plan", features: int) -> dict[str, Any]:
    """The settings as the page's last lines."""
    return {
        "Label": shown(plan.target),
        "Range of the label": f"{plan.range[0]:g} to {plan.range[1]:g}",
        "Groups": _listed([_declaration(one.to_dict()) for one in plan.groups]),
        "Features": _listed([shown(name, 60) for name in plan.features]),
        "Groups are features too": "yes" if plan.indicators else "no",
        "Numbers per row": f"{features:,}",
        "Order of the rows": "as in the file" if plan.order is None else f"by {shown(plan.order)}",
        "Learner": f"{plan.learner}, penalty {plan.penalty:g}",
        "Aggregator": plan.aggregator,
    }


def _data(scan: "Scan") -> dict[str, Any]:
    """The fingerprint of the data."""
    source = scan.source
    return {
        "File": shown(source.name),
        "Format": source.format + (", gzip" if source.compressed else ""),
        "Rows": f"{scan.rows:,}",
        "Columns": _listed([shown(name, 60) for name in scan.columns]),
        "Bytes": f"{source.size:,}",
        "SHA-256": source.sha256,
    }


def _listed(names: Sequence[str], most: int = 60) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return (", ".join(names[:most]) + more) or "none"


def _declaration(table: Any) -> str:
    """A group declaration in a few words."""
    if "by" in table:
        return shown(table["by"], 60)
    if "cut" in table:
        return f"{shown(table['cut'], 60)} cut at {', '.join(map(str, table['edges']))}"
    if "where" in table:
        return shown(f"{table['where']} {table['op']} {table['value']}", 80)
    if "weight" in table:
        return f"{shown(table['weight'], 60)} as a weight"
    if "not" in table:
        return f"not {_declaration(table['not'])}"
    for key, word in (("and", " & "), ("or", " | "), ("pairs", " × ")):
        if key in table:
            return word.join(_declaration(part) for part in table[key])
    return shown(str(table))
