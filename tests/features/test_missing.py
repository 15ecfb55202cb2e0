"""Missing values: errors as a rule, with ``missing="indicator"`` a 0 and a feature beside it."""

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from tests.few import few

SCHEMA = {"a": pl.Float64, "s": pl.String, "b": pl.Boolean, "c": pl.Float64, "y": pl.Float64}
FEATURES = {
    "every field": None,
    "declared": {"a": (1.0, 3.0), "s": None, "b": None, "c": (0.0, 1.0)},
    "hashed": {"a": None, "s": gw.hashed(4)},
    "hinges": [gw.hinges()],
    "declared, with hinges": [{"a": (1.0, 3.0), "c": None}, gw.hinges()],
}


def rows_with_gaps(count=400):
    chance = random.Random(1)
    return [
        {
            "a": chance.choice([None, 1.5, float("nan"), chance.random()]) if t > 3 else None,
            "s": chance.choice(["x", "y", None]),
            "b": chance.choice([True, False, None]),
            "c": chance.random(),
            "y": chance.random(),
        }
        for t in range(count)
    ]


@pytest.mark.parametrize("name", few(FEATURES, 3))
def test_rows_and_frames_give_the_same_bits(name, tmp_path):
    groups = [gw.by("s")]
    settings: dict[str, Any] = {"features": FEATURES[name], "missing": "indicator"}
    one, other = gw.Groupwise(groups, **settings), gw.Groupwise(groups, **settings)
    rows, predicted = rows_with_gaps(), []
    for row in rows:
        given = {key: value for key, value in row.items() if key != "y"}
        predicted.append(one.predict_one(given))
        one.learn_one(given, row["y"])
    frame = pl.DataFrame(rows, schema=SCHEMA)
    parts = [other.replay(frame[:150], "y").prediction, other.replay(frame[150:], "y").prediction]
    assert np.concatenate(parts).tolist() == predicted
    assert one.feature_names == other.feature_names
    assert "a missing" in one.feature_names
    other.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    row = {"a": None, "s": "x", "b": True, "c": 0.1}
    assert again.predict_one(row) == one.predict_one(row)


def test_what_it_is_made_into():
    """As if 0 and an indicator had been given: the definition, written out."""
    features = {"a": (1.0, 3.0), "s": None}
    filled = gw.Groupwise([], features=features, missing="indicator")
    plain = gw.Groupwise([], features=["a", "a missing", "s=x", "s=y", "s missing"])
    for row in rows_with_gaps(60):
        a, s = row["a"], row["s"]
        gone = a is None or a != a
        by_hand = {
            "a": 0.0 if gone else (a - 1.0) / 2.0,
            "a missing": float(gone),
            "s=x": float(s == "x"),
            "s=y": float(s == "y"),
            "s missing": float(s is None),
        }
        given = {"a": a, "s": s}
        assert filled.predict_one(given) == pytest.approx(plain.predict_one(by_hand), abs=1e-12)
        filled.learn_one(given, row["y"])
        plain.learn_one(by_hand, row["y"])


def test_python_is_strict_unless_told_otherwise():
    model = gw.Groupwise([], features={"a": (0.0, 1.0)})
    with pytest.raises(FeatureError, match="missing='indicator'"):
        model.predict({"a": None})
    with pytest.raises(FeatureError, match="missing='zero'"):
        gw.Groupwise([], missing="zero")
    model = gw.Groupwise([], features={"a": (0.0, 1.0)}, missing="indicator")
    with pytest.raises(FeatureError, match="finite"):
        model.predict({"a": float("inf")})
