"""A run against the library's own tables and curves, and against the textbook loop."""

from dataclasses import replace

import numpy as np
import pytest

import groupwise
from benchmarks.naive import naive
from groupwise.datasets import paper_order, synthetic
from groupwise.learners import Ridge
from groupwise.paper.published import LEARNERS, Settings
from groupwise.paper.run import run

SETTINGS = {
    "paper": Settings(),
    "forward": Settings(learner="forward"),
    "mean": Settings(play="mean"),
    "clip": Settings(clip=True),
    "specialists": Settings(aggregator="specialists", play=None, clip=True),
}


@pytest.fixture(scope="module")
def data():
    return synthetic("mean", rows=700)


def in_order(data, order, seed=473):
    return data.take(paper_order(data.rows, seed, data.sort_key if order == "sorted" else None))


def replayed(data, settings, membership=None):
    members = data.membership if membership is None else membership
    names = data.group_names[: members.shape[1]]
    return groupwise.replay(data.features, data.label, members, names=names, **settings.parts())


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("order", ["shuffled", "sorted"])
def test_ends_where_the_regret_table_does(data, name, order):
    found = run(data, order, 473, SETTINGS[name])
    table = replayed(in_order(data, order), SETTINGS[name]).regret()
    for g, group in enumerate(data.group_names):
        row = table[group]
        assert found.groups[g] == group
        assert found.rounds[g, -1] == row["rounds"]
        best = found.best_loss[g, -1]
        assert best == pytest.approx(row["best_loss"], abs=1e-9)
        assert found.loss[g, -1] - best == pytest.approx(row["regret"], abs=1e-9)
        assert found.baseline_loss[g, -1] - best == pytest.approx(row["baseline_regret"], abs=1e-9)
        # As of the group's last round; the other experts' later rounds can only raise it.
        assert found.certificate[g, -1] <= row["certificate"] + 1e-9
        assert found.void[g, -1] == (row["status"] == "void")
    assert found.certificate[-1, -1] == pytest.approx(table["always_on"]["certificate"], abs=1e-9)


@pytest.mark.parametrize("name", ["paper", "specialists"])
def test_passes_where_the_curves_do(data, name):
    few = data.take(np.arange(90))
    found = run(few, "sorted", 503, SETTINGS[name], points=7)
    ordered = in_order(few, "sorted", 503)
    curves = replayed(ordered, SETTINGS[name]).curves(points=few.rows)  # after every row
    for g, group in enumerate(few.group_names):
        curve = curves[group]
        rows = np.flatnonzero(ordered.membership[:, g])
        moments = rows[found.rounds[g] - 1]  # the row of the group's k-th round
        assert curve.rounds[moments].tolist() == found.rounds[g].tolist()
        for mine, theirs in (
            (found.loss[g] - found.best_loss[g], curve.regret),
            (found.baseline_loss[g] - found.best_loss[g], curve.baseline_regret),
            (found.certificate[g], curve.certificate),
        ):
            assert np.allclose(mine, theirs[moments], rtol=0, atol=1e-9)


def test_several_learners_have_the_least_of_their_certificates(data, monkeypatch):
    monkeypatch.setitem(LEARNERS, "two", [Ridge(1.0), Ridge(0.01)])
    settings = Settings(learner="two")
    found = run(data, "shuffled", 473, settings)
    table = replayed(in_order(data, "shuffled"), settings).regret()
    assert found.certificate[-1, -1] == pytest.approx(table["always_on"]["certificate"], abs=1e-9)


def test_agrees_with_the_textbook_in_the_papers_convention(data):
    found = run(data, "sorted", 989, Settings())
    ordered = in_order(data, "sorted", 989)
    textbook = naive(ordered.features, ordered.label, ordered.membership)
    for g in range(len(data.group_names)):
        inside = ordered.membership[:, g] == 1
        x, y = ordered.features[inside][:-1], ordered.label[inside][:-1]
        best = np.sum((x @ np.linalg.lstsq(x, y, rcond=None)[0] - y) ** 2)
        assert found.published_best[g] == pytest.approx(best, abs=1e-9)
        assert found.loss[g, -1] == pytest.approx(textbook.group_loss[g], abs=1e-9)
        alone = (textbook.advice[inside, -1] - ordered.label[inside]) ** 2
        assert found.baseline_loss[g, -1] == pytest.approx(alone.sum(), abs=1e-9)


def test_without_the_always_on_group_everybody_is_still_reported(data):
    found = run(data, "shuffled", 473, Settings(always_on=False))
    ordered = in_order(data, "shuffled")
    textbook = naive(ordered.features, ordered.label, ordered.membership[:, :-1])
    for g in range(len(data.group_names)):
        inside = ordered.membership[:, g] == 1
        expected = textbook.expected_loss[inside].sum()
        assert found.loss[g, -1] == pytest.approx(expected, abs=1e-9)
    assert np.isnan(found.certificate[-1]).all()
    assert np.isfinite(found.certificate[:-1]).all()
    # The baseline is the same single model, whether or not it is among the experts.
    whole = run(data, "shuffled", 473, Settings())
    assert np.allclose(found.baseline_loss, whole.baseline_loss, rtol=0, atol=1e-12)
    assert not np.allclose(found.loss, whole.loss, rtol=0, atol=1e-3)


def test_without_the_always_on_group_no_intersection_stands_in_for_it(data):
    found = run(data, "shuffled", 473, Settings(always_on=False, intersections=2))
    assert np.isnan(found.certificate[-1]).all()
    assert np.isfinite(found.certificate[:-1]).all()


def test_certificates_are_void_from_the_first_loss_beyond_the_range_on(data):
    wild = data.take(np.arange(300))
    # An outlier makes the forecast leave the range by far; unclipped, its loss exceeds 1.
    wild.features[150] *= 40
    found = run(wild, "shuffled", 473, Settings(), points=50)
    row = int(np.flatnonzero(paper_order(300, 473) == 150)[0])
    everybody = list(wild.group_names).index("always_on")
    assert found.void[everybody].tolist() == (found.rounds[everybody] > row).tolist()
    clipped = run(wild, "shuffled", 473, Settings(clip=True), points=50)
    assert not clipped.void.any()


def test_a_group_that_nobody_is_in(data):
    membership = data.membership.copy()
    membership[:, 0] = 0
    found = run(replace(data, membership=membership), "shuffled", 473, Settings())
    assert found.rounds[0, -1] == found.loss[0, -1] == found.published_best[0] == 0
