"""What a report says about the data: what its columns hold, what is made of them, and why not."""

from typing import TYPE_CHECKING

from groupwise.features.calendar import Calendar
from groupwise.features.declared import Hashed
from groupwise.features.encoding import Encoded
from groupwise.files.profile import Profile
from groupwise.files.scan import Scan
from groupwise.files.text import amount, quoted, shown
from groupwise.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from groupwise.files.plan import Plan

LEFT_OUT = "left out"
UNASKED = "not asked for"
"""Why a column is left out that nothing else is said of."""


def quality_table(scan: Scan, plan: "Plan") -> Table:
    """A row per column of the file: type, values, missing ones, what it is used for, or why not."""
    columns = (
        Column("column", numeric=False),
        Column("type", numeric=False),
        Column("values", "different"),
        Column("cells", "missing"),
        Column("%", "missing"),
        Column("range", numeric=False),
        Column("used as", numeric=False),
    )
    rows = [_cells(profile, plan) for profile in scan.columns.values() if profile.rows]
    rows += [_unread(name, plan) for name in scan.source.unread]
    return Table("Columns", columns, tuple(rows), sortable=len(rows) > 1)


def _unread(name: str, plan: "Plan") -> tuple[Cell, ...]:
    """Of a column that is nested, or holds bytes, it is known that it is there."""
    unknown = (Cell("–", "faint") for _ in range(4))
    told = Cell(f"{LEFT_OUT}: {_reason(name, plan)}", "bad")
    return (Cell(shown(name, 60)), Cell("not read"), *unknown, told)


def _cells(profile: Profile, plan: "Plan") -> tuple[Cell, ...]:
    used = uses(profile.name, plan)
    why = _reason(profile.name, plan)
    told = Cell(", ".join(used)) if used else Cell(f"{LEFT_OUT}: {shown(why, 300)}", "bad")
    share = 100.0 * profile.missing / max(profile.rows, 1)
    return (
        Cell(shown(profile.name, 60)),
        Cell(kind_of(profile)),
        Cell(profile.count, value=float(profile.distinct)),
        Cell(f"{profile.missing:,}", "" if profile.missing else "faint", float(profile.missing)),
        Cell(f"{share:.1f}", "" if profile.missing else "faint", share),
        Cell(_range(profile), "faint"),
        told,
    )


def _reason(name: str, plan: "Plan") -> str:
    """Why a column is left out: what the plan says, or a warning, without what both begin with."""
    column = f"Column {quoted(name)} "
    about = (one for one in plan.warnings if one.startswith(column) and "left out" in one)
    said = plan.left_out.get(name) or next(about, UNASKED)
    clause = said.removeprefix(column).removeprefix("is left out: ")
    return clause.removesuffix(": it is left out.").removesuffix(".")


def kind_of(profile: Profile) -> str:
    """What a column holds, in a word or two."""
    if profile.missing == profile.rows:
        return "nothing"
    if profile.date is not None:
        return "date"
    if profile.kind == "text":
        return "true or false" if profile.truth else "text"
    return "whole number" if profile.whole else "number"


def _range(profile: Profile) -> str:
    if profile.kind == "text" or not profile.low <= profile.high:
        return "–"
    return f"{amount(profile.low)} to {amount(profile.high)}"


def uses(name: str, plan: "Plan") -> list[str]:
    """What a column is used for; nothing, where it is left out."""
    found = []
    if name == plan.target:
        found.append("label")
    if name in plan.features:
        match plan.features[name]:
            case tuple() as bounds:
                low, high = (amount(one) for one in bounds)
                found.append(f"feature, scaled from {low} to {high}")
            case Calendar() as date:
                found.append(f"feature: {', '.join(date.parts)}" if date.parts else "date")
            case Encoded():
                found.append("feature: the mean label of its value")
            case Hashed() as text:
                found.append(f"{text.columns} features that its values share")
            case _:
                found.append("a feature for every value")
    if any(name in one.columns for one in plan.groups):
        found.append("groups, each a feature too" if plan.indicators else "groups")
    if any(name in (*one.of, *one.by) for one in plan.past):
        found.append("the label’s past")
    if name in plan.order:
        found.append("order of the rows")
    if name in plan.experts:
        found.append("expert")
    if any(name in one.columns for one in plan.logged):
        found.append("logged predictions")
    return found
