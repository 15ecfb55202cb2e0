"""The report in a real browser: chromium, headless, without a network."""

import os
import re
import shutil
import subprocess

import pytest

from tests.cli.commands import people_file, succeed, write_rows

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
    body = re.sub(r"<style.*?</style>", "", dom, flags=re.DOTALL)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", body))


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


def test_a_curve_for_every_group(page):
    *_, dom = page
    panels = re.findall(r'role="img" aria-label="regret against rounds of the group: ([^"]+)"', dom)
    assert len(panels) == 9
    assert dom.count("<svg viewBox") == 9


def test_nothing_comes_from_elsewhere(page):
    _, report, dom = page
    assert "<script" not in dom
    assert not re.search(r'(?:src|href)="(?:https?:)?//', dom)
    assert "@import" not in report.read_text("utf-8")


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


def test_hostile_text_does_not_run(tmp_path):
    values = (SCRIPT, 'a "quote"\nand a line')
    rows = [(values[i % 2], i % 37, i % 37 + i % 2) for i in range(90)]
    data = write_rows(tmp_path / "data.csv", ("who", "x", "y"), rows)
    succeed("run", data, "--target", "y", "--out", tmp_path / "out")
    dom = browser(tmp_path, "--dump-dom", f"file://{tmp_path / 'out' / 'report.html'}")
    assert "<title>data.csv: regret on every group</title>" in dom
    assert "&lt;script&gt;document.title" in dom
    assert 'a "quote"\\nand a line' in dom.replace("&quot;", '"')
