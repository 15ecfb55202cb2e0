"""A compiled learner that is not in the package gets all that the package's own have.

All of it is in this file: a table of a group's record, two kernels, a bank, and a configuration.
"""

import copy
import pickle
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise.arrays import Vector
from groupwise.checks import check_learner
from groupwise.errors import SnapshotError
from groupwise.kernels.compiled import Kernel, inlined
from groupwise.kernels.layout import LEARNER, ONE, Layout, open_place
from groupwise.kernels.stretch import open_stretch
from groupwise.learners import Ridge
from groupwise.learners.compiled import CompiledBank
from groupwise.validation import register
from tests.states import arrays_of, assert_same_arrays, state_of
from tests.streams import random_arrays

# The learner.


class Means(NamedTuple):
    """What a group's learners know: they share the sums, and differ in their priors."""

    weight: Vector
    """Σ w."""
    total: Vector
    """Σ w y."""
    advised: Vector
    """Σ w a, of each learner: nobody needs it, but it has an axis of its own."""


MEANS = Layout(Means, {"weight": ONE, "total": ONE, "advised": (LEARNER,)})
means_of = MEANS.view


@inlined
def speak(place, mine, stretch, entry):
    """The advice of all learners of a group."""
    for k in range(place.learners):
        mean = mine.total[0] / (place.parameters[k] + mine.weight[0])
        stretch.advice[entry * stretch.columns + stretch.column + k] = mean


@Kernel
def advise(state, message):
    """Σ w y / (prior + Σ w)."""
    place, stretch = open_place(state), open_stretch(message)
    speak(place, means_of(place, stretch.group), stretch, stretch.entries[stretch.first])
    return stretch.last


@Kernel
def learn(state, message):
    """The same, then the update, round by round."""
    place, stretch = open_place(state), open_stretch(message)
    mine = means_of(place, stretch.group)
    for i in range(stretch.first, stretch.last):
        entry = stretch.entries[i]
        weight, label = stretch.weights[entry], stretch.labels[stretch.rows[i]]
        speak(place, mine, stretch, entry)
        for k in range(place.learners):
            said = stretch.advice[entry * stretch.columns + stretch.column + k]
            mine.advised[k] += weight * said
        mine.weight[0] += weight
        mine.total[0] += weight * label
    return stretch.last


class MeanBank(CompiledBank):
    """The running means of every group."""

    name = "running mean"
    layout = MEANS
    advise = advise
    learn = learn


@register
@dataclass(frozen=True)
class RunningMean:
    """The mean of the group's labels so far, drawn towards 0 as if by ``prior`` labels of 0."""

    prior: float = 1.0

    @classmethod
    def banks(cls, learners, columns, setting):
        """One bank for all of them."""
        return [MeanBank(columns, [learner.prior for learner in learners])]


# What is tested with it.


class Last:
    """A learner in Python: the last label."""

    def __init__(self):
        self.label = 0.5

    def advise(self, row, weight):
        return self.label

    def update(self, row, label, weight):
        self.label = label


class ByHand:
    """The means of all groups, in plain Python."""

    def __init__(self, *priors):
        self.priors, self.sums = priors, {}

    def advice(self, groups):
        sums = (self.sums.get(group, (0.0, 0.0)) for group in groups)
        return [[total / (prior + weight) for prior in self.priors] for weight, total in sums]

    def learn(self, groups, label):
        for group, share in groups.items():
            weight, total = self.sums.get(group, (0.0, 0.0))
            self.sums[group] = weight + share, total + share * label


LEARNERS: dict[str, Any] = {
    "alone": [RunningMean()],
    "several": [RunningMean(0.5), RunningMean(4.0)],
    "with ridge": [RunningMean(), Ridge(0.5), RunningMean(2.0)],
    "with Python": [Last(), RunningMean()],
    "with both": [Ridge(), Last(), RunningMean(), Ridge(3.0, forward=True)],
}
COMPILED = ["alone", "several", "with ridge"]


def model_with(learner, **options):
    return gw.Groupwise([gw.by("kind"), gw.weight("share")], learner, features=["u"], **options)


