"""Group by group: error over time, residuals, and regret beside its certificate, drawn."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from groupwise.arrays import Vector
from groupwise.files.tables import BEST, NAME, OURS, SINGLE, Measure, Row, regret_scale, title_of
from groupwise.files.text import amount, shown
from groupwise.files.units import Scale
from groupwise.report.errors import Estimate, Residuals, Times
from groupwise.report.figures import Figure, Line, Panel, draw, inline
from groupwise.report.page import Card, Cards

if TYPE_CHECKING:
    from groupwise.files.run import Finished

POINTS = 3
"""Fewer make no curve."""
STRETCHES, LEAST = 20, 10
"""So many stretches of the stream at most, each of so many of the group's rounds at least."""
CELL = (3.6, 2.05)
NEAR = 4.0
"""A certificate is drawn where it is at most so many times as large as what is drawn beside it."""
BEFORE = "known before the first row"
CERTIFICATE, INTERVAL = "certificate", "95\N{NO-BREAK SPACE}% interval"


def anchors(rows: Sequence[Row], most: int) -> dict[str, str]:
    """Where on the page each of the first groups is drawn."""
    return {row["group"]: f"group-{place}" for place, row in enumerate(rows[:most], 1)}


def cards(done: "Finished", most: int) -> Cards:
    """A card for each of the first groups."""
    rows = done.rows[:most]
    scale = regret_scale(done.rows, done.players)
    unit, panels = done.measure.error_unit, [_Panels(done, row, scale) for row in rows]
    by = " and ".join(shown(name, 30) for name in done.plan.order)
    order = f"the order of {by}" if by else "the file"
    kinds: dict[str, tuple[str, str, list[Panel | None]]] = {
        "errors": (
            f"rows, in {order}",
            done.measure.heading(Scale()),
            [one.over_time() for one in panels],
        ),
        "residuals": (
            f"prediction less label, {unit}",
            "rounds of the group, %",
            [one.residuals() for one in panels],
        ),
        "regret": (
            "rounds of the group",
            done.measure.above("regret", scale),
            [one.regret() for one in panels],
        ),
    }
    if done.measure.slow:  # what predictions of yes and no miss by, calibration shows better
        del kinds["residuals"]
    drawn: list[dict[int, tuple[str, str]]] = []
    definitions: list[str] = []
    legend: dict[str, tuple[str, int, str]] = {}
    for name, (x_label, y_label, found) in kinds.items():
        held = {place: panel for place, panel in enumerate(found) if panel is not None}
        if not held:
            continue
        figure = Figure(name, "", x_label, y_label, tuple(held.values()), cell=CELL)
        cut = inline(figure, draw(figure, pdf=False))
        definitions.append(cut.definitions)
        drawn.append(dict(zip(held, cut.panels, strict=True)))
        for line in (line for panel in held.values() for line in panel.lines if line.label):
            legend.setdefault(line.label, (line.label, line.colour, line.style))
    places = anchors(rows, most)
    return Cards(
        _caption(done, len(rows)),
        [
            Card(
                title_of(row["group"], NAME),
                places[row["group"]],
                _text(done, row, scale),
                [found[place] for found in drawn if place in found],
            )
            for place, row in enumerate(rows)
        ],
        definitions,
        [*legend.values()],
    )


def _caption(done: "Finished", many: int) -> str:
    some = f"The first {many} of {len(done.rows):,} groups. " if many < len(done.rows) else ""
    word = "Log loss" if done.measure.slow else "Error"
    fitted = " The dots are where the best was fitted." if done.measure.slow else ""
    spread = (
        ""
        if done.measure.slow
        else "Residuals: how far predictions were above the label (right of 0) or below it, the "
        "first and the last bar with all that is beyond; the line is their mean, the bias. "
    )
    return (
        f"{some}{word} over time: that of consecutive stretches of the stream, each with its 95 % "
        f"interval. {spread}Regret over time: against {BEST} so far, as the group’s rounds go by; "
        "a line that flattens has learned the group, one that keeps climbing has not."
        f"{fitted} The certificate, and the bound that was known before the first row, are drawn "
        "where they are near enough to be seen beside it."
    )


def _text(done: "Finished", row: Row, scale: Scale) -> str:
    """What there is to say of a group, in a line."""
    measure, group = done.measure, row["group"]
    word = "log loss" if measure.slow else "error"
    names = {key: f"{shown(name, 30)}: " for name, key in done.players.items()}
    said = [f"{amount(row['rounds'])} rounds"]
    for key, errors in done.errors.items():
        name = names.get(key, f"{OURS}: " if names else "")
        own = f"{word} {_spread(measure.estimate(errors, group))} {measure.error_unit}"
        if errors.is_signed:
            bias = _biased(errors.bias(group), measure)
            own = f"{measure.signed} {bias} {measure.bias_unit} · {own}"
        said.append(f"{name}{own}")
    single = measure.figure(row, "baseline_regret")
    if math.isfinite(single):
        said.append(f"{SINGLE} {amount(single)}")
    said.append(f"{BEST} {amount(measure.figure(row, None))}")
    bound = f"certificate {scale(row['certificate'])} ({row['status']})"
    if row.get("a_priori") is not None:
        bound = f"{bound}, {BEFORE} {scale(row['a_priori'])}"
    said.append(f"regret {scale(row['regret'])}, {bound}, in {scale.unit(measure.loss_unit)}")
    return " · ".join(said) + "."


