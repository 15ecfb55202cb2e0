"""Features: one-hot, scaling, missing fields, indicators, purity, and rows against frames."""

from __future__ import annotations

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwise.errors import FeatureError
from groupwise.features import EncodedFrame, Encoder, Feature
from groupwise.groups import Groups, Table, by, cut, pairs, weight, where
from groupwise.protocols import Row

NAN = float("nan")
NOBODY = Groups([], always_on=True)


def take(encoder: Encoder, row: Any) -> dict[str, float]:
    """Encode and admit a row; give its numbers by the name of the feature."""
    encoded = encoder.encode(row, encoder.groups.of_row(row)[0])
    encoder.admit(encoded)
    assert (np.diff(encoded.indices) > 0).all()
    assert encoded.indices.dtype == np.int64
    assert encoded.values.dtype == np.float64
    pairs_of = zip(encoded.indices.tolist(), encoded.values.tolist(), strict=True)
    return {encoder.names[index]: value for index, value in pairs_of}


# Every field is a feature.


def test_numbers_as_they_are_and_text_one_hot() -> None:
    encoder = Encoder(None, False, NOBODY)
    row = {"age": 41, "sex": "male", "flag": True, "d": Decimal("0.5"), "n": np.int32(7), "z": 0}
    expected = {"age": 41.0, "sex=male": 1.0, "flag": 1.0, "d": 0.5, "n": 7.0}
    assert take(encoder, row) == expected
    assert encoder.names == ["age", "sex=male", "flag", "d", "n", "z"]
    assert take(encoder, row) == expected
    assert take(encoder, {"sex": "female", "age": 2.5, "z": np.float32(1)}) == {
        "sex=female": 1.0,
        "age": 2.5,
        "z": 1.0,
    }
    assert take(encoder, {"new": 3, "age": 0}) == {"new": 3.0}
    assert encoder.names[-2:] == ["sex=female", "new"]


def test_indices_ascend_whatever_the_order_of_the_fields() -> None:
    encoder = Encoder(None, False, NOBODY)
    take(encoder, {"a": 1.0, "b": 2.0, "c": "x"})
    for _ in range(3):
        encoded = encoder.encode({"c": "x", "b": 5.0, "a": 7.0}, [])
        assert encoded.indices.tolist() == [0, 1, 2]
        assert encoded.values.tolist() == [7.0, 5.0, 1.0]
        encoded = encoder.encode({"b": 5.0, "a": 0.0, "c": "x"}, [])
        assert without_zeros(encoded).indices.tolist() == [1, 2]


def test_absent_text_and_first_time_none() -> None:
    encoder = Encoder(None, False, NOBODY)
    assert take(encoder, {"sex": None, "age": 1}) == {"age": 1.0}
    assert encoder.names == ["age"]
    take(encoder, {"sex": "male"})
    for missing in (None, NAN, np.float64("nan"), pandas.NA, pandas.NaT):
        assert take(encoder, {"sex": missing, "age": 1}) == {"age": 1.0}


def test_weight_columns_are_no_features_unless_named() -> None:
    groups = Groups([weight("w")], always_on=False)
    assert take(Encoder(None, False, groups), {"w": 0.5, "a": 2}) == {"a": 2.0}
    assert take(Encoder(["w"], False, groups), {"w": 0.5, "a": 2}) == {"w": 0.5}


