"""Three classes and more: chains of dichotomies, against the definition written out plainly."""

import copy
import math
import pickle
from contextlib import suppress
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import polars
import pytest
from scipy.optimize import minimize

import groupwise as gw
from groupwise import stream
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import classes as kernels
from groupwise.learners import Logistic, Ridge

COLOURS = ("red", "green", "blue", "grey")
LEAST = 1e-15


class Frequency:
    """Advises how often the label was 1."""

    def __init__(self, prior=1.0):
        self.total, self.ones = 2.0 * prior, prior

    def advise(self, row, weight):
        return self.ones / self.total

    def update(self, row, label, weight):
        assert label in (0.0, 1.0)
        self.total += weight
        self.ones += weight * label


class Certain:
    """Advises 0 or 1, as the row says."""

    def advise(self, row, weight):
        return float(row.mapping().get("u", 0.0) > 0.0)

    def update(self, row, label, weight):
        pass


LEARNERS: dict[str, Any] = {
    "logistic": Logistic(),
    "two logistic": [Logistic(2.0, 3.0), Logistic(0.5, 9.0)],
    "python": Frequency(),
    "both": [Frequency(), Logistic(), Frequency(5.0), Logistic(bound=2.0)],
}


def rows_of(count, classes=4, seed=0, fractional=True):
    """Rows of two fractional groups and one of two values; the class depends on the features."""
    generator = np.random.default_rng(seed)
    for t in range(count):
        u, v = generator.normal(size=2).round(3).tolist()
        near = round((u + 2.5 + 0.7 * float(generator.normal())) * classes / 5.0)
        row = {"kind": "xyz"[int(generator.integers(3))], "u": u, "v": v * (t % 3 == 0)}
        if fractional:
            row["w"] = float(generator.choice([0.0, 0.5, 1.0, 0.25]))
        yield row, min(max(near, 0), classes - 1)


def model_of(learner, classes=COLOURS, **settings):
    return gw.Groupwise(
        [gw.by("kind"), gw.weight("w")],
        **{"learner": learner, "loss": gw.losses.Log(classes=classes), **settings},
    )


def state_of(model):
    header, arrays = model.contents()
    return (
        {k: v for k, v in header.items() if k != "key"},
        {k: v for k, v in arrays.items() if not k.startswith("rows.")},  # with zeros or without
    )


def assert_same(one, other):
    (header, arrays), (header2, arrays2) = state_of(one), state_of(other)
    assert header == header2
    assert arrays.keys() == arrays2.keys()
    for name in arrays:
        assert np.array_equal(arrays[name], arrays2[name], equal_nan=True), name


# The definition, written out.


class Plain:
    """Chains of binary models, a model for each group, learner and node; and Specialists."""

    def __init__(self, learners, classes):
        self.learners, self.classes = learners, classes
        self.models: dict[Any, Any] = {}
        self.regret: dict[Any, float] = {}
        self.loss: dict[str, float] = {}
        self.delay: dict[str, float] = {}
        self.expert_loss: dict[Any, float] = {}

    def node(self, group, k, node):
        key = group, k, node
        if key not in self.models:
            # one group alone, which weighs as much as the row does in the group
            self.models[key] = gw.Groupwise(
                [gw.weight("share")],
                self.learners[k],
                gw.aggregators.Specialists(),
                gw.losses.Log(),
                features=["u", "v"],
                indicators=False,
                always_on=False,
            )
        return self.models[key]

    def advice(self, row, groups):
        """a_i of all awake experts."""
        found = {}
        for group, share in groups.items():
            for k in range(len(self.learners)):
                known = {"u": row["u"], "v": row["v"], "share": share}
                rest, a = 1.0, []
                for node in range(self.classes - 1):
                    p = self.node(group, k, node).predict_one(known)
                    a.append(rest * p)
                    rest *= 1.0 - p
                found[group, k] = [*a, rest]
        return found

    def play(self, row, groups):
        """Σ p_i a_i, p_i ∝ I_i e^{R_i}."""
        advice = self.advice(row, groups)
        top = max(self.regret.get(i, 0.0) for i in advice)
        weights = {i: groups[i[0]] * math.exp(self.regret.get(i, 0.0) - top) for i in advice}
        total = sum(weights.values())
        mixed = [
            sum(weights[i] * a[c] for i, a in advice.items()) / total for c in range(self.classes)
        ]
        return advice, mixed

    def learn(self, row, groups, y, played):
        advice, mixed = self.play(row, groups)
        charged, lost = -math.log(mixed[y]), -math.log(played[y])
        for (group, k), a in advice.items():
            share = groups[group]
            own = -math.log(a[y])
            self.regret[group, k] = self.regret.get((group, k), 0.0) + share * (charged - own)
            self.expert_loss[group, k] = self.expert_loss.get((group, k), 0.0) + share * own
            for node in range(min(y + 1, self.classes - 1)):
                known = {"u": row["u"], "v": row["v"], "share": share}
                self.node(group, k, node).learn_one(known, float(y == node))
        for group, share in groups.items():
            self.loss[group] = self.loss.get(group, 0.0) + share * lost
            self.delay[group] = self.delay.get(group, 0.0) + share * (lost - charged)


