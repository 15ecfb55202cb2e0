"""Tables of groups, for pages and terminals."""

import math
from collections.abc import Mapping, Sequence

from groupwise.groups import ALWAYS_ON
from groupwise.report.table import Cell, Column, Table
from groupwise.tabular.ranking import Row, is_small
from groupwise.tabular.text import amount, shown

OURS, SINGLE, BEST = "groupwise", "single model", "best in hindsight"
EVERYBODY = f"everybody ({ALWAYS_ON})"
NAME = 60
NOTICEABLE = 0.005
"""A difference in error of half a percent is marked."""


def title_of(group: str, longest: int = NAME) -> str:
    """A group's name as people read it."""
    return EVERYBODY if group == ALWAYS_ON else shown(group, longest)


def typical_error(row: Row, regret: str | None = "regret") -> float:
    """Root of the mean square error, in the label's units; of the best in hindsight without key."""
    if regret is not None and row[regret] is None:
        return math.nan
    total = float(row["best_loss"]) + (0.0 if regret is None else float(row[regret]))
    return math.sqrt(max(total, 0.0) / max(float(row["rounds"]), 1.0))


def group_table(
    rows: Sequence[Row],
    unit: float,
    target: str | None,
    title: str,
    others: Mapping[str, str] | None = None,
    note: str = "",
) -> Table:
    """A row per group. ``others`` are further players: heading to the key of their regret."""
    players = {**dict(others or {}), OURS: "regret", SINGLE: "baseline_regret"}
    error = "error of a prediction" + (f", in {shown(target, 30)}" if target else "")
    status = any(row["status"] not in ("proved", "vacuous") for row in rows)
    columns = [
        Column("group", numeric=False),
        Column("rounds"),
        *(Column(name, error) for name in (*players, BEST)),
        *(Column(name, "regret") for name in players),
        Column("certificate", "regret"),
        *([Column("status", numeric=False)] if status else []),
    ]
    return Table(
        title,
        tuple(columns),
        tuple(_cells(row, unit, players, status) for row in rows),
        note,
    )


def _cells(row: Row, unit: float, players: Mapping[str, str], status: bool) -> tuple[Cell, ...]:
    faint = "faint" if is_small(row) else ""
    single = typical_error(row, "baseline_regret")
    cells = [Cell(title_of(row["group"])), Cell(amount(row["rounds"]), faint)]
    for name, key in players.items():
        error = typical_error(row, key)
        mark = faint or (_mark(error, single) if name != SINGLE else "")
        cells.append(Cell(amount(error), mark))
    cells.append(Cell(amount(typical_error(row, None)), faint))
    for key in (*players.values(), "certificate"):
        value = math.nan if row[key] is None else float(row[key]) / unit
        empty = key == "certificate" and row["status"] in ("vacuous", "void")
        cells.append(Cell(_regret(value), "faint" if empty else faint))
    if status:
        cells.append(Cell(row["status"], faint))
    return tuple(cells)


def _mark(error: float, single: float) -> str:
    if not math.isfinite(single) or not math.isfinite(error):
        return ""
    if error < single * (1.0 - NOTICEABLE):
        return "good"
    return "bad" if error > single * (1.0 + NOTICEABLE) else ""


def _regret(value: float) -> str:
    """Losses of a whole round, to a hundredth."""
    if not math.isfinite(value):
        return "–"
    text = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.2f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")
