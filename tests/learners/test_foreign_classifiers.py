"""Classifiers of river and scikit-learn as learners: probabilities of every group's own copy."""

import copy
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest

import groupwise as gw
from groupwise.learners import Foreign, Logistic
from groupwise.losses import CERTAINTY, Log
from tests.states import assert_same_arrays, state_of

pytest.importorskip("river")
pytest.importorskip("sklearn")
pd = pytest.importorskip("pandas")

from river import (  # noqa: E402
    active,
    ensemble,
    linear_model,
    multiclass,
    naive_bayes,
    preprocessing,
    tree,
)
from sklearn.linear_model import Perceptron, SGDClassifier  # noqa: E402
from sklearn.naive_bayes import BernoulliNB  # noqa: E402
from sklearn.neural_network import MLPClassifier  # noqa: E402

FIELDS = ["one", "u", "v"]
COLOURS = ["red", "green", "blue"]


def logistic():
    return linear_model.LogisticRegression()


def scaled():
    return preprocessing.StandardScaler() | linear_model.LogisticRegression()


def bayes():
    return naive_bayes.GaussianNB()


def hoeffding():
    return tree.HoeffdingTreeClassifier(grace_period=10)


def descent():
    return SGDClassifier(loss="log_loss", learning_rate="constant", eta0=0.1, random_state=0)


def bernoulli():
    return BernoulliNB()


ALL = [logistic, scaled, bayes, hoeffding, descent, bernoulli]
WEIGHTED = [logistic, scaled, hoeffding, descent, bernoulli]


def model_with(learner, groups=None, loss=None, **more):
    groups = [gw.by("kind"), gw.by("size")] if groups is None else groups
    more = {"features": FIELDS, "indicators": False, "intercept": False, **more}
    return gw.Groupwise(groups, learner=learner, loss=Log() if loss is None else loss, **more)


def stream(rounds=60, seed=0, names=(False, True)):
    generator = np.random.default_rng(seed)
    for _ in range(rounds):
        u, v = generator.uniform(-1, 1, 2)
        kind, size = "xy"[generator.integers(2)], "sl"[generator.integers(2)]
        likely = 1 / (1 + math.exp(-(3 * u * (1 if kind == "x" else -1) + v)))
        place = int((generator.random(len(names) - 1) < likely).sum())
        yield {"kind": kind, "size": size, "one": 1.0, "u": u, "v": v}, names[place]


class Apart:
    """What the groups' own classifiers should do: fitted apart, on each group's rows."""

    def __init__(self, make):
        self.make, self.models = make, {}

    def advise(self, group, row):
        if group not in self.models:
            return 0.5
        model = self.models[group]
        if hasattr(model, "predict_one"):
            said = model.predict_proba_one({name: row[name] for name in FIELDS})
            likely = said.get(True, 0.0)
        else:
            likely = model.predict_proba([[row[name] for name in FIELDS]])[0, 1]
        return min(max(likely, CERTAINTY), 1 - CERTAINTY)

    def update(self, group, row, label, weight=None):
        model = self.models.setdefault(group, self.make())
        if hasattr(model, "learn_one"):
            more = {} if weight is None else {"w": weight}
            model.learn_one({name: row[name] for name in FIELDS}, label, **more)
        else:
            more = {} if weight is None else {"sample_weight": [weight]}
            model.partial_fit([[row[name] for name in FIELDS]], [label], classes=[0, 1], **more)


def spoken(ticket):
    """What every awake group advised, by its name."""
    return dict(zip(ticket.groups, ticket.advice.tolist(), strict=True))


