"""Learners that forget, and several of them in a group."""

import math

import numpy as np
import pytest

import groupwise as gw
from groupwise.learners import Ridge
from tests.people import data, loop


def test_several_learners_are_bounded_by_the_best_of_them():
    frame = data(600)
    ridges = [Ridge(0.01), Ridge(1.0), Ridge(100.0), Ridge(1.0, forward=True)]
    model = gw.Groupwise([gw.by("sex")], learner=ridges, aggregator=gw.aggregators.Specialists())
    model.replay(frame, "y")
    singles = [gw.Groupwise([gw.by("sex")], learner=ridge) for ridge in ridges]
    for single in singles:
        single.replay(frame, "y")
    for line in model.regret():
        terms = [single.regret()[line["group"]]["learner"] for single in singles]
        overhead = math.log(4 * 3) / 2
        assert line["certificate"] == pytest.approx(min(terms) + overhead, rel=1e-9)
        assert line["regret"] <= line["certificate"] + 1e-9
        assert line["a_priori"] >= terms[3] - 1e-9


def brute_force(rows, labels, penalty, forgetting, weights):
    """Advice of discounted ridge regression, solved anew every round."""
    size = rows.shape[1]
    matrix, moment, strength = penalty * np.eye(size), np.zeros(size), 1.0
    for x, y, weight in zip(rows, labels, weights, strict=True):
        yield float(np.linalg.solve(matrix, moment) @ x)
        factor = forgetting**weight
        matrix = factor * (matrix + weight * np.outer(x, x))
        moment = factor * (moment + weight * y * x)
        strength *= factor
        if strength < 1e-6:
            matrix += penalty * (1.0 - strength) * np.eye(size)
            strength = 1.0


@pytest.mark.parametrize(("size", "forgetting"), [(3, 0.9), (5, 0.99), (70, 0.98)])
def test_forgetting_is_exact(size, forgetting):
    generator = np.random.default_rng(size)
    rows = generator.random((1500, size))
    rows[:, 1] = 1.0 - rows[:, 2]
    rows[:, 0] = 1.0  # collinear, so that P would grow without end
    labels = generator.random(1500)
    weights = generator.choice([0.3, 1.0], 1500)
    result = gw.replay(
        rows, labels, weights[:, None], learner=Ridge(0.7, forgetting=forgetting), clip=False
    )
    expected = np.array(list(brute_force(rows, labels, 0.7, forgetting, weights)))
    assert np.abs(result.advice - expected).max() < 1e-8


def test_a_constant_that_hides_the_intercept_is_no_unused_column():
    """What is left of the intercept's cell of P is 1/λ to the last digit, as if no row had it."""
    generator = np.random.default_rng(4)
    rows = np.column_stack([np.ones(200), np.full(200, 2.0**50), generator.integers(0, 10, 200)])
    labels = generator.random(200)
    learner = Ridge(8e4, forgetting=0.5)
    told = gw.replay(rows, labels, np.ones((200, 1)), learner=learner, clip=False).advice
    # One constant column takes the place of both, but for 2⁻¹⁰⁰ of it; in units of its own.
    penalties = 8e4 * np.array([2.0**-100, 1.0])
    scaled = rows[:, 1:] / [2.0**50, 1.0]
    exact = np.array(list(brute_force(scaled, labels, penalties, 0.5, np.ones(200))))
    assert np.abs(told - exact).max() < 1e-8


def test_forgetting_follows_a_drift_and_is_the_same_in_both_drivers():
    frame = data(800)
    frame.loc[400:, "y"] = 1.0 - frame.loc[400:, "y"]
    loss = {}
    for forgetting in (1.0, 0.95):
        models = [
            gw.Groupwise([gw.by("sex")], learner=Ridge(1.0, forgetting=forgetting))
            for _ in range(2)
        ]
        loop(models[0], frame)
        models[1].replay(frame, "y", jobs=2)
        assert models[0].regret().rows == models[1].regret().rows
        loss[forgetting] = models[0].regret()["always_on"]["loss"]
    assert loss[0.95] < 0.8 * loss[1.0]


def test_a_feature_that_comes_late_starts_where_it_would_have_been():
    generator = np.random.default_rng(0)
    early = gw.Groupwise([], learner=Ridge(1.0, forgetting=0.9), features=["a", "b"])
    late = gw.Groupwise([], learner=Ridge(1.0, forgetting=0.9))
    for t in range(60):
        a, b = generator.random(), generator.random() if t > 30 else 0.0
        label = generator.random()
        row = {"a": a, "b": b} if t > 30 else {"a": a}
        one, other = early.predict({"a": a, "b": b}), late.predict(row)
        assert one.prediction == pytest.approx(other.prediction, abs=1e-12)
        early.learn(one, label)
        late.learn(other, label)
