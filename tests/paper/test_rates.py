"""Exponents are those of known powers, and no regret is above its bound."""

import numpy as np
import pytest

from groupwise.paper import rates
from groupwise.paper.claims import Request
from tests.few import few


def test_exponents_of_powers():
    values = [10, 100, 1_000]
    assert rates.slope(values, 3.0 * np.sqrt(values)) == pytest.approx(0.5)
    assert rates.slope(values, np.full(3, 7.0)) == pytest.approx(0.0)


@pytest.mark.parametrize("place", few(range(9), 3))
def test_no_regret_is_above_its_bound(place):
    one = rates.rates([100, 300], 100)[place]
    for value in one.values[:2]:
        for seed in (1, 2):
            found = one.run(value, seed)
            assert found.regret <= found.bound
            assert found == one.run(value, seed)


def test_a_separator_is_as_large_as_it_is_said_to_be():
    import groupwise as gw

    for size in rates.SEPARATORS:
        assert len(gw.oracles.Stumps().separator(2 ** (size - 2))) == size


@pytest.mark.slow
def test_the_claims_hold_on_shorter_streams():
    outcome = rates.run(Request(seeds=3, rounds=2_000, jobs=1))
    below = [check for check in outcome.checks if "above its bound" in check.claim]
    assert len(below) == 9
    assert all(check.holds for check in below)
    assert outcome.numbers["Classification, separator, against T/exponent"] < 0.75
    assert outcome.numbers["Apple tasting, against T/exponent"] < 0.95
