"""Which groups a row is in: missing values, and values that are refused."""

from typing import Any

import numpy as np
import pandas
import polars
import pytest

from groupwise.errors import GroupError
from groupwise.groups import Group, Groups, by, cut, weight, where

NAN = float("nan")


def awake(declaration: Group, **row: Any) -> dict[str, float]:
    names, weights = Groups([declaration], always_on=False).of_row(row)
    return dict(zip(names, weights, strict=True))


@pytest.mark.parametrize(
    "missing",
    [None, NAN, np.nan, np.float32("nan"), pandas.NA, pandas.NaT, np.datetime64("NaT")],
)
def test_missing_is_in_no_group_nor_negation_nor_intersection(missing: Any) -> None:
    x = where("x", ">", 1)
    known = where("k", "==", 1)
    assert awake(by("x"), x=missing) == {}
    assert awake(cut("x", [1]), x=missing) == {}
    assert awake(weight("x"), x=missing) == {}
    for operator in ("==", "!=", "not in"):
        value = [1] if operator == "not in" else 1
        assert awake(where("x", operator, value), x=missing) == {}
    assert awake(~x, x=missing) == {}
    assert awake(x & known, x=missing, k=1) == {}
    assert awake(~(x & known), x=missing, k=0) == {}
    assert awake(~(x | known), x=missing, k=0) == {}
    assert awake(x | known, x=missing, k=1) == {"x > 1 | k=1": 1.0}
    assert awake(x | known, x=missing, k=0) == {}


@pytest.mark.parametrize(
    ("declaration", "value", "message"),
    [
        (by("x"), [1], "'x' holds \\[1\\] of type list"),
        (by("x"), b"1", "'x' holds b'1'"),
        (by("x"), {"a": 1}, "'x' holds"),
        (cut("x", [1]), "tall", "'x' holds 'tall'"),
        (cut("x", [1]), True, "'x' holds True"),
        (where("x", "<", 1), "tall", "'x' holds 'tall'"),
        (where("x", "<", 1), False, "'x' holds False"),
        (weight("x"), 1.5, "'x' holds 1.5"),
        (weight("x"), -0.1, r"\[0, 1\]"),
        (weight("x"), "0.5", "'x' holds '0.5'"),
        (weight("x"), float("inf"), "'x' holds inf"),
    ],
)
def test_bad_values_are_named(declaration: Group, value: Any, message: str) -> None:
    groups = Groups([declaration], always_on=True)
    with pytest.raises(GroupError, match=message):
        groups.of_row({"x": value})
    good: Any = "1" if declaration == by("x") else 1
    frame = pandas.DataFrame({"x": pandas.Series([None, good, value, value], dtype=object)})
    with pytest.raises(GroupError, match=f"row 2: .*{message}"):
        groups.of_frame(frame)
    if isinstance(value, (float, bool, str)):
        with pytest.raises(GroupError, match=f"row 1: .*{message}"):
            groups.of_frame(polars.DataFrame({"x": [None, value]}))


def test_absent_columns_and_rows_that_are_none() -> None:
    for declaration in (by("x"), cut("x", [1]), where("x", "<", 1), weight("x"), ~weight("x")):
        groups = Groups([declaration], always_on=True)
        with pytest.raises(GroupError, match=r"no field 'x'.*None where"):
            groups.of_row({"y": 1})
        with pytest.raises(GroupError, match="a mapping from field to value, not list"):
            groups.of_row([1])  # type: ignore[arg-type]
        with pytest.raises(GroupError, match="no column 'x'"):
            groups.of_frame(polars.DataFrame({"y": [1]}))
    with pytest.raises(GroupError, match="cannot be read as a frame"):
        groups.of_frame([1, 2])
    with pytest.raises(GroupError, match="cannot be read as a frame"):
        groups.of_frame(polars.LazyFrame({"x": [1.0]}))