class TestEveryGroupHasItsOwn:
    @pytest.mark.parametrize("make", ALL)
    def test_probabilities(self, make):
        model, apart = model_with(Foreign(make())), Apart(make)
        for row, label in stream():
            ticket = model.predict(row)
            expected = {group: apart.advise(group, row) for group in ticket.groups}
            assert spoken(ticket) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert ticket.prediction == pytest.approx(float(ticket.weights @ ticket.advice))
            model.learn(ticket, label)
            for group in ticket.groups:
                apart.update(group, row, label)
            for line in model.regret():
                assert line["regret"] <= line["certificate"] + 1e-9
                assert line["status"] in ("proved", "loose", "vacuous")
        assert len(apart.models) == 5

    @pytest.mark.parametrize("make", ALL)
    def test_square_loss_takes_them_too(self, make):
        """Brier score; the ends of any range are the classes."""
        model = model_with(Foreign(make()), loss=gw.losses.Square(-10.0, 30.0))
        apart = Apart(make)
        for row, label in stream(30):
            ticket = model.predict(row)
            expected = {g: -10.0 + 40.0 * apart.advise(g, row) for g in ticket.groups}
            assert spoken(ticket) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            model.learn(ticket, 30.0 if label else -10.0)
            for group in ticket.groups:
                apart.update(group, row, label)

    @pytest.mark.parametrize("make", [scaled, descent])
    def test_beside_a_logistic(self, make):
        """Each is as if it were alone, and the certificate is against the better of the two."""
        both = model_with([Logistic(), Foreign(make())])
        alone, other = model_with(Logistic()), model_with(Foreign(make()))
        for row, label in stream(50):
            tickets = [model.predict(row) for model in (both, alone, other)]
            assert tickets[0].advice.shape == (3, 2)
            assert tickets[0].advice[:, 0].tolist() == tickets[1].advice.tolist()
            assert tickets[0].advice[:, 1].tolist() == tickets[2].advice.tolist()
            for model, ticket in zip((both, alone, other), tickets, strict=True):
                model.learn(ticket, label)
        for line in both.regret():
            assert line["regret"] <= line["certificate"]
            losses = [model.regret()[line["group"]]["loss"] for model in (alone, other)]
            assert line["loss"] <= min(losses) + math.log(2 * len(both.regret().rows)) + 1e-9

    def test_half_before_the_first_fit(self):
        for make in ALL:
            model = model_with(Foreign(make()))
            row = {"kind": "x", "size": "s", "one": 1.0, "u": 0.3, "v": -0.2}
            ticket = model.predict(row)
            assert ticket.prediction == 0.5
            model.learn(ticket, True)
            other = model.predict({**row, "kind": "y", "size": "l"})
            assert other.advice[:2].tolist() == [0.5, 0.5]  # two new groups
            assert other.advice[2] > 0.5

    def test_the_object_given_is_never_changed(self):
        for make in (logistic, descent):
            given = make()
            before = pickle.dumps(given)
            model = model_with(Foreign(given))
            for row, label in stream(10):
                model.learn_one(row, label)
            assert pickle.dumps(given) == before

    def test_no_warnings_in_a_round(self):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for make in ALL:
                model = model_with(Foreign(make()))
                for row, label in stream(5):
                    model.learn_one(row, label)
                model.regret()


