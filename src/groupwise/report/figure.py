"""Figures as data: panels of lines with bands, before anything is drawn."""

from dataclasses import dataclass
from typing import Literal

from groupwise.arrays import Vector


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
