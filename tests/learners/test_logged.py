"""Logged predictions as an expert of every group: rounds, replays, files and certificates."""

import copy
import math
import pickle
from typing import Any

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, FeatureError
from tests.few import few
from tests.states import assert_same_arrays, state_of

GROUPS = [gw.by("kind"), gw.weight("share")]
LOSSES = {
    "square": gw.losses.Square(-1.0, 3.0),
    "absolute": gw.losses.Absolute(-1.0, 3.0),
    "log": gw.losses.Log(),
    "classes": gw.losses.Log(classes=["no", "yes"]),
}


def stream(count=120, seed=0, loss="square"):
    """Rows with the predictions of two models, one of them wild, and labels."""
    generator = np.random.default_rng(seed)
    for t in range(count):
        kind = "abcd"[generator.integers(1 + 3 * t // count + 1)]
        share = float(generator.choice([0.0, 1.0, generator.random()]))
        u = generator.normal()
        truth = float(np.clip(0.3 * u + (ord(kind) - 98) / 2 + 0.5, -1, 3))
        near, wild = truth + 0.3 * generator.normal(), 4 * generator.normal()
        label: Any = float(np.clip(truth + 0.4 * generator.normal(), -1, 3))
        if loss in ("log", "classes"):
            near, wild = 1 / (1 + math.exp(-near)), float(generator.integers(2))
            yes = generator.random() < near
            label = ["no", "yes"][yes] if loss == "classes" else float(yes)
        yield {"kind": kind, "share": share, "u": u, "near": near, "wild": wild}, label


def model_with(loss="square", experts=("near", "wild"), **options):
    return gw.Groupwise(GROUPS, loss=LOSSES[loss], experts=list(experts), **options)


def as_frame(rows):
    return pandas.DataFrame([{**row, "y": label} for row, label in rows])


def test_every_awake_group_has_them_as_further_experts_and_no_feature_is_made_of_them():
    model, plain = model_with(), gw.Groupwise(GROUPS, loss=LOSSES["square"])
    for row, label in stream():
        ticket = model.predict(row)
        said = np.clip([row["near"], row["wild"]], -1, 3)
        without = {name: value for name, value in row.items() if name not in ("near", "wild")}
        own = plain.predict(without)
        assert ticket.advice.shape == (len(ticket.groups), own.advice.shape[1] + 2)
        assert ticket.advice[:, -2:] == pytest.approx(np.tile(said, (len(ticket.groups), 1)))
        assert ticket.advice[:, :-2].tolist() == own.advice.tolist()
        assert ticket.weights.shape == ticket.advice.shape
        model.learn(ticket, label)
        plain.learn(own, label)
    assert model.feature_names == plain.feature_names
    assert model.experts == ("near", "wild")
    assert [line["best_loss"] for line in model.regret()] == [
        line["best_loss"] for line in plain.regret()
    ]


def test_a_column_that_is_declared_a_feature_is_one_too():
    model = model_with(experts=["near"], features=["u", "near"])
    for row, label in stream(10):
        model.learn_one(row, label)
    assert "near" in model.feature_names
    assert "wild" not in model.feature_names


def test_makers_of_features_leave_them_alone():
    model = model_with(features=[gw.hinges(knots=[(50, 3)])])
    for row, label in stream(200):
        model.learn_one(row, label)
    assert any(name.startswith("u above") for name in model.feature_names)
    assert not any("near" in name or "wild" in name for name in model.feature_names)


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("loss", LOSSES)
def test_a_replay_is_the_loop_bit_for_bit(loss, jobs):
    rows = list(stream(loss=loss))
    loop, whole, pieces = (model_with(loss) for _ in range(3))
    predictions = []
    for row, label in rows:
        ticket = loop.predict(row)
        predictions.append(ticket.prediction)
        loop.learn(ticket, label)
    result = whole.replay(as_frame(rows), "y", jobs=jobs)
    pieces.replay([as_frame(rows[:1]), as_frame(rows[1:50]), as_frame(rows[50:])], "y", jobs=jobs)
    assert result.path == "compiled"
    found = [dict(zip(["no", "yes"], one, strict=True)) if loss == "classes" else one
             for one in result.prediction.tolist()]  # fmt: skip
    assert found == predictions
    for other in (whole, pieces):
        assert_same_arrays(state_of(other), state_of(loop))
        assert other.regret().rows == loop.regret().rows
        assert other.regret(against="wild").rows == loop.regret(against="wild").rows


def test_arrays_give_what_rows_give():
    generator = np.random.default_rng(1)
    x, y = generator.normal(size=(90, 3)), generator.uniform(-1, 3, 90)
    membership = np.column_stack([generator.random((90, 2)), np.ones(90)])
    theirs = {"near": y + generator.normal(size=90), "wild": generator.integers(-9, 9, 90)}
    names = ["a", "b", "always_on"]
    result = gw.replay(x, y, membership, names=names, loss=LOSSES["square"], experts=theirs)
    model = gw.Groupwise(
        [gw.weight("a"), gw.weight("b")],
        loss=LOSSES["square"],
        features=["x0", "x1", "x2"],
        indicators=False,
        intercept=False,
        experts=["near", "wild"],
    )
    frame = pandas.DataFrame(x, columns=["x0", "x1", "x2"])
    frame = frame.assign(a=membership[:, 0], b=membership[:, 1], y=y, **theirs)
    assert result.prediction.tolist() == model.replay(frame, "y").prediction.tolist()
    assert result.regret().rows == model.regret().rows
    assert result.regret(against="near").rows == model.regret(against="near").rows
    assert result.path == "compiled"
    assert result.advice is not None
    assert result.advice.shape[1] == 5
    wrong: Any = [y]
    with pytest.raises(ConfigurationError, match="experts must be a mapping"):
        gw.replay(x, y, membership, loss=LOSSES["square"], experts=wrong)


@pytest.mark.parametrize("loss", ["square", "log"])
def test_files_copies_and_pickles_go_on_bit_for_bit(loss, tmp_path):
    model = model_with(loss)
    for row, label in stream(loss=loss):
        model.learn_one(row, label)
    model.save(tmp_path / "a.gw")
    others = [gw.load(tmp_path / "a.gw"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
    assert others[0].experts == model.experts
    for row, label in stream(40, 1, loss):
        ticket = model.predict(row)
        model.learn(ticket, label)
        for other in others:
            again = other.predict(row)
            assert again.advice.tolist() == ticket.advice.tolist()
            assert again.prediction == ticket.prediction
            other.learn(again, label)
    model.save(tmp_path / "b.gw")
    for other in others:
        other.save(tmp_path / "c.gw")
        assert (tmp_path / "c.gw").read_bytes() == (tmp_path / "b.gw").read_bytes()


def test_late_labels_in_any_order_through_text_and_files(tmp_path):
    model, other = model_with(), model_with()
    other._key = model._key
    rounds = list(stream())
    tickets = [model.predict(row) for row, _ in rounds]
    texts = [other.predict(row).to_json() for row, _ in rounds]
    lost: dict[str, Any] = {}
    for step, i in enumerate(np.random.default_rng(0).permutation(len(rounds)).tolist()):
        row, label = rounds[i]
        model.learn(tickets[i], label)
        other.learn(gw.Ticket.from_json(texts[i]), label)
        for group, weight in tickets[i].groups.items():
            both = lost.setdefault(group, [0.0, 0.0])
            both[0] += weight * (np.clip(row["near"], -1, 3) - label) ** 2
            both[1] += weight * (tickets[i].prediction - label) ** 2
        if step == 60:
            other.save(tmp_path / "half.gw")
            other = gw.load(tmp_path / "half.gw")
        for line in model.regret(against="near"):
            assert line["regret"] <= line["certificate"] + 1e-9 * 16 * (1 + step)
    assert other.regret().rows == model.regret().rows
    for line in model.regret(against="near"):
        theirs, ours = lost[line["group"]]
        assert line["best_loss"] == pytest.approx(theirs)
        assert line["loss"] == pytest.approx(ours)
    assert any(line["delay"] != 0.0 for line in model.regret(against="near"))


@pytest.mark.parametrize("loss", LOSSES)
def test_what_an_expert_lost_on_every_group(loss):
    model, rounds = model_with(loss), list(stream(loss=loss))
    lost: dict[tuple[str, str], list[float]] = {}
    for row, label in rounds:
        ticket = model.predict(row)
        model.learn(ticket, label)
        y = float(label == "yes") if loss == "classes" else label
        for name in ("near", "wild"):
            for group, weight in ticket.groups.items():
                own = lost.setdefault((group, name), [])
                if loss in ("log", "classes"):
                    p = min(max(row[name], 1e-15), 1 - 1e-15)
                    own.append(-weight * math.log(p if y == 1.0 else 1.0 - p))
                else:
                    off = abs(min(max(row[name], -1.0), 3.0) - y)
                    own.append(weight * (off**2 if loss == "square" else off))
    table = model.regret()
    assert table.experts == ("near", "wild")
    for name in ("near", "wild"):
        against = model.regret(against=name)
        assert against.comparator == f"the predictions in {name!r}"
        assert "loss of near" not in against.rows[0]
        for line, other in zip(table, against, strict=True):
            theirs = math.fsum(lost[line["group"], name])
            assert line[f"loss of {name}"] == other["best_loss"] == pytest.approx(theirs, rel=1e-9)
            assert line[f"certificate against {name}"] == other["certificate"]
            assert other["regret"] == pytest.approx(line["loss"] - theirs)
            assert other["loss"] == line["loss"]
            assert other["status"] in ("proved", "loose", "vacuous")
            assert not other["few_rows"]
    printed = str(table).splitlines()[0]
    assert printed.endswith("status  loss of near  certificate against near"
                            "  loss of wild  certificate against wild")  # fmt: skip
    with pytest.raises(ConfigurationError, match=r"no expert 'far'. Known are 'near', 'wild'"):
        model.regret(against="far")
    with pytest.raises(ConfigurationError, match=r"Known are none: give some with experts"):
        gw.Groupwise(GROUPS).regret(against="near")


def test_the_certificate_is_that_of_the_learner_for_which_it_is_least():
    """Specialists: regret to j is at most ln(1/q_j)/2, and to i so much and what j lost less."""
    x, y = np.ones((60, 1)), np.tile([0.2, 0.9, 0.4], 20)
    theirs = {"good": y + 0.05, "bad": 1.0 - y}
    mass = np.array([1.0, 3.0])
    result = gw.replay(
        x,
        y,
        np.ones((60, 2)),
        learner=[gw.learners.Ridge(1.0), gw.learners.Ridge(100.0)],
        aggregator=gw.aggregators.Specialists(),
        prior=mass,
        experts=theirs,
    )
    assert result.advice is not None
    own = ((result.advice.reshape(60, 2, 4) - y[:, None, None]) ** 2).sum(axis=0)
    bounds = np.log(mass.sum() * 4 / mass) / 2
    for g in range(2):
        for k, name in enumerate(["good", "bad"], 2):
            line = result.regret(against=name).rows[g]
            least = float((own[g] - own[g, k] + bounds[g]).min())
            assert line["certificate"] == pytest.approx(least)
            assert line["certificate"] <= bounds[g] + 1e-12
            assert line["learner"] + line["aggregator"] == pytest.approx(line["certificate"])
            assert line["best_loss"] == pytest.approx(own[g, k])
    beaten = result.regret(against="bad").rows[0]
    assert beaten["certificate"] < 0.0  # it is proved to be worse, by at least so much
    assert beaten["regret"] <= beaten["certificate"] + 1e-9


AGGREGATORS: dict[str, dict[str, Any]] = {
    "prod": {"aggregator": gw.aggregators.Prod()},
    "specialists": {"aggregator": gw.aggregators.Specialists()},
    "mean": {"aggregator": gw.aggregators.AdaNormalHedge(), "play": "mean"},
    "sample": {"aggregator": gw.aggregators.AdaNormalHedge(), "play": "sample"},
}


@pytest.mark.parametrize("late", [False, True], ids=["at once", "late"])
@pytest.mark.parametrize("aggregator", AGGREGATORS)
@pytest.mark.parametrize("seed", few(range(12), 2))
def test_no_adversary_makes_us_much_worse_than_an_expert(seed, aggregator, late):
    """Labels are where the expert is right and we are wrong, or as far off as can be."""
    generator = np.random.default_rng(seed)
    model = model_with(learner=gw.learners.Ridge(0.1), seed=seed, **AGGREGATORS[aggregator])
    waiting: list[Any] = []
    lost: dict[str, Any] = {}
    for t, (row, label) in enumerate(stream(80, seed)):
        ticket = model.predict(row)
        guess = ticket.prediction
        label = [
            min(max(row["near" if seed % 2 else "wild"], -1.0), 3.0),
            3.0 if guess < 1.0 else -1.0,
            label,
        ][generator.choice(3, p=[0.6, 0.3, 0.1])]
        waiting.append((ticket, label))
        while len(waiting) > (15 if late and t < 79 else 0):
            ticket, y = waiting.pop(int(generator.integers(len(waiting))))
            model.learn(ticket, y)
            off = (np.clip([ticket.row["near"], ticket.row["wild"]], -1, 3) - y) ** 2
            if aggregator == "sample":
                ours = float(np.sum(ticket.weights * (ticket.advice - y) ** 2))
            else:
                ours = (ticket.prediction - y) ** 2
            for group, weight in ticket.groups.items():
                lost.setdefault(group, np.zeros(2))
                lost[group] += weight * (ours - off)
        for k, name in enumerate(["near", "wild"]):
            for line in model.regret(against=name):
                room = 1e-9 * 16 * (1 + t)
                assert line["regret"] == pytest.approx(lost[line["group"]][k], abs=room)
                assert lost[line["group"]][k] <= line["certificate"] + room, (t, line)
                assert line["status"] in ("proved", "loose", "vacuous")


def test_an_error_leaves_the_model_as_it_was():
    model = model_with()
    for row, label in stream(30):
        model.learn_one(row, label)
    before, row = state_of(model), next(stream(1))[0]
    for change in ({"near": None}, {"near": math.nan}, {"wild": "7"}):
        with pytest.raises(FeatureError, match="an expert predicts a finite number"):
            model.learn_one({**row, **change}, 0.5)
        frame = as_frame([*stream(3), ({**row, **change}, 0.5)])
        with pytest.raises(FeatureError, match=r"an expert predicts a finite number") as caught:
            model.replay(frame, "y")
        assert caught.value.row in (0, 3)  # a column of text and numbers is one of objects
    del row["near"]
    with pytest.raises(FeatureError, match="has no field 'near'"):
        model.predict(row)
    assert_same_arrays(state_of(model), before)
    assert model.issued == 30


def test_advice_that_is_not_clipped_is_void_as_any():
    model = gw.Groupwise([gw.by("kind")], experts=["p"], clip=False)
    for p in (0.3, 9.0, 0.4):
        model.learn_one({"kind": "a", "u": 1.0, "p": p}, 0.2)
    assert {line["status"] for line in model.regret(against="p")} == {"void"}
    with pytest.raises(ConfigurationError, match=r"Expert 'p' advised 1e\+120"):
        model.learn_one({"kind": "a", "u": 1.0, "p": 1e120}, 0.2)


class Last:
    """A learner in Python: the last label."""

    def __init__(self):
        self.label = 0.5

    def advise(self, row, weight):
        return self.label

    def update(self, row, label, weight):
        self.label = label


def test_beside_learners_in_python_and_without_a_class_to_compare_with():
    """What is best of the group's own learners leaves experts out: adding one does not move it."""
    loss = LOSSES["absolute"]
    model = gw.Groupwise(GROUPS, Last(), loss=loss, experts=["near", "wild"])
    plain = gw.Groupwise(GROUPS, Last(), loss=loss, features=["u"])
    replayed = copy.deepcopy(model)
    rows = list(stream())
    for row, label in rows:
        model.learn_one(row, label)
        plain.learn_one(row, label)
    result = replayed.replay(as_frame(rows), "y")
    assert result.path == "python"
    assert replayed.regret().rows == model.regret().rows
    for line, other in zip(model.regret(), plain.regret(), strict=True):
        assert line["best_loss"] == pytest.approx(other["best_loss"])
        assert line["regret"] <= line["certificate"] + 1e-9


@pytest.mark.parametrize("layer", [True, gw.Gap(0.1)], ids=["map", "gap"])
def test_recalibration_is_part_of_the_certificate(layer):
    model = model_with("log", recalibrate=layer)
    ours: list[float] = []
    theirs: list[float] = []
    for row, label in stream(loss="log"):
        ticket = model.predict(row)
        model.learn(ticket, label)
        for out, p in ((ours, ticket.prediction), (theirs, row["near"])):
            out.append(-math.log(p if label == 1.0 else 1.0 - p))
    line = model.regret(against="near")["always_on"]
    assert line["loss"] == pytest.approx(math.fsum(ours))
    assert line["best_loss"] == pytest.approx(math.fsum(theirs))
    assert line["recalibration"] != 0.0
    terms = ("learner", "aggregator", "delay", "recalibration")
    assert line["certificate"] == pytest.approx(sum(line[term] for term in terms))
    assert line["regret"] <= line["certificate"] + 1e-9
    assert model.regret()["always_on"]["certificate against near"] == line["certificate"]


def test_partial_feedback_knows_their_losses_and_promises_nothing_about_them():
    paying = gw.PayForFeedback(model_with())
    for row, label in stream(200):
        paying.learn_one(row, label)
    line = paying.regret()["always_on"]
    assert line["loss of near"] > 0.0
    assert not any(key.startswith("certificate against") for key in line)
    assert "loss of near" in str(paying.regret())
