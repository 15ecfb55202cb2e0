"""Groups: names, membership, algebra, missing values, errors, TOML, and rows against frames."""

from __future__ import annotations

import datetime
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from groupwise.errors import GroupError
from groupwise.groups import (
    FrameMembership,
    Group,
    Groups,
    by,
    cut,
    dumps,
    from_dict,
    loads,
    pairs,
    weight,
    where,
)

NAN = float("nan")


def awake(declaration: Group, **row: Any) -> dict[str, float]:
    names, weights = Groups([declaration], always_on=False).of_row(row)
    return dict(zip(names, weights, strict=True))


def only(declaration: Group, **row: Any) -> str:
    (name,) = awake(declaration, **row)
    return name


# Names.


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "x=1"),
        (1.0, "x=1"),
        ("1", "x=1"),
        (np.int64(1), "x=1"),
        (np.float32(1), "x=1"),
        (Decimal("1.0"), "x=1"),
        (True, "x=true"),
        (np.bool_(False), "x=false"),
        (0.5, "x=0.5"),
        (np.float64(0.1), "x=0.1"),
        (-0.0, "x=0"),
        (float("inf"), "x=inf"),
        (10**16, "x=10000000000000000"),
        (1e16, "x=10000000000000000"),
        (np.str_("north"), "x=north"),
        ("", "x="),
        (datetime.date(2024, 5, 1), "x=2024-05-01"),
        (datetime.datetime(2024, 5, 1, 12), "x=2024-05-01 12:00:00"),
        (np.datetime64("2024-05-01T12:00:00", "ns"), "x=2024-05-01 12:00:00"),
    ],
)
def test_by_names_values_canonically(value: Any, name: str) -> None:
    assert awake(by("x"), x=value) == {name: 1.0}


def test_equal_keys_of_different_types_keep_their_names() -> None:
    groups = Groups([by("x"), where("x", "!=", 1)], always_on=False)
    values = [1, True, 1.0, np.bool_(True), np.int64(1), 0, False, True, 1, np.bool_(True)]
    names = [groups.of_row({"x": value})[0][0] for value in values]
    numbers = ["x=1", "x=true", "x=1", "x=true", "x=1", "x=0", "x=false", "x=true", "x=1", "x=true"]
    assert names == numbers
    assert groups.of_row({"x": True})[0] == ["x=true", "x != 1"]
    assert groups.of_row({"x": 1})[0] == ["x=1"]


def test_equal_moments_in_two_time_zones_keep_their_names() -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    here = datetime.datetime(2024, 5, 1, 14, tzinfo=zone)
    there = datetime.datetime(2024, 5, 1, 12, tzinfo=datetime.UTC)
    assert here == there
    groups = Groups([by("t")], always_on=False)
    assert groups.of_row({"t": here})[0] == ["t=2024-05-01 14:00:00+02:00"]
    assert groups.of_row({"t": there})[0] == ["t=2024-05-01 12:00:00+00:00"]


def test_cut_names_and_boundaries() -> None:
    right, left = cut("age", [35, 50]), cut("age", [35, 50], closed="left")
    assert right.names == ("age: <= 35", "age: (35, 50]", "age: > 50")
    assert left.names == ("age: < 35", "age: [35, 50)", "age: >= 50")
    assert [only(right, age=v) for v in (35, 35.001, 50, 51)] == [
        "age: <= 35",
        "age: (35, 50]",
        "age: (35, 50]",
        "age: > 50",
    ]
    assert [only(left, age=v) for v in (34.9, 35, 49, Decimal(50))] == [
        "age: < 35",
        "age: [35, 50)",
        "age: [35, 50)",
        "age: >= 50",
    ]
    assert only(right, age=float("inf")) == "age: > 50"
    assert only(right, age=np.float64("-inf")) == "age: <= 35"
    assert only(cut("age", [35], labels=["young", "old"]), age=np.int32(36)) == "age: old"
    # Compared as written: the float32 nearest to 0.1 is a little more than 0.1.
    assert only(cut("x", [0.1]), x=np.float32(0.1)) == "x: > 0.1"


