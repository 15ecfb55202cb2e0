"""AdaNormalHedge: weights to the last digits and beyond overflow, its bound, its plays."""

import math
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext

import numpy as np
import pytest

import groupwise as gw
from groupwise.aggregators import AdaNormalHedge
from groupwise.kernels import rounds
from groupwise.kernels.stretch import addressed
from groupwise.protocols import Awake
from groupwise.reduction import Reduction
from tests.plain import PLAIN
from tests.streams import hedge_weight

SQUARE = gw.losses.Square()


def log_weight(regret, absolute):
    """ln w(R, C) by the library."""
    return float(AdaNormalHedge().log_weights(np.array([regret]), np.array([absolute]), SQUARE)[0])


def exact_log_weight(regret, absolute):
    """ln w(R, C) by the definition, in sixty digits and without limit on the exponent."""
    with localcontext(Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN)):
        r, c = Decimal(regret), Decimal(absolute)

        def potential(value):
            return (max(value, Decimal(0)) ** 2 / (3 * (c + 1))).exp()

        return float(((potential(r + 1) - potential(r - 1)) / 2).ln())


def probabilities(regret, absolute, mass, membership):
    """The weights over awake experts as a round computes them."""
    groups, out = np.arange(len(regret)), np.empty((len(regret), 1))
    reduction = Reduction([gw.learners.Ridge()], AdaNormalHedge(), SQUARE)
    reduction.reserve(groups, 0)
    for name, values in (("regret", regret), ("absolute", absolute), ("mass", mass)):
        reduction.state.fill(name, groups, np.array(values, dtype=float)[:, None])
    awake = Awake(groups, np.array(membership, dtype=float))
    rounds.follow(reduction._address, addressed(awake), 0, out)
    return out[:, 0]


