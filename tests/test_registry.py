"""The registry: groups that only look alike, pairs and priors."""

import copy
import json
import math
import pickle
import random
from pathlib import Path
from typing import Any

import pandas
import pytest

import groupwise as gw
from groupwise import archive
from groupwise.errors import GroupError, TicketError
from groupwise.groups import Groups, by, pairs
from groupwise.registry import Registry
from groupwise.ticket import Ticket
from tests.people import data, loop
from tests.plain import PLAIN
from tests.states import state_of

MERGED = {"a": "m & b=z", "b": None, "u": 0.25}
APART = {"a": "m", "b": "z", "u": 0.75}
"""Rows in groups that only look alike: ``a=m & b=z`` is a value, and a pair of values."""
TWICE = {"a": "m & b=z", "b": "z", "u": 0.5}


def look_alikes(**options):
    declared = [gw.by("a"), gw.by("b"), gw.pairs(gw.by("a"), gw.by("b"))]
    return gw.Groupwise(declared, features=["u"], **PLAIN, **options)


def look_alike_rows(count=60):
    generator = random.Random(1)
    rows: list[dict[str, Any]] = [
        MERGED,
        APART,
        TWICE,
        {**TWICE, "a": None},
        {**APART, "b": "z & b=z"},
    ]
    return [
        ({**generator.choice(rows), "u": generator.random()}, generator.random())
        for _ in range(count)
    ]


def table(model):
    """The whole regret table; the figures of every group."""
    return [tuple(row.items()) for row in model.regret()]


def keys(model):
    return [member.key for member in model._registry.members]


def masses_of(model):
    """The prior masses of all groups, by number; each group has one learner."""
    return state_of(model)["aggregator.mass"][:, 0].tolist()


def test_groups_that_look_alike_stay_two():
    model = look_alikes()
    one, other = model.predict(MERGED), model.predict(APART)
    assert one.names == ["a=m & b=z", "always_on"]
    assert other.names == ["a=m", "b=z", "a=m & b=z", "always_on"]
    model.learn(one, 0.1)
    model.learn(other, 0.9)
    rows = [(row["group"], row["rounds"]) for row in model.regret()]
    assert rows == [
        ("a=m & b=z", 1.0),
        ("a=m", 1.0),
        ("b=z", 1.0),
        ("a=m & b=z", 1.0),
        ("always_on", 2.0),
    ]
    assert model.regret()["a=m & b=z"] == model.regret().rows[0]
    assert model.feature_names == ["(intercept)", "u", "a=m & b=z", "a=m", "b=z"]


def test_only_pairs_have_the_masses_of_pairs():
    model = look_alikes()
    for row in (MERGED, APART, TWICE):
        model.learn_one(row, 0.5)
    assert keys(model) == [
        (0, ("m & b=z",)),
        (-1, ()),
        (0, ("m",)),
        (1, ("z",)),
        (2, (0, 1, "m", "z")),
        (2, (0, 1, "m & b=z", "z")),
    ]
    assert masses_of(model) == [1.0, 1.0, 1.0, 1.0, 1 / 2, 1 / 6]
    named = look_alikes(prior={"a=m & b=z": 3.0})  # both groups of that name
    for row in (MERGED, APART, TWICE):
        named.learn_one(row, 0.5)
    assert masses_of(named) == [3.0, 1.0, 1.0, 1.0, 3.0, 1 / 6]


def test_loop_replay_and_snapshot_agree_on_look_alikes(tmp_path):
    rows = look_alike_rows()
    loop, whole, halves = look_alikes(), look_alikes(), look_alikes()
    for row, label in rows:
        loop.learn_one(row, label)
    frame = pandas.DataFrame([{**row, "y": label} for row, label in rows])
    result = whole.replay(frame, "y")
    assert table(whole) == table(loop)
    assert keys(whole) == keys(loop)
    assert result.groups(0) == loop.predict(rows[0][0]).names
    halves.replay(frame[:30], "y")
    halves.save(tmp_path / "half.gw")
    halves = gw.load(tmp_path / "half.gw")
    for row, label in rows[30:]:
        halves.learn_one(row, label)
    assert table(halves) == table(loop)
    assert keys(halves) == keys(loop)
    for model in (copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))):
        assert keys(model) == keys(loop)
        assert [model.predict_one(row) for row, _ in rows] == [
            loop.predict_one(row) for row, _ in rows
        ]
        for row, label in rows:
            model.learn_one(row, label)
        assert keys(model) == keys(loop)


def two_of_a_name():
    declared = [gw.by("a"), gw.by("a=b"), gw.cut("u", [0.5], ["x=1", "y"]), gw.by("u: x")]
    return gw.Groupwise(declared, features=["u"])


