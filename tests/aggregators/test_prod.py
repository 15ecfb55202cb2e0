"""Prod: its play, every step of its proof in exact arithmetic, its certificate on any stream."""

import math
from fractions import Fraction
from itertools import count
from typing import Any

import mpmath
import numpy as np
import pytest

import groupwise as gw
from groupwise import archive
from groupwise.aggregators import Prod
from groupwise.checks.aggregators import Expert
from groupwise.kernels.reference import RATES, SHARES
from groupwise.protocols import Awake, Row
from groupwise.reduction import Reduction
from groupwise.regret.certificate import aggregator_bounds, totals
from tests.few import few

mpmath.mp.dps = 40
SQUARE = gw.losses.Square()
SUM = sum(SHARES)


class Arena:
    """A reduction on experts that say what they are told, and the exact sums that prove it."""

    def __init__(self, masses, learners=1):
        self.learners = learners
        self.names = [f"x{i}" for i in range(64)]
        self.reduction: Any = Reduction([Expert(k) for k in range(learners)], Prod(), SQUARE)
        self.regret = {}
        self.distance = {}
        self.number = count()
        self.groups = 0
        for mass in masses:
            self.add(mass)

    def add(self, mass):
        """A newcomer, with its mass for each of its experts."""
        new = np.array([self.groups])
        self.groups += 1
        self.reduction.reserve(new, self.learners, new, [mass * self.learners])
        self.regret[self.groups - 1] = [Fraction(0)] * self.learners
        self.distance[self.groups - 1] = [Fraction(0)] * self.learners

    def predict(self, weights, advice):
        """Open a round: all awake groups have the same advice, an expert's for each learner."""
        groups = np.flatnonzero(weights)
        awake = Awake(groups, np.ascontiguousarray(weights[groups], dtype=float))
        row = Row(np.arange(self.learners), np.asarray(advice, float), self.names[: self.learners])
        number = next(self.number)
        return number, awake, row, self.reduction.predict(number, awake, row)

    def learn(self, opened, label, late=False):
        """Settle it, and do the sums exactly; the play as of now."""
        number, awake, row, play = opened
        now = self.reduction.learn(number, awake, row, label, play if late else None)
        p, y = Fraction(now), Fraction(label)
        for group, weight in zip(awake.groups.tolist(), awake.weights.tolist(), strict=True):
            for k, a in enumerate(row.values.tolist()):
                d = p - Fraction(a)
                lost = (p - y) ** 2 - (Fraction(a) - y) ** 2
                self.regret[group][k] += Fraction(weight) * lost
                self.distance[group][k] += Fraction(weight) * d * d
        return now

    @property
    def bounds(self):
        return aggregator_bounds(self.reduction, self.groups)

    def check(self):
        """No expert's regret, computed exactly, exceeds its bound; the largest share of it."""
        bounds, largest = self.bounds, 0.0
        for group, regrets in self.regret.items():
            for regret, bound in zip(regrets, bounds[group].tolist(), strict=True):
                assert math.isfinite(bound)
                assert regret <= Fraction(bound), (group, float(regret), bound)
                if bound > 0.0:
                    largest = max(largest, float(regret) / bound)
        return largest

    def log_weight(self, group, k):
        """ln W_ik of all rates, of the weights as they are."""
        own = self.reduction.own.of(group)
        power = int(own.exponent[k]) * mpmath.log(2)
        return [mpmath.log(mpmath.mpf(w)) + power for w in own.weight[k].tolist()]

    def potential(self):
        """Σ m_i γ_k W_ik and Σ m_i, exactly."""
        total = masses = Fraction(0)
        for group in range(self.groups):
            own, mass = self.reduction.own.of(group), self.reduction.state.of(group).mass
            for k in range(self.learners):
                m, unit = Fraction(float(mass[k])), Fraction(2) ** int(own.exponent[k])
                masses += m
                for share, w in zip(SHARES, own.weight[k].tolist(), strict=True):
                    total += m * Fraction(share) / Fraction(SUM) * Fraction(w) * unit
        return total, masses


