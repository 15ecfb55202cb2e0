"""The best linear model in hindsight: exact, also where columns are collinear or badly scaled."""

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.kernels.calm import take_back
from groupwise.protocols import Hindsight
from groupwise.regret.hindsight import Factor, singular
from tests.exact import least_squares


def hindsight(x, y, w=None):
    """The best loss and how sure it is, from the rows."""
    root = np.ones(len(y)) if w is None else np.sqrt(w)
    factor = Factor(x.shape[1])
    factor.add(root[:, None] * x, root * y)
    return factor.hindsight(float(np.sum((root * y) ** 2)))


def best(x, y, w=None):
    """The best loss from the rows."""
    return hindsight(x, y, w).best


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
    assert hindsight(np.zeros((0, 3)), np.zeros(0)) == Hindsight(0.0)
    assert best(np.zeros((2, 3)), np.array([1.5, 0.5])) == 2.5


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


# Against exact arithmetic.

CASES = (
    *("offset", "scales", "duplicates", "constants", "levels", "mostly zeros", "mixed"),
    *("some missing", "nearly the same"),
)


def tall(kind, generator):
    """Rows that are hard for sums of squares, labels that are linear or nearly so, and weights."""
    rows, width = int(generator.integers(2, 100)), int(generator.integers(1, 5))
    x = generator.normal(size=(rows, width))
    y = x @ generator.normal(size=width)
    y = (y - y.min()) / max(float(np.ptp(y)), 1e-9)
    if kind == "offset":
        x += 10.0 ** generator.integers(0, 9) * generator.choice([1.0, -1.0, 0.3])
    if kind == "scales":
        x *= 10.0 ** generator.uniform(-150.0, 100.0, size=width)
    if kind == "duplicates":
        x = np.hstack([x, 4.0 * x[:, :1], -x[:, -1:], x])
    if kind == "constants":
        x = np.hstack([x, np.full((rows, 2), [0.1, 1e5])])
    if kind == "levels":
        x = np.hstack([x, one_hot(generator.integers(4, size=(rows, 2)))])
    if kind in ("mostly zeros", "mixed"):
        share = 0.2 if kind == "mostly zeros" else 0.5
        x = np.hstack([x, generator.normal(size=(rows, 8))])
        x *= (generator.random(x.shape) < share) * 10.0 ** generator.uniform(-150, 100, x.shape[1])
    if kind == "some missing":
        x = (x + 1e7) * (generator.random((rows, 1)) < 0.7)
    if kind == "nearly the same":
        x = np.hstack([x, x + 10.0 ** -generator.integers(3, 9) * generator.normal(size=x.shape)])
    if generator.random() < 0.8:
        x = np.hstack([np.ones((rows, 1)), x])
    noise = generator.choice(3)
    y = [y, np.clip(y + generator.normal(size=rows) / 10, 0, 1), np.round(y)][noise]
    w = 1.0 - generator.random(rows) if generator.random() < 0.5 else np.ones(rows)
    order = generator.permutation(rows) if generator.random() < 0.7 else np.argsort(x[:, -1])
    return x[order], y[order], w[order]


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize("seed", range(12))
def test_as_in_exact_arithmetic(kind, seed):
    """Within 1e-9 Σ w y² + 1e-6 of the best loss, and within the error that is stated."""
    x, y, w = tall(kind, np.random.default_rng(seed))
    truth = least_squares(x, y, w)
    row = gw.replay(x, y, w[:, None]).regret()["0"]
    wrong = abs(float(Fraction(row["best_loss"]) - truth))
    assert 0.0 <= row["best_loss"] <= float(w @ y**2) * (1 + 1e-12)
    assert wrong <= 1e-9 * float(w @ y**2) + 1e-6 * float(truth)
    assert wrong <= row["best_error"] or wrong <= 1e-15 * float(w @ y**2)


