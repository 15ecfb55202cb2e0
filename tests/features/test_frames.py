"""Frames of every library against rows."""

import datetime
import pickle
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
from tests.features.encoding import NAN, NOBODY, take, without_zeros


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
            encoded = encoder.encode(row, encoder.groups.read(row)[0])
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


SCHEMA: dict[str, Any] = {
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


@pytest.mark.slow
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