@pytest.mark.parametrize("late", [0, 6])
@pytest.mark.parametrize("name", ["two logistic", "both"])
def test_a_model_is_what_the_definition_says(name, late):
    learners = LEARNERS[name] if isinstance(LEARNERS[name], list) else [LEARNERS[name]]
    model, plain = model_of(learners, features=["u", "v"], indicators=False), Plain(learners, 4)
    generator = np.random.default_rng(5)
    waiting = []
    for row, y in rows_of(60):
        ticket = model.predict(row)
        advice, mixed = plain.play(row, ticket.groups)
        assert list(ticket.prediction) == list(COLOURS)
        assert list(ticket.prediction.values()) == pytest.approx(mixed, rel=1e-11)
        said = ticket.play.advice
        for i, group in enumerate(ticket.groups):
            for k in range(len(learners)):
                assert said[i, k].tolist() == pytest.approx(advice[group, k], rel=1e-11)
        waiting.append((ticket, row, mixed, y))
        while len(waiting) > late:
            ticket, row, played, y = waiting.pop(int(generator.integers(len(waiting))))
            model.learn(ticket, COLOURS[y])
            plain.learn(row, ticket.groups, y, played)
    for line in model.regret():
        group = line["group"]
        assert line["loss"] == pytest.approx(plain.loss[group], rel=1e-10)
        assert line["delay"] == pytest.approx(plain.delay[group], abs=1e-9)
        assert (line["delay"] != 0.0) == (late > 0)
        assert line["aggregator"] == pytest.approx(math.log(5 * len(learners)))
        everybody = plain.expert_loss["always_on", 0]
        if group == "always_on" and late == 0:
            baseline = line["baseline_regret"] + line["best_loss"]
            assert baseline == pytest.approx(everybody, rel=1e-10)


# Probabilities.


@pytest.mark.parametrize("classes", [3, 4, 7, 30])
def test_probabilities_are_those_of_the_chain(classes):
    """Against fractions; and no class is left out, however certain a node is."""
    generator = np.random.default_rng(classes)
    near = generator.choice([0.0, 1e-16, 1e-15, 1e-12, 1e-3, 0.3, 0.5], size=(40, 2, classes - 1))
    nodes = np.where(generator.random(near.shape) < 0.3, 1.0 - near, near)
    out = np.empty((40, 2, classes))
    kernels.spread(nodes, LEAST, out)
    assert (out >= LEAST * (1.0 - 1e-9)).all()
    assert (out < 1.0).all()
    assert np.abs(out.sum(axis=2) - 1.0).max() <= classes * 1e-15
    for chain, found in zip(nodes.reshape(-1, classes - 1), out.reshape(-1, classes), strict=True):
        rest, exact = Fraction(1), []
        for share in np.clip(chain, LEAST, 1.0 - LEAST).tolist():
            exact.append(rest * Fraction(share))
            rest *= 1 - Fraction(share)
        exact.append(rest)
        if min(exact) > 2 * LEAST:
            assert found.tolist() == pytest.approx([float(x) for x in exact], rel=classes * 1e-15)
        else:
            wanted = [max(float(x), LEAST) for x in exact]
            assert found.tolist() == pytest.approx(wanted, rel=classes * 1e-14)


@pytest.mark.parametrize("classes", [3, 5, 9])
def test_certain_experts_leave_something_for_everybody(classes):
    model = model_of([Certain(), Frequency()], classes=range(classes))
    for row, _ in rows_of(60, classes):
        ticket = model.predict(row)
        shares = list(ticket.prediction.values())
        assert all(0.0 < share < 1.0 for share in shares)
        assert abs(sum(shares) - 1.0) <= classes * 1e-15
        model.learn(ticket, int(np.argmin(shares)))
        for line in model.regret():
            assert math.isfinite(line["certificate"])
            assert line["regret"] <= line["certificate"] + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("late", [0, 5])
