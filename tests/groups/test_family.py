"""All declarations together: what a group is, and which of its kind."""

import copy
import itertools
import pickle
from typing import Any

import polars
import pytest

from groupwise.errors import GroupError
from groupwise.groups import Group, Groups, Member, by, cut, pairs, weight, where


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


def test_a_text_is_no_list_of_declarations() -> None:
    with pytest.raises(GroupError, match=r"such as \[gw\.by\('sex'\)\], not a text"):
        Groups("sex", always_on=True)  # type: ignore[arg-type]


def test_declarations_that_only_look_alike_are_fine() -> None:
    Groups([by("a"), where("a", "==", 1) & by("b"), where("a", "!=", 1), cut("b", [1])], True)
    Groups([by("a") & where("b", "==", 1), by("a") & where("b", "==", 2)], True)


def test_two_groups_of_the_same_name_in_a_row_stay_two() -> None:
    groups = Groups([by("a"), by("a=b"), cut("c", [1], labels=["x=1", "y"]), by("c: x")], False)
    row = {"a": "b=c", "a=b": "c", "c": 0.5, "c: x": 1}
    members, weights = groups.read(row)
    assert [member.name for member in members] == ["a=b=c", "a=b=c", "c: x=1", "c: x=1"]
    assert [member.key for member in members] == [
        (0, ("b=c",)),
        (1, ("c",)),
        (2, (0,)),
        (3, ("1",)),
    ]
    assert len(set(members)) == len(weights) == 4
    found = groups.of_frame(polars.DataFrame([row, row]))
    assert found.members == members
    assert found.indices.tolist() == [0, 1, 2, 3] * 2


HOSTILE = ["m", "z", "m & b=z", "x=y", "a: b", "A | B", "(p)", "not q", "", " & ", "b=z & a=m", "&"]


def hostile_groups() -> Groups:
    some = cut("u", [0.5], labels=["young & b=z", "a=m"])
    return Groups(
        [
            by("a"),
            by("b"),
            some,
            where("a", "in", ["m", "x=y"]),
            weight("w"),
            by("a") & (some | weight("w")),
            ~(where("a", "!=", "m") & weight("w")),
            pairs(by("a"), by("b"), some),
            by("b") & pairs(by("a"), some, weight("w")),
        ],
        always_on=True,
    )


def test_values_say_which_group_it_is_and_names_do_not() -> None:
    groups = hostile_groups()
    seen: dict[tuple[int, Any], Member] = {}
    rows = [
        {"a": a, "b": b, "u": u, "w": w}
        for a, b, u, w in itertools.product([None, *HOSTILE], [None, *HOSTILE], [0, 1], [0.5, 0])
    ]
    for row in rows:
        for member in groups.read(row)[0]:
            assert seen.setdefault(member.key, member) is member
            assert groups.member(*member.key) is member
    assert len({member.name for member in seen.values()}) < len(seen)
    frame = groups.of_frame(polars.DataFrame(rows))
    assert set(frame.members) == set(seen.values())
    listed = [[member.name for member in groups.read(row)[0]] for row in rows]
    ends = frame.indptr.tolist()
    names = [frame.names[i] for i in frame.indices.tolist()]
    assert listed == [names[low:high] for low, high in itertools.pairwise(ends)]


def test_a_group_is_found_by_a_name_that_it_has() -> None:
    groups = hostile_groups()
    for a, b, u in itertools.product([None, *HOSTILE], [None, *HOSTILE], [0, 1]):
        for member in groups.read({"a": a, "b": b, "u": u, "w": 0.5})[0]:
            found = groups.named(member.name)
            assert found.name == member.name
            if groups.is_pair(member):
                assert groups.is_pair(found)
            if groups.indicator(found) is not None:
                assert found is member
    for name in ("c=1", "a", "a & b", "", "not a=m", "u: ", "(w)"):
        with pytest.raises(GroupError, match="No declaration has a group named"):
            groups.named(name)
    assert groups.named("always_on") is groups.everybody
    with pytest.raises(GroupError, match="always_on"):
        Groups([by("a")], always_on=False).named("always_on")


@pytest.mark.parametrize(
    ("declaration", "values"),
    [
        (0, ()),
        (0, (1,)),
        (0, ("m", "z")),
        (2, (2,)),
        (2, (-1,)),
        (2, ("0",)),
        (3, (0,)),
        (5, ("m", 2)),
        (7, (0, 0, "m", "z")),
        (7, (0, 3, "m", "z")),
        (7, (0, 1, "m")),
        (9, ()),
        (-2, ()),
        (-1, (0,)),
    ],
)
def test_values_that_mean_no_group_are_refused(declaration: int, values: Any) -> None:
    with pytest.raises(GroupError):
        hostile_groups().member(declaration, values)


def test_members_are_one_object_through_copies_and_pickles() -> None:
    groups = hostile_groups()
    row = {"a": "m", "b": "z", "u": 1, "w": 0.5}
    members = groups.read(row)[0]
    assert copy.deepcopy(members) == members
    assert copy.deepcopy(groups).read(row)[0] == members
    again, moved = pickle.loads(pickle.dumps((groups, members)))
    assert again.read(row)[0] == moved
    assert [one.key for one in moved] == [one.key for one in members]
    assert all(one is not other for one, other in zip(moved, members, strict=True))


def test_values_that_were_only_asked_about_are_forgotten() -> None:
    groups = Groups([by("x")], always_on=True)
    for value in range(20_000):
        groups.read({"x": value / 7 + 0.01})
    assert len(groups._members) <= 4097


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
    assert groups.indicator(groups.named("sex=male")) is not None
    assert groups.indicator(groups.named("sex=male")).column == "sex"  # type: ignore[union-attr]
    assert groups.indicator(groups.named("bmi=30")).column == "bmi"  # type: ignore[union-attr]
    for name in ("age: > 35", "bmi > 30", "not (w & v)", "w & v | u"):
        assert groups.indicator(groups.named(name)) is not None, name
        assert groups.indicator(groups.named(name)).column is None  # type: ignore[union-attr]
    for name in ("always_on", "sex=male & smoker=true", "age: > 35 & w", "age: <= 35 & w"):
        assert groups.indicator(groups.named(name)) is None, name


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
