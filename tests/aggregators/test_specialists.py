"""Specialists: the substitution, the constant overhead, and that it is tight."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.aggregators import Specialists
from groupwise.kernels.specialists import substitution

SQUARE = gw.losses.Square()
ETA = 2.0


def specialists(groups, **more):
    parts: dict[str, Any] = {"features": ["one"], "indicators": False, "always_on": False}
    return gw.Groupwise(groups, aggregator=Specialists(), **parts, **more)


unit = st.floats(0.0, 1.0)


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(unit, st.floats(1e-6, 1.0)), min_size=1, max_size=6), unit)
def test_the_play_loses_at_most_the_mix_whatever_the_label(experts, label):
    advice = np.array([[a] for a, _ in experts])
    weights = np.array([[p] for _, p in experts])
    weights = weights / weights.sum()
    play = substitution(ETA, weights, advice, 0.0, 1.0)
    low, high = (-np.log(np.sum(weights * np.exp(-ETA * (advice - y) ** 2))) / ETA for y in (0, 1))
    assert play == pytest.approx(np.clip(0.5 + (low - high) / 2, 0, 1), abs=1e-12)
    mix = -np.log(np.sum(weights * np.exp(-ETA * (advice - label) ** 2))) / ETA
    assert (play - label) ** 2 <= mix + 1e-12


def test_weights_are_exponential_in_the_regret():
    regret = np.array([[0.0, 3.0], [-2.0, 1e6]])
    assert Specialists().log_weights(regret, regret, SQUARE) == pytest.approx(2 * regret)
    log = gw.losses.Log(floor=0.01)  # scaled by ln 100, so η = 1 becomes ln 100
    assert Specialists().log_weights(regret, regret, log) == pytest.approx(math.log(100) * regret)


@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 5.0), (100.0, 100.5)])
def test_the_overhead_is_a_constant(low, high):
    prior = {"a": 3.0, "b": 0.25}
    model = specialists(
        [gw.weight(name) for name in "abc"], loss=gw.losses.Square(low, high), prior=prior,
        learner=[gw.learners.Ridge(0.1), gw.learners.Ridge(1.0), gw.learners.Ridge(9.0)],
    )  # fmt: skip
    generator = np.random.default_rng(0)
    masses = {"a": 3.0, "b": 0.25, "c": 1.0}
    for t in range(60):
        a, b, c = generator.random(3) * (generator.random(3) < 0.7)
        row = {"a": 1.0 if t == 0 else a, "b": b, "c": c if t > 10 else 0.0, "one": 1.0}
        model.learn_one(row, generator.uniform(low, high))
        table = model.regret()
        total = sum(masses[item["group"]] for item in table)
        for item in table:
            q = masses[item["group"]] / total / 3
            expected = math.log(1 / q) / ETA * (high - low) ** 2
            assert item["aggregator"] == pytest.approx(expected, rel=1e-12)


@pytest.mark.slow
def test_the_overhead_is_tight():
    """The group with little prior mass is right, the other wrong: it is owed nearly ln(1/q)/η."""
    tiny = 1e-9
    model = specialists(
        [gw.weight("right"), gw.weight("wrong")],
        prior={"right": tiny},
        learner=gw.learners.Ridge(1e-6),
    )
    for _ in range(3_000):
        model.learn_one({"right": 0.0, "wrong": 1.0, "one": 1.0}, 0.0)
    for _ in range(200):
        model.learn_one({"right": 1.0, "wrong": 0.0, "one": 1.0}, 1.0)
    owed, played, own = 0.0, 0.0, 0.0
    limit = math.log((1 + tiny) / tiny) / ETA
    for _ in range(60):
        ticket = model.predict({"right": 1.0, "wrong": 1.0, "one": 1.0})
        model.learn(ticket, 1.0)
        played += (ticket.prediction - 1.0) ** 2
        own += (ticket.advice[list(ticket.groups).index("right")] - 1.0) ** 2
        owed = played - own
        assert owed <= limit + 1e-9
    assert owed / limit > 0.9
    row = model.regret()["right"]
    assert row["aggregator"] == pytest.approx(limit, rel=1e-9)
    assert row["regret"] <= row["certificate"] + 1e-9 * (1 + row["rounds"])
    assert row["regret"] > row["learner"] + 0.9 * row["aggregator"]


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_advice_and_labels_break_the_bound(seed, fractional):
    """Advice of any kind, labels chosen to favour a target when the play is known."""
    generator = np.random.default_rng(seed)
    count = 5
    prior = generator.dirichlet(np.full(count, 0.5))
    regret = np.zeros(count)
    target = int(np.argmin(prior))
    bound = Specialists().bound(regret, regret, prior, SQUARE)
    assert bound == pytest.approx(np.log(1 / prior) / ETA)
    for _ in range(300):
        awake = (generator.random(count) < 0.6).astype(float)
        awake[target] = 1.0
        if fractional:
            awake *= 1.0 - generator.random(count)
        advice = generator.random(count)
        if seed % 2:
            advice = np.round(advice)
        weights = prior * awake * np.exp(Specialists().log_weights(regret, regret, SQUARE))
        weights = weights / weights.sum()
        play = substitution(ETA, weights[:, None], advice[:, None], 0.0, 1.0)
        label = max((0.0, 1.0, advice[target]), key=lambda y: (play - y) ** 2
                    - (advice[target] - y) ** 2)  # fmt: skip
        regret = regret + awake * ((play - label) ** 2 - (advice - label) ** 2)
        assert np.all(regret <= bound + 1e-9)


class Counting:
    """A learner that advises the share of ones, smoothed: never 0 and never 1."""

    name = "Counting"

    def __init__(self):
        self.total, self.ones = 2.0, 1.0

    def advise(self, row, weight):
        return self.ones / self.total

    def update(self, row, label, weight):
        self.total += weight
        self.ones += weight * label


def test_log_loss_without_a_floor():
    model = specialists([gw.weight("a"), gw.weight("b")], loss=gw.losses.Log(), learner=Counting())
    generator = np.random.default_rng(1)
    for _ in range(150):
        a, b = generator.random(2)
        ticket = model.predict({"a": a, "b": b, "one": 1.0})
        assert ticket.prediction == pytest.approx(float(np.sum(ticket.weights * ticket.advice)))
        model.learn(ticket, float(ticket.prediction < 0.5))
        for row in model.regret():
            assert row["aggregator"] == pytest.approx(math.log(2))
            assert row["regret"] <= row["certificate"] + 1e-9


@pytest.mark.slow
def test_log_loss_without_a_floor_survives_certainty():
    """An advice of 0 on a label of 1 loses without limit; later predictions are numbers still."""
    model = specialists([gw.weight(name) for name in "abc"], loss=gw.losses.Log())
    for a, b, c, y in [(1, 1, 0, 1.0), (1, 0, 1, 1.0), (0, 1, 1, 0.0), (1, 1, 1, 1.0)]:
        ticket = model.predict({"a": a, "b": b, "c": c, "one": 1.0})
        assert 0.0 <= ticket.prediction <= 1.0
        assert ticket.weights.sum() == pytest.approx(1.0)
        model.learn(ticket, y)


@pytest.mark.parametrize("loss", [gw.losses.Absolute(), gw.losses.ZeroOne()], ids=str)
def test_losses_that_are_not_mixable_are_refused(loss):
    with pytest.raises(gw.errors.ConfigurationError, match="AdaNormalHedge"):
        specialists([gw.weight("a")], loss=loss)


@pytest.mark.parametrize("play", ["mean", "sample"])
def test_the_play_is_not_the_users_to_choose(play):
    with pytest.raises(gw.errors.ConfigurationError, match="play"):
        specialists([gw.weight("a")], play=play)
    assert specialists([gw.weight("a")]).play == "substitution"
    assert specialists([gw.weight("a")], loss=gw.losses.Log()).play == "mean"


def test_advice_must_be_clipped():
    with pytest.raises(gw.errors.ConfigurationError, match="clip"):
        specialists([gw.weight("a")], clip=False)
