"""How values are written in names."""

import datetime
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

from groupwise.groups import Groups, by, where


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
    assert Groups([by("x")], always_on=False).of_row({"x": value}) == ([name], [1.0])


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
