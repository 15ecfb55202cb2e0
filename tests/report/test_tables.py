"""Tables in a terminal, in LaTeX, as JSON and CSV; text from data is never taken for markup."""

import csv
import io
import json
from typing import Any

import pytest

from groupwise.report.tables import (
    Cell,
    Column,
    Table,
    csv_text,
    escape,
    json_text,
    latex,
    number,
    show,
)

HOSTILE = "[red]a&b_c[/red] <i>50%</i> $x$ {y}"


@pytest.fixture
def table():
    return Table(
        "Title [bold]",
        (
            Column("Group", numeric=False),
            Column("mean", "Ours"),
            Column("spread", "Ours"),
            Column("mean", "Theirs"),
        ),
        (
            (Cell(HOSTILE), Cell("1.00"), Cell("0.10"), Cell("2.00", "bad")),
            (Cell("b"), Cell("−3.00"), Cell("0.20"), Cell("14.00", "faint")),
        ),
        "A note.",
    )


def printed(table, width):
    from rich.console import Console

    text = io.StringIO()
    show(Console(file=text, width=width), table)
    return text.getvalue()


def test_a_terminal_shows_text_as_it_is_and_aligns_figures(table):
    text = printed(table, 100)
    assert "Title [bold]" in text
    assert HOSTILE in text
    lines = [line for line in text.splitlines() if "0.10" in line or "0.20" in line]
    assert lines[0].index("0.10") == lines[1].index("0.20")
    assert lines[0].index("2.00") == lines[1].index("14.00") + 1  # right-aligned
    assert text.index("Ours") < text.index("Theirs") < text.index("spread")


def test_a_narrow_terminal_gets_a_table_for_each_heading(table):
    text = printed(table, 58)
    assert "Title [bold]: Ours" in text
    assert "Title [bold]: Theirs" in text
    assert text.count(HOSTILE) == 2
    assert "…" not in text


def test_spans(table):
    assert table.spans == [("", 1), ("Ours", 2), ("Theirs", 1)]
    assert [column.span for column in table.without("Ours").columns] == ["", "Theirs"]
    assert [cell.text for cell in table.without("Ours").rows[1]] == ["b", "14.00"]


def test_latex(table):
    text = latex(table)
    assert r"[red]a\&b\_c[/red] \textless{}i\textgreater{}50\%" in text
    assert r"\$x\$ \{y\} & 1.00 & 0.10 & 2.00 \\" in text
    assert r" & \multicolumn{2}{c}{Ours} & Theirs \\" in text
    assert r"b & $-$3.00 & 0.20 & 14.00 \\" in text
    assert text.count(r"\begin") == text.count(r"\end") == 2
    assert escape("\\^~") == r"\textbackslash{}\textasciicircum{}\textasciitilde{}"


def test_figures_as_text():
    assert number(-0.004) == "0.00"
    assert number(-0.006) == "−0.01"
    assert number(0.0004, 3, signed=True) == "0.000"
    assert number(1234.5) == "1234.50"


def test_records():
    records: list[dict[str, Any]] = [
        {"group": 'a "b", c', "regret": [1.5, 0.25], "exact": {"best": 2.0}, "published": None},
        {"group": "d", "regret": (1.0, 0.0), "exact": {"best": 3.0}, "published": {"best": 4.0}},
    ]
    assert json.loads(json_text({"rows": records, "nan": float("nan")})) == {
        "rows": [records[0], {**records[1], "regret": [1.0, 0.0]}],
        "nan": None,
    }
    read = list(csv.DictReader(io.StringIO(csv_text(records))))
    assert read[0]["group"] == 'a "b", c'
    assert [row["regret_mean"] for row in read] == ["1.5", "1.0"]
    assert [row["regret_std"] for row in read] == ["0.25", "0.0"]
    assert [row["exact_best"] for row in read] == ["2.0", "3.0"]
    assert [row["published_best"] for row in read] == ["", "4.0"]
