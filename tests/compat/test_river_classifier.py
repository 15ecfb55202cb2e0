"""The classifier for river."""

import copy
import pickle
import random
from typing import Any

import numpy as np
import pytest

import groupwise as gw

pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import checks, compose, datasets, evaluate, metrics, preprocessing, stream  # noqa: E402

from groupwise.compat.river import GroupwiseClassifier  # noqa: E402

GROUPS: list[str | gw.groups.Group] = ["sex", gw.cut("age", [35, 50])]
FIGURES = ("rounds", "loss", "best_loss", "regret", "certificate", "delay")
COLOURS = ["red", "green", "blue"]
SEGMENTS = ["brickface", "cement", "foliage", "grass", "path", "sky", "window"]


def rows(count, names=(False, True), seed=0):
    generator = random.Random(seed)
    for _ in range(count):
        row: dict[str, Any] = {
            "age": generator.uniform(18, 64),
            "sex": generator.choice(["male", "female"]),
            "u": generator.uniform(0, 1),
        }
        likely = 0.2 + 0.7 * (row["u"] if row["sex"] == "male" else 1 - row["u"])
        place = sum(generator.random() < likely for _ in range(len(names) - 1))
        yield row, names[place]


def declared(names=(False, True)):
    """The model that the adapter should be."""
    groups = [gw.by("sex"), gw.cut("age", [35, 50])]
    return gw.Groupwise(groups, loss=gw.losses.Log(classes=names))


def table(model):
    return [[line[figure] for figure in FIGURES] for line in model.regret()]


class TestRiversChecks:
    @pytest.mark.parametrize(
        "check", list(checks.yield_checks(GroupwiseClassifier())), ids=lambda check: check.__name__
    )
    def test_two_classes(self, check):
        check(GroupwiseClassifier().clone())

    @pytest.mark.slow
    def test_many_classes(self):
        """The labels of the suite are booleans and, for more than two classes, those of images."""
        model = GroupwiseClassifier(classes=[False, True, *SEGMENTS])
        assert {y for _, y in datasets.ImageSegments().take(1_000)} == set(SEGMENTS)
        checks.check_estimator(model)

    def test_none_is_skipped(self):
        assert GroupwiseClassifier()._unit_test_skips() == set()
        assert not GroupwiseClassifier()._multiclass
        assert not GroupwiseClassifier(classes=["no", "yes"])._multiclass
        assert GroupwiseClassifier(classes=COLOURS)._multiclass


@pytest.mark.parametrize("names", [(False, True), ("no", "yes"), COLOURS], ids=len)
class TestTheSameAsTheModel:
    def test_loop(self, names):
        adapter, model = GroupwiseClassifier(GROUPS, classes=names), declared(names)
        for row, label in rows(80, names):
            ticket = model.predict(row)
            assert adapter.predict_proba_one(row) == ticket.prediction
            assert adapter.predict_one(row) == max(ticket.prediction, key=ticket.prediction.get)
            adapter.learn_one(row, label)
            model.learn(ticket, label)
            assert not adapter._tickets
        assert table(adapter) == table(model)

    def test_many_at_a_time(self, names):
        adapter, model = GroupwiseClassifier(GROUPS, classes=names), declared(names)
        data = list(rows(90, names))
        for start in range(0, 90, 30):
            part = data[start : start + 30]
            frame = pd.DataFrame([row for row, _ in part], index=range(100, 130))
            adapter.learn_many(frame, pd.Series([label for _, label in part]))
            for row, label in part:
                model.learn_one(row, label)
        assert table(adapter) == table(model)
        shares, likeliest = adapter.predict_proba_many(frame), adapter.predict_many(frame)
        assert shares.columns.tolist() == list(names)
        assert shares.index.tolist() == likeliest.index.tolist() == frame.index.tolist()
        for (row, _), share, name in zip(part, shares.to_numpy(), likeliest, strict=True):
            expected = model.predict_one(row)
            assert share.tolist() == [*expected.values()]
            assert name == max(expected, key=expected.get)

    def test_late_labels(self, names):
        """As many tickets settled by hand, in the order in which river reveals the labels."""
        adapter, model = GroupwiseClassifier(GROUPS, classes=names), declared(names)
        evaluate.progressive_val_score(rows(60, names), adapter, metrics.Accuracy(), delay=9)
        tickets = {}
        for i, row, label in stream.simulate_qa(rows(60, names), moment=None, delay=9):
            if label is None:
                tickets[i] = model.predict(row)
            else:
                model.learn(tickets.pop(i), label)
        assert table(adapter) == table(model)
        assert any(line["delay"] != 0.0 for line in adapter.regret())
        assert not adapter._tickets

    def test_batches_predicted_before(self, names):
        """Labels of a batch settle what was predicted for it, and are all checked before."""
        one, many = (GroupwiseClassifier(GROUPS, classes=names) for _ in range(2))
        data = list(rows(40, names))
        frame = pd.DataFrame([row for row, _ in data])
        many.predict_proba_many(frame)
        for row, _ in data:
            one.predict_proba_one(row)
        before = pickle.dumps(many)
        labels = [label for _, label in data]
        with pytest.raises(gw.errors.LabelError, match="row 39: Label 'other'"):
            many.learn_many(frame, pd.Series([*labels[:-1], "other"], dtype=object))
        assert pickle.dumps(many) == before
        many.learn_many(frame, pd.Series(labels))
        for row, label in data:
            one.learn_one(row, label)
        assert table(one) == table(many)
        assert not many._tickets


