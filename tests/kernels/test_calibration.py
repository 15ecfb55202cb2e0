"""Bins of predicted probabilities: where a prediction goes, and what the rounds leave in them."""

import copy
import math

import numpy as np
import pytest

import groupwise as gw
from groupwise.kernels.calibration import BINS, INNER, bin_of
from tests.states import assert_same_arrays, state_of

LOSS = gw.losses.Log(floor=1e-3)
SLICES = ("rounds", "loss", "brier", "sums")


class Slow(gw.aggregators.AdaNormalHedge):
    """The same weights, but in Python."""

    kernel = ""


def rows(count, seed=0):
    """Rows with a weight in (0, 1], a field and a label: some of them soft."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count) * 2.0
    y = (rng.random(count) < 1.0 / (1.0 + np.exp(-x))).astype(float)
    y[::7] = rng.random(y[::7].size)
    share = rng.random(count)
    return [
        ({"x": float(a), "share": float(w), "city": "uvw"[i % 3]}, float(b))
        for i, (a, b, w) in enumerate(zip(x, y, share, strict=True))
    ]


def fresh(loss=LOSS, aggregator=None):
    return gw.Groupwise(
        [gw.by("city"), gw.weight("share")], loss=loss, aggregator=aggregator, features=["x"]
    )


def by_hand(rounds, group, loss=LOSS):
    """What the bins of a group hold: from (groups, prediction, label, stands_for) of each round."""
    sums, brier, lost, total = np.zeros((BINS, 4)), 0.0, 0.0, 0.0
    for groups, p, y, stands_for in rounds:
        w = groups.get(group, 0.0) * stands_for
        place = sum(1 for edge in INNER if edge <= p)
        sums[place] += [w * p, w * y, w * (1 - y), w * w]
        brier += w * (p - y) ** 2
        lost -= w * (y * math.log(p) + (1 - y) * math.log1p(-p)) / loss.unit
        total += w
    return {"rounds": total, "loss": lost, "brier": [brier], "sums": [sums]}


def assert_bins(model, rounds):
    for number, group in enumerate(model.group_names):
        own = model._reduction.bins.of(number)
        for name, wanted in by_hand(rounds, group, model.loss).items():
            np.testing.assert_allclose(getattr(own, name), wanted, rtol=1e-9, atol=1e-15)


def bins(arrays):
    """Those of the arrays that bins are."""
    return {name: array for name, array in arrays.items() if name.startswith("calibration.")}


def test_fifty_bins_finer_toward_certainty():
    assert BINS == 50
    assert (np.diff(INNER) > 0).all()
    np.testing.assert_allclose(INNER, 1.0 - INNER[::-1], rtol=1e-12)
    edges = np.array([0.0, *INNER, 1.0])
    widths = np.diff(edges)
    assert widths.max() < 0.0401
    ratios = edges[2:16] / edges[1:15]
    assert ratios.max() < 1.61


def test_the_bin_of_a_prediction():
    both_sides = [np.nextafter(edge, side) for edge in INNER for side in (0.0, 1.0)]
    for p in (0.0, 1e-15, 0.5, 1.0, *INNER, *both_sides, *np.random.default_rng(0).random(200)):
        assert bin_of(INNER, p) == sum(1 for edge in INNER if edge <= p)


@pytest.mark.parametrize(
    ("loss", "aggregator"), [(LOSS, None), (LOSS, Slow()), (gw.losses.Log(), None)]
)
def test_rounds_are_counted_as_they_were_issued(loss, aggregator):
    model = fresh(loss, aggregator)
    rounds = []
    for row, y in rows(150):
        ticket = model.predict(row)
        model.learn(ticket, y)
        rounds.append((ticket.groups, ticket.prediction, y, 1.0))
    assert_bins(model, rounds)


def test_sampled_predictions_are_counted_as_drawn():
    model = gw.Groupwise(
        [gw.by("city")],
        learner=[gw.learners.Ridge(), gw.learners.Ridge(9.0)],
        loss=LOSS,
        play="sample",
    )
    rounds = []
    for row, y in rows(60):
        ticket = model.predict(row)
        model.learn(ticket, y)
        rounds.append((ticket.groups, ticket.prediction, y, 1.0))
    assert_bins(model, rounds)


def test_late_labels_are_counted_with_what_was_issued():
    """Not with what would be played when the label comes."""
    model = fresh()
    waiting, rounds, moved = [], [], 0
    for t, (row, y) in enumerate(rows(120)):
        waiting.append((model.predict(row), y))
        if t % 5 == 4:
            for ticket, label in reversed(waiting):
                moved += model.predict_one(ticket.row) != ticket.prediction
                through_json = type(ticket).from_json(ticket.to_json())
                model.learn(through_json if t % 2 else ticket, label)
                rounds.append((ticket.groups, ticket.prediction, label, 1.0))
            waiting.clear()
    assert moved > 60
    assert_bins(model, rounds)


def test_a_label_that_stands_for_several_rounds_weighs_as_many():
    model = fresh()
    rounds = []
    for row, y in rows(40):
        ticket = model.predict(row)
        model.learn_for(ticket, y, 3.0)
        rounds.append((ticket.groups, ticket.prediction, y, 3.0))
    assert_bins(model, rounds)


@pytest.mark.parametrize("aggregator", [None, Slow()])
def test_replay_is_the_loop(aggregator):
    pandas = pytest.importorskip("pandas")
    looped, replayed = fresh(aggregator=aggregator), fresh(aggregator=aggregator)
    stream = rows(300)
    for row, y in stream:
        looped.learn_one(row, y)
    frame = pandas.DataFrame([{**row, "y": y} for row, y in stream])
    replayed.replay([frame[:130], frame[130:]], "y", jobs=2)
    one, other = (bins(state_of(model)) for model in (looped, replayed))
    assert_same_arrays(one, other)
    assert one["calibration.sums"].shape == (5, 1, BINS, 4)


def test_files_and_copies_hold_them(tmp_path):
    whole, half = fresh(), fresh()
    stream = rows(100)
    for row, y in stream:
        whole.learn_one(row, y)
    for row, y in stream[:50]:
        half.learn_one(row, y)
    half.save(tmp_path / "half.gw")
    loaded, copied = gw.load(tmp_path / "half.gw"), copy.deepcopy(half)
    for model in (half, loaded, copied):
        for row, y in stream[50:]:
            model.learn_one(row, y)
        assert_same_arrays(state_of(whole), state_of(model))


def test_what_fails_or_restarts_leaves_them_alone():
    model = fresh()
    for row, y in rows(30):
        model.learn_one(row, y)
    before = state_of(model)
    pandas = pytest.importorskip("pandas")
    bad = pandas.DataFrame([{**row, "y": y} for row, y in (*rows(10, seed=1), ({"x": 0.5}, 2.0))])
    good = pandas.DataFrame([{**row, "y": y} for row, y in rows(10, seed=1)])
    with pytest.raises(gw.errors.LabelError):
        model.replay([good, bad], "y")
    assert_same_arrays(before, state_of(model))
    model.restart()
    after = state_of(model)
    for name in SLICES:
        assert np.array_equal(before[f"calibration.{name}"], after[f"calibration.{name}"])
    assert not after["aggregator.regret"].any()


def test_a_file_without_bins_begins_with_empty_ones(tmp_path):
    from groupwise import archive

    model = fresh()
    for row, y in rows(30):
        model.learn_one(row, y)
    header, arrays = model.contents()
    kept = {name: array for name, array in arrays.items() if not name.startswith("calibration.")}
    archive.write(tmp_path / "old.gw", header, kept)
    loaded = gw.load(tmp_path / "old.gw")
    later = [(model.predict(row), y) for row, y in rows(1, seed=3)]
    for ticket, y in later:
        loaded.learn(ticket, y)
    assert_bins(loaded, [(ticket.groups, ticket.prediction, y, 1.0) for ticket, y in later])


def test_damaged_bins_are_refused(tmp_path):
    from groupwise import archive

    model = fresh()
    model.learn_one(*rows(1)[0])
    header, arrays = model.contents()
    for name in SLICES:
        wrong = {**arrays, f"calibration.{name}": arrays[f"calibration.{name}"] - 1.0}
        archive.write(tmp_path / "wrong.gw", header, wrong)
        with pytest.raises(gw.errors.SnapshotError, match=f"calibration.{name} is below 0"):
            gw.load(tmp_path / "wrong.gw")


def test_other_losses_keep_none():
    model = gw.Groupwise([gw.by("city")])
    model.learn_one(*rows(1)[0])
    assert model._reduction.bins is None
    assert not [name for name in state_of(model) if name.startswith("calibration")]
