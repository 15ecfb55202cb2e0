"""The best linear model in hindsight: exact, also where columns are collinear or badly scaled."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.regret.hindsight import least_squares_loss


def best(x, y, w=None):
    """The hindsight loss from the sums."""
    w = np.ones(len(y)) if w is None else w
    return least_squares_loss(x.T @ (w[:, None] * x), x.T @ (w * y), float(w @ y**2))


def by_table(x, y, w):
    """The same, as the regret table of a replay has it."""
    return gw.replay(x, y, w[:, None]).regret()["0"]["best_loss"]


def rounding(y, w=None):
    """What rounding may do: 1e-9 (1 + Σ w y²)."""
    return 1e-9 * (1 + float(np.sum(y**2 if w is None else w * y**2)))


def one_hot(columns):
    """An intercept, and a column for each level of each of the integer columns."""
    blocks = [np.ones((len(columns), 1))]
    for levels in columns.T:
        blocks.append((levels[:, None] == np.unique(levels)).astype(float))
    return np.hstack(blocks)


@pytest.mark.parametrize("seed", range(10))
def test_equals_lstsq_on_well_conditioned_data(seed):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(150, 8))
    y = np.clip(0.5 + x @ generator.normal(size=8) / 9 + generator.normal(size=150) / 9, 0, 1)
    w = generator.random(150) if seed % 2 else np.ones(150)
    root = np.sqrt(w)
    theta = np.linalg.lstsq(root[:, None] * x, root * y, rcond=None)[0]
    expected = float(np.sum(w * (x @ theta - y) ** 2))
    assert best(x, y, w) == pytest.approx(expected, rel=1e-9, abs=1e-9)
    assert by_table(x, y, w) == pytest.approx(expected, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("width", [3, 20, 70])
@pytest.mark.parametrize("zeros", [0.0, 0.8])
def test_sums_held_back_are_counted(width, zeros):
    """Whatever the number of rows since the last time they were added up."""
    generator = np.random.default_rng(width)
    for rows in (1, 2, 15, 16, 17, 100, 131):
        x = generator.normal(size=(rows, width)) * (generator.random((rows, width)) >= zeros)
        y = generator.random(rows)
        theta = np.linalg.lstsq(x, y, rcond=None)[0]
        expected = float(np.sum((x @ theta - y) ** 2))
        assert by_table(x, y, np.ones(rows)) == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("levels", [2, 5, 30])
def test_collinear_one_hot_is_the_loss_of_the_means(levels):
    """One block next to an intercept: the best model predicts each level's mean."""
    generator = np.random.default_rng(levels)
    level = generator.integers(levels, size=300)
    y, w = generator.random(300), 1.0 - generator.random(300)
    x = one_hot(level[:, None])
    expected = 0.0
    for value in np.unique(level):
        inside = level == value
        mean = np.average(y[inside], weights=w[inside])
        expected += np.sum(w[inside] * (y[inside] - mean) ** 2)
    assert best(x, y, w) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert by_table(x, y, w) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    twice = np.hstack([x, x, 2 * x[:, :1]])
    assert best(twice, y, w) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_crossed_one_hot_blocks_are_the_loss_of_the_cell_means():
    """All products of two blocks, besides the blocks themselves: every cell has its own mean."""
    generator = np.random.default_rng(0)
    a, b = generator.integers(4, size=400), generator.integers(3, size=400)
    y = generator.random(400)
    x = one_hot(np.column_stack([a, b, 3 * a + b]))
    cells = [y[(a == i) & (b == j)] for i in range(4) for j in range(3)]
    expected = sum(np.sum((cell - cell.mean()) ** 2) for cell in cells)
    assert best(x, y) == pytest.approx(expected, rel=1e-10)
    assert by_table(x, y, np.ones(400)) == pytest.approx(expected, rel=1e-10)


def test_additive_one_hot_blocks_are_the_loss_of_a_full_rank_fit():
    generator = np.random.default_rng(1)
    levels = generator.integers([4, 3, 2], size=(500, 3))
    y = generator.random(500)
    x = one_hot(levels)
    full_rank = np.delete(x, [1, 5, 8], axis=1)  # the first level of every block
    _, (expected,), rank, _ = np.linalg.lstsq(full_rank, y, rcond=None)
    assert rank == full_rank.shape[1]
    assert best(x, y) == pytest.approx(expected, rel=1e-10)
    assert by_table(x, y, np.ones(500)) == pytest.approx(expected, rel=1e-10)


