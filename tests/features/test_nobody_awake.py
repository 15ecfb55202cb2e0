"""Rows in no group: they are checked as any other, and leave no trace among the features."""

from typing import Any

import numpy as np
import pandas as pd
import polars
import pytest

import groupwise as gw
from groupwise.errors import FeatureError


def rows(count=200, seed=0):
    """Some are in no group; new levels and fields come with these and with others."""
    generator = np.random.default_rng(seed)
    for t in range(count):
        row: dict[str, Any] = {
            "in": float(generator.random() < 0.4),
            "x": float(generator.normal()),
            "level": f"l{generator.integers(1 + t // 4)}",
            "other": f"o{generator.integers(1 + t // 8)}" if generator.random() < 0.8 else None,
            "late": float(generator.random()) if t > 20 and generator.random() < 0.7 else 0.0,
        }
        yield row, float(generator.random())


def models(**options):
    settings = {"always_on": False, "indicators": True, **options}
    return (gw.Groupwise([gw.weight("in"), gw.where("x", ">", 1)], **settings) for _ in range(2))


@pytest.mark.parametrize("options", [{}, {"features": ["x", "level"]}, {"max_levels": 5}])
@pytest.mark.parametrize("library", [pd.DataFrame, polars.DataFrame])
@pytest.mark.filterwarnings("ignore::groupwise.errors.ManyLevelsWarning")
def test_loop_and_replay_number_features_alike(options, library):
    loop, replay = models(**options)
    stream = list(rows())
    predictions = []
    for row, label in stream:
        ticket = loop.predict(row)
        predictions.append(ticket.prediction)
        loop.learn(ticket, label)
    asleep = [not loop.groups.read(row)[0] for row, _ in stream]
    assert 20 < sum(asleep) < 180
    frame = library([{**row, "y": label} for row, label in stream])
    found = [*replay.replay(frame[:77], "y").prediction, *replay.replay(frame[77:], "y").prediction]
    assert found == predictions
    assert replay.feature_names == loop.feature_names
    assert replay.field_kinds == loop.field_kinds
    assert replay.regret().rows == loop.regret().rows


def test_they_admit_nothing():
    loop, replay = models(intercept=False)
    frame = pd.DataFrame({"in": 0.0, "x": [0.5, -1.0], "level": ["a", "b"], "y": 0.5})
    replay.replay(frame, "y")
    for row in frame.drop(columns="y").to_dict("records"):
        loop.learn_one(row, 0.5)
    assert loop.feature_names == replay.feature_names == []
    for model in (loop, replay):  # so that the field may still be of the other kind
        model.learn_one({"in": 1.0, "x": 0.0, "level": 3.0}, 0.5)
        assert model.field_kinds["level"] == "number"


@pytest.mark.parametrize(
    "column", [[None, 1.0, None, 2.0], ["a", 1.0, 2.0, 3.0], [1.0, "a", "b", 2]]
)
@pytest.mark.parametrize(
    "awake", [[0, 0, 1, 1], [0, 1, 0, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 1, 1, 1]]
)
def test_what_is_wrong_is_wrong_in_both(column, awake):
    loop, replay = models()
    outcomes: list[Any] = []
    try:
        for value, weight in zip(column, awake, strict=True):
            loop.learn_one({"in": float(weight), "x": 0.0, "mixed": value}, 0.5)
        outcomes.append(loop.feature_names)
    except FeatureError as error:
        outcomes.append(error.message)
    frame = pd.DataFrame({"in": np.array(awake, float), "x": 0.0, "y": 0.5})
    frame["mixed"] = pd.Series(column, dtype=object)
    try:
        replay.replay(frame, "y")
        outcomes.append(replay.feature_names)
    except FeatureError as error:
        outcomes.append(error.message)
    assert outcomes[0] == outcomes[1]
