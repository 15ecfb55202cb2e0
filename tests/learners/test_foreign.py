"""Learners from river and scikit-learn, and what happens when one of them fails."""

import copy
import pickle
import warnings

import numpy as np
import pandas
import pytest

import groupwise as gw
from groupwise.learners import Foreign, Ridge
from groupwise.learners.wrapped import WrappedBank
from tests.states import assert_same_arrays, state_of

river = pytest.importorskip("river.linear_model")
preprocessing = pytest.importorskip("river.preprocessing")
sklearn = pytest.importorskip("sklearn.linear_model")

FIELDS = ["one", "u", "v"]


def bayesian():
    return river.BayesianLinearRegression()


def descent():
    return sklearn.SGDRegressor(learning_rate="constant", eta0=0.05, random_state=0)


def model_with(learner, groups=None, **more):
    groups = [gw.by("kind"), gw.by("size")] if groups is None else groups
    more = {"features": FIELDS, "indicators": False, "intercept": False, **more}
    return gw.Groupwise(groups, learner=learner, **more)


def stream(rounds=80, seed=0, low=0.0, high=1.0):
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        u, v = generator.uniform(-1, 1, 2)
        kind, size = "xy"[generator.integers(2)], "sl"[generator.integers(2)]
        truth = 0.4 + 0.3 * u * (1 if kind == "x" else -1) + 0.1 * v
        label = float(np.clip(truth + generator.normal() / 20, 0, 1))
        row = {"kind": kind, "size": size, "one": 1.0, "u": u, "v": v}
        yield row, low + (high - low) * label


class Apart:
    """What the groups' own models should do: fitted apart, on each group's rows."""

    def __init__(self, make):
        self.make, self.models = make, {}

    def advise(self, group, row):
        if group not in self.models:
            return 0.5
        model = self.models[group]
        if hasattr(model, "predict_one"):
            return model.predict_one({name: row[name] for name in FIELDS})
        return model.predict([[row[name] for name in FIELDS]])[0]

    def update(self, group, row, label, weight=None):
        model = self.models.setdefault(group, self.make())
        more = {} if weight is None else {"sample_weight": [weight]}
        if hasattr(model, "learn_one"):
            model.learn_one({name: row[name] for name in FIELDS}, label)
        else:
            model.partial_fit([[row[name] for name in FIELDS]], [label], **more)


@pytest.mark.parametrize("make", [bayesian, descent])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-10.0, 30.0)])
def test_every_group_has_its_own_model(make, low, high):
    model = model_with(Foreign(make()), loss=gw.losses.Square(low, high))
    apart = Apart(make)
    for row, label in stream(low=low, high=high):
        ticket = model.predict(row)
        expected = [np.clip(apart.advise(group, row), 0, 1) for group in ticket.groups]
        expected = low + (high - low) * np.array(expected)
        assert ticket.advice == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert ticket.prediction == pytest.approx(float(ticket.weights @ ticket.advice))
        model.learn(ticket, label)
        for group in ticket.groups:
            apart.update(group, row, (label - low) / (high - low))
        for line in model.regret():
            assert line["regret"] <= line["certificate"] + 1e-9 * (high - low) ** 2 * 80
            assert line["status"] in ("proved", "loose", "vacuous")
    assert len(apart.models) == 5


@pytest.mark.parametrize("make", [bayesian, descent])
def test_beside_a_ridge(make):
    """A river or scikit-learn model and a ridge on each group; the ridge is as if alone."""
    both = model_with([Foreign(make()), Ridge(0.5)])
    alone = model_with(Ridge(0.5))
    for row, label in stream(40):
        one, other = both.predict(row), alone.predict(row)
        assert one.advice.shape == (3, 2)
        assert np.array_equal(one.advice[:, 1], other.advice)
        both.learn(one, label)
        alone.learn(other, label)


