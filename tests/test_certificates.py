"""Regret stays below its certificate, for every group, after every label, against all.

The adversaries see the ticket (prediction, advice, weights) and the last regret table before they
choose the label.
"""

import math
from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest

import groupwise as gw
from tests.few import few

ROUNDING = 1e-9
OUTSTANDING = 100

LEARNERS = {
    "plain": [gw.learners.Ridge(0.5)],
    "forward": [gw.learners.Ridge(0.5, forward=True)],
    "portfolio": [gw.learners.Ridge(0.01), gw.learners.Ridge(5.0, forward=True)],
}
LEANING = {
    "leaning": [
        gw.learners.Ridge(0.5, everybody=True),
        gw.learners.Ridge(3.0, forward=True, forgetting=0.9, everybody=True),
    ],
    "recommended": gw.learners.portfolio(gw.losses.Square()),
}
"""Those that lean to everybody's model."""
PLAYS = ("mean", "sample", "specialists", "prod")


def farthest(ticket, ends, turn, table):
    """The end of the range that is farther from the prediction."""
    return max(ends, key=lambda y: abs(y - ticket.prediction))


def leader(ticket, ends, turn, table):
    """What hurts the heaviest expert most."""
    heaviest = float(ticket.advice.ravel()[np.argmax(ticket.weights)])
    return max(ends, key=lambda y: abs(y - heaviest))


def target(ticket, ends, turn, table):
    """What makes the play lose most to the first awake group's own learner."""
    return max(ends, key=lambda y: lead(ticket, 0, y))


def tightest(ticket, ends, turn, table):
    """The same, for the awake group whose certificate is nearest to breaking."""
    slack = {row["group"]: row["certificate"] - row["regret"] for row in table}
    groups = list(ticket.groups)
    place = min(range(len(groups)), key=lambda a: slack.get(groups[a], math.inf))
    return max(ends, key=lambda y: lead(ticket, place, y))


def alternating(ticket, ends, turn, table):
    """One end, then the other."""
    return ends[turn % 2]


