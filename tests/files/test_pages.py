"""The report of a run: what it says, and which groups it draws."""

import html
import re
from dataclasses import replace

import pytest

from groupwise.files import pages
from groupwise.files.pages import run_page
from groupwise.files.plan import make_plan
from groupwise.files.run import run
from groupwise.files.scan import scan
from groupwise.files.settings import Request
from groupwise.files.source import opened
from groupwise.files.tables import title_of
from groupwise.regret.table import RegretTable
from tests.cli.commands import people_file

pytestmark = pytest.mark.usefixtures("two_panels")
GROUPS = "sex, age:30|50, age>=60, city & sex"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run with groups of many kinds."""
    folder = tmp_path_factory.mktemp("run")
    with opened(str(people_file(folder / "people.csv", 200))) as source:
        found = scan(source, "pay")
        plan = make_plan(found, Request(target="pay").with_options(groups=GROUPS))
        return run(found, plan, folder / "out", progress=False)


def test_the_page_says_what_was_run_and_what_was_found(finished):
    page = run_page(finished)
    assert "people.csv: regret on every group" in page
    assert "On every group the regret of groupwise is below its certificate" in page
    assert "A look ahead: the range of the label" in page
    assert "sex, age cut at 30, 50, age &gt;= 60, city &amp; sex" in page
    assert finished.scan.source.sha256 in page
    for row in finished.table.rows:
        if row["group"] != "always_on":
            assert html.escape(row["group"]) in page


def test_all_groups_are_there_where_they_are_many_and_few_are_shown(finished, monkeypatch):
    assert "data-first" not in run_page(finished)
    monkeypatch.setattr(pages, "FEW", 3)
    page = run_page(finished)
    assert page.count('data-first="2"') == 1
    assert re.search(r"The first 2 of \d+ groups", page)
    table = page[page.index("data-sortable") : page.index("</table>")]
    for row in finished.table.rows:
        assert html.escape(title_of(row["group"])) in table  # all of them, shown or not


def test_a_certificate_that_does_not_hold_is_said(finished):
    for change, said in (
        ({"regret": 1e9}, "On 1 group the regret is above the certificate"),
        ({"regret": -1e3, "certificate": -1e3 - 1e-9}, "as it must be"),  # but for rounding
        ({"status": "void"}, "Certificates are void"),
    ):
        rows = [{**finished.table.rows[0], **change}, *finished.table.rows[1:]]
        assert said in run_page(replace(finished, table=RegretTable(rows)))


def test_how_many_certificates_say_little(finished):
    rows = finished.table.rows
    plain = [{**row, "status": "proved"} for row in rows]
    page = run_page(replace(finished, table=RegretTable(plain)))
    assert "below its certificate, as it must be." in page
    changes = ["loose", "loose", "vacuous"]
    some = [{**row, "status": word} for row, word in zip(rows, changes, strict=False)]
    page = run_page(replace(finished, table=RegretTable([*some, *plain[3:]])))
    assert f"as it must be; of {len(rows)} certificates 2 are loose and 1 is vacuous." in page


def test_certificates_that_doubles_cannot_tell_are_said_to_be_such(finished):
    rows = finished.table.rows
    word = "numerically uncertain"
    above = {"status": word, "regret": 1e9}
    some = [{**rows[0], **above}, *({**row, "status": "loose"} for row in rows[1:])]
    page = run_page(replace(finished, table=RegretTable(some)))
    assert "Where doubles can tell, the regret of groupwise is below its certificate; of" in page
    assert f"{len(rows)} certificates 1 is {word} and {len(rows) - 1} are loose." in page
    assert "as it must be" not in page


def test_warnings_have_a_section(finished):
    plain = run_page(replace(finished, plan=replace(finished.plan, warnings=())))
    assert "<dt>Warnings</dt>" not in plain
    page = run_page(replace(finished, plan=replace(finished.plan, warnings=("Mind <this>.",))))
    assert "Mind &lt;this&gt;." in page
