"""The best logistic model within |x·θ| ≤ b: between its two sides, whatever the rows are."""

from typing import Any

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, minimize
from scipy.sparse import csr_array

from groupwise.regret import logistic, refit
from groupwise.regret.basis import factor_of, tidy
from groupwise.regret.hindsight import Factor
from groupwise.regret.logistic import (
    LESS,
    Quadratic,
    Reference,
    Rows,
    curvature,
)
from groupwise.regret.refit import losses, sigmoid

DIGITS = 60
best_logistic: Any = logistic.best_logistic  # both sides are numbers


def loss(x, y, w, theta):
    """Σ w ℓ_y(x·θ), written out."""
    zeta = x @ theta
    return float(np.sum(w * (np.logaddexp(0.0, zeta) - y * zeta)))


def into_class(x, theta, bound):
    """A model drawn toward 0 until |x·θ| ≤ b on every row, by more than rounding."""
    reach = float(np.abs(x @ theta).max(initial=0.0))
    return theta if reach < bound else theta * (bound / reach * (1.0 - 1e-12))


def by_another_solver(x, y, w, bound):
    """The least loss in the class that SLSQP finds."""
    scale = w.sum()

    def value(theta):
        zeta = x @ theta
        slope = x.T @ (w * (sigmoid(zeta) - y))
        return loss(x, y, w, theta) / scale, slope / scale

    found = minimize(
        value,
        np.zeros(x.shape[1]),
        jac=True,
        method="SLSQP",
        constraints=[LinearConstraint(x, -bound, bound)],
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return loss(x, y, w, into_class(x, found.x, bound))


def one_hot(columns):
    """An intercept, and a column for each level of each of the integer columns."""
    blocks = [np.ones((len(columns), 1))]
    for levels in columns.T:
        blocks.append((levels[:, None] == np.unique(levels)).astype(float))
    return np.hstack(blocks)


def is_tight(found, weights):
    """Do the two sides meet, as far as digits go?"""
    assert found.kind == "exact"
    assert not found.uncertain
    assert 0.0 <= found.best <= found.high
    assert found.high - found.best <= 1e-10 * np.sum(weights)
    return True


# Curvature


def soft_plus(z):
    """ln(1 + e^z) to 60 digits."""
    return mpmath.log1p(mpmath.exp(z))


def exact_curvature(a, b):
    """The formula to 60 digits, with the second derivative where an anchor is at the bound."""
    a, b = abs(mpmath.mpf(float(a))), mpmath.mpf(float(b))
    tail = 1 / (1 + mpmath.exp(a))
    if a == b:
        return tail * (1 - tail)
    return 2 * (soft_plus(-b) - soft_plus(-a) + tail * (b - a)) / (b - a) ** 2


@pytest.mark.parametrize("bound", [1e-3, 0.5, 2.0, 8.0, 30.0])
def test_curvature_has_more_digits_than_the_margin(bound):
    generator = np.random.default_rng(1)
    anchors = np.concatenate(
        [
            generator.uniform(-bound, bound, 200),
            bound * (1.0 - 10.0 ** generator.uniform(-15, 0, 100)),
            [0.0, bound, -bound, max(bound - 0.01, 0.0)],
        ]
    )
    with mpmath.workdps(DIGITS):
        for a, c in zip(anchors, curvature(anchors, bound), strict=True):
            truth = exact_curvature(a, bound)
            assert abs(c - truth) <= 1e-7 * truth
            assert LESS * c < truth


@pytest.mark.parametrize("bound", [0.1, 3.0, 8.0, 20.0])
def test_the_quadratic_is_below_the_loss_in_the_class_and_no_larger_one_is(bound):
    generator = np.random.default_rng(2)
    anchors = np.append(generator.uniform(-bound, bound, 8), [bound, -bound, 0.0])
    with mpmath.workdps(DIGITS):
        for a, c in zip(anchors, LESS * curvature(anchors, bound), strict=True):
            anchor = mpmath.mpf(float(a))
            slope = 1 / (1 + mpmath.exp(-anchor))  # the label adds the same to both sides
            steps = []
            for z in np.linspace(-bound, bound, 81):
                step = mpmath.mpf(float(z)) - anchor
                above = soft_plus(anchor + step) - soft_plus(anchor) - slope * step
                assert above >= mpmath.mpf(float(c)) / 2 * step**2
                if step:
                    steps.append(2 * above / step**2)
            if abs(a) < bound:
                assert c > (1 - 3e-6) * min(steps)


# Closed forms


def test_an_intercept_alone_is_the_entropy_of_the_mean():
    y, w = np.array([0.0, 1.0, 0.25, 1.0, 0.0]), np.array([1.0, 0.5, 2.0, 0.25, 1.0])
    mean = float(w @ y / w.sum())
    entropy = -mean * np.log(mean) - (1 - mean) * np.log(1 - mean)
    found = best_logistic(Rows(np.ones((5, 1)), y, w), 8.0)
    assert is_tight(found, w)
    assert found.best == pytest.approx(w.sum() * entropy, rel=1e-12)
    assert found.note == ""


@pytest.mark.parametrize("bound", [0.5, 8.0, 20.0])
def test_one_class_is_at_the_bound(bound):
    x = np.column_stack([np.ones(40), np.random.default_rng(0).normal(size=(40, 2))])
    for label in (0.0, 1.0):
        found = best_logistic(Rows(x, np.full(40, label), np.ones(40)), bound)
        assert is_tight(found, np.ones(40))
        assert found.best == pytest.approx(40 * np.log1p(np.exp(-bound)), abs=1e-10)
        assert "without end" in found.note


def test_levels_are_clipped_means():
    generator = np.random.default_rng(3)
    level = generator.integers(6, size=300)
    y = (generator.random(300) < level / 5.0).astype(float)  # two of the levels have one class
    w = 1.0 - generator.random(300)
    expected = 0.0
    for k in range(6):
        of = level == k
        mean = w[of] @ y[of] / w[of].sum()
        with np.errstate(divide="ignore"):
            zeta = np.clip(np.log(mean) - np.log1p(-mean), -4.0, 4.0)
        expected += loss(np.ones((of.sum(), 1)), y[of], w[of], np.array([zeta]))
    x = one_hot(level[:, None])
    for features in (x, csr_array(x), csr_array(np.repeat(x, 4, axis=1))):
        found = best_logistic(Rows(features, y, w), 4.0)
        assert is_tight(found, w)
        assert found.best == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("shape", [(4, 0), (4, 3)])
def test_without_features_the_only_model_is_zero(shape):
    found = best_logistic(Rows(np.zeros(shape), np.array([0.0, 1.0, 1.0, 0.5]), np.ones(4)), 8.0)
    assert is_tight(found, np.ones(4))
    assert found.best == pytest.approx(4 * np.log(2.0))
    empty = best_logistic(Rows(csr_array((0, 3)), np.zeros(0), np.zeros(0)), 8.0)
    assert (empty.best, empty.high, empty.uncertain) == (0.0, 0.0, False)


@pytest.mark.parametrize("label", [0.0, 0.3, 1.0])
def test_one_row(label):
    row = Rows(np.array([[3.0, -1.0]]), np.array([label]), np.array([0.5]))
    found = best_logistic(row, 8.0)
    zeta = 8.0 if label == 1.0 else -8.0 if label == 0.0 else np.log(0.3 / 0.7)
    assert is_tight(found, [0.5])
    assert found.best == pytest.approx(0.5 * (np.logaddexp(0, zeta) - label * zeta), abs=1e-11)


@pytest.mark.parametrize("bound", [0.2, 2.0, 50.0])
@pytest.mark.parametrize("seed", range(4))
def test_one_column_against_forty_digits(seed, bound):
    generator = np.random.default_rng(seed)
    x, w = generator.normal(size=12), 1.0 - generator.random(12)
    y = generator.random(12) if seed % 2 else (generator.random(12) < sigmoid(2 * x)).astype(float)
    found = best_logistic(Rows(x[:, None], y, w), bound)
    with mpmath.workdps(40):
        exact = [[mpmath.mpf(float(value)) for value in row] for row in np.column_stack([x, y, w])]

        def slope(theta):
            return sum(u * a * (1 / (1 + mpmath.exp(-a * theta)) - b) for a, b, u in exact)

        most = min(mpmath.mpf(float(bound)) / abs(row[0]) for row in exact)
        if slope(-most) >= 0:
            theta = -most
        elif slope(most) <= 0:
            theta = most
        else:
            theta = mpmath.findroot(slope, (-most, most), solver="anderson", tol=1e-60)
        best = sum(u * (soft_plus(a * theta) - b * a * theta) for a, b, u in exact)
        assert found.best <= best <= found.high
    assert is_tight(found, w)


# Another solver


@pytest.mark.parametrize("bound", [0.7, 3.0, 8.0])
@pytest.mark.parametrize("labels", ["yes or no", "soft", "separable", "some soft"])
@pytest.mark.parametrize("kind", ["plain", "levels", "repeated rows", "fewer rows"])
def test_agrees_with_another_solver(kind, labels, bound):
    generator = np.random.default_rng(len(kind) + 10 * len(labels))
    n = 4 if kind == "fewer rows" else 60
    x = np.column_stack([np.ones(n), generator.normal(size=(n, 4))])
    if kind == "levels":
        x = np.hstack([one_hot(generator.integers(3, size=(n, 2))), x[:, 1:2]])
    if kind == "repeated rows":
        x = x[generator.integers(10, size=n)]
    zeta = 2.0 * x @ generator.normal(size=x.shape[1])
    y = (generator.random(n) < sigmoid(zeta)).astype(float)
    if labels == "separable":
        y = (zeta > 0.0).astype(float)
    elif "soft" in labels:
        y = np.where(generator.random(n) < (0.3 if "some" in labels else 1.0), sigmoid(zeta), y)
    w = 1.0 - generator.random(n)
    found = best_logistic(Rows(x, y, w), bound)
    assert is_tight(found, w)
    other = by_another_solver(x, y, w, bound)
    assert found.best <= other
    assert other <= found.high + 1e-5 * (1.0 + other)


# Any scale, any offset, any weight


@pytest.mark.parametrize("bound", [1.0, 8.0])
@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6, 1e8, 1e12])
def test_an_offset_changes_nothing_beside_a_constant(offset, bound):
    generator = np.random.default_rng(4)
    x = np.column_stack([np.ones(200), generator.integers(-64, 64, size=(200, 3)) / 64.0])
    y = (generator.random(200) < sigmoid(x @ [0.5, 3.0, -2.0, 1.0])).astype(float)
    plain = best_logistic(Rows(x, y, np.ones(200)), bound)
    moved = x + offset * np.array([0.0, 1.0, -0.5, 0.0])  # exactly: these are small fractions
    found = best_logistic(Rows(moved, y, np.ones(200)), bound)
    assert is_tight(found, np.ones(200))
    assert found.best == pytest.approx(plain.best, abs=1e-9)
    shifted = best_logistic(Rows(moved[:, 1:], y, np.ones(200)), bound)  # and without it
    assert is_tight(shifted, np.ones(200))
    assert shifted.best >= plain.best - 1e-9


