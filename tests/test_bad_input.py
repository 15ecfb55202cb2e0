"""Bad input: a clear error of the right kind, and not a bit of the state changed."""

import math
from typing import Any

import numpy as np
import pandas
import polars
import pytest

import groupwise as gw
from groupwise.errors import (
    ConfigurationError,
    FeatureError,
    GroupError,
    GroupwiseError,
    LabelError,
)


def make(**options):
    settings = {"loss": gw.losses.Square(0, 10), "seed": 1, **options}
    model = gw.Groupwise([gw.by("sex"), gw.cut("age", [40]), gw.weight("share")], **settings)
    for t in range(12):
        row = {"sex": "mf"[t % 2], "age": 30.0 + 2 * t, "share": t / 12, "bmi": 0.1 * t}
        model.learn_one(row, t / 2)
    return model


GOOD = {"sex": "m", "age": 33.0, "share": 0.5, "bmi": 0.2}


def state(model, tmp_path):
    path = tmp_path / "state.gw"
    model.save(path)
    return path.read_bytes()


BAD_ROWS = {
    "NaN in a feature": ({**GOOD, "bmi": math.nan}, FeatureError, "'bmi' is nan"),
    "infinity in a feature": ({**GOOD, "bmi": math.inf}, FeatureError, "'bmi' is inf"),
    "a number beyond all bounds": ({**GOOD, "bmi": 1e200}, FeatureError, "'bmi' is 1e\\+200"),
    "two that cancel": ({**GOOD, "bmi": 1e200, "age": -1e200}, FeatureError, "is -?1e\\+200"),
    "text in a number": ({**GOOD, "bmi": "0.2"}, FeatureError, "'bmi' held numbers"),
    "number in a text": ({**GOOD, "sex": 3.5}, FeatureError, "'sex' held text"),
    "a list": ({**GOOD, "other": [1]}, FeatureError, "neither number nor text"),
    "group field missing": ({"age": 1.0, "share": 0.1}, GroupError, "no field 'sex'"),
    "weight above one": ({**GOOD, "share": 1.5}, GroupError, "share"),
    "weight below zero": ({**GOOD, "share": -0.5}, GroupError, "share"),
    "text in a cut": ({**GOOD, "age": "young"}, GroupError, "age"),
    "empty row": ({}, GroupwiseError, "field"),
    "not a mapping": ([1, 2], GroupwiseError, "."),
    "a number for a row": (3, GroupwiseError, "."),
    "None for a row": (None, GroupwiseError, "."),
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_bad_rows(name, tmp_path):
    row, error, message = BAD_ROWS[name]
    model = make()
    before = state(model, tmp_path)
    for call in (model.predict, model.predict_one, lambda row: model.learn_one(row, 1.0)):
        with pytest.raises(error, match=message):
            call(row)
        assert state(model, tmp_path) == before
    model.learn_one(GOOD, 1.0)


BAD_LABELS = {
    "above": (10.001, "outside \\[0, 10\\]. Give losses.Square\\(low, high\\)"),
    "below": (-1, "outside"),
    "NaN": (math.nan, "NaN"),
    "infinite": (math.inf, "outside"),
    "text": ("3", "not a number"),
    "None": (None, "not a number"),
    "truth": (True, "not a number"),
    "list": ([1.0], "not a number"),
    "complex": (1j, "not a number"),
    "array": (np.array([1.0, 2.0]), "not a number"),
}


@pytest.mark.parametrize("name", BAD_LABELS)
def test_bad_labels(name, tmp_path):
    label, message = BAD_LABELS[name]
    model = make()
    ticket = model.predict(GOOD)
    before = state(model, tmp_path)
    with pytest.raises(LabelError, match=message):
        model.learn(ticket, label)
    assert state(model, tmp_path) == before
    model.learn(ticket, np.float32(5.0))


GROUPS = [gw.by("sex")]
BAD_SETTINGS: dict[str, tuple[dict[str, Any], type[GroupwiseError]]] = {
    "no groups at all": ({"groups": [], "always_on": False}, GroupError),
    "a group alone": ({"groups": gw.by("sex")}, GroupError),
    "not a group": ({"groups": ["sex"]}, GroupError),
    "groups that are none": ({"groups": None}, GroupError),
    "twice the same": ({"groups": [gw.by("sex"), gw.by("sex")]}, GroupError),
    "the same name": ({"groups": [gw.by("sex"), gw.where("sex", "==", "m")]}, GroupError),
    "mean play of a discrete loss": (
        {"loss": gw.losses.ZeroOne(), "play": "mean"},
        ConfigurationError,
    ),
    "unknown play": ({"play": "median"}, ConfigurationError),
    "play that is none": ({"play": ["mean"]}, ConfigurationError),
    "specialists for absolute loss": (
        {"loss": gw.losses.Absolute(), "aggregator": gw.aggregators.Specialists()},
        ConfigurationError,
    ),
    "specialists with a play": (
        {"aggregator": gw.aggregators.Specialists(), "play": "mean"},
        ConfigurationError,
    ),
    "prod for log loss": (
        {"loss": gw.losses.Log(), "aggregator": gw.aggregators.Prod()},
        ConfigurationError,
    ),
    "prod with a play": (
        {"aggregator": gw.aggregators.Prod(), "play": "mean"},
        ConfigurationError,
    ),
    "prod unclipped": (
        {"aggregator": gw.aggregators.Prod(), "clip": False},
        ConfigurationError,
    ),
    "specialists unclipped": (
        {"aggregator": gw.aggregators.Specialists(), "clip": False},
        ConfigurationError,
    ),
    "log loss without a floor": (
        {"loss": gw.losses.Log(), "aggregator": gw.aggregators.AdaNormalHedge()},
        ConfigurationError,
    ),
    "loss that is none": ({"loss": "square"}, ConfigurationError),
    "learner that is none": ({"learner": "ridge"}, ConfigurationError),
    "class for a learner": ({"learner": gw.learners.Ridge}, ConfigurationError),
    "no learner": ({"learner": []}, ConfigurationError),
    "aggregator that is none": ({"aggregator": 3}, ConfigurationError),
    "seed": ({"seed": -1}, ConfigurationError),
    "prior": ({"prior": {"sex=m": 0.0}}, ConfigurationError),
    "prior that is none": ({"prior": [1, 2]}, ConfigurationError),
    "intersections": ({"intersections": 3}, ConfigurationError),
    "intersections of one": ({"intersections": 2}, ConfigurationError),
    "feature range": ({"features": {"a": (1, 1)}}, FeatureError),
    "feature twice": ({"features": ["a", "a"]}, FeatureError),
}


@pytest.mark.parametrize("name", BAD_SETTINGS)
def test_bad_settings(name):
    settings, error = BAD_SETTINGS[name]
    with pytest.raises(error) as raised:
        gw.Groupwise(**{"groups": GROUPS, **settings})
    assert isinstance(raised.value, GroupwiseError)
    assert len(str(raised.value)) > 20


@pytest.mark.parametrize(
    "bad", [(0, 0), (1, 0), (0, math.inf), (math.nan, 1), ("0", 1), (False, 1)]
)
def test_bad_ranges(bad):
    for loss in (gw.losses.Square, gw.losses.Absolute):
        with pytest.raises(ConfigurationError, match="low"):
            loss(*bad)


@pytest.mark.parametrize(
    "parameters",
    [
        {"penalty": 0},
        {"penalty": -1.0},
        {"penalty": math.inf},
        {"penalty": "1"},
        {"penalty": True},
        {"penalty": 1 << 2000},
        {"forward": 1},
        {"forgetting": 0.0},
        {"forgetting": 1.1},
        {"forgetting": math.nan},
    ],
    ids=str,
)
def test_bad_ridge(parameters):
    with pytest.raises(ConfigurationError):
        gw.learners.Ridge(**parameters)


def frame(**columns):
    good = {"sex": ["m", "f", "m"], "age": [20.0, 50.0, 60.0], "share": [0.1, 1.0, 0.0]}
    return {**good, "bmi": [0.1, 0.2, 0.3], "y": [1.0, 2.0, 3.0], **columns}


BAD_FRAMES: dict[str, tuple[dict[str, Any], type[GroupwiseError], str]] = {
    "NaN in one cell": ({"bmi": [0.1, math.nan, 0.3]}, FeatureError, "row 1"),
    "infinity in one cell": ({"bmi": [0.1, 0.2, math.inf]}, FeatureError, "row 2"),
    "weight outside": ({"share": [0.1, 1.2, 0.0]}, GroupError, "row 1"),
    "label outside": ({"y": [1.0, 11.0, 3.0]}, LabelError, "row 1"),
    "label missing": ({"y": [1.0, 2.0, None]}, LabelError, "row 2"),
    "label text": ({"y": ["1", "2", "3"]}, LabelError, "not numbers"),
    "text in a number": ({"bmi": ["a", "b", "c"]}, FeatureError, "bmi"),
    "text in a cut": ({"age": ["a", "b", "c"]}, GroupError, "age"),
}


@pytest.mark.parametrize("library", [pandas.DataFrame, polars.DataFrame])
@pytest.mark.parametrize("name", BAD_FRAMES)
def test_bad_frames(name, library, tmp_path):
    columns, error, message = BAD_FRAMES[name]
    model = make()
    before = state(model, tmp_path)
    with pytest.raises(error, match=message):
        model.replay(library(frame(**columns)), "y")
    assert state(model, tmp_path) == before


def test_frames_that_are_none(tmp_path):
    model = make()
    before = state(model, tmp_path)
    good = pandas.DataFrame(frame())
    for bad, target, error in (
        (good, "label", LabelError),
        (good.drop(columns="sex"), "y", GroupError),
        (good.iloc[:0], "y", GroupwiseError),
        ([], "y", FeatureError),
        ([[1, 2]], "y", GroupwiseError),
    ):
        with pytest.raises(error):
            model.replay(bad, target)
        assert state(model, tmp_path) == before
    with pytest.raises(ConfigurationError, match="jobs"):
        model.replay(good, "y", jobs=0)
    assert state(model, tmp_path) == before


@pytest.mark.parametrize("rows", [1, 60])
def test_an_interrupted_replay_is_undone(tmp_path, monkeypatch, rows):
    """Also where the learners have been through it, and their matrices are changed."""
    from groupwise.kernels import rounds

    model = make()
    before = state(model, tmp_path)

    def interrupt(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(rounds, "settle_stream", interrupt)
    with pytest.raises(KeyboardInterrupt):
        model.replay(pandas.concat([pandas.DataFrame(frame())] * rows), "y")
    assert state(model, tmp_path) == before
    monkeypatch.undo()
    untroubled = gw.load(tmp_path / "state.gw")
    for one in (model, untroubled):
        one.replay(pandas.DataFrame(frame()), "y")
    assert state(model, tmp_path) == state(untroubled, tmp_path)


def test_a_foreign_learner_that_fails_in_mid_replay_undoes_it_all():
    class Fails:
        takes_weights = True
        seen = 0

        def advise(self, row, weight):
            return 0.5

        def update(self, row, label, weight):
            self.seen += 1
            if self.seen == 2:
                raise RuntimeError("full")

    model = gw.Groupwise([gw.by("sex")], learner=Fails())
    good = pandas.DataFrame({"sex": ["m", "f", "m"], "y": [0.1, 0.2, 0.3]})
    with pytest.raises(RuntimeError, match="full"):
        model.replay(good, "y")
    assert len(model.regret()) == 0
    assert model.predict({"sex": "m"}).number == 0


@pytest.mark.parametrize("floor", [None, "0.1", [0.1], 1 << 2000, math.nan])
def test_bad_floor(floor):
    with pytest.raises(ConfigurationError, match=r"floor must be in \[0, 0.5\)"):
        gw.losses.Log(floor)