class TestWeights:
    @pytest.mark.parametrize("make", WEIGHTED)
    def test_fractional_groups(self, make):
        model, apart = model_with(Foreign(make()), [gw.weight("part")]), Apart(make)
        generator = np.random.default_rng(1)
        for row, label in stream(40):
            row["part"] = float(generator.random())
            ticket = model.predict(row)
            expected = {group: apart.advise(group, row) for group in ticket.groups}
            assert spoken(ticket) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            model.learn(ticket, label)
            for group, weight in ticket.groups.items():
                apart.update(group, row, label, weight)

    def test_need_a_model_that_takes_them(self):
        model = model_with(Foreign(bayes()), [gw.weight("part")])
        with pytest.raises(gw.errors.ConfigurationError, match=r"Foreign\(GaussianNB\).*weights"):
            model.learn_one({"part": 0.4, "one": 1.0, "u": 0.3, "v": -0.2}, True)

    @pytest.mark.parametrize("make", WEIGHTED)
    def test_soft_labels_are_two_updates(self, make):
        model, apart = model_with(Foreign(make())), Apart(make)
        generator = np.random.default_rng(2)
        for row, _ in stream(30):
            label = float(generator.choice([0.0, 0.25, 0.8, 1.0]))
            ticket = model.predict(row)
            expected = {group: apart.advise(group, row) for group in ticket.groups}
            assert spoken(ticket) == pytest.approx(expected, rel=1e-9, abs=1e-9)
            model.learn(ticket, label)
            for group in ticket.groups:
                for name, share in ((False, 1.0 - label), (True, label)):
                    if share:
                        apart.update(group, row, name, share)

    @pytest.mark.parametrize("learner", ["alone", "beside"])
    def test_soft_labels_are_refused_without_them(self, learner):
        foreign = Foreign(bayes())
        model = model_with(foreign if learner == "alone" else [Logistic(), foreign])
        data = list(stream(20))
        for row, label in data:
            model.learn_one(row, label)
        ticket = model.predict(data[0][0])
        before, rows = copy.deepcopy(state_of(model)), model.regret().rows
        with pytest.raises(gw.errors.LabelError, match=r"GaussianNB.*label of 0\.3"):
            model.learn(ticket, 0.3)
        assert_same_arrays(before, state_of(model))
        frame = pd.DataFrame([row for row, _ in data]).assign(y=[0.0, 1.0, 0.3, *[1.0] * 17])
        with pytest.raises(gw.errors.LabelError, match=r"row 2: .*label of 0\.3"):
            model.replay(frame, "y")
        assert_same_arrays(before, state_of(model))
        assert model.regret().rows == rows
        model.learn(ticket, 1.0)

    def test_labels_beyond_a_range_are_no_classes(self):
        model = model_with(Foreign(logistic()), loss=gw.losses.Unbounded(), clip=False)
        row, _ = next(stream(1))
        with pytest.raises(gw.errors.LabelError, match="label of 7"):
            model.learn_one(row, 7.0)


class TestDrivers:
    @pytest.mark.parametrize("make", [scaled, hoeffding, descent])
    @pytest.mark.parametrize("names", [None, COLOURS], ids=["two", "three"])
    def test_replay_is_the_loop(self, make, names):
        loss, given = Log(classes=names), names or (False, True)
        loop, whole = (model_with([Logistic(), Foreign(make())], loss=loss) for _ in range(2))
        data = list(stream(50, names=given))
        shown = []
        for row, label in data:
            ticket = loop.predict(row)
            shown.append(ticket.prediction if names is None else [*ticket.prediction.values()])
            loop.learn(ticket, label)
        frame = pd.DataFrame([row for row, _ in data]).assign(y=[label for _, label in data])
        parts = [whole.replay(frame[start:stop], "y") for start, stop in ((0, 17), (17, 50))]
        assert [part.path for part in parts] == ["python", "python"]
        assert [one for part in parts for one in part.prediction.tolist()] == shown
        assert whole.regret().rows == loop.regret().rows
        assert whole.predict_one(data[0][0]) == loop.predict_one(data[0][0])

    @pytest.mark.parametrize("make", [scaled, descent])
    def test_late_labels(self, make):
        """Copies learn in the order of the labels; the books keep what was said."""
        model, apart = model_with([Logistic(), Foreign(make())]), Apart(make)
        waiting: list[Any] = []
        lost = 0.0
        for row, label in stream(60):
            ticket = model.predict(row)
            expected = [apart.advise(group, row) for group in ticket.groups]
            assert ticket.advice[:, 1] == pytest.approx(expected, rel=1e-9, abs=1e-9)
            waiting.append((ticket, row, label))
            if len(waiting) > 7:
                ticket, row, label = waiting.pop(3)
                model.learn(ticket, label)
                lost -= math.log(ticket.prediction if label else 1 - ticket.prediction)
                for group in ticket.groups:
                    apart.update(group, row, label)
        line = model.regret()["always_on"]
        assert line["loss"] == pytest.approx(lost)
        assert line["delay"] != 0.0
        assert line["regret"] <= line["certificate"]

    def test_zeros_reach_river(self):
        """Once a group has seen another value, and the same in every driver."""
        given: list[Any] = []

        class Watching:
            def predict_proba_one(self, x):
                return {}

            def predict_one(self, x):
                return None

            def learn_one(self, x, y):
                given.append(x)

        rows = [
            {"kind": "x", "u": 0.0, "v": 1.0},
            {"kind": "x", "u": 2.0, "v": 0.0},
            {"kind": "y", "u": 0.0, "v": 0.0},
            {"kind": "x", "u": 0.0, "v": 0.0},
        ]
        expected = [
            {"v": 1.0},  # of kind=x, and the same of always_on
            {"v": 0.0, "u": 2.0},
            {},  # of kind=y
            {"v": 0.0, "u": 0.0},
        ]
        for driver in ("loop", "replay"):
            given.clear()
            model = model_with(Foreign(Watching()), [gw.by("kind")], features=["u", "v"])
            if driver == "loop":
                for row in rows:
                    model.learn_one(row, True)
            else:
                model.replay(pd.DataFrame(rows).assign(y=True), "y")
            assert given[0::2] == expected

    def test_copies(self):
        model = model_with([Logistic(), Foreign(scaled()), Foreign(descent())])
        data = list(stream(30))
        for row, label in data[:15]:
            model.learn_one(row, label)
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for row, label in data[15:]:
            expected = model.predict_one(row)
            model.learn_one(row, label)
            for other in others:
                assert other.predict_one(row) == expected
                other.learn_one(row, label)

    def test_it_cannot_be_saved(self, tmp_path):
        with pytest.raises(gw.errors.SnapshotError, match=r"Foreign\(SGDClassifier\)"):
            model_with(Foreign(descent())).save(tmp_path / "model.gw")


