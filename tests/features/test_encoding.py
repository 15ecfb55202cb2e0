"""The mean label of each value, against its definition."""

import random
from typing import Any

import numpy as np
import polars
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from tests.features.making import loop, model, remembered, stream


@pytest.mark.parametrize("late", [0, 5, 70])
def test_means_are_of_the_labels_settled(late):
    generator = random.Random(late)
    one = model([gw.encoded("city", strength=3), gw.encoded("store", 0.5), gw.calendar("when")])
    settled: list[Any] = []
    waiting: list[Any] = []
    for row in stream(150, seed=late):
        y = row.pop("y")
        ticket = one.predict(row)
        for column, strength in (("city", 3.0), ("store", 0.5)):
            own = [
                label
                for value, label in ((r[column], s) for r, s in settled)
                if value == row[column]
            ]
            own = own if row[column] is not None else []
            usual = np.mean([label for _, label in settled]) if settled else 0.5
            mean = (sum(own) + strength * usual) / (len(own) + strength)
            made = ticket.derived[f"{column} encoded"], ticket.derived[f"{column} known"]
            np.testing.assert_allclose(made, (mean, len(own) / (len(own) + strength)), rtol=1e-12)
        waiting.append((ticket, row, y))
        while len(waiting) > late:
            chosen, its_row, label = waiting.pop(generator.randrange(len(waiting)))
            one.learn(chosen, label)
            settled.append((its_row, (label + 2.0) / 10.0))


def test_the_column_is_no_feature_besides():
    rows = stream(40)
    one = model([gw.encoded("city"), gw.calendar("when")])
    loop(one, rows)
    assert "city" not in one.field_kinds
    assert not [name for name in one.feature_names if name.startswith("city=")]
    named = gw.Groupwise([], features=["city", gw.encoded("city")])
    named.learn_one({"city": "Rome"}, 0.5)
    assert named.feature_names == ["(intercept)", "city=Rome", "city encoded", "city known"]


def test_groups_stay_one_per_value():
    one = gw.Groupwise([gw.by("city")], features=[gw.encoded("city")])
    for city in "abcab":
        one.learn_one({"city": city}, 0.5)
    assert one.group_names == ["city=a", "always_on", "city=b", "city=c"]
    assert [name for name in one.feature_names if name.startswith("city=")] == [
        "city=a",
        "city=b",
        "city=c",
    ]


def test_the_values_settled_last_are_remembered():
    rows = stream(120, seed=2)
    features = [gw.encoded("city", keys=4), gw.calendar("when")]
    one, other = model(features), model(features)
    loop(one, rows)
    latest = list(dict.fromkeys(row["city"] for row in reversed(rows)))[:4]
    assert remembered(one)[0][0]["keys"] == [[city] for city in reversed(latest)]
    other.replay([polars.DataFrame(rows[:70]), polars.DataFrame(rows[70:])], target="y")
    assert remembered(one) == remembered(other)


@pytest.mark.parametrize(
    "parameters",
    [
        {"column": 1},
        {"strength": 0},
        {"strength": -1.0},
        {"strength": "1"},
        {"strength": 1e300},
        {"keys": 0},
    ],
    ids=str,
)
def test_bad_parameters(parameters):
    with pytest.raises(FeatureError):
        gw.encoded(**{"column": "city", **parameters})