class TestClasses:
    def test_before_any_label(self):
        assert GroupwiseClassifier().predict_proba_one({"u": 1.0}) == {False: 0.5, True: 0.5}
        assert GroupwiseClassifier().predict_one({"u": 1.0}) is False
        model = GroupwiseClassifier(classes=COLOURS)
        assert list(model.predict_proba_one({"u": 1.0})) == COLOURS
        empty = pd.DataFrame({"u": []})
        assert model.predict_proba_many(empty).columns.tolist() == COLOURS
        assert model.predict_many(empty).tolist() == []
        model.learn_many(empty, pd.Series([], dtype=object))

    @pytest.mark.parametrize("label", [True, 1, 1.0, np.True_, np.int64(1), np.float64(1.0)])
    def test_what_is_true(self, label):
        model, other = GroupwiseClassifier(), GroupwiseClassifier()
        model.learn_one({"u": 1.0}, label)
        other.learn_one({"u": 1.0}, True)
        assert model.predict_proba_one({"u": 1.0}) == other.predict_proba_one({"u": 1.0})
        assert list(model.predict_proba_one({"u": 1.0})) == [False, True]

    @pytest.mark.parametrize("label", ["yes", 2, 0.5, None, float("nan"), [True], "True"])
    def test_what_is_no_class(self, label):
        model = GroupwiseClassifier(["sex"])
        model.predict_proba_one({"sex": "male", "u": 1.0})
        for row in ({"sex": "male", "u": 1.0}, {"sex": "male", "u": 2.0}):
            with pytest.raises(gw.errors.LabelError):
                model.learn_one(row, label)
        frame = pd.DataFrame({"sex": ["male", "female"], "u": [0.1, 0.2]})
        series = pd.Series([True, label], dtype=object)
        with pytest.raises(gw.errors.LabelError):
            model.learn_many(frame, series)
        assert len(model._tickets) == 1
        assert model.regret().rows == []

    def test_the_error_says_what_to_do(self):
        with pytest.raises(
            gw.errors.LabelError,
            match=r"'yes' is none of the classes False, True\. .*classes=\[\.\.\.\]",
        ):
            GroupwiseClassifier().learn_one({"u": 1.0}, "yes")  # names are to be declared
        model = GroupwiseClassifier(classes=["no", "yes"])
        model.learn_one({"u": 1.0}, "yes")
        assert model.predict_one({"u": 1.0}) == "yes"

    @pytest.mark.parametrize("classes", [["one"], ["a", "a"], "ab", [None, 1], 3])
    def test_what_cannot_be_classes(self, classes):
        with pytest.raises(gw.errors.ConfigurationError):
            GroupwiseClassifier(classes=classes).learn_one({"u": 1.0}, "a")

    @pytest.mark.parametrize("names", [(False, True), COLOURS], ids=len)
    def test_a_single_class(self, names):
        model = GroupwiseClassifier(GROUPS, classes=names)
        for row, _ in rows(60):
            model.learn_one(row, names[-1])
        shares = model.predict_proba_one(row)
        assert list(shares) == list(names)
        assert shares[names[-1]] > 0.9
        for line in model.regret():
            assert line["regret"] <= line["certificate"]
            assert line["status"] in ("proved", "loose", "vacuous")

    def test_unsound_parts_are_refused(self):
        with pytest.raises(gw.errors.ConfigurationError, match="Specialists"):
            GroupwiseClassifier(aggregator=gw.aggregators.AdaNormalHedge()).predict_one({"u": 1.0})


