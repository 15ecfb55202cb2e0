"""Replay gives the numbers of the per-round loop, bit for bit, and refuses what it cannot run."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import groupwise as gw
import groupwise.stream
from benchmarks.naive import naive
from groupwise.learners import Ridge
from tests.plain import PLAIN
from tests.states import arrays_of, assert_same_arrays
from tests.streams import BruteForce, random_arrays

LEARNERS = {
    "plain": [Ridge(0.7)],
    "forward": [Ridge(0.7, forward=True)],
    "several": [Ridge(0.01), Ridge(2.0, forward=True), Ridge(50.0)],
    "forgetting": [Ridge(1.0, forgetting=0.9), Ridge(0.5)],
}


def parts_of(aggregator):
    """The keyword arguments for an aggregator by name."""
    if aggregator == "specialists":
        return {"aggregator": gw.aggregators.Specialists()}
    return {"aggregator": gw.aggregators.AdaNormalHedge(), "play": aggregator}


def run_loop(x, y, membership, **parts):
    """A model on the same stream, round by round: its tickets, and itself."""
    rows, width = x.shape
    names = [f"g{g}" for g in range(membership.shape[1])]
    fields = [f"x{i}" for i in range(width)]
    model = gw.Groupwise(
        [gw.weight(name) for name in names], features=fields, indicators=False, always_on=False,
        intercept=False, **parts,
    )  # fmt: skip
    tickets = []
    for t in range(rows):
        row = dict(zip(fields, x[t].tolist(), strict=True))
        row.update(zip(names, membership[t].tolist(), strict=True))
        ticket = model.predict(row)
        model.learn(ticket, float(y[t]))
        tickets.append(ticket)
    return tickets, model


def run_replay(x, y, membership, **parts):
    names = [f"g{g}" for g in range(membership.shape[1])]
    return gw.replay(x, y, membership, names=names, **parts)


def assert_same(result, tickets, model, shape):
    """Everything that a replay reports, and the state it ends in: bit for bit."""
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    for part in ("advice", "weights"):
        looped = np.concatenate([getattr(ticket, part) for ticket in tickets])
        assert np.array_equal(getattr(result, part), looped)
    table = model.regret()
    for row in result.regret():
        for key, value in row.items():
            if key != "baseline_regret":  # this model has no always-on group
                assert value == table[row["group"]][key], (row["group"], key)
    replayed, looped = (arrays_of(x._reduction, *shape) for x in (result, model))
    for arrays in (replayed, looped):
        del arrays["ledger.baseline_loss"]
    assert_same_arrays(replayed, looped)


@pytest.mark.parametrize("jobs", [1, 2, 3])
@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
@pytest.mark.parametrize("learners", LEARNERS)
def test_the_same_numbers_as_the_loop(learners, aggregator, fractional, jobs):
    x, y, membership = random_arrays(seed=jobs, fractional=fractional, zeros=0.3 * (jobs - 1))
    parts = {"learner": LEARNERS[learners], "seed": 9, **parts_of(aggregator)}
    tickets, model = run_loop(x, y, membership, **parts)
    result = run_replay(x, y, membership, jobs=jobs, **parts)
    assert result.path == "compiled"
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))


@pytest.mark.parametrize("chunk", [1, 7, 64, 119, 120, 121])
@pytest.mark.parametrize("jobs", [1, 3])
@pytest.mark.parametrize("aggregator", ["sample", "specialists"])
def test_chunks_do_not_show(monkeypatch, chunk, jobs, aggregator):
    x, y, membership = random_arrays(seed=4, fractional=True, zeros=0.4)
    parts = {"learner": LEARNERS["several"], **parts_of(aggregator)}
    tickets, model = run_loop(x, y, membership, **parts)
    monkeypatch.setattr(groupwise.stream, "CHUNK", chunk)
    result = run_replay(x, y, membership, jobs=jobs, **parts)
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 3])
def test_many_groups(jobs):
    """So many that they are taken several at a time: each once, and the numbers as ever."""
    generator = np.random.default_rng(0)
    rows, groups = 400, 3_000
    x, y = generator.random((rows, 3)), generator.random(rows)
    membership = np.zeros((rows, groups))
    for row in membership:
        row[generator.choice(groups, 5, replace=False)] = 1.0
    membership[:, 17] = 1.0
    result = gw.replay(
        x, y, sp.csr_array(membership), play="sample", clip=False, jobs=jobs, **PLAIN
    )
    wanted = naive(x, y, membership)
    assert_allclose(result.expected_loss, wanted.expected_loss, rtol=1e-9)
    awake = membership > 0
    assert result.advice is not None
    assert result.weights is not None
    assert_allclose(result.advice, wanted.advice[awake], rtol=1e-9, atol=1e-12)
    assert_allclose(result.weights, wanted.weights[awake], rtol=1e-9)
    losses = np.array([row["loss"] for row in result.regret()])
    assert_allclose(losses, wanted.group_loss, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("zeros", [0.0, 0.9])
@pytest.mark.parametrize("width", [1, 3, 4, 8, 17, 33, 63])
def test_any_number_of_features(width, zeros):
    x, y, membership = random_arrays(seed=width, rows=70, width=width, zeros=zeros)
    tickets, model = run_loop(x, y, membership, learner=LEARNERS["several"])
    result = run_replay(x, y, membership, learner=LEARNERS["several"])
    assert_same(result, tickets, model, (membership.shape[1], width))


@pytest.mark.parametrize("zeros", [0.0, 0.9])
@pytest.mark.parametrize("learners", ["plain", "several"])
@pytest.mark.parametrize("width", [64, 90])
def test_wide_rows_agree_to_ten_digits(width, learners, zeros):
    x, y, membership = random_arrays(seed=width, rows=200, width=width, zeros=zeros)
    parts = {"learner": LEARNERS[learners]}
    tickets, model = run_loop(x, y, membership, **parts)
    result = run_replay(x, y, membership, **parts)
    close: Any = {"rel": 1e-10, "abs": 1e-12}
    assert result.prediction == pytest.approx([t.prediction for t in tickets], **close)
    for part in ("advice", "weights"):
        looped = np.concatenate([getattr(ticket, part) for ticket in tickets])
        assert getattr(result, part) == pytest.approx(looped, **close)
    table = model.regret()
    for row in result.regret():
        for key in ("loss", "best_loss", "regret", "certificate"):
            expected = table[row["group"]][key]
            assert row[key] == pytest.approx(expected, rel=1e-10, abs=1e-10 * (1 + row["rounds"]))


@pytest.mark.parametrize(("low", "high"), [(-3.0, 5.0), (1000.0, 1001.0)])
def test_labels_of_any_range(low, high):
    x, y, membership = random_arrays(seed=2, fractional=True)
    y = low + (high - low) * y
    parts = {"loss": gw.losses.Square(low, high)}
    tickets, model = run_loop(x, y, membership, **parts)
    result = run_replay(x, y, membership, **parts)
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))
    assert result.loss == pytest.approx((result.prediction - y) ** 2, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("loss", [gw.losses.Absolute(0, 1), gw.losses.Log(floor=0.01)], ids=str)
@pytest.mark.parametrize("play", ["mean", "sample"])
def test_other_losses_too(loss, play):
    x, y, membership = random_arrays(seed=3, fractional=True)
    tickets, model = run_loop(x, y, membership, loss=loss, play=play)
    result = run_replay(x, y, membership, loss=loss, play=play)
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))


def test_the_baseline_is_the_loops_too():
    x, y, membership = random_arrays(seed=7, fractional=True)
    everyone = np.column_stack([membership, np.ones(len(y))])
    names = ["g0", "g1", "g2", "g3", "always_on"]
    result = gw.replay(x, y, everyone, names=names)
    fields = [f"x{i}" for i in range(x.shape[1])]
    model = gw.Groupwise(
        [gw.weight(name) for name in names[:-1]],
        features=fields,
        indicators=False,
        intercept=False,
    )
    for t in range(len(y)):
        row = dict(zip(fields, x[t].tolist(), strict=True))
        row.update(zip(names, membership[t].tolist(), strict=False))
        model.learn_one(row, float(y[t]))
    assert result.regret().rows == model.regret().rows
    assert result.regret()["always_on"]["baseline_regret"] is not None


def test_a_prior_is_a_prior():
    x, y, membership = random_arrays(seed=6)
    mass = [1.0, 5.0, 0.1, 2.0]
    prior = {f"g{g}": m for g, m in enumerate(mass)}
    tickets, model = run_loop(x, y, membership, prior=prior)
    result = run_replay(x, y, membership, prior=mass)
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))


@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
def test_the_numbers_are_those_by_definition(aggregator):
    x, y, membership = random_arrays(seed=8, rows=60, fractional=True)
    brute = BruteForce(((0.01, False), (2.0, True)), aggregator, seed=3)
    learners = [Ridge(0.01), Ridge(2.0, forward=True)]
    result = gw.replay(x, y, membership, learner=learners, seed=3, **parts_of(aggregator))
    assert result.advice is not None
    assert result.weights is not None
    place = 0
    for t in range(len(y)):
        row = {f"x{i}": value for i, value in enumerate(x[t])}
        groups = {str(g): membership[t, g] for g in np.flatnonzero(membership[t])}
        said = brute.predict(t, row, groups)
        entries = slice(place, place + len(groups))
        assert result.prediction[t] == pytest.approx(said.prediction, abs=1e-9)
        assert result.advice[entries] == pytest.approx(said.advice, abs=1e-9)
        assert result.weights[entries] == pytest.approx(said.weights.reshape(-1, 2), abs=1e-9)
        brute.learn(t, row, groups, y[t], said)
        place += len(groups)
    expected = brute.table()
    for row in result.regret():
        for key, value in expected[row["group"]].items():
            assert row[key] == pytest.approx(value, rel=1e-8, abs=1e-8)


@pytest.mark.parametrize("play", ["mean", "sample"])
@pytest.mark.parametrize("clip", [False, True])
@pytest.mark.parametrize("fractional", [False, True])
def test_agrees_with_the_naive_loop(play, clip, fractional):
    x, y, membership = random_arrays(seed=12, rows=1_000, width=8, fractional=fractional)
    membership[5] = 0.0
    plain = naive(x, y, membership, penalty=0.7, play=play, clip=clip)
    result = gw.replay(x, y, membership, learner=Ridge(0.7), play=play, clip=clip)
    awake = membership > 0
    close: Any = {"rel": 1e-9, "abs": 1e-9}
    assert result.advice == pytest.approx(plain.advice[awake], **close)
    assert result.weights == pytest.approx(plain.weights[awake], **close)
    assert result.expected_loss == pytest.approx(plain.expected_loss, **close)
    if play == "mean":
        assert result.prediction == pytest.approx(plain.prediction, **close)
    losses = [row["loss"] for row in result.regret()]
    assert losses == pytest.approx(plain.group_loss, **close)


def test_the_middle_is_played_where_nobody_is_awake():
    x, y, membership = random_arrays(seed=1)
    membership[10:13] = 0.0
    loss = gw.losses.Square(-1, 3)
    result = gw.replay(x, 4 * y - 1, membership, loss=loss)
    assert result.prediction[10:13].tolist() == [1.0] * 3
    assert result.loss[10:13] == pytest.approx((4 * y[10:13] - 2) ** 2)
    kept = np.delete(np.arange(len(y)), [10, 11, 12])
    without = gw.replay(x[kept], 4 * y[kept] - 1, membership[kept], loss=loss)
    assert np.array_equal(result.prediction[kept], without.prediction)


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix])
def test_sparse_input_is_dense_input(kind):
    x, y, membership = random_arrays(seed=2, zeros=0.6, fractional=True)
    dense = gw.replay(x, y, membership, learner=LEARNERS["several"])
    sparse = gw.replay(kind(x), y, kind(membership), learner=LEARNERS["several"])
    for part in ("prediction", "advice", "weights", "loss", "expected_loss"):
        assert np.array_equal(getattr(dense, part), getattr(sparse, part))
    assert dense.regret().rows == sparse.regret().rows


def test_sparse_input_in_any_order_with_explicit_zeros():
    x, y, membership = random_arrays(seed=3, zeros=0.5)
    starts = np.arange(0, x.size + 1, x.shape[1])
    backwards = np.tile(np.arange(x.shape[1])[::-1], len(y))
    odd = sp.csr_array((x[:, ::-1].ravel().copy(), backwards, starts), shape=x.shape)
    data, indices = odd.data.copy(), odd.indices.copy()
    result = gw.replay(odd, y, membership)
    assert np.array_equal(result.prediction, gw.replay(x, y, membership).prediction)
    assert np.array_equal(odd.data, data)  # as it was
    assert np.array_equal(odd.indices, indices)


@pytest.mark.parametrize("order", ["C", "F"])
def test_any_array_of_numbers_will_do(order):
    generator = np.random.default_rng(0)
    x, y = generator.integers(0, 3, (80, 4)), generator.integers(0, 2, 80)
    membership = generator.random((80, 3)) < 0.5
    expected = gw.replay(x.astype(float), y.astype(float), membership.astype(float)).prediction
    x = np.array(x, order=order)
    for features in (x, x.astype(np.int8), x.astype(np.float32), x.tolist(), x[::-1][::-1]):
        for labels in (y, y.astype(bool), y.tolist()):
            for members in (membership, membership.astype(int), membership.tolist()):
                result = gw.replay(features, labels, members)
                assert np.array_equal(result.prediction, expected)


def test_input_is_left_as_it_was():
    x, y, membership = random_arrays(seed=3)
    copies = x.copy(), y.copy(), membership.copy()
    for array in (x, y, membership):
        array.flags.writeable = False
    result = gw.replay(x, y, membership)
    result.curves(5)
    for array, copy in zip((x, y, membership), copies, strict=True):
        assert np.array_equal(array, copy)


def test_only_what_is_asked_for_is_kept():
    x, y, membership = random_arrays()
    nothing = gw.replay(x, y, membership, keep=(), **PLAIN)
    assert nothing.advice is None
    assert nothing.weights is None
    assert gw.replay(x, y, membership, keep=("weights",)).advice is None
    full = gw.replay(x, y, membership, **PLAIN)
    assert np.array_equal(nothing.prediction, full.prediction)
    assert nothing.regret().rows == full.regret().rows
    assert full.advice is not None
    assert full.weights is not None
    assert full.advice.shape == full.weights.shape == (np.count_nonzero(membership),)
    several = gw.replay(x, y, membership, learner=LEARNERS["several"])
    assert several.advice is not None
    assert several.weights is not None
    assert several.advice.shape == (np.count_nonzero(membership), 3)
    starts = np.append(0, np.cumsum(np.count_nonzero(membership, axis=1)))[:-1]
    awake = membership.any(axis=1)
    sums = np.add.reduceat(several.weights.sum(axis=1), starts[awake])
    assert sums == pytest.approx(np.ones(awake.sum()), abs=1e-12)


@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
def test_curves_end_at_the_table(aggregator):
    x, y, membership = random_arrays(seed=5, rows=150)
    membership[:, 3] = 1.0
    result = run_replay(x, y, membership, **parts_of(aggregator))
    curves = result.curves(points=10)
    assert list(curves) == ["g0", "g1", "g2", "g3"]
    for row in result.regret():
        curve = curves[row["group"]]
        assert curve.time.tolist() == list(range(15, 151, 15))
        for key in ("rounds", "regret", "baseline_regret", "certificate"):
            assert getattr(curve, key)[-1] == row[key], key
    for place in (0, 4, 8):
        stop = curves["g0"].time[place]
        part = run_replay(x[:stop], y[:stop], membership[:stop], **parts_of(aggregator)).regret()
        for name, curve in curves.items():
            for key in ("rounds", "regret", "baseline_regret", "certificate"):
                assert getattr(curve, key)[place] == part[name][key]


@pytest.mark.parametrize("points", [1, 3, 150, 10_000])
def test_curves_of_any_number_of_points(points):
    x, y, membership = random_arrays(seed=5, rows=150)
    result = gw.replay(x, y, membership)
    curves = result.curves(points)
    for row in result.regret():
        curve = curves[row["group"]]
        assert len(curve.time) == min(points, 150)
        assert curve.time[-1] == 150
        assert curve.regret[-1] == row["regret"]
        assert np.isnan(curve.baseline_regret).all()  # no group is always on


def test_groups_by_their_names_are_no_membership():
    x, y, _ = random_arrays(rows=10)
    with pytest.raises(gw.errors.GroupError, match="must be numbers: a column for every group"):
        gw.replay(x, y, np.full((10, 1), "male"))


@pytest.mark.parametrize("points", [0, -1, 2.5, True, None])
def test_points_is_a_positive_whole_number(points):
    x, y, membership = random_arrays(rows=10)
    with pytest.raises(gw.errors.ConfigurationError, match="points"):
        gw.replay(x, y, membership).curves(points)


class Averaging:
    """A learner in Python: the weighted mean of the labels so far."""

    name = "Averaging"

    def __init__(self):
        self.total, self.count = 0.5, 1.0

    def advise(self, row, weight):
        return self.total / self.count + 0.01 * float(row.dense()[0])

    def update(self, row, label, weight):
        self.total += weight * label
        self.count += weight


class Plain:
    """AdaNormalHedge as an aggregator written in Python: it has no kernel."""

    def __init__(self):
        inner = gw.aggregators.AdaNormalHedge()
        self.log_weights, self.bound, self.plays = inner.log_weights, inner.bound, inner.plays


@pytest.mark.parametrize("aggregator", ["mean", "sample", "specialists"])
@pytest.mark.parametrize("learners", [[Averaging()], [Ridge(0.5), Averaging(), Ridge(2.0, True)]])
def test_learners_in_python_go_the_slow_way_with_the_same_numbers(learners, aggregator):
    x, y, membership = random_arrays(seed=4, rows=60, fractional=True)
    parts = {"learner": learners, **parts_of(aggregator)}
    tickets, model = run_loop(x, y, membership, **parts)
    result = run_replay(x, y, membership, **parts)
    assert result.path == "python"
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))
    curves = result.curves(6)
    for row in result.regret():
        assert curves[row["group"]].regret[-1] == row["regret"]


@pytest.mark.parametrize("play", ["mean", "sample"])
@pytest.mark.parametrize("learners", LEARNERS)
def test_the_slow_way_is_the_fast_way(learners, play):
    """The same ridge learners, driven by an aggregator in Python."""
    x, y, membership = random_arrays(seed=4, rows=80, fractional=True, zeros=0.3)
    membership[7] = 0.0
    parts = {"learner": LEARNERS[learners], "play": play}
    fast = gw.replay(x, y, membership, **parts)
    slow = gw.replay(x, y, membership, aggregator=Plain(), **parts)
    assert (fast.path, slow.path) == ("compiled", "python")
    assert fast.advice is not None
    assert slow.advice is not None
    assert np.array_equal(fast.advice, slow.advice)
    # Weights given as logarithms are rounded once more than those of the kernel.
    for part in ("prediction", "weights", "loss", "expected_loss"):
        assert_allclose(getattr(fast, part), getattr(slow, part), rtol=1e-12, atol=1e-14)
    for mine, given in zip(fast.regret(), slow.regret(), strict=True):
        assert mine["regret"] == pytest.approx(given["regret"], rel=1e-11, abs=1e-13)


def test_river_in_a_replay():
    linear_model = pytest.importorskip("river.linear_model")
    x, y, membership = random_arrays(seed=4, rows=60)
    learner = gw.learners.Foreign(linear_model.BayesianLinearRegression())
    tickets, model = run_loop(x, y, membership, learner=learner)
    result = run_replay(x, y, membership, learner=learner)
    assert result.path == "python"
    assert_same(result, tickets, model, (membership.shape[1], x.shape[1]))


# What cannot be run.

E = gw.errors


def changed(array, place, value):
    """A copy with one cell changed."""
    array = array.copy()
    array[place] = value
    return array


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("row", [0, 77, 119])
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_one_bad_feature_is_named(monkeypatch, sparse, row, bad):
    monkeypatch.setattr(groupwise.stream, "CHUNK", 50)
    x, y, membership = random_arrays()
    x = changed(x, (row, 2), bad)
    with pytest.raises(E.FeatureError, match=rf"row {row}: .*\[{row}, 2\]"):
        gw.replay(sp.csr_array(x) if sparse else x, y, membership)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_one_bad_membership_is_named(monkeypatch, sparse, bad):
    monkeypatch.setattr(groupwise.stream, "CHUNK", 50)
    x, y, membership = random_arrays()
    membership = changed(membership, (77, 1), bad)
    with pytest.raises(E.GroupError, match=r"row 77: .*\[77, 1\]"):
        gw.replay(x, y, sp.csr_array(membership) if sparse else membership)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_feature_that_is_too_large_is_named(sparse):
    x, y, membership = random_arrays()
    x = changed(x, (7, 2), 1e101)
    with pytest.raises(E.FeatureError, match=r"row 7: .*\[7, 2\] = 1e\+101 is beyond 1e\+100"):
        gw.replay(sp.csr_array(x) if sparse else x, y, membership)


@pytest.mark.parametrize("place", [4, -1, 10**12])
@pytest.mark.parametrize("which", ["X", "membership"])
def test_a_sparse_matrix_with_a_column_that_is_not_there(which, place):
    x, y, membership = random_arrays()
    broken = sp.csr_array(membership if which == "membership" else x[:, :4])
    broken.indices = broken.indices.astype(np.int64)
    broken.indices[3] = place
    given = (x, y, broken) if which == "membership" else (broken, y, membership)
    with pytest.raises((E.GroupError, E.FeatureError), match=f"{which} is not a sound sparse"):
        gw.replay(*given)


def test_columns_that_are_single_precision_are_taken_exactly():
    x, y, membership = random_arrays()
    x = x.astype(np.float32)
    one = gw.replay(x, y, membership.astype(np.float32) > 0)
    other = gw.replay(x.astype(np.float64), y, (membership > 0).astype(np.int8))
    assert np.array_equal(one.prediction, other.prediction)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.1, math.inf])
def test_one_bad_label_is_named(bad):
    x, y, membership = random_arrays()
    with pytest.raises(E.LabelError, match="row 77"):
        gw.replay(x, changed(y, 77, bad), membership)


def test_labels_for_zero_one_loss_are_binary():
    x, y, membership = random_arrays()
    with pytest.raises(E.LabelError, match=r"row \d+"):
        gw.replay(x, y, membership, loss=gw.losses.ZeroOne())


@pytest.mark.parametrize(
    "cut",
    [
        lambda x, y, m: (x[:-1], y, m),
        lambda x, y, m: (x, y[:-1], m),
        lambda x, y, m: (x, y, m[:-1]),
        lambda x, y, m: (x[:0], y[:0], m[:0]),
        lambda x, y, m: (x[:, 0], y, m),
        lambda x, y, m: (x, y[:, None], m),
        lambda x, y, m: (x, y, m[:, 0]),
        lambda x, y, m: (x, 0.5, m),
        lambda x, y, m: (x[None], y, m),
    ],
)
def test_shapes_that_differ(cut):
    with pytest.raises(gw.GroupwiseError):
        gw.replay(*cut(*random_arrays()))


@pytest.mark.parametrize("bad", ["text", "object", "complex", "date", "ragged", "none"])
@pytest.mark.parametrize(
    ("place", "error"), [(0, E.FeatureError), (1, E.LabelError), (2, E.GroupError)]
)
def test_what_is_not_a_number(place, error, bad):
    arrays = list(random_arrays(rows=4))
    if bad == "ragged":
        arrays[place] = [[1.0, 2.0], [1.0], [2.0], [3.0]]
    elif bad == "none":
        arrays[place] = None
    elif bad == "date":
        arrays[place] = np.full(arrays[place].shape, np.datetime64("2024-01-01"))
    else:
        kind = {"text": "U3", "object": object, "complex": complex}[bad]
        arrays[place] = arrays[place].astype(kind)
    with pytest.raises(error):
        gw.replay(*arrays)


@pytest.mark.parametrize(
    ("parts", "error"),
    [
        ({"names": ["a", "b", "c"]}, E.GroupError),
        ({"names": ["a", "b", "c", "a"]}, E.GroupError),
        ({"prior": [1, 1, 1]}, E.ConfigurationError),
        ({"prior": [1, 1, 1, 0]}, E.ConfigurationError),
        ({"prior": [1, 1, 1, math.nan]}, E.ConfigurationError),
        ({"prior": [1, 1, 1, -1]}, E.ConfigurationError),
        ({"prior": "even"}, E.ConfigurationError),
        ({"keep": ("advise",)}, E.ConfigurationError),
        ({"jobs": 0}, E.ConfigurationError),
        ({"jobs": 1.5}, E.ConfigurationError),
        ({"jobs": True}, E.ConfigurationError),
        ({"seed": -1}, E.ConfigurationError),
        ({"seed": 2**63}, E.ConfigurationError),
        ({"seed": 0.5}, E.ConfigurationError),
        ({"learner": []}, E.ConfigurationError),
        ({"learner": object()}, E.ConfigurationError),
        ({"learner": Ridge}, E.ConfigurationError),
        ({"aggregator": object()}, E.ConfigurationError),
        ({"loss": "square"}, E.ConfigurationError),
        ({"play": "median"}, E.ConfigurationError),
        ({"aggregator": gw.aggregators.Specialists(), "clip": False}, E.ConfigurationError),
        ({"loss": gw.losses.Absolute(), "aggregator": gw.aggregators.Specialists()},
         E.ConfigurationError),
    ],
    ids=lambda value: "",
)  # fmt: skip
def test_settings_that_do_not_fit(parts, error):
    with pytest.raises(error):
        gw.replay(*random_arrays(rows=5), **parts)


def test_no_columns_at_all():
    """Without features every ridge advises 0; without groups nobody is ever awake."""
    x, y, membership = random_arrays(rows=20)
    advice = gw.replay(x[:, :0], y, membership).advice
    assert advice is not None
    assert not advice.any()
    assert gw.replay(x, y, membership[:, :0]).prediction.tolist() == [0.5] * 20
