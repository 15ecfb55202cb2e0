"""Rows of a file in pieces, in file order or sorted, each with its number."""

from typing import Any

import pytest

from groupwise.errors import DataError, FeatureError, LabelError
from groupwise.files import rows as rows_of_files
from groupwise.files.aside import Aside
from groupwise.files.ordering import check_order
from groupwise.files.profile import Kind
from groupwise.files.rows import in_file, in_file_order, in_pieces, pieces
from groupwise.files.scan import scan
from groupwise.files.source import opened
from tests.cli.commands import people, succeed, write_rows

HEADER = ("sex", "city", "age", "pay")


def test_pieces_hold_all_rows_in_order():
    import pyarrow as pa

    parts = ((0, 3), (3, 3), (3, 20), (20, 21))
    tables = [(pa.table({"x": pa.array(range(a, b), pa.int64())}), b) for a, b in parts]
    found = list(in_pieces(iter(tables), 5))
    assert [position for _, position in found] == [20, 20, 20, 20, 21]
    pieces = [piece.column("x").to_pylist() for piece, _ in found]
    assert [len(piece) for piece in pieces] == [5, 5, 5, 5, 1]
    assert [x for piece in pieces for x in piece] == list(range(21))


@pytest.fixture
def found(tmp_path):
    """A scan of a small file, sorted by its numbers."""
    rows: list[Any] = [(key, i, i % 2) for i, key in enumerate(["b10", "a9", "b9", "a10", "NA"])]
    rows[4] = ("c", 4, "NA")
    with opened(str(write_rows(tmp_path / "d.csv", ("k", "i", "x"), rows))) as source:
        yield scan(source, None, ("k",))


def test_numbers_count_the_rows_of_the_file(found):
    kinds: dict[str, Kind] = {"i": "text", "x": "number"}
    got = list(pieces(found, kinds, (), 2))
    assert [piece.numbers.tolist() for piece in got] == [[1, 2], [3, 4], [5]]
    assert [row for piece in got for row in piece.frame.to_pylist()] == [
        {"i": str(i), "x": x} for i, x in enumerate([0.0, 1.0, 0.0, 1.0, None])
    ]
    got = list(pieces(found, kinds, ("k",), 2))
    assert [n for piece in got for n in piece.numbers.tolist()] == [4, 2, 1, 3, 5]  # as text
    assert [i for piece in got for i in piece.frame.column("i").to_pylist()] == list("31024")


def test_text_among_numbers_is_refused_with_its_row(found):
    with pytest.raises(DataError, match=r"Row 1 of .*: 'b10' stands in the column 'k'"):
        list(pieces(found, {"k": "number"}, (), 2))
    with pytest.raises(DataError, match=r"no column 'z' that the model reads"):
        list(in_file_order(found.source, {"i": "number", "z": "number"}, 2))
    with pytest.raises(DataError, match=r"no column 'y' for the label"):
        list(in_file_order(found.source, {"y": "number"}, 2, "y"))


def test_rows_are_not_sorted_by_a_column_with_gaps(tmp_path):
    data = write_rows(tmp_path / "d.csv", ("k", "x"), [(1, 1), ("", 2), (0, 3)])
    with opened(str(data)) as source:
        found = scan(source, None, ("k",))
        with pytest.raises(DataError, match=r"missing value, in row 2. Rows are to be sorted"):
            check_order(found, ("k",), skip=False)
        check_order(found, ("k",), skip=True)
        aside = Aside(source, True)
        got = list(pieces(found, {"x": "number"}, ("k",), 2, aside))
    assert [n for piece in got for n in piece.numbers.tolist()] == [3, 1]
    assert aside.bad == {2: "'k' is missing, and rows are sorted by it."}


@pytest.mark.parametrize(
    ("error", "numbers", "message"),
    [
        (
            LabelError("It is bad.", row=1),
            [7, 9],
            "Row 9 of d.csv: It is bad. --skip-bad leaves such rows out.",
        ),
        (FeatureError("It is bad."), [7, 9], "d.csv: It is bad."),
        (
            FeatureError("It is bad."),
            [7],
            "Row 7 of d.csv: It is bad. --skip-bad leaves such rows out.",
        ),
    ],
)
def test_errors_name_the_row_of_the_file(error, numbers, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_rows(tmp_path / "d.csv", ("k", "x"), [(1, 1)])
    with opened("d.csv") as source, pytest.raises(DataError) as caught, in_file(source, numbers):
        raise error
    assert str(caught.value) == message


@pytest.mark.slow
@pytest.mark.usefixtures("two_panels")
def test_a_sort_in_many_stretches(tmp_path, monkeypatch):
    monkeypatch.setattr(rows_of_files, "STRETCH", 20)
    rows = people(250)
    data = write_rows(tmp_path / "people.csv", HEADER, rows)
    for order, column in (("city", 1), ("pay", 3)):
        out = tmp_path / order
        succeed("run", data, "--target", "pay", "--order", order, "--out", out)
        lines = (out / "predictions.csv").read_text().splitlines()[1:]
        keys = [row[column] for row in rows]
        places = sorted(range(250), key=keys.__getitem__)
        assert [int(line.split(",")[0]) - 1 for line in lines] == places
