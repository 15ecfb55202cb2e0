"""Declarations: names, boundaries, algebra, and what is refused."""

from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.errors import GroupError
from groupwise.groups import Group, Groups, by, cut, pairs, weight, where

NAN = float("nan")


def awake(declaration: Group, **row: Any) -> dict[str, float]:
    names, weights = Groups([declaration], always_on=False).of_row(row)
    return dict(zip(names, weights, strict=True))


def only(declaration: Group, **row: Any) -> str:
    (name,) = awake(declaration, **row)
    return name


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


def test_a_column_is_no_declaration():
    with pytest.raises(GroupError, match=r"'sex' is not a group declaration. Use by\('sex'\), cut"):
        gw.Groupwise(["sex"])  # type: ignore[list-item]