@pytest.mark.parametrize("make", [bayesian, descent])
def test_the_middle_of_the_range_before_the_first_fit(make):
    model = model_with(Foreign(make()), loss=gw.losses.Square(-10, 30))
    row = {"kind": "x", "size": "s", "one": 1.0, "u": 0.3, "v": -0.2}
    ticket = model.predict(row)
    assert ticket.prediction == 10.0
    assert ticket.advice.tolist() == [10.0] * 3
    model.learn(ticket, 25.0)
    other = model.predict({**row, "kind": "y", "size": "l"})
    assert other.advice[:2].tolist() == [10.0, 10.0]  # two new groups
    assert other.advice[2] != 10.0


def test_the_object_given_is_never_changed():
    given = descent()
    model = model_with(Foreign(given))
    for row, label in stream(10):
        model.learn_one(row, label)
    assert not hasattr(given, "coef_")
    again = model_with(model.learners[0])
    assert again.predict(next(iter(stream(1)))[0]).advice.tolist() == [0.5] * 3


def test_fractional_groups_need_sample_weights():
    row = {"part": 0.4, "one": 1.0, "u": 0.3, "v": -0.2}
    model = model_with(Foreign(bayesian()), [gw.weight("part")])
    with pytest.raises(gw.errors.ConfigurationError, match=r"Foreign\(BayesianLinearRegression\)"):
        model.predict(row)
    with pytest.raises(gw.errors.ConfigurationError, match="sample weights"):
        model.learn_one(row, 0.5)
    model.learn_one({**row, "part": 1.0}, 0.5)  # whole groups are served
    model.learn_one({**row, "part": 0.0}, 0.5)


def test_sample_weights_reach_the_model():
    model = model_with(Foreign(descent()), [gw.weight("part")])
    apart = Apart(descent)
    generator = np.random.default_rng(1)
    for row, label in stream(60):
        row["part"] = float(generator.random())
        ticket = model.predict(row)
        expected = [np.clip(apart.advise(group, row), 0, 1) for group in ticket.groups]
        assert ticket.advice == pytest.approx(expected, rel=1e-9, abs=1e-9)
        model.learn(ticket, label)
        for group, weight in ticket.groups.items():
            apart.update(group, row, label, weight)


@pytest.mark.parametrize("learner", [Foreign(bayesian()), [Ridge(), Foreign(bayesian())]])
def test_saving_says_by_name_that_it_cannot(tmp_path, learner):
    model = model_with(learner)
    for row, label in stream(5):
        model.learn_one(row, label)
    with pytest.raises(gw.errors.SnapshotError, match=r"Foreign\(BayesianLinearRegression\)"):
        model.save(tmp_path / "model.gw")
    assert list(tmp_path.iterdir()) == []


class Moody:
    """A river-like model that fails when asked to, after it has changed itself."""

    def __init__(self):
        self.seen, self.total, self.fails = 0, 0.0, []

    def predict_one(self, x):
        return self.total / max(self.seen, 1)

    def learn_one(self, x, y):
        self.seen += 1
        self.total += y
        if x["u"] > 2:
            raise RuntimeError("not today")


def picture(model):
    """Everything that the model's future depends on."""
    learners = {
        key: copy.deepcopy(learner.model.__dict__)  # type: ignore[attr-defined]
        for bank in model._reduction.banks
        if isinstance(bank, WrappedBank)
        for key, learner in bank.learners.items()
    }
    return state_of(model), learners, model.regret().rows


def same_picture(one, other):
    assert_same_arrays(one[0], other[0])
    assert one[1:] == other[1:]


