"""The classifier for scikit-learn."""

import pickle
from typing import Any

import numpy as np
import pytest

import groupwise as gw

pytest.importorskip("sklearn")

from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from groupwise.compat import sklearn as adapter
from groupwise.compat.sklearn import GroupwiseClassifier

GROUPS: list[str | int | gw.groups.Group] = ["sex", gw.cut("age", [35, 50])]
TWO, THREE = ["no", "yes"], ["high", "low", "middle"]


def columns(names, rows=120, seed=0):
    generator = np.random.default_rng(seed)
    sex = np.where(generator.random(rows) < 0.5, "male", "female")
    age = generator.integers(18, 65, rows)
    bmi = generator.normal(0, 1, rows)
    slope = np.where(sex == "male", 2.0, -1.0) * bmi + (age - 40) / 20
    likely = 1 / (1 + np.exp(-slope))
    place = (generator.random((rows, len(names) - 1)) < likely[:, None]).sum(axis=1)
    return {"age": age, "bmi": bmi, "sex": sex.tolist()}, np.array(names)[place]


def frame_of(names=TWO, **more):
    pandas = pytest.importorskip("pandas")
    data, label = columns(names, **more)
    return pandas.DataFrame(data), label


def figures(model):
    return [tuple(line.values()) for line in model.regret()]


class TestScikitLearnsChecks:
    @pytest.mark.parametrize(
        "estimator",
        [
            GroupwiseClassifier(),
            GroupwiseClassifier(learner=[gw.learners.Logistic(0.1), gw.learners.Logistic(bound=4)]),
            GroupwiseClassifier(groups=[gw.cut("x0", [0.0])], indicators=False),
        ],
        ids=["default", "two learners", "groups"],
    )
    def test_all_pass(self, estimator, monkeypatch):
        monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it one check is skipped
        results = check_estimator(estimator, on_fail=None)
        failed = {line["check_name"]: line for line in results if line["status"] != "passed"}
        allowed = {"check_array_api_input"}  # skipped where scipy was imported before
        assert set(failed) <= allowed
        assert all(line["status"] == "skipped" for line in failed.values())

    def test_they_are_those_of_a_classifier_of_many_classes(self):
        tags = GroupwiseClassifier().__sklearn_tags__()
        assert tags.estimator_type == "classifier"
        assert tags.classifier_tags.multi_class
        assert not tags.classifier_tags.poor_score
        assert not tags.classifier_tags.multi_label


@pytest.mark.parametrize("names", [TWO, THREE], ids=len)
class TestTheSameAsTheModel:
    def test_all_libraries_of_frames(self, names):
        data, label = columns(names)
        pandas = pytest.importorskip("pandas")
        polars = pytest.importorskip("polars")
        pyarrow = pytest.importorskip("pyarrow")
        model = gw.Groupwise(
            [gw.by("sex"), gw.cut("age", [35, 50])], loss=gw.losses.Log(classes=names)
        )
        rows = [dict(zip(data, row, strict=True)) for row in zip(*data.values(), strict=True)]
        for row, y in zip(rows, label, strict=True):
            model.learn_one(row, y)
        expected = [[*model.predict_one(row).values()] for row in rows]
        frame = pandas.DataFrame(data)
        for table, y in (
            (frame, label),
            (frame.astype({"sex": "category"}), pandas.Series(label, dtype="category")),
            (polars.DataFrame(data), polars.Series(label)),
            (pyarrow.table(data), label.tolist()),
        ):
            classifier = GroupwiseClassifier(GROUPS).fit(table, y)
            assert classifier.classes_.tolist() == names
            assert classifier.predict_proba(table).tolist() == expected
            likeliest = [names[i] for i in np.argmax(expected, axis=1)]
            assert classifier.predict(table).tolist() == likeliest
            assert figures(classifier) == [tuple(line.values()) for line in model.regret()]

    def test_partial_fits_are_one_fit(self, names):
        frame, label = frame_of(names)
        whole, parts = (GroupwiseClassifier(GROUPS) for _ in range(2))
        whole.fit(frame, label)
        for start in range(0, 120, 40):
            stop = start + 40
            more = {"classes": names[::-1]} if start == 0 else {}
            parts.partial_fit(frame[start:stop], label[start:stop], **more)
        assert parts.classes_.tolist() == names
        assert parts.predict_proba(frame).tolist() == whole.predict_proba(frame).tolist()
        assert figures(parts) == figures(whole)

    def test_without_any_library_of_frames(self, names, monkeypatch):
        generator = np.random.default_rng(0)
        X, y = (
            generator.normal(size=(40, 3)),
            np.array(names)[generator.integers(len(names), size=40)],
        )
        usual = GroupwiseClassifier([gw.cut("x1", [0])]).fit(X, y)
        monkeypatch.setattr(adapter, "find_spec", lambda name: None)
        plain = GroupwiseClassifier([gw.cut("x1", [0])]).fit(X, y)
        assert figures(plain) == figures(usual)
        before = pickle.dumps(plain)
        with pytest.raises(gw.errors.LabelError):
            plain.partial_fit(X, np.append(y[:-1], "other"))
        assert pickle.dumps(plain) == before