def test_nothing_seen_and_nothing_to_learn_from():
    assert least_squares_loss(np.zeros((3, 3)), np.zeros(3), 0.0) == 0.0
    assert least_squares_loss(np.zeros((3, 3)), np.zeros(3), 2.5) == 2.5
    assert least_squares_loss(np.zeros((0, 0)), np.zeros(0), 2.5) == 2.5


def test_a_perfect_fit_loses_nothing():
    generator = np.random.default_rng(3)
    x = generator.normal(size=(200, 5))
    y = x @ generator.normal(size=5)
    loss = best(x, y)
    assert 0.0 <= loss <= rounding(y)


SCALES = st.sampled_from([1e-8, 1e-4, 1.0, 1e4, 1e8])


@st.composite
def problems(draw):
    """A few rows of collinear one-hot blocks and badly scaled numbers, with weights."""
    rows = draw(st.integers(2, 30))
    generator = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    blocks = draw(st.integers(0, 3))
    numbers = draw(st.integers(0, 3))
    assume(blocks + numbers > 0)
    x = one_hot(generator.integers(draw(st.integers(1, 6)), size=(rows, blocks)))
    if numbers:
        scales = np.array([draw(SCALES) for _ in range(numbers)])
        offsets = np.array([draw(st.sampled_from([0.0, 1.0, 100.0])) for _ in range(numbers)])
        x = np.hstack([x, scales * (offsets + generator.normal(size=(rows, numbers)))])
    if draw(st.booleans()):
        x = np.hstack([x, x[:, :1] - x[:, -1:]])  # one more dependence
    y = draw(st.sampled_from([generator.random(rows), np.round(generator.random(rows))]))
    w = 1.0 - generator.random(rows) if draw(st.booleans()) else np.ones(rows)
    return x, y, w


@settings(max_examples=200, deadline=None)
@given(problems(), st.data())
def test_dropping_a_row_never_raises_the_loss(problem, data):
    x, y, w = problem
    row = data.draw(st.integers(0, len(y) - 1))
    fewer = best(np.delete(x, row, 0), np.delete(y, row), np.delete(w, row))
    assert fewer <= best(x, y, w) + rounding(y, w)


@settings(max_examples=200, deadline=None)
@given(problems(), st.integers(0, 2**32 - 1))
def test_no_linear_model_loses_less(problem, seed):
    x, y, w = problem
    lengths = np.linalg.norm(x, axis=0)
    lengths[lengths == 0] = 1.0
    root = np.sqrt(w)
    scaled = root[:, None] * x / lengths
    models = [np.zeros(x.shape[1]), np.random.default_rng(seed).normal(size=x.shape[1])]
    models += [np.linalg.lstsq(scaled, root * y, rcond=r)[0] for r in (None, 1e-6, 1e-2)]
    models += [models[2] + models[1] / 100]
    least = min(float(np.sum((scaled @ theta - root * y) ** 2)) for theta in models)
    assert best(x, y, w) <= least + rounding(y, w)


@settings(max_examples=150, deadline=None)
@given(problems())
def test_one_more_column_never_raises_the_loss(problem):
    x, y, w = problem
    assume(x.shape[1] > 1)
    assert best(x, y, w) <= best(x[:, :-1], y, w) + rounding(y, w)


@pytest.mark.parametrize(("ratio", "lost"), [(1e2, 1e-9), (1e3, 1e-8), (1e4, 1e-6), (1e5, 1e-3)])
def test_a_large_offset_next_to_an_intercept(ratio, lost):
    """A column that hardly varies compared with its size, such as a year."""
    generator = np.random.default_rng(4)
    z = generator.normal(size=400)
    y = np.clip(0.5 + z / 5 + generator.normal(size=400) / 20, 0, 1)
    x = np.column_stack([np.ones(400), ratio + z])
    theta = np.linalg.lstsq(np.column_stack([np.ones(400), z]), y, rcond=None)[0]
    expected = float(np.sum((theta[0] + theta[1] * z - y) ** 2))
    # Sums of squares hold 16 digits; a ratio of r costs 2 log r of them.
    assert best(x, y) == pytest.approx(expected, abs=lost * (1.0 + float(y @ y)))
