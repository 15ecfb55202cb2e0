"""Predictions as CSV that any reader takes, spreadsheets included."""

import csv
import io

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from groupwise.files.predictions import guarded, joined, prediction_file
from groupwise.groups import Groups, by


def read(stream):
    return list(csv.reader(io.StringIO(stream.getvalue().decode())))


def test_columns_with_and_without_labels():
    stream = io.BytesIO()
    with prediction_file(stream, ["prediction"], "number") as write:
        rows = np.array([[0.1], [1 / 3]])
        write(np.array([1, 2]), rows, np.array([1.0, 2.0]), ["a", 'b; "c"'])
        write(np.array([3]), np.array([[2.0]]), np.array([3.0]), ["d,e"])
    header, *rows = read(stream)
    assert header == ["row", "prediction", "label", "groups"]
    assert [(int(r), float(p), float(y), g) for r, p, y, g in rows] == [
        (1, 0.1, 1.0, "a"),
        (2, 1 / 3, 2.0, 'b; "c"'),
        (3, 2.0, 3.0, "d,e"),
    ]
    stream = io.BytesIO()
    with prediction_file(stream, ["prediction"]) as write:
        write(np.array([1]), np.array([[0.5]]), ["a"])
    assert read(stream) == [["row", "prediction", "groups"], ["1", "0.5", "a"]]


def test_a_column_for_each_class_and_labels_that_are_text():
    stream = io.BytesIO()
    with prediction_file(stream, ["p:a,b", 'p:"c"'], "text") as write:
        labels = pa.chunked_array([["a,b", "=1"]])
        write(np.array([1, 2]), np.array([[0.25, 0.75], [0.5, 0.5]]), labels, ["g", "h"])
    assert read(stream) == [
        ["row", "p:a,b", 'p:"c"', "label", "groups"],
        ["1", "0.25", "0.75", "a,b", "g"],
        ["2", "0.5", "0.5", "'=1", "h"],
    ]


def test_nothing_begins_as_a_formula_does():
    frame = pl.DataFrame({"=k": ["x", "y", None], "-j": ["1", None, None]})
    groups = Groups([by("=k"), by("-j")], always_on=True)
    found = joined(groups.of_frame(frame)).to_pylist()
    assert found == ["'=k=x; -j=1; always_on", "'=k=y; always_on", "always_on"]
    assert [guarded("; ".join(groups.of_row(row)[0])) for row in frame.to_dicts()] == found
    for text in ("=1", "+1", "-1", "@a", "\tx", "\rx"):
        assert guarded(text) == f"'{text}"
    assert guarded("a=1") == "a=1"


def test_what_fails_before_its_first_rows_leaves_nothing():
    """On standard output a heading would look like a result."""
    file = io.BytesIO()
    with pytest.raises(ValueError, match="no row"), prediction_file(file, ["prediction"]):
        raise ValueError("no row")
    assert file.getvalue() == b""
    with prediction_file(file, ["prediction"]):
        pass
    assert file.getvalue().decode().splitlines() == ["row,prediction,groups"]
