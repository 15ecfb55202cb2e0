"""Calibration on a page: reliability curves with counts, and a table of the groups.

Names of groups come from data: ``name`` says how they are shown. All text is escaped where the page
is made (``report.page``).
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Vector
from groupwise.groups import ALWAYS_ON
from groupwise.regret.calibration import EDGES, CalibrationTable
from groupwise.report.figures import Bars, Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration, Section
from groupwise.report.tables import Cell, Column, Table, number

POINTS = 12
"""A curve has at most so many points, with about as many rounds each."""
NARROW = 0.4
"""Where all is within so much of 0 or of 1, a panel shows that part alone."""
BAR = 0.08
"""Bars are at least so wide, as a share of a panel's width."""
DRAWN = 12
"""So many groups are drawn."""
CELL = (3.0, 3.1)
MOST = "95\N{NO-BREAK SPACE}%"
ROUNDING = 1e-12

Row = Mapping[str, Any]

NOTE = (
    "Gap: mean predicted probability less the share of positive labels. Brier score: mean squared "
    "difference of probability and label; log loss: in nats; the less the better. AUC: in which "
    "share of pairs of a positive and a negative row the positive one had the higher probability. "
    "Calibration error (ECE): how far the share of positive labels is from the probability, on "
    "average over bins of similar probabilities. By chance: even of models that are calibrated, "
    f"{MOST} have an error up to this, having no more rows to show it on; red where the error is "
    "above. AUC and calibration error are from 50 bins."
)


def excess(row: Row) -> float:
    """How much of the calibration error of a group is not explained by chance."""
    return float(row["ece"] - row["ece_95"]) if row["ece"] is not None else -math.inf


def ranked(table: CalibrationTable) -> list[dict[str, Any]]:
    """Everybody first; then by the excess of the calibration error over chance."""
    return sorted(table, key=lambda row: (row["group"] != ALWAYS_ON, -excess(row)))


def verdict(table: CalibrationTable, name: Callable[[str], str] = str, what: str = "groups") -> str:
    """In a sentence or two: how many groups are off by more than chance, and which is worst."""
    rows = [row for row in table if row["ece"] is not None]
    if not rows:
        return "No row has been counted yet."
    over = [row for row in ranked(table) if excess(row) > 0.0]
    chance = math.ceil(len(rows) / 20)
    if not over:
        return (
            f"On none of {len(rows):,} {what} is the calibration error above what chance explains."
        )
    worst = max(over, key=excess)
    side = "too high" if worst["gap"] > 0.0 else "too low"
    return (
        f"On {len(over):,} of {len(rows):,} {what} the calibration error is above what chance "
        f"explains in {MOST} of cases; with calibrated models that would be about {chance:,}. "
        f"Worst: {name(worst['group'])}, {_short(worst['ece'])} where chance explains "
        f"{_short(worst['ece_95'])}; its probabilities are {side} by {_short(abs(worst['gap']))} "
        "on average."
    )


def _short(value: float) -> str:
    """A share to three digits after the point, or to two that count where it is small.

    >>> [_short(x) for x in (0.1472, 0.0049, 0.000123)]
    ['0.147', '0.0049', '0.00012']
    """
    return f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def calibration_table(
    table: CalibrationTable,
    title: str = "Calibration",
    most: int | None = None,
    name: Callable[[str], str] = str,
    note: str = NOTE,
) -> Table:
    """A row per group, everybody first and then the worst; no more than so many."""
    rows = ranked(table)[:most]
    least = min((row["mean_label"] for row in rows if row["mean_label"]), default=1.0)
    places = 3 if least >= 0.01 else 5
    columns = (
        Column("group", numeric=False),
        Column("rounds"),
        Column("labels", "mean, share"),
        Column("probabilities", "mean, share"),
        Column("gap", "mean, share"),
        Column("Brier, share²", "loss per round"),
        Column("log, nats", "loss per round"),
        Column("AUC, share"),
        Column("found", "calibration error, share"),
        Column("by chance", "calibration error, share"),
    )
    return Table(title, columns, tuple(_cells(row, name, places) for row in rows), note)


def _cells(row: Row, name: Callable[[str], str], places: int) -> tuple[Cell, ...]:
    def cell(key: str, decimals: int, mark: str = "", signed: bool = False) -> Cell:
        value = row[key]
        known = value is not None and math.isfinite(value)
        return Cell(number(value, decimals, signed) if known else "–", mark)

    return (
        Cell(name(row["group"])),
        Cell(f"{row['rounds']:,.0f}"),
        cell("mean_label", places),
        cell("mean_prediction", places),
        cell("gap", places, signed=True),
        cell("brier", 4),
        cell("log_loss", 4),
        cell("auc", 3),
        cell("ece", places, "bad" if excess(row) > 0.0 else ""),
        cell("ece_95", places, "faint"),
    )