def test_regret_stays_below_the_certificate(name, late):
    """Labels are chosen after the prediction: the class that was least expected, mostly."""
    for seed, classes in enumerate((3, 4, 6)):
        generator = np.random.default_rng(seed)
        model = model_of(LEARNERS[name], classes=range(classes))
        waiting: list[Any] = []
        for turn, (row, y) in enumerate(rows_of(60, classes, seed)):
            ticket = model.predict(row)
            shares = list(ticket.prediction.values())
            assert abs(sum(shares) - 1.0) <= classes * 1e-15
            assert all(0.0 < share < 1.0 for share in shares)
            least = int(np.argmin(shares))
            waiting.append((ticket, y if turn % 4 == seed else least))
            while len(waiting) > late:
                model.learn(*waiting.pop(int(generator.integers(len(waiting)))))
            if turn % 3 == 0:
                for line in model.regret():
                    assert line["regret"] <= line["certificate"] + 1e-9 * (1 + turn), line
                    assert line["status"] in ("proved", "loose", "vacuous", "numerically uncertain")


@pytest.mark.slow
@pytest.mark.parametrize("number", range(8))
def test_regret_stays_below_the_certificate_at_every_label(number):
    """Soft and hard adversaries, late labels, fractional groups, both kinds of hindsight."""
    draw = np.random.default_rng(number)
    classes = int(draw.integers(3, 7))
    learner = Logistic(
        float(draw.choice([0.1, 1.0, 5.0])),
        float(draw.choice([2.0, 8.0])),
        int(draw.choice([0, 10, 2000])),
    )
    model = model_of([learner, Frequency()] if number % 3 == 0 else learner, range(classes))
    waiting: list[Any] = []
    late = int(draw.choice([0, 0, 4]))
    for turn, (row, y) in enumerate(rows_of(70, classes, number)):
        ticket = model.predict(row)
        shares = np.array(list(ticket.prediction.values()))
        order = np.argsort(shares)
        waiting.append((ticket, int([order[0], order[-1], order[1], y][turn // 7 % 4])))
        while len(waiting) > late:
            model.learn(*waiting.pop(int(draw.integers(len(waiting)))))
            for line in model.regret():
                assert line["regret"] <= line["certificate"] + 1e-9 * (1 + turn), line
                assert line["best_low"] <= line["best_high"] + 1e-9 * (1 + turn)


def test_the_bound_of_the_aggregator_is_met():
    """One expert is right all the time: the regret to it comes close to ln(1/q)."""

    class Right:
        def advise(self, row, weight):
            found = row.mapping()
            return 1.0 if found.get("v", 0.0) == 1.0 else 1e-3

        def update(self, row, label, weight):
            pass

    class Wrong(Right):
        def advise(self, row, weight):
            return 1e-3

    model = gw.Groupwise(
        [],
        [Right(), *[Wrong() for _ in range(30)]],
        loss=gw.losses.Log(classes=("a", "b", "c")),
        features=["v"],
    )
    for _ in range(40):
        model.learn_one({"v": 1.0}, "a")
    line = model.regret()["always_on"]
    assert 0.99 * math.log(31) <= line["regret"] <= line["certificate"] + 1e-9


# Loop, replay, files.


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("name", LEARNERS)
def test_a_replay_is_the_loop(name, jobs, monkeypatch):
    monkeypatch.setattr(stream, "CHUNK", 50)
    rows = list(rows_of(180))
    loop, replayed = model_of(LEARNERS[name]), model_of(LEARNERS[name])
    frame = polars.DataFrame([{**row, "y": COLOURS[y]} for row, y in rows])
    result = replayed.replay([frame[:70], frame[70:]], "y", jobs=jobs)
    assert result.classes == COLOURS
    assert result.path == ("compiled" if "logistic" in name else "python")
    for t, (row, y) in enumerate(rows):
        ticket = loop.predict(row)
        assert result.prediction[t].tolist() == list(ticket.prediction.values())
        assert result.loss[t] == result.expected_loss[t] == loop.loss_of_ticket(ticket, COLOURS[y])
        assert result.loss[t] == pytest.approx(-math.log(result.prediction[t, y]), rel=1e-12)
        loop.learn(ticket, COLOURS[y])
    assert loop.regret().rows == replayed.regret().rows
    if result.path == "compiled":
        assert_same(loop, replayed)


@pytest.mark.parametrize("name", LEARNERS)
def test_arrays(name):
    generator = np.random.default_rng(2)
    X, members = generator.normal(size=(90, 3)), (generator.random((90, 3)) < 0.5).astype(float)
    members[:5] = 0.0
    labels = generator.integers(5, size=90)
    loss = gw.losses.Log(classes=range(5))
    result: Any = gw.replay(X, labels, members, learner=LEARNERS[name], loss=loss, seed=3)
    learners = len(LEARNERS[name]) if isinstance(LEARNERS[name], list) else 1
    shape = (int(members.sum()), 5) if learners == 1 else (int(members.sum()), learners, 5)
    assert result.advice.shape == shape
    assert result.prediction[:5] == pytest.approx(0.2)
    assert result.loss[:5] == pytest.approx(math.log(5))
    ends = np.cumsum([0, *members.sum(axis=1).astype(int)]).tolist()
    vectors = result.advice.reshape(len(result.advice), -1, 5)
    odds = result.weights.reshape(len(result.weights), -1)
    for t, (first, last) in list(enumerate(pairwise(ends)))[5:]:
        mixed = np.einsum("ek,ekc->c", odds[first:last], vectors[first:last])
        if first < last:
            assert result.prediction[t] == pytest.approx(mixed, rel=1e-12)
    assert len(result.curves(3)) == 3
    for line in result.regret():
        assert line["regret"] <= line["certificate"] + 1e-9


@pytest.mark.parametrize("name", ["logistic", "two logistic"])
def test_what_happens_between_rounds_leaves_no_trace(name, tmp_path):
    """Questions, copies, files, undone stretches, bad labels, tickets as text."""
    one, other = model_of(LEARNERS[name]), model_of(LEARNERS[name])
    other._key = one._key
    generator = np.random.default_rng(1)
    waiting = []
    for turn, (row, y) in enumerate(rows_of(110)):
        tickets = one.predict(row), other.predict(row)
        assert tickets[0].prediction == tickets[1].prediction
        waiting.append((*tickets, COLOURS[y]))
        what = turn % 11
        if what == 0:
            other.predict_one({**row, "u": 100.0, f"new{turn}": 1.0})
        elif what == 1:
            other = copy.deepcopy(other)
        elif what == 2:
            other = pickle.loads(pickle.dumps(other))
        elif what == 3:
            other.save(tmp_path / "model.gw")
            other = gw.load(tmp_path / "model.gw")
        elif what == 4:
            with pytest.raises(LabelError, match="'pink' is none of the classes 'red', 'green'"):
                other.learn(tickets[1], "pink")
        elif what == 5:
            with suppress(KeyError), other.all_or_nothing():
                other.learn(tickets[1], "grey")
                raise KeyError
        elif what == 7:
            some = list(rows_of(12, seed=turn))
            frame = polars.DataFrame([{**row, "y": COLOURS[y]} for row, y in some])
            other.replay(frame, "y", jobs=1 + turn % 2)
            learned(one, some)
        if what == 6 and turn % 2:
            gone = waiting.pop(0)
            one.forget(gone[0])
            other.forget(gone[1])
        while len(waiting) > 3:
            mine, theirs, y = waiting.pop(int(generator.integers(len(waiting))))
            one.learn(mine, y)
            text = theirs.to_json()
            again = gw.Ticket.from_json(text)
            assert again.to_json() == text
            assert again.prediction == theirs.prediction
            assert np.array_equal(again.advice, theirs.advice)
            other.learn(again if turn % 2 else theirs, y)
    assert one.regret().rows == other.regret().rows
    assert_same(one, other)


def test_a_file_continues_bit_for_bit(tmp_path):
    model = model_of(LEARNERS["two logistic"])
    for row, y in rows_of(90):
        model.learn_one(row, COLOURS[y])
    tickets = [(model.predict(row), y) for row, y in rows_of(10, seed=1)]
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    assert again.loss == model.loss
    assert again.regret().rows == model.regret().rows
    for ticket, y in tickets:
        model.learn(ticket, COLOURS[y])
        again.learn(gw.Ticket.from_json(ticket.to_json()), COLOURS[y])
    for row, y in rows_of(40, seed=2):
        assert again.predict_one(row) == model.predict_one(row)
        model.learn_one(row, COLOURS[y])
        again.learn_one(row, COLOURS[y])
    assert_same(model, again)


def test_nobody_awake_is_the_same_for_all():
    model = model_of(Logistic(), always_on=False)
    asleep = {"kind": None, "w": 0.0, "u": 1.0, "v": 0.0}
    ticket = model.predict(asleep)
    assert ticket.prediction == dict.fromkeys(COLOURS, 0.25)
    again = gw.Ticket.from_json(ticket.to_json())
    assert again.prediction == ticket.prediction
    assert again.to_json() == ticket.to_json()
    model.learn(again, "blue")
    assert len(model.regret()) == 0
    frame = polars.DataFrame([{**asleep, "y": "grey"}], schema_overrides={"kind": polars.String})
    assert model.replay(frame, "y").loss.tolist() == [math.log(4)]


def test_partial_feedback(tmp_path):
    model = gw.PayForFeedback(model_of(Logistic()), horizon=500)
    for row, y in rows_of(30):
        ticket = model.predict(row)
        model.learn(ticket, COLOURS[y])
    model.save(tmp_path / "paying.gw")
    again = gw.load(tmp_path / "paying.gw")
    for row, y in rows_of(20, seed=1):
        assert again.predict(row).prediction == model.predict(row).prediction
        again.learn_one(row, COLOURS[y])
        model.learn_one(row, COLOURS[y])
    assert again.regret().rows == model.regret().rows


def test_what_a_prediction_loses():
    model = model_of(Logistic())
    shares = {"red": 0.5, "green": 0.25, "blue": 0.125, "grey": 0.125}
    assert model.loss_of(shares, "green") == math.log(4)
    assert model.loss_of(list(shares.values()), "grey") == math.log(8)
    turned = dict(reversed(shares.items()))
    assert [model.loss_of(turned, name) for name in shares] == [
        model.loss_of(shares, name) for name in shares
    ]
    assert model.loss_of({**shares, "red": 0.0}, "red") == math.inf
    with pytest.raises(ConfigurationError, match="4 classes"):
        model.loss_of({"red": 1.0}, "red")


# What does not go together.


class OwnSpecialists(gw.aggregators.Specialists):
    """The same, in Python."""

    kernel = ""


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"learner": Ridge()}, r"Ridge cannot tell 4 classes apart: use learners.Logistic\(\)"),
        ({"learner": [Logistic(), Ridge()]}, "Ridge cannot tell"),
        ({"aggregator": gw.aggregators.AdaNormalHedge()}, r"Use aggregators.Specialists\(\)[^F]*$"),
        ({"aggregator": OwnSpecialists()}, "OwnSpecialists cannot mix 4 classes"),
        ({"play": "sample"}, "no guarantee"),
        ({"clip": False}, "leave clip=True"),
        ({"learner": gw.learners.FTPL(gw.oracles.Finite([[0.0], [1.0]]), 1.0)}, "classes|actions"),
    ],
    ids=str,
)
def test_what_cannot_serve_several_classes(settings, text):
    with pytest.raises(ConfigurationError, match=text):
        model_of(**{"learner": Logistic(), **settings})