@pytest.mark.parametrize("scale", [1e-150, 1e-100, 1e-9, 1e50, 1e100])
def test_scale_does_not_matter(scale):
    generator = np.random.default_rng(5)
    x = np.column_stack([np.ones(100), generator.normal(size=(100, 2))])
    y = (generator.random(100) < sigmoid(4 * x[:, 1])).astype(float)
    plain = best_logistic(Rows(x, y, np.ones(100)), 2.0)
    for scales in ([1.0, scale, 1.0], [scale, scale, scale], [1.0, scale, 1.0 / scale]):
        if max(scales) > 1e100:
            continue
        for features in (x * scales, csr_array(np.hstack([x * scales, np.zeros((100, 9))]))):
            found = best_logistic(Rows(features, y, np.ones(100)), 2.0)
            assert is_tight(found, np.ones(100))
            assert found.best == pytest.approx(plain.best, rel=1e-9)


@pytest.mark.parametrize("exponent", [-996, -500, -7, 40])
def test_weights_are_relative(exponent):
    generator = np.random.default_rng(6)
    x = np.column_stack([np.ones(50), generator.normal(size=(50, 2))])
    y, w = (generator.random(50) < 0.3).astype(float), 1.0 - generator.random(50)
    plain = best_logistic(Rows(x, y, w), 1.0)
    found = best_logistic(Rows(x, y, np.ldexp(w, exponent)), 1.0)
    assert found.best == pytest.approx(np.ldexp(plain.best, exponent), rel=1e-11, abs=0.0)
    assert found.high == pytest.approx(np.ldexp(plain.high, exponent), rel=1e-11, abs=0.0)