def reliability(
    tables: Mapping[str, CalibrationTable],
    groups: Sequence[str] | None = None,
    name: Callable[[str], str] = str,
) -> Figure:
    """Share of positive labels against predicted probability, a panel for each of the groups.

    ``tables`` are of one model or, to compare, of several: the bars and the band are of the first.
    Without ``groups`` those are drawn that are worst by the first.
    """
    first = next(iter(tables.values()))
    known = [row for row in ranked(first) if row["ece"] is not None]
    rows = known[:DRAWN] if groups is None else [first[group] for group in groups]
    shown = f"The {len(rows)} worst of {len(known):,} groups. " if len(rows) < len(known) else ""
    return Figure(
        "reliability",
        f"{shown}Share of positive labels among rows that were given similar probabilities. On the "
        f"dashed line they agree; of a calibrated model, {MOST} of the points are within the band, "
        "which is narrower the more rows there are. The bars show which probabilities were given.",
        "predicted probability",
        "share of positive labels",
        tuple(_panel(tables, row, name(row["group"])) for row in rows),
        cell=CELL,
    )


def _panel(tables: Mapping[str, CalibrationTable], row: Row, title: str) -> Panel:
    """The curves of a group."""
    group = row["group"]
    curves = {
        label: _columns(table.curve(group, POINTS))
        for label, table in tables.items()
        if any(one["group"] == group for one in table)
    }
    limits = _limits(list(curves.values()))
    first, table = next(iter(curves.values())), next(iter(tables.values()))
    middle = (first["high_95"] + first["low_95"]) / 2.0
    spread = (first["high_95"] - first["low_95"]) / 2.0
    ideal = np.array(limits)
    lines = [
        Line("calibrated", ideal, ideal, None, 4, "dashed"),
        Line(f"{MOST} of calibrated models", first["mean_prediction"], middle, spread, 4, "band"),
    ]
    for place, (label, curve) in enumerate(curves.items()):
        colour = 1 if place == 0 else (2, 3, 0)[(place - 1) % 3]
        lines.append(
            Line(label, curve["mean_prediction"], curve["mean_label"], None, colour, "marked")
        )
    error = f"error {_short(row['ece'])}, by chance {_short(row['ece_95'])}"
    note = f"{row['rounds']:,.0f} rows; {error}"
    return Panel(title, tuple(lines), note, _bars(table.curve(group), limits), limits)


def _columns(curve: Sequence[Mapping[str, float]]) -> dict[str, Vector]:
    return {key: np.array([point[key] for point in curve]) for key in curve[0]}


def _limits(curves: Sequence[Mapping[str, Vector]]) -> tuple[float, float]:
    """Of the axes: 0 and 1, unless all is close to one of them."""
    keys = ("mean_prediction", "mean_label", "low_95", "high_95")
    values = np.concatenate([curve[key] for curve in curves for key in keys])
    low, high = float(values.min()), float(values.max())
    if high <= NARROW:
        return 0.0, _rounded_up(high)
    if low >= 1.0 - NARROW:
        return 1.0 - _rounded_up(1.0 - low), 1.0
    return 0.0, 1.0


def _rounded_up(value: float) -> float:
    """A number that is not less, and has few digits.

    >>> [_rounded_up(x) for x in (0.03, 0.4, 0.0011, 0.41, 0.9)]
    [0.03, 0.4, 0.0015, 0.5, 1.0]
    """
    if value <= 0.0:
        return 0.001
    power = 10.0 ** math.floor(math.log10(value))
    steps = (power * step for step in (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0))
    return round(next(step for step in steps if value <= step * (1.0 + 1e-9)), 12)


def _bars(curve: Sequence[Mapping[str, float]], limits: tuple[float, float]) -> Bars:
    """Where the probabilities are: whole bins, joined until they can be seen; areas are rows."""
    low, high = limits
    least = BAR * (high - low)
    edges = [low]
    for edge in EDGES.tolist():
        if edge - edges[-1] >= least - ROUNDING and high - edge >= least - ROUNDING:
            edges.append(edge)
    edges.append(high)
    rounds = np.zeros(len(edges) - 1)
    for point in curve:
        place = bisect_right(edges, point["low"] + ROUNDING) - 1
        rounds[min(max(place, 0), rounds.size - 1)] += point["rounds"]
    return Bars(np.array(edges), rounds / np.diff(edges))


def calibration_section(
    tables: Mapping[str, CalibrationTable],
    name: Callable[[str], str] = str,
    most: int | None = None,
) -> Section:
    """What a page says about calibration: a verdict, the curves, and the tables.

    ``tables`` are by the names of the models, ours first; a table shows ``most`` groups, or all.
    """
    several = len(tables) > 1
    blocks: list[Table | Illustration | str] = [
        f"{label}: {verdict(table, name)}" if several else verdict(table, name)
        for label, table in tables.items()
    ]
    figure = reliability(tables, name=name)
    if figure.panels:
        blocks.append(Illustration(figure, inline(figure, draw(figure, pdf=False))))
    for place, (label, table) in enumerate(tables.items()):
        title = f"Calibration of {label}" if several else "Calibration"
        note = NOTE if place == len(tables) - 1 else ""
        blocks.append(calibration_table(table, title, most, name, note))
    return Section("Calibration", "calibration", blocks)
