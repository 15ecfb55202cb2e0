"""The encoder on rows: one-hot, missing fields, indicators, purity and state."""

import datetime
import json
import pickle
from decimal import Decimal
from typing import Any

import numpy as np
import pandas
import pytest

from groupwise.errors import FeatureError, GroupError
from groupwise.features import Encoder, Feature
from groupwise.groups import Groups, by, cut, pairs, weight, where
from tests.features.encoding import NAN, NOBODY, check_row, take, without_zeros


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
        encoded = encoder.encode(row, encoder.groups.read(row)[0])
        encoder.admit(encoded)
        assert encoded.indices.tolist() == [0, 1, 2, 3, 4]
        assert encoded.values.tolist() == [1.0, 5.0, 1.0, 2.0, 1.0]
    assert encoder.names == ["n", "n=1", "sex=male", "sex=male", "n=1"]


def test_two_groups_of_the_same_name_have_an_indicator_each() -> None:
    groups = Groups([by("a"), by("a=b"), cut("c", [1], labels=["x=1", "y"]), by("c: x")], True)
    encoder = Encoder(["u"], True, groups)
    both = {"a": "b=c", "a=b": "c", "c": 0.5, "c: x": 1, "u": 2.0}
    first = {**both, "a=b": None, "c: x": None}
    second = {**both, "a": None, "c": None}
    for _ in range(3):
        for row, numbers in ((both, [0, 1, 2, 3, 4]), (first, [0, 1, 3]), (second, [0, 2, 4])):
            encoded = encoder.encode(row, groups.read(row)[0])
            encoder.admit(encoded)
            assert encoded.indices.tolist() == numbers
    assert encoder.names == ["u", "a=b=c", "a=b=c", "c: x=1", "c: x=1"]
    again = Encoder.from_dict(json.loads(json.dumps(encoder.to_dict())), groups)
    for row in (both, first, second):
        check_row(again.encode(row, groups.read(row)[0]), encoder.encode(row, groups.read(row)[0]))


def test_a_state_in_which_indicators_have_names_alone_is_read() -> None:
    groups = Groups([by("k"), cut("a", [1]), pairs(by("k"), cut("a", [1]))], always_on=True)
    encoder = Encoder(["a"], True, groups)
    row = {"a": 1.0, "k": "x & a: > 1"}
    take(encoder, row)
    state = encoder.to_dict()
    state["features"] = [feature[:3] for feature in state["features"]]
    older = Encoder.from_dict(json.loads(json.dumps(state)), groups)
    assert older.features[0] == Feature("number", "a")
    take(older, {"a": 1.0, "k": "y"})
    state["features"][1][1] = "k:y"
    with pytest.raises(GroupError, match="No declaration has a group named"):
        Encoder.from_dict(state, groups)


def test_encoding_is_pure() -> None:
    groups = Groups([by("k"), cut("a", [1])], always_on=True)
    encoder = Encoder(None, True, groups)
    row = {"a": 1.0, "k": "1"}
    before = json.dumps(encoder.to_dict())
    awake = groups.read(row)[0][:2]
    assert [member.name for member in awake] == ["k=1", "a: <= 1"]
    first = encoder.encode(row, awake)
    # Nothing of the first row may show: here k is a number, so its group has an indicator.
    other = encoder.encode({"a": 1.0, "k": 1}, awake)
    assert other.new[-2] == Feature("indicator", "k=1", group=(0, ("1",)))
    second = encoder.encode(row, awake)
    assert json.dumps(encoder.to_dict()) == before
    assert first.new == second.new
    assert first.indices.tolist() == second.indices.tolist() == [0, 1, 2]
    encoder.admit(first)
    third = encoder.encode(row, awake)
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
            awake = groups.read(new)[0]
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
    groups = Groups([by("k"), by("k") & by("x")], always_on=True)
    encoder = Encoder(None, True, groups)
    for number in range(2000):
        row: dict[str, Any] = {"k": str(number % 3), f"f{number % 200}": 1.0}
        for _ in range(2):
            awake = [groups.member(0, (row["k"],)), groups.member(1, (row["k"], str(number)))]
            encoder.admit(encoder.encode(row, awake))
    assert len(encoder._layouts) <= 64
    assert len(encoder) == 203
