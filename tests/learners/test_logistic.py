"""Logistic: its identities and guarantee against 50 digits, any scale, and its parameters."""

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.errors import ConfigurationError
from groupwise.kernels import logistic
from groupwise.learners import Logistic, Ridge
from groupwise.learners.logistic import excess_rate
from groupwise.losses import Log, Square
from tests.few import few

DIGITS = 50


def loss(z, y):
    """ln(1 + eᶻ) − y z."""
    return mp.log1p(mp.exp(z)) - y * z


def curvature(a, b):
    """2 (ℓ(ζ) − ℓ(a) − ℓ'(a)(ζ − a)) / (ζ − a)² at the end of [−b, b] on the side of a."""
    a = abs(mp.mpf(a))
    gap = b - a
    if gap == 0:
        return mp.exp(-a) / (1 + mp.exp(-a)) ** 2
    slope = -1 / (1 + mp.exp(a))
    return 2 * (mp.log1p(mp.exp(-b)) - mp.log1p(mp.exp(-a)) - slope * gap) / gap**2


def root(v, kappa):
    """z + κ tanh(z/2) = v, by halving the interval between the logarithms of its bounds."""
    size = abs(v)
    if size == 0:
        return mp.mpf(0)
    low, high = mp.log(size / (1 + kappa / 2)), mp.log(size)
    for _ in range(4 * DIGITS):
        middle = (low + high) / 2
        z = mp.exp(middle)
        if z + kappa * mp.tanh(z / 2) < size:
            low = middle
        else:
            high = middle
    return mp.sign(v) * mp.exp((low + high) / 2)


def recursion(x, y, w, penalty=1.0, bound=8.0):
    """Advice, M, ln det and M in batch, as the formulas say them, to 50 digits."""
    with mp.workdps(DIGITS + 250):
        d = x.shape[1]
        matrix, theta = mp.eye(d) / penalty, mp.matrix(d, 1)
        gram, moment, square = penalty * mp.eye(d), mp.matrix(d, 1), mp.mpf(0)
        advice, minimum, determinant = [], mp.mpf(0), mp.mpf(0)
        for row, label, weight in zip(x.tolist(), y.tolist(), w.tolist(), strict=True):
            xt, label, weight = mp.matrix(row), mp.mpf(label), mp.mpf(weight)
            u = matrix * xt
            k, v = (xt.T * u)[0], (xt.T * theta)[0]
            kappa = weight * k
            z = root(v, kappa)
            tau, pi = mp.tanh(z / 2), 1 / (1 + mp.exp(-z))
            c = curvature(z, mp.mpf(bound)) * (1 - mp.mpf(1) / 10**6)
            advice.append(float(1 / (1 + mp.exp(-(z + kappa * tau / (2 * (1 + c * kappa)))))))
            pull = tau - pi + label
            here = loss(z, label)
            minimum += weight * (here + kappa / 2 * (tau**2 - pull**2 / (1 + c * kappa)))
            determinant += mp.log1p(c * kappa)
            theta += weight * (pull / (1 + c * kappa) - tau) * u
            matrix -= (weight * c / (1 + c * kappa)) * (u * u.T)
            slope = pi - label
            gram += weight * c * (xt * xt.T)
            moment += weight * (c * z - slope) * xt
            square += weight * (here - slope * z + c * z**2 / 2)
        batch = square - (moment.T * mp.lu_solve(gram, moment))[0] / 2
        return np.array(advice), float(minimum), float(determinant), float(batch)


