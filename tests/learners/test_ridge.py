"""Ridge: its exact identities, its numerics over long streams, and its parameters."""

from typing import Any

import numpy as np
import pandas
import pytest
import scipy.sparse as sp

import groupwise as gw
from groupwise.learners import Ridge

EXACT: Any = {"rel": 1e-8, "abs": 1e-8}


def weighted_stream(seed, rows=200, width=6, fractional=True):
    """One group; a row with weight 0 is not in it. Labels in [0, 1]."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, width)) * generator.lognormal(size=width)
    y = np.clip(0.5 + x @ generator.normal(size=width) / 6 + generator.normal(size=rows) / 5, 0, 1)
    w = generator.random(rows) if fractional else np.ones(rows)
    w[generator.random(rows) < 0.2] = 0.0
    return x, y, w


def advice_of(x, y, w, learner, clip=False):
    """A learner's advice on the rows that it is awake on."""
    result = gw.replay(x, y, w[:, None], learner=learner, clip=clip)
    assert result.path == "compiled"
    return result


def refits(x, y, w, penalty):
    """θ·x and xᵀPx before each row, every one from a fit to all earlier rows."""
    d = x.shape[1]
    theta_x, spread = [], []
    for t in range(len(y)):
        a = penalty * np.eye(d) + x[:t].T @ (w[:t, None] * x[:t])
        theta, px = np.linalg.solve(a, np.column_stack([x[:t].T @ (w[:t] * y[:t]), x[t]])).T
        theta_x.append(theta @ x[t])
        spread.append(px @ x[t])
    return np.array(theta_x), np.array(spread)


def penalised_minimum(x, y, w, penalty):
    """min_θ λ‖θ‖² + Σ w (θ·x − y)², by least squares on stacked rows."""
    root = np.sqrt(w)
    stacked = np.vstack([root[:, None] * x, np.sqrt(penalty) * np.eye(x.shape[1])])
    target = np.append(root * y, np.zeros(x.shape[1]))
    theta = np.linalg.lstsq(stacked, target, rcond=None)[0]
    return float(np.sum((stacked @ theta - target) ** 2))


STREAMS = [(seed, penalty, fractional) for seed, penalty, fractional in
           [(0, 1.0, True), (1, 0.01, True), (2, 30.0, False), (3, 1.0, False)]]  # fmt: skip


@pytest.mark.parametrize(("seed", "penalty", "fractional"), STREAMS)
def test_advice_is_that_of_a_refit(seed, penalty, fractional):
    x, y, w = weighted_stream(seed, fractional=fractional)
    awake = w > 0
    theta_x, spread = refits(x, y, w, penalty)
    plain = advice_of(x, y, w, Ridge(penalty)).advice
    forward = advice_of(x, y, w, Ridge(penalty, forward=True)).advice
    assert plain == pytest.approx(theta_x[awake], rel=1e-9, abs=1e-9)
    assert forward == pytest.approx((theta_x / (1 + w * spread))[awake], rel=1e-9, abs=1e-9)


@pytest.mark.parametrize(("seed", "penalty", "fractional"), STREAMS)
def test_the_shrunk_errors_sum_to_the_penalised_minimum(seed, penalty, fractional):
    x, y, w = weighted_stream(seed, fractional=fractional)
    awake = w > 0
    _, spread = refits(x, y, w, penalty)
    errors = y[awake] - advice_of(x, y, w, Ridge(penalty)).advice
    w, spread = w[awake], spread[awake]
    minimum = penalised_minimum(x[awake], y[awake], w, penalty)
    assert np.sum(w * errors**2 / (1 + w * spread)) == pytest.approx(minimum, **EXACT)
    # so the learner's regret on its group is known exactly
    excess = np.sum(w * errors**2 * w * spread / (1 + w * spread))
    assert np.sum(w * errors**2) == pytest.approx(minimum + excess, **EXACT)