@pytest.mark.parametrize(
    ("operator", "value", "inside", "outside", "name"),
    [
        ("==", 1, ["1", 1.0, 1], [True, 2, "1.0"], "x=1"),
        ("==", True, [True, "true", np.bool_(True)], [1, False], "x=true"),
        ("!=", "a", ["b", 0], ["a"], "x != a"),
        ("<", 30, [29.9, -5], [30, 31], "x < 30"),
        ("<=", 30, [30, 1], [30.1], "x <= 30"),
        (">", 30, [30.5], [30, np.int64(3)], "x > 30"),
        (">=", 30.5, [30.5, np.float32(31)], [30], "x >= 30.5"),
        ("in", ["north", "south"], ["south"], ["east"], "x in [north, south]"),
        ("not in", [1, 2], ["3", True], [1.0, "2"], "x not in [1, 2]"),
    ],
)
def test_where(operator: str, value: Any, inside: list[Any], outside: list[Any], name: str) -> None:
    declaration = where("x", operator, value)
    assert declaration.names == (name,)
    groups = Groups([declaration], always_on=False)
    for _ in range(2):  # the second time from memory
        assert [groups.of_row({"x": one}) for one in inside] == [([name], [1.0])] * len(inside)
        assert [groups.of_row({"x": one}) for one in outside] == [([], [])] * len(outside)


def test_compound_names_and_parentheses() -> None:
    a, b, c = weight("a"), weight("b"), weight("c")
    assert (a & b & c).names == (a & (b & c)).names == ("a & b & c",)
    assert ((a | b) & c).names == ("(a | b) & c",)
    assert (a & b | c).names == ("a & b | c",)
    assert (~a & b).names == ("not a & b",)
    assert (~(a & b)).names == ("not (a & b)",)
    assert (~(a | b)).names == ("not (a | b)",)
    assert (~pairs(a, b)).names == ("not (a & b)",)
    assert pairs(a | b, c).names == ("(a | b) & c",)
    assert pairs(a, b, c).names == ("a & b", "a & c", "b & c")
    assert only((a | b) & by("s"), a=1, b=0, s="x") == "(a | b) & s=x"


# Algebra and weights.


def test_weights_multiply_join_and_complement() -> None:
    a, b = weight("a"), weight("b")
    assert awake(a & b, a=0.5, b=0.5) == {"a & b": 0.25}
    assert awake(a | b, a=0.5, b=0.75) == {"a | b": 0.75}
    assert awake(~a, a=0.25) == {"not a": 0.75}
    assert awake(a, a=0) == {}
    assert awake(a, a=True) == {"a": 1.0}
    assert awake(~a, a=1) == {}
    assert awake(a & b, a=1e-200, b=1e-200) == {}  # underflow leaves no weight at all


def test_families_combine_group_by_group() -> None:
    age, bmi = cut("age", [35, 50], labels=["y", "m", "o"]), where("bmi", ">", 30)
    assert awake(by("sex") & age, sex="f", age=40) == {"sex=f & age: m": 1.0}
    assert awake(age | bmi, age=40, bmi=20) == {"age: m | bmi > 30": 1.0}
    assert list(awake(age | bmi, age=40, bmi=31)) == [
        "age: y | bmi > 30",
        "age: m | bmi > 30",
        "age: o | bmi > 30",
    ]
    assert list(awake(~age, age=40)) == ["not age: y", "not age: o"]
    assert list(awake(pairs(by("sex"), age, bmi), sex="f", age=1, bmi=40)) == [
        "sex=f & age: y",
        "sex=f & bmi > 30",
        "age: y & bmi > 30",
    ]


unit = st.floats(0, 1)


@given(unit, unit, unit)
@settings(deadline=None, max_examples=50)
def test_algebra_laws(x: float, y: float, z: float) -> None:
    a, b, c = weight("a"), weight("b"), weight("c")
    row = {"a": x, "b": y, "c": z}

    def value(declaration: Group) -> float:
        return sum(awake(declaration, **row).values())

    assert ~~(a | b) == a | b
    assert (a & b) & c == a & (b & c)
    assert (a | b) | c == a | (b | c)
    assert value(a & b) == value(b & a)
    assert value(a | b) == value(b | a)
    assert value(a | a) == value(a)
    assert value(~(a | b)) == value(~a & ~b) or 0 < x < 1 or 0 < y < 1
    assert value(~(a | b)) == min(1 - x, 1 - y)
    assert value(a) + value(~a) == pytest.approx(1)


# Missing values.


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


