"""Triangular factors of rows, against NumPy; the same bits whatever the width and the driver."""

import os
import subprocess
import sys

import numpy as np
import pytest

from groupwise.kernels.calm import (
    far_from_dependent,
    set_aside,
    take_back,
    to_factor,
    to_sums,
)
from groupwise.kernels.factor import fold
from groupwise.kernels.layout import room


def folded(x, y, together, width=None):
    """R, z and ρ of rows that are folded in some at a time."""
    size = width or room(x.shape[1])
    factor, right, rest = np.zeros((size, size)), np.zeros(size), 0.0
    for start in range(0, len(y), together):
        rows, labels = np.full((room(together), size), 7.0), np.full(room(together), 7.0)
        count = len(y[start : start + together])
        rows[:count] = 0.0
        rows[:count, : x.shape[1]] = x[start : start + count]
        labels[:count] = y[start : start + count]
        rest += fold(factor, right, rows, labels, count, size)
    return np.triu(factor), right, rest


def problem(rows, width, seed=0):
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, width)), generator.random(rows)


@pytest.mark.parametrize("together", [1, 3, 8, 32])
@pytest.mark.parametrize("width", [1, 4, 7, 12, 25, 40])
def test_a_factor_has_the_products_of_the_rows(together, width):
    x, y = problem(90, width)
    factor, right, rest = folded(x, y, together)
    np.testing.assert_allclose((factor.T @ factor)[:width, :width], x.T @ x, atol=1e-12)
    np.testing.assert_allclose((factor.T @ right)[:width], x.T @ y, atol=1e-12)
    assert right @ right + rest == pytest.approx(y @ y, rel=1e-13)
    residual = y - x @ np.linalg.lstsq(x, y, rcond=None)[0]
    assert rest == pytest.approx(residual @ residual, rel=1e-12)


def test_scales_are_no_matter():
    """A column times a power of two, from 1e-150 to 1e100: the same digits, to the last."""
    x, y = problem(60, 6)
    scales = 2.0 ** np.array([-490, 330, 0, -120, 200, -1])
    factor, right, rest = folded(x, y, 32)
    scaled, other, again = folded(x * scales, y, 32)
    np.testing.assert_allclose(scaled[:6, :6], factor[:6, :6] * scales, rtol=1e-13)
    np.testing.assert_allclose(other, right, rtol=1e-12, atol=1e-15)
    assert again == pytest.approx(rest, rel=1e-13)


def test_columns_that_nobody_uses_change_no_digit():
    x, y = problem(70, 5)
    factor, right, rest = folded(x, y, 32)
    wide, wide_right, again = folded(x, y, 32, width=40)
    assert (wide[:8, :8] == factor).all()
    assert not wide[:, 5:].any()
    assert (wide_right[:8] == right).all()
    assert again == rest
    apart = np.zeros((70, 12))
    apart[:, [0, 2, 5, 9, 11]] = x
    found, _, left = folded(apart, y, 32)
    assert left == pytest.approx(rest, rel=1e-12)
    assert not found[:, [1, 3, 4, 6, 7, 8, 10]].any()


def test_factors_merge_as_sums_do():
    x, y = problem(80, 6)
    one, z, rest = folded(x[:30], y[:30], 32)
    other, other_z, other_rest = folded(x[30:], y[30:], 32)
    more = fold(one, z, other.copy(), other_z.copy(), 8, 8)
    _, _, whole = folded(x, y, 32)
    assert rest + other_rest + more == pytest.approx(whole, rel=1e-12)


def test_zeros_and_equal_rows_leave_no_trace_that_is_not_a_number():
    for x in (np.zeros((9, 4)), np.ones((9, 4)), np.full((9, 4), 1e-300), np.full((9, 4), 1e150)):
        factor, right, rest = folded(x, np.ones(9), 4)
        assert np.isfinite(factor).all()
        assert np.isfinite(right).all()
        assert 0.0 <= rest <= 9.0 * (1 + 1e-14)