@pytest.mark.parametrize("learners", ["foreign", "ridge first", "foreign first"])
def test_a_model_that_raises_leaves_everything_as_it_was(learners):
    foreign = Foreign(Moody())
    chosen = {
        "foreign": foreign,
        "ridge first": [Ridge(), foreign],
        "foreign first": [foreign, Ridge()],
    }[learners]
    model, twin = (model_with(chosen, [gw.by("kind"), gw.by("size")]) for _ in range(2))
    for row, label in stream(12):
        model.learn_one(row, label)
        twin.learn_one(row, label)
    row = {"kind": "x", "size": "s", "one": 1.0, "u": 3.0, "v": 0.0}
    ticket, kept = model.predict(row), twin.predict(row)
    before = picture(model)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="not today"):
            model.learn(ticket, 0.5)
        same_picture(before, picture(model))
    # a new group among the awake ones changes nothing about that
    fresh = model.predict({**row, "kind": "new"})
    twin.forget(twin.predict({**row, "kind": "new"}))
    with pytest.raises(RuntimeError, match="not today"):
        model.learn(fresh, 0.5)
    assert model.regret().rows == before[2]
    model.forget(fresh)
    # the ticket can still be settled, once the model is willing
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Moody, "learn_one", lambda self, x, y: setattr(self, "total", self.total + y))
        model.learn(ticket, 0.5)
        twin.learn(kept, 0.5)
    for row, label in stream(10, seed=3):
        assert model.predict_one(row) == twin.predict_one(row)
        model.learn_one(row, label)
        twin.learn_one(row, label)
    assert model.regret().rows == twin.regret().rows
    with pytest.raises(gw.errors.TicketError):
        model.learn(ticket, 0.5)


class Full:
    """Atomic: refuses a third label, and changes nothing then."""

    def __init__(self):
        self.labels = []

    def predict_one(self, x):
        return sum(self.labels) / max(len(self.labels), 1)

    def learn_one(self, x, y):
        if len(self.labels) == 3:
            raise RuntimeError("full")
        self.labels = [*self.labels, y]


def test_one_model_that_raises_stops_the_others():
    """always_on is full before the other groups, which are updated first."""
    model = model_with(Foreign(Full()))
    row = {"kind": "x", "size": "s", "one": 1.0, "u": 0.0, "v": 0.0}
    model.learn_one({**row, "kind": "y", "size": "l"}, 0.0)
    for label in (0.2, 0.4):
        model.learn_one(row, label)
    ticket = model.predict(row)
    before = picture(model)
    with pytest.raises(RuntimeError, match="full"):
        model.learn(ticket, 1.0)
    same_picture(before, picture(model))
    assert model.predict(row).advice.tolist() == ticket.advice.tolist()


class Sulking:
    """An aggregator in Python that can refuse to weigh."""

    sulks = False
    inner = gw.aggregators.AdaNormalHedge()

    def log_weights(self, regret, absolute, loss):
        if self.sulks:
            raise RuntimeError("not today")
        return self.inner.log_weights(regret, absolute, loss)

    def bound(self, regret, absolute, prior, loss):
        return self.inner.bound(regret, absolute, prior, loss)

    def plays(self, loss):
        return self.inner.plays(loss)


@pytest.mark.parametrize("learner", [Ridge(), Foreign(Moody())], ids=["ridge", "foreign"])
def test_an_aggregator_that_raises_leaves_everything_as_it_was(learner, monkeypatch):
    model = model_with(learner, aggregator=Sulking())
    for row, label in stream(12):
        model.learn_one(row, label)
    ticket = model.predict(row)
    before = picture(model)
    monkeypatch.setattr(Sulking, "sulks", True)
    with pytest.raises(RuntimeError, match="not today"):
        model.learn(ticket, 0.5)
    monkeypatch.setattr(Sulking, "sulks", False)
    same_picture(before, picture(model))
    model.learn(ticket, 0.5)


def test_advice_that_is_no_number_is_refused():
    class Broken:
        def predict_one(self, x):
            return float("nan")

        def learn_one(self, x, y):
            pass

    model = model_with(Foreign(Broken()))
    row = {"kind": "x", "size": "s", "one": 1.0, "u": 3.0, "v": 0.0}
    model.learn_one(row, 0.5)
    rows = model.regret().rows
    with pytest.raises(gw.GroupwiseError, match=r"Foreign\(Broken\)"):
        model.predict(row)
    assert model.regret().rows == rows