# Errors.


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: by(""), "name of a column"),
        (lambda: by(3), "name of a column"),  # type: ignore[arg-type]
        (lambda: cut("age", []), "at least one number"),
        (lambda: cut("age", [2, 1]), "strictly increasing"),
        (lambda: cut("age", [1, 1]), "strictly increasing"),
        (lambda: cut("age", [NAN]), "finite number"),
        (lambda: cut("age", ["a"]), "finite number"),  # type: ignore[list-item]
        (lambda: cut("age", [1], labels=["a"]), "1 labels for 1 edges"),
        (lambda: cut("age", [1], labels=["a", "a"]), "are equal"),
        (lambda: cut("age", [1], closed="both"), "'right' or 'left'"),  # type: ignore[arg-type]
        (lambda: where("x", "=", 1), "Use one of =="),
        (lambda: where("x", "in", "abc"), "Give a list"),
        (lambda: where("x", "in", []), "Give a list"),
        (lambda: where("x", "<", "a"), "finite number"),
        (lambda: where("x", "<", True), "finite number"),
        (lambda: where("x", "==", None), "missing value"),
        (lambda: where("x", "==", [1]), "names no group"),
        (lambda: weight("always_on"), "reserved"),
        (lambda: pairs(by("a")), "2 declarations or more"),
        (lambda: pairs(by("a"), by("a")), "twice"),
        (lambda: ~by("a"), r"where\(column"),
        (lambda: by("a") | weight("b"), r"where\(column"),
        (lambda: ~(by("a") & weight("b")), r"where\(column"),
        (lambda: Groups(by("a"), True), "list of group declarations"),  # type: ignore[arg-type]
        (lambda: Groups(["a"], True), "not a group declaration"),  # type: ignore[list-item]
        (lambda: Groups([], False), "No groups"),
    ],
)
def test_bad_declarations(make: Any, message: str) -> None:
    with pytest.raises(GroupError, match=message):
        make()


@pytest.mark.parametrize(
    "declarations",
    [
        [by("a"), by("a")],
        [by("a"), where("a", "==", 1)],
        [where("a", "==", 1), where("a", "==", "1")],
        [cut("a", [1]), cut("a", [1, 2], labels=["<= 1", "b", "c"])],
        [by("a") & by("b"), pairs(by("a"), by("b"))],
        [by("a") & by("b"), by("a") & where("b", "==", 2)],
        [pairs(by("a"), by("b"), by("c")), by("b") & by("c")],
        [weight("a") | weight("b"), weight("a") | weight("b")],
    ],
)
def test_names_that_collide_are_refused_at_once(declarations: list[Group]) -> None:
    with pytest.raises(GroupError, match="would exist twice"):
        Groups(declarations, always_on=True)


def test_declarations_that_only_look_alike_are_fine() -> None:
    Groups([by("a"), where("a", "==", 1) & by("b"), where("a", "!=", 1), cut("b", [1])], True)
    Groups([by("a") & where("b", "==", 1), by("a") & where("b", "==", 2)], True)


def test_names_that_collide_in_a_row_are_refused() -> None:
    groups = Groups([by("a"), by("a=b")], always_on=False)
    row = {"a": "b=c", "a=b": "c"}
    with pytest.raises(GroupError, match="'a=b=c'"):
        groups.of_row(row)
    fine = {"a": "x", "a=b": "y"}
    assert groups.of_row(fine)[0] == ["a=x", "a=b=y"]
    with pytest.raises(GroupError, match=r"row 1: .*'a=b=c'"):
        groups.of_frame(polars.DataFrame([fine, row]))


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


# The object.


def test_columns_and_memory() -> None:
    groups = Groups([by("b") & weight("w"), cut("a", [1]), ~weight("v"), by("b")], True)
    assert groups.columns == ("b", "w", "a", "v")
    assert groups.weight_columns == ("w", "v")
    counting = Groups([by("x")], always_on=False)
    for value in range(20_000):
        assert counting.of_row({"x": value / 7 + 0.01})[0]
    assert len(pickle.dumps(counting)) < 1000
    reader: Any = counting._readers[0]
    assert sum(map(len, reader.__self__.remembered.values())) <= 4096


def test_indicators_know_what_a_group_is() -> None:
    groups = Groups(
        [
            by("sex"),
            cut("age", [35]),
            where("bmi", "==", 30),
            where("bmi", ">", 30),
            by("sex") & by("smoker"),
            pairs(cut("age", [35]), weight("w")),
            ~(weight("w") & weight("v")),
            weight("w") & weight("v") | weight("u"),
        ],
        always_on=True,
    )
    assert groups.indicator("sex=male") is not None
    assert groups.indicator("sex=male").column == "sex"  # type: ignore[union-attr]
    assert groups.indicator("bmi=30").column == "bmi"  # type: ignore[union-attr]
    for name in ("age: > 35", "bmi > 30", "not (w & v)", "w & v | u"):
        assert groups.indicator(name) is not None, name
        assert groups.indicator(name).column is None  # type: ignore[union-attr]
    for name in ("always_on", "sex=male & smoker=true", "age: > 35 & w", "age: <= 35 & w"):
        assert groups.indicator(name) is None, name


