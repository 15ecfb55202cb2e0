"""Log loss near certainty, against arithmetic of 60 digits."""

import math
from decimal import Decimal, localcontext

import numpy as np
import polars
import pytest

import groupwise as gw

LIMIT = 1e-15  # how close to certainty advice may come


class Says:
    """Advises what the row says, by its own number."""

    def __init__(self, number):
        self.number = number

    def advise(self, row, weight):
        return row.mapping().get(f"a{self.number}", 0.0)

    def update(self, row, label, weight):
        pass


class OwnSpecialists(gw.aggregators.Specialists):
    """The same, in Python."""

    kernel = ""


SPECIALISTS = gw.aggregators.Specialists()


def a_model(learners, aggregator=SPECIALISTS, loss=None):
    features = [f"a{k}" for k in range(learners)]
    return gw.Groupwise(
        [gw.by("g")],
        [Says(k) for k in range(learners)],
        aggregator,
        loss=gw.losses.Log() if loss is None else loss,
        features=features,
        indicators=False,
    )


def exact_loss(advice, weights, y):
    """−y ln Σ w a − (1 − y) ln Σ w (1 − a), Σ w = 1."""
    with localcontext() as context:
        context.prec = 60
        pairs = list(zip(advice.ravel().tolist(), weights.ravel().tolist(), strict=True))
        total = sum((Decimal(w) for _, w in pairs), Decimal(0))
        p = sum((Decimal(a) * Decimal(w) for a, w in pairs), Decimal(0)) / total
        lost = Decimal(0)
        if y > 0:
            lost -= Decimal(y) * p.ln()
        if y < 1:
            lost -= (1 - Decimal(y)) * (1 - p).ln()
        return lost


def stream(rounds, learners, seed=0):
    """Experts at and near the ends of the range, and labels that punish the one in the lead."""
    generator = np.random.default_rng(seed)
    for t in range(rounds):
        near = generator.choice([LIMIT, 3e-15, 1e-14, 1e-12, 1e-6, 0.3], size=learners)
        advice = np.where(generator.random(learners) < 0.5, near, 1.0 - near)
        if t % 3 == 0:
            advice = 1.0 - near
        row = {"g": "ab"[t % 2]} | {f"a{k}": float(x) for k, x in enumerate(advice)}
        yield row, float(generator.choice([0.0, 1.0, 0.5, 1e-3]))


@pytest.mark.parametrize("aggregator", [SPECIALISTS, OwnSpecialists()])
def test_the_loss_of_every_play_has_all_its_digits(aggregator):
    model = a_model(3, aggregator)
    total = Decimal(0)
    for row, y in stream(300, 3):
        ticket = model.predict(row)
        wanted = exact_loss(ticket.advice, ticket.weights, y)
        assert model.loss_of_ticket(ticket, y) == pytest.approx(float(wanted), rel=1e-13)
        assert LIMIT <= ticket.prediction <= 1.0 - LIMIT
        model.learn(ticket, y)
        total += wanted
    assert model.regret()["always_on"]["loss"] == pytest.approx(float(total), rel=1e-13)


def regrets(advice, weights, labels):
    """Σ (ℓ̂ − ℓ_i) of each expert, from what a replay or loop has shown, to 60 digits."""
    with localcontext() as context:
        context.prec = 60
        found = [Decimal(0)] * advice.shape[1]
        for said, share, y in zip(advice, weights, labels, strict=True):
            play = exact_loss(said, share, y)
            for i, one in enumerate(said):
                found[i] += play - exact_loss(np.array([one]), np.ones(1), y)
        return [float(one) for one in found]


@pytest.mark.parametrize("seed", range(3))
def test_regret_stays_below_the_certificate_near_certainty(seed):
    """One expert is right all the time: its regret comes as close to ln(1/q) as can be."""
    generator = np.random.default_rng(seed)
    model = a_model(2)
    labels = (generator.random(400) < 0.5).astype(float)
    for t, y in enumerate(labels.tolist()):
        right = 1.0 - LIMIT if y else LIMIT
        wrong = 1.0 - right if t < 2 else 0.5
        model.learn_one({"g": "a", "a0": right, "a1": wrong}, y)
        for line in model.regret():
            assert line["regret"] <= line["certificate"] + 1e-12, (t, line)
    assert {line["status"] for line in model.regret()} == {"loose"}  # it loses nearly nothing


