"""Algorithm 1 as it runs, against Algorithm 1 as it is printed."""

import math
import sys
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.aggregators import AdaNormalHedge
from groupwise.learners import Ridge
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction

GROUPS, FEATURES, ROUNDS = 4, 3, 80


def weight(regret, absolute):
    """AdaNormalHedge's w(R, C)."""

    def potential(r):
        return math.exp(max(r, 0.0) ** 2 / (3 * (absolute + 1)))

    return (potential(regret + 1) - potential(regret - 1)) / 2


def algorithm_1(rounds, penalty):
    """The paper's algorithm in its own order, with nothing kept but the past itself.

    ``rounds`` yields (awake groups, x, y); gives the advice, the weights and the play of each.
    """
    past: dict[int, list[Any]] = {
        g: [] for g in range(GROUPS)
    }  # what each group's learner has seen
    regret, absolute = dict.fromkeys(past, 0.0), dict.fromkeys(past, 0.0)
    for awake, x, y in rounds:
        # (a) Subsequence-level prediction: ridge regression on the group's own past.
        advice = {}
        for group in awake:
            matrix, moment = penalty * np.eye(FEATURES), np.zeros(FEATURES)
            for features, label in past[group]:
                matrix, moment = matrix + np.outer(features, features), moment + label * features
            advice[group] = min(1.0, max(0.0, float(np.linalg.solve(matrix, moment) @ x)))
        # (b) Prediction aggregation.
        odds = {group: weight(regret[group], absolute[group]) for group in awake}
        if not any(odds.values()):
            odds = dict.fromkeys(awake, 1.0)
        shares = {group: odds[group] / sum(odds.values()) for group in awake}
        play = sum(shares[group] * advice[group] for group in awake)
        yield list(advice.values()), list(shares.values()), play
        # (c) Update.
        for group in awake:
            gain = (play - y) ** 2 - (advice[group] - y) ** 2
            regret[group] += gain
            absolute[group] += abs(gain)
            past[group].append((x, y))


def stream(seed):
    generator = np.random.default_rng(seed)
    for _ in range(ROUNDS):
        awake = np.flatnonzero(generator.random(GROUPS) < 0.6)
        awake = awake if awake.size else np.array([0])
        x = generator.normal(size=FEATURES)
        y = float(np.clip(0.5 + 0.2 * x[awake[0] % FEATURES] + generator.normal() / 9, 0, 1))
        yield awake, x, y


@pytest.mark.parametrize("penalty", [0.1, 3.0])
@pytest.mark.parametrize("seed", range(3))
def test_it_is_algorithm_1(seed, penalty):
    reduction = Reduction([Ridge(penalty)], AdaNormalHedge(), gw.losses.Square())
    everybody, names = np.arange(GROUPS), [f"x{i}" for i in range(FEATURES)]
    reduction.reserve(everybody, FEATURES, everybody, np.ones(GROUPS))
    plain = algorithm_1(stream(seed), penalty)
    rounds = zip(stream(seed), plain, strict=True)
    for number, ((groups, x, y), (advice, shares, prediction)) in enumerate(rounds):
        awake, row = Awake(groups, np.ones(groups.size)), Row(np.arange(FEATURES), x, names)
        play = reduction.predict(number, awake, row)
        assert play.prediction == pytest.approx(prediction, rel=1e-9)
        assert play.advice[:, 0] == pytest.approx(advice, rel=1e-9, abs=1e-12)
        assert play.probabilities[:, 0] == pytest.approx(shares, rel=1e-9)
        reduction.learn(number, awake, row, y)


def calls_of(action):
    """The functions of Python's that run while an action does: (file, name)."""
    found = []

    def note(frame, event, argument):
        if event == "call":
            code = frame.f_code
            found.append((code.co_filename.rpartition("/")[2], code.co_qualname))

    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(None)
    return found


MODELS = {
    "default": (lambda: gw.Groupwise([gw.by("g")]), 0.5),
    "specialists": (
        lambda: gw.Groupwise([gw.by("g")], aggregator=gw.aggregators.Specialists()),
        0.5,
    ),
    "paths": (
        lambda: gw.Groupwise(
            [gw.by("g")],
            gw.learners.FTPL(gw.oracles.Finite(np.eye(2)), cost_norm=2.0),
            loss=gw.losses.Linear(0, 1),
        ),
        [0.5, 0.25],
    ),
    "fixed policies": (
        lambda: gw.enumerated.BlumLykouris(
            gw.oracles.Finite(np.eye(2)), [gw.by("g")], loss=gw.losses.Linear(0, 1)
        ),
        [0.5, 0.25],
    ),
}


@pytest.mark.parametrize("kind", MODELS)
def test_a_debugger_in_a_model_passes_through_it(kind):
    make, label = MODELS[kind]
    model = make()
    for _ in range(2):  # a first round, and one of groups that are known
        tickets: list[gw.Ticket] = []
        calls = calls_of(lambda tickets=tickets: tickets.append(model.predict({"g": "a"})))
        assert ("reduction.py", "Reduction.predict") in calls
        calls = calls_of(lambda tickets=tickets: model.learn(tickets[0], label))
        assert ("reduction.py", "Reduction.learn") in calls
        assert ("reduction.py", "Reduction.settle") in calls


def test_a_debugger_in_a_replay_and_in_partial_feedback_passes_through_it():
    x = np.ones((5, 1))
    calls = calls_of(lambda: gw.replay(x, x[:, 0], x))
    assert ("reduction.py", "Reduction.settle_stream") in calls
    paying = gw.PayForFeedback(gw.Groupwise([gw.by("g")]), horizon=1)
    calls = calls_of(lambda: paying.learn_one({"g": "a"}, 0.5))
    assert ("reduction.py", "Reduction.learn") in calls


def late_and_at_once():
    """The same rounds, each played before the label of the one before came."""
    model = gw.Groupwise([gw.by("g")], seed=3)
    rows = [({"g": "ab"[t % 2], "u": t / 9}, (t * 7 % 10) / 10) for t in range(10)]
    tickets = [model.predict(row) for row, _ in rows]
    for ticket, (_, label) in zip(tickets, rows, strict=True):
        model.learn(ticket, label)
    at_once = gw.Groupwise([gw.by("g")], seed=3)
    for row, label in rows:
        at_once.learn_one(row, label)
    return model, at_once


def test_late_labels_update_like_labels_at_once_and_cost_a_delay():
    """Advice and play are recomputed at settlement, so what is learned is the same."""
    late, at_once = late_and_at_once()
    groups, features = len(late.group_names), len(late.feature_names)
    one, other = (m._reduction.save(groups, features) for m in (late, at_once))
    for name in one:
        if not name.startswith("ledger."):
            assert np.array_equal(one[name], other[name]), name
    for row, twin in zip(late.regret(), at_once.regret(), strict=True):
        assert row["delay"] == pytest.approx(row["loss"] - twin["loss"], abs=1e-12)
        assert row["certificate"] - twin["certificate"] == pytest.approx(row["delay"], abs=1e-12)


def test_a_sampled_play_is_some_expert_s_advice():
    model = gw.Groupwise([gw.by("g")], play="sample", seed=5)
    for t in range(30):
        ticket = model.predict({"g": "ab"[t % 2], "u": t / 30})
        assert ticket.prediction in ticket.advice
        model.learn(ticket, (t % 3) / 2)