class TestClasses:
    @pytest.mark.parametrize(
        "names",
        [
            np.array([False, True]),
            np.array([-1, 1]),
            np.array([0.0, 3.0]),
            np.array(["no", "yes"]),
            np.array(["no", "yes"], dtype=object),
            np.array([1, 2, 7, 9], dtype=np.uint8),
        ],
        ids=lambda names: f"{names.dtype}{len(names)}",
    )
    def test_of_any_kind(self, names):
        generator = np.random.default_rng(0)
        place = generator.integers(len(names), size=60)
        X = np.column_stack([place == i for i in range(len(names))]) + generator.normal(
            0, 0.1, (60, len(names))
        )
        classifier = GroupwiseClassifier().fit(X, names[place])
        assert classifier.classes_.dtype == names.dtype
        assert classifier.classes_.tolist() == names.tolist()
        found = classifier.predict(X)
        assert found.dtype == names.dtype
        assert classifier.score(X, names[place]) > 0.9
        shares = classifier.predict_proba(X)
        assert shares.shape == (60, len(names))
        assert shares.sum(axis=1) == pytest.approx(1.0)
        assert ((shares > 0.0) & (shares < 1.0)).all()

    def test_a_single_one_must_be_declared_with_another(self):
        frame, label = frame_of()
        only = np.full(len(label), "yes")
        with pytest.raises(gw.errors.ConfigurationError, match=r"one class, 'yes'.*partial_fit"):
            GroupwiseClassifier(GROUPS).fit(frame, only)
        with pytest.raises(gw.errors.ConfigurationError, match="0 names"):
            GroupwiseClassifier(GROUPS).partial_fit(frame, only, classes=[])
        classifier = GroupwiseClassifier(GROUPS).partial_fit(frame, only, classes=TWO)
        assert (classifier.predict_proba(frame)[:, 1] > 0.7).all()
        assert classifier.score(frame, only) == 1.0
        for line in classifier.regret():
            assert line["regret"] <= line["certificate"]

    def test_the_first_partial_fit_declares_them(self):
        frame, label = frame_of()
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            GroupwiseClassifier(GROUPS).partial_fit(frame, label)
        classifier = GroupwiseClassifier(GROUPS).partial_fit(frame, label, classes=TWO)
        classifier.partial_fit(frame, label, classes=["yes", "no"])
        with pytest.raises(ValueError, match="not those of before"):
            classifier.partial_fit(frame, label, classes=THREE)
        with pytest.raises(gw.errors.LabelError, match="one kind"):
            classifier.partial_fit(frame, label, classes=np.array(["no", 1], dtype=object))
        after = GroupwiseClassifier(GROUPS).fit(frame, label).partial_fit(frame, label)
        assert figures(after) == figures(classifier)

    @pytest.mark.parametrize(
        "wrong",
        [
            lambda y: np.append(y[:-1], "other"),
            lambda y: [*y[:-1], None],
            lambda y: y[:-1],
            lambda y: np.column_stack([y, y]),
            lambda y: np.linspace(0, 1, len(y)),
            lambda y: None,
        ],
        ids=["other", "missing", "short", "two columns", "numbers", "nothing"],
    )
    def test_bad_labels_change_nothing(self, wrong):
        frame, label = frame_of()
        classifier = GroupwiseClassifier(GROUPS).fit(frame, label)
        before = pickle.dumps(classifier)
        with pytest.raises(ValueError):
            classifier.partial_fit(frame, wrong(label))
        assert pickle.dumps(classifier) == before

    def test_a_class_never_declared_is_named(self):
        frame, label = frame_of()
        classifier = GroupwiseClassifier(GROUPS).fit(frame, label)
        with pytest.raises(gw.errors.LabelError, match="row 119: Label 'other' is none of the"):
            classifier.partial_fit(frame, np.append(label[:-1], "other"))

    def test_fit_starts_afresh(self):
        frame, label = frame_of()
        classifier = GroupwiseClassifier(GROUPS).fit(frame, label)
        first = figures(classifier)
        assert figures(classifier.fit(frame, label)) == first
        other, colour = frame_of(THREE)
        assert classifier.fit(other, colour).classes_.tolist() == THREE