def test_rows_of_next_to_no_weight_still_bound_the_class():
    generator = np.random.default_rng(7)
    x = np.column_stack([np.ones(80), generator.normal(size=(80, 2))])
    y, w = (x[:, 1] > 0).astype(float), np.ones(80)
    far = np.array([[0.0, 100.0, 0.0]])  # |θ_1| ≤ b/100
    found = best_logistic(Rows(np.vstack([x, far]), np.append(y, 1.0), np.append(w, 1e-300)), 8.0)
    without = best_logistic(Rows(x, y, w), 8.0)
    assert is_tight(found, w)
    assert found.best > without.best + 1.0
    many = 10.0 ** generator.uniform(-300, 0, 80)
    assert is_tight(best_logistic(Rows(x, y, many), 8.0), many)


# Dependent columns


def test_a_number_given_by_a_level_is_an_exact_dependence():
    generator = np.random.default_rng(8)
    level = generator.integers(7, size=60)
    prices = generator.random(7)
    x = np.hstack([one_hot(level[:, None]), prices[level][:, None], generator.normal(size=(60, 1))])
    y = (generator.random(60) < 0.5).astype(float)
    without = np.delete(x, -2, axis=1)
    for features in (x, csr_array(x)):
        found = best_logistic(Rows(features, y, np.ones(60)), 8.0)
        assert is_tight(found, np.ones(60))
        plain = best_logistic(Rows(without, y, np.ones(60)), 8.0)
        assert found.best == pytest.approx(plain.best, abs=1e-9)