def test_advice_that_is_no_number_leaves_everything_as_it_was():
    class Broken(Frequency):
        def advise(self, row, weight):
            return math.nan if self.total > 6.0 else 0.5

    model = model_of(Broken())
    row = {"kind": "x", "u": 1.0, "v": 0.0, "w": 1.0}
    for _ in range(5):
        model.learn_one(row, "red")
    before = model.regret().rows, model.issued
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="Broken advised nan"):
            model.learn_one(row, "red")
    assert (model.regret().rows, model.issued) == before


# Hindsight.


def learned(model, rows, classes=COLOURS):
    for row, y in rows:
        model.learn_one(row, classes[y])
    return model


def best_of_node(X, y, bound):
    """min Σ ln(1 + e^z) − y z over |z| ≤ bound, z = X θ: by a solver that knows nothing of us."""

    def loss(theta):
        z = X @ theta
        return float(np.sum(np.logaddexp(0.0, z) - y * z))

    def slope(theta):
        return X.T @ (1.0 / (1.0 + np.exp(-(X @ theta))) - y)

    inside = [
        {"type": "ineq", "fun": lambda t, s=s: bound - s * (X @ t), "jac": lambda t, s=s: -s * X}
        for s in (1.0, -1.0)
    ]
    options = {"maxiter": 500, "ftol": 1e-13}
    found = minimize(loss, np.zeros(X.shape[1]), jac=slope, constraints=inside, options=options)
    return float(found.fun)


