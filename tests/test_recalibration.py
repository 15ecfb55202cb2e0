"""Recalibration: maps and offsets from their definitions, and the same numbers in every driver."""

import copy
import math
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import groupwise as gw
from groupwise.kernels.logistic import curvature
from groupwise.layers import LayeredReduction
from tests.states import assert_same_arrays, state_of

LOG = gw.losses.Log()
LAYERS = {"platt": gw.Platt(penalty=0.7, bound=6.0), "gap": gw.Gap(rate=0.1)}


class Slow(gw.aggregators.Specialists):
    """The same weights, but in Python."""

    kernel = ""


def rows(count, seed=0, soft=False):
    """Rows and labels: probabilities of a slope that a clipped ridge gets wrong."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count) * 2.0
    chance = 1.0 / (1.0 + np.exp(-1.5 * x + 0.5))
    y = chance if soft else (rng.random(count) < chance).astype(float)
    share = rng.random(count)
    return [
        ({"x": float(x[i]), "share": float(share[i]), "city": "uvw"[i % 3]}, float(y[i]))
        for i in range(count)
    ]


def fresh(layer, learner=None, **parts):
    groups = [gw.by("city"), gw.weight("share")]
    parts = {"loss": LOG, "features": ["x"], **parts}
    return gw.Groupwise(groups, learner or gw.learners.Ridge(), recalibrate=layer, **parts)


def logit(p):
    return math.log(p / (1.0 - p))


def sigmoid(z):
    return 1.0 / (1.0 + math.exp(-z))


def log_loss(p, y):
    return -(y * math.log(p) + (1 - y) * math.log1p(-p))


# The layer of maps.


class Maps:
    """Forward logistic regression on (logit p, 1) per group from (1, 0), mixed by weights e^R.

    As in the definition, all in dense arithmetic.
    """

    def __init__(self, penalty, bound):
        self.penalty, self.bound = penalty, bound
        self.theta, self.matrix, self.regret = {}, {}, {}

    def row(self, p):
        return np.array([min(max(logit(p), -self.bound), self.bound), 1.0])

    def said(self, p, groups):
        x, found = self.row(p), {}
        for group, weight in groups.items():
            theta = self.theta.setdefault(group, np.array([1.0, 0.0]))
            inverse = np.linalg.inv(self.matrix.setdefault(group, self.penalty * np.eye(2)))
            kappa, v = weight * x @ inverse @ x, theta @ x
            z = scipy.optimize.brentq(
                lambda z, kappa=kappa, v=v: z + kappa * math.tanh(z / 2) - v,
                -abs(v) - 1e-9, abs(v) + 1e-9, xtol=1e-14,
            )  # fmt: skip
            tau, c = math.tanh(z / 2), float(curvature(z, self.bound))
            advice = sigmoid(z + 0.5 * tau * kappa / (1 + c * kappa))
            found[group] = advice, z, tau, c, kappa, inverse @ x
        total = {g: w * math.exp(self.regret.get(g, 0.0)) for g, w in groups.items()}
        weights = {g: one / sum(total.values()) for g, one in total.items()}
        return sum(weights[g] * found[g][0] for g in groups), found

    def issue(self, p, groups):
        return self.said(p, groups)[0]

    def learn(self, p, groups, y):
        """With the present state, as for labels that are late."""
        q, found = self.said(p, groups)
        x = self.row(p)
        for group, weight in groups.items():
            advice, z, tau, c, kappa, step = found[group]
            pull = (tau - sigmoid(z) + y) / (1 + c * kappa) - tau
            self.theta[group] = self.theta[group] + weight * pull * step
            self.matrix[group] = self.matrix[group] + weight * c * np.outer(x, x)
            gained = weight * (log_loss(q, y) - log_loss(advice, y))
            self.regret[group] = self.regret.get(group, 0.0) + gained


class Offsets:
    """Σ w (y − q) per group, as in the definition."""

    def __init__(self, rate):
        self.rate, self.missed = rate, {}

    def issue(self, p, groups):
        shift = sum(w * self.rate * self.missed.get(g, 0.0) for g, w in groups.items())
        return sigmoid(logit(p) + shift)


@pytest.mark.parametrize("soft", [False, True])
def test_maps_are_those_of_the_definition(soft):
    model, maps = fresh(LAYERS["platt"]), Maps(0.7, 6.0)
    for row, y in rows(120, soft=soft):
        ticket = model.predict(row)
        p = ticket.play.before.prediction
        assert ticket.prediction == pytest.approx(maps.issue(p, ticket.groups), rel=1e-7)
        model.learn(ticket, y)
        maps.learn(p, ticket.groups, y)
    bank = model._reduction.layer.reduction.banks[0].banks[0]
    for number, group in enumerate(model.group_names):
        found = bank.store.of(number).theta[0, :2]
        np.testing.assert_allclose(found, maps.theta[group], rtol=1e-7)
    assert abs(maps.theta["always_on"][0] - 1.0) > 0.05


def test_late_labels_find_the_probability_that_was_issued():
    model, maps = fresh(LAYERS["platt"]), Maps(0.7, 6.0)
    waiting, moved = [], 0
    for t, (row, y) in enumerate(rows(90)):
        waiting.append((model.predict(row), y))
        if t % 3 == 2:
            for ticket, label in reversed(waiting):
                again = model.preview(ticket.row)
                p = ticket.play.before.prediction
                moved += again.play.before.prediction != p
                model.learn(type(ticket).from_json(ticket.to_json()), label)
                maps.learn(p, ticket.groups, label)
            waiting.clear()
            row = rows(90)[t][0]
            ticket = model.preview(row)
            wanted = maps.issue(ticket.play.before.prediction, ticket.groups)
            assert ticket.prediction == pytest.approx(wanted, rel=1e-7)
    assert moved > 30


def best_map(p, y, w, bound):
    """The least loss of a map with |a · logit p + b| ≤ bound, by a solver of its own."""
    x = np.clip(np.log(p / (1 - p)), -bound, bound)

    def loss(theta):
        z = theta[0] * x + theta[1]
        return float(w @ (np.logaddexp(0.0, z) - y * z))

    def slope(theta):
        z = theta[0] * x + theta[1]
        away = w * (1.0 / (1.0 + np.exp(-z)) - y)
        return np.array([away @ x, away.sum()])

    ends = np.array([[x.min(), 1.0], [x.max(), 1.0]])
    inside = scipy.optimize.LinearConstraint(ends, -bound, bound)
    start = np.array([0.9, 0.0])
    found = scipy.optimize.minimize(
        loss, start, jac=slope, constraints=inside, method="SLSQP", tol=1e-12
    )
    return float(found.fun)


def test_regret_to_the_best_map_is_below_its_certificate():
    """And it is what a solver says; the model's own table is about what was issued."""
    model = fresh(LAYERS["platt"])
    before, issued, labels, members = [], [], [], []
    for row, y in rows(250):
        ticket = model.predict(row)
        model.learn(ticket, y)
        before.append(ticket.play.before.prediction)
        issued.append(ticket.prediction)
        labels.append(y)
        members.append(ticket.groups)
        if len(labels) % 50 == 0:
            for line in model.recalibration():
                assert line["regret"] <= line["certificate"] + 1e-9
            for line in model.regret():
                assert line["regret"] <= line["certificate"] + 1e-9
    table, own = model.recalibration(), model.regret()
    assert "best map" in table.comparator
    p, q, y = map(np.array, (before, issued, labels))
    for group in model.group_names:
        w = np.array([one.get(group, 0.0) for one in members])
        lost = {
            name: w @ [log_loss(a, b) for a, b in zip(chance, y, strict=True)]
            for name, chance in {"before": p, "issued": q}.items()
        }
        line = table[group]
        assert line["loss"] == pytest.approx(lost["issued"])
        assert line["best_loss"] == pytest.approx(best_map(p, y, w, 6.0), rel=1e-6)
        assert line["status"] == "proved"
        row = own[group]
        assert row["loss"] == row["realised_loss"] == pytest.approx(lost["issued"])
        assert row["recalibration"] == pytest.approx(lost["issued"] - lost["before"], abs=1e-9)
        assert row["regret"] == pytest.approx(lost["issued"] - row["best_loss"])
        terms = ("learner", "aggregator", "delay", "recalibration")
        assert row["certificate"] == pytest.approx(sum(row[key] for key in terms))
    assert "recalibration" in str(own)


