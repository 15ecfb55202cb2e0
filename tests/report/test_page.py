"""Drawings and the page: whole, self-contained, escaped, in the page's own colours."""

import base64
import hashlib
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pytest

from groupwise.arrays import Vector
from groupwise.report.figures import DARK, LIGHT, Figure, Line, Panel, draw, inline
from groupwise.report.page import Illustration, Page, Section, html
from groupwise.report.tables import Cell, Column, Table
from tests.html import without_script

HOSTILE = "<script>alert('$x$ & y')</script>"


def a_figure(name="figure", panels=4, shared=True):
    x: Vector = np.linspace(1000.0, 20_000.0, 20)
    return Figure(
        name,
        f"Caption {HOSTILE}",
        "rounds",
        "regret",
        tuple(
            Panel(
                f"{HOSTILE} {number}",
                (
                    Line("baseline", x, np.sqrt(x) + number, np.sqrt(x) / 10, 0),
                    Line("ours", x, -x / 1000, None, 1, "marked"),
                ),
                note="void" if number == 2 else "",
            )
            for number in range(panels)
        ),
        shared_legend=shared,
    )


@pytest.fixture(scope="module")
def drawing():
    return draw(a_figure())


def test_files_are_the_same_every_time(drawing):
    again = draw(a_figure())
    assert again.svg == drawing.svg
    assert again.pdf == drawing.pdf
    assert drawing.pdf.startswith(b"%PDF")


def test_text_stays_text(drawing):
    root = ElementTree.fromstring(drawing.svg)
    texts = {
        "".join(element.itertext()).strip() for element in root.iter() if "text" in element.tag
    }
    assert {"rounds", "regret", "baseline", "ours", "void", f"{HOSTILE} 3", "20k"} <= texts


def test_a_drawing_is_cut_into_its_panels(drawing):
    figure = a_figure()
    cut = inline(figure, drawing)
    assert [title for title, _ in cut.panels] == [panel.title for panel in figure.panels]
    boxes = [re.findall(r'viewBox="([^"]*)"', svg)[0] for _, svg in cut.panels]
    assert len(set(boxes)) == 4
    for (_, svg), box in zip(cut.panels, boxes, strict=True):
        left, top, width, height = map(float, box.split())
        root = ElementTree.fromstring(svg.replace("<svg", '<svg xmlns:xlink="x"', 1))
        assert root.findall("g")
        # The lines of the panel lie within its cell.
        starts = re.findall(r'<path d="M ([\d.]+) ([\d.]+) [^"]*" clip-path', svg)
        assert len(starts) >= 2
        for path in starts:
            assert left <= float(path[0]) <= left + width
            assert top <= float(path[1]) <= top + height


def test_a_drawing_on_the_page_has_the_pages_colours(drawing):
    cut = inline(a_figure(), drawing)
    text = cut.definitions + "".join(svg for _, svg in cut.panels)
    for name, colour in LIGHT.items():
        assert colour not in text
        assert name in ("rule", "ink") or f"var(--{name})" in text or "series" in name
    for name in ("series-0", "series-1", "ink", "faint"):
        assert f"var(--{name})" in text
    assert LIGHT.keys() == DARK.keys()


class Reader(HTMLParser):
    """What a page refers to, and its identifiers."""

    def __init__(self):
        super().__init__()
        self.tags, self.identifiers, self.links, self.text = [], [], [], []

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        for name, value in attributes:
            if name == "id":
                self.identifiers.append(value)
            if name in ("href", "xlink:href", "src"):
                self.links.append(value)

    def handle_data(self, data):
        self.text.append(data)


@pytest.fixture(scope="module")
def page():
    table = Table(
        "A section",
        (Column("Group", numeric=False), Column("mean", HOSTILE)),
        ((Cell(HOSTILE), Cell("1.00", "bad")),),
        f"note {HOSTILE}",
    )
    figures = [a_figure("one", 2), a_figure("two", 2, shared=False)]
    shown = [
        Illustration(figure, inline(figure, draw(figure)), {"SVG": f"figures/{figure.name}.svg"})
        for figure in figures
    ]
    return html(
        Page(
            HOSTILE,
            [f"lead {HOSTILE}"],
            table,
            [Section("A section", "a", [table, *shown, f"text {HOSTILE}"]), Section("B", "b", [])],
            {"Made with": {HOSTILE: HOSTILE}},
        )
    )


def test_text_from_data_is_escaped(page):
    assert "<script" not in without_script(page)
    reader = Reader()
    reader.feed(page)
    assert reader.tags.count("script") == 1
    shown = " ".join(" ".join(reader.text).split())
    for text in (f"lead {HOSTILE}", f"note {HOSTILE}", f"Caption {HOSTILE}", f"text {HOSTILE}"):
        assert text in shown


def test_the_page_needs_nothing_else(page):
    reader = Reader()
    reader.feed(page)
    assert not {"link", "img", "iframe"} & set(reader.tags)
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    allowed = dict(one.split(" ", 1) for one in policy[1].split("; "))
    script = re.search(r"<script>(.*)</script>", page, re.DOTALL)
    assert script is not None
    digest = base64.b64encode(hashlib.sha256(script[1].encode()).digest()).decode()
    assert allowed == {
        **{"default-src": "'none'", "base-uri": "'none'", "form-action": "'none'"},
        **{"style-src": "'unsafe-inline'", "script-src": f"'sha256-{digest}'"},
    }
    assert "@import" not in page
    assert "http" not in re.sub(r'xmlns[^"]*"[^"]*"|http-equiv', "", page)
    within = [link[1:] for link in reader.links if link.startswith("#")]
    assert set(within) <= set(reader.identifiers)
    assert {link for link in reader.links if not link.startswith("#")} == {
        *("figures/one.svg", "figures/two.svg"),
    }
    for target in re.findall(r"url\(#([^)]*)\)", page):
        assert target in reader.identifiers


def test_identifiers_are_unique(page):
    reader = Reader()
    reader.feed(page)
    assert len(reader.identifiers) == len(set(reader.identifiers))


def test_light_dark_and_print(page):
    assert "screen and (prefers-color-scheme: dark)" in page
    assert "@media print" in page
    for name in LIGHT:
        assert f"--{name}: {LIGHT[name]};" in page
        assert f"--{name}: {DARK[name]};" in page
