"""The order of the rows: by several columns, by dates however written, and what has no place."""

import random

import pytest

from groupwise.errors import DataError
from groupwise.files.ordering import check_order, misplaced, order_warnings, places
from groupwise.files.plan import planned
from groupwise.files.scan import scan
from groupwise.files.source import opened
from tests.cli.commands import predictions_of, refused, succeed, write_rows


def sorted_rows(tmp_path, header, rows, *order):
    """The rows, from 0, in the order that they get."""
    with opened(str(write_rows(tmp_path / "d.csv", header, rows))) as source:
        found = scan(source, None, order)
        check_order(found, order, skip=False)
        ranks = places(found, order)
    return [*range(len(rows))] if ranks is None else sorted(range(len(rows)), key=ranks.__getitem__)


def test_ties_are_sorted_by_the_next_column(tmp_path):
    draw = random.Random(3)
    rows = [(draw.choice("cab"), draw.randint(8, 11), draw.choice("xy")) for _ in range(60)]
    header = "letter", "number", "last"
    for order in (("letter", "number"), ("number", "letter"), ("number",), (*header,)):
        own = [header.index(name) for name in order]
        expected = sorted(range(60), key=lambda i: [rows[i][at] for at in own])
        assert sorted_rows(tmp_path, header, rows, *order) == expected


@pytest.mark.parametrize(
    "texts",
    [
        ["01-Feb-24", "02-Jan-24", "15-Jan-24"],
        ["Feb 1, 2024", "Jan 2, 2024", "Jan 15, 2024"],
        ["1 February 2024", "2 January 2024", "15 January 2024"],
        ["1/15/2024 2:00 PM", "1/15/2024 9:00 AM", "1/15/2024 11:00 AM"],
        ["True", "false", "FALSE"],
    ],
)
def test_dates_and_truths_are_in_their_own_order(texts, tmp_path):
    """The first is the last of them, which the alphabet does not know."""
    assert sorted_rows(tmp_path, ("k", "x"), [(one, 1) for one in texts], "k") == [1, 2, 0]


def test_a_month_of_may_alone_is_a_date(tmp_path):
    rows = [(f"{day} May 2024", day) for day in (12, 3, 25)]
    with opened(str(write_rows(tmp_path / "d.csv", ("k", "x"), rows))) as source:
        assert scan(source, None).columns["k"].date is not None


def test_dates_that_can_be_read_two_ways_are_no_order(tmp_path):
    rows = [(f"0{i % 3 + 1}/0{i % 5 + 1}/2024", i) for i in range(9)]
    with pytest.raises(DataError, match=r"read in two ways, such as '01/01/2024'"):
        sorted_rows(tmp_path, ("k", "x"), rows, "k")


def test_one_slip_among_dates_is_named(tmp_path):
    rows = [(f"{i % 28 + 1}.01.2024", i) for i in range(20)]
    rows[7] = ("soon", 7)
    with pytest.raises(DataError, match=r"Row 8 of .*'soon' stands in 'k', which holds dates"):
        sorted_rows(tmp_path, ("k", "x"), rows, "k")
    with opened(str(tmp_path / "d.csv")) as source:
        found = scan(source, None, ("k",))
        assert [row for row, _ in misplaced(found, ("k",))] == [7]
        assert places(found, ("k",)).tolist() == [*range(7), 19, *range(7, 19)]


def test_what_an_order_says_little_of_is_pointed_out(tmp_path):
    rows = [(f"b{i}", i * 7 % 5) for i in range(9)]
    with opened(str(write_rows(tmp_path / "d.csv", ("k", "y"), rows))) as source:
        found = scan(source, "y", ("k", "y"))
        by_text, by_label = order_warnings(found, ("k", "y"), "y")
        assert "sorted by 'k' as text" in by_text
        assert "sorted by the label 'y' itself" in by_label
        assert order_warnings(found, (), "y") == []


def test_a_constant_to_sort_by_is_no_feature(tmp_path):
    data = write_rows(tmp_path / "d.csv", ("k", "x", "y"), [(3, i % 7, i % 5) for i in range(60)])
    with planned(str(data), target="y", order=("k",)) as (_, plan):
        assert "k" not in plan.features


def test_text_to_sort_by_first_tells_streams_apart(tmp_path):
    """A row's past is that of its own shop, also where the rows of a shop come together."""
    rows = [(shop, f"2024-01-{day:02}", day % 7) for shop in "abc" for day in range(1, 31)]
    data = write_rows(tmp_path / "d.csv", ("shop", "day", "y"), rows)
    with planned(str(data), target="y", order=("shop", "day")) as (_, plan):
        assert {one.of for one in plan.past} == {("shop",)}
        assert plan.toml().count('order = ["shop", "day"]') == 1


def test_rows_without_a_time_are_skipped_on_request(tmp_path, monkeypatch):
    monkeypatch.setattr("groupwise.files.run.run_page", lambda finished: "<p>")
    rows = [("" if i == 4 else 40 - i, i % 3, i % 5) for i in range(40)]
    data = write_rows(tmp_path / "d.csv", ("k", "x", "y"), rows)
    run = "run", data, "--target", "y", "--order", "k", "--order", "x", "--out", tmp_path / "out"
    assert "'k' has a missing value, in row 5" in refused(*run)
    assert "--skip-bad leaves such rows out" in refused(*run)
    assert "Row 5 of" in succeed(*run, "--skip-bad").stderr
    numbers = [int(row["row"]) for row in predictions_of(tmp_path / "out" / "predictions.csv")]
    assert numbers == [n for n in range(40, 0, -1) if n != 5]
