"""Curves from tables along a stream, and sums at moments of a group's clock."""

import numpy as np

import groupwise as gw
from groupwise.regret.curves import (
    KEYS,
    Curve,
    Recorder,
    best_losses,
    moments,
    own_moments,
    sums_at,
)


def rows(count, seed=0):
    generator = np.random.default_rng(seed)
    for t in range(count):
        row = {"g": "ab"[int(generator.integers(2))] if t < 20 else "c", "x": generator.random()}
        yield row, float(generator.random())


def test_a_curve_holds_the_figures_of_every_table_that_its_group_was_in():
    model = gw.Groupwise([gw.by("g")])
    recorder, tables = Recorder(), {}
    for t, (row, label) in enumerate(rows(30), 1):
        model.learn_one(row, label)
        if t in (7, 22, 30):
            tables[t] = model.regret()
            recorder.record(t, tables[t])
    curves = recorder.curves()
    assert set(curves) == {"g=a", "g=b", "g=c", "always_on"}
    for group, curve in curves.items():
        assert curve.time.tolist() == ([22, 30] if group == "g=c" else [7, 22, 30])
        for key in KEYS:
            expected = [tables[t][group][key] for t in curve.time.tolist()]
            assert getattr(curve, key).tolist() == expected


def test_a_figure_that_is_not_known_is_not_a_number():
    model = gw.Groupwise([gw.by("g")], always_on=False)
    model.learn_one({"g": "a", "x": 0.5}, 0.5)
    recorder = Recorder()
    recorder.record(1, model.regret())
    curve = recorder.curves()["g=a"]
    assert np.isnan(curve.baseline_regret).all()
    assert curve.drawn().rounds.tolist() == [0.0, 1.0]


def test_a_curve_at_other_times_is_as_it_last_was():
    curve = Curve(
        np.array([3, 5, 9]), *(np.array([1.0, 1.0, 4.0]) * scale for scale in range(1, 5))
    )
    found = curve.at(np.array([1, 3, 4, 9, 12]))
    assert found.time.tolist() == [1, 3, 4, 9, 12]
    assert found.rounds.tolist() == [0, 1, 1, 4, 4]
    assert found.certificate.tolist() == [0, 4, 4, 16, 16]
    assert curve.drawn().time.tolist() == [0, 3, 9]
    assert curve.drawn().regret.tolist() == [0, 2, 8]


def test_moments_of_a_stream_end_with_it():
    for total in (1, 3, 99, 100, 101, 1000):
        found = moments(total, 100)
        assert found[0] >= 1
        assert found[-1] == total
        assert len(found) == min(total, 100)
        assert (np.diff(found) > 0).all()


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
        found = own_moments(size, 60)
        assert len(found) == 60
        assert found[0] >= 1
        assert found[-1] == size
        assert (np.diff(found) >= 0).all()
    assert own_moments(0, 4).tolist() == [0, 0, 0, 0]


def test_sums_keep_further_axes():
    values = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0]])
    assert sums_at(values, np.array([2, 0, 3])).tolist() == [[3, 30], [0, 0], [6, 60]]
