"""Ranges that are widened along the way: what was learned stays, and what is proved is true."""

from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, LabelError
from groupwise.losses import Widened
from groupwise.snapshot import widened
from tests.few import few

AGGREGATORS: dict[str, Any] = {
    "prod": gw.aggregators.Prod(),
    "specialists": gw.aggregators.Specialists(),
    "adanormalhedge": gw.aggregators.AdaNormalHedge(),
}


def adversary(model, rows, generator, low, high):
    """Labels at whichever end is farther from the prediction, or anywhere."""
    for _ in range(rows):
        row = {"g": str(generator.integers(3)), "x": float(generator.normal())}
        ticket = model.predict(row)
        far = low if ticket.prediction > (low + high) / 2 else high
        y = far if generator.random() < 0.7 else float(generator.uniform(low, high))
        model.learn(ticket, y)
        yield row, y


def best_of(rows, labels):
    """The least squares that a linear model of these rows loses, by another way."""
    return float(((labels - rows @ np.linalg.lstsq(rows, labels, rcond=None)[0]) ** 2).sum())


@pytest.mark.parametrize("name", AGGREGATORS)
@pytest.mark.parametrize("seed", few(range(6), 2))
def test_what_is_proved_is_true(name, seed):
    generator = np.random.default_rng(seed)
    model = gw.Groupwise(
        [gw.by("g")],
        loss=gw.losses.Square(0.0, 1.0),
        aggregator=AGGREGATORS[name],
        indicators=False,
    )
    low, high = 0.0, 1.0
    seen = []
    for factor in (1.0, 1.3, 8.0, 50.0):
        low, high = low - (factor > 1.0) * 0.2 * factor, high * factor
        if factor > 1.0:
            model = widened(model, low, high)
        for round_ in adversary(model, 60, generator, low, high):
            seen.append(round_)
            for row in model.regret() if len(seen) % 20 == 0 else ():
                if name == "adanormalhedge" and factor > 1.0:
                    assert row["status"] == "void"
                elif row["status"] in ("proved", "loose", "vacuous"):
                    assert row["regret"] <= row["certificate"] + 1e-6 * (1.0 + high**2)
    groups = [row["g"] for row, _ in seen]
    labels = np.array([y for _, y in seen])
    matrix = np.array([[1.0, row["x"], *(row["g"] == k for k in "012")] for row, _ in seen])
    found = model.regret()["always_on"]
    assert found["best_loss"] == pytest.approx(best_of(matrix, labels), rel=1e-6)
    assert found["rounds"] == len(groups)


def test_what_was_learned_stays(tmp_path):
    model = gw.Groupwise([gw.by("g")], loss=gw.losses.Square(0.0, 10.0))
    for _ in adversary(model, 50, np.random.default_rng(1), 0.0, 10.0):
        pass
    wider = widened(model, -5.0, 40.0)
    for one, other in zip(model.regret(), wider.regret(), strict=True):
        assert one == {**other, "a_priori": one.get("a_priori")} or one["loss"] == other["loss"]
        assert one["certificate"] == other["certificate"]
    with pytest.raises(LabelError, match=r"outside \[0, 10\]"):
        model.learn_one({"g": "1", "x": 0.0}, 39.0)
    wider.learn_one({"g": "1", "x": 0.0}, 39.0)
    wider.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    assert again.loss == Widened(0.0, 10.0, -5.0, 40.0)
    row = {"g": "1", "x": 0.3}
    assert again.predict_one(row) == wider.predict_one(row)
    twice = widened(again, -5.0, 60.0)
    assert twice.loss == Widened(0.0, 10.0, -5.0, 60.0)


def test_a_range_is_only_widened():
    model = gw.Groupwise([], loss=gw.losses.Square(0.0, 10.0))
    with pytest.raises(ConfigurationError, match="only widened"):
        widened(model, 1.0, 20.0)
    tiny = gw.Groupwise([], loss=gw.losses.Square(0.0, 1e-130))
    with pytest.raises(ConfigurationError, match="begin a new model"):
        widened(tiny, 0.0, 1e130)
    with pytest.raises(ConfigurationError, match="no range to widen"):
        widened(gw.Groupwise([], loss=gw.losses.Log()), 0.0, 2.0)