def test_a_dependence_that_rounding_has_broken_is_uncertain():
    generator = np.random.default_rng(9)
    x = generator.normal(size=(100, 3))
    x = np.column_stack([x, x[:, 0] + 0.3 * x[:, 1]])
    y = (generator.random(100) < 0.5).astype(float)
    found = best_logistic(Rows(x, y, np.ones(100)), 8.0)
    assert found.uncertain
    assert found.error > 1.0
    assert 0.0 <= found.best <= found.high


def test_more_columns_than_rows():
    generator = np.random.default_rng(10)
    x = generator.normal(size=(20, 50))
    y = np.where(generator.random(20) < 0.5, generator.random(20), 1.0)
    least = np.where(y == 1.0, 8.0, np.log(y / np.where(y == 1.0, 1.0, 1.0 - y)))
    found = best_logistic(Rows(x, y, np.ones(20)), 8.0)
    assert is_tight(found, np.ones(20))  # every row has its own best prediction
    assert found.best == pytest.approx(float(losses(np.clip(least, -8, 8), y).sum()), abs=1e-9)


# Both sides hold


@st.composite
def problems(draw):
    """Rows, labels, weights and a bound, of all kinds."""
    generator = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(1, 30)), draw(st.integers(1, 5))
    x = generator.normal(size=(n, d))
    kind = draw(st.sampled_from(["normal", "levels", "whole", "far", "heavy"]))
    if kind == "levels":
        x = one_hot(generator.integers(3, size=(n, d)))
    elif kind == "whole":
        x = np.round(x)
    elif kind == "far":
        x += 10.0 ** generator.uniform(0, 6, size=d)
    elif kind == "heavy":
        x *= 10.0 ** generator.uniform(-6, 6, size=(n, 1))
    zeta = x @ generator.normal(size=x.shape[1])
    labels = draw(st.sampled_from(["hard", "soft", "one", "separable"]))
    y = {
        "hard": (generator.random(n) < 0.4).astype(float),
        "soft": generator.random(n),
        "one": np.ones(n),
        "separable": (zeta > 0.0).astype(float),
    }[labels]
    spread = draw(st.sampled_from([0.0, 1.0, 20.0, 300.0]))
    w = 10.0 ** generator.uniform(-spread, 0.0, size=n)
    bound = draw(st.sampled_from([0.05, 1.0, 8.0, 15.0]))
    return x, y, w, bound, generator


