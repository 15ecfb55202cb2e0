"""Text from data is text in every output, whatever it looks like."""

import html
import json

import pytest

from groupwise.files.tables import title_of
from groupwise.report.tables import UNLIMITED
from tests.cli.commands import predictions_of, regret_of, succeed, write_rows
from tests.html import without_script

SCRIPT = "<script>alert(1)</script>"
LINES = 'he said "hi",\nand left'
VALUES = (SCRIPT, LINES, "[bold red]loud[/]", "$x^2$", "\x1b[31mred", "{{ 7 * 7 }}", "=1+1")
COLUMN = "=who<b>"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run on a file full of it, and what the run printed."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [(VALUES[i % 7], i % 53, i % 53 * (i % 7) + i % 5, i % 19) for i in range(280)]
    data = write_rows(folder / "data.csv", (COLUMN, "x", "y", SCRIPT), rows)
    result = succeed(
        *("run", data, "--target", "y", "--groups", f'"{COLUMN}"', "--drop", SCRIPT),
        *("--out", folder / "out"),
    )
    return data, folder / "out", result


def test_predictions(finished):
    _, out, _ = finished
    rows = predictions_of(out / "predictions.csv")
    assert len(rows) == 280
    # The apostrophe keeps spreadsheets from taking the cell for a formula.
    assert rows[0]["groups"] == f"'{COLUMN}={SCRIPT}; always_on"
    assert rows[1]["groups"] == f"'{COLUMN}={LINES}; always_on"


def test_regret_has_the_names_as_they_are(finished):
    _, out, _ = finished
    assert set(regret_of(out)) == {f"{COLUMN}={value}" for value in VALUES} | {"always_on"}


def test_report(finished):
    _, out, _ = finished
    page = (out / "report.html").read_text("utf-8")
    assert "<script" not in without_script(page)
    assert html.escape(f"{COLUMN}={SCRIPT}") in page
    assert "and left" in page
    assert "{{ 7 * 7 }}" in page
    assert "\x1b" not in page


def test_terminal(finished):
    *_, result = finished
    assert result.stdout.startswith("# Settings of this run, its features proposed; keep them in")
    for value in (SCRIPT, LINES):  # what is no terminal has room for the whole of long names
        assert title_of(f"{COLUMN}={value}", UNLIMITED) in result.stdout
    assert SCRIPT[:8] in result.stdout
    assert "[bold red]loud[/]" in result.stdout
    assert "\x1b" not in result.stdout
    assert "\nand left" not in result.stdout


def test_a_message_is_one_line_of_text(finished, tmp_path):
    from tests.cli.commands import refused

    data = write_rows(tmp_path / "data.csv", ("a\nb\x1b[31m", "y"), [(1, 2), (2, 3)])
    message = refused("run", data, "--target", "[bold]z[/]", "--out", tmp_path / "out")
    assert "'[bold]z[/]'" in message
    assert "\\x1b" in message


@pytest.mark.slow
def test_compare_and_the_other_commands(finished, tmp_path):
    data, out, _ = finished
    assert SCRIPT[:10] in succeed("regret", out / "model.gw").stdout
    assert json.loads(succeed("regret", out / "model.gw", "--json").stdout)["rows"]
    assert SCRIPT in succeed("predict", out / "model.gw", data).stdout
    compared = tmp_path / "compared"
    options = ("--prediction", SCRIPT, "--target", "y", "--out", compared)
    assert SCRIPT in succeed("compare", data, *options).stdout
    page = (compared / "report.html").read_text("utf-8")
    assert "<script" not in without_script(page)
    assert html.escape(SCRIPT) in page
    record = json.loads((compared / "compare.json").read_text("utf-8"))
    assert record["predictions"] == [SCRIPT]