class TestTools:
    def test_nothing_before_fit(self):
        calls: list[Any] = [
            lambda m: m.predict([[1.0]]),
            lambda m: m.predict_proba([[1.0]]),
            lambda m: m.regret(),
            lambda m: m.calibration(),
        ]
        for call in calls:
            with pytest.raises(NotFittedError):
                call(GroupwiseClassifier())

    def test_the_books_are_about_the_way(self):
        """Each row's probabilities before its label was known, computed one by one."""
        frame, label = frame_of(rows=60)
        classifier = GroupwiseClassifier(GROUPS).fit(frame, label)
        steps, shares = GroupwiseClassifier(GROUPS), [[0.5, 0.5]]
        for i in range(59):
            steps.partial_fit(frame[i : i + 1], label[i : i + 1], classes=TWO)
            shares.extend(steps.predict_proba(frame[i + 1 : i + 2]).tolist())
        lost = log_loss(label, np.array(shares), normalize=False)
        assert classifier.regret()["always_on"]["loss"] == pytest.approx(lost)
        (everybody,) = (line for line in classifier.calibration() if line["group"] == "always_on")
        assert everybody["log_loss"] == pytest.approx(lost / 60)
        before = figures(classifier)
        classifier.predict_proba(frame)
        assert figures(classifier) == before

    def test_searches_pipelines_and_clones(self):
        generator = np.random.default_rng(0)
        X = generator.normal(size=(150, 2)) * [1.0, 100.0]
        y = np.where(X[:, 0] + X[:, 1] / 100 > 0, "yes", "no")
        model = make_pipeline(StandardScaler(), GroupwiseClassifier([gw.cut("x0", [0])]))
        assert cross_val_score(model, X, y, cv=3, scoring="neg_log_loss").mean() > -0.4
        assert cross_val_score(model, X, y, cv=3, scoring="roc_auc").mean() > 0.95
        learners = [gw.learners.Logistic(), gw.learners.Logistic(penalty=1e4)]
        search = GridSearchCV(
            model, {"groupwiseclassifier__learner": learners}, cv=3, scoring="neg_log_loss"
        ).fit(X, y)
        assert search.best_params_ == {"groupwiseclassifier__learner": learners[0]}
        again = pickle.loads(pickle.dumps(search.best_estimator_))
        assert again.predict_proba(X).tolist() == search.predict_proba(X).tolist()
        fresh = clone(search.best_estimator_)
        assert fresh[-1].get_params() == search.best_estimator_[-1].get_params()
        with pytest.raises(NotFittedError):
            fresh[-1].predict(X)

    def test_the_model_inside_can_be_saved(self, tmp_path):
        frame, label = frame_of(THREE)
        classifier = GroupwiseClassifier(GROUPS).fit(frame, label)
        classifier.model_.save(tmp_path / "model.gw")
        restored = gw.load(tmp_path / "model.gw")
        shares = restored.predict_one(frame.iloc[0].to_dict())
        assert list(shares) == THREE
        assert [*shares.values()] == classifier.predict_proba(frame[:1])[0].tolist()
