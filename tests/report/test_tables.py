"""Tables in a terminal, in LaTeX, as JSON and CSV; text from data is never taken for markup."""

import csv
import dataclasses
import io
import json
from typing import Any

import pytest

from groupwise.report.tables import (
    Cell,
    Column,
    Table,
    console,
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
    text = printed(table, 44)
    assert "Title [bold]: Ours" in text
    assert "Title [bold]: Theirs" in text
    assert text.count(HOSTILE[:12]) == 2
    assert text.count(HOSTILE) == 0
    assert text.count("14.00") == text.count("0.20") == 1


NAMES = ("health=excellent & limitation=no", "health=excellent & limitation=yes", "sex=f")


@pytest.fixture
def groups():
    figures = ("20,190", "4.294", "4.379", "−10,956", "−6,114", "1,233,540")
    return Table(
        "Groups",
        (
            Column("group", numeric=False),
            Column("rounds"),
            Column("groupwise", "error, visits"),
            Column("single", "error, visits"),
            Column("groupwise", "regret, visits²"),
            Column("certificate", "regret, visits²"),
            Column("a priori", "regret, visits²", spare=True),
            Column("status", numeric=False),
        ),
        tuple((Cell(name), *map(Cell, figures), Cell("proved")) for name in NAMES),
    )


@pytest.mark.parametrize("width", range(30, 140, 3))
def test_figures_are_never_cut(groups, width):
    text = printed(groups, width)
    assert max(map(len, text.splitlines())) <= width
    told = text.replace("\n", " ").split()
    for column, cell in zip(groups.columns[1:], groups.rows[0][1:], strict=True):
        assert column.title in told or column.spare
        assert cell.text in told or column.spare
    assert text.count("sex=f") == sum(line.startswith("─") for line in text.splitlines())


def test_names_are_shortened_first_and_columns_spared_next(groups):
    wide, shorter, spared, apart = (printed(groups, width) for width in (112, 100, 92, 70))
    assert NAMES[1] in wide
    assert "1,233,540" in wide
    assert "health=exc" in shorter
    assert NAMES[1] not in shorter
    assert "1,233,540" in shorter
    assert "1,233,540" not in spared
    assert "There is no room for a priori." in spared
    assert "Groups: error, visits" in apart
    assert "Groups: regret, visits²" in apart


def test_what_comes_after_all_headings_is_in_the_last_table(groups):
    text = printed(groups, 70)
    assert text.count("status") == 1
    assert text.index("status") > text.index("Groups: regret")


def test_columns_are_spared_one_by_one(groups):
    columns = list(groups.columns)
    columns[1] = columns[1]._replace(spare=True)
    table = dataclasses.replace(groups, columns=tuple(columns), note="A note.")
    assert "A note. There is no room for a priori." in printed(table, 92)
    assert "A note. There is no room for rounds and a priori." in printed(table, 82)


def test_names_that_would_look_alike_stay_whole(groups):
    names = [f"{'a' * 40}{i}{'b' * 40}" for i in range(3)]
    rows = tuple((Cell(name), *row[1:]) for name, row in zip(names, groups.rows, strict=True))
    text = printed(dataclasses.replace(groups, rows=rows), 80)
    assert all(name in text for name in names)


def test_a_heading_over_several_columns_is_one_text(groups):
    line, below = printed(groups, 120).splitlines()[2:4]
    assert " error, visits ─" in line
    assert " regret, visits² ─" in line
    start = below.index("groupwise")
    assert start <= line.index("─") < line.index("error, visits") < below.index("single") + 6
    assert len(line) == below.index("a priori") + len("a priori")


def test_what_is_no_terminal_is_as_wide_as_the_table(groups, monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "40")
    show(console(), groups)
    text = capsys.readouterr().out
    assert all(name in text for name in NAMES)
    assert text.count("sex=f") == 1
    assert "1,233,540" in text


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
