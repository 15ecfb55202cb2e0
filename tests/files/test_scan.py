"""What a first pass finds in the columns of a file."""

from functools import partial

import pytest

from groupwise.errors import DataError
from groupwise.files import scan as scanning
from groupwise.files.scan import scan
from groupwise.files.source import opened
from tests.cli.commands import write_rows


def profiles(path):
    with opened(str(path)) as source:
        return scan(source, None).columns


def test_what_columns_hold(tmp_path):
    rows = [
        (" 1 ", "1", "9007199254740993", "true", "", "1"),
        ("2.5", "x", "9007199254740995", "false", "a", "NA"),
        ("-3e2", "2", "9007199254740997", "true", "a", "2"),
    ]
    data = write_rows(tmp_path / "d.csv", ("number", "mixed", "id", "flag", "text", "gap"), rows)
    found = profiles(data)
    kinds = {name: profile.kind for name, profile in found.items()}
    assert kinds == {
        "number": "number",
        "mixed": "text",
        "id": "text",  # as numbers two of them would be the same
        "flag": "text",
        "text": "text",
        "gap": "number",
    }
    assert (found["number"].low, found["number"].high) == (-300.0, 2.5)
    assert not found["number"].whole
    assert (found["text"].missing, found["text"].first_missing) == (1, 1)
    assert (found["gap"].missing, found["gap"].first_missing, found["gap"].distinct) == (1, 2, 2)
    assert (found["mixed"].text_row, found["mixed"].text) == (2, "x")


def test_what_is_found_does_not_depend_on_the_chunks(tmp_path, monkeypatch):
    rows = [(i % 7 - 3, "xyz"[i % 3], "" if i % 5 == 4 else i / 3, i) for i in range(200)]
    data = write_rows(tmp_path / "d.csv", ("a", "b", "c", "y"), rows)
    with opened(str(data)) as source:
        whole = scan(source, "y", ("b",))
        monkeypatch.setattr("groupwise.files.delimited.BLOCK", 97)
        pieces = scan(source, "y", ("b",))
    for name, profile in whole.columns.items():
        other = pieces.columns[name]
        assert abs(profile.correlation - other.correlation) < 1e-12
        profile.sums = other.sums = None
        assert profile == other
    assert whole.kinds == {"a": "number", "b": "text", "c": "number", "y": "number"}
    assert whole.keys["b"].to_pylist() == pieces.keys["b"].to_pylist() == [row[1] for row in rows]
    assert (whole.columns["c"].missing, whole.columns["c"].first_missing) == (40, 5)


def test_the_values_of_the_label_are_counted(tmp_path, monkeypatch):
    rows = [("ab"[i % 3 == 2], i) for i in range(30)] + [("", 30), ("c", 31)]
    data = write_rows(tmp_path / "d.csv", ("y", "x"), rows)
    for block in (1 << 20, 23):
        monkeypatch.setattr("groupwise.files.delimited.BLOCK", block)
        with opened(str(data)) as source:
            found = scan(source, "y").columns
            assert found["y"].seen == {"a": (20, 1), "b": (10, 3), "c": (1, 32)}
            assert (scan(source, "x").columns["x"].seen or {})["7"] == (1, 8)
            monkeypatch.setattr(scanning, "MOST", 2)
            assert scan(source, "y").columns["y"].seen is None
            monkeypatch.setattr(scanning, "MOST", 1_000)


def test_correlation_with_the_label(tmp_path):
    import numpy as np

    generator = np.random.default_rng(0)
    x = generator.normal(size=100)
    y = x + generator.normal(size=100)
    data = write_rows(tmp_path / "d.csv", ("x", "y"), zip(x, y, strict=True))
    with opened(str(data)) as source:
        found = scan(source, "y").columns
        assert scan(source, None).columns["x"].correlation == 0.0
    assert found["x"].correlation == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-12)


def test_distinct_values_are_counted_up_to_a_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(scanning, "COUNTED", 5)
    monkeypatch.setattr("groupwise.files.profile.COUNTED", 5)
    data = write_rows(tmp_path / "d.csv", ("a", "b"), [(i % 5, i) for i in range(50)])
    found = profiles(data)
    assert (found["a"].distinct, found["b"].distinct, found["b"].values) == (5, 6, None)


def test_text_is_found_behind_words_for_missing_numbers(tmp_path):
    data = write_rows(tmp_path / "d.csv", ("a", "b"), [("NA", 1), (2, 2), ("two", 3)])
    assert (profiles(data)["a"].text_row, profiles(data)["a"].text) == (3, "two")


def test_columns_that_are_not_there(tmp_path):
    data = write_rows(tmp_path / "d.csv", ("age", "pay"), [(1, 2)])
    with opened(str(data)) as source:
        with pytest.raises(DataError, match=r"no column 'pai' for the label. Did you mean 'pay'"):
            scan(source, "pai")
        with pytest.raises(DataError, match=r"no column 'time' to sort by"):
            scan(source, "pay", ("time",))
        with pytest.raises(DataError, match=r"no column 'x' for a test. It has: 'age', 'pay'"):
            scan(source, None).column("x", "for a test")


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (["1", "x"], "The label column 'a' holds 'x' in row 2, which is no number."),
        (["1", ""], "Column 'a' has a missing value, in row 2. Drop it."),
        (["", "1", ""], "Column 'a' has 2 missing values, the first in row 1. Drop it."),
        (["1", "-inf"], "Column 'a' holds an infinite number in row 2."),
    ],
)
def test_numbers_are_required(cells, message, tmp_path):
    data = write_rows(tmp_path / "d.csv", ("a", "b"), [(cell, 1) for cell in cells])
    profile = profiles(data)["a"]
    if profile.kind == "text" or profile.infinite:
        check = partial(profile.check_numbers, "label")
    else:
        profile.check_numbers("label")
        check = partial(profile.check_complete, "Drop it.")
    with pytest.raises(DataError) as caught:
        check()
    assert str(caught.value) == message
