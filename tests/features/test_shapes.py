"""Hinges: knots at quantiles of the rows settled so far, fixed once set."""

import random
from fractions import Fraction
from typing import Any, cast

import numpy as np
import pandas
import polars
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from tests.features.making import assert_same, loop, model, stream

STAGES = ((10, 1), (25, 3), (60, 7))


class Settled:
    """The values of a field as they were settled: the definition."""

    def __init__(self, stages=STAGES):
        self.stages, self.values, self.knots, self.had = stages, [], [], set()

    def settle(self, x):
        self.values.append(x)
        for rows, count in self.stages:
            if rows == len(self.values):
                self.set(sorted(self.values), count)

    def set(self, values, count):
        positions = {Fraction(i, count + 1) for i in range(1, count + 1)}
        for position in sorted(positions - self.had):
            knot = values[int(position * len(values))]
            places = [place for place, _ in self.knots]
            if values[0] < knot < values[-1] and knot not in places:
                span = values[-1] - values[0]
                unit = next(2.0**k for k in range(-60, 60) if 2.0**k > span)
                self.knots.append((knot, unit))
        self.had |= positions

    def expected(self, x):
        return [max(x - eight_digits(knot), 0.0) / unit for knot, unit in self.knots]


def eight_digits(x):
    """The number with eight binary digits that is closest."""
    step = next(Fraction(2) ** k for k in range(-60, 60) if Fraction(2) ** (k + 8) > abs(x))
    return float(round(Fraction(x) / step) * step)


@pytest.mark.parametrize("late", [0, 3, 40])
def test_knots_are_quantiles_of_what_was_settled(late):
    generator = random.Random(late)
    one = model([gw.hinges(["age", "size"], STAGES), gw.calendar("when")])
    fields = {name: Settled() for name in ("age", "size")}
    waiting = []
    for row in stream(150, seed=late):
        y = row.pop("y")
        ticket = one.predict(row)
        for name, settled in fields.items():
            made = [v for k, v in ticket.derived.items() if k.startswith(f"{name} above ")]
            assert made == settled.expected(row[name])
        waiting.append((ticket, row, y))
        while len(waiting) > late:
            chosen, its_row, label = waiting.pop(generator.randrange(len(waiting)))
            one.learn(chosen, label)
            for name, settled in fields.items():
                settled.settle(its_row[name])
    assert len(fields["size"].knots) == 7


def test_fields_that_do_not_bend_have_no_knots():
    one = gw.Groupwise([], features=[gw.hinges(knots=[(20, 3)])])
    for t in range(30):
        row = {"constant": 4.0, "half": t % 2, "truth": t % 3 == 0, "text": "ab"[t % 2], "x": t % 4}
        one.learn_one(row, 0.5)
    assert list(one.predict(row).derived) == ["x above 1", "x above 2"]


def test_the_fields_that_are_features():
    """None means number fields among the features; what others make has to be named."""
    past, declared = gw.past("y", mean=()), {"age": (18, 70), "code": gw.hashed(4)}
    features: list[Any] = [declared, past, gw.hinges(["age", "y 1 ago"], [(9, [0.5])])]
    one = gw.Groupwise([gw.weight("share")], features=features)
    generator = np.random.default_rng(0)
    for t in range(20):
        row = {"age": t, "other": t, "code": t % 5, "share": t / 20}
        one.learn_one(row, float(generator.random()))
    assert {name.split(" above ")[0] for name in one.predict(row).derived} == {"y 1 ago", "age"}
    named = gw.Groupwise([gw.weight("share")], features=[declared, past, gw.hinges(knots=[(9, 1)])])
    for t in range(20):
        named.learn_one({"age": t, "other": t, "code": t % 5, "share": t / 20}, t / 20)
    assert list(named.predict(row).derived) == ["y 1 ago", "age above 4"]
    every = gw.Groupwise([gw.weight("share")], features=[gw.hinges(knots=[(9, 1)])])
    for t in range(20):
        every.learn_one({"age": t, "other": t, "share": t / 20}, 0.5)
    assert list(every.predict(row).derived) == ["age above 4", "other above 4"]


