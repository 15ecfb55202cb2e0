"""Learners written in Python, one object per group."""

import numpy as np
import pytest

import groupwise as gw
from groupwise.learners.wrapped import WrappedBank
from groupwise.protocols import Awake, Row, Setting

ROW = Row(np.arange(1), np.ones(1), ["x0"])
AWAKE = Awake(np.array([0, 3]), np.ones(2))


class Die:
    """Advises what it draws, and keeps the keys it was given."""

    def __init__(self):
        self.keys = []
        self.thrown = 0.0

    def draw(self, key):
        self.keys.append(key)
        self.thrown = np.random.default_rng(key).random()

    def advise(self, row, weight):
        return self.thrown

    def update(self, row, label, weight):
        pass


def bank_of(learners, seed=5):
    """A bank of learners that are all the experts of a group."""
    experts = len(learners)
    return WrappedBank(learners, range(experts), Setting(gw.losses.Square(), seed, experts, 1))


class TestDraws:
    def test_a_draw_comes_before_advice_with_seed_number_expert_and_attempt(self):
        bank = bank_of([Die(), Die()])
        bank.advise(7, 1, AWAKE, ROW)
        first, second = bank.prototypes
        assert first.keys == [(5, 7, 0, 1), (5, 7, 6, 1)]
        assert second.keys == [(5, 7, 1, 1), (5, 7, 7, 1)]

    def test_it_depends_on_its_key_and_on_nothing_else(self):
        bank = bank_of([Die()])
        once = bank.advise(7, 0, AWAKE, ROW)
        assert len(np.unique(once)) == 2
        for seed, *other in ((6, 7, 0), (5, 8, 0), (5, 7, 1)):
            assert not np.isin(bank_of([Die()], seed).advise(*other, AWAKE, ROW), once).any()
        for other in ([8, 0], [7, 1]):
            assert not np.isin(bank.advise(*other, AWAKE, ROW), once).any()
        assert (bank.advise(7, 0, AWAKE, ROW) == once).all()

    def test_settling_sees_the_draw_of_the_prediction(self):
        bank = bank_of([Die()])
        advised = bank.advise(7, 0, AWAKE, ROW)
        bank.advise(8, 0, AWAKE, ROW)
        assert bank.step(7, 0, AWAKE, ROW, 1.0, 1.0) == pytest.approx(advised, abs=0.0)
