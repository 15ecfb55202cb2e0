"""The rules of the core hold for models of actions: tickets, delays, snapshots, sampling."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import SnapshotError, TicketError
from tests.states import assert_same_arrays, state_of

FIELDS = ["a", "b"]
CONTEXTS = [[0, 0], [0, 1], [1, 0], [1, 1]]
EDGES = [("s", "u"), ("s", "v"), ("u", "t"), ("v", "t"), ("u", "v"), ("v", "u")]

Make = Callable[..., gw.Groupwise]


def router(**options: Any) -> gw.Groupwise:
    oracle = gw.oracles.ShortestPath(EDGES, "s", "t")
    learner = gw.learners.FTPL(oracle, cost_norm=6.0)
    return gw.Groupwise([gw.by("rain")], learner, loss=gw.losses.Linear(0.0, 3.0), **options)


def labeller(**options: Any) -> gw.Groupwise:
    learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), CONTEXTS)
    loss = gw.losses.ZeroOne()
    return gw.Groupwise([gw.by("rain")], learner, loss=loss, features=FIELDS, **options)


def multi_labeller(**options: Any) -> gw.Groupwise:
    separator = gw.oracles.Stumps().separator(2)
    learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), separator, "separator")
    loss = gw.losses.Hamming(labels=2)
    return gw.Groupwise([gw.by("rain")], learner, loss=loss, features=FIELDS, **options)


def enumerating(**options: Any) -> gw.Groupwise:
    table = [[0, 0, 1, 1], [0, 1, 0, 1], [1, 1, 1, 1]]
    policies = gw.oracles.FiniteClass(table, CONTEXTS)
    return gw.enumerated.BlumLykouris(policies, [gw.by("rain")], features=FIELDS, **options)


def enumerating_paths(**options: Any) -> gw.Groupwise:
    actions = gw.oracles.Finite([[1, 0, 1, 0, 0, 0], [0, 1, 0, 1, 0, 0]])
    loss = gw.losses.Linear(0.0, 3.0)
    return gw.enumerated.BlumLykouris(actions, [gw.by("rain")], loss=loss, **options)


EVERY = pytest.mark.parametrize(
    "make", [router, labeller, multi_labeller, enumerating, enumerating_paths]
)


def stream(model: gw.Groupwise, count: int, seed: int) -> list[tuple[dict[str, object], object]]:
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(count):
        a, b, rain = rng.integers(0, 2, 3).tolist()
        label: object = int(rng.random() < (0.9 if a else 0.1))
        if isinstance(model.loss, gw.losses.Hamming):
            label = [int(label), b]  # type: ignore[call-overload]
        if isinstance(model.loss, gw.losses.Linear):
            label = rng.uniform(0.0, 0.9, 6)
        found.append(({"a": a, "b": b, "rain": bool(rain)}, label))
    return found


@EVERY
def test_labels_at_once_cost_no_delay_and_predict_is_pure(make: Make) -> None:
    model, other = make(seed=4), make(seed=4)
    for row, label in stream(model, 60, 0):
        first = model.predict_one(row)
        model.predict_one(row)
        ticket = model.predict(row)
        assert np.array_equal(ticket.prediction, first)
        model.learn(ticket, label)
        other.learn_one(row, label)
    assert_same_arrays(state_of(model), state_of(other))
    assert all(row["delay"] == 0.0 for row in model.regret())


@EVERY
def test_the_play_is_an_expert_s_advice_and_losses_are_expectations(make: Make) -> None:
    model = make()
    expected = realised = 0.0
    for row, label in stream(model, 60, 1):
        ticket = model.predict(row)
        assert ticket.weights.sum() == pytest.approx(1.0)
        flat = ticket.advice.reshape(-1, *np.shape(ticket.prediction))
        assert any(np.array_equal(ticket.prediction, advice) for advice in flat)
        costs, offset = model.loss.linear(model.loss.encode(label))
        losses = flat.reshape(len(flat), -1) @ costs + offset
        expected += float(ticket.weights.reshape(-1) @ losses)
        realised += float(np.atleast_1d(ticket.prediction) @ costs + offset)
        model.learn(ticket, label)
    total = model.regret()["always_on"]
    assert total["loss"] == pytest.approx(expected)
    assert total["realised_loss"] == pytest.approx(realised)


@EVERY
def test_late_tickets_in_any_order_through_text_and_files(make: Make, tmp_path: Path) -> None:
    model, other = make(seed=2), make(seed=2)
    other._key = model._key
    rounds = stream(model, 80, 3)
    tickets = [model.predict(row) for row, _ in rounds]
    same_tickets = [other.predict(row) for row, _ in rounds]
    order = np.random.default_rng(0).permutation(80).tolist()
    for step, i in enumerate(order):
        model.learn(tickets[i], rounds[i][1])
        other.learn(gw.Ticket.from_json(same_tickets[i].to_json()), rounds[i][1])
        if step == 40:
            other.save(tmp_path / "model")
            other = gw.load(tmp_path / "model")
    assert_same_arrays(state_of(model), state_of(other))
    table = model.regret()
    assert any(row["delay"] != 0.0 for row in table)
    for row in table:
        assert row["certificate"] == pytest.approx(
            row["learner"] + row["aggregator"] + row["delay"]
        )
    with pytest.raises(TicketError, match="settled already"):
        model.learn(tickets[0], rounds[0][1])
    with pytest.raises(TicketError, match="not issued"):
        make().learn(tickets[0], rounds[0][1])


@EVERY
def test_forgotten_tickets_and_saved_models(make: Make, tmp_path: Path) -> None:
    model = make(seed=9)
    rounds = stream(model, 50, 5)
    for row, label in rounds[:20]:
        model.learn_one(row, label)
    model.forget(model.predict(rounds[0][0]))
    model.save(tmp_path / "model")
    other = gw.load(tmp_path / "model")
    for row, label in rounds[20:]:
        one, two = model.predict(row), other.predict(row)
        assert np.array_equal(one.prediction, two.prediction)
        model.learn(one, label)
        other.learn(two, label)
    assert_same_arrays(state_of(model), state_of(other))
    assert repr(model.regret()) == repr(other.regret())


@EVERY
def test_nobody_awake_plays_an_action_and_learns_nothing(make: Make) -> None:
    model = make(always_on=False)
    (row, label), *_ = stream(model, 1, 0)
    ticket = model.predict({**row, "rain": None})
    assert set(np.atleast_1d(ticket.prediction).tolist()) <= {0, 1}
    model.learn(gw.Ticket.from_json(ticket.to_json()), label)
    assert len(model.regret()) == 0


def test_weights_between_zero_and_one() -> None:
    oracle = gw.oracles.Finite(np.eye(2))
    learner = gw.learners.FTPL(oracle, cost_norm=2.0)
    model = gw.Groupwise([gw.weight("share")], learner, loss=gw.losses.Linear(0.0, 1.0))
    for t in range(50):
        model.learn_one({"share": (t % 4) / 4}, [0.2, 0.8])
    row = model.regret()["share"]
    assert row["rounds"] == pytest.approx(50 * 1.5 / 4, abs=0.5)
    assert row["best_loss"] == pytest.approx(0.2 * row["rounds"])


def test_two_learners_on_every_group() -> None:
    oracle = gw.oracles.ShortestPath(EDGES, "s", "t")
    learners = [gw.learners.FTPL(oracle, 6.0), gw.learners.FTPL(oracle, 6.0, horizon=100)]
    model = gw.Groupwise([gw.by("rain")], learners, loss=gw.losses.Linear(0.0, 3.0))
    for row, label in stream(model, 50, 0):
        ticket = model.predict(row)
        assert ticket.advice.shape == (2, 2, 6)
        model.learn(ticket, label)
    assert model.regret()["always_on"]["status"] in ("in expectation, sampled", "vacuous")


def test_labels_are_not_aliased() -> None:
    model = router()
    costs = np.full(6, 0.5)
    ticket = model.predict({"rain": True})
    model.learn(ticket, costs)
    costs[:] = 99.0
    assert state_of(model)["learner0.costs"].max() == 0.5
    ticket.prediction[:] = 7
    assert model.predict_one({"rain": True}).max() == 1


def test_parts_that_cannot_be_saved_are_named(tmp_path: Path) -> None:
    from sklearn.tree import DecisionTreeClassifier

    oracle = gw.oracles.Sklearn(DecisionTreeClassifier())
    learner = gw.learners.ContextualFTPL(oracle, CONTEXTS)
    model = gw.Groupwise([gw.by("rain")], learner, loss=gw.losses.ZeroOne(), features=FIELDS)
    with pytest.raises(SnapshotError, match="ContextualFTPL"):
        model.save(tmp_path / "model")


@EVERY
def test_a_replay_is_refused_by_name(make: Make) -> None:
    import pandas

    frame = pandas.DataFrame({"a": [0], "b": [1], "rain": [True], "y": [1]})
    with pytest.raises(gw.GroupwiseError, match="cannot enter a replay"):
        make().replay(frame, "y")