def test_hindsight_is_of_the_grown_class():
    """A knot set along the stream is a feature that was 0 before: least squares by hand."""
    rows = stream(200, seed=5, missing=False)
    one = model([{"age": None, "size": None}, gw.hinges(knots=STAGES), gw.calendar("when", "hour")])
    tickets = loop(one, rows)
    names = one.feature_names
    matrix = np.zeros((len(rows), len(names)))
    for t, ticket in enumerate(tickets):
        encoded: Any = ticket.encoded
        matrix[t, encoded.indices] = encoded.values
    labels = np.array([row["y"] for row in rows])
    made = [i for i, name in enumerate(names) if " above " in name]
    assert len(made) == 14
    assert not matrix[:10, made].any()
    for group, line in ((g, one.regret()[g]) for g in ("always_on", "store=s1")):
        kept = np.array([group in ticket.groups for ticket in tickets])
        fit = np.linalg.lstsq(matrix[kept], labels[kept], rcond=None)[0]
        best = float(((matrix[kept] @ fit - labels[kept]) ** 2).sum())
        assert line["best_loss"] == pytest.approx(best, rel=1e-9, abs=1e-9)
        assert line["regret"] <= line["certificate"] + 1e-9 * 100 * kept.sum()


def test_a_name_that_is_there_already_is_left_alone():
    one = gw.Groupwise([], features=[gw.hinges("x", knots=[(4, 1)])])
    rows = [{"x": x, "x above 2": 0.5} for x in (0, 1, 2, 3, 4, 5)]
    for row in rows:
        one.learn_one(row, 0.5)
    assert one.predict(rows[0]).derived == {}
    other = gw.Groupwise([], features=[gw.hinges("x", knots=[(4, 1)])])
    other.replay(polars.DataFrame(rows).with_columns(y=0.5), target="y")
    assert_same(one, other)


def test_missing_numbers_bend_nothing_and_count_for_nothing():
    rows = [{"x": None if t % 3 == 0 else float(t), "u": 1.0, "y": 0.5} for t in range(30)]
    features = ["u", gw.hinges("x", knots=[(5, 1)])]
    one, other = (gw.Groupwise([], features=features) for _ in range(2))
    tickets = loop(one, rows)
    assert tickets[7].derived == {}
    assert tickets[8].derived == {"x above 4": 4.0 / 8.0}
    assert tickets[9].derived == {"x above 4": 0.0}
    other.replay(polars.DataFrame(rows), target="y")
    assert_same(one, other)


def test_columns_of_objects_are_read_value_by_value():
    rows = [{"x": [t, float(t), np.int64(t)][t % 3], "u": 1.0, "y": 0.5} for t in range(20)]
    features = ["u", gw.hinges("x", knots=[(5, 1)])]
    one, other = (gw.Groupwise([], features=features) for _ in range(2))
    loop(one, rows)
    frame = pandas.DataFrame(rows)
    frame["x"] = pandas.Series([row["x"] for row in rows], dtype=object)
    other.replay(frame, target="y")
    assert_same(one, other)


@pytest.mark.parametrize("far", [1e100, -1e100, 1e99])
def test_very_far_values(far):
    one = gw.Groupwise([], features=["u", gw.hinges("x", knots=[(3, 1)])])
    for x in (0.0, 1e-300, 2e-300):
        one.learn_one({"x": x, "u": 0.0}, 0.5)
    (made,) = one.predict({"x": far, "u": 0.0}).derived.values()
    assert 0.0 <= made <= 1e100


@pytest.mark.parametrize("bad", ["text", float("inf"), 1e101, 10**400, [1]])
def test_named_columns_hold_numbers(bad):
    one = gw.Groupwise([], features=["u", gw.hinges("x")])
    with pytest.raises(FeatureError, match=r"which gw.hinges cannot bend"):
        one.predict({"x": bad, "u": 0.0})
    frame = pandas.DataFrame({"u": [0.0, 0.0], "y": [0.5, 0.5]})
    frame["x"] = pandas.Series([1.0, bad], dtype=object)
    with pytest.raises(FeatureError, match=r"row 1: .*which gw.hinges cannot bend"):
        one.replay(frame, target="y")
    with pytest.raises(FeatureError, match=r"no field 'x', which gw.hinges reads"):
        one.predict({"u": 0.0})