def test_the_parabolas_stay_below_the_loss_of_every_map():
    """M ≤ λ/2 ‖θ − (1, 0)‖² + Σ w ℓ(θ): what the guarantee is made of."""
    model = fresh(LAYERS["platt"])
    before, labels = [], []
    for row, y in rows(150):
        ticket = model.predict(row)
        model.learn(ticket, y)
        before.append(ticket.play.before.prediction)
        labels.append(y)
    number = model.group_names.index("always_on")
    own = model._reduction.layer.reduction.banks[0].banks[0].store.of(number)
    x, y = np.clip([logit(p) for p in before], -6.0, 6.0), np.array(labels)
    found = []
    for a in np.linspace(-1.0, 3.0, 41):
        for b in np.linspace(-2.0, 2.0, 41):
            z = a * x + b
            if np.abs(z).max() <= 6.0:
                loss = (np.logaddexp(0.0, z) - y * z).sum()
                found.append(loss + 0.35 * ((a - 1.0) ** 2 + b**2))
    assert own.minimum[0] <= min(found) < own.minimum[0] + 5.0


def test_a_model_that_is_wrong_is_put_right():
    stream = rows(1500, seed=3)
    plain, better = fresh(False), fresh(True)
    for row, y in stream:
        plain.learn_one(row, y)
        better.learn_one(row, y)
    for group in plain.group_names:
        assert better.regret()[group]["loss"] < plain.regret()[group]["loss"] - 3.0
        assert better.calibration()[group]["log_loss"] < plain.calibration()[group]["log_loss"]
        changed = better.regret()[group]["recalibration"]
        assert changed == pytest.approx(
            better.regret()[group]["loss"] - plain.regret()[group]["loss"]
        )


