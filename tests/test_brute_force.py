"""The model against Algorithm 1 written from its definition, in every prediction."""

from typing import Any

import numpy as np
import pytest

import groupwise as gw
from tests.plain import PLAIN as AS_PUBLISHED
from tests.streams import BruteForce, random_row

CLOSE: Any = {"rel": 1e-9, "abs": 1e-9}
PLAIN = ((1.0, False),)
FORWARD = ((0.3, True),)
SEVERAL = ((0.01, False), (1.0, True), (10.0, False))


def make(learners, aggregator, low=0.0, high=1.0, prior=None, seed=0, **more):
    """The model and the brute-force version with the same configuration."""
    groups = [gw.by("colour"), gw.by("shape"), gw.weight("part"), gw.weight("new")]
    parts: dict[str, Any]
    if aggregator == "specialists":
        parts = {"aggregator": gw.aggregators.Specialists()}
    else:
        parts = {"aggregator": gw.aggregators.AdaNormalHedge(), "play": aggregator}
    model = gw.Groupwise(
        groups,
        learner=[gw.learners.Ridge(penalty, forward) for penalty, forward in learners],
        loss=gw.losses.Square(low, high),
        indicators=False,
        intercept=False,
        prior=prior,
        seed=seed,
        **parts,
        **more,
    )
    brute = BruteForce(learners, aggregator, low, high, more.get("clip", True), prior or {}, seed)
    return model, brute


def agree(ticket, said, brute):
    """Prediction, groups, advice and weights are the same."""
    assert dict(ticket.groups) == said.groups
    shape = said.advice.shape if said.advice.shape[1] > 1 else (len(said.groups),)
    assert ticket.advice == pytest.approx(brute.decode(said.advice).reshape(shape), **CLOSE)
    assert ticket.weights == pytest.approx(said.weights.reshape(shape), **CLOSE)
    assert ticket.weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert ticket.prediction == pytest.approx(brute.decode(said.prediction), **CLOSE)


def same_table(model, brute):
    table = model.regret()
    expected = brute.table()
    assert {row["group"] for row in table} == set(expected)
    for row in table:
        for key, value in expected[row["group"]].items():
            assert row[key] == pytest.approx(value, rel=1e-8, abs=1e-8), (row["group"], key)


def run(model, brute, generator, rounds, low, high):
    for t in range(rounds):
        row, features, groups = random_row(generator, t / rounds)
        truth = 0.3 + 0.4 * (row["colour"] == "red") + 0.5 * row["u"] + generator.normal() / 5
        label = low + (high - low) * min(1.0, max(0.0, truth))
        said = brute.predict(t, features, groups)
        ticket = model.predict(row)
        assert ticket.number == t
        agree(ticket, said, brute)
        model.learn(ticket, label)
        brute.learn(t, features, groups, label, said)


@pytest.mark.parametrize(("low", "high", "seed"), [(0.0, 1.0, 0), (-3.0, 5.0, 1)])
@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
@pytest.mark.parametrize("learners", [PLAIN, FORWARD, SEVERAL], ids=["plain", "forward", "several"])
def test_every_number_is_the_one_by_definition(learners, aggregator, low, high, seed):
    model, brute = make(learners, aggregator, low, high, seed=seed)
    run(model, brute, np.random.default_rng(seed), 60, low, high)
    same_table(model, brute)


@pytest.mark.parametrize("aggregator", ["mean", "sample"])
def test_unclipped_advice_agrees_too(aggregator):
    model, brute = make(SEVERAL, aggregator, clip=False)
    run(model, brute, np.random.default_rng(3), 50, 0.0, 1.0)
    same_table(model, brute)


@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
def test_prior_masses_weigh_the_experts(aggregator):
    prior = {"colour=red": 5.0, "colour=black": 0.01, "new": 3.0}
    model, brute = make(SEVERAL, aggregator, prior=prior)
    run(model, brute, np.random.default_rng(4), 50, 0.0, 1.0)
    same_table(model, brute)


@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
@pytest.mark.parametrize("learners", [PLAIN, SEVERAL], ids=["plain", "several"])
def test_late_labels_update_from_the_present_state(learners, aggregator):
    model, brute = make(learners, aggregator, low=-1.0, high=3.0, seed=7)
    generator = np.random.default_rng(5)
    outstanding = []
    for t in range(70):
        row, features, groups = random_row(generator, t / 70)
        said = brute.predict(t, features, groups)
        ticket = model.predict(row)
        agree(ticket, said, brute)
        outstanding.append((ticket, features, groups, said, generator.uniform(-1, 3)))
        while outstanding and generator.random() < 0.5:
            ticket, features, groups, said, label = outstanding.pop(
                generator.integers(len(outstanding))
            )
            model.learn(ticket, label)
            brute.learn(ticket.number, features, groups, label, said)
    for place in generator.permutation(len(outstanding)):
        ticket, features, groups, said, label = outstanding[place]
        model.learn(ticket, label)
        brute.learn(ticket.number, features, groups, label, said)
    same_table(model, brute)
    assert any(abs(row["delay"]) > 1e-3 for row in model.regret())


def test_rounds_that_are_never_settled_leave_no_trace():
    model, brute = make(PLAIN, "mean")
    generator = np.random.default_rng(6)
    for t in range(40):
        row, features, groups = random_row(generator, t / 40)
        said = brute.predict(t, features, groups)
        ticket = model.predict(row)
        agree(ticket, said, brute)
        if t % 3 == 0:
            model.forget(ticket)
        elif t % 3 == 1:
            label = generator.random()
            model.learn(ticket, label)
            brute.learn(t, features, groups, label, said)
    same_table(model, brute)


def test_indicators_are_features_like_any_other():
    groups = [gw.cut("u", [-0.3, 0.3], labels=["low", "middle", "high"]), gw.by("colour")]
    model = gw.Groupwise(groups, indicators=True, intercept=False, **AS_PUBLISHED)
    brute = BruteForce()
    generator = np.random.default_rng(8)
    for t in range(50):
        u, colour = generator.uniform(-1, 1), ["red", "green"][generator.integers(2)]
        part = "low" if u <= -0.3 else "middle" if u <= 0.3 else "high"
        memberships = {f"u: {part}": 1.0, f"colour={colour}": 1.0, "always_on": 1.0}
        features = {"u": u, f"colour={colour}": 1.0, f"u: {part}": 1.0}
        said = brute.predict(t, features, memberships)
        ticket = model.predict({"u": u, "colour": colour})
        agree(ticket, said, brute)
        label = float(np.clip(0.5 + 0.4 * (part == "high") + generator.normal() / 9, 0, 1))
        model.learn(ticket, label)
        brute.learn(t, features, memberships, label, said)
    same_table(model, brute)


def test_where_nobody_is_awake_the_middle_is_played_and_nothing_is_learned():
    model = gw.Groupwise(
        [gw.weight("part")], loss=gw.losses.Square(-4, 10), always_on=False, indicators=False
    )
    model.learn_one({"part": 1.0, "u": 1.0}, 9)
    before = model.regret().rows
    ticket = model.predict({"part": 0.0, "u": 1.0})
    assert ticket.prediction == 3.0
    assert ticket.weights.size == 0
    model.learn(ticket, -4)
    assert model.regret().rows == before
