"""Learners written in Python, one object per group."""

import numpy as np
import pytest

from groupwise.learners.objects import ObjectBank
from groupwise.protocols import Awake, Row

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


class TestDraws:
    def test_a_draw_comes_before_advice_with_seed_number_expert_and_attempt(self):
        first, second = Die(), Die()
        ObjectBank([first, second]).advise(AWAKE, ROW, (5, 7, 1))
        assert first.keys == [(5, 7, 0, 1), (5, 7, 6, 1)]
        assert second.keys == [(5, 7, 1, 1), (5, 7, 7, 1)]

    def test_it_depends_on_its_key_and_on_nothing_else(self):
        bank = ObjectBank([Die()])
        once = bank.advise(AWAKE, ROW, (5, 7, 0))
        assert len(np.unique(once)) == 2
        for other in ((6, 7, 0), (5, 8, 0), (5, 7, 1)):
            assert not np.isin(bank.advise(AWAKE, ROW, other), once).any()
        assert (bank.advise(AWAKE, ROW, (5, 7, 0)) == once).all()

    def test_settling_sees_the_draw_of_the_prediction(self):
        bank = ObjectBank([Die()])
        advised = bank.advise(AWAKE, ROW, (5, 7, 0))
        bank.advise(AWAKE, ROW, (5, 8, 0))
        assert bank.step(AWAKE, ROW, 1.0, (5, 7, 0)) == pytest.approx(advised, abs=0.0)