@settings(max_examples=150, deadline=None)
@given(problems())
def test_no_model_of_the_class_loses_less(problem):
    x, y, w, bound, generator = problem
    found = best_logistic(Rows(x, y, w), bound)
    assert 0.0 <= found.best <= found.high < np.inf
    assert found.high <= w.sum() * np.log(2.0) * (1 + 1e-12)
    if found.uncertain:
        return
    assert found.high - found.best <= 1e-9 * w.sum() + 1e-6 * found.best
    for _ in range(20):
        theta = generator.normal(size=x.shape[1]) * 10.0 ** generator.uniform(-2, 3)
        value = loss(x, y, w, into_class(x, theta, bound))
        assert found.best <= value + 1e-12 * w.sum()


@settings(max_examples=80, deadline=None)
@given(problems(), st.integers(0, 2**32))
def test_both_sides_hold_whatever_the_solver_finds(problem, seed):
    """Multipliers and models at random: the sides are far apart, but on the right sides."""
    x, y, w, bound, _ = problem
    truth = best_logistic(Rows(x, y, w), bound)
    generator = np.random.default_rng(seed)

    def astray(fit):
        return fit._replace(
            beta=fit.beta * generator.normal(size=fit.beta.size),
            upper=fit.upper * generator.random(len(y)) + generator.random(len(y)) ** 20 / len(y),
            lower=fit.lower * generator.random(len(y)),
            settled=True,
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logistic, "newton", lambda *given: astray(refit.newton(*given)))
        patch.setattr(logistic, "interior", lambda *given: astray(refit.interior(*given)))
        found = best_logistic(Rows(x, y, w), bound)
    assert found.best <= found.high
    if not truth.uncertain:
        assert found.high >= truth.best
        assert found.uncertain or found.best <= truth.high


@pytest.mark.parametrize("zeros", [0.5, 0.9])
def test_sparse_and_full_rows_agree(zeros):
    generator = np.random.default_rng(11)
    x = generator.normal(size=(300, 30)) * (generator.random((300, 30)) >= zeros)
    x[:, 0] = 1.0
    x[:, 5] += 1e7
    y = (generator.random(300) < sigmoid(x[:, 1:5].sum(axis=1))).astype(float)
    found = [best_logistic(Rows(f, y, np.ones(300)), 3.0) for f in (x, csr_array(x))]
    assert all(is_tight(one, np.ones(300)) for one in found)
    assert found[0].best == pytest.approx(found[1].best, abs=1e-8)
    x[:, 5] -= 1e7
    plain = best_logistic(Rows(x, y, np.ones(300)), 3.0)
    assert plain.best == pytest.approx(found[0].best, abs=1e-5)  # x + 1e7 is rounded