# The layer of offsets.


@pytest.mark.parametrize("late", [1, 4])
def test_the_gap_of_every_group_is_its_offset(late):
    model, offsets = fresh(gw.Gap(rate=0.1)), Offsets(0.1)
    waiting = []
    for t, (row, y) in enumerate(rows(200)):
        ticket = model.predict(row)
        wanted = offsets.issue(ticket.play.before.prediction, ticket.groups)
        assert ticket.prediction == pytest.approx(wanted, rel=1e-9)
        waiting.append((ticket, y))
        if t % late == late - 1:
            for one, label in reversed(waiting):
                model.learn(type(one).from_json(one.to_json()) if t % 3 else one, label)
                for group, w in one.groups.items():
                    before = offsets.missed.get(group, 0.0)
                    offsets.missed[group] = before + w * (label - one.prediction)
            waiting.clear()
            for line in model.recalibration():
                gap = -offsets.missed[line["group"]]
                assert line["gap"] == gap  # the same sum, to the last digit
                assert line["offset"] == -0.1 * gap
    table, calibration = model.recalibration(), model.calibration()
    for line in table:
        assert line["mean_gap"] == pytest.approx(line["gap"] / line["rounds"])
        assert calibration[line["group"]]["gap"] == pytest.approx(line["mean_gap"], abs=1e-12)
    assert abs(table["always_on"]["mean_gap"]) < 0.05
    assert "the offset is −0.1 times the gap" in str(table)
    assert str(table).split()[:5] == ["group", "rounds", "gap", "mean_gap", "offset"]
    assert [line["group"] for line in model.recalibration(largest=1)] == ["always_on"]


def test_gaps_go_to_zero_where_the_model_is_off():
    """A model that is never told of a shift of the labels' frequency by its features."""

    class Fixed:
        def advise(self, row, weight):
            return 0.1

        def update(self, row, label, weight):
            pass

    model = gw.Groupwise([gw.by("city")], Fixed(), loss=LOG, recalibrate=gw.Gap(0.05))
    rng = np.random.default_rng(0)
    for t in range(3000):
        city = "uv"[t % 2]
        chance = {"u": 0.6, "v": 0.3}[city]
        model.learn_one({"city": city}, float(rng.random() < chance))
    for line in model.recalibration():
        assert abs(line["mean_gap"]) < 0.03
        assert abs(line["offset"]) < 3.0
    assert model.regret()["city=u"]["recalibration"] < -500.0


def test_offsets_stay_within_the_floor():
    model = fresh(gw.Gap(rate=10.0), loss=gw.losses.Log(floor=0.1))
    for row, _ in rows(50):
        ticket = model.predict(row)
        assert 0.1 <= ticket.prediction <= 0.9
        model.learn(ticket, 1.0)
    assert ticket.prediction == 0.9


# Every driver.


@pytest.mark.parametrize("aggregator", [None, Slow()])
@pytest.mark.parametrize("learner", [None, gw.learners.Logistic()])
@pytest.mark.parametrize("layer", LAYERS)
def test_replay_is_the_loop(layer, learner, aggregator):
    pandas = pytest.importorskip("pandas")
    stream = rows(200)
    looped, replayed = (fresh(LAYERS[layer], learner, aggregator=aggregator) for _ in range(2))
    tickets = []
    for row, y in stream:
        tickets.append(looped.predict(row))
        looped.learn(tickets[-1], y)
    frame = pandas.DataFrame([{**row, "y": y} for row, y in stream])
    result = replayed.replay([frame[:77], frame[77:]], "y", jobs=2)
    assert np.array_equal(result.prediction, [ticket.prediction for ticket in tickets])
    losses = [looped.loss_of_ticket(t, y) for t, (_, y) in zip(tickets, stream, strict=True)]
    assert np.array_equal(result.loss, losses)
    assert_same_arrays(kept(looped), kept(replayed))
    assert looped.regret().rows == replayed.regret().rows
    assert looped.recalibration().rows == replayed.recalibration().rows
    assert looped.calibration() == replayed.calibration()


