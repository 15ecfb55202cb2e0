"""Predictions of other models that come with the rows: how they are read."""

from decimal import Decimal

import numpy as np
import pandas
import polars
import pyarrow
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, FeatureError
from groupwise.features.experts import Experts
from groupwise.groups import Table

PAY = gw.losses.Square(-5.0, 15.0)
VALUES = [3, -5.0, 15.0, 99.0, -1e300, 0.1 + 0.2, -0.0, 2**60]
WANTED = [0.4, 0.0, 1.0, 1.0, 0.0, (0.1 + 0.2 + 5) / 20, 0.25, 1.0]


def test_numbers_are_clipped_and_scaled():
    experts = Experts(["theirs"], PAY, clip=True)
    found = [experts.of_row({"theirs": value})[0] for value in VALUES]
    assert found == WANTED
    assert experts.of_row({"theirs": Decimal("2.5"), "u": 1}).tolist() == [0.375]
    assert experts.of_row({"theirs": np.int64(5)}).tolist() == [0.5]
    both = Experts(["b", "a"], PAY, clip=True)
    assert both.of_row({"a": 5, "b": 15.0}).tolist() == [1.0, 0.5]


def test_they_are_left_as_they_are_where_nothing_is_clipped_or_no_range_is_known():
    assert Experts(["theirs"], PAY, clip=False).of_row({"theirs": 35}).tolist() == [2.0]
    unbounded = Experts(["theirs"], gw.losses.Unbounded(), clip=True)
    assert unbounded.of_row({"theirs": -1234.5}).tolist() == [-1234.5]


def test_probabilities():
    experts = Experts(["p"], gw.losses.Log(), clip=True)
    for value, wanted in [(0.25, 0.25), (True, 1.0), (np.False_, 0.0), (1.5, 1.0)]:
        assert experts.of_row({"p": value}).tolist() == [wanted]


@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_a_frame_is_its_rows_bit_for_bit(make, clip):
    generator = np.random.default_rng(0)
    columns = {
        "a": [*map(float, VALUES), *generator.normal(5, 9, 92).tolist()],
        "b": generator.integers(-9, 20, 100).tolist(),
    }
    experts = Experts(["b", "a"], PAY, clip)
    found = experts.of_frame(Table(make(columns)))
    rows = [{name: column[t] for name, column in columns.items()} for t in range(100)]
    wanted = np.array([experts.of_row(row) for row in rows])
    assert found.tobytes() == wanted.tobytes()
    arrays = {name: np.array(column) for name, column in columns.items()}
    assert experts.of_arrays(arrays, 100).tobytes() == wanted.tobytes()


def test_columns_of_objects_and_of_truths():
    mixed = pandas.DataFrame({"p": pandas.Series([1, Decimal("2.5"), 3.0], dtype=object)})
    found = Experts(["p"], PAY, clip=True).of_frame(Table(mixed))
    assert found.tolist() == [[0.3], [0.375], [0.4]]
    truths = polars.DataFrame({"p": [True, False]})
    assert Experts(["p"], gw.losses.Log(), True).of_frame(Table(truths)).tolist() == [[1.0], [0.0]]


BAD = [None, float("nan"), float("inf"), -float("inf"), "7", True, 10**400, [1.0]]


@pytest.mark.parametrize("value", BAD, ids=repr)
def test_what_is_no_finite_number_is_refused(value):
    experts = Experts(["theirs"], PAY, clip=True)
    with pytest.raises(FeatureError, match=r"'theirs' is .*finite number.*Leave out the rows"):
        experts.of_row({"theirs": value})


@pytest.mark.parametrize(
    "column",
    [
        [1.0, 2.0, None],
        [1.0, 2.0, float("nan")],
        [1.0, 2.0, float("inf")],
        [1, 2, None],
        [None, None, None],
        ["1", "2", "3"],
        [True, False, True],
    ],
    ids=repr,
)
@pytest.mark.parametrize("make", [pandas.DataFrame, polars.DataFrame, pyarrow.table])
def test_the_row_of_a_frame_is_named(make, column):
    experts = Experts(["fine", "theirs"], PAY, clip=True)
    table = Table(make({"theirs": column, "fine": [1.0, 2.0, 3.0]}))
    with pytest.raises(FeatureError, match="'theirs' is") as caught:
        experts.of_frame(table)
    assert caught.value.row == (2 if isinstance(column[0], (int, float)) and column[0] == 1 and
                                not isinstance(column[0], bool) else 0)  # fmt: skip


def test_a_column_that_is_not_there():
    experts = Experts(["theirs"], PAY, clip=True)
    with pytest.raises(FeatureError, match="row has no field 'theirs', which holds an expert's"):
        experts.of_row({"u": 1.0})
    with pytest.raises(FeatureError, match="no column 'theirs', which holds an expert's"):
        experts.of_frame(Table(polars.DataFrame({"u": [1.0]})))


@pytest.mark.parametrize("given", [np.ones(3), np.ones((4, 1)), ["1", "2", "3", "4"]])
def test_arrays_have_a_prediction_for_every_row(given):
    experts = Experts(["theirs"], PAY, clip=True)
    with pytest.raises(FeatureError, match="Expert 'theirs' must have 4 predictions"):
        experts.of_arrays({"theirs": given}, 4)
    with pytest.raises(FeatureError, match="row 2: Field 'theirs' is nan"):
        experts.of_arrays({"theirs": [1.0, 2.0, np.nan, 4.0]}, 4)


@pytest.mark.parametrize("experts", ["theirs", ["a", "a"], [1], {"a": 1}, ("a", None)], ids=repr)
def test_experts_are_a_list_of_columns(experts):
    with pytest.raises(ConfigurationError, match="give a list of different columns"):
        gw.Groupwise([gw.by("g")], experts=experts)


def test_where_experts_do_not_fit():
    several = gw.losses.Log(classes=["a", "b", "c"])
    with pytest.raises(ConfigurationError, match="one column, and there are 3 classes"):
        gw.Groupwise([gw.by("g")], loss=several, experts=["p"])
    ftpl = gw.learners.FTPL(gw.oracles.Finite(np.eye(2)), cost_norm=2.0)
    with pytest.raises(ConfigurationError, match=r"numbers or probabilities.*losses\.Square"):
        gw.Groupwise([gw.by("g")], ftpl, loss=gw.losses.Linear(0, 2), experts=["p"])
    assert gw.Groupwise([gw.by("g")], experts=[]).experts == ()