def test_the_note_says_how_far_the_best_would_go():
    generator = np.random.default_rng(12)
    x = np.column_stack([np.ones(400), generator.normal(size=400)])
    y = (generator.random(400) < sigmoid(x @ [0.3, 2.0])).astype(float)
    free = minimize(lambda theta: loss(x, y, np.ones(400), theta), np.zeros(2), tol=1e-12)
    reach = np.abs(x @ free.x).max()
    found = best_logistic(Rows(x, y, np.ones(400)), 1.0)
    assert f"|x·θ| = {reach:.3g} and loses {found.best - free.fun:.3g} less" in found.note
    assert best_logistic(Rows(x, y, np.ones(400)), 1.001 * reach).note == ""
    alone = np.append(np.zeros(399), 1.0)[:, None]  # a level that one row has: no end to it
    assert "without end" in best_logistic(Rows(np.hstack([x, alone]), y, np.ones(400)), 1.0).note


# Rows that are gone


def split(x, y, w, bound, kept, anchors, theta):
    """The bracket from the first rows, lower quadratics of the others, and a reference model."""
    x, y, w = (part[kept:] for part in (x, y, w))
    z = np.clip(anchors[kept:], -bound, bound)
    c, g = LESS * curvature(z, bound), sigmoid(z) - y
    factor, root = Factor(x.shape[1]), np.sqrt(w * c)
    factor.add(root[:, None] * x, root * (z - g / c))
    _, factor.sketch = factor_of(tidy(x), np.ones(len(y)), x.shape[1], True)
    if len(y):
        factor.sample[: x.shape[1]] = x[0]
    terms = w * losses(z, y), w * g**2 / (2 * c)
    size = 1e-15 * sum(float(np.abs(term).sum()) for term in terms)
    others = Quadratic(factor, float((terms[0] - terms[1]).sum()), size)
    reach = float(np.abs(x @ theta).max(initial=0.0))
    return others, Reference(theta, loss(x, y, w, theta), reach, float(w.sum()))


@pytest.mark.parametrize("bound", [1.0, 8.0])
@pytest.mark.parametrize("kept", [0, 1, 100, 299])
@pytest.mark.parametrize("kind", ["plain", "levels", "far"])
def test_a_bracket_is_around_the_exact_best(kind, kept, bound):
    generator = np.random.default_rng(kept + len(kind))
    x = np.column_stack([np.ones(300), generator.normal(size=(300, 3))])
    if kind == "levels":
        x = one_hot(generator.integers(4, size=(300, 2)))
    if kind == "far":
        x[:, 1] += 1e4
    truth = generator.normal(size=x.shape[1]) * (0.0 if kind == "far" else 1.0)
    y = (generator.random(300) < sigmoid(x @ truth)).astype(float)
    w = 1.0 - generator.random(300)
    exact = best_logistic(Rows(x, y, w), bound)
    anchors = x @ truth + generator.normal(size=300)
    rows = Rows(x[:kept], y[:kept], w[:kept])
    found = best_logistic(rows, bound, *split(x, y, w, bound, kept, anchors, truth))
    assert found.kind == "bracket"
    assert not found.uncertain
    assert found.error <= 1e-9 * w.sum()
    assert 0.0 <= found.best <= exact.high
    assert exact.best <= found.high <= w.sum() * np.log(2.0) * (1 + 1e-12)
    if kept == 299:
        assert found.best > 0.97 * exact.best


def test_the_lower_side_is_the_least_of_the_quadratics():
    generator = np.random.default_rng(13)
    x = np.column_stack([np.ones(200), generator.normal(size=(200, 3))])
    y, w = (generator.random(200) < 0.4).astype(float), 1.0 - generator.random(200)
    z = generator.uniform(-2, 2, size=200)
    c, g = LESS * curvature(z, 8.0), sigmoid(z) - y
    root = np.sqrt(w * c)
    theta = np.linalg.lstsq(root[:, None] * x, root * (z - g / c), rcond=None)[0]
    step = x @ theta - z
    expected = float(np.sum(w * (losses(z, y) + g * step + c / 2 * step**2)))
    none = Rows(x[:0], y[:0], w[:0])
    found = best_logistic(none, 8.0, *split(x, y, w, 8.0, 0, z, np.zeros(4)))
    assert expected > 0.0
    assert found.best == pytest.approx(expected, rel=1e-9)
    assert found.high == pytest.approx(w.sum() * np.log(2.0))