@pytest.mark.parametrize("kind", ["dependent but for rounding", "faint"])
def test_the_error_of_next_to_nothing(kind):
    """Beneath the tolerance all that is left may be explained by what doubles do not tell."""
    generator = np.random.default_rng(0)
    a, b, noise = generator.random((3, 60))
    other, share = a + 0.3 * b, 1e-7 * noise
    x = np.column_stack([np.ones(60), a, b, other])
    if kind == "faint":
        other = generator.integers(-5, 6, 60) * 1e-300
        share = 1e-7 * other / np.abs(other).max()
        x = np.column_stack([one_hot((9 * a[:, None]).astype(int)), other])
    y = 0.2 + 0.6 * np.floor(9 * a) / 9 * (kind == "faint") + share
    row = gw.replay(x, y, np.ones((60, 1))).regret()["0"]
    wrong = abs(float(Fraction(row["best_loss"]) - least_squares(x, y, np.ones(60))))
    assert row["status"] in ("proved", "loose")
    assert wrong <= row["best_error"] <= 1e-9 * (y @ y)


def test_the_order_of_rows_and_columns_is_no_matter():
    generator = np.random.default_rng(5)
    x, y, w = tall("offset", generator)
    for _ in range(5):
        rows, columns = generator.permutation(len(y)), generator.permutation(x.shape[1])
        again = hindsight(x[rows][:, columns], y[rows], w[rows])
        assert again.best == pytest.approx(best(x, y, w), abs=1e-9 * float(w @ y**2), rel=1e-6)


def test_a_column_with_an_offset_explains_what_it_explains():
    """x = 1e7 + u with a label that is linear in it: nothing is left, and nobody says otherwise."""
    generator = np.random.default_rng(0)
    u = generator.random(2000)
    x = np.column_stack([np.ones(2000), 1e7 + u])
    row = gw.replay(x, 0.2 + 0.6 * u, np.ones((2000, 1))).regret()["0"]
    assert 0.0 <= row["best_loss"] <= 1e-9
    assert row["certificate"] >= row["loss"] - 1e-9
    assert row["status"] == "loose"


@pytest.mark.parametrize("size", [1e-150, 1e-170, 1e100])
@pytest.mark.parametrize("zeros", [False, True])
def test_columns_do_not_vanish(size, zeros):
    u = np.random.default_rng(1).random(50)
    x = np.zeros((50, 12))
    x[:, -1 if zeros else 0] = size * u
    row = gw.replay(x, 0.5 * u, np.ones((50, 1))).regret()["0"]
    assert row["best_loss"] <= 1e-12


def test_the_comparator_is_linear_in_the_labels_own_units():
    """Without a constant feature, θ·x is not low + (high − low) θ·x."""
    generator = np.random.default_rng(2)
    u = generator.random(400)
    loss = gw.losses.Square(10.0, 20.0)
    table = gw.replay(u[:, None], 10.0 + 10.0 * u, np.ones((400, 1)), loss=loss).regret()
    theta = float(u @ (10.0 + 10.0 * u) / (u @ u))
    expected = float(np.sum((theta * u - 10.0 - 10.0 * u) ** 2))
    assert table["0"]["best_loss"] == pytest.approx(expected, rel=1e-9)
    assert table.comparator == "the best linear model in hindsight"


def test_levels_beside_a_constant_are_proved():
    """Columns that depend on each other exactly are the default, and leave nothing uncertain."""
    generator = np.random.default_rng(3)
    levels = generator.integers([3, 4], size=(3000, 2))
    x = np.hstack([one_hot(levels), generator.normal(size=(3000, 2))])
    y = np.clip(0.5 + x @ generator.normal(size=x.shape[1]) / 10, 0, 1)
    for w in (np.ones(3000), 1.0 - generator.random(3000)):
        for columns in (slice(None), slice(6), slice(3)):  # the fewer, the fuller the rows are
            found = gw.replay(x[:, columns], y, w[:, None]).regret()["0"]
            assert found["status"] in ("proved", "loose")
            assert found["best_error"] <= 1e-9 * float(w @ y**2)


