"""The certificate's terms and status, each against its own computation."""

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from tests.plain import PLAIN
from tests.streams import BruteForce, random_arrays, random_row


def hedge_bounds(absolute, prior):
    b = 1 + 1.5 * np.sum(prior * (1 + np.log1p(absolute)))
    return np.sqrt(3 * absolute * np.log(b / prior))


def account(result, y, membership):
    """R, C and the experts' losses of a replay, from what it kept: group by learner."""
    rows, groups = membership.shape
    advice = result.advice.reshape(result.advice.shape[0], -1)
    regret, absolute, own = (np.zeros((groups, advice.shape[1])) for _ in range(3))
    place = 0
    for t in range(rows):
        for g in np.flatnonzero(membership[t]):
            losses = (advice[place] - y[t]) ** 2
            gain = membership[t, g] * (result.expected_loss[t] - losses)
            regret[g] += gain
            absolute[g] += np.abs(gain)
            own[g] += membership[t, g] * losses
            place += 1
    assert place == len(advice)
    return regret, absolute, own


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
def test_every_term_of_a_portfolio(aggregator, fractional):
    x, y, membership = random_arrays(seed=3, fractional=fractional)
    learners = [gw.learners.Ridge(0.01), gw.learners.Ridge(100.0), gw.learners.Ridge(1.0, True)]
    mass = np.array([1.0, 2.0, 0.5, 4.0])
    parts = {"play": aggregator}
    if aggregator == "specialists":
        parts = {"aggregator": gw.aggregators.Specialists()}
    result = gw.replay(x, y, membership, learner=learners, prior=mass, **parts)
    _, absolute, own = account(result, y, membership)
    prior = np.repeat(mass / mass.sum() / 3, 3).reshape(4, 3)
    bounds = hedge_bounds(absolute, prior)
    if aggregator == "specialists":
        bounds = np.log(1 / prior) / 2
    for g, row in enumerate(result.regret()):
        w = membership[:, g]
        root = np.sqrt(w)
        scaled, target = root[:, None] * x, root * y
        best = np.sum((scaled @ np.linalg.lstsq(scaled, target, rcond=None)[0] - target) ** 2)
        k = np.argmin(own[g] + bounds[g])  # the learner for which the sum is least
        assert row["rounds"] == pytest.approx(w.sum())
        assert row["loss"] == pytest.approx(w @ result.expected_loss)
        assert row["realised_loss"] == pytest.approx(w @ (result.prediction - y) ** 2)
        assert row["best_loss"] == pytest.approx(best)
        assert row["regret"] == pytest.approx(w @ result.expected_loss - best)
        assert row["learner"] == pytest.approx(own[g, k] - best)
        assert row["aggregator"] == pytest.approx(bounds[g, k])
        assert row["delay"] == 0.0
        assert row["certificate"] == pytest.approx(own[g, k] - best + bounds[g, k])
        little = "loose" if row["certificate"] > best else "proved"
        assert row["status"] == ("vacuous" if row["certificate"] > w.sum() else little)


def test_all_losses_are_in_the_labels_units():
    x, y, membership = random_arrays(seed=4)
    x[:, 0] = 1.0  # with a constant, linear models of the scaled label are those of the label
    plain = gw.replay(x, y, membership).regret()
    wide = gw.replay(x, 20 * y - 5, membership, loss=gw.losses.Square(-5, 15)).regret()
    for one, other in zip(plain, wide, strict=True):
        for key in ("loss", "realised_loss", "best_loss", "regret", "certificate", "learner",
                    "aggregator"):  # fmt: skip
            assert other[key] == pytest.approx(400 * one[key], rel=1e-9, abs=1e-9), key
        assert other["rounds"] == one["rounds"]
        assert other["status"] == one["status"]


