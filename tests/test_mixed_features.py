"""Features of which some are scaled, and others are text or numbers as they are."""

from typing import Any

import pandas as pd

import groupwise as gw

FEATURES = {"age": (18, 64), "region": None, "children": None}
ROWS: list[dict[str, Any]] = [
    {"age": 18 + i * 7 % 46, "region": "nsw"[i % 3], "children": i % 4, "sex": "fm"[i % 2]}
    for i in range(40)
]
LABELS = [(row["age"] - 18) / 46 * (0.2 + 0.2 * row["children"]) for row in ROWS]


def a_model(indicators=False):
    return gw.Groupwise([gw.by("sex")], features=FEATURES, indicators=indicators)


def test_only_numbers_with_a_range_are_scaled():
    model = a_model()
    encoded = model._encoder.encode(ROWS[1], ["sex=m", "always_on"])
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
    assert model._encoder.names == ["age", "region=n", "children", "sex=f"]