@pytest.mark.parametrize(("seed", "penalty", "fractional"), STREAMS)
def test_the_forward_forms_excess_is_known_exactly(seed, penalty, fractional):
    x, y, w = weighted_stream(seed, fractional=fractional)
    awake = w > 0
    _, spread = refits(x, y, w, penalty)
    plain = advice_of(x, y, w, Ridge(penalty)).advice
    forward = advice_of(x, y, w, Ridge(penalty, forward=True)).advice
    x, y, w, spread = x[awake], y[awake], w[awake], spread[awake]
    growth = 1 + w * spread
    excess = np.sum(w * (forward - y) ** 2) - penalised_minimum(x, y, w, penalty)
    identity = np.sum(w * w * spread / growth * (y**2 - plain**2 / growth))
    assert excess == pytest.approx(identity, **EXACT)
    _, log_determinant = np.linalg.slogdet(np.eye(x.shape[1]) + x.T @ (w[:, None] * x) / penalty)
    assert excess <= np.max(y**2) * log_determinant + 1e-8


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize(("seed", "penalty", "fractional"), STREAMS)
def test_the_table_states_the_identities(seed, penalty, fractional, forward):
    x, y, w = weighted_stream(seed, fractional=fractional)
    row = advice_of(x, y, w, Ridge(penalty, forward)).regret()["0"]
    awake = w > 0
    plain, spread = (part[awake] for part in refits(x, y, w, penalty))
    x, y, w = x[awake], y[awake], w[awake]
    best = penalised_minimum(x, y, w, 0.0)
    minimum = penalised_minimum(x, y, w, penalty)
    growth = 1 + w * spread
    assert row["best_loss"] == pytest.approx(best, **EXACT)
    if forward:
        excess = np.sum(w * w * spread / growth * (y**2 - plain**2 / growth))
        gram = x.T @ (w[:, None] * x)
        _, log_determinant = np.linalg.slogdet(np.eye(x.shape[1]) + gram / penalty)
        known = minimum - best + log_determinant
        assert known <= row["learner_a_priori"] + 1e-12 <= known + 1e-8 * (1 + known + minimum)
        assert row["learner"] <= row["learner_a_priori"]
    else:
        excess = np.sum(w * (y - plain) ** 2 * w * spread / growth)
        assert row["learner_a_priori"] is None
    assert row["a_priori"] is None  # advice is not held to the range
    assert row["learner"] == pytest.approx(minimum - best + excess, **EXACT)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_clipping_lowers_the_loss_of_every_round(seed, forward):
    x, y, w = weighted_stream(seed)
    awake = w > 0
    learner = Ridge(0.01, forward)
    free = advice_of(x, y, w, learner).advice
    clipped = advice_of(x, y, w, learner, clip=True).advice
    assert np.any(clipped != free)
    assert clipped == pytest.approx(np.clip(free, 0, 1), rel=0, abs=0)
    assert np.all((clipped - y[awake]) ** 2 <= (free - y[awake]) ** 2)


@pytest.mark.parametrize("forward", [False, True])
@pytest.mark.parametrize("widest", [10, 90])
def test_new_features_in_mid_stream_are_exact(forward, widest):
    """A feature that comes late: the same as one that was there from the start, at 0."""
    generator = np.random.default_rng(5)
    rows = []
    for t in range(120):
        count = 2 + (widest - 2) * t // 120
        chosen = generator.choice(count, size=min(count, 6), replace=False)
        rows.append({f"f{i}": float(generator.normal()) for i in chosen})
    labels = generator.random(len(rows))
    model = gw.Groupwise([gw.weight("g")], learner=Ridge(0.7, forward), indicators=False,
                         intercept=False, always_on=False)  # fmt: skip
    names = [f"f{i}" for i in range(widest)]
    dense = np.array([[row.get(name, 0.0) for name in names] for row in rows])
    weights = 1.0 - generator.random(len(rows))
    theta_x, spread = refits(dense, labels, weights, 0.7)
    expected = theta_x / (1 + weights * spread) if forward else theta_x
    for row, label, weight, advice in zip(rows, labels, weights, expected, strict=True):
        ticket = model.predict({**row, "g": weight})
        assert ticket.advice[0] == pytest.approx(np.clip(advice, 0, 1), rel=1e-9, abs=1e-9)
        model.learn(ticket, label)


def test_several_learners_of_a_group_do_not_mix():
    x, y, w = weighted_stream(7)
    learners = [Ridge(0.1), Ridge(0.1, forward=True), Ridge(9.0), Ridge(9.0, forward=True)]
    together = gw.replay(x, y, w[:, None], learner=learners, clip=False).advice
    assert together is not None
    for k, learner in enumerate(learners):
        assert np.array_equal(together[:, k], advice_of(x, y, w, learner).advice)


# Long streams of fully collinear one-hot columns: an intercept and blocks that each sum to it.


