"""One HTML file with everything in it: no script, no font, no picture from elsewhere."""

import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from typing import Any

from groupwise.report.figures import DARK, LIGHT, SERIES, Figure, Inline
from groupwise.report.tables import Table

PACKAGES = ("groupwise", "numpy", "scipy", "numba", "matplotlib")


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
class Section:
    """A heading with tables, figures and paragraphs under it, in order."""

    title: str
    anchor: str
    blocks: Sequence[Table | Illustration | str]
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
    environment.filters["drawing"] = Markup
    light, dark = (
        ":root {" + " ".join(f"--{name}: {value};" for name, value in colours.items()) + "}"
        for colours in (LIGHT, DARK)
    )
    colours = f"{light}\n@media screen and (prefers-color-scheme: dark) {{ {dark} }}\n"
    style = files("groupwise.report").joinpath("templates", "page.css").read_text("utf-8")
    return environment.get_template("page.html").render(page=page, style=Markup(colours + style))


def versions() -> dict[str, str]:
    """Names and versions of Python, the packages that compute and draw, and the machine."""
    found = {"Python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return {**found, "platform": f"{platform.system()} {platform.machine()}"}