def test_the_baseline_is_the_always_on_groups_own_learner():
    x, y, membership = random_arrays(seed=5)
    membership[:, 2] = 1.0
    result = gw.replay(x, y, membership, names=["a", "b", "always_on", "d"], **PLAIN)
    entries = np.cumsum(membership.sum(axis=1)).astype(int)
    before = np.append(0, entries[:-1])
    position = before + membership[:, :2].sum(axis=1).astype(int)
    assert result.advice is not None
    baseline = (result.advice[position] - y) ** 2
    table = result.regret()
    assert [row["group"] for row in table] == ["a", "b", "d", "always_on"]
    for g, name in enumerate(["a", "b", "always_on", "d"]):
        expected = membership[:, g] @ baseline - table[name]["best_loss"]
        assert table[name]["baseline_regret"] == pytest.approx(expected)
    assert gw.replay(x, y, membership[:, :2]).regret()["0"]["baseline_regret"] is None


def test_vacuous_is_said_and_proved_is_reached():
    x, y, membership = random_arrays(seed=6, rows=2_000)
    parts: dict[str, Any] = {
        "aggregator": gw.aggregators.Specialists(),
        "prior": [1e-9] * 3 + [1.0],
    }
    early = gw.replay(x[:5], y[:5], membership[:5], **parts).regret()
    late = gw.replay(x, y, membership, **parts).regret()
    assert [row["status"] for row in early][:3] == ["vacuous"] * 3  # ln(1e9)/2 is over 5
    assert [row["status"] for row in late] == ["proved"] * 4
    for row in (*early, *late):
        assert (row["certificate"] > row["rounds"]) == (row["status"] == "vacuous")


def test_a_certificate_above_the_best_loss_is_loose():
    """On the way from too few rounds to many it is vacuous, then loose, then what it should be."""
    x, y, membership = random_arrays(seed=8, rows=400)
    parts: dict[str, Any] = {
        "aggregator": gw.aggregators.Specialists(),
        "prior": [1e-3, 1.0, 1.0, 1.0],
    }
    said = []
    for stop in range(4, 401, 12):
        w, seen, labels = membership[:stop, 0], x[:stop], y[:stop]
        row = gw.replay(seen, labels, membership[:stop], **parts).regret()["0"]
        root = np.sqrt(w)
        solved = np.linalg.lstsq(root[:, None] * seen, root * labels, rcond=None)[0]
        best = float(w @ (seen @ solved - labels) ** 2)
        little = "loose" if row["certificate"] > best else "proved"
        said.append("vacuous" if row["certificate"] > row["rounds"] else little)
        assert row["status"] == said[-1]
    assert list(dict.fromkeys(said)) == ["vacuous", "loose", "proved"]


def test_few_rows_are_marked_where_any_labels_could_be_fitted():
    """By the columns that the group itself has: what others have is 0 in its rows."""
    generator = np.random.default_rng(9)
    x = np.column_stack([np.ones(60), generator.normal(size=(60, 9))])
    x[:20, 6:] = 0.0
    membership = np.zeros((60, 5))
    for g, rows in enumerate([range(6), range(7), range(30, 40), range(30, 41), range(60)]):
        membership[list(rows), g] = 1.0
    table = gw.replay(x, generator.random(60), membership).regret()
    assert [row["few_rows"] for row in table] == [True, False, True, False, False]
    assert [row["best_loss"] < 1e-12 for row in table] == [True, False, True, False, False]
    assert "2 of 5 groups have no more rounds than features" in str(table)
    assert "few_rows" in str(table).splitlines()[0]
    enough = gw.replay(x, generator.random(60), membership[:, 4:]).regret()
    assert "few_rows" not in str(enough)


