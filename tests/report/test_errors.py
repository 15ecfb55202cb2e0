"""Errors by group: bias, intervals, over time and residuals, against the plain definitions."""

import math
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t as student

from groupwise.report.errors import BARS, LEVEL, STRETCHES, Errors, Stretch, joined


def members(groups, weights=None):
    """A membership: the names of every row's groups."""
    names = sorted({name for row in groups for name in row})
    indices = np.array([names.index(name) for row in groups for name in row], np.int64)
    sizes = [len(row) for row in groups]
    return SimpleNamespace(
        names=names,
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        indices=indices,
        weights=np.ones(indices.size) if weights is None else np.asarray(weights, float),
    )


def plainly(values, weights):
    """The interval, written out."""
    mean = np.average(values, weights=weights)
    rounds = weights.sum() ** 2 / (weights**2).sum()
    around = (weights**2 * (values - mean) ** 2).sum() * rounds / (rounds - 1)
    half = student.ppf(0.5 + LEVEL / 2, rounds - 1) * math.sqrt(around) / weights.sum()
    return mean, mean - half, mean + half


@pytest.mark.parametrize("pieces", [1, 7, 300])
def test_means_and_intervals_are_their_definition(pieces):
    draw = np.random.default_rng(pieces)
    groups = [["all", *(["odd"] if i % 2 else [])] for i in range(300)]
    sizes = [len(row) for row in groups]
    weights = draw.uniform(0.1, 1.0, sum(sizes))
    signed = draw.normal(2.0, 5.0, 300)
    errors = Errors(60.0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    for part in np.array_split(np.arange(300), pieces):
        first, last = part[0], part[-1] + 1
        held = members(groups[first:last], weights[starts[first] : starts[last]])
        errors.add(held, signed[first:last] ** 2, signed[first:last])
    every = weights[[starts[i] for i in range(300)]]
    odd = np.array([starts[i] + 1 for i in range(1, 300, 2)])
    for group, rows, own in (("all", slice(None), every), ("odd", slice(1, None, 2), weights[odd])):
        assert errors.loss(group) == pytest.approx(plainly(signed[rows] ** 2, own), rel=1e-9)
        assert errors.bias(group) == pytest.approx(plainly(signed[rows], own), rel=1e-9)
        roots = np.sqrt(plainly(signed[rows] ** 2, own))
        assert errors.loss(group).root == pytest.approx(roots, rel=1e-9)


def test_the_usual_interval_where_every_row_counts_once():
    signed = np.array([1.0, -2.0, 4.0, 0.5])
    errors = Errors()
    errors.add(members([["a"]] * 4), signed**2, signed)
    spread = student.ppf(0.975, 3) * signed.std(ddof=1) / 2.0
    assert errors.bias("a") == pytest.approx(
        (signed.mean(), signed.mean() - spread, signed.mean() + spread)
    )


def test_the_interval_covers_what_was_to_be_expected_of_dependent_rows():
    """Errors that hang together, and grow: x_t = 0.8 x_{t−1} + e_t, e_t ~ N(1/5, t-dependent)."""
    draw = np.random.default_rng(5)
    rounds, streams = 400, 400
    covered = np.zeros(2)
    held = members([["a"]] * rounds)
    scale = np.linspace(0.5, 2.0, rounds)
    for _ in range(streams):
        shocks = draw.normal(0.0, scale)
        signed, expected = np.zeros(rounds), np.zeros(rounds)
        before = 0.0
        for i in range(rounds):
            expected[i] = 0.8 * before + 0.2
            before = signed[i] = expected[i] + shocks[i]
        errors = Errors(20.0)
        errors.add(held, signed**2, signed)
        truth = expected.mean(), (expected**2 + scale**2).mean()
        for place, (found, mean) in enumerate(
            zip((errors.bias("a"), errors.loss("a")), truth, strict=True)
        ):
            covered[place] += found.low <= mean <= found.high
    assert (covered / streams >= LEVEL - 0.02).all(), covered / streams


def test_nothing_is_said_of_nobody_and_no_interval_of_one_row():
    errors = Errors()
    errors.add(members([["a"]]), np.array([4.0]), np.array([2.0]))
    assert errors.loss("a").mean == 4.0
    assert math.isnan(errors.loss("a").low)
    assert math.isnan(errors.loss("b").mean)
    assert errors.residuals("b") is None
    assert errors.over_time("b", 10, 1).end.size == 0


def test_rows_without_a_label_count_for_nothing():
    signed = np.array([1.0, np.nan, 3.0])
    errors = Errors(5.0)
    errors.add(members([["a"]] * 3), signed**2, signed)
    assert errors.loss("a").mean == 5.0
    assert errors.bias("a").mean == 2.0


def test_sizes_of_all_kinds():
    """Squares of squares of labels up to 1e100 would be none."""
    for size in (1e-100, 1e100):
        signed = size * np.array([0.5, -0.2, 0.1])
        errors = Errors(size, size**2)
        with np.errstate(all="raise", under="ignore"):
            errors.add(members([["a"]] * 3), signed**2, signed)
        assert errors.bias("a").mean == pytest.approx(size * 0.4 / 3)
        exact = plainly(np.array([0.25, 0.04, 0.01]), np.ones(3))
        assert [one / size**2 for one in errors.loss("a")] == pytest.approx(exact)


def test_losses_without_a_sign():
    errors = Errors()
    errors.add(members([["a"]] * 2), np.array([1.0, 2.0]), None)
    assert errors.loss("a").mean == 1.5
    assert not errors.is_signed
    assert math.isnan(errors.bias("a").mean)
    assert errors.residuals("a") is None


def test_stretches_hold_all_rows_once():
    draw = np.random.default_rng(0)
    signed = draw.normal(0.0, 1.0, 5_000)
    errors = Errors(10.0)
    for first in range(0, 5_000, 10):  # far more pieces than are kept
        part = signed[first : first + 10]
        errors.add(members([["a"]] * 10), part**2, part)
    assert len(errors.stretches) <= 2 * STRETCHES
    times = errors.over_time("a", 20, 10)
    assert 5 <= times.end.size <= 20
    assert times.end[-1] == 5_000
    ends = np.concatenate([[0], times.end]).astype(int)
    for place, (first, last) in enumerate(pairwise(ends)):
        assert times.mean[place] == pytest.approx((signed[first:last] ** 2).mean(), rel=1e-9)
        assert times.low[place] < times.mean[place] < times.high[place]


def test_a_group_of_few_rounds_has_few_stretches():
    errors = Errors()
    for i in range(60):
        row = [["all", *(["rare"] if i in (3, 30, 50, 59) else [])]]
        errors.add(members(row), np.array([float(i)]), np.array([1.0]))
    assert errors.over_time("rare", 20, 2).end.tolist() == [31.0, 60.0]
    assert errors.over_time("rare", 20, 2).mean.tolist() == [16.5, 54.5]
    assert errors.over_time("rare", 20, 10).end.tolist() == [60.0]


def test_joining_neighbours():
    one, two, three = (Stretch(i, np.full((8, i), float(i))) for i in (1, 2, 3))
    first, second = joined([one, two, three], 2)
    assert (first.end, second.end) == (2, 3)
    assert first.sums[0].tolist() == [3.0, 2.0]
    assert second.sums[0].tolist() == [3.0, 3.0, 3.0]


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e12])
def test_residuals_are_a_histogram(scale):
    draw = np.random.default_rng(1)
    signed = scale * draw.normal(0.02, 0.05, 20_000)
    errors = Errors(scale)
    errors.add(members([["a"]] * signed.size), signed**2, signed)
    found = errors.residuals("a")
    assert found is not None
    assert found.shares.sum() == pytest.approx(1.0)
    inside = np.clip(signed, found.edges[0], found.edges[-1])
    exact = np.histogram(inside, found.edges)[0] / signed.size
    assert len(exact) == BARS
    assert np.abs(found.shares - exact).max() < 0.01
    beyond = np.mean(np.abs(signed) > found.edges[-1])
    assert 0.0 < beyond <= 0.011


def test_residuals_of_all_sizes_find_a_bar():
    signed = np.array([0.0, 1e-30, -1e-30, 5.0, -7.0, 1.0])  # beyond the scale, too
    errors = Errors(1.0)
    errors.add(members([["a"]] * 6), signed**2, signed)
    found = errors.residuals("a")
    assert found is not None
    assert found.shares.sum() == pytest.approx(1.0)
    assert found.shares[0] == pytest.approx(1 / 6)
    assert found.shares[-1] == pytest.approx(2 / 6)