@pytest.mark.parametrize("bound", [8.0, 1.5])
def test_the_best_chain_is_the_best_of_every_node(bound):
    rows = list(rows_of(120, fractional=False))
    model = gw.Groupwise(
        [gw.by("kind")],
        Logistic(bound=bound),
        loss=gw.losses.Log(classes=COLOURS),
        features=["u", "v"],
        indicators=False,
    )
    table = learned(model, rows).regret()
    assert table.comparator.startswith("the best chain of logistic models")
    for line in table:
        group = line["group"]
        mine = [(r, y) for r, y in rows if group in ("always_on", f"kind={r['kind']}")]
        total = 0.0
        for node in range(3):
            reached = [(r, float(y == node)) for r, y in mine if y >= node]
            X = np.array([[1.0, r["u"], r["v"]] for r, _ in reached])
            total += best_of_node(X, np.array([y for _, y in reached]), bound)
        assert line["best_kind"] == "exact"
        assert line["best_loss"] == pytest.approx(total, abs=1e-5 * (1.0 + total))
        assert line["best_low"] <= total + 1e-6
        assert line["best_high"] >= total - 1e-6
        assert line["learner"] <= line["a_priori"] + 1e-9


def test_with_few_rows_kept_the_best_is_between_two_numbers():
    rows = list(rows_of(150))
    whole = learned(model_of(Logistic()), rows).regret()
    part = learned(model_of(Logistic(keep_rows=20)), rows).regret()
    assert {line["best_kind"] for line in part} == {"bracket"}
    for line, exact in zip(part, whole, strict=True):
        assert line["group"] == exact["group"]
        assert line["best_low"] <= exact["best_high"] + 1e-9
        assert line["best_high"] >= exact["best_low"] - 1e-9
        assert line["regret"] >= exact["regret"] - 1e-9
        assert line["regret"] <= line["certificate"] + 1e-9