@pytest.mark.parametrize(
    ("before", "row", "message"),
    [
        ({"a": 1}, {"a": None}, "'a' is None.*Fill it in"),
        ({"a": 1}, {"a": NAN}, "'a' is nan.*Fill it in"),
        ({"a": 1}, {"a": float("inf")}, "'a' is inf"),
        ({"a": 1}, {"a": pandas.NA}, "'a' is <NA>"),
        ({"a": 1}, {"a": 10**400}, "'a' is 1000"),
        ({"b": 1}, {"a": NAN}, "'a' is nan"),
        ({"a": 1}, {"a": "x"}, "'a' held numbers before and now holds 'x'"),
        ({"a": 1}, {"a": "1"}, "'a' held numbers before"),
        ({"a": "x"}, {"a": 1}, "'a' held text before and now holds 1"),
        ({"a": 1}, {"a": datetime.date(2024, 1, 1)}, r"features=\[...\]"),
        ({"a": "x"}, {"a": [1]}, r"'a' holds \[1\] of type list"),
        ({"a": 1}, {"a": 1j}, "neither number nor text"),
        ({"a": 1}, {}, "no fields"),
        ({"a": 1}, [1], "mapping from field to value"),
        ({"a": 1}, {1: 1}, "named by text"),
    ],
)
def test_bad_rows_are_named_and_leave_no_trace(before: Any, row: Any, message: str) -> None:
    encoder = Encoder(None, False, NOBODY)
    for _ in range(2):
        take(encoder, before)
    state = encoder.to_dict()
    with pytest.raises(FeatureError, match=message):
        encoder.encode(row, [])
    assert encoder.to_dict() == state


def test_large_values_are_fine_to_a_limit() -> None:
    encoder = Encoder(None, False, NOBODY)
    row = {"a": 1e100, "b": 1e100, "c": 2**63}
    for _ in range(3):  # their sum is too large, they are not
        assert take(encoder, row) == {"a": 1e100, "b": 1e100, "c": 2.0**63}
    for _ in range(2):
        with pytest.raises(FeatureError, match=r"'b' is 1e\+101, .* at most 1e100"):
            encoder.encode({"a": 0.0, "b": 1e101, "c": 1}, [])


# Declared features.


def test_list_of_features() -> None:
    encoder = Encoder(["b", "a"], False, NOBODY)
    for _ in range(3):
        assert take(encoder, {"a": 1, "b": "x", "other": [1]}) == {"b=x": 1.0, "a": 1.0}
    assert encoder.names == ["b=x", "a"]
    for row, message in (
        ({"a": 1}, "no field 'b'.*list of features"),
        ({"a": None, "b": "x"}, "'a' is None"),
        ({"a": NAN, "b": "x"}, "'a' is nan"),
        ({"a": 1, "b": None}, "'b' is None"),
        ({"a": "1", "b": "x"}, "'a' held numbers"),
        ({"a": 1, "b": 2}, "'b' held text"),
    ):
        with pytest.raises(FeatureError, match=message):
            encoder.encode(row, [])


def test_scaled_features() -> None:
    encoder = Encoder({"age": (18, 64), "bmi": (-1.0, 1.0)}, False, NOBODY)
    assert encoder.names == ["age", "bmi"]
    for _ in range(3):
        assert take(encoder, {"age": 41, "bmi": 3.0}) == {"age": (41 - 18) / (64 - 18), "bmi": 2.0}
        assert not any(take(encoder, {"age": 18, "bmi": -1}).values())
    for row, message in (
        ({"age": "x", "bmi": 1}, "'age' held numbers"),
        ({"age": 1}, "no field 'bmi'"),
        ({"age": 1, "bmi": None}, "'bmi' is None"),
        ({"age": 1, "bmi": NAN}, "'bmi' is nan"),
    ):
        with pytest.raises(FeatureError, match=message):
            encoder.encode(row, [])
    tight = Encoder({"a": (0, 1e-10)}, False, NOBODY)
    for _ in range(2):
        with pytest.raises(FeatureError, match="'a' is 1e\\+308"):
            tight.encode({"a": 1e308}, [])
        tight.encode({"a": 1.0}, [])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"a": (1, 1)}, "range of feature 'a'"),
        ({"a": (2, 1)}, "low < high"),
        ({"a": (0, float("inf"))}, "range of feature 'a'"),
        ({"a": (0, NAN)}, "range of feature 'a'"),
        ({"a": (-1.7e308, 1.7e308)}, "range of feature 'a'"),
        ({"a": 3}, "range of feature 'a'"),
        ({"a": ("x", "y")}, "range of feature 'a'"),
        (["a", "a"], "twice"),
        ([1], "named by text"),
        ("age", "a list of fields"),
        ([], "empty"),
    ],
)
def test_bad_declared_features(features: Any, message: str) -> None:
    with pytest.raises(FeatureError, match=message):
        Encoder(features, False, NOBODY)