def stream(seed, rows=40, width=4, kind="plain"):
    """One group's rows, 0/1 or soft labels, weights."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(rows, width))
    x[:, 0] = 1.0
    theta = generator.normal(size=width) * 1.5
    y = (generator.random(rows) < 1 / (1 + np.exp(-x @ theta))).astype(float)
    w = np.ones(rows)
    if kind == "soft":
        y, w = generator.random(rows), generator.uniform(0.05, 1.0, rows)
    if kind == "timestamps":
        x[:, 1] = 1.7e9 + 3600.0 * np.arange(rows)
    if kind == "offset":
        x[:, 1] += 1e6
        x[:, 2] += 1e6
    if kind == "scales":
        x *= np.array([1.0, 1e-30, 1e12, 1e50])[:width]
    if kind == "collinear":
        x[:, 2] = x[:, 1] + x[:, 0]
        x[:, 3] = x[:, 1]
    if kind == "bursts":
        x[::7] *= 1e8
    if kind == "one-hot":
        x[:, 1:] = 0.0
        x[np.arange(rows), generator.integers(1, width, rows)] = 1.0
    return x, y, w


def run(x, y, w, learner=None, **options):
    learner = learner or Logistic()
    result = gw.replay(x, y, w[:, None], loss=Log(), learner=learner, progress=False, **options)
    assert result.path == "compiled"
    return result


def record(result, group=0):
    """What the learners of a group have."""
    saved = result._reduction.save(len(result.names), len(result._inputs.feature_names))
    return {key.removeprefix("logistic."): value for key, value in saved.items()}


KINDS = ["plain", "soft", "timestamps", "offset", "scales", "collinear", "bursts", "one-hot"]


@pytest.mark.parametrize("penalty", few([1.0, 1e-6], 1))
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.slow
def test_it_is_what_the_formulas_say_to_50_digits(kind, penalty):
    x, y, w = stream(3, kind=kind)
    advice, minimum, determinant, batch = recursion(x, y, w, penalty)
    result = run(x, y, w, Logistic(penalty=penalty, keep_rows=0))
    limits = Log().advice_range
    assert np.abs(result.advice - np.clip(advice, *limits)).max() < 1e-7
    own = record(result)
    assert own["minimum"][0] == pytest.approx(minimum, rel=1e-9, abs=1e-9 * len(y))
    assert own["log_determinant"][0] == pytest.approx(determinant, rel=1e-7)
    assert batch == pytest.approx(minimum, rel=1e-12, abs=1e-12)  # M is what the sums say


@pytest.mark.parametrize("kind", ["plain", "soft", "one-hot", "bursts"])
def test_the_sums_give_M_back(kind):
    """s − ½ rᵀ(G + λI)⁻¹r of the bracket's own sums, as they stand in the state."""
    x, y, w = stream(5, rows=300, kind=kind)
    result = run(x, y, w, Logistic(keep_rows=0))
    crew = result._reduction.banks[0]
    sums, products = (store.of(0) for store in crew.recorder.stores.values())
    from groupwise.regret.hindsight import factored

    factor = factored(sums, products)
    width = x.shape[1]
    factor.add(np.eye(width), np.zeros(width))  # the penalty λ = 1
    own = crew.banks[0].store.of(0)
    found = float(own.constant.sum()) + 0.5 * factor.hindsight(1.0).best
    assert found == pytest.approx(float(own.minimum[0]), rel=1e-9)


def test_features_may_come_late():
    x, y, w = stream(1, rows=80, width=6)
    x[:40, 3:] = 0.0
    whole = run(x, y, w).advice
    narrow = run(x[:40, :3], y[:40], w[:40]).advice
    np.testing.assert_array_equal(whole[:40], narrow)
    assert np.abs(whole - recursion(x, y, w)[0]).max() < 1e-12


@given(
    st.floats(-60.0, 60.0),
    st.floats(0.01, 40.0),
    st.lists(st.floats(-1.0, 1.0), min_size=1, max_size=20),
)
@settings(max_examples=150, deadline=None)
def test_parabolas_stay_below_the_loss(anchor, bound, places):
    """The curvature lemma, against 60 digits."""
    c = logistic.curvature(anchor, bound)
    with mp.workdps(60):
        a = mp.mpf(anchor)
        slope, here = 1 / (1 + mp.exp(-a)), loss(a, 0)
        for part in (*places, -1.0, 1.0):
            z = mp.mpf(part) * mp.mpf(bound)
            below = here + slope * (z - a) + mp.mpf(c) / 2 * (z - a) ** 2
            assert below <= loss(z, 0) + mp.mpf(10) ** -55
        # and no larger number would do, but for what is taken off for rounding
        assert abs(mp.mpf(c) / curvature(a, mp.mpf(bound)) - 1) < mp.mpf(2) / 10**6