def _biased(found: Estimate, measure: Measure) -> str:
    scale = measure.biases(Scale.of(found, powers=False))
    return _with_ends(*map(scale.signed, found))


def _spread(found: Estimate) -> str:
    return _with_ends(*map(amount, found))


def _with_ends(mean: str, low: str, high: str) -> str:
    return f"{mean} ({low} to {high})" if low != "–" else mean


class _Panels:
    """The panels of one group."""

    def __init__(self, done: "Finished", row: Row, scale: Scale) -> None:
        self.done, self.row, self.group = done, row, row["group"]
        self.unit = 10.0**scale.exponent
        names = {key: shown(name, 30) for name, key in done.players.items()}
        self.players: Mapping[str, str] = {**names, "regret": OURS}
        self.colours = {key: place for place, key in enumerate(names, 2)} | {"regret": 1}
        self.style: Literal["solid", "marked"] = "marked" if done.measure.slow else "solid"

    def over_time(self) -> Panel | None:
        """Errors in stretches of the stream, of the first model with their intervals."""
        found = {
            key: self._ends(one.over_time(self.group, STRETCHES, LEAST))
            for key, one in self.done.errors.items()
        }
        found = {key: times for key, times in found.items() if times.end.size >= POINTS}
        if not found:
            return None
        (first, times), *_ = found.items()
        known = np.isfinite(times.low)
        low, high = times.low[known], times.high[known]
        colour = self.colours[first]
        band = _middles(times.end)[known], (low + high) / 2.0, (high - low) / 2.0
        lines = [Line(INTERVAL, *band, colour, "band")]
        for key, one in found.items():
            x = _middles(one.end)
            lines.append(Line(self.players[key], x, one.mean, None, self.colours[key]))
        best = np.full(2, self.done.measure.figure(self.row, None))
        ends = np.array([0.0, times.end[-1]])
        lines.append(Line(f"{BEST}, all rounds", ends, best, None, 4, "dashed"))
        word = "Log loss" if self.done.measure.slow else "Error"
        return Panel(f"{word} over time", tuple(lines))

    def _ends(self, times: Times) -> Times:
        """The root of mean squares, where losses are such."""
        if not self.done.measure.squares:
            return times
        roots = (np.sqrt(np.maximum(one, 0.0)) for one in times[1:])
        return Times(times.end, *roots)

    def residuals(self) -> Panel | None:
        """How residuals are spread, and their mean."""
        lines: list[Line] = []
        for key, errors in self.done.errors.items():
            found, colour = errors.residuals(self.group), self.colours[key]
            if found is None:
                continue
            bias, top = errors.bias(self.group).mean, 100.0 * float(found.shares.max())
            lines.append(_bars(self.players[key], found, colour))
            up = np.array([0.0, top])
            lines.append(Line("", np.full(2, bias), up, None, colour))
            lines.append(Line("", np.zeros(2), up, None, 4, "dashed"))
        return Panel("Residuals", tuple(lines)) if lines else None

    def regret(self) -> Panel | None:
        """Regret as the group's rounds go by, and the certificate."""
        done, style = self.done, self.style
        if self.group not in done.curves:
            return None
        curve = done.curves[self.group].drawn()
        if curve.time.size <= POINTS:
            return None
        single, ours = curve.baseline_regret / self.unit, curve.regret / self.unit
        lines = [
            Line(SINGLE, curve.rounds, single, colour=0, style=style),
            Line(OURS, curve.rounds, ours, colour=1, style=style),
        ]
        for place, (name, curves) in enumerate(done.logged.items(), 2):
            other = curves[self.group].drawn()
            values = other.regret / self.unit
            lines.append(Line(shown(name, 30), other.rounds, values, colour=place, style=style))
        bound = curve.certificate / self.unit
        largest = max(float(np.nanmax(np.abs(line.y))) for line in lines if line.y.size)
        near = np.isfinite(bound) & (np.abs(bound) <= NEAR * largest)
        if near.sum() > POINTS:
            lines.append(Line(CERTIFICATE, curve.rounds[near], bound[near], None, 3, "dashed"))
        bound = done.foreseen[self.group].drawn().certificate / self.unit
        near = np.isfinite(bound) & (np.abs(bound) <= NEAR * largest)
        if near.sum() > POINTS:
            lines.append(Line(BEFORE, curve.rounds[near], bound[near], None, 4, "dashed"))
        return Panel("Regret over time", tuple(lines))


def _middles(ends: Vector) -> Vector:
    """The middle of every stretch, the first from 0 on."""
    middles: Vector = (np.concatenate([[0.0], ends[:-1]]) + ends) / 2.0
    return middles


def _bars(label: str, found: Residuals, colour: int) -> Line:
    """Bars as an area under steps."""
    heights = np.repeat(50.0 * found.shares, 2)
    edges = np.repeat(found.edges, 2)[1:-1]
    return Line(label, edges, heights, heights, colour, "band")
