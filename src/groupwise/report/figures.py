"""Figures: panels of lines with bands, drawn with matplotlib as SVG and PDF, and cut for a page.

Every panel has the same cell of a plain grid under a strip for the legend, so that a page can cut
the drawing into panels and let them flow with its width, in its colours and its font.

The series are those of Okabe and Ito, which people with any colour vision can tell apart. In files
figures have the light colours; on a page each becomes the style sheet's variable of its name.
"""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple
from xml.etree import ElementTree

from groupwise.arrays import Vector

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LIGHT = {
    "ink": "#1b2430",
    "faint": "#5c6773",
    "rule": "#d5dae0",
    "series-0": "#0072b2",
    "series-1": "#d55e00",
    "series-2": "#009e73",
    "series-3": "#aa4499",
    "series-4": "#6b7280",
}
DARK = {
    "ink": "#e6e9ed",
    "faint": "#9aa5b1",
    "rule": "#38424d",
    "series-0": "#56b4e9",
    "series-1": "#ff9c4a",
    "series-2": "#3fd0a4",
    "series-3": "#e08bd2",
    "series-4": "#b6bfca",
}
SERIES = [LIGHT[name] for name in LIGHT if name.startswith("series-")]
CELL = (3.0, 2.15)
"""Width and height of a panel's cell, in inches."""
STRIP, GAP = 0.2, 0.04
"""Height of the bars under a panel, and what separates them from it, as shares of its height."""
SUBTITLE = 0.14
"""Height of the line under the title of a panel with bars."""
HEADER = 0.34
"""Height of the strip for the legend."""
MARGINS = {"left": 0.58, "right": 0.12, "bottom": 0.44, "top": 0.28}
POINTS_PER_INCH = 72
_STYLE: Any = {
    "svg.fonttype": "none",  # text stays text: searchable, and in the page's own font
    "svg.hashsalt": "groupwise",  # the same figure is the same file
    "pdf.fonttype": 42,
    "font.size": 8,
    "axes.edgecolor": LIGHT["faint"],
    "axes.labelcolor": LIGHT["faint"],
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": LIGHT["faint"],
    "ytick.color": LIGHT["faint"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "text.color": LIGHT["ink"],
}
SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"


Style = Literal["solid", "dashed", "marked", "band"]


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, with a band of ± ``spread`` around it where that is given.

    A line without a label is not in the legend. In the style "band" there is nothing but the band.
    ``colour`` is a place in the palette: 0 is the baseline's blue, 1 our orange, 4 grey, the others
    are free.
    """

    label: str
    x: Vector
    y: Vector
    spread: Vector | None = None
    colour: int = 0
    style: Style = "solid"

    @classmethod
    def over_seeds(cls, label: str, x: Vector, values: Vector, colour: int) -> "Line":
        """The mean of several curves, a row of ``values`` each, ± their standard deviation."""
        return cls(label, x, values.mean(axis=0), values.std(axis=0), colour)


class Bars(NamedTuple):
    """A histogram: bar i is between ``edges[i]`` and ``edges[i + 1]``."""

    edges: Vector
    heights: Vector


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes. The note stands in a corner of it.

    Bars stand in a strip under the lines, and then the note under the title. ``limits`` are those
    of both axes; where there are none, they are where the lines end.
    """

    title: str
    lines: tuple[Line, ...]
    note: str = ""
    bars: Bars | None = None
    limits: tuple[float, float] | None = None


@dataclass(frozen=True, eq=False)
class Figure:
    """Panels of equal size in rows of ``columns``.

    With ``shared_legend`` the lines of the first panel explain all panels; otherwise every panel
    has a legend of its own.
    """

    name: str
    caption: str
    x_label: str
    y_label: str
    panels: tuple[Panel, ...]
    shared_legend: bool = True
    styles: Mapping[str, Style] = field(default_factory=dict)
    """Whose curves have which style, where colours say something else: a line above all panels."""
    columns: int = 3
    cell: tuple[float, float] = CELL


class Drawing(NamedTuple):
    """A figure's two files. ``cells`` says where the panels are in the SVG: x, y, width, height."""

    svg: str
    pdf: bytes
    cells: tuple[tuple[float, float, float, float], ...]


def draw(figure: Figure, pdf: bool = True) -> Drawing:
    """Draw a figure; the PDF only where it is wanted, since it takes as long as all the rest."""
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    rows = -(-len(figure.panels) // figure.columns)
    header = HEADER if figure.shared_legend or figure.styles else 0.0
    cell = figure.cell
    width, height = cell[0] * figure.columns, cell[1] * rows + header
    places = [
        (cell[0] * (i % figure.columns), header + cell[1] * (i // figure.columns))
        for i in range(len(figure.panels))
    ]
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(width, height))
        for panel, (x, y) in zip(figure.panels, places, strict=True):
            top = MARGINS["top"] + (SUBTITLE if panel.bars is not None else 0.0)
            axes = canvas.add_axes(
                (
                    (x + MARGINS["left"]) / width,
                    1.0 - (y + cell[1] - MARGINS["bottom"]) / height,
                    (cell[0] - MARGINS["left"] - MARGINS["right"]) / width,
                    (cell[1] - MARGINS["bottom"] - top) / height,
                )
            )
            _draw_panel(axes, panel, figure)
        if figure.shared_legend or figure.styles:
            handles, labels = canvas.axes[0].get_legend_handles_labels()
            if figure.styles:
                handles = [_sample(style) for style in figure.styles.values()]
                labels = list(figure.styles)
            canvas.legend(
                handles,
                labels,
                loc="upper left",
                bbox_to_anchor=(0.0, 1.0 - 0.02 / height),
                ncols=len(labels),
                frameon=False,
                fontsize=8,
            )
        svg, document = io.StringIO(), io.BytesIO()
        canvas.savefig(svg, format="svg", transparent=True, metadata={"Date": None})
        if pdf:
            canvas.savefig(document, format="pdf", metadata={"CreationDate": None})
    x_size, y_size = (side * POINTS_PER_INCH for side in cell)
    cells = tuple((x * POINTS_PER_INCH, y * POINTS_PER_INCH, x_size, y_size) for x, y in places)
    return Drawing(rounded(svg.getvalue(), 2), document.getvalue(), cells)


def _stroke(style: Style) -> dict[str, Any]:
    """How a line of a style is drawn."""
    return {
        "linewidth": 1.2,
        "linestyle": "--" if style == "dashed" else "-",
        "marker": "o" if style == "marked" else "",
        "markersize": 2.2,
    }


def _sample(style: Style) -> Any:
    """A line for the legend alone, in grey."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=SERIES[4], **_stroke(style))


def _draw_panel(axes: "Axes", panel: Panel, figure: Figure) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.axhline(0.0, color=LIGHT["rule"], linewidth=0.8, zorder=0)
    for line in panel.lines:
        colour = SERIES[line.colour % len(SERIES)]
        if line.spread is not None:
            band = line.x, line.y - line.spread, line.y + line.spread
            alone = (plain(line.label) or None) if line.style == "band" else None
            axes.fill_between(*band, color=colour, alpha=0.22, linewidth=0, label=alone)
        if line.style == "band":
            continue
        axes.plot(
            line.x,
            line.y,
            color=colour,
            **_stroke(line.style),
            markevery=max(1, len(line.x) // 10),
            label=plain(line.label) or "_nolegend_",
        )
    pad = 4 if panel.bars is None else 4 + SUBTITLE * POINTS_PER_INCH
    axes.set_title(plain(panel.title), fontsize=8.5, loc="left", pad=pad)
    axes.set_xlabel(figure.x_label, labelpad=2, fontsize=7.5)
    axes.set_ylabel(figure.y_label, labelpad=2, fontsize=7.5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.tick_params(labelsize=7, length=2.5, pad=2)
    axes.margins(x=0.02)
    if panel.limits is not None:
        _limit(axes, *panel.limits)
    corner: dict[str, Any] = {"xy": (0.98, 0.04), "ha": "right"}
    if panel.bars is not None:
        _draw_bars(axes, panel.bars)
        corner = {
            "xy": (0.0, 1.0),
            "xytext": (0.0, 4.0),
            "textcoords": "offset points",
        }
    if panel.note:
        shown: Any = {"xycoords": "axes fraction", "fontsize": 6.5, "color": LIGHT["faint"]}
        axes.annotate(plain(panel.note), **corner, **shown)
    if not figure.shared_legend:
        axes.legend(fontsize=6, frameon=False, handlelength=2.2, labelspacing=0.25, borderpad=0.1)


def _limit(axes: "Axes", low: float, high: float) -> None:
    """The same limits for both axes, with room for what is drawn on them."""
    room = 0.02 * (high - low)
    axes.set_xlim(low - room, high + room)
    axes.set_ylim(low - room, high + room)


def _draw_bars(axes: "Axes", bars: Bars) -> None:
    """Bars in a strip under what is there."""
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if low <= tick <= high]
    floor = low - (STRIP + GAP) * (high - low)
    heights = bars.heights * (STRIP * (high - low) / max(float(bars.heights.max()), 1e-300))
    widths = bars.edges[1:] - bars.edges[:-1]
    axes.bar(
        bars.edges[:-1],
        heights,
        widths,
        floor,
        align="edge",
        color=SERIES[-1],
        alpha=0.55,
        linewidth=0,
    )
    axes.set_yticks(ticks)
    axes.set_ylim(floor, high)


def rounded(svg: str, decimals: int) -> str:
    """The drawing with shorter coordinates in its paths; everything else stays as it is.

    >>> rounded('<path d="M 1.256 20.004"/><text x="1.256">1.256</text>', 1)
    '<path d="M 1.3 20"/><text x="1.256">1.256</text>'
    """

    def shorter(number: re.Match[str]) -> str:
        return f"{float(number[0]):.{decimals}f}".rstrip("0").rstrip(".")

    return re.sub(r' d="[^"]*"', lambda path: re.sub(r"\d+\.\d+", shorter, path[0]), svg)


def plain(text: str) -> str:
    """Text that matplotlib shows as it is: a dollar sign would begin a formula."""
    return text.replace("$", r"\$")


def short(value: float) -> str:
    """A tick's label: few characters, thousands as k.

    >>> short(20000.0), short(-0.5), short(0.0)
    ('20k', '−0.5', '0')
    """
    text = f"{value / 1000:.6g}k" if abs(value) >= 10_000 else f"{value:.6g}"
    return text.replace("-", "−")


class Inline(NamedTuple):
    """SVG for a page: what the panels refer to, and the panels, each with its title."""

    definitions: str
    panels: tuple[tuple[str, str], ...]


def inline(figure: Figure, drawing: Drawing) -> Inline:
    """Cut a drawing into panels, colours turned into the page's variables.

    Identifiers get the figure's name in front, since all drawings of a page share one document.
    """
    identifier = r'(\bid="|url\(#|href="#)'
    text = re.sub(identifier, rf"\g<1>{figure.name}-", rounded(drawing.svg, 1))
    for name, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{name})")
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(text)
    groups = {group.get("id"): group for group in root.iter(f"{{{SVG}}}g")}
    panels = tuple(
        (
            panel.title,
            f'<svg viewBox="{x:g} {y:g} {width:g} {height:g}" aria-hidden="true">'
            f"{_text(groups[f'{figure.name}-axes_{number}'])}</svg>",
        )
        for number, (panel, (x, y, width, height)) in enumerate(
            zip(figure.panels, drawing.cells, strict=True), 1
        )
    )
    return Inline("".join(map(_text, root.findall(f"{{{SVG}}}defs"))), panels)


def _text(element: ElementTree.Element) -> str:
    written = ElementTree.tostring(element, encoding="unicode")
    written = written.replace(f' xmlns="{SVG}"', "").replace(f' xmlns:xlink="{XLINK}"', "")
    return " ".join(line.strip() for line in written.splitlines() if line.strip())
