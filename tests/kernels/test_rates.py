"""What Prod does at all rates at once, against its plain-Python reference, bit for bit."""

from typing import Any

import numpy as np
import pytest
from numba import njit

from groupwise.kernels import rates, reference
from tests.kernels.loops import numbers


@njit
def pull(weight, k, reach, ceiling, slope):
    return rates.pull(weight, k, reach, ceiling, slope)


@njit
def turn(weight, charge, k, step, sign, reach, ceiling, whole, both):
    return rates.turn(weight, charge, k, step, sign, reach, ceiling, whole, both)


@njit
def power_of_two(power):
    return rates.power_of_two(power)


@njit
def rescale(weight, k, factor):
    rates.rescale(weight, k, factor)


def same(one, other):
    return np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.parametrize("ceiling", [None, np.inf])
def test_they_do_what_their_reference_does(ceiling):
    generator = np.random.default_rng(0)
    for t in range(300):
        weight = np.abs(numbers(generator, 3, rates.COUNT)) + 1e-300
        charge = np.abs(numbers(generator, 3, rates.COUNT))
        k, reach, step = int(generator.integers(3)), float(generator.random()), generator.random()
        most = ceiling or float(0.25 / generator.random())
        arguments = weight, k, reach, most, float(generator.random())
        assert same(pull(*arguments), reference.pull(*arguments))
        again = weight.copy(), charge.copy()
        rest: Any = k, step, [1.0, -1.0][t % 2], reach, most, 2.0 * step * reach, t % 3 % 2
        with np.errstate(all="ignore"):
            assert same(turn(weight, charge, *rest), reference.turn(*again, *rest))
        assert same(weight, again[0])
        assert same(charge, again[1])
        rescale(weight, k, 2.0**-64)
        reference.rescale(again[0], k, 2.0**-64)
        assert same(weight, again[0])


def test_powers_of_two():
    for power in (-1022, -1, 0, 1, 64, 1023):
        assert power_of_two(power) == reference.power_of_two(power) == 2.0**power


def test_a_turn_by_hand():
    """Two rates that are free, the others held; the charges by their formulas."""
    weight, charge = np.ones((1, 8)), np.zeros((1, 8))
    reach, ceiling, step, whole = 0.1, 0.3, 0.2, 0.05
    change, size, top, free = turn(weight, charge, 0, step, -1.0, reach, ceiling, whole, 1)
    factors = []
    for k in range(8):
        rate = 0.5 * 4**k
        u = step * min(reach, ceiling / rate)
        z = rate * u
        factors.append(1 - z)
        gaining, losing = whole - 2 * u / (2 + z), u + u * z / (2 - 2 * z) - whole
        assert charge[0, k] == pytest.approx(max(gaining, losing), rel=1e-9)
        assert charge[0, k] >= max(gaining, losing)
    assert weight[0] == pytest.approx(factors)
    assert change == pytest.approx(sum((f - 1) / 2**k for k, f in enumerate(factors)))
    assert size == pytest.approx(-change)
    assert top == max(weight[0])
    assert free == pytest.approx(sum(2**k * f for k, f in enumerate(factors)) / 255)
