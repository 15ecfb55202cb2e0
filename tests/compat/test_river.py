"""The adapter for river."""

import copy
import datetime
import pickle
import random
from typing import Any

import numpy as np
import pytest

import groupwise as gw

pytest.importorskip("river")
pd = pytest.importorskip("pandas")

from river import checks, compose, evaluate, metrics, preprocessing, stream  # noqa: E402

from groupwise.compat.river import GroupwiseRegressor  # noqa: E402

GROUPS: list[str | gw.groups.Group] = ["sex", gw.cut("age", [35, 50])]
FIGURES = ("rounds", "loss", "best_loss", "regret", "certificate", "delay")


def rows(count, seed=0):
    generator = random.Random(seed)
    for _ in range(count):
        row: dict[str, Any] = {
            "age": generator.uniform(18, 64),
            "sex": generator.choice(["male", "female"]),
        }
        row["u"] = generator.uniform(0, 1)
        label = 0.2 + 0.5 * row["u"] * (row["sex"] == "male") + generator.gauss(0, 0.05)
        yield row, min(1.0, max(0.0, label))


def table(model):
    return [[line[figure] for figure in FIGURES] for line in model.regret()]


class TestRiversChecks:
    @pytest.mark.parametrize(
        "check", list(checks.yield_checks(GroupwiseRegressor())), ids=lambda check: check.__name__
    )
    def test_unknown_range(self, check):
        check(GroupwiseRegressor().clone())

    def test_known_range(self):
        checks.check_estimator(GroupwiseRegressor(range=(0, 100)))

    def test_groups_and_learners(self):
        """But for the checks that leave the groups' own column out of rows, which is an error."""
        model = GroupwiseRegressor(
            groups=(gw.cut("rasmussen", [45]),),
            range=(0, 100),
            learner=gw.learners.Ridge(forward=True),
            aggregator=gw.aggregators.Specialists(),
        )
        for check in checks.yield_checks(model):
            drops = "appearing" in check.__name__ or "emerging" in check.__name__
            if not drops and check.__name__ != "check_learn_many_matches_learn_one":
                check(model.clone())

    def test_the_order_of_fields_does_not_matter(self):
        one, other = (GroupwiseRegressor(["sex"], range=(0, 1)) for _ in range(2))
        for row, label in rows(50):
            turned = dict(random.sample(list(row.items()), len(row)))
            assert one.predict_one(row) == other.predict_one(turned)
            one.learn_one(row, label)
            other.learn_one(turned, label)

    def test_none_is_skipped(self):
        assert GroupwiseRegressor()._unit_test_skips() == set()


class TestTheSameAsTheModel:
    def test_loop(self):
        adapter = GroupwiseRegressor(GROUPS, range=(0, 1))
        model = gw.Groupwise([gw.by("sex"), gw.cut("age", [35, 50])])
        for row, label in rows(80):
            ticket = model.predict(row)
            assert adapter.predict_one(row) == ticket.prediction
            adapter.learn_one(row, label)
            model.learn(ticket, label)
        assert table(adapter) == table(model)

    def test_the_intercept_can_be_left_out(self):
        adapter = GroupwiseRegressor(GROUPS, range=(0, 1), intercept=False)
        model = gw.Groupwise([gw.by("sex"), gw.cut("age", [35, 50])], intercept=False)
        for row, label in rows(40):
            assert adapter.predict_one(row) == model.predict_one(row)
            adapter.learn_one(row, label)
            model.learn_one(row, label)
        assert "(intercept)" not in adapter.model.feature_names

    def test_fields_that_are_not_text_are_named(self):
        adapter = GroupwiseRegressor([0], range=(0, 1))  # type: ignore[list-item]
        with pytest.raises(gw.GroupwiseError):
            adapter.predict_one({0: 1.0})
        adapter = GroupwiseRegressor(["0"], range=(0, 1))
        adapter.learn_one({0: "a", 1: 0.5}, 0.3)
        assert [line["group"] for line in adapter.regret()] == ["0=a", "always_on"]


