"""Declarations as text: TOML, and one line of the command line."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwise.errors import DataError, GroupError
from groupwise.groups import Group, by, cut, dumps, from_dict, loads, pairs, weight, where
from groupwise.groups.text import parse_features, parse_groups, parse_names

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


def unknown(name: str, what: str) -> DataError:
    return DataError(f"There is no column {name!r} {what}.")


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
    assert parse_groups(text, COLUMNS, unknown) == expected


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
        parse_groups(text, COLUMNS, unknown)


def test_features_and_names():
    assert parse_features("age:18|64, region, at:3", COLUMNS, unknown) == {
        "age": (18.0, 64.0),
        "region": None,
        "at:3": None,
    }
    with pytest.raises(DataError, match="two ends"):
        parse_features("age:18", COLUMNS, unknown)
    assert parse_names('sex, "a,b"') == ["sex", "a,b"]