class TestThreeClasses:
    @pytest.mark.parametrize("make", [scaled, hoeffding, descent])
    def test_are_a_chain_of_two(self, make):
        """Node k says how likely class k is among those from k on, and learns from these alone."""
        model, apart = model_with(Foreign(make()), loss=Log(classes=COLOURS)), Apart(make)
        for row, label in stream(50, names=COLOURS):
            ticket = model.predict(row)
            for group, said in zip(ticket.groups, ticket.advice, strict=True):
                red, green = (apart.advise((group, node), row) for node in (0, 1))
                expected = [red, (1 - red) * green, (1 - red) * (1 - green)]
                assert said.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)
            assert sum(ticket.prediction.values()) == pytest.approx(1.0)
            model.learn(ticket, label)
            for group in ticket.groups:
                apart.update((group, 0), row, label == "red")
                if label != "red":
                    apart.update((group, 1), row, label == "green")
            for line in model.regret():
                assert line["regret"] <= line["certificate"] + 1e-9


class Says:
    """A river-like classifier that always says the same."""

    def __init__(self, said):
        self.said = said

    def predict_proba_one(self, x):
        return self.said

    def predict_one(self, x):
        return max(self.said, key=self.said.get, default=None)

    def learn_one(self, x, y):
        pass


class TestWhatIsSaid:
    @pytest.mark.parametrize(
        ("said", "expected"),
        [
            ({}, 0.5),
            ({False: 0.0, True: 0.0}, 0.5),
            ({False: 1.0}, CERTAINTY),
            ({True: 1.0}, 1.0 - CERTAINTY),
            ({False: 1.0, True: 0}, CERTAINTY),
            ({False: 3.0, True: 1.0}, 0.25),  # votes
            ({0: 0.25, 1: 0.75}, 0.75),
        ],
        ids=str,
    )
    def test_as_a_probability(self, said, expected):
        model = model_with(Foreign(Says(said)))
        row, _ = next(stream(1))
        model.learn_one(row, True)
        ticket = model.predict(row)
        assert ticket.prediction == pytest.approx(expected)
        model.learn(ticket, False)
        line = model.regret()["always_on"]
        assert line["loss"] == pytest.approx(math.log(2) - math.log(1 - expected))
        assert line["status"] in ("proved", "loose", "vacuous")

    @pytest.mark.parametrize("value", [float("nan"), float("inf")])
    def test_what_is_no_number_is_refused(self, value):
        model = model_with(Foreign(Says({False: 0.5, True: value})))
        row, _ = next(stream(1))
        model.learn_one(row, True)
        with pytest.raises(gw.errors.ConfigurationError, match=r"Foreign\(Says\)"):
            model.predict(row)


