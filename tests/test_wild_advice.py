"""Advice that is not a number: an error at that row that names the learner, and no trace."""

import math
from typing import Any

import numpy as np
import polars
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.protocols import Bank

BAD = [math.nan, math.inf, -math.inf]


class Bursts:
    """Advises what the field ``a`` says, and something else where that is little."""

    def __init__(self, bad):
        self.bad = bad

    def advise(self, row, weight):
        found = row.mapping()["a"]
        return self.bad if found < 0.5 else found

    def update(self, row, label, weight):
        pass


class HiddenBank(Bank):
    """A bank of its own that advises what it was told after so many rows, and checks nothing."""

    def __init__(self, columns, learner):
        self.columns, self.learner, self.seen = list(columns), learner, 0

    def advise(self, number, attempt, awake, row):
        bad = self.seen >= self.learner.after
        return np.full((len(awake.groups), 1), self.learner.bad if bad else 0.25)

    def update(self, awake, row, label):
        self.seen += 1

    def restart(self):
        self.seen = 0

    def save(self, groups, features):
        return {}

    def load(self, arrays, groups, features):
        pass


class Hidden:
    """Its configuration."""

    def __init__(self, bad, after):
        self.bad, self.after = bad, after

    def advise(self, row, weight):
        raise NotImplementedError

    def update(self, row, label, weight):
        raise NotImplementedError

    @classmethod
    def banks(cls, learners, columns, setting):
        return [HiddenBank([c], one) for one, c in zip(learners, columns, strict=True)]


class OwnHedge(gw.aggregators.AdaNormalHedge):
    """The same, in Python."""

    kernel = ""


def frame(count):
    generator = np.random.default_rng(0)
    cells = {"g": ["ab"[t % 2] for t in range(count)], "u": generator.random(count)}
    return polars.DataFrame({**cells, "y": generator.random(count)})


@pytest.mark.parametrize("aggregator", [None, OwnHedge()])
@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("bad", BAD)
def test_the_loop_stops_before_anything_changes(bad, clip, aggregator):
    learners: list[Any] = [gw.learners.Ridge(), Hidden(bad, 5)]
    model = gw.Groupwise([gw.by("g")], learners, aggregator, clip=clip)
    rows = frame(8).to_dicts()
    for row in rows[:5]:
        y = row.pop("y")
        model.learn(model.predict(row), y)
    before = model.regret().rows
    rows[5].pop("y")
    with pytest.raises(ConfigurationError, match="Hidden advised"):
        model.predict(rows[5])
    assert model.issued == 5
    assert model.regret().rows == before


@pytest.mark.parametrize("aggregator", [None, OwnHedge()])
@pytest.mark.parametrize("clip", [True, False])
@pytest.mark.parametrize("bad", BAD)
def test_replay_names_the_row_and_undoes_all(bad, clip, aggregator):
    learners: list[Any] = [gw.learners.Ridge(), Hidden(bad, 4_500)]
    model = gw.Groupwise([gw.by("g")], learners, aggregator, clip=clip)
    count = 4_600 if aggregator is None else 30
    learners[1].after = count - 9
    model.replay(frame(3), "y")
    before = model.regret().rows
    with pytest.raises(ConfigurationError, match="Hidden advised") as caught:
        model.replay(frame(count), "y")
    assert caught.value.row == count - 9 - 3
    assert str(caught.value).startswith(f"row {caught.value.row}: ")
    assert model.regret().rows == before
    assert model.issued == 3


@pytest.mark.parametrize("bad", [*BAD, 1e101, -1e300])
def test_python_learners_in_the_loop_and_in_replay(bad):
    cells = [{"g": "a", "a": 0.5}, {"g": "a", "a": 0.25}]
    learner = Bursts(bad)
    model = gw.Groupwise([gw.by("g")], learner, clip=False, features=["a"], indicators=False)
    model.learn_one(cells[0], 0.5)
    before = model.regret().rows
    with pytest.raises(ConfigurationError, match="Bursts advised"):
        model.learn_one(cells[1], 0.5)
    data = polars.DataFrame([{**row, "y": 0.5} for row in cells])
    with pytest.raises(ConfigurationError, match="Bursts advised") as caught:
        model.replay(data, "y")
    assert caught.value.row == 1
    assert model.regret().rows == before


def test_unclipped_advice_too_large_for_its_square():
    """A late label: what the ticket was played with was fine, what would be learned from is not."""
    model = gw.Groupwise(
        [gw.by("g")],
        gw.learners.Ridge(1e-9),
        clip=False,
        features={"u": None},
        indicators=False,
        intercept=False,
        always_on=False,
    )
    late = model.predict({"g": "a", "u": 1e99})
    model.learn_one({"g": "a", "u": 3e-5}, 1.0)
    assert model.predict_one({"g": "a", "u": 1.0}) > 1e4
    before = model.regret().rows
    with pytest.raises(ConfigurationError, match="Ridge advised"):
        model.learn(late, 0.5)
    assert model.regret().rows == before
    model.check(late)


def test_weights_of_an_aggregator_that_are_not_numbers():
    class Broken(OwnHedge):
        def log_weights(self, regret, absolute, loss):
            return np.full(regret.shape, math.nan if absolute.any() else 0.0)

    model = gw.Groupwise([gw.by("g")], [gw.learners.Ridge(), gw.learners.Ridge(9.0)], Broken())
    for _ in range(2):
        model.learn_one({"g": "a", "u": 0.5}, 0.25)
    before = model.regret().rows
    with pytest.raises(ConfigurationError, match=r"Broken\.log_weights gave nan"):
        model.predict({"g": "a", "u": 0.5})
    assert model.regret().rows == before
