"""The vector loops against plain NumPy, for every size of a tile and its rest."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.kernels.loops import (
    absorb,
    add_and_scale,
    add_outer,
    combine_first,
    combine_rows,
    dense_dot,
    dense_dots,
    dense_power,
    dense_products,
    prefetch,
    substitute,
    subtract_outer,
)

WIDTHS = [4, 8, 12, 16, 20, 28, 32, 36, 60, 64, 96, 100]


def numbers(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def symmetric(size):
    half = numbers(size, size)
    return half + half.T


@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_combined(width):
    matrix, untouched = numbers(width + 4, width + 4), 7.0
    xi, xv = np.array([0, 2, width - 1]), np.array([0.5, -2.0, 3.0])
    out = np.full(width + 4, untouched)
    combine_rows(out, matrix, xi, xv, width)
    np.testing.assert_allclose(out[:width], xv @ matrix[xi, :width], rtol=1e-13, atol=1e-13)
    assert (out[width:] == untouched).all()


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("count", [0, 1, 5])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_first_rows_are_combined(width, count, keep):
    matrix, values = numbers(6, width + 4), numbers(6, seed=1)
    out = numbers(width + 4, seed=2)
    wanted = keep * out[:width] + values[:count] @ matrix[:count, :width]
    beyond = out[width:].copy()
    combine_first(out, keep, matrix, values, count, width)
    np.testing.assert_allclose(out[:width], wanted, rtol=1e-13, atol=1e-13)
    assert (out[width:] == beyond).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_four_products_at_once_are_four_single_ones_bit_for_bit(width):
    matrix, values = numbers(width, width + 4), numbers(6 * width, seed=1)
    starts = np.array([3, 5 * width, width, 2 * width])
    together, alone = np.zeros((4, width)), np.zeros(width)
    dense_products(together, matrix, values, starts, width, width)
    for row, start in zip(together, starts, strict=True):
        x = values[start : start + width].copy()
        combine_first(alone, False, matrix, x, width, width)
        assert np.array_equal(row, alone)
        np.testing.assert_allclose(row, x @ matrix[:width, :width], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("count", [0, 1, 8])
@pytest.mark.parametrize("width", WIDTHS)
def test_outer_products_are_added_and_subtracted(width, count):
    before, rows = symmetric(width + 4), numbers(count, width + 4, seed=1)
    products = rows[:, :width].T @ rows[:, :width]
    whole, lower = before.copy(), before.copy()
    subtract_outer(whole, rows, width)
    add_outer(lower, rows, width)
    old = before[:width, :width]
    np.testing.assert_allclose(whole[:width, :width], old - products, rtol=1e-12, atol=1e-12)
    assert np.array_equal(whole, whole.T)
    found = np.tril(lower[:width, :width])
    np.testing.assert_allclose(found, np.tril(old + products), rtol=1e-12, atol=1e-12)
    for matrix in (whole, lower):
        assert np.array_equal(matrix[width:], before[width:])
        assert np.array_equal(matrix[:, width:], before[:, width:])


@pytest.mark.parametrize("width", WIDTHS)
def test_products_of_vectors(width):
    rows, vector = numbers(9, width + 4), numbers(width + 4, seed=1)
    out = np.zeros(9)
    dense_dots(out, rows, 7, vector, width)
    np.testing.assert_allclose(out[:7], -rows[:7, :width] @ vector[:width], rtol=1e-12, atol=1e-13)
    assert (out[7:] == 0.0).all()
    assert dense_dot(rows[3].copy(), vector, width) == -out[3]


@pytest.mark.parametrize("width", WIDTHS)
def test_a_vector_is_added_and_scaled(width):
    total, vector = numbers(width + 4), numbers(width + 4, seed=1)
    scaled = np.full(width + 4, 7.0)
    wanted = total[:width] + 0.25 * vector[:width]
    beyond = total[width:].copy()
    add_and_scale(total, 0.25, scaled, -3.0, vector, width)
    np.testing.assert_allclose(total[:width], wanted, rtol=1e-14, atol=1e-15)
    assert np.array_equal(scaled[:width], -3.0 * vector[:width])
    assert np.array_equal(total[width:], beyond)
    assert (scaled[width:] == 7.0).all()


@pytest.mark.parametrize("width", WIDTHS)
def test_squares_are_weighted(width):
    weights, vector = numbers(width + 4), numbers(width + 4, seed=1)
    wanted = weights[:width] @ vector[:width] ** 2
    assert dense_power(weights, vector, width) == pytest.approx(wanted, rel=1e-12, abs=1e-13)


def triangle(size):
    return np.triu(numbers(size, size), 1) / size + np.diag(1.0 + numbers(size, seed=3) ** 2)


@pytest.mark.parametrize("width", WIDTHS)
def test_triangular_systems_are_solved(width):
    matrix, row = triangle(width + 4), numbers(width + 4, seed=1)
    first = width // 8 * 4
    row[:first] = 0.0
    solved = np.full(width + 4, 7.0)
    substitute(matrix, row.copy(), solved, first, width)
    assert (solved[:first] == 7.0).all()
    assert (solved[width:] == 7.0).all()
    solved[:first] = 0.0
    restored = solved[:width] @ matrix[:width, :width]
    np.testing.assert_allclose(restored, row[:width], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 1e8, 1e-8, 1e90])
@pytest.mark.parametrize("width", WIDTHS)
def test_rows_are_absorbed_by_a_triangular_factor(width, scale):
    """The same as a QR decomposition of factor and row, up to signs.

    That is accurate in every row only where the large ones come first.
    """
    matrix, right = triangle(width + 4), numbers(width + 4, seed=2)
    row = scale * numbers(width + 4, seed=1)
    first, weight, label = width // 8 * 4, 0.3, 0.7
    row[:first] = 0.0
    solved = np.zeros(width + 4)
    before, right_before = matrix.copy(), right.copy()
    alone = np.zeros(width + 4)
    substitute(matrix, row.copy(), alone, first, width)
    absorb(matrix, right, row.copy(), solved, weight, label, first, width)
    assert np.array_equal(solved, alone)
    some = slice(first, width)
    above = np.column_stack([before[some, some], right_before[some]])
    parts = [above, np.sqrt(weight) * np.append(row[some], label)]
    stacked = np.vstack(parts if scale < 1.0 else parts[::-1])
    wanted = np.linalg.qr(stacked, mode="r")[: width - first]
    wanted *= np.sign(np.diag(wanted))[:, None]
    found = np.column_stack([matrix[some, some], right[some]])
    assert (np.tril(matrix, -1) == 0.0).all()
    assert np.array_equal(matrix[:first], before[:first])
    assert np.array_equal(right[:first], right_before[:first])
    assert (np.abs(found - wanted) <= 1e-13 * np.abs(wanted).max(axis=1)[:, None]).all()
    assert np.array_equal(matrix[:, width:], before[:, width:])
    assert np.array_equal(right[width:], right_before[width:])


def test_asking_for_cells_changes_none():
    array = numbers(3, 40)
    before = array.copy()
    prefetch(array, 40, 40)
    prefetch(array, 119, 1)
    assert np.array_equal(array, before)


def digest(**settings: str) -> list[str]:
    """The width of the vectors and the digest of all results in a process with these settings."""
    path = os.pathsep.join(sys.path)
    ran = subprocess.run(
        [sys.executable, Path(__file__).with_name("loops.py")],
        env={**os.environ, "PYTHONPATH": path, **settings},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


@pytest.mark.slow
def test_vectors_of_four_and_of_eight_give_the_same_bits():
    (four, one), (eight, other) = (digest(GROUPWISE_VECTOR_WIDTH=width) for width in ("4", "8"))
    assert (four, eight) == ("4", "8")
    assert one == other


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="names x86 processors")
@pytest.mark.parametrize("width", ["", "8"])
@pytest.mark.parametrize("cpu", [("x86-64-v3", "+avx2,+fma"), ("generic", "")])
def test_every_processor_gives_the_same_bits(cpu, width):
    name, features = cpu
    settings = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    size, found = digest(**settings, GROUPWISE_VECTOR_WIDTH=width)
    assert size == (width or "4")
    assert found == digest()[1]


def test_another_width_is_an_error():
    ran = subprocess.run(
        [sys.executable, "-c", "import groupwise.kernels.vectors"],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "GROUPWISE_VECTOR_WIDTH": "6"},
        capture_output=True,
        text=True,
    )
    assert "GROUPWISE_VECTOR_WIDTH is '6'. Set it to 4 or 8" in ran.stderr