@pytest.mark.parametrize("gap", [1e-6, 1e-7])
def test_levels_beside_columns_that_are_nearly_the_same_are_proved(gap):
    """As the time that went by since a moment, and since its day: noise is no dependence."""
    generator = np.random.default_rng(3)
    levels = one_hot(generator.integers([24, 7], size=(1500, 2)))
    first = 10.0 + 0.01 * generator.random(1500)
    second = first + gap * generator.normal(size=1500)
    x = np.column_stack([np.ones(1500), first, second, levels])
    y = np.clip(0.5 + 0.1 * generator.normal(size=1500), 0, 1)
    found = gw.replay(x, y, np.ones((1500, 1))).regret()["0"]
    assert found["status"] == "proved"
    apart = np.column_stack([100.0 * (first - 10.0), (second - first) / gap, levels])
    rest = y - apart @ np.linalg.lstsq(apart, y)[0]
    assert found["best_loss"] == pytest.approx(float(rest @ rest), rel=1e-9)


@pytest.mark.parametrize("gap", [1e-12, 1e-11])
def test_what_cannot_be_told_is_not_proved(gap):
    """Two columns that are the same to eleven digits, and a label in what they differ by."""
    generator = np.random.default_rng(4)
    x, difference = generator.normal(size=(2, 400))
    y = np.round(0.5 + np.arctan(difference) / np.pi)
    row = gw.replay(np.column_stack([x, x + gap * difference]), y, np.ones((400, 1))).regret()["0"]
    assert row["status"] == "numerically uncertain"
    assert row["best_error"] > 1e-9 * float(y @ y)


@pytest.mark.parametrize("size", [5e-324, 1e-322, 1e-200])
@pytest.mark.parametrize("wide", [1, 12])
def test_columns_of_which_digits_are_lost_are_not_proved(size, wide):
    """Their squares vanish in sums of products, and their digits anywhere."""
    generator = np.random.default_rng(0)
    u = generator.integers(0, 4, 60)
    x = np.zeros((60, wide))
    x[:, -1] = size * u
    x[:1, 0] = max(size, x[0, 0])
    y = 0.2 * u + 0.3 * generator.random(60)
    row = gw.replay(x, y, np.ones((60, 1))).regret()["0"]
    rest = y - u * (y @ u) / (u @ u)
    right = abs(row["best_loss"] - rest @ rest) <= 1e-9 * (y @ y)
    assert right or row["status"] == "numerically uncertain"


def test_uncertain_hindsight_is_not_in_expectation_either():
    class Drawn(gw.learners.Ridge):
        randomised = True

    generator = np.random.default_rng(4)
    x, difference = generator.normal(size=(2, 400))
    y = np.round(0.5 + np.arctan(difference) / np.pi)
    rows = np.column_stack([x, x + 1e-12 * difference])
    for gap, status in ((1e-12, "numerically uncertain"), (1.0, "in expectation")):
        rows = np.column_stack([x, x + gap * difference])
        table = gw.replay(rows, y, np.ones((400, 1)), learner=Drawn()).regret()
        assert table["0"]["status"] == status


@pytest.mark.parametrize("kind", ["offset", "mixed", "levels", "scales"])
def test_one_by_one_in_parts_and_from_a_file(kind, tmp_path):
    """The same bits, whatever the way that the rows came."""
    x, y, w = tall(kind, np.random.default_rng(11))
    groups = [gw.weight("w"), gw.by("g")]
    rows = [
        {"g": str(t % 3), "w": float(w[t]), **{f"x{j}": float(v) for j, v in enumerate(row)}}
        for t, row in enumerate(x)
    ]
    names = [f"x{j}" for j in range(x.shape[1])]
    loop, parts, saved = (gw.Groupwise(groups, features=names) for _ in range(3))
    for t, (row, label) in enumerate(zip(rows, y.tolist(), strict=True)):
        loop.learn_one(row, label)
        saved.learn_one(row, label)
        if t % 17 == 3:
            saved.save(tmp_path / "model.gw")
            saved = gw.load(tmp_path / "model.gw")
    labelled = [{**row, "y": label} for row, label in zip(rows, y.tolist(), strict=True)]
    for start in range(0, len(rows), 29):
        parts.replay(pd.DataFrame(labelled[start : start + 29]), target="y")
    assert loop.regret().rows == saved.regret().rows == parts.regret().rows


