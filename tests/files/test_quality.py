"""What a report says about the data, the certificates, and where it comes from."""

import hashlib
import json
import re
from dataclasses import replace

import pytest

from groupwise.files.certificates import STATUS, explained
from groupwise.files.pages import run_page
from groupwise.files.plan import make_plan
from groupwise.files.quality import kind_of, quality_table, uses
from groupwise.files.run import run
from groupwise.files.scan import scan
from groupwise.files.settings import Request
from groupwise.files.source import opened
from groupwise.regret import certificate
from groupwise.report import provenance
from groupwise.report.page import Terms
from groupwise.report.tables import Table
from tests.cli.commands import write_rows

pytestmark = pytest.mark.usefixtures("two_panels")
HEADER = ("when", "kind", "who", "x", "note", "gone", "y")


def rows_of(count=120):
    return [
        (
            f"2024-{1 + i // 28:02d}-{1 + i % 28:02d}",
            "ab"[i % 2],
            f"name {i}",
            i % 7 + 0.5,
            "" if i % 4 == 0 else "no",
            i,
            float(i % 7),
        )
        for i in range(count)
    ]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with columns of many kinds, some of them left out."""
    folder = tmp_path_factory.mktemp("quality")
    data = write_rows(folder / "data.csv", HEADER, rows_of())
    with opened(str(data)) as source:
        found = scan(source, "y")
        options = {"groups": "kind", "features": "x, when:date", "drop": ["gone"]}
        plan = make_plan(found, Request(target="y").with_options(**options))
        return data, run(found, plan, folder / "out", progress=False)


def test_every_column_has_a_row(finished):
    _, done = finished
    table = quality_table(done.scan, done.plan)
    cells = {line[0].text: [cell.text for cell in line] for line in table.rows}
    assert list(cells) == list(HEADER)
    assert cells["x"][1:6] == ["number", "7", "0", "0.0", "0.5 to 6.5"]
    assert cells["note"][3:5] == ["30", "25.0"]  # every fourth of 120
    assert cells["gone"][-1] == "left out: asked for with --drop"
    assert cells["who"][-1] == "left out: not asked for"
    assert cells["y"][-1] == "label"
    assert cells["kind"][-1] == "groups"
    assert cells["x"][-1] == "feature, scaled from 0.5 to 6.5"
    kinds = {name: kind_of(profile) for name, profile in done.scan.columns.items()}
    assert kinds["when"] == "date"
    assert kinds["kind"] == "text"
    assert kinds["gone"] == "whole number"
    assert table.sortable


def test_why_a_column_was_left_out_is_told_as_the_plan_has_it(finished):
    _, done = finished
    said = "Column 'who' is left out: it has too many <texts>."
    for plan in (
        replace(done.plan, left_out={"who": "it has too many <texts>."}),
        replace(done.plan, warnings=(said,)),
    ):
        page = run_page(replace(done, plan=plan))
        assert "left out: it has too many &lt;texts&gt;." in page
        assert uses("who", plan) == []


def test_the_page_has_types_missing_cells_and_what_is_left_out(finished):
    _, done = finished
    page = run_page(done)
    data = page[page.index('<section id="data">') :]
    for text in (
        "120 rows of 7 columns",
        "whole number",
        "25.0",
        "left out: asked for with --drop",
    ):
        assert text in data


def test_where_it_comes_from(finished, monkeypatch):
    data, done = finished
    page = run_page(replace(done, command="groupwise run 'my <file>.csv'", made="then"))
    footer = page[page.index("<footer>") :]
    assert hashlib.sha256(data.read_bytes()).hexdigest() in footer
    assert "groupwise run &#39;my &lt;file&gt;.csv&#39;" in footer
    assert "<dt>Made</dt><dd>then</dd>" in footer
    for name in ("Python", "groupwise", "numba", "numpy"):
        assert f"<dt>{name}</dt>" in footer
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert provenance.moment() == "1970-01-02 00:00:00 UTC"
    assert provenance.command(["/opt/groupwise/__main__.py", "run", "a b"]) == "groupwise run 'a b'"
    assert provenance.command(["/opt/groupwise.exe", "run"]) == "groupwise run"
    assert provenance.command(["pytest", "run"]) == ""
    record = json.loads((data.parent / "out" / "regret.json").read_text("utf-8"))
    assert record["command"] == done.command
    assert record["made"] == done.made


def test_certificates_are_the_sum_of_their_terms(finished):
    _, done = finished
    *said, table, words = explained(done, most=40)
    assert isinstance(table, Table)
    assert isinstance(words, Terms)
    assert "all labels are in" in str(said[0])
    rows = {row["group"]: row for row in done.rows}
    for line, row in zip(table.rows, done.rows, strict=True):
        cells = [float(cell.value or 0.0) for cell in line[2:8]]
        regret, total, learner, combining, late, room = cells
        assert regret == rows[row["group"]]["regret"] <= total
        assert learner + combining + late == pytest.approx(total, rel=1e-9)
        assert room == total - regret
    assert set(words.meanings) == {row["status"] for row in done.rows}


def test_every_status_is_explained(finished):
    _, done = finished
    every = {
        value
        for name, value in vars(certificate).items()
        if re.fullmatch("[A-Z_]+", name) and isinstance(value, str)
    }
    assert set(STATUS) == every
    rows = [{**done.rows[0], "status": word, "best_kind": "bracket"} for word in sorted(every)]
    fake = replace(done)
    object.__setattr__(fake, "rows", rows)
    said, *_, words = explained(fake, most=2)
    assert isinstance(words, Terms)
    assert set(words.meanings) == every
    assert "known between two bounds" in str(said)