# Indicators.


def test_indicators_for_groups_that_are_no_levels() -> None:
    groups = Groups(
        [
            by("sex"),
            by("smoker"),
            cut("age", [35]),
            where("region", "==", "north"),
            by("sex") & by("smoker"),
            pairs(by("region"), cut("age", [35])),
            ~where("age", ">", 60),
        ],
        always_on=True,
    )
    encoder = Encoder(None, True, groups)
    row = {"sex": "male", "smoker": 1, "age": 41, "region": "north"}
    expected = {"sex=male": 1.0, "smoker": 1.0, "age": 41.0, "region=north": 1.0}
    expected |= {"smoker=1": 1.0, "age: > 35": 1.0, "not age > 60": 1.0}
    for _ in range(3):
        assert take(encoder, row) == expected
    assert encoder.names == list(expected)
    declared = Encoder(["age"], True, groups)
    for _ in range(3):
        assert set(take(declared, row)) == {
            "age",
            "sex=male",
            "smoker=1",
            "age: > 35",
            "region=north",
            "not age > 60",
        }


def test_an_indicator_is_one_also_for_a_fractional_group() -> None:
    encoder = Encoder(None, True, Groups([weight("w")], always_on=True))
    for _ in range(3):
        assert take(encoder, {"w": 0.25, "a": 2}) == {"a": 2.0, "w": 1.0}


def test_names_that_clash_stay_apart() -> None:
    encoder = Encoder(None, True, Groups([by("n")], always_on=False))
    row = {"n": 1, "n=1": 5.0, "sex": "male", "sex=male": 2.0}
    for _ in range(3):
        encoded = encoder.encode(row, ["n=1"])
        encoder.admit(encoded)
        assert encoded.indices.tolist() == [0, 1, 2, 3, 4]
        assert encoded.values.tolist() == [1.0, 5.0, 1.0, 2.0, 1.0]
    assert encoder.names == ["n", "n=1", "sex=male", "sex=male", "n=1"]


# Purity and state.


def test_encoding_is_pure() -> None:
    groups = Groups([by("k"), cut("a", [1])], always_on=True)
    encoder = Encoder(None, True, groups)
    row = {"a": 1.0, "k": "1"}
    before = json.dumps(encoder.to_dict())
    first = encoder.encode(row, ["k=1", "a: <= 1"])
    # Nothing of the first row may show: here k is a number, so its group has an indicator.
    other = encoder.encode({"a": 1.0, "k": 1}, ["k=1", "a: <= 1"])
    assert other.new[-2] == Feature("indicator", "k=1")
    second = encoder.encode(row, ["k=1", "a: <= 1"])
    assert json.dumps(encoder.to_dict()) == before
    assert first.new == second.new
    assert first.indices.tolist() == second.indices.tolist() == [0, 1, 2]
    encoder.admit(first)
    third = encoder.encode(row, ["k=1", "a: <= 1"])
    assert third.new == ()
    assert third.indices.tolist() == first.indices.tolist()
    assert third.values.tolist() == first.values.tolist()
    encoder.admit(first)  # again: nothing happens
    assert len(encoder) == 3
    assert row == {"a": 1.0, "k": "1"}


def test_what_is_handed_out_cannot_spoil_the_encoder() -> None:
    encoder = Encoder(None, False, NOBODY)
    row = {"a": 1.0, "b": 2.0}
    for _ in range(2):
        take(encoder, row)
    encoded = encoder.encode(row, [])
    encoded.values[:] = 9.0
    with pytest.raises(ValueError):
        encoded.indices[:] = 9
    again = encoder.encode(row, [])
    assert again.indices.tolist() == [0, 1]
    assert again.values.tolist() == [1.0, 2.0]


def test_admitting_two_kinds_of_a_field_is_refused_whole() -> None:
    encoder = Encoder(None, False, NOBODY)
    number = encoder.encode({"b": 1, "a": 1}, [])
    text = encoder.encode({"c": 1, "a": "x"}, [])
    encoder.admit(number)
    with pytest.raises(FeatureError, match="'a' held numbers"):
        encoder.admit(text)
    assert encoder.names == ["b", "a"]


