"""Intervals on a page: how often they covered the label, over time, and how wide they were.

Names of groups come from data: a :class:`Style` says how they are shown. All text is escaped where
the page is made (``report.page``).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.groups import ALWAYS_ON
from groupwise.intervals import CoverageTable
from groupwise.regret.printed import text
from groupwise.report.figures import Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration, Section
from groupwise.report.tables import Cell, Column, Table, number

DRAWN = 12
"""So many groups are drawn."""
STRETCHES, SHORTEST = 12, 25
"""A curve has so many stretches, of so many rounds at least."""
LEAST = 100
"""A sentence about the worst group is about one of at least so many rounds."""
FAR = 0.015
"""Errors from here on are marked, in groups of at least so many rounds:"""
MANY = 500

NOTE = (
    "Coverage: the share of labels inside the interval that was issued before they were known. "
    "Error: coverage less what is asked for; it is minus the excess of misses divided by the "
    "rounds, exactly, on every group and at every moment. Width: from end to end, in the units of "
    f"the label, on average. Red: off by more than {100 * FAR:g} points after {MANY} rounds."
)

Sums = Mapping[str, tuple[float, float, float]]
"""Rounds, misses and the sum of widths of every group until some moment."""


class Style(NamedTuple):
    """How names of groups and widths are shown, and what widths are in."""

    name: Callable[[str], str] = str
    width: Callable[[float], str] = text
    unit: str = "label"


PLAIN = Style()


def ranked(table: CoverageTable) -> list[dict[str, float]]:
    """Everybody first; then by how far coverage is from what is asked for."""
    known = [row for row in table if row["coverage"] is not None]
    return sorted(known, key=lambda row: (row["group"] != ALWAYS_ON, -abs(row["error"])))


def verdict(table: CoverageTable, style: Style = PLAIN) -> str:
    """In a sentence or two: the coverage of all, and of the group that is worst."""
    rows = ranked(table)
    if not rows:
        return "No interval has been issued yet."
    everybody = max(rows, key=lambda row: row["rounds"])
    said = (
        f"Intervals were to cover {_percent(table.wanted)} of the labels, and covered "
        f"{_percent(everybody['coverage'])}; their mean width is "
        f"{style.width(everybody['mean_width'])}."
    )
    others = [row for row in rows if row is not everybody and row["rounds"] >= LEAST]
    if not others:
        return said
    worst = max(others, key=lambda row: abs(row["error"]))
    return (
        f"{said} Farthest off of {len(others):,} groups with at least {LEAST} rounds: "
        f"{style.name(str(worst['group']))}, {_percent(worst['coverage'])}."
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f}\N{NO-BREAK SPACE}%"


def coverage_table(
    table: CoverageTable,
    title: str = "Intervals",
    most: int | None = None,
    style: Style = PLAIN,
    note: str = NOTE,
) -> Table:
    """A row per group, everybody first and then those farthest off; no more than so many."""
    columns = (
        Column("group", numeric=False),
        Column("rounds"),
        Column("covered, %"),
        Column("error, points"),
        Column("labels outside"),
        Column("excess of these"),
        Column(f"mean width, {style.unit}"),
    )
    rows = tuple(
        (
            Cell(style.name(str(row["group"]))),
            Cell(f"{row['rounds']:,.0f}"),
            Cell(number(100 * row["coverage"], 2)),
            Cell(
                number(100 * row["error"], 2, signed=True),
                "bad" if abs(row["error"]) > FAR and row["rounds"] >= MANY else "",
            ),
            Cell(number(row["missed"], 0 if row["missed"] == int(row["missed"]) else 1)),
            Cell(number(row["excess"], 1, signed=True)),
            Cell(style.width(row["mean_width"])),
        )
        for row in ranked(table)[:most]
    )
    return Table(title, columns, rows, note)


def over_time(
    moments: Mapping[str, Sequence[Sums]],
    table: CoverageTable,
    style: Style = PLAIN,
) -> Figure:
    """How far coverage was from what is asked for: so far, and in stretches; a panel for a group.

    ``moments`` are by the names of the models, ours first. Groups are those with most rounds.
    """
    groups, shown = _drawn(table)
    return Figure(
        "coverage",
        f"{shown}The share of labels inside their intervals less what is asked for, in points: of "
        "all labels so far, and in stretches of a twelfth of the rounds (marked).",
        "rounds of the group",
        "error, points",
        tuple(_panel(moments, group, table.wanted, style) for group in groups),
    )


def widths_over_time(
    moments: Mapping[str, Sequence[Sums]], table: CoverageTable, style: Style = PLAIN
) -> Figure:
    """The mean width in stretches of the rounds, of every model; panels as in :func:`over_time`."""
    groups, shown = _drawn(table)
    return Figure(
        "widths",
        f"{shown}The mean width of their intervals, from end to end, in stretches of a twelfth of "
        "the rounds.",
        "rounds of the group",
        f"width, {style.unit}",
        tuple(_widths(moments, group, style) for group in groups),
    )


def _drawn(table: CoverageTable) -> tuple[list[str], str]:
    """The groups with most rounds, and what to say where there are others."""
    rows = sorted(ranked(table), key=lambda row: -row["rounds"])[:DRAWN]
    more = len(rows) < len(table)
    said = f"The {len(rows)} largest of {len(table):,} groups. " if more else ""
    return [str(row["group"]) for row in rows], said


def _panel(moments: Mapping[str, Sequence[Sums]], group: str, wanted: float, style: Style) -> Panel:
    lines = []
    for place, (label, sums) in enumerate(moments.items()):
        rounds, missed, _ = _moments(sums, group)
        if place == 0:
            ends = _stretches(rounds)
            inside = 1.0 - np.diff(missed[ends]) / np.diff(rounds[ends])
            points = 100.0 * (inside - wanted)
            lines.append(Line(f"{label}, stretches", rounds[ends[1:]], points, None, 4, "marked"))
        so_far = 100.0 * (1.0 - missed[1:] / rounds[1:] - wanted)
        lines.append(Line(f"{label}, so far", rounds[1:], so_far, None, _colour(place)))
    return Panel(style.name(group), tuple(lines))


def _widths(moments: Mapping[str, Sequence[Sums]], group: str, style: Style) -> Panel:
    lines = []
    for place, (label, sums) in enumerate(moments.items()):
        rounds, _, widths = _moments(sums, group)
        ends = _stretches(rounds)
        mean = np.diff(widths[ends]) / np.diff(rounds[ends])
        lines.append(Line(label, rounds[ends[1:]], mean, None, _colour(place), "marked"))
    return Panel(style.name(group), tuple(lines))


def _colour(place: int) -> int:
    """A colour for every model, ours first."""
    return 1 if place == 0 else (2, 3, 0)[(place - 1) % 3]


def _moments(sums: Sequence[Sums], group: str) -> Vector:
    """The sums of a group, from 0 on, at the moments that have more rounds than those before."""
    found = np.array([(0.0, 0.0, 0.0), *(one[group] for one in sums if group in one)])
    different: Vector = found[np.concatenate([[True], np.diff(found[:, 0]) > 0.0])].T
    return different


def _stretches(rounds: Vector) -> list[int]:
    """Where stretches end that have a twelfth of the rounds each, and not too few."""
    least = max(SHORTEST, float(rounds[-1]) / STRETCHES)
    ends = [0]
    for place in range(1, rounds.size):
        if rounds[place] - rounds[ends[-1]] >= least:
            ends.append(place)
    return ends if len(ends) > 1 else [0, rounds.size - 1]


def coverage_section(
    tables: Mapping[str, CoverageTable],
    moments: Mapping[str, Sequence[Sums]],
    style: Style = PLAIN,
    most: int | None = None,
) -> Section:
    """What a page says about intervals: a verdict, coverage and width over time, and the tables.

    ``tables`` are by the names of the models, ours first; a table shows ``most`` groups, or all.
    """
    several = len(tables) > 1
    blocks: list[Table | Illustration | str] = [
        f"{label}: {verdict(table, style)}" if several else verdict(table, style)
        for label, table in tables.items()
    ]
    for drawn in (over_time, widths_over_time):
        figure = drawn(moments, next(iter(tables.values())), style)
        if figure.panels:
            blocks.append(Illustration(figure, inline(figure, draw(figure, pdf=False))))
    for place, (label, table) in enumerate(tables.items()):
        title = f"Intervals around {label}" if several else "Intervals"
        note = NOTE if place == len(tables) - 1 else ""
        blocks.append(coverage_table(table, title, most, style, note))
    return Section("Intervals", "intervals", blocks)
