"""A drawing as parts of a page: panels that flow with its width, in its colours and its font."""

import re
from collections.abc import Iterator
from typing import NamedTuple
from xml.etree import ElementTree

from groupwise.report.drawing import Drawing, rounded
from groupwise.report.figure import Figure
from groupwise.report.palette import LIGHT

SVG = "http://www.w3.org/2000/svg"
XLINK = "http://www.w3.org/1999/xlink"
_IDENTIFIER = re.compile(r'(\bid="|url\(#|href="#)')


class Inline(NamedTuple):
    """SVG for a page: what the panels refer to, and the panels, each with its title."""

    definitions: str
    panels: tuple[tuple[str, str], ...]


def inline(figure: Figure, drawing: Drawing) -> Inline:
    """Cut a drawing into panels, colours turned into the page's variables.

    Identifiers get the figure's name in front, since all drawings of a page share one document.
    """
    text = _IDENTIFIER.sub(rf"\g<1>{figure.name}-", rounded(drawing.svg, 1))
    for name, colour in LIGHT.items():
        text = text.replace(colour, f"var(--{name})")
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    root = ElementTree.fromstring(text)
    definitions = "".join(map(_text, root.findall(f"{{{SVG}}}defs")))
    return Inline(definitions, tuple(_panels(figure, drawing, root)))


def _panels(
    figure: Figure, drawing: Drawing, root: ElementTree.Element
) -> Iterator[tuple[str, str]]:
    groups = {group.get("id"): group for group in root.iter(f"{{{SVG}}}g")}
    for number, (panel, cell) in enumerate(zip(figure.panels, drawing.cells, strict=True), 1):
        box = " ".join(f"{value:g}" for value in cell)
        axes = _text(groups[f"{figure.name}-axes_{number}"])
        yield panel.title, f'<svg viewBox="{box}" aria-hidden="true">{axes}</svg>'


def _text(element: ElementTree.Element) -> str:
    written = ElementTree.tostring(element, encoding="unicode")
    for namespace in (f' xmlns="{SVG}"', f' xmlns:xlink="{XLINK}"'):
        written = written.replace(namespace, "")
    lines = (line.strip() for line in written.splitlines())
    return " ".join(line for line in lines if line)
