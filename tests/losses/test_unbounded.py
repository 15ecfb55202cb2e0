"""The square loss of labels whose range nobody knows."""

import math

import numpy as np
import pytest

import groupwise as gw


def model():
    return gw.Groupwise([gw.by("kind")], loss=gw.losses.Unbounded(), features=["u"])


def rows(count=60, scale=1.0, seed=0):
    generator = np.random.default_rng(seed)
    for _ in range(count):
        kind, u = str(generator.choice(["a", "b"])), float(generator.normal())
        label = scale * float(u * (3 if kind == "a" else -1) + generator.normal())
        yield {"kind": kind, "u": u}, label


def test_certificates_are_void_however_small_the_labels():
    for scale in (1e-6, 1.0, 1e6):
        found = model()
        for row, label in rows(scale=scale):
            found.learn_one(row, label)
        assert {line["status"] for line in found.regret()} == {"void"}


def test_the_figures_are_in_the_labels_units():
    """As with a range so wide that nothing is clipped, but for what the range scales."""
    found = model()
    played = []
    for row, label in rows():
        ticket = found.predict(row)
        played.append((ticket.prediction - label) ** 2)
        found.learn(ticket, label)
    assert found.regret()["always_on"]["loss"] == pytest.approx(sum(played), rel=1e-12)


def test_advice_is_not_clipped():
    found = model()
    for row, label in rows(scale=100.0):
        found.learn_one(row, label)
    assert abs(found.predict_one({"kind": "a", "u": 1e4})) > 1e5


@pytest.mark.parametrize("label", [math.nan, math.inf, -math.inf, 1e51, "3", None, True])
def test_what_is_no_label(label):
    found = model()
    with pytest.raises(gw.errors.LabelError):
        found.learn_one({"kind": "a", "u": 1.0}, label)
    assert len(found.regret()) == 0


def test_a_column_of_labels():
    loss = gw.losses.Unbounded()
    assert loss.encode_many(np.array([-3.0, 4.5])).tolist() == [-3.0, 4.5]
    with pytest.raises(gw.errors.LabelError, match="row 1"):
        loss.encode_many(np.array([0.0, np.nan]))


def test_the_largest_labels_stay_finite():
    found = model()
    for t in range(50):
        found.learn_one({"kind": "ab"[t % 2], "u": (-1.0) ** t}, 1e50 * (-1.0) ** (t // 3))
        assert math.isfinite(found.predict_one({"kind": "a", "u": 1.0}))
    assert math.isfinite(found.regret()["always_on"]["regret"])


def test_it_is_saved(tmp_path):
    found = model()
    for row, label in rows():
        found.learn_one(row, label)
    found.save(tmp_path / "model.gw")
    restored = gw.load(tmp_path / "model.gw")
    assert restored.loss == gw.losses.Unbounded()
    row = {"kind": "b", "u": 0.3}
    assert restored.predict_one(row) == found.predict_one(row)


def test_specialists_need_a_range():
    with pytest.raises(gw.errors.ConfigurationError):
        gw.Groupwise(
            [gw.by("kind")],
            loss=gw.losses.Unbounded(),
            aggregator=gw.aggregators.Specialists(),
        )
