"""One HTML file with everything in it: no script, no font, no picture from elsewhere.

The one script that it has sorts and searches tables; without it they are as they were written. Its
digest is in the page's policy, so that a browser runs nothing else and asks nobody for anything.
"""

import base64
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any

from groupwise.report.figures import DARK, LIGHT, SERIES, Figure, Inline
from groupwise.report.tables import Table


@dataclass(frozen=True)
class Illustration:
    """A figure on the page, and where its files are (label to address)."""

    figure: Figure
    inline: Inline
    files: Mapping[str, str] = field(default_factory=dict)

    @property
    def legend(self) -> list[tuple[str, int, str]]:
        """Label, colour and style of the lines that all panels share."""
        lines = self.figure.panels[0].lines if self.figure.shared_legend else ()
        return [(line.label, line.colour % len(SERIES), line.style) for line in lines]


@dataclass(frozen=True)
class Terms:
    """Words, and what they mean."""

    meanings: Mapping[str, str]


@dataclass(frozen=True)
class Card:
    """What there is to see of one thing: a line about it, and panels, each with what it shows."""

    title: str
    anchor: str
    text: str
    panels: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Cards:
    """Cards under one explanation; ``definitions`` are what their panels refer to."""

    caption: str
    cards: Sequence[Card]
    definitions: Sequence[str]
    legend: Sequence[tuple[str, int, str]] = ()


Block = Table | Illustration | Terms | Cards | str


@dataclass(frozen=True)
class Section:
    """A heading with tables, figures and paragraphs under it, in order."""

    title: str
    anchor: str
    blocks: Sequence[Block]
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A page: what it says first, its sections, and at the end the facts of its making."""

    title: str
    lead: Sequence[str]
    summary: Table | None
    sections: Sequence[Section]
    facts: Mapping[str, Mapping[str, Any]]
    headline: str = ""
    """One sentence in large letters, before the rest."""


def html(page: Page) -> str:
    """The page as HTML. All text is escaped; only drawings are taken as they are."""
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("groupwise.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.tests["table"] = lambda block: isinstance(block, Table)
    environment.tests["illustration"] = lambda block: isinstance(block, Illustration)
    environment.tests["terms"] = lambda block: isinstance(block, Terms)
    environment.tests["cards"] = lambda block: isinstance(block, Cards)
    environment.filters["drawing"] = Markup
    light, dark = (
        ":root {" + " ".join(f"--{name}: {value};" for name, value in colours.items()) + "}"
        for colours in (LIGHT, DARK)
    )
    colours = f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n"
    style, script = (_text(name) for name in ("page.css", "page.js"))
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return environment.get_template("page.html").render(
        page=page, style=Markup(colours + style), script=Markup(script), digest=digest
    )


def _text(name: str) -> str:
    return files("groupwise.report").joinpath("templates", name).read_text("utf-8")