def stream(count=150, seed=0):
    generator = np.random.default_rng(seed)
    for t in range(count):
        kind = "abcdef"[generator.integers(1 + 5 * t // count + 1)]
        share = float(generator.choice([0.0, 1.0, 0.25, generator.random()]))
        label = float(np.clip(generator.normal(ord(kind) - 97, 2) / 6, 0, 1))
        yield {"kind": kind, "share": share, "u": generator.normal()}, label


def test_round_by_round_it_is_the_mean():
    model, means = model_with(LEARNERS["several"]), ByHand(0.5, 4.0)
    for row, label in stream():
        assert model.predict_one(row) == model.predict_one(row)
        ticket = model.predict(row)
        assert ticket.advice.tolist() == means.advice(ticket.groups)
        assert ticket.prediction == pytest.approx(float(np.sum(ticket.weights * ticket.advice)))
        model.learn(ticket, label)
        means.learn(ticket.groups, label)
    assert len(model.group_names) == 8


def looped(x, y, membership, learners, **options):
    names = [f"g{g}" for g in range(membership.shape[1])]
    fields = [f"x{i}" for i in range(x.shape[1])]
    declared = [gw.weight(name) for name in names]
    model = gw.Groupwise(
        declared,
        learners,
        features=fields,
        indicators=False,
        intercept=False,
        always_on=False,
        **options,
    )
    predictions = []
    for t, label in enumerate(y.tolist()):
        row = dict(zip(fields + names, [*x[t].tolist(), *membership[t].tolist()], strict=True))
        ticket = model.predict(row)
        model.learn(ticket, label)
        predictions.append(ticket.prediction)
    return model, predictions


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("loss", [gw.losses.Square(), gw.losses.Absolute()], ids=repr)
@pytest.mark.parametrize("learners", LEARNERS)
def test_a_replay_is_the_loop_bit_for_bit(learners, loss, jobs):
    x, y, membership = random_arrays(seed=3, rows=300, groups=6, fractional=True, zeros=0.3)
    options = {"loss": loss, "play": "sample", "seed": 2}
    model, predictions = looped(x, y, membership, LEARNERS[learners], **options)
    names = [f"g{g}" for g in range(6)]
    result = gw.replay(
        x, y, membership, learner=LEARNERS[learners], names=names, jobs=jobs, **options
    )
    assert result.path == ("compiled" if learners in COMPILED else "python")
    assert result.prediction.tolist() == predictions
    assert [{**row, "baseline_regret": None} for row in result.regret()] == [
        {**row, "baseline_regret": None} for row in model.regret()
    ]
    found, wanted = (arrays_of(part._reduction, 6, x.shape[1]) for part in (result, model))
    for arrays in (found, wanted):
        del arrays["ledger.baseline_loss"]  # this model has no always-on group
    assert_same_arrays(found, wanted)
    assert found["running mean.weight"].tolist() == pytest.approx(membership.sum(axis=0).tolist())


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("learners", COMPILED)
def test_frames_are_replayed_as_the_loop_goes(learners, jobs):
    loop, whole = (model_with(LEARNERS[learners]) for _ in range(2))
    predictions = []
    for row, label in stream():
        predictions.append(loop.predict_one(row))
        loop.learn_one(row, label)
    frame = pandas.DataFrame([{**row, "y": label} for row, label in stream()])
    result = whole.replay(frame, "y", jobs=jobs)
    assert result.path == "compiled"
    assert result.prediction.tolist() == predictions
    assert whole.regret().rows == loop.regret().rows
    assert_same_arrays(state_of(whole), state_of(loop))


@pytest.mark.parametrize("learners", COMPILED)
def test_a_snapshot_goes_on_bit_for_bit(learners, tmp_path):
    model = model_with(LEARNERS[learners])
    for row, label in stream():
        model.learn_one(row, label)
    model.save(tmp_path / "a.gw")
    loaded = gw.load(tmp_path / "a.gw")
    assert list(loaded.learners) == LEARNERS[learners]
    others = [loaded, copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    for row, label in stream(60, seed=1):
        one = model.predict(row)
        model.learn(one, label)
        for other in others:
            two = other.predict(row)
            assert two.prediction == one.prediction
            assert two.weights.tolist() == one.weights.tolist()
            other.learn(two, label)
    model.save(tmp_path / "b.gw")
    for other in others:
        assert other.regret().rows == model.regret().rows
        other.save(tmp_path / "c.gw")
        assert (tmp_path / "c.gw").read_bytes() == (tmp_path / "b.gw").read_bytes()


def test_only_what_is_registered_is_saved(tmp_path):
    @dataclass(frozen=True)
    class Unheard(RunningMean):
        pass

    model = model_with(Unheard())
    model.learn_one(*next(stream()))
    with pytest.raises(SnapshotError, match=r"Unheard cannot be saved.*register"):
        model.save(tmp_path / "a.gw")


def test_late_labels_in_any_order_through_text_and_files(tmp_path):
    model, other = (model_with(LEARNERS["with ridge"]) for _ in range(2))
    other._key = model._key
    rounds = list(stream())
    tickets = [model.predict(row) for row, _ in rounds]
    texts = [other.predict(row).to_json() for row, _ in rounds]
    means = ByHand(1.0)
    order = np.random.default_rng(0).permutation(len(rounds)).tolist()
    for step, i in enumerate(order):
        label = rounds[i][1]
        now = model.predict_one(rounds[0][0])
        assert now == other.predict_one(rounds[0][0])
        model.learn(tickets[i], label)
        other.learn(gw.Ticket.from_json(texts[i]), label)
        means.learn(tickets[i].groups, label)
        if step == 70:
            other.save(tmp_path / "half.gw")
            other = gw.load(tmp_path / "half.gw")
    assert other.regret().rows == model.regret().rows
    probe = model.predict({"kind": "c", "share": 1.0, "u": 0.1})
    assert probe.advice[:, :1].tolist() == pytest.approx(np.array(means.advice(probe.groups)))
    assert any(row["delay"] != 0.0 for row in model.regret())
    for row in model.regret():
        assert row["regret"] <= row["certificate"] + 1e-9


@pytest.mark.parametrize("loss", [gw.losses.Square(), gw.losses.Absolute()], ids=repr)
@pytest.mark.parametrize("learners", LEARNERS)
@pytest.mark.slow
def test_regret_stays_below_the_certificate(learners, loss):
    """Against the one who sets every label at the far end from the prediction, too."""
    for contrary in (False, True):
        model = model_with(LEARNERS[learners], loss=loss)
        for row, label in stream():
            ticket = model.predict(row)
            model.learn(ticket, float(ticket.prediction < 0.5) if contrary else label)
            for line in model.regret():
                assert line["regret"] <= line["certificate"] + 1e-9
                assert line["status"] in ("proved", "loose", "vacuous")


def test_regret_is_against_the_best_linear_model_or_the_best_learner():
    rounds = list(stream())
    for loss in (gw.losses.Square(), gw.losses.Absolute()):
        model, means = model_with(LEARNERS["several"], loss=loss), ByHand(0.5, 4.0)
        own = np.zeros(2)
        for row, label in rounds:
            off = np.array(means.advice(["always_on"])[0]) - label
            own += off**2 if isinstance(loss, gw.losses.Square) else np.abs(off)
            means.learn({"always_on": 1.0}, label)
            model.learn_one(row, label)
        line = model.regret()["always_on"]
        if isinstance(loss, gw.losses.Square):
            assert model.regret().comparator == "the best linear model in hindsight"
            assert line["best_loss"] < own.min()
        else:
            assert line["best_loss"] == pytest.approx(own.min())
        term = line["learner"] + line["best_loss"]
        assert min(abs(term - own)) == pytest.approx(0.0, abs=1e-9)


def test_feedback_that_is_partial():
    paying = gw.PayForFeedback(model_with(RunningMean()))
    for row, label in stream(300):
        paying.learn_one(row, label)
    explored = paying.model.regret().settled
    assert paying.regret()["always_on"]["payments"] == explored
    state = state_of(paying.model)
    everybody = paying.model.group_names.index("always_on")
    assert 0 < state["running mean.weight"][everybody] < explored  # it began again on the way


@pytest.mark.parametrize("loss", [None, gw.losses.Absolute()], ids=repr)
def test_it_passes_the_checks(loss):
    check_learner(RunningMean(), loss=loss, rounds=60)