@pytest.mark.parametrize("absolute", [0.0, 0.3, 1.0, 7.5, 400.0, 1e4, 1e7])
@pytest.mark.parametrize("share", [-0.9, -1e-3, 0.0, 1e-9, 0.1, 0.5, 0.999, 1.0])
def test_log_weights_to_the_last_digits(absolute, share):
    regret = share * absolute
    if regret <= -1.0:
        assert log_weight(regret, absolute) == -math.inf
    else:
        exact = exact_log_weight(regret, absolute)
        assert log_weight(regret, absolute) == pytest.approx(exact, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize("regret", [-0.999999, -1.0 + 1e-12, -0.5, 1.0, 1.0 + 1e-9, 1.5])
@pytest.mark.parametrize("absolute", [2.0, 1e3, 1e6])
def test_log_weights_at_the_corners(regret, absolute):
    exact = exact_log_weight(regret, absolute)
    assert log_weight(regret, absolute) == pytest.approx(exact, rel=1e-9)


def test_log_weights_are_the_plain_formulas_where_that_works():
    generator = np.random.default_rng(0)
    absolute = generator.uniform(0, 500, 300)
    regret = absolute * generator.uniform(-1, 1, 300)
    plain = np.array([hedge_weight(r, c) for r, c in zip(regret, absolute, strict=True)])
    logs = AdaNormalHedge().log_weights(regret, absolute, SQUARE)
    assert np.exp(logs) == pytest.approx(plain, rel=1e-9)
    shaped = AdaNormalHedge().log_weights(regret.reshape(100, 3), absolute.reshape(100, 3), SQUARE)
    assert np.array_equal(shaped, logs.reshape(100, 3))


def test_no_weight_once_the_regret_is_minus_one():
    for regret in (-1.0, -1.5, -1e7):
        assert log_weight(regret, 1e7) == -math.inf


def test_finite_at_ten_million():
    assert log_weight(1e7, 1e7) == pytest.approx(exact_log_weight(1e7, 1e7), rel=1e-14)
    weights = probabilities([1e7, 1e7, 1e7 - 1, -1e7], [1e7] * 4, [1, 3, 1, 1], [1, 1, 0.5, 1])
    assert np.isfinite(weights).all()
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert weights[1] == pytest.approx(3 * weights[0], rel=1e-12)
    assert weights[3] == 0.0
    ratio = math.exp(exact_log_weight(1e7 - 1, 1e7) - exact_log_weight(1e7, 1e7)) / 2
    assert weights[2] / weights[0] == pytest.approx(ratio, rel=1e-8)


@pytest.mark.parametrize("step", [1.0, 0.37, 1e-3])
def test_finite_after_a_million_rounds_of_constant_regret(step):
    regret = np.cumsum(np.full(1_000_000, step))[np.array([0, 9, 999, 99_999, 999_999])]
    logs = AdaNormalHedge().log_weights(regret, regret, SQUARE)
    assert np.isfinite(logs).all()
    assert np.all(np.diff(logs) > 0)
    exact = [exact_log_weight(r, r) for r in regret.tolist()]
    assert logs == pytest.approx(exact, rel=1e-12, abs=1e-12)
    bounds = AdaNormalHedge().bound(regret, regret, np.full(5, 0.2), SQUARE)
    assert np.isfinite(bounds).all()


@pytest.mark.slow
@pytest.mark.parametrize("play", ["mean", "sample"])
def test_a_million_rounds_of_a_hopeless_expert(play):
    """The heavy penalty always advises about 0 where the label is 1: it loses 1 a round."""
    rows = 1_000_000
    learners = [gw.learners.Ridge(1e-3), gw.learners.Ridge(1e12)]
    ones = np.ones((rows, 1))
    result = gw.replay(ones, ones[:, 0], ones, learner=learners, play=play)
    assert np.isfinite(result.prediction).all()
    assert result.weights is not None
    assert np.isfinite(result.weights).all()
    assert np.abs(result.weights.sum(axis=1) - 1).max() < 1e-12
    assert result.weights[-1].tolist() == [1.0, 0.0]
    row = result.regret()["0"]
    assert row["status"] == "loose"  # what is best loses nothing
    assert row["regret"] <= row["certificate"] + 1e-9 * (1 + rows)


def test_weights_are_normalised_over_the_awake():
    generator = np.random.default_rng(2)
    for _ in range(50):
        count = int(generator.integers(1, 8))
        absolute = generator.uniform(0, 30, count)
        regret = absolute * generator.uniform(-0.2, 1, count)
        mass, membership = generator.uniform(0.1, 5, count), generator.uniform(0.01, 1, count)
        weights = probabilities(regret, absolute, mass, membership)
        plain = [hedge_weight(r, c) for r, c in zip(regret, absolute, strict=True)]
        expected = mass * membership * plain
        if expected.any():
            assert weights == pytest.approx(expected / expected.sum(), rel=1e-10, abs=1e-15)
        assert weights.sum() == pytest.approx(1.0, abs=1e-12)


def test_experts_without_weight_share_by_prior_and_membership():
    weights = probabilities([-1.0, -3.0], [3.0, 3.0], [2.0, 1.0], [0.25, 0.75])
    assert weights == pytest.approx([0.4, 0.6], abs=1e-15)
    weights = probabilities([-1.0, -3.0, -0.9], [3.0] * 3, [1.0] * 3, [1.0] * 3)
    assert weights.tolist() == [0.0, 0.0, 1.0]


@pytest.mark.parametrize("prior", [None, [4.0, 1.0, 1.0]])
def test_experts_without_weight_share_in_a_stream_too(prior):
    """Two groups learn 0, the third 1; then labels are 1 until the first two have lost it all."""
    alone = [([1, 0, 0], 0.0), ([0, 1, 0], 0.0), ([0, 0, 1], 1.0)] * 100
    lost = [([1, 0, 1], 1.0), ([0, 1, 1], 1.0)] * 8
    stream = [*alone, *lost, ([0.25, 0.75, 0], 1.0)]
    membership = np.array([awake for awake, _ in stream], dtype=float)
    label = np.array([y for _, y in stream])
    result = gw.replay(np.ones((len(stream), 1)), label, membership, prior=prior, **PLAIN)
    expected = np.array([0.25, 0.75]) * (prior[:2] if prior else 1)
    assert result.weights is not None
    assert result.weights[-2:] == pytest.approx(expected / expected.sum(), abs=1e-15)


def test_the_bound_is_the_formula():
    absolute, prior = np.array([0.0, 2.0, 50.0]), np.array([0.2, 0.3, 0.5])
    b = 1 + 1.5 * sum(q * (1 + math.log(1 + c)) for q, c in zip(prior, absolute, strict=True))
    expected = [math.sqrt(3 * c * math.log(b / q)) for q, c in zip(prior, absolute, strict=True)]
    assert AdaNormalHedge().bound(absolute, absolute, prior, SQUARE) == pytest.approx(expected)


@pytest.mark.parametrize("fractional", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_no_sequence_of_losses_breaks_the_bound(seed, fractional):
    """Losses are chosen when the weights are known, to favour a target and hurt the leader."""
    generator = np.random.default_rng(seed)
    hedge, count = AdaNormalHedge(), 5
    prior = generator.dirichlet(np.ones(count))
    regret, absolute = np.zeros(count), np.zeros(count)
    target = int(generator.integers(count))
    for _ in range(400):
        awake = (generator.random(count) < 0.7).astype(float)
        awake[target] = 1.0
        if fractional:
            awake *= 1.0 - generator.random(count)
        logs = hedge.log_weights(regret, absolute, SQUARE)
        weights = prior * awake * np.exp(logs - logs.max())
        weights = weights if weights.any() else prior * awake
        weights = weights / weights.sum()
        losses = (generator.random(count) < 0.5).astype(float)
        losses[np.argmax(weights)] = 1.0
        if seed % 2:
            losses[:] = 1.0
        losses[target] = float(generator.random() < 0.2)
        gain = awake * (weights @ losses - losses)
        regret, absolute = regret + gain, absolute + np.abs(gain)
        assert np.all(regret <= hedge.bound(regret, absolute, prior, SQUARE) + 1e-9)


def test_a_drawn_expert_is_drawn_by_weight():
    model = gw.Groupwise(
        [gw.weight("a"), gw.weight("b")], play="sample", features=["one"], indicators=False,
        always_on=False, seed=5, **PLAIN,
    )  # fmt: skip
    for a, b, y in [(1.0, 0.0, 0.9), (0.0, 1.0, 0.1), (1.0, 0.5, 0.8), (0.3, 1.0, 0.6)] * 2:
        model.learn_one({"a": a, "b": b, "one": 1.0}, y)
    tickets = [model.predict({"a": 1.0, "b": 0.6, "one": 1.0}) for _ in range(5_000)]
    advice, weights = tickets[0].advice, tickets[0].weights
    assert 0.05 < weights[0] < 0.95
    drawn = np.array([ticket.prediction for ticket in tickets])
    assert set(drawn) == set(advice)
    spread = math.sqrt(weights[0] * weights[1] / len(tickets))
    assert abs(np.mean(drawn == advice[0]) - weights[0]) < 4 * spread


def test_plays_follow_the_loss():
    hedge = AdaNormalHedge()
    assert hedge.plays(SQUARE) == ("mean", "sample")
    assert hedge.plays(gw.losses.Absolute()) == ("mean", "sample")
    assert hedge.plays(gw.losses.ZeroOne()) == ("sample",)
    assert hedge.plays(gw.losses.Log(floor=0.01)) == ("mean", "sample")
    with pytest.raises(gw.errors.ConfigurationError, match="Specialists"):
        hedge.plays(gw.losses.Log())


@pytest.mark.parametrize(
    ("loss", "play"),
    [
        (gw.losses.ZeroOne(), "mean"),
        (gw.losses.Square(), "substitution"),
        (gw.losses.Square(), "median"),
        (gw.losses.Log(), None),
    ],
    ids=str,
)
def test_unsound_plays_are_refused(loss, play):
    hedge = gw.aggregators.AdaNormalHedge()
    with pytest.raises(gw.errors.ConfigurationError):
        gw.Groupwise([gw.by("k")], loss=loss, aggregator=hedge, play=play)