class TestManyAtATime:
    def test_learn_many_is_the_loop(self):
        one, many = (GroupwiseRegressor(GROUPS, range=(0, 1)) for _ in range(2))
        data = list(rows(120))
        for start in range(0, 120, 30):
            part = data[start : start + 30]
            frame = pd.DataFrame([row for row, _ in part])
            many.learn_many(frame, pd.Series([label for _, label in part]))
            for row, label in part:
                one.learn_one(row, label)
            assert many.predict_many(frame).tolist() == [one.predict_one(row) for row, _ in part]
            # drop the predictions just made, which were for looking only
            for model in (one, many):
                for ticket in [ticket for _, ticket in model._tickets.values()]:
                    model.model.forget(ticket)
                model._tickets.clear()
                model._places.clear()
        assert table(one) == table(many)
        assert one.label_range == many.label_range

    def test_predictions_of_a_batch_are_charged_as_they_were_made(self):
        one, many = (GroupwiseRegressor(GROUPS, range=(0, 1)) for _ in range(2))
        data = list(rows(60))
        for start in range(0, 60, 20):
            part = data[start : start + 20]
            frame = pd.DataFrame([row for row, _ in part], index=range(100, 120))
            predicted = many.predict_many(frame)
            assert predicted.index.tolist() == frame.index.tolist()
            assert predicted.tolist() == [one.predict_one(row) for row, _ in part]
            many.learn_many(frame, pd.Series([label for _, label in part]))
            for row, label in part:
                one.learn_one(row, label)
        assert table(one) == table(many)
        assert any(line["delay"] != 0.0 for line in many.regret())

    def test_empty_and_uneven_batches(self):
        model = GroupwiseRegressor(GROUPS, range=(0, 1))
        empty = pd.DataFrame({"sex": [], "age": [], "u": []})
        model.learn_many(empty, pd.Series([], dtype=float))
        assert model.predict_many(empty).tolist() == []
        with pytest.raises(gw.GroupwiseError):
            model.learn_many(pd.DataFrame({"u": [1.0]}), pd.Series([1.0, 0.0]))

    def test_a_batch_with_a_bad_label_changes_nothing(self):
        model = GroupwiseRegressor(GROUPS, range=(0, 1))
        data = list(rows(20))
        frame = pd.DataFrame([row for row, _ in data])
        model.learn_many(frame, pd.Series([label for _, label in data]))
        before = pickle.dumps(model)
        with pytest.raises(gw.errors.LabelError):
            model.learn_many(frame, pd.Series([0.5] * 19 + [7.0]))
        assert pickle.dumps(model) == before


class TestDelayedLabels:
    @pytest.mark.parametrize("delay", [1, 7, 25])
    def test_the_books_say_what_was_played(self, delay):
        """As many tickets settled by hand, in the order in which river reveals the labels."""
        adapter = GroupwiseRegressor(GROUPS, range=(0, 1))
        model = gw.Groupwise([gw.by("sex"), gw.cut("age", [35, 50])])
        evaluate.progressive_val_score(rows(90), adapter, metrics.MAE(), delay=delay)
        tickets = {}
        for i, row, label in stream.simulate_qa(rows(90), moment=None, delay=delay):
            if label is None:
                tickets[i] = model.predict(row)
            else:
                model.learn(tickets.pop(i), label)
        assert table(adapter) == table(model)
        if delay > 1:
            assert any(line["delay"] != 0.0 for line in adapter.regret())
        assert not adapter._tickets
        assert not adapter._places

    def test_moments_and_delays_in_time(self):
        start = datetime.datetime(2024, 1, 1)
        data = [
            ({**row, "when": start + datetime.timedelta(hours=i)}, label)
            for i, (row, label) in enumerate(rows(50))
        ]
        model = GroupwiseRegressor(GROUPS, range=(0, 1), features=["age", "u"])
        metric = evaluate.progressive_val_score(
            data, model, metrics.MAE(), moment="when", delay=datetime.timedelta(hours=5)
        )
        assert 0.0 < metric.get() < 0.5
        assert model.regret()["always_on"]["rounds"] == 50

    def test_equal_rows_are_settled_in_order(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1))
        row = {"sex": "male", "u": 1.0}
        model.predict_one(row)
        model.learn_one({"sex": "female", "u": 1.0}, 1.0)
        model.predict_one(dict(reversed(row.items())))
        first, second = (ticket for _, ticket in model._tickets.values())
        model.learn_one(row, 1.0)
        assert first.number in model.model._settled
        assert second.number not in model.model._settled

    def test_memory_is_bounded(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1), outstanding=5)
        for row, _ in rows(50):
            model.predict_one(row)
        assert len(model._tickets) == 5
        assert sum(map(len, model._places.values())) == 5
        assert model.model._settled.intervals == [[0, 45]]

    def test_nothing_needs_to_be_remembered(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1), outstanding=0)
        evaluate.progressive_val_score(rows(30), model, metrics.MAE())
        other = GroupwiseRegressor(["sex"], range=(0, 1))
        evaluate.progressive_val_score(rows(30), other, metrics.MAE())
        assert table(model) == table(other)

    def test_a_wrong_label_leaves_the_prediction_outstanding(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1))
        row, label = next(rows(1))
        model.predict_one(row)
        with pytest.raises(gw.errors.LabelError):
            model.learn_one(row, 3.0)
        assert len(model._tickets) == 1
        model.learn_one(row, label)
        assert not model._tickets

    def test_rows_that_cannot_be_hashed(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1), features=["u"])
        row = {"sex": "male", "u": 1.0, "tags": ["a", "b"]}
        model.predict_one(row)
        model.learn_one(copy.deepcopy(row), 0.5)
        assert not model._tickets

    def test_half_a_limit_is_none(self):
        with pytest.raises(gw.errors.ConfigurationError):
            GroupwiseRegressor(outstanding=-1).predict_one({"u": 1.0})