def test_experts_near_certainty_that_differ_in_the_last_digits():
    """Two experts near 1 that differ in what they leave: plain means forget the difference."""
    model, plays, labels = a_model(2), [], []
    for t in range(300):
        y = 0.0 if t % 2 else 1.0
        row = {"g": "a", "a0": 1.0 - 8e-15, "a1": 1.0 - LIMIT}
        ticket = model.predict(row)
        plays.append((ticket.advice.ravel(), ticket.weights.ravel()))
        labels.append(y)
        model.learn(ticket, y)
    said, share = (np.array([one[i] for one in plays]) for i in range(2))
    exact = regrets(said, share, labels)
    line = model.regret()["always_on"]
    assert line["regret"] == pytest.approx(max(exact), rel=1e-9)
    assert line["regret"] <= math.log(4) + 1e-12  # two groups, two learners
    assert line["status"] == "proved"


def test_three_hundred_groups_that_are_certain():
    groups = [gw.by(f"g{i}") for i in range(300)]
    loss, learner = gw.losses.Log(), Says(0)
    model = gw.Groupwise(groups, learner, SPECIALISTS, loss, features=["a0"], indicators=False)
    row = {f"g{i}": "x" for i in range(300)} | {"a0": 1.0}
    for _ in range(60):
        ticket = model.predict(row)
        assert ticket.prediction == 1.0 - LIMIT
        model.learn(ticket, 0.0)
    for line in model.regret():
        assert line["loss"] == pytest.approx(60 * -math.log(1.0 - (1.0 - LIMIT)), rel=1e-12)
        assert line["regret"] <= line["certificate"]
        assert math.isfinite(line["certificate"])


@pytest.mark.parametrize(
    ("aggregator", "loss"),
    [(SPECIALISTS, gw.losses.Log()), (gw.aggregators.AdaNormalHedge(), gw.losses.Log(1e-12))],
)
def test_late_tickets_are_charged_for_what_was_played(aggregator, loss):
    model = a_model(2, aggregator, loss)
    tickets = [(model.predict(row), y) for row, y in stream(60, 2, seed=5)]
    total = 0.0
    for ticket, y in tickets:
        total += float(exact_loss(ticket.advice, ticket.weights, y))
        model.learn(gw.Ticket.from_json(ticket.to_json()) if y else ticket, y)
    assert model.regret()["always_on"]["loss"] == pytest.approx(total, rel=1e-13)


@pytest.mark.parametrize("aggregator", [SPECIALISTS, OwnSpecialists()])
def test_the_loop_and_replay_agree(aggregator):
    cells = list(stream(200, 3, seed=2))
    loop, replayed = a_model(3, aggregator), a_model(3, aggregator)
    tickets = []
    for row, y in cells:
        tickets.append(loop.predict(row))
        loop.learn(tickets[-1], y)
    result = replayed.replay(polars.DataFrame([{**row, "y": y} for row, y in cells]), "y")
    assert result.prediction.tolist() == [ticket.prediction for ticket in tickets]
    again = [loop.loss_of_ticket(one, y) for one, (_, y) in zip(tickets, cells, strict=True)]
    assert result.loss.tolist() == again
    assert loop.regret().rows == replayed.regret().rows


def test_partial_feedback_counts_the_same_losses():
    model = gw.PayForFeedback(a_model(2), horizon=1_000)
    total, count = 0.0, 0
    for row, y in stream(100, 2, seed=3):
        ticket = model.predict(row)
        model.learn(ticket, y)
        if not ticket.wants_label:
            total += float(exact_loss(ticket.advice, ticket.weights, y))
            count += 1
    assert model.free_labels == count
    assert model.free_loss == pytest.approx(total, rel=1e-13)


def test_advice_is_clipped_always():
    with pytest.raises(gw.errors.ConfigurationError, match="leave clip=True"):
        gw.Groupwise([gw.by("g")], aggregator=SPECIALISTS, loss=gw.losses.Log(), clip=False)
