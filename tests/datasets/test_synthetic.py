"""The synthetic data against its recipe, run with globally seeded generators."""

import random

import numpy as np
import pytest

from groupwise.datasets import PAPER_SEEDS, paper_order, published, synthetic
from groupwise.errors import DatasetError

LABELS = ("mean", "min", "max", "permutation")
GROUPS = ("circle", "square", "triangle", "green", "red")


@pytest.fixture(scope="module")
def recipe():
    """Attributes, group names and labels by the recipe, row by row where that is plainest."""
    before_numpy, before_python = np.random.get_state(), random.getstate()
    try:
        np.random.seed(21)
        random.seed(21)
        attributes = np.random.uniform(0, 1, (100_000, 20))
        shapes = random.choices(["circle", "square", "triangle"], [0.5, 0.3, 0.2], k=100_000)
        colours = random.choices(["green", "red"], [0.6, 0.4], k=100_000)
        models = np.random.uniform(0, 1, (20, 5))
        noise = np.random.normal(scale=0.16, size=(100_000, 5))
        permutation = [GROUPS[i] for i in np.random.permutation(5)]
    finally:
        np.random.set_state(before_numpy)
        random.setstate(before_python)

    intermediary = attributes @ models + noise
    labels: dict[str, list[float]] = {label: [] for label in LABELS}
    for row, shape, colour in zip(intermediary, shapes, colours, strict=True):
        by_group = dict(zip(GROUPS, row, strict=True))
        pair = by_group[shape], by_group[colour]
        labels["mean"].append((pair[0] + pair[1]) / 2)
        labels["min"].append(min(pair))
        labels["max"].append(max(pair))
        first = next(g for g in permutation if g in (shape, colour))
        labels["permutation"].append(by_group[first])
    return attributes, shapes, colours, permutation, labels


def test_the_permutation_of_the_recipe_is_the_papers(recipe):
    assert recipe[3] == ["green", "square", "red", "triangle", "circle"]


@pytest.mark.parametrize("label", LABELS)
def test_agrees_with_the_recipe(recipe, label):
    attributes, shapes, colours, _, labels = recipe
    data = synthetic(label)
    raw = np.array(labels[label])

    assert np.array_equal(data.features[:, :20], attributes)
    for column, group in enumerate(GROUPS):
        expected = [group in pair for pair in zip(shapes, colours, strict=True)]
        assert np.array_equal(data.membership[:, column], expected)
        assert np.array_equal(data.features[:, 20 + column], expected)
    assert np.array_equal(data.label, (raw - raw.min()) / (raw.max() - raw.min()))
    assert (data.label.min(), data.label.max()) == (0.0, 1.0)


@pytest.mark.parametrize("label", LABELS)
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_group_names_and_sizes_are_the_published_ones(label, order):
    data = synthetic(label)
    rows = published()[data.name, order]
    assert data.group_sizes == {row.group: row.size for row in rows}
    assert data.group_names == tuple(row.group for row in rows)


def test_shapes_and_types():
    data = synthetic()
    assert data.name == "synthetic-mean"
    assert data.features.shape == (100_000, 25)
    assert data.features.dtype == np.float64
    assert data.features.flags.c_contiguous
    assert data.feature_names[0] == "x0"
    assert data.feature_names[20:] == GROUPS
    assert list(data.group_sizes.values()) == [49857, 30044, 20099, 59985, 40015, 100_000]
    assert np.array_equal(data.membership.sum(axis=1), np.full(100_000, 3))
    assert (data.low, data.high) == (0.0, 1.0)


def test_repr_says_what_it_is_without_printing_arrays():
    text = repr(synthetic(rows=1_000))
    assert "1,000 rows, 25 features" in text
    assert "circle, square, triangle, green, red, always_on" in text
    assert "array" not in text


def test_global_generators_are_left_alone():
    np.random.seed(5)
    random.seed(5)
    expected = np.random.random(), random.random()
    np.random.seed(5)
    random.seed(5)
    synthetic("permutation", rows=100)
    paper_order(100, seed=473)
    assert (np.random.random(), random.random()) == expected


def test_another_seed_gives_other_data():
    assert not np.array_equal(synthetic(rows=50).label, synthetic(seed=22, rows=50).label)


def test_unknown_label_names_the_choices():
    with pytest.raises(DatasetError, match="mean, min, max, permutation"):
        synthetic("median")  # type: ignore[arg-type]


@pytest.mark.parametrize("rows", [1, 7, 1_338, 49_531, 100_000])
@pytest.mark.parametrize("seed", PAPER_SEEDS)
def test_shuffled_order_is_that_of_pandas(rows, seed):
    pandas = pytest.importorskip("pandas")
    expected = pandas.Series(range(rows)).sample(frac=1, random_state=seed).to_numpy()
    assert np.array_equal(paper_order(rows, seed), expected)


def test_sorted_order_is_a_stable_sort_of_the_shuffled_one():
    pandas = pytest.importorskip("pandas")
    data = synthetic(rows=5_000)
    shuffled = pandas.Series(data.sort_key).sample(frac=1, random_state=473)
    expected = shuffled.sort_values(kind="stable").index.to_numpy()
    order = paper_order(5_000, 473, data.sort_key)
    assert np.array_equal(order, expected)

    streamed = data.take(order)
    reds = int(data.group_sizes["red"])
    red = data.group_names.index("red")
    assert streamed.membership[:reds, red].all()
    assert not streamed.membership[reds:, red].any()
    assert np.array_equal(streamed.label, data.label[expected])
    assert np.array_equal(streamed.features, data.features[expected])


def test_order_refuses_a_key_of_another_length():
    with pytest.raises(ValueError, match="3"):
        paper_order(3, 473, np.zeros(2))