def test_anchors_at_the_best_model_leave_no_gap():
    generator = np.random.default_rng(14)
    x = np.column_stack([np.ones(300), generator.normal(size=(300, 3))])
    y, w = (generator.random(300) < sigmoid(x[:, 1])).astype(float), np.ones(300)
    best = minimize(lambda theta: loss(x, y, w, theta), np.zeros(4), tol=1e-12).x
    rows = Rows(x[:100], y[:100], w[:100])
    found = best_logistic(rows, 8.0, *split(x, y, w, 8.0, 100, x @ best, best))
    assert found.high - found.best <= 1e-8 * w.sum()


def test_a_reference_beyond_the_bound_is_drawn_into_the_class():
    generator = np.random.default_rng(15)
    x = np.column_stack([np.ones(100), generator.normal(size=(100, 2))])
    y, w = (x[:, 1] > 0).astype(float), np.ones(100)
    theta = np.array([0.0, 20.0, 0.0])
    others, reference = split(x, y, w, 2.0, 50, np.zeros(100), theta)
    found = best_logistic(Rows(x[:50], y[:50], w[:50]), 2.0, others, reference)
    assert np.abs(x @ theta).max() > 2.0
    inside = loss(x, y, w, into_class(x, theta, 2.0))
    assert inside <= found.high < 100 * np.log(2.0)
    exact = best_logistic(Rows(x, y, w), 2.0)
    assert found.best <= exact.high
    assert exact.best <= found.high


@pytest.mark.parametrize("kept", [0, 30])
def test_sums_that_tell_no_columns_apart_are_uncertain(kept):
    generator = np.random.default_rng(16)
    x = np.column_stack([np.ones(80), generator.normal(size=(80, 2))])
    y, w = (generator.random(80) < sigmoid(x[:, 1])).astype(float), np.ones(80)
    others, reference = split(x, y, w, 8.0, kept, x[:, 1], np.array([0.0, 1.0, 0.0]))
    lengths = np.zeros(others.factor.right.size)
    lengths[:3] = np.linalg.norm(x, axis=0)
    others.factor.sums.append((1.0, lengths))
    found = best_logistic(Rows(x[:kept], y[:kept], w[:kept]), 8.0, others, reference)
    exact = best_logistic(Rows(x, y, w), 8.0)
    assert found.uncertain
    assert found.best - found.error <= exact.high
    assert exact.best <= found.high


def test_a_quadratic_needs_a_reference():
    rows = Rows(np.ones((1, 1)), np.ones(1), np.ones(1))
    with pytest.raises(ValueError, match="go together"):
        best_logistic(rows, 8.0, Quadratic(Factor(1), 0.0, 0.0))


@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-200])
@pytest.mark.parametrize("beside", [0, 6])
def test_columns_of_which_digits_are_lost_prove_nothing(size, beside):
    """They may vanish; beside them stand a constant, or columns of zeros nearly all of the time."""
    generator = np.random.default_rng(0)
    u = generator.integers(0, 4, 60).astype(float)
    y = (generator.random(60) < sigmoid(2.0 * u - 3.0)).astype(float)
    others = np.eye(60)[:, :beside] if beside else np.ones((60, 1))
    rows = np.column_stack([others, u])
    right = best_logistic(Rows(rows, y, np.ones(60)), 8.0)
    rows[:, -1] *= size
    features = csr_array(rows) if beside else rows
    found = best_logistic(Rows(features, y, np.ones(60)), 8.0)
    assert not right.uncertain
    assert found.uncertain or found.best <= right.high