def test_scikit_learn_needs_a_fixed_number_of_features():
    model = gw.Groupwise([gw.by("kind")], learner=Foreign(descent()), indicators=False)
    model.learn_one({"kind": "x", "u": 0.5}, 0.5)
    rows = model.regret().rows
    with pytest.raises(gw.errors.FeatureError, match="features="):
        model.predict({"kind": "x", "u": 0.5, "w": 1.0})
    assert model.regret().rows == rows


def test_river_takes_features_as_they_come():
    model = gw.Groupwise(
        [gw.by("kind")], learner=Foreign(bayesian()), indicators=False, intercept=False
    )
    apart = river.BayesianLinearRegression()
    model.learn_one({"kind": "x", "u": 0.5}, 0.5)
    apart.learn_one({"kind=x": 1.0, "u": 0.5}, 0.5)
    ticket = model.predict({"kind": "x", "u": 0.2, "w": 1.0})
    expected = apart.predict_one({"kind=x": 1.0, "u": 0.2, "w": 1.0})
    assert ticket.advice == pytest.approx([np.clip(expected, 0, 1)] * 2)


@pytest.mark.parametrize("thing", [object(), 3, "ridge", sklearn.LinearRegression()], ids=type)
def test_what_cannot_learn_online_is_refused(thing):
    with pytest.raises(gw.errors.ConfigurationError, match="online"):
        Foreign(thing)


def test_a_river_model_without_its_wrapper_is_refused():
    with pytest.raises(gw.errors.ConfigurationError, match="Foreign"):
        model_with(bayesian())


def test_no_warnings_in_a_round():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for make in (bayesian, descent):
            model = model_with(Foreign(make()))
            for row, label in stream(5):
                model.learn_one(row, label)
            model.regret()


def pipeline():
    return preprocessing.StandardScaler() | river.LinearRegression()


def test_a_pipeline_beside_the_default_ridges_and_an_expert(tmp_path):
    """Rounds, replays in pieces, copies and pickles; and the pipeline says what it says alone."""

    def fresh():
        learners = [*gw.learners.portfolio(gw.losses.Square()), Foreign(pipeline())]
        return model_with(learners, [gw.by("kind")], experts=["theirs"])

    rows = [({**row, "theirs": 0.5 + 0.1 * row["v"]}, label) for row, label in stream(60)]
    loop, whole, pieces, apart, predictions = fresh(), fresh(), fresh(), Apart(pipeline), []
    for row, label in rows:
        ticket = loop.predict(row)
        expected = [np.clip(apart.advise(group, row), 0, 1) for group in ticket.groups]
        assert ticket.advice.shape == (2, 5)
        assert ticket.advice[:, 3] == pytest.approx(expected, abs=1e-9)
        loop.learn(ticket, label)
        predictions.append(ticket.prediction)
        for group in ticket.groups:
            apart.update(group, row, label)
    frame = pandas.DataFrame([{**row, "y": label} for row, label in rows])
    result = whole.replay(frame, "y", jobs=2)
    assert result.path == "python"
    assert result.prediction.tolist() == predictions
    pieces.replay([frame[:7], frame[7:]], "y")
    for other in (whole, pieces, copy.deepcopy(loop), pickle.loads(pickle.dumps(loop))):
        assert other.regret().rows == loop.regret().rows
        assert other.predict_one(rows[0][0]) == loop.predict_one(rows[0][0])
    for line in (*loop.regret(), *loop.regret(against="theirs")):
        assert line["regret"] <= line["certificate"] + 1e-9
    with pytest.raises(gw.errors.SnapshotError, match=r"Foreign\(Pipeline\) cannot be saved"):
        loop.save(tmp_path / "model.gw")
