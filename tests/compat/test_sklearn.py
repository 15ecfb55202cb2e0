"""The adapter for scikit-learn."""

import pickle

import numpy as np
import pytest

import groupwise as gw

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from groupwise.compat import sklearn as adapter
from groupwise.compat.sklearn import GroupwiseRegressor


def columns(rows=150, seed=0):
    generator = np.random.default_rng(seed)
    sex = np.where(generator.random(rows) < 0.5, "male", "female")
    age = generator.integers(18, 65, rows)
    bmi = generator.normal(30, 5, rows)
    label = 10 * age + np.where(sex == "male", 20 * bmi, 300) + generator.normal(0, 10, rows)
    return {"age": age, "bmi": bmi, "sex": sex.tolist()}, label


GROUPS: list[str | int | gw.groups.Group] = ["sex", gw.cut("age", [35, 50])]
RANGE = (0, 2500)


def figures(regressor):
    return [tuple(line.values()) for line in regressor.regret()]


class TestScikitLearnsChecks:
    @pytest.mark.parametrize(
        "estimator",
        [
            GroupwiseRegressor(),
            GroupwiseRegressor(learner=gw.learners.Ridge(penalty=0.1, forward=True)),
            GroupwiseRegressor(groups=[gw.cut("x0", [0.0])], indicators=False),
        ],
        ids=["default", "forward", "groups"],
    )
    def test_all_pass(self, estimator, monkeypatch):
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it one check is skipped
        results = check_estimator(estimator, on_fail=None)
        failed = {line["check_name"]: line for line in results if line["status"] != "passed"}
        allowed = {"check_array_api_input"}  # skipped where scipy was imported before
        assert set(failed) <= allowed
        assert all(line["status"] == "skipped" for line in failed.values())


class TestFrames:
    def frames(self):
        data, label = columns()
        pandas = pytest.importorskip("pandas")
        polars = pytest.importorskip("polars")
        pyarrow = pytest.importorskip("pyarrow")
        frame = pandas.DataFrame(data)
        yield frame, label
        yield polars.DataFrame(data), polars.Series(label)
        yield pyarrow.table(data), label
        yield frame.convert_dtypes(), pandas.Series(label)
        yield frame.astype({"sex": "category"}), label.tolist()

    def test_all_libraries_give_identical_numbers(self):
        found = []
        for frame, label in self.frames():
            model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
            assert model.feature_names_in_.tolist() == ["age", "bmi", "sex"]
            assert model.n_features_in_ == 3
            found.append((model.predict(frame).tolist(), figures(model)))
        assert all(one == found[0] for one in found)

    def test_the_same_as_the_model(self):
        data, label = columns()
        pandas = pytest.importorskip("pandas")
        model = gw.Groupwise([gw.by("sex"), gw.cut("age", [35, 50])], loss=gw.losses.Square(*RANGE))
        rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        for row, y in zip(rows, label, strict=True):
            model.learn_one(row, y)
        regressor = GroupwiseRegressor(GROUPS, range=RANGE).fit(pandas.DataFrame(data), label)
        assert figures(regressor) == [tuple(line.values()) for line in model.regret()]
        found = regressor.predict(pandas.DataFrame(data))
        assert found.tolist() == [model.predict_one(row) for row in rows]

    def test_arrays_and_frames_agree(self):
        pandas = pytest.importorskip("pandas")
        generator = np.random.default_rng(0)
        X, y = generator.normal(size=(80, 3)), generator.random(80)
        array = GroupwiseRegressor([gw.cut("x0", [0])], range=(0, 1)).fit(X, y)
        frame = GroupwiseRegressor([gw.cut("x0", [0])], range=(0, 1))
        table = pandas.DataFrame(X, columns=["x0", "x1", "x2"])
        frame.fit(table, y)
        assert array.predict(X).tolist() == frame.predict(table).tolist()
        numbered = pandas.DataFrame(X)
        assert array.predict(numbered).tolist() == array.predict(X).tolist()

    def test_without_any_library_of_frames(self, monkeypatch):
        generator = np.random.default_rng(0)
        X, y = generator.normal(size=(40, 3)), generator.random(40)
        usual = GroupwiseRegressor([gw.cut("x1", [0])], range=(0, 1)).fit(X, y)
        monkeypatch.setattr(adapter, "find_spec", lambda name: None)
        plain = GroupwiseRegressor([gw.cut("x1", [0])], range=(0, 1)).fit(X, y)
        assert figures(plain) == figures(usual)
        before = pickle.dumps(plain)
        with pytest.raises(gw.errors.LabelError):
            plain.partial_fit(X, np.append(y[:-1], 9.0))
        assert pickle.dumps(plain) == before

    def test_columns_by_number(self):
        for frame, label in self.frames():
            named = GroupwiseRegressor(["sex"], range=RANGE, features=["age", "bmi"])
            numbered = GroupwiseRegressor([2], range=RANGE, features=[0, 1])
            scaled = GroupwiseRegressor([2], range=RANGE, features={0: (18, 65), "bmi": (0, 60)})
            one = named.fit(frame, label).predict(frame)
            assert one.tolist() == numbered.fit(frame, label).predict(frame).tolist()
            assert np.isfinite(scaled.fit(frame, label).predict(frame)).all()

    def test_a_column_that_is_not_there(self):
        for frame, label in self.frames():
            for groups in ([7], [-1], ["colour"]):
                with pytest.raises(gw.GroupwiseError):
                    GroupwiseRegressor(groups, range=RANGE).fit(frame, label)
            model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
            with pytest.raises(ValueError, match="feature names"):
                model.predict(frame[["age", "bmi"]] if hasattr(frame, "columns") else frame[:0])
            break

    def test_no_rows(self):
        for frame, label in self.frames():
            model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
            with pytest.raises(ValueError, match="0 sample"):
                model.predict(frame[:0])


