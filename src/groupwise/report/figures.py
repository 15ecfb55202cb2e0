"""Figures: panels of lines with bands, drawn with matplotlib as SVG and PDF, and cut for a page.

Every panel has the same cell of a plain grid under a strip for the legend, so that a page can cut
the drawing into panels and let them flow with its width, in its colours and its font.

The series are those of Okabe and Ito, which people with any colour vision can tell apart. In files
figures have the light colours; on a page each becomes the style sheet's variable of its name.
"""

import io
import re
from dataclasses import dataclass
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


@dataclass(frozen=True, eq=False)
class Line:
    """A curve, with a band of ± ``spread`` around it where that is given.

    A line without a label is not in the legend.
    ``colour`` is a place in the palette: 0 is the baseline's blue, 1 our orange, 2 … are free.
    """

    label: str
    x: Vector
    y: Vector
    spread: Vector | None = None
    colour: int = 0
    style: Literal["solid", "dashed", "marked"] = "solid"

    @classmethod
    def over_seeds(cls, label: str, x: Vector, values: Vector, colour: int) -> "Line":
        """The mean of several curves, a row of ``values`` each, ± their standard deviation."""
        return cls(label, x, values.mean(axis=0), values.std(axis=0), colour)


@dataclass(frozen=True, eq=False)
class Panel:
    """One set of axes. The note stands in a corner of it."""

    title: str
    lines: tuple[Line, ...]
    note: str = ""


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
    columns: int = 3


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
    header = HEADER if figure.shared_legend else 0.0
    width, height = CELL[0] * figure.columns, CELL[1] * rows + header
    places = [
        (CELL[0] * (i % figure.columns), header + CELL[1] * (i // figure.columns))
        for i in range(len(figure.panels))
    ]
    with matplotlib.rc_context(_STYLE):
        canvas = Canvas(figsize=(width, height))
        for panel, (x, y) in zip(figure.panels, places, strict=True):
            axes = canvas.add_axes(
                (
                    (x + MARGINS["left"]) / width,
                    1.0 - (y + CELL[1] - MARGINS["bottom"]) / height,
                    (CELL[0] - MARGINS["left"] - MARGINS["right"]) / width,
                    (CELL[1] - MARGINS["bottom"] - MARGINS["top"]) / height,
                )
            )
            _draw_panel(axes, panel, figure)
        if figure.shared_legend:
            handles, labels = canvas.axes[0].get_legend_handles_labels()
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
    x_size, y_size = (side * POINTS_PER_INCH for side in CELL)
    cells = tuple((x * POINTS_PER_INCH, y * POINTS_PER_INCH, x_size, y_size) for x, y in places)
    return Drawing(rounded(svg.getvalue(), 2), document.getvalue(), cells)


def _draw_panel(axes: "Axes", panel: Panel, figure: Figure) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    axes.axhline(0.0, color=LIGHT["rule"], linewidth=0.8, zorder=0)
    for line in panel.lines:
        colour = SERIES[line.colour % len(SERIES)]
        if line.spread is not None:
            band = line.x, line.y - line.spread, line.y + line.spread
            axes.fill_between(*band, color=colour, alpha=0.22, linewidth=0)
        axes.plot(
            line.x,
            line.y,
            color=colour,
            linewidth=1.2,
            linestyle="--" if line.style == "dashed" else "-",
            marker="o" if line.style == "marked" else "",
            markersize=2.2,
            markevery=max(1, len(line.x) // 10),
            label=plain(line.label) or "_nolegend_",
        )
    axes.set_title(plain(panel.title), fontsize=8.5, loc="left", pad=4)
    axes.set_xlabel(figure.x_label, labelpad=2, fontsize=7.5)
    axes.set_ylabel(figure.y_label, labelpad=2, fontsize=7.5)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.tick_params(labelsize=7, length=2.5, pad=2)
    axes.margins(x=0.02)
    if panel.note:
        axes.text(
            0.98,
            0.04,
            plain(panel.note),
            transform=axes.transAxes,
            ha="right",
            fontsize=6.5,
            color=LIGHT["faint"],
        )
    if not figure.shared_legend:
        axes.legend(fontsize=6, frameon=False, handlelength=2.2, labelspacing=0.25, borderpad=0.1)


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
