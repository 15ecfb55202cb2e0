"""Tables of groups, for pages and terminals."""

import math
from collections.abc import Mapping, Sequence

from groupwise.groups import ALWAYS_ON
from groupwise.report.tables import Cell, Column, Table
from groupwise.tabular.ranking import Row, is_small
from groupwise.tabular.text import amount, shown

OURS, SINGLE, BEST = "groupwise", "single model", "best in hindsight"
EVERYBODY = f"everybody ({ALWAYS_ON})"
NAME, NARROW_NAME = 60, 30
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
    narrow: bool = False,
) -> Table:
    """A row per group. ``others`` are further players: heading to the key of their regret."""
    single, best = ("single", "hindsight") if narrow else (SINGLE, BEST)
    players = {**dict(others or {}), OURS: "regret", single: "baseline_regret"}
    error = f"error, in {shown(target, 16)}" if target else "error"
    status = any(row["status"] not in ("proved", "vacuous") for row in rows)
    digits = _decimals([typical_error(row, key) for row in rows for key in players.values()])
    columns = [
        Column("group", numeric=False),
        Column("rounds"),
        *(Column(name, error) for name in (*players, best)),
        *(Column(name, "regret") for name in players),
        Column("certificate", "regret"),
        *([Column("status", numeric=False)] if status else []),
    ]
    return Table(
        title,
        tuple(columns),
        tuple(_cells(row, unit, players, status, digits, narrow) for row in rows),
        note,
    )


def _cells(
    row: Row, unit: float, players: Mapping[str, str], status: bool, digits: int, narrow: bool
) -> tuple[Cell, ...]:
    faint = "faint" if is_small(row) else ""
    single = typical_error(row, "baseline_regret")
    name = title_of(row["group"], NARROW_NAME if narrow else NAME)
    cells = [Cell(name), Cell(amount(row["rounds"]), faint)]
    for key in players.values():
        error = typical_error(row, key)
        mark = faint or (_mark(error, single) if key != "baseline_regret" else "")
        cells.append(Cell(_fixed(error, digits), mark))
    cells.append(Cell(_fixed(typical_error(row, None), digits), faint))
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
    return _fixed(value, 0 if abs(value) >= 1000 else 2)


def _decimals(values: Sequence[float]) -> int:
    """Decimals that give the largest of these about four digits, and all of them the same."""
    largest = max((value for value in values if math.isfinite(value)), default=0.0)
    return 2 if largest <= 0.0 else min(8, max(0, 3 - math.floor(math.log10(largest))))


def _fixed(value: float, decimals: int) -> str:
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e12:
        return f"{value:.3e}".replace("-", "−")
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")