def test_two_groups_of_a_name_in_one_row_go_through_json(tmp_path):
    row = {"a": "b=c", "a=b": "c", "u": 0.25, "u: x": 1}
    straight, through = two_of_a_name(), two_of_a_name()
    through.save(tmp_path / "before.gw")
    for label in (0.25, 0.5, 0.75):
        straight.learn_one(row, label)
        ticket = through.predict(row)
        again = Ticket.from_json(ticket.to_json())
        assert again.names == ticket.names == ["a=b=c", "a=b=c", "u: x=1", "u: x=1", "always_on"]
        assert len(again.groups) == 3
        assert again.to_json() == ticket.to_json()
        through.learn(again, label)
    assert table(through) == table(straight)
    assert [line["rounds"] for line in straight.regret()] == [3.0] * 5
    ticket = straight.predict(row)
    for given in (ticket, pickle.loads(pickle.dumps(ticket)), copy.deepcopy(ticket)):
        model = copy.deepcopy(straight)
        model.learn(given, 0.5)
        assert len(model._registry) == 5


def test_what_a_ticket_says_of_its_groups_is_signed():
    model = look_alikes()
    text = model.predict(APART).to_json()
    fields = json.loads(text)
    assert fields["members"][2] == ["a=m & b=z", 1.0, 2, [0, 1, "m", "z"]]
    fields["members"][2][3] = [0, 1, "m", "y"]
    without = {key: value for key, value in fields.items() if key != "members"}
    for forged in (fields, without):
        with pytest.raises(TicketError, match="not issued by this model"):
            model.learn(Ticket.from_json(json.dumps(forged)), 0.5)
    for members in ([["a=m", 1.0, "0", ["m"]]], [["a=m", 1.0, 0]], 3):
        with pytest.raises(TicketError, match="not a ticket written by"):
            Ticket.from_json(json.dumps({**fields, "members": members}))


ODD = Path(__file__).parent / "snapshots" / "groups_of_schema_2"


def test_a_file_and_tickets_of_names_alone_go_on():
    """Written by groupwise 0.1 (schema 2), with names that are hard to read."""
    wanted = json.loads(ODD.with_suffix(".json").read_text())
    model = gw.load(ODD.with_suffix(".gw"))

    def rows(seed):
        generator = random.Random(seed)
        for _ in range(20):
            yield (
                {
                    "shop": generator.choice(["R&D", "a: b", None]),
                    "town": generator.choice(["x=y", "not q"]),
                    "age": round(generator.random(), 3),
                    "w": generator.choice([0.0, 0.25, 1.0]),
                },
                round(generator.random(), 3),
            )

    def go_on(seed):
        for row, label in rows(seed):
            ticket = model.predict(row)
            model.learn(ticket, label)
            yield ticket.prediction

    predictions = list(go_on(2))
    for number, text in enumerate(wanted["tickets"]):
        model.learn(Ticket.from_json(text), 0.125 * number)
    predictions += list(go_on(3))
    assert predictions == pytest.approx(wanted["predictions"], abs=1e-7)
    lines = model.regret().rows
    assert [line["group"] for line in lines] == wanted["names"]
    for figure in ("regret", "certificate"):
        assert [line[figure] for line in lines] == pytest.approx(wanted[figure], rel=1e-7)


def test_a_ticket_of_names_alone_is_settled_by_its_row(tmp_path):
    """In groupwise 0.1 a ticket had no more; its signature was over what it had."""
    model, other = look_alikes(), look_alikes()
    for chosen in (model, other):
        chosen.learn_one(APART, 0.5)
    other._key = model._key
    ticket = model.predict(MERGED)
    older = copy.copy(ticket)
    older.by_name = True
    text = older.to_json()
    assert "members" not in json.loads(text)
    other.predict(MERGED)
    other.learn(Ticket.from_json(text), 0.25)
    model.learn(ticket, 0.25)
    assert table(other) == table(model)
    assert keys(other) == keys(model)
    nobody = gw.Groupwise([gw.by("a")], always_on=False, features=["u"])
    asleep = copy.copy(nobody.predict({"a": None, "u": 1.0}))
    asleep.by_name = True
    nobody.learn(Ticket.from_json(asleep.to_json()), 0.5)


def test_a_snapshot_tells_what_its_groups_are(tmp_path):
    model = look_alikes()
    for row in (MERGED, APART):
        model.learn_one(row, 0.5)
    path = tmp_path / "model.gw"
    model.save(path)
    header, _ = archive.read(path)
    assert header["schema"] == archive.SCHEMA
    assert header["names"] == model._registry.names
    assert header["members"][0] == [0, ["m & b=z"]]


