"""Frames of every library against rows."""

import datetime
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from groupwise.errors import GroupError
from groupwise.groups import (
    FrameMembership,
    Group,
    Groups,
    Member,
    by,
    cut,
    pairs,
    weight,
    where,
)

NAN = float("nan")
unit = st.floats(0, 1)


def row_by_row(groups: Groups, rows: list[dict[str, Any]]) -> FrameMembership:
    listed: dict[Member, int] = {}
    indptr, indices, weights = [0], [], []
    for row in rows:
        found = groups.read(row)
        indices += [listed.setdefault(member, len(listed)) for member in found[0]]
        weights += found[1]
        indptr.append(len(indices))
    return FrameMembership(
        list(listed),
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(weights, dtype=np.float64),
    )


def check_same(left: FrameMembership, right: FrameMembership) -> None:
    assert [one.key for one in left.members] == [one.key for one in right.members]
    assert left.names == right.names
    for one, other in (
        (left.indptr, right.indptr),
        (left.indices, right.indices),
        (left.weights, right.weights),
    ):
        assert one.dtype == other.dtype
        assert one.tobytes() == other.tobytes()


SCHEMA = {
    "text": polars.String,
    "kind": polars.Categorical,
    "flag": polars.Boolean,
    "count": polars.Int64,
    "size": polars.Float64,
    "small": polars.Float32,
    "day": polars.Date,
    "w": polars.Float64,
    "v": polars.Float64,
}
PANDAS = {
    "text": "str",
    "kind": "category",
    "flag": "boolean",
    "count": "Int64",
    "size": "float64",
    "small": "float32",
    "day": "object",
    "w": "float64",
    "v": "Float64",
}
rows = st.lists(
    st.fixed_dictionaries(
        {
            "text": st.none() | st.sampled_from(["a", "b", "1", "true", ""]),
            "kind": st.none() | st.sampled_from(["a", "b"]),
            "flag": st.none() | st.booleans(),
            "count": st.none() | st.integers(-3, 3) | st.sampled_from([2**53 + 1, -(2**62)]),
            "size": st.none() | st.floats(-3, 3) | st.sampled_from([1.0, -0.0, NAN, float("inf")]),
            "small": st.none() | st.floats(-3, 3, width=32),
            "day": st.none() | st.dates(datetime.date(2024, 1, 1), datetime.date(2024, 1, 3)),
            "w": st.none() | unit | st.sampled_from([0.0, 1.0, 1e-200, NAN]),
            "v": st.none() | unit,
        }
    ),
    max_size=8,
)
leaves = st.sampled_from(
    [
        cut("count", [-1, 0.5, 2**53]),
        cut("size", [-1, 0, 1], closed="left"),
        cut("small", [0.1, 0.5]),
        where("text", "==", 1),
        where("text", "not in", ["a", True]),
        where("flag", "==", True),
        where("count", "!=", 2),
        where("size", "<", 1),
        where("small", ">=", 0.1),
        where("kind", "in", ["a"]),
        weight("w"),
        weight("v"),
    ]
)
closed = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
    ),
    max_leaves=3,
)
opened = st.builds(by, st.sampled_from([name for name in SCHEMA if name not in "wv"]))
family = st.one_of(
    opened,
    closed,
    st.builds(lambda a, b: a & b, opened, closed),
    st.builds(
        lambda some: pairs(*dict.fromkeys(some)),
        st.lists(opened | closed, min_size=2, max_size=3, unique=True),
    ),
)


@given(rows, st.lists(family, min_size=1, max_size=3), st.booleans())
@settings(deadline=None, max_examples=120)
def test_rows_and_frames_agree(
    data: list[dict[str, Any]], declarations: list[Group], always_on: bool
) -> None:
    try:
        groups = Groups(declarations, always_on)
    except GroupError:
        assume(False)  # the same name twice
    expected = row_by_row(groups, data)
    frame = polars.DataFrame(data, schema=SCHEMA)
    check_same(groups.of_frame(frame), expected)
    check_same(groups.of_frame(frame.to_arrow()), expected)
    cells = {name: [row[name] for row in data] for name in SCHEMA}
    objects = {name: pandas.Series(cells[name], dtype=object) for name in SCHEMA}
    check_same(groups.of_frame(pandas.DataFrame(objects)), expected)
    typed = {name: pandas.Series(cells[name], dtype=PANDAS[name]) for name in SCHEMA}
    check_same(groups.of_frame(pandas.DataFrame(typed)), expected)


def test_integers_beyond_the_exact_floats_are_compared_exactly() -> None:
    values = [2**53, 2**53 + 1, -(2**53) - 1, 2**62]
    groups = Groups([cut("x", [2**53]), where("x", ">", 2**53), where("x", "<", -(2**53))], False)
    expected = row_by_row(groups, [{"x": value} for value in values])
    assert expected.names == [f"x: <= {2**53}", f"x: > {2**53}", f"x > {2**53}", f"x < -{2**53}"]
    assert expected.indptr.tolist() == [0, 1, 3, 5, 7]
    check_same(groups.of_frame(polars.DataFrame({"x": values})), expected)
    check_same(groups.of_frame(pandas.DataFrame({"x": values})), expected)


def test_frames_of_mixed_objects_and_categories() -> None:
    values = [1, "1", 1.0, True, None, "true", NAN, 2.5]
    groups = Groups([by("x")], always_on=False)
    frame = pandas.DataFrame({"x": pandas.Series(values, dtype=object)})
    expected = row_by_row(groups, [{"x": value} for value in values])
    assert expected.names == ["x=1", "x=true", "x=2.5"]
    check_same(groups.of_frame(frame), expected)
    numbers = [3, 1, None, 3]
    expected = row_by_row(Groups([cut("x", [2])], True), [{"x": value} for value in numbers])
    frame = pandas.DataFrame({"x": pandas.Categorical(numbers, categories=[1, 2, 3])})
    check_same(Groups([cut("x", [2])], True).of_frame(frame), expected)
    table = pyarrow.table({"x": pyarrow.array(numbers).dictionary_encode()})
    check_same(Groups([cut("x", [2])], True).of_frame(table), expected)
    nullable = pandas.DataFrame({"x": pandas.array(numbers, dtype="Int64")})
    check_same(Groups([cut("x", [2])], True).of_frame(nullable), expected)


def test_a_large_frame_in_chunks() -> None:
    random = np.random.default_rng(0)
    frame = pandas.DataFrame({"a": random.integers(0, 9, 70_000), "w": random.random(70_000)})
    declarations = [cut("a", [3, 6]) | weight("w"), ~cut("a", [4]), by("a") & weight("w")]
    groups = Groups(declarations, always_on=True)
    found = groups.of_frame(frame)
    check_same(found, row_by_row(groups, frame.to_dict("records")))