def test_equality_hash_and_pickle() -> None:
    declarations = [by("a"), cut("b", [1, 2]), pairs(by("c"), where("d", "in", [1, "x"]))]
    groups = Groups(declarations, True)
    again = pickle.loads(pickle.dumps(groups))
    assert again == groups
    assert hash(again) == hash(groups)
    assert groups != Groups(declarations, False)
    assert where("a", "==", 1) == where("a", "==", "1")
    assert where("a", "==", 1) != where("a", "==", True)
    assert cut("a", [1]) == cut("a", [1.0])
    row = {"a": 1, "b": 1.5, "c": "k", "d": "x"}
    assert again.of_row(row) == groups.of_row(row)


# TOML.

names = st.text(min_size=1, max_size=5)
edges = st.lists(st.integers(-9, 9) | st.floats(-9, 9), min_size=1, max_size=4, unique=True).map(
    sorted
)
closed_leaves = st.one_of(
    st.builds(cut, names, edges, closed=st.sampled_from(["left", "right"])),
    st.builds(cut, names, st.just([1, 2]), st.just(["low", 'mid"dle\n', "high"])),
    st.builds(where, names, st.sampled_from(["==", "!="]), st.one_of(names, st.booleans())),
    st.builds(where, names, st.sampled_from(["<", ">="]), st.integers(-9, 9) | st.floats(-9, 9)),
    st.builds(where, names, st.just("in"), st.lists(names | st.integers(), min_size=1)),
    st.builds(weight, names),
)
closed_groups = st.recursive(
    closed_leaves,
    lambda inner: st.one_of(
        st.builds(lambda a, b: a & b, inner, inner),
        st.builds(lambda a, b: a | b, inner, inner),
        st.builds(lambda a: ~a, inner),
        st.builds(lambda a, b: pairs(a, b) if a != b else a, inner, inner),
    ),
    max_leaves=4,
)


@given(st.lists(closed_groups | st.builds(by, names), max_size=3))
@settings(deadline=None, max_examples=100)
def test_toml_round_trip(declarations: list[Group]) -> None:
    text = dumps(declarations)
    assert loads(text) == declarations
    assert [Group.from_dict(one.to_dict()) for one in declarations] == declarations


def test_toml_reads_what_people_write() -> None:
    text = """
    [[groups]]
    by = "sex"
    [[groups]]
    cut = "age"
    edges = [35, 50]
    labels = ["young", "middle", "old"]
    closed = "left"
    [[groups]]
    where = "smoker"
    op = "=="
    value = true
    [[groups]]
    and = [{ by = "a" }, { weight = "w" }]
    [[groups]]
    not = { or = [{ weight = "w" }, { weight = "v" }] }
    [[groups]]
    pairs = [{ by = "sex" }, { by = "region" }]
    """
    assert loads(text) == [
        by("sex"),
        cut("age", [35, 50], ["young", "middle", "old"], "left"),
        where("smoker", "==", True),
        by("a") & weight("w"),
        ~(weight("w") | weight("v")),
        pairs(by("sex"), by("region")),
    ]
    assert dumps([by("a") & weight("w")]) == (
        '[[groups]]\nand = [{ by = "a" }, { weight = "w" }]\n'
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[groups", "not valid TOML"),
        ("group = []", "Unknown key 'group'"),
        ("", "'groups' is missing"),
        ("[[groups]]\nbye = 'sex'", "'bye'"),
        ("[[groups]]\nby = 'sex'\nedges = [1]", "Unknown key 'edges' next to 'by'"),
        ("[[groups]]\ncut = 'age'", "'edges' is missing"),
        ("[[groups]]\nby = 'sex'\nweight = 'w'", "exactly one"),
        ("[[groups]]\nand = [{ by = 'sex' }]", "two declarations or more"),
        ("[[groups]]\nand = 'sex'", "Give a list"),
        ("[[groups]]\ncut = 'age'\nedges = 3", "'edges' holds 3"),
    ],
)
def test_bad_toml(text: str, message: str) -> None:
    with pytest.raises(GroupError, match=message):
        loads(text)
    with pytest.raises(GroupError, match="no group declaration"):
        from_dict("by")  # type: ignore[arg-type]


# Rows against frames.


def row_by_row(groups: Groups, rows: list[dict[str, Any]]) -> FrameMembership:
    listed: dict[str, int] = {}
    indptr, indices, weights = [0], [], []
    for row in rows:
        found = groups.of_row(row)
        indices += [listed.setdefault(name, len(listed)) for name in found[0]]
        weights += found[1]
        indptr.append(len(indices))
    return FrameMembership(
        list(listed),
        np.array(indptr, dtype=np.int64),
        np.array(indices, dtype=np.int64),
        np.array(weights, dtype=np.float64),
    )


def check_same(left: FrameMembership, right: FrameMembership) -> None:
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