@given(st.floats(-300.0, 300.0), st.floats(-30.0, 60.0))
@settings(max_examples=200, deadline=None)
def test_anchors_are_roots(v, magnitude):
    kappa = 10.0**magnitude
    z, part = logistic.anchor(v, kappa)
    with mp.workdps(80):
        exact = abs(root(mp.mpf(v), mp.mpf(kappa)))
        assert abs(z - float(exact)) <= 1e-13 * float(exact) + 1e-300
        assert abs(part - float(mp.exp(-exact))) <= 1e-13 * float(mp.exp(-exact)) * (1 + z)


def adversarial(seed, rows, width, kind):
    """Labels that are chosen once the prediction is known: 0 or 1, whichever loses more."""
    generator = np.random.default_rng(seed)
    model = gw.Groupwise([gw.weight("half")], loss=Log(), learner=Logistic(keep_rows=10))
    for _ in range(rows):
        row = {f"x{j}": float(value) for j, value in enumerate(generator.normal(size=width))}
        if kind == "repeated":
            row = {f"x{j}": float(value > 0) for j, value in enumerate(row.values())}
        row["half"] = float(generator.uniform(0.1, 1.0))
        ticket = model.predict(row)
        model.learn(ticket, float(ticket.prediction < 0.5))
        yield model


@pytest.mark.parametrize("kind", ["any", "repeated"])
@pytest.mark.parametrize("seed", range(3))
def test_excess_is_bounded_before_the_first_row(seed, kind):
    """Σ w loss − M ≤ ρ(b) ln det(A/λ), whatever the labels."""
    *_, model = adversarial(seed, 80, 3, kind)
    saved = model.contents()[1]
    lost = saved["ledger.expert_loss"][:, 0] + saved["ledger.expert_loss_rest"][:, 0]
    bound = excess_rate(8.0) * saved["logistic.log_determinant"][:, 0]
    excess = lost - saved["logistic.minimum"][:, 0]
    assert (excess <= bound).all()
    assert (excess > 0.2 * bound).any()


def test_M_is_at_most_what_any_model_of_the_class_loses():
    x, y, w = stream(2, rows=200, kind="soft")
    own = record(run(x, y, w))
    generator = np.random.default_rng(0)
    for _ in range(200):
        theta = generator.normal(size=x.shape[1])
        theta *= generator.random() * 8.0 / np.abs(x @ theta).max()
        z = x @ theta
        lost = float(w @ (np.logaddexp(0.0, z) - y * z))
        assert own["minimum"][0] <= lost + 0.5 * float(theta @ theta) + 1e-9


@pytest.mark.parametrize("keep_rows", [0, 40, 2000])
def test_the_loop_a_replay_and_a_model_from_a_file_are_one(tmp_path, keep_rows):
    generator = np.random.default_rng(4)
    rows = [
        {
            "sex": str(generator.choice(["m", "f"])),
            "age": float(generator.integers(18, 80)),
            "amount": float(generator.lognormal(8, 3)),
            "time": 1.7e9 + 60.0 * i,
            "part": float(generator.random()),
        }
        for i in range(150)
    ]
    labels = (generator.random(150) < 0.5).astype(float).tolist()

    def fresh():
        groups = [gw.by("sex"), gw.cut("age", [30, 50]), gw.weight("part")]
        learner = [Logistic(keep_rows=keep_rows), Logistic(0.1, 4.0, keep_rows)]
        return gw.Groupwise(groups, loss=Log(), learner=learner)

    loop, found = fresh(), []
    for i, (row, label) in enumerate(zip(rows, labels, strict=True)):
        if i in (20, 90):
            loop.save(tmp_path / "model.gw")
            loop = gw.load(tmp_path / "model.gw")
        ticket = loop.predict(row)
        found.append(ticket.prediction)
        loop.learn(ticket, label)
    frame = pd.DataFrame(rows).assign(label=labels)
    for jobs in (1, 2):
        model = fresh()
        parts = model.replay([frame[:37], frame[37:41], frame[41:]], "label", jobs=jobs)
        np.testing.assert_array_equal(parts.prediction, found)
        ours, theirs = model.contents()[1], loop.contents()[1]
        for name, array in theirs.items():
            np.testing.assert_array_equal(ours[name], array, err_msg=name)
    kinds = {row["best_kind"] for row in loop.regret()}
    assert ("bracket" in kinds) == (keep_rows < 2000)
    assert {row["best_kind"] for row in model.regret()} == {"exact"}  # a replay has all rows


