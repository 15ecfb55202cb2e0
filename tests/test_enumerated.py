"""The enumerating baseline: AdaNormalHedge over pairs, exactly; and its certificates."""

from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels.adanormalhedge import log_weight

TABLE = np.array([[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1], [1, 0, 0, 0]])


def test_plays_textbook_adanormalhedge_over_pairs() -> None:
    policies = gw.oracles.FiniteClass(TABLE)
    model = gw.enumerated.BlumLykouris(policies, [gw.by("g")], features=["x"])
    rng = np.random.default_rng(0)
    regret: dict[str, np.ndarray] = {}
    absolute: dict[str, np.ndarray] = {}
    for _ in range(200):
        x, g = int(rng.integers(4)), bool(rng.integers(2))
        ticket = model.predict({"x": x, "g": g})
        weights = []
        for name in ticket.groups:
            r = regret.setdefault(name, np.zeros(4))
            c = absolute.setdefault(name, np.zeros(4))
            weights.append([np.exp(log_weight(*pair)) for pair in zip(r, c, strict=True)])
        flat = np.array(weights)
        flat = flat / flat.sum() if flat.sum() > 0 else np.full_like(flat, 1 / flat.size)
        assert np.allclose(ticket.weights, flat, atol=1e-12)
        y = int(rng.random() < (0.8 if x >= 2 else 0.3))
        losses = np.abs(TABLE[:, x] - y)
        played = float((flat * losses).sum())
        for name in ticket.groups:
            regret[name] += played - losses
            absolute[name] += np.abs(played - losses)
        model.learn(ticket, y)
    for row in model.regret():
        assert row["status"] in ("proved", "loose", "vacuous")
        assert row["regret"] == pytest.approx(regret[row["group"]].max())


@pytest.mark.parametrize("seed", range(10))
def test_regret_is_below_the_certificate_against_an_adversary(seed: int) -> None:
    actions = gw.oracles.Finite(np.eye(5))
    loss = gw.losses.Linear(0.0, 1.0)
    model = gw.enumerated.BlumLykouris(actions, [gw.by("g")], loss=loss, seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(100):
        ticket = model.predict({"g": int(rng.integers(3))})
        costs = rng.random(5)
        costs[int(ticket.prediction.argmax())] = 1.0
        model.learn(ticket, costs)
        for row in model.regret():
            assert row["regret"] <= row["certificate"] + 1e-9


def test_functions_as_policies() -> None:
    policies = [lambda x: 0, lambda x: 1, lambda x: int(x[0] > 0.5)]
    model = gw.enumerated.BlumLykouris(policies, [gw.by("g")], features=["x"])
    rng = np.random.default_rng(1)
    for _ in range(300):
        x = float(rng.random())
        model.learn_one({"x": x, "g": bool(rng.integers(2))}, int(x > 0.5))
    assert model.regret()["always_on"]["best_loss"] == 0.0
    assert model.regret()["always_on"]["regret"] < 60.0


def test_several_labels() -> None:
    table = np.stack([TABLE, 1 - TABLE], axis=2)
    policies = gw.oracles.FiniteClass(table)
    loss = gw.losses.Hamming(labels=2)
    model = gw.enumerated.BlumLykouris(policies, [gw.by("g")], loss=loss, features=["x"])
    for t in range(80):
        model.learn_one({"x": t % 4, "g": t % 2}, [int(t % 4 >= 2), int(t % 4 < 2)])
    assert model.regret()["always_on"]["best_loss"] == 0.0
    ticket = model.predict({"x": 0, "g": 0})
    assert ticket.advice.shape == (2, 4, 2)
    with pytest.raises(LabelError):
        model.learn(ticket, [1])


def test_refused() -> None:
    refused: list[tuple[Any, gw.losses.Loss | None]] = [
        ([], None),
        (["f"], None),
        (gw.oracles.Stumps(), None),
        ([lambda x: 0], gw.losses.Square()),
    ]
    for policies, loss in refused:
        with pytest.raises(ConfigurationError):
            gw.enumerated.BlumLykouris(policies, [gw.by("g")], loss=loss, features=["x"])
    model = gw.enumerated.BlumLykouris(gw.oracles.FiniteClass(TABLE), [gw.by("g")], features=["x"])
    with pytest.raises(gw.errors.FeatureError, match="no column"):
        model.predict({"x": 9, "g": 1})