@pytest.mark.parametrize("features", [None, ["a", "k"], {"a": (0.5, 2)}])
def test_state_goes_through_json_and_pickle(features: Any) -> None:
    groups = Groups([by("k"), cut("a", [1])], always_on=True)
    encoder = Encoder(features, True, groups)
    row = {"a": 1.0, "k": "x"}
    take(encoder, row)
    copies = [
        Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())), groups),
        pickle.loads(pickle.dumps(encoder)),
    ]
    for copy in copies:
        assert copy.to_dict() == encoder.to_dict()
        for new in (row, {"a": 5, "k": "y"}):
            awake = groups.of_row(new)[0]
            check_row(copy.encode(new, awake), encoder.encode(new, awake))


def test_restoring_needs_an_encoder_declared_alike() -> None:
    encoder = Encoder({"a": (0, 1)}, True, NOBODY)
    state = Encoder({"b": (0, 1)}, True, NOBODY).to_dict()
    with pytest.raises(FeatureError, match="do not fit"):
        encoder.restore(state)
    assert encoder.names == ["a"]
    encoder.restore(encoder.to_dict())
    assert encoder.names == ["a"]


def test_names_of_what_is_not_admitted_yet() -> None:
    encoder = Encoder(None, False, NOBODY)
    encoded = encoder.encode({"a": 1, "b": "x"}, [])
    assert encoded.names == ["a", "b=x"]
    assert encoder.names == []
    encoder.admit(encoded)
    assert encoder.encode({"a": 1}, []).names == ["a", "b=x"]


def test_memory_is_bounded() -> None:
    encoder = Encoder(None, True, Groups([by("k")], always_on=True))
    for number in range(2000):
        row = {"k": str(number % 3), f"f{number % 200}": 1.0}
        for _ in range(2):
            encoder.admit(encoder.encode(row, [f"k={number % 3}", f"x={number}"]))
    assert len(encoder._layouts) <= 64
    assert len(encoder) == 203


# Rows against frames.


def without_zeros(row: Row) -> Row:
    """A zero in a row changes nothing, so rows are compared without."""
    kept = row.values != 0.0
    return row._replace(indices=row.indices[kept], values=row.values[kept])


def check_row(left: Row, right: Row) -> None:
    left, right = without_zeros(left), without_zeros(right)
    assert left.new == right.new
    assert left.indices.tobytes() == right.indices.tobytes()
    assert left.values.tobytes() == right.values.tobytes()


def check_frame(left: EncodedFrame, right: EncodedFrame) -> None:
    assert left.new == right.new
    for one, other in zip(left[:3], right[:3], strict=True):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


def row_by_row(encoder: Encoder, rows: list[dict[str, Any]]) -> EncodedFrame:
    encoder = pickle.loads(pickle.dumps(encoder))
    known = len(encoder)
    indptr, indices, values = [0], [], []
    for number, row in enumerate(rows):
        try:
            encoded = encoder.encode(row, encoder.groups.of_row(row)[0])
        except FeatureError as error:
            raise FeatureError(str(error), row=number) from None
        encoder.admit(encoded)
        encoded = without_zeros(encoded)
        indices += encoded.indices.tolist()
        values += encoded.values.tolist()
        indptr.append(len(indices))
    return EncodedFrame(
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(values, dtype=np.float64),
        tuple(encoder.features[known:]),
    )