def test_what_is_sure_is_a_matter_of_the_labels_own_size():
    """Three rows, the second column 1.3 times the first, rounded: who uses that loses nothing.

    Labels are small beside their shift to scaled ones, which must not make that look small.
    """
    x = np.array([[45.62366700096581], [0.29585089099008594], [28.384750467928786]])
    x = np.hstack([x, 1.3 * x, [[3.0], [6.0], [1.0]]])
    y = np.array([-0.016949815648752753, 0.2522803943787705, 0.12047777845182728])
    w = np.array([0.001699250758299924, 6.564281921630295e-08, 9.560883340032746e-13])
    assert least_squares(x, y, w) == 0
    factor = Factor(3)
    factor.add(np.sqrt(w)[:, None] * x, np.sqrt(w) * y)
    found = factor.hindsight(float(w @ (y + 0.5) ** 2))
    assert found.uncertain or found.best <= 1e-9 * float(w @ y**2)


def in_turn(pattern, count):
    """A model of so many rows, a few different ones again and again; and its exact best loss."""
    rows = np.resize(np.array(pattern), (count, len(pattern[0])))
    names = [f"x{j}" for j in range(rows.shape[1] - 1)]
    model = gw.Groupwise(
        [], gw.learners.Ridge(), gw.aggregators.Specialists(), features=names, intercept=False
    )
    model.replay(pd.DataFrame(rows, columns=[*names, "y"]), target="y")
    counts = np.bincount(np.arange(count) % len(pattern))
    distinct = rows[: len(pattern)]
    return model, least_squares(distinct[:, :-1], distinct[:, -1], counts)


AGAIN = {
    "a constant": [(0.1, 0.3), (0.1, 0.3), (0.1, 0.7)],
    "nearly the same": [(0.1, 0.1 * 1.06, 0.97), (0.1, 0.1 * 0.94, 0.03)],
    "nearer still": [(1.3, 1.3 * 1.045, 0.97), (1.3, 1.3 * 0.955, 0.03)],
    "and a rest": [(1.0, 1.03, 0.7), (1.0, 1.0, 0.1), (1.0, 0.97, 0.3)],
}


@pytest.mark.parametrize("name", AGAIN)
def test_rows_that_come_a_million_times(name):
    """They are rounded the same way every time, so that roundings do not cancel."""
    model, true = in_turn(AGAIN[name], 1_000_000)
    line = model.regret()["always_on"]
    assert line["status"] in ("proved", "loose")
    assert abs(Fraction(line["best_loss"]) - true) <= line["best_error"]
    # One learner, which is what is played: nothing of the certificate is to spare.
    assert Fraction(line["loss"]) - true <= Fraction(line["certificate"]) + Fraction(
        line["best_error"]
    )


def test_little_that_is_added_again_and_again_to_much():
    """Another column grows, and there is another look each time: what was there is one number then.

    To it are added numbers that are rounded the same way, and each sum the other way than is good.
    """
    tiny, length = 1.8815e-9, 24.0**0.5
    rows = [(0.36, 0.0, 0.36)] * 8 + [(0.0, 1.0, 0.0)] * 24
    for _ in range(20):
        some = np.tile([(tiny, 1e-3 * length, tiny), (tiny, -1e-3 * length, tiny)], (1_024, 1))
        some[7::32, 0] *= -1.0
        some[-4:, 1] = np.array([1.0, -1.0, 1.0, -1.0]) * 0.9 * length
        length = float(np.hypot(length, np.linalg.norm(some[:, 1])))
        rows += some.tolist()
    model = gw.Groupwise(
        [], gw.learners.Ridge(), gw.aggregators.Specialists(), features=["a", "b"], intercept=False
    )
    model.replay(pd.DataFrame(rows, columns=["a", "b", "y"]), target="y")
    distinct, counts = np.unique(np.array(rows), axis=0, return_counts=True)
    line = model.regret()["always_on"]
    true = least_squares(distinct[:, :-1], distinct[:, -1], counts)
    assert abs(Fraction(line["best_loss"]) - true) <= line["best_error"]


def sums_of(model: Any) -> Any:
    """What is kept for hindsight of the groups of a model whose learners are compiled."""
    return model._reduction.banks[0].recorder.stores["hindsight"]