def test_a_class_that_never_comes():
    model = learned(model_of(Logistic()), [(row, 2) for row, _ in rows_of(60)])
    for line in model.regret():
        assert line["regret"] <= line["certificate"] + 1e-9
    shares = model.predict_one({"kind": "x", "u": 0.0, "v": 0.0, "w": 1.0})
    assert shares["blue"] > 0.8
    assert min(shares.values()) > 0.0


# Calibration.


@pytest.mark.parametrize("late", [0, 4])
def test_every_class_has_its_calibration(late, tmp_path):
    """Of the probabilities as they were issued."""
    model = model_of(Logistic())
    waiting: list[Any] = []
    issued: dict[str, list[tuple[float, dict[str, float], str]]] = {}
    for row, y in rows_of(80):
        waiting.append((model.predict(row), COLOURS[y]))
        while len(waiting) > late:
            ticket, y = waiting.pop(len(waiting) // 2)
            model.learn(ticket, y)
            for group, share in ticket.groups.items():
                issued.setdefault(group, []).append((share, ticket.prediction, y))
    model.save(tmp_path / "model.gw")
    again = gw.load(tmp_path / "model.gw")
    for colour in COLOURS:
        table = model.calibration(of=colour)
        assert again.calibration(of=colour).rows == table.rows
        for line in table:
            mine = issued[line["group"]]
            total = sum(share for share, _, _ in mine)
            assert line["rounds"] == total
            came = sum(share for share, _, y in mine if y == colour) / total
            said = sum(share * p[colour] for share, p, _ in mine) / total
            square = sum(share * (p[colour] - (y == colour)) ** 2 for share, p, y in mine) / total
            assert line["mean_label"] == pytest.approx(came, rel=1e-12)
            assert line["mean_prediction"] == pytest.approx(said, rel=1e-12)
            assert line["brier"] == pytest.approx(square, rel=1e-10)
            assert line["log_loss"] is None  # which is of all classes together


def test_calibration_asks_of_which_class():
    model = learned(model_of(Logistic()), list(rows_of(5)))
    with pytest.raises(ConfigurationError, match=r"4 classes: say which .* of='red'"):
        model.calibration()
    with pytest.raises(LabelError, match="'pink' is none of the classes"):
        model.calibration(of="pink")
    names = "no", "yes"
    two = learned(model_of(Logistic(), names), [(r, y % 2) for r, y in rows_of(5)], names)
    assert two.calibration().rows == two.calibration(of="yes").rows
    with pytest.raises(ConfigurationError, match="'no' is not its class"):
        two.calibration(of="no")