class TestFitting:
    def test_partial_fits_are_one_fit(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        whole = GroupwiseRegressor(GROUPS).fit(frame, label)
        parts = GroupwiseRegressor(GROUPS)
        for start in range(0, 150, 40):
            parts.partial_fit(frame[start : start + 40], label[start : start + 40])
        assert parts.predict(frame).tolist() == whole.predict(frame).tolist()
        assert figures(parts) == figures(whole)
        assert parts.label_range_ == whole.label_range_ == (label.min(), label.max())

    def test_fit_starts_afresh(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
        first = figures(model)
        assert figures(model.fit(frame, label)) == first

    def test_a_partial_fit_that_raises_changes_nothing(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
        before = pickle.dumps(model)
        with pytest.raises(gw.errors.LabelError, match="row 149"):
            model.partial_fit(frame, np.append(label[:-1], 1e9))
        assert pickle.dumps(model) == before

    def test_predict_learns_nothing(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        model = GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label)
        before = figures(model)
        first = model.predict(frame)
        assert model.predict(frame).tolist() == first.tolist()
        assert figures(model) == before

    def test_nothing_before_fit(self):
        for call in (lambda m: m.predict([[1.0]]), lambda m: m.regret()):
            with pytest.raises(NotFittedError):
                call(GroupwiseRegressor())

    def test_an_unknown_range_is_reported_and_void(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        model = GroupwiseRegressor(GROUPS).fit(pandas.DataFrame(data), label)
        assert {line["status"] for line in model.regret()} == {"void"}
        assert model.score(pandas.DataFrame(data), label) > 0.9

    def test_certificates_hold_with_a_range(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        model = GroupwiseRegressor(GROUPS, range=RANGE).fit(pandas.DataFrame(data), label)
        for line in model.regret():
            assert line["regret"] <= line["certificate"]
            assert line["status"] in ("proved", "loose", "vacuous")


def test_a_timestamp_among_the_columns():
    """Numbers near 1e9 made the learners' state none at all, and the score −11.8."""
    pandas = pytest.importorskip("pandas")
    data, label = columns()
    frame = pandas.DataFrame({"when": 1.7e9 + 60.0 * np.arange(len(label)), **data})
    assert GroupwiseRegressor(GROUPS, range=RANGE).fit(frame, label).score(frame, label) > 0.9
    assert GroupwiseRegressor().fit(frame, label).score(frame, label) > 0.9


class TestTools:
    def test_pipelines_searches_and_clones(self):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        scaled = make_column_transformer(
            (StandardScaler(), ["bmi"]),
            remainder="passthrough",
            verbose_feature_names_out=False,
        ).set_output(transform="pandas")
        model = make_pipeline(scaled, GroupwiseRegressor(GROUPS, range=RANGE))
        assert cross_val_score(model, frame, label).mean() > 0.9
        learners = [gw.learners.Ridge(0.1), gw.learners.Ridge(1000.0)]
        search = GridSearchCV(model, {"groupwiseregressor__learner": learners}, cv=3)
        search.fit(frame, label)
        assert search.best_params_ == {"groupwiseregressor__learner": gw.learners.Ridge(0.1)}
        assert clone(model).get_params()["groupwiseregressor__range"] == RANGE

    def test_the_model_inside_can_be_saved(self, tmp_path):
        pandas = pytest.importorskip("pandas")
        data, label = columns()
        frame = pandas.DataFrame(data)
        model = GroupwiseRegressor(GROUPS).fit(frame, label)
        model.model_.save(tmp_path / "model.gw")
        row = frame.iloc[0].to_dict()
        restored = gw.load(tmp_path / "model.gw")
        assert restored.predict_one(row) == model.predict(frame[:1])[0]


class TestIntervals:
    def test_they_are_the_model_s(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.integers(0, 2, 400), rng.random((400, 2))])
        y = np.clip(X[:, 1] + 0.1 * rng.normal(size=400) * (1 + 2 * X[:, 0]), -1, 2)
        regressor = GroupwiseRegressor(groups=[0], range=(-1, 2), intervals=0.8).fit(X, y)
        found, predictions = regressor.predict_interval(X[:50]), regressor.predict(X[:50])
        assert found.shape == (50, 2)
        assert ((found[:, 0] <= predictions) & (predictions <= found[:, 1])).all()
        wide = np.diff(found[X[:50, 0] == 1]).mean()
        assert wide > np.diff(found[X[:50, 0] == 0]).mean()
        assert abs(regressor.coverage()["always_on"]["error"]) < 0.05

    def test_there_are_none_unless_asked_for(self):
        X, y = np.ones((5, 1)), np.zeros(5)
        with pytest.raises(gw.errors.ConfigurationError, match="give intervals"):
            GroupwiseRegressor(range=(0, 1)).fit(X, y).predict_interval(X)
        with pytest.raises(gw.errors.ConfigurationError, match="range="):
            GroupwiseRegressor(intervals=0.9).fit(X, y)
        with pytest.raises(gw.errors.ConfigurationError, match="give intervals"):
            GroupwiseRegressor(intervals=False).fit(X, y).predict_interval(X)


def test_windows():
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.integers(0, 2, 60), rng.random((60, 2))])
    y = rng.random(60)
    regressor = GroupwiseRegressor(groups=[0], range=(0, 1), windows=gw.Windows(4))
    found = clone(regressor).fit(X[:50], y[:50]).partial_fit(X[50:], y[50:]).regret(last=9)
    assert found["always_on"]["length"] == 12
    assert found.rows == regressor.fit(X, y).regret(last=9).rows
    assert found.rows != GroupwiseRegressor([0], (0, 1), windows=True).fit(X, y).regret(last=9).rows
    with pytest.raises(gw.errors.ConfigurationError, match="windows=True"):
        GroupwiseRegressor(groups=[0], range=(0, 1)).fit(X, y).regret(last=9)