class TestUnknownRange:
    def test_reported_unclipped_and_void(self):
        model = GroupwiseRegressor(["sex"])
        for row, label in rows(60):
            model.learn_one(row, 1000 * label - 200)
        labels = [1000 * label - 200 for _, label in rows(60)]
        assert model.label_range == (min(labels), max(labels))
        assert {line["status"] for line in model.regret()} == {"void"}
        assert model.predict_one({"sex": "male", "age": 40, "u": 1000.0}) > max(labels)

    def test_labels_that_are_no_numbers_are_refused(self):
        model = GroupwiseRegressor()
        labels: list[Any] = [float("nan"), float("inf"), "high", None]
        for label in labels:
            with pytest.raises(gw.errors.LabelError):
                model.learn_one({"u": 1.0}, label)
        assert model.label_range is None

    def test_half_a_range_is_none(self):
        with pytest.raises(gw.errors.ConfigurationError):
            GroupwiseRegressor(range=3).predict_one({"u": 1.0})  # type: ignore[arg-type]


class TestPipelines:
    def test_group_columns_must_survive(self):
        keep: Any = compose.Select("sex")
        scale = compose.Select("age", "u") | preprocessing.StandardScaler()
        model = (keep + scale) | GroupwiseRegressor(["sex"], range=(0, 1))
        metric = evaluate.progressive_val_score(rows(200), model, metrics.MAE())
        assert metric.get() < 0.1
        names = [line["group"] for line in model["GroupwiseRegressor"].regret()]
        assert sorted(names[:-1]) == ["sex=female", "sex=male"]

    def test_mini_batches(self):
        data = list(rows(60))
        frame = pd.DataFrame([{"age": row["age"], "u": row["u"]} for row, _ in data])
        model = preprocessing.StandardScaler() | GroupwiseRegressor(range=(0, 1))
        model.learn_many(frame, pd.Series([label for _, label in data]))
        assert np.isfinite(model.predict_many(frame)).all()

    def test_copies_go_on_alike(self):
        model = GroupwiseRegressor(GROUPS, range=(0, 1))
        data = list(rows(60))
        for row, label in data[:30]:
            model.predict_one(row)
            model.learn_one(row, label)
        model.predict_one(data[30][0])
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model))]
        for row, label in data[30:]:
            expected = model.predict_one(row)
            model.learn_one(row, label)
            for other in others:
                assert other.predict_one(row) == expected
                other.learn_one(row, label)
        assert all(table(other) == table(model) for other in others)


class TestIntervals:
    def test_asking_for_both_is_one_prediction(self):
        model = GroupwiseRegressor(["sex"], range=(0, 1), intervals=0.9)
        row = {"sex": "male", "age": 0.3}
        prediction, interval = model.predict_one(row), model.predict_interval_one(row)
        assert model.model.issued == 1
        assert interval is not None
        assert interval[0] <= prediction <= interval[1]
        model.predict_interval_one(row)
        assert model.model.issued == 2
        model.learn_one(row, 0.4)
        model.learn_one(row, 0.5)
        assert model.coverage()["sex=male"]["rounds"] == 2.0

    def test_there_are_none_unless_asked_for(self):
        row = {"sex": "male", "age": 0.3}
        with pytest.raises(gw.errors.ConfigurationError, match="give intervals"):
            GroupwiseRegressor(["sex"], range=(0, 1)).predict_interval_one(row)
        with pytest.raises(gw.errors.ConfigurationError, match="range=\\(low, high\\)"):
            GroupwiseRegressor(["sex"], intervals=0.9).predict_interval_one(row)
        for range in (None, (0, 1)):
            with pytest.raises(gw.errors.ConfigurationError, match="give intervals"):
                GroupwiseRegressor(["sex"], range, intervals=False).predict_interval_one(row)

    def test_river_s_checks(self):
        checks.check_estimator(GroupwiseRegressor(range=(0, 100), intervals=0.9))


def test_windows():
    model = GroupwiseRegressor(["sex"], range=(0, 1), windows=gw.Windows(4))
    plain = gw.Groupwise([gw.by("sex")], loss=gw.losses.Square(0, 1), windows=gw.Windows(4))
    assert model._get_params()["windows"] == gw.Windows(4)
    for t in range(30):
        row, label = {"age": t / 30, "sex": "fm"[t % 2]}, float(t % 7 > 2)
        assert model.predict_one(row) == plain.predict_one(row)
        model.learn_one(row, label)
        plain.learn_one(row, label)
    assert model.regret(last=5).rows == plain.regret(last=5).rows
    assert model.regret(last=5)["sex=f"]["length"] == 7
    with pytest.raises(gw.errors.ConfigurationError, match="give True"):
        GroupwiseRegressor(["sex"], (0, 1), windows=3).predict_one(row)  # type: ignore[arg-type]
