"""Figures at the ends of what doubles hold: right, or refused beforehand; never proved if not."""

import math
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.protocols import Hindsight
from groupwise.regret import certificate
from groupwise.regret.certificate import totals
from tests.plain import PLAIN

RANGES = [(-1e308, 1e308), (0.0, 1e200), (-1e160, 0.0), (0.0, 1e-200), (0.0, 5e-324)]
SPECIALISTS = gw.aggregators.Specialists()


@pytest.mark.parametrize("kind", [gw.losses.Square, gw.losses.Absolute, gw.losses.Linear])
@pytest.mark.parametrize("ends", RANGES)
def test_label_ranges_that_cannot_be_computed_with(kind, ends):
    with pytest.raises(ConfigurationError, match="must be from 1e-140 to 1e\\+140"):
        kind(*ends)


@pytest.mark.parametrize("aggregator", [None, SPECIALISTS])
@pytest.mark.parametrize("width", [1e-140, 1e-100, 1e100, 1e140])
def test_wide_and_narrow_ranges_only_change_the_units(width, aggregator):
    generator = np.random.default_rng(0)
    cells = [({"g": "ab"[t % 2], "u": 0.5}, float(y)) for t, y in enumerate(generator.random(40))]

    def table(width):
        loss = gw.losses.Square(0.0, width)
        model = gw.Groupwise([gw.by("g")], aggregator=aggregator, loss=loss)
        for row, y in cells:
            model.learn_one(row, width * y)
        return model.regret()

    plain = table(1.0)
    for line in table(width):
        assert line["loss"] / width / width == pytest.approx(plain[line["group"]]["loss"])
        assert line["regret"] <= line["certificate"] < math.inf
        assert line["certificate"] > 0.0
        assert line["status"] == plain[line["group"]]["status"]


@pytest.mark.parametrize("mass", [1e308, 1e101, 1e-101, 5e-324])
def test_masses_that_cannot_be_computed_with(mass):
    with pytest.raises(ConfigurationError, match="from 1e-100 to 1e\\+100"):
        gw.Groupwise([gw.by("g")], prior={"g=a": mass})
    with pytest.raises(ConfigurationError, match="from 1e-100 to 1e\\+100"):
        gw.replay(np.ones((2, 1)), np.zeros(2), np.ones((2, 2)), prior=[mass, 1.0])


@pytest.mark.parametrize("aggregator", [None, SPECIALISTS])
def test_masses_far_apart(aggregator):
    """The price of the light group is the logarithm of what is between them."""
    prior = {"g=a": 1e-100, "always_on": 1e100}
    model = gw.Groupwise([gw.by("g")], gw.learners.Ridge(), aggregator, prior=prior)
    for t in range(2_000):
        model.learn_one({"g": "a", "u": float(t % 7)}, (t * 0.37) % 1.0)
    light, heavy = model.regret()["g=a"], model.regret()["always_on"]
    assert math.isfinite(light["certificate"])
    assert light["regret"] <= light["certificate"]
    if aggregator is not None:
        assert light["aggregator"] == pytest.approx(200 * math.log(10.0) / 2.0)
        assert heavy["aggregator"] == pytest.approx(0.0, abs=1e-15)


class Says:
    """Advises what a field says."""

    def __init__(self, field):
        self.field = field

    def advise(self, row, weight):
        return row.mapping().get(self.field, 0.0)

    def update(self, row, label, weight):
        pass


class OwnHedge(gw.aggregators.AdaNormalHedge):
    """The same, in Python."""

    kernel = ""


@pytest.mark.parametrize("weight", [5e-324, 1e-310, 1e-200, 1e-101])
@pytest.mark.parametrize("aggregator", [PLAIN["aggregator"], OwnHedge(), SPECIALISTS])
def test_memberships_next_to_nothing_weigh_as_they_should(aggregator, weight):
    """All memberships of a round times a number leave its weights as they are."""
    learners = [Says("a"), Says("b")]

    def a_model():
        model = gw.Groupwise(
            [gw.weight("v"), gw.weight("w")],
            learners,
            aggregator,
            always_on=False,
            prior={"v": 0.3, "w": 0.01},
            features=["a", "b"],
            indicators=False,
        )
        for t in range(30):
            model.learn_one({"v": 1.0, "w": 0.5, "a": 0.9, "b": 0.2}, 1.0 if t % 5 else 0.0)
        return model

    row = {"a": 0.9, "b": 0.2}
    plain = a_model().predict({**row, "v": 1.0, "w": 1.0})
    small = a_model().predict({**row, "v": weight, "w": weight})
    np.testing.assert_allclose(small.weights, plain.weights, rtol=1e-12)
    assert small.prediction == pytest.approx(plain.prediction, rel=1e-12)
    model = a_model()
    before = model.regret().rows
    for _ in range(5):
        model.learn_one({**row, "v": weight, "w": weight}, 0.0)
    for line, earlier in zip(model.regret(), before, strict=True):
        assert line["certificate"] == pytest.approx(earlier["certificate"], rel=1e-12)


def test_only_memberships_next_to_nothing():
    model = gw.Groupwise([gw.weight("w")], always_on=False, prior={"w": 0.3})
    for _ in range(3):
        model.learn_one({"w": 5e-324, "u": 1.0}, 0.3)
    (line,) = model.regret()
    assert all(math.isfinite(line[key]) for key in ("loss", "regret", "certificate", "delay"))


@pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("term", ["best", "bound", "loss", "delay", "expert_loss"])
@pytest.mark.parametrize("randomised", [False, True])
def test_what_is_not_a_number_is_not_proved(term, wrong, randomised):
    learner: Any = Says("a")
    learner.randomised = randomised
    model = gw.Groupwise([gw.by("g")], learner)
    for t in range(3_000):
        model.learn_one({"g": "a", "a": 0.5}, float(t % 2))
    reduction = model._reduction
    books, best = totals(reduction.books.of(0)), Hindsight(749.0)
    bounds = certificate.aggregator_bounds(reduction, 2)[0]
    status = certificate.certify(reduction, books, 0, best, bounds).status
    assert status == ("in expectation" if randomised else "proved")
    if term == "best":
        best = Hindsight(wrong)
    elif term == "bound":
        bounds = np.full_like(bounds, wrong)
    else:
        books = books._replace(**{term: np.full_like(getattr(books, term), wrong)})
    status = certificate.certify(reduction, books, 0, best, bounds).status
    assert status == "numerically uncertain"


@pytest.mark.slow
def test_sums_of_very_many_rounds_keep_their_digits():
    """0.7² does not end in binary: a plain sum of three million of it is off in the tenth digit."""
    rounds = 3_000_000
    ones = np.ones((rounds, 1))
    found = gw.replay(
        np.zeros((rounds, 1)), np.full(rounds, 0.7), ones, keep=(), jobs=1, names=["always_on"]
    ).regret()["always_on"]
    wanted = math.fsum([0.7 * 0.7] * 1000) * (rounds / 1000)
    assert abs(found["loss"] - wanted) <= 4e-16 * wanted
    assert abs(found["learner"] + found["best_loss"] - wanted) <= 1e-15 * wanted