def one_hot(generator, rows, levels):
    """Rows with an intercept and one level of each block; the last level of a block is rare."""
    columns, first = [np.zeros(rows, dtype=np.int64)], 1
    for count in levels:
        chance = np.append(np.ones(count - 1), 0.01)
        columns.append(first + generator.choice(count, size=rows, p=chance / chance.sum()))
        first += count
    places = np.column_stack(columns)
    starts = np.arange(0, places.size + 1, places.shape[1])
    return sp.csr_array((np.ones(places.size), places.ravel(), starts), shape=(rows, first))


def drift(x, y, advice, penalty, moments, probes=50):
    """The largest error of the advice on the ``probes`` rows before each moment, against QR."""
    width = x.shape[1]
    stacked = np.column_stack([np.sqrt(penalty) * np.eye(width), np.zeros(width)])
    errors: list[float] = []
    done = 0
    for moment in moments:
        while done < moment:
            step = min(20_000, moment - probes - done) if done < moment - probes else 1
            if step == 1:
                theta = np.linalg.solve(stacked[:width, :width], stacked[:width, width])
                errors[-1:] = [max(errors[-1], abs(x[[done]] @ theta - advice[done])[0])]
            block = np.column_stack([x[done : done + step].toarray(), y[done : done + step]])
            stacked = np.asarray(np.linalg.qr(np.vstack([stacked, block]), mode="r"))
            done += step
            if done == moment - probes:
                errors.append(0.0)
    return errors


def long_stream(rows, levels, penalty, moments, forward=False):
    generator = np.random.default_rng(0)
    x = one_hot(generator, rows, levels)
    y = generator.random(rows)
    learner = Ridge(penalty, forward)
    result = gw.replay(x, y, np.ones((rows, 1)), learner=learner, clip=False, keep=("advice",))
    return drift(x, y, result.advice, penalty, moments)


@pytest.mark.slow
def test_a_million_rounds_on_collinear_columns():
    errors = long_stream(1_000_000, (4, 3, 2), 1.0, (1_000, 100_000, 1_000_000))
    assert max(errors) < 1e-9


@pytest.mark.slow
def test_a_million_rounds_on_collinear_columns_with_hardly_a_penalty():
    early, late = long_stream(1_000_000, (4, 3, 2), 1e-6, (100_000, 1_000_000))
    assert max(early, late) < 1e-9


@pytest.mark.parametrize("penalty", [1.0, 1e-6])
def test_wide_rows_on_collinear_columns(penalty):
    errors = long_stream(100_000, (30, 20, 20), penalty, (1_000, 100_000))
    assert max(errors) < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("penalty", [1.0, 1e-6])
def test_a_million_wide_rows_on_collinear_columns(penalty):
    errors = long_stream(1_000_000, (30, 20, 20), penalty, (100_000, 1_000_000))
    assert max(errors) < 1e-9


@pytest.mark.parametrize("penalty", [0.0, -1.0, float("nan"), float("inf"), "1", True, None])
def test_a_penalty_is_a_positive_number(penalty):
    with pytest.raises(gw.errors.ConfigurationError, match="penalty"):
        Ridge(penalty)


def test_forward_is_yes_or_no():
    with pytest.raises(gw.errors.ConfigurationError, match="forward"):
        Ridge(1.0, forward=1)  # type: ignore[arg-type]


def test_stiff_learners_are_the_same_in_both_drivers():
    """For thousands of rounds, beside a calm one."""
    generator = np.random.default_rng(5)
    level = generator.integers(0, 3, 17_000)
    labels = generator.random(17_000)
    learners = [Ridge(1e-6), Ridge(1.0), Ridge(1e-7, forward=True)]
    model = gw.Groupwise([gw.by("level")], learner=learners)
    predictions = []
    for value, label in zip(level.tolist(), labels.tolist(), strict=True):
        ticket = model.predict({"level": "abc"[value], "one": 1.0})
        predictions.append(ticket.prediction)
        model.learn(ticket, label)
    frame = pandas.DataFrame({"level": ["abc"[v] for v in level], "one": 1.0, "y": labels})
    other = gw.Groupwise([gw.by("level")], learner=learners)
    result = other.replay(frame, "y")
    assert result.prediction.tolist() == predictions
    assert model.regret().rows == other.regret().rows
    best = np.array([labels[level == v].mean() for v in range(3)])
    for value in range(3):
        row = {"level": "abc"[value], "one": 1.0}
        advice = other.predict(row).advice
        assert advice[:, 0] == pytest.approx([best[value]] * 2, abs=1e-6)
