"""Exact dependences among columns are told from rounded ones, however alike they look."""

from fractions import Fraction

import numpy as np
import pytest

import groupwise as gw
from groupwise.kernels.sketch import PRIME, residue

ROWS = 300
DRAW = np.random.default_rng(1)
A, B, ONE = DRAW.random(ROWS), DRAW.normal(size=ROWS), np.ones(ROWS)
LEVEL, SEX = DRAW.integers(0, 5, ROWS), DRAW.integers(0, 2, ROWS)
LEVELS = (LEVEL[:, None] == np.arange(5)).astype(float)
SEXES = (SEX[:, None] == np.arange(2)).astype(float)
LAST_BIT = np.where(np.arange(ROWS) == 77, 2.0**-53, 0.0)

EXACT = {
    "levels": [ONE, A, B, LEVELS, SEXES],
    "constants": [ONE, A, 37.123 * ONE, 0.7 * ONE],
    "constants and levels": [37.123 * ONE, 0.7 * ONE, A, SEXES],
    "the same": [ONE, A, B, A],
    "multiples": [ONE, A, 4 * A, -B, B],
    "whole numbers": [ONE, LEVEL, SEX, LEVEL + SEX, 2.0 * LEVEL - 3 * SEX],
}
ROUNDED = {
    "a sum": [ONE, A, B, A + 0.3 * B],
    "a third": [ONE, A, A / 3],
    "all but one bit": [ONE, A, B, A + LAST_BIT],
    "levels and a sum": [ONE, A, B, LEVELS, A + 0.3 * B],
}


def statuses(columns):
    x, weights = np.column_stack(columns), np.column_stack([DRAW.random(ROWS), ONE])
    table = gw.replay(x, DRAW.random(ROWS), weights, names=["part", "always_on"]).regret()
    return {row["status"] for row in table}


@pytest.mark.parametrize("name", EXACT)
def test_what_depends_exactly_leaves_nothing_open(name):
    assert statuses(EXACT[name]) == {"proved"}


@pytest.mark.parametrize("name", ROUNDED)
def test_what_was_rounded_is_uncertain(name):
    assert statuses(ROUNDED[name]) == {"numerically uncertain"}


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.1, -3e-150, 7e99, 5e-324, 2.0**40 + 1])
def test_every_number_has_its_place_modulo_the_prime(value):
    exact = Fraction(value)
    wanted = exact.numerator * pow(exact.denominator, -1, PRIME) % PRIME
    assert int(residue(np.float64(value).view(np.int64))) % PRIME == wanted