SCHEMA = {
    "text": polars.String,
    "kind": polars.Categorical,
    "flag": polars.Boolean,
    "count": polars.Int64,
    "size": polars.Float64,
    "small": polars.Float32,
    "late": polars.Float64,
    "price": polars.Decimal(10, 2),
    "w": polars.Float64,
}
PANDAS = {
    "text": "str",
    "kind": "category",
    "flag": "boolean",
    "count": "Int64",
    "size": "float64",
    "small": "float32",
    "late": "Float64",
    "price": "object",
    "w": "float64",
}
cells: dict[str, st.SearchStrategy[Any]] = {
    "text": st.none() | st.sampled_from(["a", "b", "1", ""]),
    "kind": st.none() | st.sampled_from(["a", "b"]),
    "flag": st.booleans(),
    "count": st.integers(-2, 2) | st.sampled_from([2**53 + 1, -(2**62) - 1]),
    "size": st.floats(-3, 3) | st.sampled_from([0.0, -0.0, 1e300]),
    "small": st.floats(-3, 3, width=32),
    "late": st.none() | st.floats(-3, 3),
    "price": st.decimals(-9, 9, places=2),
    "w": st.sampled_from([0.0, 0.5, 1.0]),
}
GROUPS = [
    Groups([by("text"), by("count"), cut("size", [0, 1])], always_on=True),
    Groups([by("text") & by("flag"), where("text", "==", "1"), ~cut("small", [0.5])], False),
    Groups([weight("w"), by("flag"), pairs(by("kind"), by("count")), by("kind")], True),
]


@st.composite
def tables(draw: st.DrawFn) -> list[dict[str, Any]]:
    rows = draw(st.lists(st.fixed_dictionaries(cells), min_size=1, max_size=7))
    order = draw(st.permutations(list(cells)))
    rows = [{name: row[name] for name in order} for row in rows]
    if draw(st.booleans()):  # a number field that is known from some row on only
        start = draw(st.integers(0, len(rows)))
        for number, row in enumerate(rows):
            row["late"] = None if number < start else row["late"] or 0.5
    return rows


def frames_of(rows: list[dict[str, Any]]) -> list[Any]:
    order = list(rows[0])
    frame = polars.DataFrame(rows, schema={name: SCHEMA[name] for name in order})
    columns = {name: [row[name] for row in rows] for name in order}
    typed = {name: pandas.Series(columns[name], dtype=PANDAS[name]) for name in order}
    objects = {name: pandas.Series(columns[name], dtype=object) for name in order}
    return [frame, frame.to_arrow(), pandas.DataFrame(typed), pandas.DataFrame(objects)]


@given(
    tables(),
    tables(),
    st.sampled_from(GROUPS),
    st.booleans(),
    st.sampled_from([None, ["text", "size", "price", "count"], {"size": (-1, 2), "count": (0, 3)}]),
)
@settings(deadline=None, max_examples=120)
def test_rows_and_frames_agree(
    before: list[dict[str, Any]],
    rows: list[dict[str, Any]],
    groups: Groups,
    indicators: bool,
    features: Any,
) -> None:
    encoder = Encoder(features, indicators, groups)
    for one in (before, rows):
        state = encoder.to_dict()
        try:
            expected = row_by_row(encoder, one)
        except FeatureError as error:
            problem = str(error)
            for frame in frames_of(one):
                with pytest.raises(FeatureError) as caught:
                    encoder.encode_frame(frame, groups.of_frame(frame))
                assert str(caught.value).split(".")[0] == problem.split(".")[0]
            return
        for frame in frames_of(one):
            table = Table(frame)
            found = encoder.encode_frame(table, groups.of_frame(table))
            check_frame(found, expected)
        assert encoder.to_dict() == state
        encoder.admit(found)
        assert len(encoder) == len(state["features"]) + len(expected.new)


def encode_frame(frame: Any, features: Any = None, **known: Any) -> EncodedFrame:
    encoder = Encoder(features, False, NOBODY)
    if known:
        take(encoder, known)
    return encoder.encode_frame(frame, NOBODY.of_frame(frame))