def kept(model):
    """The state but for the rows that are kept for hindsight."""
    return {name: array for name, array in state_of(model).items() if "rows." not in name}


@pytest.mark.parametrize("layer", LAYERS)
def test_probabilities_that_were_drawn_are_recalibrated_too(layer):
    pandas = pytest.importorskip("pandas")
    learners = [gw.learners.Logistic(), gw.learners.Ridge(9.0)]
    parts = {"loss": gw.losses.Log(floor=0.01), "play": "sample"}
    looped, replayed = (fresh(LAYERS[layer], learners, **parts) for _ in range(2))
    stream = rows(80)
    issued, advised = [], []
    for row, y in stream:
        ticket = looped.predict(row)
        looped.learn(ticket, y)
        issued.append(ticket.prediction)
        advised.append(ticket.play.before.prediction in ticket.advice)
    assert all(advised)
    frame = pandas.DataFrame([{**row, "y": y} for row, y in stream])
    assert np.array_equal(replayed.replay(frame, "y").prediction, issued)
    assert looped.regret().rows == replayed.regret().rows
    for line in (*looped.regret(), *([] if layer == "gap" else looped.recalibration())):
        assert line["regret"] <= line["certificate"] + 1e-9


@pytest.mark.parametrize("layer", LAYERS)
def test_arrays_are_replayed_like_the_loop(layer):
    stream = rows(150)
    x = np.array([[row["x"], 1.0] for row, _ in stream])
    y = np.array([label for _, label in stream])
    members = np.array([[row["share"], 1.0] for row, _ in stream])
    names = ["share", "always_on"]
    parts: Any = {"learner": gw.learners.Ridge(), "loss": LOG, "recalibrate": LAYERS[layer]}
    found = [gw.replay(x, y, members, names=names, jobs=jobs, **parts) for jobs in (1, 3)]
    features: Any = {"features": ["x", "one"], "intercept": False, "indicators": False}
    model = gw.Groupwise([gw.weight("share")], **features, **parts)
    for t, (row, label) in enumerate(stream):
        ticket = model.predict({"x": row["x"], "one": 1.0, "share": row["share"]})
        model.learn(ticket, label)
        assert ticket.prediction == found[0].prediction[t] == found[1].prediction[t]
    for result in found:
        assert result.recalibration()["share"] == model.recalibration()["share"]
        assert result.calibration()["share"] == model.calibration()["share"]
        wanted = model.regret()["share"] | {"baseline_regret": 0, "certificate": 0, "aggregator": 0}
        row = result.regret()["share"] | {"baseline_regret": 0, "certificate": 0, "aggregator": 0}
        assert row == wanted
    assert found[0].curves(3)["share"].regret[-1] == found[0].regret()["share"]["regret"]


@pytest.mark.parametrize("layer", LAYERS)
def test_files_copies_and_what_fails(layer, tmp_path):
    stream = rows(90)
    whole, half = fresh(LAYERS[layer]), fresh(LAYERS[layer])
    for row, y in stream:
        whole.learn_one(row, y)
    for row, y in stream[:40]:
        half.learn_one(row, y)
    late = half.predict(stream[40][0])
    half.save(tmp_path / "half.gw")
    loaded, copied = gw.load(tmp_path / "half.gw"), copy.deepcopy(half)
    assert loaded.recalibrate == half.recalibrate == LAYERS[layer]
    for model in (half, loaded, copied):
        model.learn(type(late).from_json(late.to_json()), stream[40][1])
        with pytest.raises(gw.errors.LabelError):
            model.learn_one(stream[41][0], 2.0)
        for row, y in stream[41:]:
            model.learn_one(row, y)
        assert_same_arrays(kept(whole), kept(model))
        assert model.recalibration().rows == whole.recalibration().rows


