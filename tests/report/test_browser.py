"""The report in a real browser: chromium, headless, without a network."""

import html
import json
import os
import re
import shutil
import subprocess

import pytest

from groupwise.files.tables import title_of
from tests.cli.commands import people_file, regret_of, succeed, write_rows

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = "<script>document.title='taken over'</script>"

pytestmark = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium here: the report is not looked at in a browser"
)


def browser(folder, *arguments):
    """What chromium says."""
    command = [
        CHROMIUM,
        *("--headless", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars"),
        *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
        f"--user-data-dir={folder / 'profile'}",
        *(["--no-sandbox"] if os.geteuid() == 0 else []),
        *arguments,
    ]
    done = subprocess.run(command, capture_output=True, timeout=120, check=True)
    return done.stdout.decode("utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """A report, as the browser has it after loading."""
    folder = tmp_path_factory.mktemp("browser")
    data = people_file(folder / "people.csv", 400)
    options = ("--target", "pay", "--groups", "city, sex, age:30|50")
    succeed("run", data, *options, "--out", folder / "out")
    report = folder / "out" / "report.html"
    return folder, report, browser(folder, "--dump-dom", f"file://{report}")


def text_of(dom):
    """What is there to read."""
    body = re.sub(r"<(style|script).*?</\1>", "", dom, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


def table_of(dom):
    """The first table."""
    return dom[dom.index("<table") : dom.index("</table>")]


def test_headline_table_and_fingerprint(page):
    import hashlib

    folder, _, dom = page
    text = text_of(dom)
    assert re.search(r"Worst group: \w+", text)
    for heading in ("rounds", "groupwise", "single model", "best in hindsight", "certificate"):
        assert heading in text
    for group in ("everybody (always_on)", "city=north", "sex=f", "age: (30, 50]"):
        assert group.replace(">", "&gt;") in text
    assert hashlib.sha256((folder / "people.csv").read_bytes()).hexdigest() in text
    assert "A look ahead" in text


def test_panels_for_every_group(page):
    *_, dom = page
    for what in ("Error over time", "Residuals", "Regret over time"):
        panels = re.findall(rf'role="img" aria-label="{what}: ([^"]+)"', dom)
        assert len(panels) == len(set(panels)) == 9
    assert dom.count("<svg viewBox") == 27
    places = re.findall(r'<th scope="row"><a href="#([^"]+)"', dom)
    assert len(places) == 9
    assert set(places) == set(re.findall(r'<article class="card" id="([^"]+)"', dom))


def test_nothing_comes_from_elsewhere(page):
    _, report, dom = page
    assert dom.count("<script") == 1
    assert not re.search(r'(?:src|href)="(?:https?:)?//', dom)
    assert "@import" not in report.read_text("utf-8")


def driven(page, script):
    """What a script says that acts on the report in a frame, as a reader would."""
    folder, report, _ = page
    probe = report.with_name("driver.html")
    probe.write_text(
        '<!DOCTYPE html><html><body><iframe id="it" style="width:1400px;height:900px" '
        f'src="{report.name}"></iframe><pre id="said"></pre><script>'
        "const table = () => page.querySelector('[data-sortable]');"
        "const rows = () => [...table().querySelectorAll('tbody tr')].filter(row => !row.hidden);"
        "const column = place => rows().map(row => row.cells[place].textContent);"
        "const head = place => table().querySelectorAll('thead tr:last-child th')[place];"
        "const key = (on, name) => on.dispatchEvent(new page.defaultView.KeyboardEvent('keydown', "
        "{key: name, bubbles: true, cancelable: true}));"
        "let page; onload = () => { page = document.getElementById('it').contentDocument;"
        "const said = []; const say = (...what) => said.push(what);"
        f"{script};"
        "document.getElementById('said').textContent = JSON.stringify(said); }"
        "</script></body></html>"
    )
    dom = browser(folder, "--allow-file-access-from-files", "--dump-dom", f"file://{probe}")
    found = re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL)
    assert found is not None
    return json.loads(html.unescape(found[1]))


def test_headings_sort(page):
    """By click and by key: largest first, smallest first, and as it was."""
    folder, *_ = page
    regret = regret_of(folder / "out")
    ((before,), (largest, state), (smallest, _), (after,), (names,)) = driven(
        page,
        "say(column(0)); head(1).querySelector('.sort').click();"
        "say(column(0), head(1).getAttribute('aria-sort'));"
        "key(head(1).querySelector('.sort'), 'Enter'); say(column(0), 0);"
        "key(head(1).querySelector('.sort'), ' '); say(column(0));"
        "head(0).querySelector('.sort').click(); say(column(0));",
    )
    every = {title_of(name): row["rounds"] for name, row in regret.items()}
    assert before == after
    assert set(before) == set(every)
    assert state == "descending"
    assert [every[name] for name in largest] == sorted(every.values(), reverse=True)
    assert [every[name] for name in smallest] == sorted(every.values())
    assert names == sorted(every, key=str.lower)


def test_figures_are_sorted_by_value_and_not_as_text(page):
    """Signs, thousands and powers of ten do not matter."""
    folder, *_ = page
    regret = regret_of(folder / "out")
    titles = {title_of(name): row["regret"] for name, row in regret.items()}
    (at,), (found,) = driven(
        page,
        "const place = [...table().querySelectorAll('thead tr:last-child th')]"
        ".map(one => one.textContent).lastIndexOf('groupwise'); say(place);"
        "head(place).querySelector('.sort').click(); say(column(0));",
    )
    assert at > 4
    assert [titles[name] for name in found] == sorted(titles.values(), reverse=True)


def test_words_search(page):
    """All words must be in a row, in whatever case; the count is told to those who cannot see."""
    (cities, status), (none, _), (everything, _) = driven(
        page,
        "const field = table().querySelector('input[type=search]');"
        "const look = text => { field.value = text;"
        "field.dispatchEvent(new page.defaultView.Event('input'));"
        "say(column(0), table().querySelector('[role=status]').textContent); };"
        "look('CITY= n'); look('city= nowhere'); look('');",
    )
    assert cities == ["city=north"]
    assert status == "1 of 9 shown"
    assert none == []
    assert len(everything) == 9


def test_keys_reach_everything(page):
    """Search, headings, tables that scroll, and links are in the order of the page."""
    ((order,),) = driven(
        page,
        "say([...page.querySelectorAll('#groups input, #groups .sort, #groups .scroll, "
        "#groups tbody a')].map(one => [one.tabIndex, one.className || one.tagName]));",
    )
    assert all(place == 0 for place, _ in order)
    kinds = [kind for _, kind in order]
    assert kinds[:2] == ["INPUT", "scroll"]
    assert kinds.count("A") == 9
    assert kinds.count("sort") == table_of(page[-1]).count('scope="col"')


def test_without_scripts_the_table_is_whole(page):
    folder, report, _ = page
    text = report.read_text("utf-8")
    plain = report.with_name("plain.html")
    plain.write_text(text.replace("script-src", "img-src"), "utf-8")  # which runs no script
    dom = browser(folder, "--dump-dom", f"file://{plain}")
    assert 'class="tools" hidden' in dom
    assert 'class="sort"' not in dom
    table = table_of(dom)
    assert table.count('<th scope="row">') == 9
    assert "hidden" not in table


def test_it_prints(page):
    """Tools that only a screen has use for are not on paper, and all columns are."""
    folder, report, _ = page
    browser(folder, f"--print-to-pdf={folder / 'page.pdf'}", f"file://{report}")
    content = (folder / "page.pdf").read_bytes()
    assert content.startswith(b"%PDF")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 2


PAPER = 1_031
"""Pixels across, on A4 turned sideways, between the margins."""


@pytest.mark.slow
def test_a_long_and_wide_table_is_whole_on_paper(tmp_path):
    """Rows that a screen shows on request are printed, and no column is cut off."""
    rows = [
        (f"place {i % 60}", i % 7, i % 11, 1_000.0 * (i % 5), -2e6 * i, 3e6 * (i % 13))
        for i in range(1_800)
    ]
    header = ("place", "x", "z", "pay", "a model with a long name", "another_model")
    data = write_rows(tmp_path / "d.csv", header, rows)
    options = ("--target", "pay", "--groups", "place", "--out", tmp_path / "out")
    succeed("compare", data, "--prediction", header[4], "--prediction", header[5], *options)
    report = tmp_path / "out" / "report.html"
    text = report.read_text("utf-8")
    rule = "tr.later[hidden] { display: table-row; }"
    assert rule in text
    pages = []
    for name, content in (("whole", text), ("cut", text.replace(rule, ""))):
        (tmp_path / f"{name}.html").write_text(content, "utf-8")
        printed = tmp_path / f"{name}.pdf"
        browser(tmp_path, f"--print-to-pdf={printed}", f"file://{tmp_path / name}.html")
        pages.append(len(re.findall(rb"/Type\s*/Page\b", printed.read_bytes())))
    assert pages[0] > pages[1]
    on_paper = report.with_name("paper.html")
    on_paper.write_text(text.replace("@media print", "@media all"), "utf-8")
    ((widest,),) = driven(
        (tmp_path, on_paper, ""),
        f"document.getElementById('it').style.width = '{PAPER}px';"
        "say(Math.max(...[...page.querySelectorAll('table')].map(one => one.offsetWidth)));",
    )
    assert widest <= PAPER


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_no_wider_than_the_window(page, width):
    """Tables scroll within themselves; the page does not."""
    folder, report, _ = page
    frame = (
        f'<iframe id="it" style="width:{width}px;height:900px;border:0" src="{report.name}">'
        "</iframe>"
        "<script>onload = () => { const page = document.getElementById('it').contentDocument;"
        f" document.title = page.documentElement.scrollWidth <= {width} ? 'fits' : 'too wide'; }}"
        "</script>"
    )
    probe = report.with_name(f"probe-{width}.html")
    probe.write_text(f"<!DOCTYPE html><html><body>{frame}</body></html>")
    dom = browser(folder, "--allow-file-access-from-files", "--dump-dom", f"file://{probe}")
    assert "<title>fits</title>" in dom


@pytest.mark.slow
def test_hostile_text_does_not_run(tmp_path):
    values = (SCRIPT, 'a "quote"\nand a line')
    rows = [(values[i % 2], i % 37, i % 37 + i % 2) for i in range(90)]
    data = write_rows(tmp_path / "data.csv", ("who", "x", "y"), rows)
    succeed("run", data, "--target", "y", "--out", tmp_path / "out")
    dom = browser(tmp_path, "--dump-dom", f"file://{tmp_path / 'out' / 'report.html'}")
    assert "<title>data.csv: regret on every group</title>" in dom
    assert "&lt;script&gt;document.title" in dom
    assert 'a "quote"\\nand a line' in dom.replace("&quot;", '"')