@pytest.mark.parametrize(
    ("frame", "known", "message"),
    [
        (polars.DataFrame({"a": [1.0, NAN]}), {}, "row 1: Field 'a' is nan"),
        (pandas.DataFrame({"a": [NAN, 1.0]}), {}, "row 0: Field 'a' is nan"),
        (pandas.DataFrame({"a": [1.0, float("inf")]}), {}, "row 1: Field 'a' is inf"),
        (polars.DataFrame({"a": [None, 1, None]}), {}, "row 2: Field 'a' is None"),
        (polars.DataFrame({"a": [None, 1]}), {"a": 1}, "row 0: Field 'a' is None"),
        (polars.DataFrame({"a": [1, 1], "b": ["x", "y"]}), {"b": 1}, "row 0: Field 'b' held num"),
        (polars.DataFrame({"a": [None, 2]}), {"a": "x"}, "row 1: Field 'a' held text.*2"),
        (pandas.DataFrame({"a": [None, "x", 1]}), {}, "row 2: Field 'a' held text"),
        (pandas.DataFrame({"a": [[1]]}), {}, r"row 0: Field 'a' holds \[1\]"),
        (pyarrow.table({"a": [1.0, 1.0], "b": [1.0, NAN]}), {}, "row 1: Field 'b' is nan"),
        (
            polars.DataFrame({"a": [1.0, 1.0, NAN], "b": [1.0, NAN, NAN]}),
            {},
            "row 1: Field 'b' is nan",
        ),
        (polars.DataFrame({"a": [datetime.date(2024, 1, 1)]}), {}, r"row 0: .*features=\[...\]"),
        (polars.DataFrame({"a": []}), {}, "no rows"),
        (polars.DataFrame(), {}, "no columns"),
        (pandas.DataFrame({1: [1.0]}), {}, "named by text"),
    ],
)
def test_bad_frames_are_named(frame: Any, known: dict[str, Any], message: str) -> None:
    with pytest.raises(FeatureError, match=message):
        encode_frame(frame, **known)


def test_bad_frames_for_declared_features() -> None:
    frame = polars.DataFrame({"a": ["x", None], "b": [1, 2]})
    with pytest.raises(FeatureError, match="row 1: Field 'a' is None"):
        encode_frame(frame, ["b", "a"])
    with pytest.raises(FeatureError, match="no column 'c'"):
        encode_frame(frame, ["c"])
    with pytest.raises(FeatureError, match="row 0: Field 'a' held numbers"):
        encode_frame(frame, {"a": (0, 1)})
    with pytest.raises(FeatureError, match="1 rows and the membership 2"):
        Encoder(None, False, NOBODY).encode_frame(frame[:1], NOBODY.of_frame(frame))
    with pytest.raises(FeatureError, match="cannot be read as a frame"):
        Encoder(None, False, NOBODY).encode_frame([1], NOBODY.of_frame(frame))


def test_categories_are_text() -> None:
    values = ["b", None, "a", "b"]
    expected = row_by_row(Encoder(None, False, NOBODY), [{"x": value} for value in values])
    for frame in (
        pandas.DataFrame({"x": pandas.Categorical(values, categories=["c", "a", "b"])}),
        polars.DataFrame({"x": polars.Series(values, dtype=polars.Enum(["c", "a", "b"]))}),
        pyarrow.table({"x": pyarrow.array(values).dictionary_encode()}),
        polars.DataFrame({"x": polars.Series(values, dtype=polars.Categorical)}),
    ):
        check_frame(encode_frame(frame), expected)
    numbered = encode_frame(pandas.DataFrame({"x": pandas.Categorical([2, 1, 2])}))
    assert numbered.new == (Feature("level", "x", "2"), Feature("level", "x", "1"))


def test_columns_without_values_add_nothing() -> None:
    frame = polars.DataFrame({"a": [None, None], "b": [1, 2]})
    assert encode_frame(frame).new == (Feature("number", "b"),)
    empty = pandas.DataFrame({"a": [NAN, NAN], "b": [1, 2]})
    assert encode_frame(empty, a="x").indices.tolist() == [1, 1]


def test_a_large_frame_in_chunks() -> None:
    random = np.random.default_rng(0)
    frame = polars.DataFrame(
        {
            "a": random.integers(0, 3, 40_000),
            "s": random.choice(["x", "y", "z"], 40_000).tolist(),
            "b": random.random(40_000),
        }
    )
    groups = Groups([by("a"), cut("b", [0.3, 0.6]), by("s")], always_on=True)
    encoder = Encoder(None, True, groups)
    found = encoder.encode_frame(frame, groups.of_frame(frame))
    check_frame(found, row_by_row(encoder, frame.to_dicts()))
