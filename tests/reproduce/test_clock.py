"""Sums at moments of a group's clock, against refits and plain sums."""

import numpy as np

from groupwise.reproduce.clock import best_losses, moments, sums_at


def test_every_prefix_has_its_own_least_squares_fit():
    generator = np.random.default_rng(3)
    one_hot = np.eye(3)[generator.integers(0, 3, 40)]
    features = np.column_stack([generator.random((40, 2)), one_hot, np.ones(40)])  # collinear
    labels = generator.random(40)
    ends = np.array([40, 1, 7, 7, 39, 0])
    expected = []
    for end in ends:
        x, y = features[:end], labels[:end]
        residual = x @ np.linalg.lstsq(x, y, rcond=None)[0] - y if end else np.zeros(1)
        expected.append(np.sum(residual**2))
    assert np.allclose(best_losses(features, labels, ends), expected, rtol=0, atol=1e-10)


def test_moments_end_with_the_last_round_and_never_begin_before_the_first():
    for size in (1, 3, 59, 60, 61, 1000):
        found = moments(size, 60)
        assert len(found) == 60
        assert found[0] >= 1
        assert found[-1] == size
        assert (np.diff(found) >= 0).all()
    assert moments(0, 4).tolist() == [0, 0, 0, 0]


def test_sums_keep_further_axes():
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    assert sums_at(values, np.array([2, 0, 3])).tolist() == [[3, 30], [0, 0], [6, 60]]