def test_restart_forgets_what_was_learned_and_not_what_was_recorded():
    *_, model = adversarial(0, 40, 2, "any")
    before = model.contents()[1]
    model.restart()
    after = model.contents()[1]
    for name in logistic.RECORDED:
        np.testing.assert_array_equal(after[f"logistic.{name}"], before[f"logistic.{name}"])
    assert not after["logistic.theta"].any()
    row = {"x0": 0.3, "x1": -0.2, "half": 1.0}
    assert model.predict(row).prediction == 0.5
    model.learn_one(row, 1.0)


def test_it_needs_log_loss():
    with pytest.raises(ConfigurationError, match=r"losses\.Log"):
        gw.Groupwise([gw.by("sex")], loss=Square(), learner=Logistic())


def test_log_loss_has_it_by_default():
    model = gw.Groupwise([gw.by("sex")], loss=Log())
    assert model.learners == tuple(gw.learners.portfolio(Log()))
    assert Logistic() in model.learners
    assert model.aggregator == gw.aggregators.Specialists()
    numbers = gw.Groupwise([gw.by("sex")])
    assert numbers.learners == tuple(gw.learners.portfolio(gw.losses.Square()))
    assert numbers.aggregator == gw.aggregators.Prod()
    assert numbers.prior == {"always_on": 4.0}
    drawn = gw.Groupwise([gw.by("sex")], learner=Ridge(), play="sample")
    assert drawn.aggregator == gw.aggregators.AdaNormalHedge()
    assert drawn.prior == {}


def test_a_portfolio():
    """The first penalty and the bound may be chosen; the last one's bound is never the larger."""
    chosen = gw.learners.portfolio(Log(), penalty=2.0, bound=3.0)
    assert [one.penalty for one in chosen] == [2.0, 1.0, 30.0, 1.0]
    assert [one.bound for one in chosen] == [3.0, 3.0, 3.0, 3.0]


def test_columns_that_say_nothing_cost_little():
    """Few rows of many columns stay close to the base rate, where one light model does not."""
    draw = np.random.default_rng(3)
    rows, labels = draw.uniform(size=(600, 30)), (draw.uniform(size=600) < 0.3).astype(float)
    rows[:, 0] = 1.0
    share = (np.cumsum(labels) - labels + 0.5) / (np.arange(600) + 1.0)
    base = -np.log(np.where(labels > 0, share, 1.0 - share)).sum()
    whole = np.ones((600, 1))

    def more(learner):
        return gw.replay(rows, labels, whole, learner=learner, loss=Log()).loss.sum() - base

    assert more(None) < 12.0 < 24.0 < more(Logistic(0.1))


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"penalty": 0.0}, "penalty"),
        ({"penalty": float("nan")}, "penalty"),
        ({"penalty": 1e90}, "penalty"),
        ({"bound": 0.0}, "bound"),
        ({"bound": float("inf")}, "bound"),
        ({"bound": 1000.0}, "bound"),
        ({"bound": True}, "bound"),
        ({"keep_rows": -1}, "keep_rows"),
        ({"keep_rows": 2.5}, "keep_rows"),
    ],
)
def test_parameters_are_checked(parameters, words):
    with pytest.raises(ConfigurationError, match=words):
        Logistic(**parameters)