def test_numbers_are_given_in_order_and_kept_when_admitted():
    groups = Groups([by("a"), by("b"), pairs(by("a"), by("b"))], always_on=True)
    registry = Registry(groups, {})
    assert registry.everybody == -1
    members, weights = groups.read(APART)
    for _ in range(2):  # asking changes nothing
        awake, new = registry.awake(members, weights)
        assert awake.groups.tolist() == [0, 1, 2, 3]
        assert new == tuple(members)
        assert registry.masses(new) == [1.0, 1.0, 0.5, 1.0]
        assert tuple(members) not in registry.together
    registry.admit(new)
    assert registry.everybody == 3
    assert registry.masses(groups.read(TWICE)[0]) == [1.0, 1.0, 1 / 6, 1.0]
    awake, new = registry.awake(members, weights)
    assert new == ()
    assert registry.together[tuple(members)] is awake
    awake, new = registry.awake(*groups.read(MERGED))
    assert awake.groups.tolist() == [4, 3]
    assert new == (groups.member(0, ("m & b=z",)),)
    again = Registry(groups, {})
    again.restore(json.loads(json.dumps(registry.to_dict())))
    assert again.members == registry.members
    older = Registry(groups, {})
    older.restore({"names": registry.names})
    assert older.members == registry.members
    for fields in (
        {"names": ["a=m"], "members": []},
        {"names": ["a=m"], "members": [[1, ["m"]]]},
        {"names": ["a=m", "a=m"], "members": [[0, ["m"]], [0, ["m"]]]},
        {"names": ["c=m"]},
    ):
        with pytest.raises(GroupError):
            Registry(groups, {}).restore(fields)


@pytest.mark.parametrize(
    "aggregator", [gw.aggregators.AdaNormalHedge(), gw.aggregators.Specialists()]
)
def test_intersections_are_made_as_they_are_seen(aggregator, tmp_path):
    declared = [gw.by("sex"), gw.by("region"), gw.cut("age", [0.5])]
    frame = data()
    models = [gw.Groupwise(declared, aggregator=aggregator, intersections=2) for _ in range(2)]
    looped, replayed = loop(models[0], frame), models[1]
    replayed.replay(frame, "y")
    assert looped.regret().rows == replayed.regret().rows
    groups = {line["group"] for line in looped.regret()}
    assert "sex=m & region=n" in groups
    assert len(groups) == 2 + 3 + 2 + (6 + 4 + 6) + 1
    explicit = gw.Groupwise([*declared, gw.pairs(*declared)], aggregator=aggregator)
    assert loop(explicit, frame).regret().rows == looped.regret().rows
    looped.save(tmp_path / "m.gw")
    assert gw.load(tmp_path / "m.gw").regret().rows == looped.regret().rows


def test_masses_are_fixed_at_creation_and_pairs_weigh_little():
    declared = [gw.by("sex"), gw.by("region")]
    model = loop(gw.Groupwise(declared, intersections=2, **PLAIN), data())
    names = model.group_names
    masses = dict(zip(names, masses_of(model), strict=True))
    pairs = [name for name in names if " & " in name]
    assert [masses[name] for name in pairs] == [1 / (n * (n + 1)) for n in range(1, 7)]
    assert all(masses[name] == 1.0 for name in names if name not in pairs)
    assert sum(masses[name] for name in pairs) < 1.0
    plain = loop(gw.Groupwise(declared, aggregator=gw.aggregators.Specialists()), data())
    crossed = loop(
        gw.Groupwise(declared, aggregator=gw.aggregators.Specialists(), intersections=2), data()
    )
    for line in plain.regret():
        other = crossed.regret()[line["group"]]
        assert other["aggregator"] - line["aggregator"] < math.log(7 / 6) / 2 + 1e-12


def test_intersections_pay_where_the_signal_is_one():
    frame = data(2000)
    declared = [gw.by("sex"), gw.by("region")]
    plain = gw.Groupwise(declared, indicators=False, features=["u"])
    crossed = gw.Groupwise(declared, indicators=False, features=["u"], intersections=2)
    for model in (plain, crossed):
        model.replay(frame, "y")
    assert crossed.regret()["always_on"]["loss"] < 0.5 * plain.regret()["always_on"]["loss"]


def test_priors_move_the_certificates():
    frame = data()
    declared = [gw.by("sex"), gw.by("region")]
    settings: dict[str, Any] = {
        "learner": gw.learners.Ridge(),
        "aggregator": gw.aggregators.Specialists(),
        "prior": {"region=n": 10.0},
    }
    model = gw.Groupwise(declared, **settings)
    model.replay(frame, "y")
    for line in model.regret():
        mass = 10.0 if line["group"] == "region=n" else 1.0
        assert line["aggregator"] == pytest.approx(math.log(15.0 / mass) / 2, rel=1e-12)
        assert line["regret"] <= line["certificate"] + 1e-9