def test_what_sums_may_miss_depends_on_the_rows_alone():
    """A replay makes room for columns that a loop does not know of yet."""
    draw = np.random.default_rng(0)
    rows = [{"x": u, "g": f"g{t // 90}"} for t, u in enumerate(draw.random(700).tolist())]
    options: dict[str, Any] = {
        "groups": [gw.by("g")],
        "learner": gw.learners.Ridge(),
        "intercept": False,
    }
    loop, replayed = (gw.Groupwise(**options) for _ in range(2))
    for row in rows:
        loop.learn_one(row, row["x"])
    replayed.replay(pd.DataFrame(rows).assign(y=[row["x"] for row in rows]), target="y")
    found = [sums_of(one) for one in (loop, replayed)]
    assert (found[0].column("summed", 8) == found[1].column("summed", 8)).all()
    assert found[0].column("summed", 8).any()


def test_sums_in_files_of_earlier_versions_go_on():
    """They are in one piece; above the diagonal, where others are set aside, is nothing of use."""
    pattern = np.array(AGAIN["and a rest"])
    model, _ = in_turn(pattern, 9_000)
    store = sums_of(model)
    sums = store.of(0)
    assert sums.calm[0] == 2
    take_back(sums.factor, sums.right, sums.rest, sums.few, sums.right.size)
    sums.factor[np.triu_indices(sums.right.size, 1)] = 7.0
    sums.calm[0], sums.summed[0] = 1, 9_000
    for count in (0, 33, 6_000):
        if count:
            rows = pd.DataFrame(np.resize(pattern, (count, 3)), columns=["x0", "x1", "y"])
            model.replay(rows, target="y")
        counts = np.full(3, model._next // 3)
        true = least_squares(pattern[:, :2], pattern[:, 2], counts)
        line = model.regret()["always_on"]
        assert abs(Fraction(line["best_loss"]) - true) <= line["best_error"]
        assert line["status"] in ("proved", "loose")
    assert store.of(0).calm[0] == 2


@pytest.mark.parametrize("scale", [0.25, 1.0, 2.0**40])
def test_merged_factors_are_a_factor_of_all_rows(scale):
    generator = np.random.default_rng(0)
    x, y = generator.normal(size=(90, 6)), generator.random(90)
    one, other = Factor(6), Factor(3)
    one.add(x[:50], y[:50])
    other.add(x[50:, :3], y[50:])
    one.merge(other, scale)
    x[50:, 3:] = 0.0
    x[50:] *= scale
    y[50:] *= scale
    assert one.hindsight(float(y @ y)).best == pytest.approx(best(x, y), rel=1e-12)
    assert one.sketch is None  # of the rows of both there are no combinations


def test_independent_columns_span_the_others():
    generator = np.random.default_rng(1)
    x = one_hot(generator.integers(3, size=(200, 2)))
    factor = Factor(x.shape[1])
    factor.add(x, np.zeros(200))
    found = factor.independent()
    assert found.columns.size == np.linalg.matrix_rank(x) == 5
    chosen = x[:, found.columns]
    assert np.linalg.norm(chosen, axis=0) == pytest.approx(found.lengths)
    values = np.linalg.svd(chosen / found.lengths, compute_uv=False)
    assert found.least == pytest.approx(values.min())
    assert found.least <= values.min()
    assert not found.exact  # without the rows or their sketches nobody knows
    assert Factor(3).independent().columns.size == 0


def test_divide_and_conquer_that_does_not_converge(monkeypatch):
    """LAPACK's may not, for finite numbers: there is another way to the same directions."""
    matrix = np.random.default_rng(0).normal(size=(7, 5))
    expected = np.linalg.svd(matrix, full_matrices=False)

    def fails(*_, **__):
        raise np.linalg.LinAlgError("SVD did not converge")

    monkeypatch.setattr(np.linalg, "svd", fails)
    left, values, right = singular(matrix)
    np.testing.assert_allclose(values, expected[1], rtol=1e-13)
    np.testing.assert_allclose(left * values @ right, matrix, atol=1e-13)
    np.testing.assert_allclose(np.abs(right), np.abs(expected[2]), atol=1e-12)