@pytest.mark.parametrize("width", [3, 8, 21])
def test_sums_and_back(width):
    x, y = problem(100, width)
    factor, right, rest = folded(x, y, 32)
    size = room(width)
    lengths, sums, moment = np.empty(size), factor.copy(), right.copy()
    assert far_from_dependent(sums, lengths, size)
    np.testing.assert_allclose(lengths[:width], np.linalg.norm(x, axis=0))
    power = np.array([rest])
    to_sums(sums, moment, power, lengths, size)
    np.testing.assert_allclose(np.tril(sums)[:width, :width], np.tril(x.T @ x), atol=1e-12)
    np.testing.assert_allclose(moment[:width], x.T @ y, atol=1e-12)
    assert power[0] == pytest.approx(y @ y)
    to_factor(sums, moment, power, size)
    np.testing.assert_allclose(np.abs(np.triu(sums)), np.abs(factor), atol=1e-12)
    np.testing.assert_allclose(np.abs(moment), np.abs(right), atol=1e-12)
    assert power[0] == pytest.approx(rest)


@pytest.mark.parametrize("width", [3, 8, 21])
def test_sums_that_were_set_aside_come_back(width):
    generator, size = np.random.default_rng(0), room(width)
    parts = np.round(8.0 * generator.normal(size=(3, size, size)))  # whole: they add up exactly
    moments, aside = np.round(8.0 * generator.normal(size=(3, size))), np.zeros((8, size))
    factor, right, rest = np.zeros((size, size)), np.zeros(size), np.zeros(1)
    for part, moment in zip(parts, moments, strict=True):
        for first in range(0, size, 4):  # as ``add_outer`` does: blocks on the diagonal are whole
            factor[first : first + 4, : first + 4] += part[first : first + 4, : first + 4]
        right += moment
        rest += 3.0
        set_aside(factor, right, rest, aside, size)
        assert not any(part.any() for part in (np.tril(factor), right, rest))
    take_back(factor, right, rest, aside, size)
    assert np.array_equal(np.tril(factor), np.tril(parts.sum(axis=0)))
    assert np.array_equal(right, moments.sum(axis=0))
    assert rest[0] == 9.0
    assert not any(part.any() for part in (aside, np.triu(factor, 4)))


@pytest.mark.parametrize("ratio", [1.0, 1e2, 1e4, 1e8])
def test_sums_do_not_stand_in_where_they_would_lose_digits(ratio):
    x, y = problem(100, 4)
    x[:, 0], x[:, 3] = 1.0, ratio + x[:, 3]
    factor, _, _ = folded(x, y, 32)
    assert far_from_dependent(factor, np.empty(4), 4) == (ratio < 50.0)


@pytest.mark.parametrize("size", [1e-60, 1e-170, 1e101])
def test_nor_where_products_would_leave_the_range(size):
    x, y = problem(100, 4)
    x[:, 2] *= size
    factor, _, _ = folded(x, y, 32)
    assert not far_from_dependent(factor, np.empty(4), 4)


BITS = """
from tests.kernels.test_factor import folded, problem
print([[x.hex() for x in part.ravel()] for part in folded(*problem(75, 21), together=32)[:2]])
"""


@pytest.mark.parametrize(
    "setting",
    [{"GROUPWISE_VECTOR_WIDTH": "4"}, {"GROUPWISE_VECTOR_WIDTH": "8"}, {"NUMBA_DISABLE_JIT": "1"}],
    ids=str,
)
@pytest.mark.slow
def test_the_same_bits_on_every_machine_and_without_a_compiler(setting):
    x, y = problem(75, 21)
    wanted = [[value.hex() for value in part.ravel()] for part in folded(x, y, 32)[:2]]
    ran = subprocess.run(
        [sys.executable, "-c", BITS],
        env={**os.environ, **setting},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == str(wanted)