@pytest.mark.parametrize("loss", [gw.losses.Square(), gw.losses.Log()], ids=repr)
def test_few_rows_of_a_model_of_rows(loss):
    """An intercept, a number, and a text of which the group has two values: four columns."""
    model = gw.Groupwise([gw.by("g")], loss=loss, indicators=False, features=["u", "t"])
    for t in range(5):
        model.learn_one({"g": "b", "u": 0.5, "t": f"other {t}"}, t % 2)
    marks = []
    for t in range(6):
        model.learn_one({"g": "a", "u": t / 7 + 0.1, "t": "xy"[t % 2]}, t // 2 % 2)
        marks.append(model.regret()["g=a"]["few_rows"])
    assert marks == [True, True, True, True, False, False]
    other = gw.Groupwise([gw.by("g")], loss=gw.losses.Absolute(), features=["u"])
    other.learn_one({"g": "a", "u": 0.5}, 1.0)
    assert not any(row["few_rows"] for row in other.regret())  # nothing is fitted afterwards


class Guessing:
    """A learner that says it is randomised."""

    randomised = True
    name = "Guessing"

    def draw(self, key):
        self.value = (key[1] % 10) / 10

    def advise(self, row, weight):
        return getattr(self, "value", 0.5)

    def update(self, row, label, weight):
        pass


def test_randomised_learners_have_certificates_in_expectation():
    model = gw.Groupwise([gw.by("kind")], learner=Guessing(), indicators=False)
    for t in range(200):
        model.learn_one({"kind": "a", "u": 1.0}, t % 2)
    assert {row["status"] for row in model.regret()} == {"in expectation"}


def test_the_delay_term_is_what_playing_early_has_cost():
    model = gw.Groupwise(
        [gw.by("colour"), gw.by("shape"), gw.weight("part"), gw.weight("new")],
        indicators=False,
        intercept=False,
        **PLAIN,
    )
    brute = BruteForce()
    generator = np.random.default_rng(0)
    waiting = []
    for t in range(60):
        row, features, groups = random_row(generator, t / 60)
        waiting.append((model.predict(row), features, groups, brute.predict(t, features, groups)))
    for t in generator.permutation(60):
        ticket, features, groups, said = waiting[t]
        label = float(generator.random() < 0.8)
        model.learn(ticket, label)
        brute.learn(ticket.number, features, groups, label, said)
        expected = brute.table()
        for row in model.regret():
            assert row["delay"] == pytest.approx(expected[row["group"]]["delay"], abs=1e-9)
            assert row["regret"] <= row["certificate"] + 1e-9 * (1 + row["rounds"])
    assert model.regret()["always_on"]["delay"] > 1.0  # every ticket was played in ignorance


def test_certificates_are_finite_where_a_group_was_never_awake():
    x, y, membership = random_arrays(seed=7)
    membership[:, 1] = 0.0
    row = gw.replay(x, y, membership).regret()["1"]
    assert row["rounds"] == row["loss"] == row["best_loss"] == row["regret"] == 0.0
    assert math.isfinite(row["certificate"])


@pytest.mark.parametrize("loss", [gw.losses.Square, gw.losses.Absolute])
@pytest.mark.parametrize(("low", "span"), [(1e15, 4.0), (-1e9, 1.0), (1e6, 1.0), (0.0, 1e-12)])
def test_predictions_that_are_rounded_by_much_of_the_range_prove_nothing(loss, low, span):
    """What is lost by the predictions that were returned, as fractions, is what counts."""
    model = gw.Groupwise([], gw.learners.Ridge(), loss=loss(low, low + span))
    draw, lost = np.random.default_rng(0), Fraction(0)
    for _ in range(40):
        ticket = model.predict({"x": draw.normal()})
        up = Fraction(ticket.prediction) > Fraction(low) + Fraction(span) / 2
        label = low if up else low + span
        away = abs(Fraction(ticket.prediction) - Fraction(label)) / Fraction(span)
        lost += away**2 if loss is gw.losses.Square else away
        model.learn(ticket, label)
    line = model.regret()["always_on"]
    off = abs(float(lost) - line["loss"] / model.loss.unit)
    if line["status"] == "numerically uncertain":
        assert abs(low) > 1e6 * span
    else:
        assert off <= 1e-9 * 40


def test_a_bound_for_each_expert_or_an_error_that_says_so():
    class Careless(gw.aggregators.AdaNormalHedge):
        def bound(self, regret: Any, absolute: Any, prior: Any, loss: Any) -> Any:
            return 0.0

    model = gw.Groupwise([gw.by("a")], gw.learners.Ridge(), Careless())
    model.learn_one({"a": "b", "x": 0.5}, 1.0)
    with pytest.raises(gw.errors.ConfigurationError, match=r"Careless\.bound gave \(\)"):
        model.regret()