class TestWhatIsAClassifier:
    @pytest.mark.parametrize(
        "thing",
        [
            SGDClassifier(),  # hinge loss
            Perceptron(),
            ensemble.VotingClassifier([logistic(), bayes()]),
            multiclass.OneVsOneClassifier(logistic()),
            active.EntropySampler(logistic()),
        ],
        ids=lambda thing: type(thing).__name__,
    )
    def test_without_probabilities_it_is_refused(self, thing):
        with pytest.raises(gw.errors.ConfigurationError, match="no probabilities"):
            Foreign(thing)

    def test_pipelines_are_what_they_end_in(self):
        numbers = preprocessing.StandardScaler() | linear_model.LinearRegression()
        assert Foreign(numbers).classes is None
        assert Foreign(numbers).takes_weights
        assert Foreign(preprocessing.StandardScaler() | numbers).classes is None
        assert Foreign(scaled()).classes == (False, True)
        assert not Foreign(preprocessing.StandardScaler() | bayes()).takes_weights

    def test_rows_without_features_may_be_too_little(self):
        class Demanding(Says):
            def predict_proba_one(self, x):
                return {True: x["u"], False: 1 - x["u"]}

        model = model_with(Foreign(Demanding({})))
        row = {"kind": "x", "size": "s", "one": 1.0, "u": 0.3, "v": -0.2}
        model.learn_one(row, True)
        assert model.predict_one(row) == pytest.approx(0.3)

    def test_names_of_the_classes(self):
        for make in (bayes, lambda: MLPClassifier((3,), random_state=0)):
            names = model_with(Foreign(make(), classes=["no", "yes"]))
            plain = model_with(Foreign(make()))
            for row, label in stream(15):
                assert names.predict_one(row) == plain.predict_one(row)
                names.learn_one(row, label)
                plain.learn_one(row, label)

    def test_the_second_is_positive_in_any_order(self):
        there, back = (
            model_with(Foreign(bernoulli(), classes=names)) for names in (["a", "b"], ["b", "a"])
        )
        for row, label in stream(15):
            advice, other = there.predict(row).advice, back.predict(row).advice
            assert advice == pytest.approx(1 - other, abs=1e-12)
            there.learn_one(row, label)
            back.learn_one(row, not label)

    def test_a_fitted_one_knows_its_own(self):
        fitted = bernoulli().fit([[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]], ["no", "yes"])
        assert Foreign(fitted).classes == ("no", "yes")
        model = model_with(Foreign(fitted))
        row = {"kind": "x", "size": "s", "one": 1.0, "u": 0.3, "v": -0.2}
        model.learn_one(row, True)
        apart = fitted.partial_fit([[1.0, 0.3, -0.2]], ["yes"])
        assert model.predict_one(row) == pytest.approx(
            apart.predict_proba([[1.0, 0.3, -0.2]])[0, 1]
        )

    @pytest.mark.parametrize("classes", [["one"], ["a", "a"], ["a", "b", "c"], []])
    def test_there_are_two(self, classes):
        with pytest.raises(gw.errors.ConfigurationError, match="two classes"):
            Foreign(logistic(), classes=classes)
        fitted = bernoulli().fit(np.eye(3), ["a", "b", "c"])
        with pytest.raises(gw.errors.ConfigurationError, match="two classes"):
            Foreign(fitted)

    def test_a_regressor_has_none(self):
        with pytest.raises(gw.errors.ConfigurationError, match="no classifier"):
            Foreign(linear_model.LinearRegression(), classes=[0, 1])
