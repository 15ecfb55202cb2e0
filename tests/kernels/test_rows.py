"""Sums over kept rows, against fractions."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import csr_array

from groupwise.regret.basis import exactly_spanned, factor_of, lines_of, tidy


def rows(generator, zeros):
    """Numbers of many sizes, as a matrix and as the kernels take it."""
    x = generator.normal(size=(20, 7)) * 10.0 ** generator.integers(-8, 8, size=(20, 7))
    x *= generator.random((20, 7)) >= zeros
    return x, lines_of(x if zeros < 0.5 else csr_array(x))


@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_products_are_as_close_as_they_say(zeros):
    generator = np.random.default_rng(0)
    x, lines = rows(generator, zeros)
    high = generator.normal(size=7) * 10.0 ** generator.integers(-8, 8, size=7)
    low = high * generator.normal(size=7) * 2.0**-55
    found, off = lines.dot(high, low)
    for row, value, most in zip(x, found, off, strict=True):
        exact = sum(
            Fraction(a) * (Fraction(b) + Fraction(c))
            for a, b, c in zip(row.tolist(), high.tolist(), low.tolist(), strict=True)
        )
        assert abs(exact - Fraction(float(value))) <= Fraction(float(most))
        assert most <= 1e-15 * abs(value) + 1e-27 * np.abs(row * high).sum()


@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_sums_have_twice_the_digits(zeros):
    generator = np.random.default_rng(1)
    x, lines = rows(generator, zeros)
    factors = generator.normal(size=20)
    high, low = np.zeros((2, 7))
    lines.back(factors, high, low)
    for j in range(7):
        exact = sum(
            Fraction(float(a)) * Fraction(float(b)) for a, b in zip(x[:, j], factors, strict=True)
        )
        size = float(np.abs(x[:, j] * factors).sum())
        assert abs(exact - Fraction(float(high[j])) - Fraction(float(low[j]))) <= 1e-28 * size


def spanned(x, columns):
    """Are all columns combinations of these?"""
    features = tidy(x)
    _, sketch = factor_of(features, np.ones(len(x)), x.shape[1], True)
    return exactly_spanned(lines_of(features), np.array(columns), sketch)


@pytest.mark.parametrize("count", [3, 30, 500])
def test_combinations_with_any_coefficients_are_told_from_rounded_ones(count):
    generator = np.random.default_rng(2)
    x = np.zeros((count, 5))
    x[:, :3] = generator.integers(-9, 9, size=(count, 3))
    x[:3, :3] += 20 * np.eye(3)
    x[:, 3] = x[:, 0] * 2560.625 + x[:, 2] / 128  # exact: few bits each
    x[:, 4] = x[:, 1] - x[:, 2] / 3.0  # rounded, row by row
    assert spanned(x[:, :4], [0, 1, 2])
    assert spanned(x, [0, 1, 2]) == (count == 3)  # three columns span any three rows
    assert spanned(x, [0, 1, 2, 4]) == (count > 3)  # where there are as many
    x[-1, 3] = np.nextafter(x[-1, 3], 1e9)
    assert spanned(x[:, :4], [0, 1, 2]) == (count == 3)


def test_levels_that_are_met_once():
    """Combinations of rows that are looked at must not hide a row that is alone in its kind."""
    x = np.zeros((400, 101))
    x[:, 0] = 1.0
    x[np.arange(400), 1 + np.minimum(np.arange(400), 99)] = 1.0
    assert spanned(x, list(range(100)))
    x[350, 50] = 0.5
    assert not spanned(x, list(range(100)))