class TestOnePrediction:
    """The class and the probabilities, asked for one after the other."""

    row: dict[str, Any] = {"sex": "male", "u": 1.0}  # noqa: RUF012

    @pytest.mark.parametrize("first", ["predict_one", "predict_proba_one"])
    def test_is_one(self, first):
        second = {"predict_one", "predict_proba_one"} - {first}
        model = GroupwiseClassifier(["sex"])
        getattr(model, first)(self.row)
        getattr(model, *second)(dict(reversed(self.row.items())))
        assert len(model._tickets) == 1
        model.learn_one(self.row, True)
        assert not model._tickets

    def test_the_same_asked_twice_is_two(self):
        model = GroupwiseClassifier(["sex"])
        for method in ("predict_one", "predict_one", "predict_proba_one", "predict_one"):
            getattr(model, method)(self.row)
        assert len(model._tickets) == 3

    def test_after_a_label_it_is_another(self):
        model = GroupwiseClassifier(["sex"])
        before = model.predict_proba_one(self.row)
        model.learn_one({"sex": "male", "u": 2.0}, True)
        assert model.predict_one(self.row) is True
        assert len(model._tickets) == 2
        assert before == {False: 0.5, True: 0.5}

    def test_nothing_needs_to_be_remembered(self):
        model = GroupwiseClassifier(["sex"], outstanding=0)
        assert model.predict_proba_one(self.row) == {False: 0.5, True: 0.5}
        assert model.predict_one(self.row) is False
        assert not model._tickets


class TestTools:
    def test_pipelines_and_metrics(self):
        keep: Any = compose.Select("sex")
        scale = compose.Select("age", "u") | preprocessing.StandardScaler()
        model = (keep + scale) | GroupwiseClassifier(["sex"])
        metric = metrics.LogLoss() + metrics.ROCAUC() + metrics.Accuracy()
        evaluate.progressive_val_score(rows(300), model, metric)
        log_loss, area, accuracy = metric.get()
        assert log_loss < np.log(2)
        assert min(area, accuracy) > 0.6
        inside = model["GroupwiseClassifier"]
        assert sorted(line["group"] for line in inside.regret()) == [
            "always_on",
            "sex=female",
            "sex=male",
        ]

    def test_the_books_say_what_river_measures(self):
        model, metric = GroupwiseClassifier(GROUPS), metrics.LogLoss()
        evaluate.progressive_val_score(rows(200), model, metric)
        assert model.regret()["always_on"]["loss"] / 200 == pytest.approx(metric.get())
        (everybody,) = (line for line in model.calibration() if line["group"] == "always_on")
        assert everybody["log_loss"] == pytest.approx(metric.get())

    def test_copies_go_on_alike(self):
        model = GroupwiseClassifier(GROUPS, classes=COLOURS)
        data = list(rows(40, COLOURS))
        for row, label in data[:20]:
            model.predict_proba_one(row)
            model.learn_one(row, label)
        model.predict_proba_one(data[20][0])
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for row, label in data[20:]:
            expected = model.predict_proba_one(row)
            model.learn_one(row, label)
            for other in others:
                assert other.predict_proba_one(row) == expected
                other.learn_one(row, label)
        assert all(table(other) == table(model) for other in others)
        fresh = model.clone()
        assert fresh.classes == COLOURS
        assert fresh.regret().rows == []