@pytest.mark.parametrize("layer", LAYERS)
def test_damaged_layers_are_refused(layer, tmp_path):
    from groupwise import archive

    model = fresh(LAYERS[layer])
    model.learn_one(*rows(1)[0])
    header, arrays = model.contents()
    sums = arrays["recalibration.calibration.sums"]
    for wrong in (sums - 1.0, sums * np.nan, sums[:-1], None):
        changed = {**arrays, "recalibration.calibration.sums": wrong}
        kept = {name: array for name, array in changed.items() if array is not None}
        archive.write(tmp_path / "wrong.gw", header, kept)
        with pytest.raises(gw.errors.SnapshotError, match="damaged"):
            gw.load(tmp_path / "wrong.gw")


def test_restarting_forgets_the_maps_and_keeps_the_books():
    model = fresh(LAYERS["platt"])
    for row, y in rows(60):
        model.learn_one(row, y)
    rounds = [row["rounds"] for row in model.recalibration()]
    model.restart()
    layer = model._reduction.layer.reduction
    for number in range(len(model.group_names)):
        assert layer.banks[0].banks[0].store.of(number).theta[0, :2].tolist() == [1.0, 0.0]
    assert [row["rounds"] for row in model.recalibration()] == rounds
    offsets = fresh(LAYERS["gap"])
    for row, y in rows(20):
        offsets.learn_one(row, y)
    offsets.restart()
    assert all(row["offset"] == 0.0 for row in offsets.recalibration())
    assert offsets.calibration()["always_on"]["rounds"] == 20.0


@pytest.mark.parametrize("layer", LAYERS)
def test_partial_feedback_and_two_named_classes(layer):
    paying = gw.PayForFeedback(fresh(LAYERS[layer]), horizon=60)
    for row, y in rows(60):
        paying.learn_one(row, y)
    for line in paying.regret():
        terms = ("learner", "aggregator", "delay", "recalibration", "payments")
        assert line["certificate"] == pytest.approx(sum(line[key] for key in terms))
    named = fresh(LAYERS[layer], loss=gw.losses.Log(classes=["no", "yes"]))
    plain = fresh(LAYERS[layer])
    for row, y in rows(40):
        ticket, other = named.predict(row), plain.predict(row)
        assert ticket.prediction["yes"] == other.prediction
        assert ticket.prediction["no"] == pytest.approx(1.0 - other.prediction, rel=1e-9)
        named.learn(ticket, "yes" if y == 1.0 else "no")
        plain.learn(other, y)
    assert named.recalibration().rows == plain.recalibration().rows


# What is asked for.


def test_true_is_a_map_with_the_bound_of_the_model():
    assert fresh(True).recalibrate == gw.Platt()
    wide = fresh(True, gw.learners.Logistic(bound=10.0))
    assert wide.recalibrate == gw.Platt(bound=10.0)
    for nothing in (False, None):
        model = fresh(nothing)
        assert model.recalibrate is None
        assert not isinstance(model._reduction, LayeredReduction)
        with pytest.raises(gw.errors.ConfigurationError, match="does not recalibrate"):
            model.recalibration()


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"recalibrate": True, "loss": gw.losses.Square()}, "about probabilities"),
        ({"recalibrate": "platt"}, "give True, gw.Platt"),
        ({"recalibrate": gw.learners.Logistic()}, "give True, gw.Platt"),
        ({"recalibrate": True, "loss": gw.losses.Log(classes=["a", "b", "c"])}, "two classes"),
    ],
)
def test_what_cannot_be_recalibrated(parts, said):
    with pytest.raises(gw.errors.ConfigurationError, match=said):
        gw.Groupwise([gw.by("city")], **{"loss": LOG, **parts})


@pytest.mark.parametrize("rate", [0.0, -1.0, math.nan, math.inf, 11.0, "1", True])
def test_rates(rate):
    with pytest.raises(gw.errors.ConfigurationError, match="rate must be a number above 0"):
        gw.Gap(rate=rate)


def test_a_probability_of_exactly_one_half_is_a_row_like_any_other():
    """Its logit is 0, and yet it comes first in its group."""

    class Half:
        def advise(self, row, weight):
            return row.mapping().get("x", 0.5)

        def update(self, row, label, weight):
            pass

    model = gw.Groupwise([gw.by("city")], Half(), loss=LOG, features=["x"], recalibrate=True)
    maps = Maps(1.0, 8.0)
    for x, y in ((0.5, 1.0), (0.5, 0.0), (0.8, 1.0), (0.2, 1.0)):
        ticket = model.predict({"x": x, "city": "u"})
        assert ticket.prediction == pytest.approx(maps.issue(x, ticket.groups), rel=1e-7)
        model.learn(ticket, y)
        maps.learn(x, ticket.groups, y)
