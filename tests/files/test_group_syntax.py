"""Groups and features in one line of text."""

import pytest

from groupwise.errors import DataError, GroupError
from groupwise.files.group_syntax import parse_features, parse_groups, parse_names
from groupwise.groups import by, cut, where

COLUMNS = ["sex", "age", "smoker", "region", "body mass", "a,b", 'say "x"', "at:3", "p&q", "x>1"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sex", [by("sex")]),
        (" sex ,age ", [by("sex"), by("age")]),
        ("age:35|50", [cut("age", [35, 50])]),
        ("age: 35 | 50.5", [cut("age", [35, 50.5])]),
        ("body mass:-1", [cut("body mass", [-1])]),
        ("region & smoker", [by("region") & by("smoker")]),
        ("region&smoker & age:40", [by("region") & by("smoker") & cut("age", [40])]),
        ("age>=30", [where("age", ">=", 30)]),
        ("age < 30.5", [where("age", "<", 30.5)]),
        ("sex=male, sex!=male", [where("sex", "==", "male"), where("sex", "!=", "male")]),
        ("region == north", [where("region", "==", "north")]),
        ('"a,b", "say ""x"""', [by("a,b"), by('say "x"')]),
        ('"a,b":3', [cut("a,b", [3])]),
        ("at:3", [by("at:3")]),
        ('"p&q" & sex', [by("p&q") & by("sex")]),
        ("x>1", [by("x>1")]),
        (
            "sex, age:35|50, smoker, region & smoker",
            [by("sex"), cut("age", [35, 50]), by("smoker"), by("region") & by("smoker")],
        ),
    ],
)
def test_groups(text, expected):
    assert parse_groups(text, COLUMNS, "data.csv") == expected


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("", DataError),
        ("sex,", DataError),
        ("& sex", DataError),
        ('"sex', DataError),
        ("shop", DataError),
        ("shop:3", DataError),
        ("shop=3", DataError),
        ("age:", GroupError),
        ("age:x", GroupError),
        ("age>old", GroupError),
        ("age:50|35", GroupError),
    ],
)
def test_refused(text, error):
    with pytest.raises(error):
        parse_groups(text, COLUMNS, "data.csv")


def test_features_and_names():
    assert parse_features("age:18|64, region, at:3", COLUMNS, "data.csv") == {
        "age": (18.0, 64.0),
        "region": None,
        "at:3": None,
    }
    with pytest.raises(DataError, match="two ends"):
        parse_features("age:18", COLUMNS, "data.csv")
    assert parse_names('sex, "a,b"') == ["sex", "a,b"]