def test_many_fields_have_hinges_up_to_a_bound():
    rows = [{f"x{i}": float(t * (i + 1)) for i in range(300)} | {"y": 0.5} for t in range(6)]
    options: Any = {"features": [gw.hinges(knots=[(4, 1)])], "learner": gw.learners.Ridge()}
    one, other = (gw.Groupwise([], **options) for _ in range(2))
    tickets = loop(one, rows)
    assert len(tickets[-1].derived) == 256
    other.replay(polars.DataFrame(rows), target="y")
    assert one.feature_names == other.feature_names


@pytest.mark.parametrize(
    "knots",
    [
        *((), ((100,),), ((1, 1),), ((10, 0),), ((10, 3), (5, 7)), ((10, 3), (10, 7)), 5),
        *(((10, 1.5),), ((10, (0.5, 1.0)),), ((10, (0.0,)),), ((10, ()),), ((10, "ab"),)),
        *(((10, (float("nan"),)),), ((10, 1001),), ((10**6, 3),)),
    ],
    ids=str,
)
def test_bad_parameters(knots):
    with pytest.raises(FeatureError, match="Give pairs"):
        gw.hinges(knots=knots)


def test_bad_columns():
    for columns in cast(list[Any], ([], [1], ["a", "a"])):
        with pytest.raises(FeatureError):
            gw.hinges(columns)
    with pytest.raises(FeatureError, match="bend the same columns"):
        gw.Groupwise([], features=[gw.hinges("a"), gw.hinges()])
    assert gw.hinges("a", {10: 3}) == gw.hinges(["a"], [(10, [0.25, 0.5, 0.75])])


def test_hinges_are_in_units_of_the_declared_range():
    one = gw.Groupwise([], features=[{"x": (0, 64)}, gw.hinges(knots=[(4, 1)])])
    for x in (16, 24, 32, 56):
        one.learn_one({"x": x}, 0.5)
    assert one.predict({"x": 48}).derived == {"x above 32": 0.25}


@pytest.mark.parametrize("offset", [0.0, 2011.0, 1e7, 1.7e9, 1e12])
@pytest.mark.parametrize("ranged", [False, True])
def test_knots_are_as_fine_as_the_range_whatever_the_offset(offset, ranged):
    """A knot lies where its name says, to 1/256 of the range of the values, and no two agree."""
    generator = np.random.default_rng(0)
    values = offset + 8.0 * generator.random(256)
    features = [{"x": (0.0, 4.0 * (offset + 8.0))} if ranged else "x", gw.hinges()]
    one = gw.Groupwise([], features=features)
    for x in values.tolist():
        one.learn_one({"x": x}, 0.5)
    made = list(one.predict({"x": offset}).derived)
    expected = np.sort(values)[[int(q * 256) for q in (0.05, 0.275, 0.5, 0.725, 0.95)]]
    assert [float(name.split()[-1]) for name in made] == expected.tolist()
    spread = (values.max() - values.min()) / 256
    scale = 4.0 * (offset + 8.0) if ranged else 8.0  # the power of 2 above the range
    for knot, name in zip(expected.tolist(), made, strict=True):
        below, above = (one.predict({"x": knot + d * spread}).derived[name] for d in (-1, 3))
        assert below == 0.0
        assert 2 * spread <= above * scale <= 4 * spread


def test_few_values_have_no_two_knots_at_one_place():
    one = gw.Groupwise([], features=[gw.hinges("x", [(50, 9)])])
    for k in range(50):
        one.learn_one({"x": 1.0 + (k % 10) * 1e-4 if k else 3.0}, 0.5)
    made = one.predict({"x": 2.5}).derived
    assert len(set(made.values())) == len(made)
