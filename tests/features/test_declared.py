"""Features that are named, scaled, and of which some are text or numbers as they are."""

from typing import Any

import pandas as pd
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from groupwise.features import Encoder
from tests.features.encoding import NAN, NOBODY, take


def test_list_of_features() -> None:
    encoder = Encoder(["b", "a"], False, NOBODY)
    for _ in range(3):
        assert take(encoder, {"a": 1, "b": "x", "other": [1]}) == {"b=x": 1.0, "a": 1.0}
    assert encoder.names == ["b=x", "a"]
    for row, message in (
        ({"a": 1}, "no field 'b'.*list of features"),
        ({"a": None, "b": "x"}, "'a' is None"),
        ({"a": NAN, "b": "x"}, "'a' is nan"),
        ({"a": 1, "b": None}, "'b' is None"),
        ({"a": "1", "b": "x"}, "'a' held numbers"),
        ({"a": 1, "b": 2}, "'b' held text"),
    ):
        with pytest.raises(FeatureError, match=message):
            encoder.encode(row, [])


def test_scaled_features() -> None:
    encoder = Encoder({"age": (18, 64), "bmi": (-1.0, 1.0)}, False, NOBODY)
    assert encoder.names == ["age", "bmi"]
    for _ in range(3):
        assert take(encoder, {"age": 41, "bmi": 3.0}) == {"age": (41 - 18) / (64 - 18), "bmi": 2.0}
        assert not any(take(encoder, {"age": 18, "bmi": -1}).values())
    for row, message in (
        ({"age": "x", "bmi": 1}, "'age' held numbers"),
        ({"age": 1}, "no field 'bmi'"),
        ({"age": 1, "bmi": None}, "'bmi' is None"),
        ({"age": 1, "bmi": NAN}, "'bmi' is nan"),
    ):
        with pytest.raises(FeatureError, match=message):
            encoder.encode(row, [])
    tight = Encoder({"a": (0, 1e-10)}, False, NOBODY)
    for _ in range(2):
        with pytest.raises(FeatureError, match="'a' is 1e\\+308"):
            tight.encode({"a": 1e308}, [])
        tight.encode({"a": 1.0}, [])


@pytest.mark.parametrize(
    ("features", "message"),
    [
        ({"a": (1, 1)}, "range of feature 'a'"),
        ({"a": (2, 1)}, "low < high"),
        ({"a": (0, float("inf"))}, "range of feature 'a'"),
        ({"a": (0, NAN)}, "range of feature 'a'"),
        ({"a": (-1.7e308, 1.7e308)}, "range of feature 'a'"),
        ({"a": 3}, "range of feature 'a'"),
        ({"a": ("x", "y")}, "range of feature 'a'"),
        (["a", "a"], "twice"),
        ([1], "named by text"),
        ("age", "a list of fields"),
        ([], "empty"),
    ],
)
def test_bad_declared_features(features: Any, message: str) -> None:
    with pytest.raises(FeatureError, match=message):
        Encoder(features, False, NOBODY)


FEATURES = {"age": (18, 64), "region": None, "children": None}
ROWS: list[dict[str, Any]] = [
    {"age": 18 + i * 7 % 46, "region": "nsw"[i % 3], "children": i % 4, "sex": "fm"[i % 2]}
    for i in range(40)
]
LABELS = [(row["age"] - 18) / 46 * (0.2 + 0.2 * row["children"]) for row in ROWS]


def a_model(indicators=False):
    return gw.Groupwise([gw.by("sex")], features=FEATURES, indicators=indicators, intercept=False)


def test_only_numbers_with_a_range_are_scaled():
    model = a_model()
    encoded = model._encoder.encode(ROWS[1], model.groups.read(ROWS[1])[0])
    values = dict(zip(encoded.names, [0.0] * len(encoded.names), strict=True))
    values |= {encoded.names[i]: v for i, v in zip(encoded.indices, encoded.values, strict=True)}
    assert values == {"age": 7 / 46, "region=s": 1.0, "children": 1.0}


def test_rows_frames_and_snapshots_agree(tmp_path):
    loop, whole = a_model(), a_model()
    expected = []
    for row, label in zip(ROWS, LABELS, strict=True):
        expected.append(loop.predict_one(row))
        loop.learn_one(row, label)
    frame = pd.DataFrame(ROWS).assign(label=LABELS)
    assert whole.replay(frame, "label").prediction.tolist() == expected
    loop.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    assert again.features == FEATURES
    assert again.predict_one(ROWS[0]) == whole.predict_one(ROWS[0]) == loop.predict_one(ROWS[0])


def test_text_levels_are_no_indicators_too():
    model = gw.Groupwise([gw.by("region"), gw.by("sex")], features=FEATURES)
    model.learn_one(ROWS[0], 0.5)
    assert model.feature_names == ["(intercept)", "age", "region=n", "children", "sex=f"]
