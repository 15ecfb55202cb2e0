"""The feature that is 1 in every row: there by default, always the first, in every driver."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest

import groupwise as gw
from groupwise.errors import FeatureError
from groupwise.features import Encoder
from tests.features.encoding import NOBODY
from tests.snapshots.make import FOLDER

ROWS: list[dict[str, Any]] = [
    {"x": 3.0 + (t * 7 % 11) / 10, "kind": "abc"[t * 5 % 3], "(intercept)": t % 4}
    for t in range(60)
]
LABELS = [100.0 + 5.0 * (row["x"] - 3.0) + row["(intercept)"] for row in ROWS]
LOSS = gw.losses.Square(100, 110)


def loop(model):
    found = []
    for row, label in zip(ROWS, LABELS, strict=True):
        ticket = model.predict(row)
        found.append(ticket.prediction)
        model.learn(ticket, label)
    return found


@pytest.mark.parametrize("features", [None, ["x", "kind"], {"x": (3, 5), "kind": None}, []])
def test_loop_replay_and_snapshots_agree(features, tmp_path):
    one, other = (gw.Groupwise([gw.by("kind")], loss=LOSS, features=features) for _ in range(2))
    expected = loop(one)
    frame = pd.DataFrame(ROWS).assign(y=LABELS)
    found = [*other.replay(frame[:23], "y").prediction]
    other.save(tmp_path / "model.gw")
    other = copy.deepcopy(gw.load(tmp_path / "model.gw"))
    assert [*found, *other.replay(frame[23:], "y").prediction] == expected
    assert other.intercept
    assert other.feature_names == one.feature_names
    assert one.feature_names[0] == "(intercept)"
    assert one.regret().rows == other.regret().rows


def test_it_is_one_whatever_a_field_is_called():
    encoder = Encoder(None, False, NOBODY, intercept=True)
    for row in (ROWS[1], ROWS[2], ROWS[1]):  # carefully, then by the layout
        encoded = encoder.encode(row, [])
        encoder.admit(encoded)
        assert encoded.indices[0] == 0
        assert encoded.values[0] == 1.0
        assert encoded.dense()[encoder.names.index("(intercept)", 1)] == row["(intercept)"]


def test_a_column_of_ones_does_the_same():
    """The intercept against a first field of ones, in a model without."""
    given = gw.Groupwise([gw.by("kind")], loss=LOSS, intercept=False)
    model = gw.Groupwise([gw.by("kind")], loss=LOSS)
    for row, label in zip(ROWS, LABELS, strict=True):
        with_one = {"one": 1.0, **row}
        assert model.predict_one(row) == given.predict_one(with_one)
        model.learn_one(row, label)
        given.learn_one(with_one, label)
    for mine, other in zip(model.regret(), given.regret(), strict=True):
        for key in ("rounds", "loss", "realised_loss", "aggregator", "status"):
            assert mine[key] == other[key]
        # The one sums up labels from the low end of the range, the other from 0.
        assert mine["best_loss"] == pytest.approx(other["best_loss"], rel=1e-9, abs=1e-9)


def best_linear(columns, labels):
    """The loss of the best θ·x, by least squares on its own."""
    theta = np.linalg.lstsq(columns, labels, rcond=None)[0]
    return float(((columns @ theta - labels) ** 2).sum())


def test_the_comparator_is_every_linear_model_in_the_labels_units():
    """Labels from 100 to 110, and a feature that spans no intercept."""
    x = 3.0 + np.random.default_rng(0).random(400)
    labels = 100.0 + 2.5 * (x - 2.5)
    model = gw.Groupwise([], loss=LOSS, features=["x"])
    predictions = []
    for value, label in zip(x.tolist(), labels.tolist(), strict=True):
        predictions.append(model.predict_one({"x": value}))
        model.learn_one({"x": value}, label)
    loss = float(((np.array(predictions) - labels) ** 2).sum())
    table = model.regret()
    for columns in (x[:, None], np.column_stack([np.ones(400), x])):
        regret = loss - best_linear(columns, labels)
        assert regret <= table["always_on"]["certificate"] + 1e-6
        assert table["always_on"]["best_loss"] <= best_linear(columns, labels) + 1e-6
    assert table.comparator == "the best linear model in hindsight"


@pytest.mark.parametrize(
    "loss", [gw.losses.Square(100, 110), gw.losses.Square(0, 110), gw.losses.Unbounded()]
)
def test_without_it_the_comparator_is_linear_in_the_labels_own_units(loss):
    clip = loss.bounded
    model = gw.Groupwise([], loss=loss, features=["x"], intercept=False, clip=clip)
    x = 3.0 + np.random.default_rng(0).random(400)
    labels = 100.0 + 2.5 * (x - 2.5)
    for value, label in zip(x.tolist(), labels.tolist(), strict=True):
        model.learn_one({"x": value}, label)
    arrays = gw.replay(x[:, None], labels, np.ones((400, 1)), loss=loss, clip=clip)
    best = best_linear(x[:, None], labels)
    for row, table in ((-1, model.regret()), (0, arrays.regret())):
        assert table.rows[row]["best_loss"] == pytest.approx(best, rel=1e-6)
        assert table.comparator == "the best linear model in hindsight"


@pytest.mark.slow
def test_learners_of_actions_have_none():
    paths = gw.learners.FTPL(gw.oracles.Finite(np.eye(2)), cost_norm=2.0)
    model = gw.Groupwise([gw.by("kind")], paths, loss=gw.losses.Linear(0, 1))
    model.learn_one({"kind": "a"}, [0.5, 0.25])
    stumps = gw.oracles.Stumps()
    contexts = gw.learners.ContextualFTPL(stumps, [[0.0], [1.0]])
    other = gw.Groupwise([gw.by("kind")], contexts, loss=gw.losses.ZeroOne(), features=["bit"])
    other.learn_one({"kind": "a", "bit": 1}, 1)
    assert "(intercept)" not in model.feature_names + other.feature_names


@pytest.mark.parametrize("schema", ["schema_1", "schema_2"])
def test_models_of_before_have_none(schema):
    model = gw.load(FOLDER / schema / "no_indicators.gw")
    assert not model.intercept
    assert "(intercept)" not in model.feature_names


def test_it_alone_is_enough():
    """Then every group's model is its mean, shrunk by the penalty."""
    ridge = gw.learners.Ridge()
    model = gw.Groupwise([gw.by("kind")], ridge, features=[], indicators=False)
    for label in (0.5, 1.0, 0.3):
        model.learn_one({"kind": "a"}, label)
    assert model.predict({"kind": "a"}).advice.tolist() == pytest.approx([1.8 / 4] * 2)
    with pytest.raises(FeatureError, match="empty"):
        gw.Groupwise([gw.by("kind")], features=[], indicators=False, intercept=False)