def drawn(seed, learners):
    """Advice of one kind or another, round by round."""
    generator = np.random.default_rng([seed, 1])
    scale, centre = 10.0 ** -generator.integers(0, 5), generator.random()
    while True:
        numbers = generator.random(learners)
        yield [
            numbers,
            np.round(numbers),
            np.clip(centre + scale * generator.normal(size=learners), 0.0, 1.0),
            np.where(numbers < 0.5, 0.0, scale * generator.random(learners)),
            np.eye(1, learners)[0],
            generator.beta(0.2, 0.2, learners),
        ][seed % 6]


def rounds(seed, length):
    """An adaptive stream: newcomers, masses, memberships, late labels; the arena at every label.

    The label comes after the play, and is the one of a few that favours a target most.
    """
    generator = np.random.default_rng(seed)
    learners = int(generator.integers(2, 5))
    masses = 10.0 ** generator.uniform(-6, 6, size=4) if seed % 3 else np.ones(3)
    arena, waiting = Arena(masses.tolist(), learners), []
    for t, advice in zip(range(length), drawn(seed, learners), strict=False):
        if generator.random() < 0.05:
            arena.add(10.0 ** generator.uniform(-6, 6))
        weights = (generator.random(arena.groups) < 0.7).astype(float)
        if seed % 2:
            weights *= 1.0 - generator.random(arena.groups)
        weights[0] = max(weights[0], 1e-3)
        opened = arena.predict(weights, advice)
        p, near = opened[3].prediction, 10.0 ** -generator.integers(0, 6)
        assert advice.min() <= p <= advice.max()
        target = advice[t // 10 % learners if seed % 5 == 0 else 0]
        labels = [target, min(p + near, 1.0), max(p - near, 0.0), 0.0, 1.0]
        labels = labels[: 3 if seed % 6 == 2 else 5]
        gain = [(p - y) ** 2 - (target - y) ** 2 for y in labels]
        label = float(labels[int(np.argmax(gain))])
        waiting.append((opened, label))
        while waiting and (seed % 4 != 3 or len(waiting) > 8 or generator.random() < 0.3):
            arena.learn(*waiting.pop(int(generator.integers(len(waiting)))), late=seed % 4 == 3)
            yield arena


@pytest.mark.parametrize("seed", few(range(24), 6))
def test_no_stream_breaks_the_bound(seed):
    for arena in rounds(seed, 30):
        arena.check()


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_no_stream_of_many_breaks_the_bound(block):
    for seed in range(24 + 40 * block, 64 + 40 * block):
        for arena in rounds(seed, 60):
            arena.check()


@pytest.mark.parametrize("seed", few(range(12), 3))
def test_every_step_of_the_proof(seed):
    """Masses, factors, charges and squares, of the rounded numbers and without rounding."""
    before: dict[Any, Any] = {}
    for arena in rounds(seed, 25):
        total, masses = arena.potential()
        excess = Fraction(max(0.0, float(arena.reduction.common[1]))) / Fraction(SUM)
        assert total <= masses + excess
        assert total == pytest.approx(float(masses), rel=1e-9)
        assert excess < masses * Fraction(1, 10**10)
        for group in range(arena.groups):
            own = arena.reduction.own.of(group)
            for k in range(arena.learners):
                regret, distance = arena.regret[group][k], arena.distance[group][k]
                assert Fraction(float(own.distance[k])) <= distance
                assert float(own.distance[k]) == pytest.approx(float(distance), rel=1e-12)
                logs = arena.log_weight(group, k)
                squares = Fraction(float(own.distance[k]))
                for rate, log, charge in zip(RATES, logs, own.charge[k].tolist(), strict=True):
                    sum_of = regret + squares - Fraction(charge)
                    exponent = mpmath.mpf(sum_of.numerator) / sum_of.denominator
                    assert log >= rate * exponent
                for one, other in zip(logs, before.get((group, k), [0.0] * 8), strict=True):
                    assert one >= other + mpmath.log(0.5) - mpmath.mpf(10) ** -14
                before[group, k] = logs


def root_of(arena, awake, advice):
    """The play, by halving, from its definition and the weights as they are."""
    reduction = arena.reduction
    most = mpmath.mpf(float(reduction.common[0]))

    def force(p):
        total = mpmath.mpf(0)
        for group, inside in zip(awake.groups.tolist(), awake.weights.tolist(), strict=True):
            mass = reduction.state.of(group).mass
            for k, a in enumerate(advice.tolist()):
                side = min(most, p if a > p else 1 - p)
                for rate, share, log in zip(RATES, SHARES, arena.log_weight(group, k), strict=True):
                    h = p - mpmath.mpf(a)
                    if side > 0:
                        cap = mpmath.mpf(0.5) / (2 * rate * inside * side)
                        h = max(-cap, min(cap, h))
                    total += float(mass[k]) * inside * share * rate * mpmath.exp(log) * h
        return total

    low, high = mpmath.mpf(advice.min()), mpmath.mpf(advice.max())
    for _ in range(55):
        middle = (low + high) / 2
        low, high = (low, middle) if force(middle) > 0 else (middle, high)
    return float(low)


@pytest.mark.parametrize("seed", few(range(6), 1))
def test_the_play_is_the_root(seed):
    generator = np.random.default_rng(seed)
    for turn, arena in enumerate(rounds(seed, 13)):
        if turn % 4 == 3:
            weights = generator.random(arena.groups)
            advice = generator.random(arena.learners)
            _, awake, _, play = arena.predict(weights, advice)
            assert play.prediction == pytest.approx(root_of(arena, awake, advice), abs=1e-11)
            mean = float((play.probabilities * play.advice).sum())
            assert mean == pytest.approx(play.prediction, abs=1e-9)
            assert play.probabilities.min() >= 0.0


@pytest.mark.parametrize("seed", range(6))
def test_the_bound_is_the_root_and_not_below_it(seed):
    for turn, arena in enumerate(rounds(seed, 25)):
        if turn % 8 != 7:
            continue
        bounds = arena.bounds
        mass = [arena.reduction.state.of(group).mass.tolist() for group in range(arena.groups)]
        total = sum(Fraction(m) for own in mass for m in own)
        for group in range(arena.groups):
            own = arena.reduction.own.of(group)
            for k in range(arena.learners):
                q = Fraction(mass[group][k]) / total

                def potential(r, own=own, k=k):
                    return sum(
                        share / SUM * mpmath.exp(rate * (r - charge + float(own.distance[k])))
                        for rate, share, charge in zip(
                            RATES, SHARES, map(mpmath.mpf, own.charge[k].tolist()), strict=True
                        )
                    )

                asked = mpmath.mpf(q.denominator) / q.numerator
                found = mpmath.mpf(float(bounds[group, k]))
                assert potential(found) >= asked
                assert potential(found - mpmath.mpf("1e-10")) < asked


@pytest.mark.parametrize("seed", range(12))
def test_the_bound_is_within_the_one_known_beforehand(seed):
    apart = 0.0
    for arena in rounds(seed, 40):
        mass = np.array([arena.reduction.state.of(g).mass for g in range(arena.groups)])
        error = float(arena.reduction.common[0])
        known = Prod().a_priori(mass / mass.sum(), error)
        assert (arena.bounds <= known * (1.0 + 1e-9) + 1e-9).all()
        apart = max(apart, error)
    assert apart > 0.0


def test_rates_known_beforehand():
    """η_k ≤ 1/(4B²), or ½: by hand."""
    q, total = 0.25, 255 / 128
    for error, k in [(1.0, 0), (0.71, 0), (0.7, 0), (0.35, 1), (0.36, 0), (0.01, 6), (0.0, 7)]:
        known = (math.log(1 / q) + k * math.log(2) + math.log(total)) / (0.5 * 4**k)
        assert Prod().a_priori(q, error, 0.5) == pytest.approx(known + error, rel=1e-12)


@pytest.mark.parametrize(("tiny", "apart"), [(1e-2, 1.0), (1e-6, 0.1), (1e-9, 0.1)])
def test_the_bound_is_tight(tiny, apart):
    """The expert with little mass is right, the other wrong: it is owed nearly its bound."""
    arena, largest = Arena([1.0], 2), 0.0
    arena.reduction.state.fill("mass", np.array([0]), np.array([[tiny, 1.0]]))
    for _ in range(200):
        opened = arena.predict(np.ones(1), [0.5 + apart / 2, 0.5 - apart / 2])
        arena.learn(opened, 0.5 + apart / 2)
        largest = max(largest, arena.check())
    assert largest > 0.99


@pytest.mark.parametrize("scale", [1.0, 0.03])
def test_small_errors_cost_little(scale):
    """Ten groups, one of them right: the price falls with the squares of the errors."""
    arena, generator = Arena(np.ones(2), 5), np.random.default_rng(0)
    for _ in range(400):
        advice = 0.5 + scale * np.array([0.0, 0.4, -0.4, 0.2, -0.3])
        opened = arena.predict(np.ones(2), advice)
        arena.learn(opened, 0.5 + scale * float(generator.choice([-0.1, 0.1])))
    arena.check()
    assert arena.bounds[0, 0] <= 4.0 * scale**2


def test_memberships_and_masses_of_any_size():
    """Products of them that are 0 in doubles leave the plays numbers, and the bounds true."""
    arena = Arena([1e-98, 1e98, 1.0], 2)
    generator = np.random.default_rng(0)
    for t in range(120):
        weights = 10.0 ** generator.uniform(-320, 0, size=3) * (generator.random(3) < 0.8)
        if not weights.any():
            continue
        if t % 10 == 0:
            weights[:] = 1.0
        advice = generator.random(2)
        opened = arena.predict(weights, advice)
        assert advice.min() <= opened[3].prediction <= advice.max()
        assert opened[3].probabilities.sum() == pytest.approx(1.0)
        arena.learn(opened, float(generator.integers(2)))
        arena.check()


def test_an_expert_that_was_always_wrong_is_not_lost():
    """Its weight leaves the doubles and comes back; nothing is ever 0 or infinite."""
    arena = Arena([1.0], 2)
    own = arena.reduction.own.of(0)
    for t in range(7_000):
        opened = arena.predict(np.ones(1), [0.5, 1.0])
        arena.reduction.learn(*opened[:3], 0.0 if t < 3_000 else 1.0)
        if t == 2_999:
            assert own.exponent[1] < -1_000
            assert opened[3].prediction == 0.5
            assert np.isfinite(arena.bounds).all()
        assert np.isfinite(own.weight).all()
        assert (own.weight > 0.0).all()
    assert opened[3].prediction > 0.9
    assert own.exponent[1] > -200


def stream(rows, seed=0, width=4):
    """Features, labels and fractional membership."""
    generator = np.random.default_rng(seed)
    x = np.column_stack([generator.random((rows, width - 1)), np.ones(rows)])
    membership = generator.random((rows, 6)) * (generator.random((rows, 6)) < 0.6)
    membership[:, 0] = 1.0
    y = np.clip(x @ generator.random(width) / 2 + 0.05 * generator.normal(size=rows), 0.0, 1.0)
    return x, y, membership


@pytest.mark.slow
def test_long_streams_stay_finite():
    x, y, membership = stream(100_000)
    y[:50_000:3] = 1.0 - y[:50_000:3]
    result = gw.replay(x, y, membership, aggregator=Prod())
    assert np.isfinite(result.prediction).all()
    for row in result.regret():
        assert row["regret"] <= row["certificate"]
        assert row["status"] == "proved"
    curve = result.curves(5)["3"]
    assert (curve.regret <= curve.certificate).all()


@pytest.mark.parametrize("learners", [1, 3])
def test_loop_replay_jobs_and_files_agree_bit_for_bit(learners, tmp_path):
    x, y, membership = stream(400)
    ridges = [gw.learners.Ridge(10.0**k) for k in range(learners)]
    parts: dict[str, Any] = {"learner": ridges, "aggregator": Prod()}
    found = [gw.replay(x, y, membership, jobs=jobs, **parts) for jobs in (1, 2)]
    names = [f"g{g}" for g in range(6)]
    model = gw.Groupwise(
        [gw.weight(name) for name in names], features=[f"x{i}" for i in range(4)],
        indicators=False, always_on=False, intercept=False, **parts,
    )  # fmt: skip
    for t in range(400):
        if t in (1, 150, 300):
            model.save(tmp_path / "model.gw")
            model = gw.load(tmp_path / "model.gw")
        row = dict(zip(names, membership[t], strict=True)) | {f"x{i}": x[t, i] for i in range(4)}
        ticket = gw.Ticket.from_json(model.predict(row).to_json())
        assert [ticket.prediction] * 2 == [one.prediction[t] for one in found]
        model.learn(ticket, y[t])
    tables = [model.regret(), *(one.regret() for one in found)]
    for lines in zip(*tables, strict=True):
        for key in ("loss", "regret", "certificate", "aggregator", "learner"):
            assert len({line[key] for line in lines}) == 1


def test_a_file_whose_weights_are_none_is_refused(tmp_path):
    model = gw.Groupwise([gw.by("k")], aggregator=Prod())
    model.learn_one({"k": "a", "u": 0.5}, 0.3)
    header, arrays = model.contents()
    wrongs = [("weight", 0.0), ("weight", np.nan), ("free", 0.0), ("charge", -1.0)]
    for name, wrong in [*wrongs, ("distance", -1.0), ("exponent", 1 << 62)]:
        bad = {**arrays, f"own.{name}": np.full_like(arrays[f"own.{name}"], wrong)}
        archive.write(tmp_path / "bad.gw", header, bad)
        with pytest.raises(gw.errors.SnapshotError, match="damaged"):
            gw.load(tmp_path / "bad.gw")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_late_labels_cost_what_the_delay_says(seed):
    """Labels far behind, in any order, against the play: certificates hold in the books too."""
    generator = np.random.default_rng(seed)
    model = gw.Groupwise(
        [gw.weight("a"), gw.by("kind")],
        learner=[gw.learners.Ridge(1.0), gw.learners.Ridge(1.0, forgetting=0.9)],
        aggregator=Prod(),
        loss=gw.losses.Square(-2.0, 3.0),
    )
    waiting, delays = [], 0.0
    for t in range(150):
        kind = "xyz"[generator.integers(2 if t < 40 else 3)]
        row = {"a": float(generator.random()), "kind": kind, "u": float(generator.random())}
        ticket = model.predict(row)
        waiting.append((ticket, 3.0 if ticket.prediction < row["u"] else -2.0 * (seed % 2)))
        while len(waiting) > 44 or (waiting and t > 110):
            model.learn(*waiting.pop(int(generator.integers(len(waiting)))))
            for line in model.regret() if len(waiting) % 5 == 0 else ():
                assert line["regret"] <= line["certificate"] + 1e-9
                delays += abs(line["delay"])
    assert delays > 0.0


def test_partial_feedback():
    """Explored rounds are learned from, and stand for their blocks in the books alone."""
    model = gw.Groupwise([gw.by("k")], aggregator=Prod())
    paying = gw.PayForFeedback(model, horizon=500)
    generator = np.random.default_rng(0)
    for _ in range(500):
        row = {"k": "ab"[generator.integers(2)], "u": float(generator.random())}
        ticket = paying.predict(row)
        if ticket.wants_label:
            paying.learn(ticket, row["u"])
    table = paying.regret()
    assert {line["status"] for line in table} <= {"estimated", "vacuous"}
    for line, own in zip(table, model.regret(), strict=True):
        assert line["aggregator"] == pytest.approx(own["aggregator"] * 8)


def test_starting_afresh_is_starting():
    """A horizon that doubles makes the model forget, Prod's records included."""
    arena = next(arena for turn, arena in enumerate(rounds(0, 30)) if turn == 20)
    arena.reduction.restart()
    own = arena.reduction.own
    assert not arena.reduction.common.any()
    for name in ("weight", "free"):
        assert (own.column(name, arena.groups) == 1.0).all()
    for name in ("charge", "distance", "exponent"):
        assert not own.column(name, arena.groups).any()


@pytest.mark.parametrize(
    ("loss", "other"),
    [
        (gw.losses.Log(), "Specialists"),
        (gw.losses.Absolute(), "AdaNormalHedge"),
        (gw.losses.ZeroOne(), "AdaNormalHedge"),
        (gw.losses.Log(classes=["a", "b", "c"]), "Specialists"),
    ],
    ids=str,
)
def test_other_losses_are_refused(loss, other):
    with pytest.raises(gw.errors.ConfigurationError, match=f"{other}\\(\\)"):
        gw.Groupwise([gw.by("k")], aggregator=Prod(), loss=loss)


@pytest.mark.parametrize(
    ("parts", "says"),
    [({"clip": False}, "clip=True"), ({"play": "mean"}, "root"), ({"play": "sample"}, "root")],
)
def test_the_play_is_its_own_and_needs_advice_in_the_range(parts, says):
    with pytest.raises(gw.errors.ConfigurationError, match=says):
        gw.Groupwise([gw.by("k")], aggregator=Prod(), **parts)


def test_books_and_sums_agree():
    """What the regret table is made of: the losses of plays and experts, against exact sums."""
    for turn, arena in enumerate(rounds(3, 40)):
        if turn % 10 == 9:
            for group in range(arena.groups):
                books = totals(arena.reduction.books.of(group))
                regret = books.loss[0] - books.delay[0] - books.expert_loss
                exact = [float(one) for one in arena.regret[group]]
                assert regret == pytest.approx(exact, abs=1e-12)


def test_kinks_do_not_keep_the_play_from_the_root():
    # Newton's method once went from one end of what was left to the other and back, to the last.
    weights = [
        [1.02070246, 1.08019724, 1.26844415, 1.21050952, 1.11039847, 0.42254838, 0.214, 0.115],
        [0.9857747, 0.92202838, 1.21063325, 1.37868368, 0.95490571, 0.98672745, 0.979, 1.062],
        [0.93756777, 0.75203217, 0.73181309, 1.55873986, 2.84609747, 2.58086869, 4.367, 6.681],
    ]
    advice, members = np.array([0.50236583, 0.45985555, 0.48702087]), [1.0, 1.0, 0.2176706]
    arena = Arena([1.0, 1.0, 1.0])
    reduction = arena.reduction
    reduction.common[0] = 0.46703057
    for group, own in enumerate(weights):
        record = reduction.own.of(group)
        record.weight[0] = own
        record.free[0] = np.sum(np.array(SHARES) * RATES * own) / np.sum(np.array(SHARES) * RATES)

    def force(p):
        total = 0.0
        for a, inside, own in zip(advice, members, weights, strict=True):
            side = min(0.46703057, p if a > p else 1 - p)
            for rate, share, weight in zip(RATES, SHARES, own, strict=True):
                cap = 0.25 / (rate * inside * side)
                total += inside * share * rate * weight * max(-cap, min(cap, p - a))
        return total

    said = np.zeros((2, 3, 1))
    said[0, :, 0] = advice
    play = reduction._played(0, Awake(np.arange(3), np.array(members)), said)
    assert abs(force(play.prediction)) < 1e-9