def switching(ticket, ends, turn, table):
    """One end for a long time, then the other: all that was learned is wrong."""
    return ends[turn // 15 % 2]


def noise(ticket, ends, turn, table):
    """Anything at all."""
    return np.random.default_rng([turn, 17]).uniform(*ends)


ADVERSARIES = (farthest, leader, target, tightest, alternating, switching, noise)


def lead(ticket, place, label):
    """The loss of the play less that of the best learner of the group at ``place``."""
    advice = ticket.advice.reshape(len(ticket.groups), -1)
    weights = ticket.weights.reshape(advice.shape)
    losses = (advice - label) ** 2
    return float(np.sum(weights * losses) - losses[place].min())


class Spec(NamedTuple):
    """One stream."""

    adversary: Callable[..., float]
    play: str
    learner: str
    fractional: bool
    late: bool
    seed: int

    def __str__(self):
        kind = "fractional" if self.fractional else "whole"
        when = "late" if self.late else "at once"
        return f"{self.adversary.__name__}-{self.play}-{self.learner}-{kind}-{when}"


STREAMS = [
    Spec(adversary, play, learner, fractional, late, seed)
    for seed, (adversary, play, learner, fractional, late) in enumerate(
        product(ADVERSARIES, PLAYS, LEARNERS, (False, True), (False, True))
    )
]


def make_model(spec, low, high):
    groups = [gw.weight("a"), gw.weight("b"), gw.by("kind")]
    own = {"specialists": gw.aggregators.Specialists(), "prod": gw.aggregators.Prod()}
    parts: dict[str, Any] = {"aggregator": own.get(spec.play)}
    if spec.play not in own:
        parts = {"aggregator": gw.aggregators.AdaNormalHedge(), "play": spec.play}
    return gw.Groupwise(
        groups,
        learner=(LEARNERS | LEANING)[spec.learner],
        loss=gw.losses.Square(low, high),
        features=["one", "u", "v"],
        indicators=False,
        seed=spec.seed,
        **parts,
    )


def make_row(generator, fractional, turn):
    a, b = generator.random(2)
    if not fractional:
        a, b = float(a < 0.5), float(b < 0.3)
    kinds = 2 if turn < 20 else 3  # a group that appears
    kind = "xyz"[generator.integers(kinds)]
    u, v = generator.uniform(-1, 1, 2)
    return {"a": a, "b": b, "kind": kind, "one": 1.0, "u": u, "v": v}


class Books:
    """The test's own account of the settled rounds, in the label's units."""

    def __init__(self, loss, sampled):
        self.loss, self.sampled = loss, sampled
        self.rounds = {}
        self.power = {}  # Σ w y² of the scaled labels

    def add(self, ticket, label):
        """A ticket that was settled with this label."""
        if self.sampled:
            lost = float(np.sum(ticket.weights * (ticket.advice - label) ** 2))
        else:
            lost = (ticket.prediction - label) ** 2
        x = [ticket.row[name] for name in ("one", "u", "v")]
        scaled = (label - self.loss.low) / (self.loss.high - self.loss.low)
        for group, weight in ticket.groups.items():
            self.power[group] = self.power.get(group, 0.0) + weight * scaled**2
            self.rounds.setdefault(group, []).append((weight, lost, label, x))

    def regret(self, group):
        """Loss of the plays, less that of the best linear model (for labels counted from low)."""
        weight, lost, label, x = (np.array(part) for part in zip(*self.rounds[group], strict=True))
        root = np.sqrt(weight)
        x, y = root[:, None] * x, root * (label - self.loss.low)
        best = np.sum((x @ np.linalg.lstsq(x, y, rcond=None)[0] - y) ** 2)
        return float(weight @ lost - best)


def check(model, books):
    """Every row of the table: regret ≤ certificate, and the status is right."""
    table = model.regret()
    unit = model.loss.unit
    for row in table:
        rounding = unit * ROUNDING * (1 + books.power[row["group"]])
        assert row["regret"] <= row["certificate"] + rounding, row
        empty = row["certificate"] > unit * row["rounds"]
        little = "loose" if row["certificate"] > row["best_loss"] else "proved"
        assert row["status"] == ("vacuous" if empty else little), row
        terms = row["learner"] + row["aggregator"] + row["delay"]
        assert abs(row["certificate"] - terms) <= 1e-12 * (1 + abs(terms))
    return table


def test_there_are_enough_streams():
    assert len(STREAMS) >= 200


@pytest.mark.parametrize(
    "spec",
    few(STREAMS[::5] + [x for i, x in enumerate(STREAMS) if i % 5], len(STREAMS[::5])),
    ids=str,
)
def test_regret_is_below_its_certificate_after_every_label(spec):
    attack(spec)


@pytest.mark.slow
@pytest.mark.parametrize("adversary", ADVERSARIES, ids=lambda one: one.__name__)
def test_learners_that_lean_to_everybody_keep_their_certificates(adversary):
    """More than two hundred streams in all."""
    kinds = product(PLAYS, ("leaning", "recommended"), (False, True), (False, True))
    for seed, kind in enumerate(kinds):
        attack(Spec(adversary, *kind, seed))


def attack(spec):
    """A stream whose labels an adversary chooses, late or at once; all is checked after each."""
    generator = np.random.default_rng(spec.seed)
    low, high = [(0.0, 1.0), (-2.0, 3.0)][spec.seed % 2]
    model = make_model(spec, low, high)
    books = Books(model.loss, spec.play == "sample")
    table: Any = ()
    outstanding: list[Any] = []
    for turn in range(80 if spec.late else 40):
        ticket = model.predict(make_row(generator, spec.fractional, turn))
        outstanding.append((ticket, spec.adversary(ticket, (low, high), turn, table)))
        while outstanding and (not spec.late or generator.random() < 0.4):
            ticket, label = outstanding.pop(generator.integers(len(outstanding)))
            model.learn(ticket, label)
            books.add(ticket, label)
            table = check(model, books)
    for place in generator.permutation(len(outstanding)):
        model.learn(*outstanding[place])
        books.add(*outstanding[place])
        table = check(model, books)
    for row in table:
        assert row["regret"] == pytest.approx(books.regret(row["group"]), rel=1e-8, abs=1e-8)
        if not spec.late:
            assert row["delay"] == 0.0


@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("adversary", [farthest, leader, tightest], ids=lambda a: a.__name__)
@pytest.mark.slow
def test_a_hundred_outstanding_labels_in_any_order(adversary, play):
    """Nothing is settled before a hundred tickets are out, and then one for every new one."""
    spec = Spec(adversary, play, "plain", True, True, 5)
    generator = np.random.default_rng(spec.seed)
    model = make_model(spec, 0.0, 1.0)
    books = Books(model.loss, play == "sample")
    table, outstanding, delays = (), [], []
    for turn in range(180):
        ticket = model.predict(make_row(generator, True, turn))
        outstanding.append((ticket, adversary(ticket, (0.0, 1.0), turn, table)))
        if len(outstanding) == OUTSTANDING:
            settled = outstanding.pop(generator.integers(OUTSTANDING))
            model.learn(*settled)
            books.add(*settled)
            table = check(model, books)
    for place in generator.permutation(len(outstanding)):
        model.learn(*outstanding[place])
        books.add(*outstanding[place])
        table = check(model, books)
        delays += [row["delay"] for row in table]
    assert max(delays) > 0.01  # the term is at work; its size turns on ties of the adversary


@pytest.mark.slow
@pytest.mark.parametrize("play", PLAYS)
@pytest.mark.parametrize("late", [False, True])
def test_long_streams(play, late):
    for adversary in (farthest, tightest, switching):
        spec = Spec(adversary, play, "portfolio", True, late, 11)
        generator = np.random.default_rng(11)
        model = make_model(spec, 0.0, 1.0)
        books = Books(model.loss, play == "sample")
        table: Any = ()
        outstanding: list[Any] = []
        for turn in range(3_000):
            ticket = model.predict(make_row(generator, True, turn))
            outstanding.append((ticket, adversary(ticket, (0.0, 1.0), turn, table)))
            if len(outstanding) > (OUTSTANDING - 1 if late else 0):
                settled = outstanding.pop(generator.integers(len(outstanding)))
                model.learn(*settled)
                books.add(*settled)
            if turn % 50 == 0:
                table = check(model, books)
        check(model, books)


@pytest.mark.parametrize(
    ("loss", "aggregator", "play"),
    [
        (gw.losses.Absolute(-1, 4), gw.aggregators.AdaNormalHedge(), "mean"),
        (gw.losses.Absolute(-1, 4), gw.aggregators.AdaNormalHedge(), "sample"),
        (gw.losses.Log(floor=0.01), gw.aggregators.AdaNormalHedge(), "mean"),
        (gw.losses.Log(floor=0.01), gw.aggregators.AdaNormalHedge(), "sample"),
        (gw.losses.Log(), gw.aggregators.Specialists(), None),
    ],
    ids=str,
)
def test_other_losses_keep_their_certificates(loss, aggregator, play):
    """There the comparator is the group's own best learner."""
    for seed, adversary in enumerate((farthest, leader, alternating, noise)):
        generator = np.random.default_rng(seed)
        model = gw.Groupwise(
            [gw.weight("a"), gw.weight("b"), gw.by("kind")],
            learner=LEARNERS["portfolio"],
            loss=loss,
            aggregator=aggregator,
            play=play,
            features=["one", "u", "v"],
            indicators=False,
        )
        for turn in range(60):
            ticket = model.predict(make_row(generator, seed % 2 == 0, turn))
            model.learn(ticket, adversary(ticket, (loss.low, loss.high), turn, ()))
            for row in model.regret():
                assert row["regret"] <= row["certificate"] + 1e-9 * loss.unit * (1 + turn), row
                assert row["status"] in ("proved", "loose", "vacuous")


@pytest.mark.parametrize("play", ["mean", "sample"])
def test_unclipped_advice_beyond_the_range_is_void(play):
    model = gw.Groupwise(
        [gw.by("kind")], learner=gw.learners.Ridge(1e-6), clip=False, play=play, indicators=False
    )
    # x's learner makes of u = 3 an advice of 3, y's of 0: their losses differ by more than 1.
    model.learn_one({"kind": "x", "u": 1.0}, 1.0)
    model.learn_one({"kind": "y", "u": 1.0}, 0.0)
    assert {row["status"] for row in model.regret()} <= {"proved", "loose", "vacuous"}
    model.learn_one({"kind": "x", "u": 30.0}, 0.0)
    assert {row["status"] for row in model.regret()} == {"void"}
    model.learn_one({"kind": "x", "u": 0.1}, 0.0)
    assert {row["status"] for row in model.regret()} == {"void"}  # once broken, for good


def test_clipping_keeps_the_same_stream_proved():
    model = gw.Groupwise([gw.by("kind")], learner=gw.learners.Ridge(1e-6), indicators=False)
    for kind, u, y in [("x", 1.0, 1.0), ("y", 1.0, 0.0), ("x", 30.0, 0.0), ("x", 0.1, 0.0)]:
        model.learn_one({"kind": kind, "u": u}, y)
        assert {row["status"] for row in model.regret()} <= {"proved", "loose", "vacuous"}


def test_a_table_right_after_a_restart_where_groups_have_learners_of_their_own():
    own = {"k=1": gw.learners.Ridge(everybody="only"), ...: gw.learners.Ridge()}
    model = gw.Groupwise([gw.by("k")], learner=own)
    for t in range(20):
        model.learn_one({"k": str(t % 2), "x": t / 20}, t % 3 / 2)
    model.restart()
    assert {line["status"] for line in model.regret()} == {"estimated"}
    assert all(line["a_priori"] is None for line in model.regret())


@pytest.mark.parametrize("loss", [gw.losses.Square(), gw.losses.Log()], ids=["square", "log"])
def test_nothing_is_proved_after_a_restart(tmp_path, loss):
    """The books go on; what the aggregator's bound is of does not."""
    model = gw.Groupwise([gw.by("k")], loss=loss, aggregator=gw.aggregators.Specialists())
    for t in range(40):
        model.learn_one({"k": str(t % 2), "x": t / 40}, float(t % 3 == 0))
        if t == 20:
            assert {line["status"] for line in model.regret()} & {"proved", "loose", "vacuous"}
            model.restart()
            model.save(tmp_path / "model.gw")
            model = gw.load(tmp_path / "model.gw")
    assert {line["status"] for line in model.regret()} == {"estimated"}
