"""A Groupwise model as a regressor or a classifier of scikit-learn."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import ArrayLike, NDArray

from groupwise.arrays import Vector
from groupwise.compat import TARGET, Adapter, Regression, widened
from groupwise.errors import ConfigurationError, LabelError
from groupwise.extras import needed_by
from groupwise.intervals import CoverageTable
from groupwise.losses import Log, Loss
from groupwise.model import Groupwise
from groupwise.regret.calibration import CalibrationTable
from groupwise.regret.table import RegretTable
from groupwise.ticket import Ticket

with needed_by("The adapter for scikit-learn"):
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
    from sklearn.utils.multiclass import check_classification_targets
    from sklearn.utils.validation import (
        check_array,
        check_consistent_length,
        check_is_fitted,
        column_or_1d,
        validate_data,
    )

BACKENDS = ("pyarrow", "polars", "pandas")
"""Libraries that can hold an array as a frame; the first that is installed does."""


@contextmanager
def of_one_kind() -> Iterator[None]:
    """Say what is wrong with classes that cannot be sorted."""
    try:
        yield
    except TypeError:
        raise LabelError(
            "Classes must be of one kind, all texts or all numbers, and none may be missing."
        ) from None


class Fitting(Adapter):
    """What both estimators have: tables of rows, and the model that has run through them."""

    n_features_in_: int

    def regret(self, last: int | None = None) -> RegretTable:
        """Regret and certificate of every group over the rows learned from.

        With windows, of so many of the ``last`` of each, or a few more.
        """
        check_is_fitted(self)
        return self.model_.regret(last=last)

    def _labels(self, y: Any, dtype: str | None) -> NDArray[Any]:
        """The labels as an array of one dimension, all of them there."""
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None."
            )
        labels = check_array(y, ensure_2d=False, dtype=dtype, input_name="y")
        return np.asarray(column_or_1d(labels, warn=True))

    def _run(self, table: Any, labels: list[Any], loss: Loss | None) -> None:
        """Run the model, with a loss a new one, through the rows; an error leaves it as it was."""
        model = self.model_ if loss is None else self._build(loss)
        backend: Any = next((name for name in BACKENDS if find_spec(name)), None)
        if isinstance(table, nw.DataFrame):
            target = nw.new_series(TARGET, labels, backend=table.implementation)
            model.replay(table.with_columns(target).to_native(), TARGET)
        elif backend is not None:
            columns = dict(zip(self._columns(), table.T, strict=True))
            frame = nw.from_dict({**columns, TARGET: labels}, backend=backend)
            model.replay(frame.to_native(), TARGET)
        else:
            model = copy.deepcopy(model)
            for row, label in zip(self._rows(table), labels, strict=True):
                model.learn_one(row, label)
        self.model_: Groupwise = model

    def _previews(self, X: Any) -> Iterator[Ticket]:
        """The tickets that the model would issue for each row now."""
        check_is_fitted(self)
        return map(self.model_.preview, self._rows(self._table(X, reset=False)))

    def _predictions(self, X: Any) -> list[Any]:
        """What the model would predict for each row now."""
        return [ticket.prediction for ticket in self._previews(X)]

    def _name(self, column: Any) -> Any:
        """The name of a column given by number."""
        if isinstance(column, bool) or not isinstance(column, (int, np.integer)):
            return column
        if not 0 <= column < self.n_features_in_:
            raise ConfigurationError(
                f"There is no column {column}: X has {self.n_features_in_}, counted from 0."
            )
        return self._columns()[column]

    def _table(self, X: Any, reset: bool) -> "nw.DataFrame[Any] | Vector":
        """X as a frame that narwhals reads, or as an array."""
        frame = nw.from_native(X, eager_only=True, pass_through=True)
        if isinstance(frame, nw.DataFrame) and all(isinstance(c, str) for c in frame.columns):
            validate_data(self, X, reset=reset, skip_check_array=True)
            if not len(frame):
                raise ValueError("Found array with 0 sample(s) while a minimum of 1 is required.")
            return frame
        array: Vector = validate_data(self, X, reset=reset, dtype=np.float64)
        return array

    def _rows(self, table: "nw.DataFrame[Any] | Vector") -> Iterator[dict[str, Any]]:
        if isinstance(table, nw.DataFrame):
            return table.iter_rows(named=True)
        names = self._columns()
        return (dict(zip(names, row, strict=True)) for row in table.tolist())

    def _columns(self) -> list[str]:
        unnamed = [f"x{i}" for i in range(self.n_features_in_)]
        return [str(name) for name in getattr(self, "feature_names_in_", unnamed)]


class GroupwiseRegressor(Regression, Fitting, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Square-loss regression with a regret guarantee for every group at once, for scikit-learn.

    ``fit`` starts afresh and runs through the rows in their order, predicting each before learning
    from it; ``partial_fit`` goes on from there. ``predict`` learns nothing. ``regret()`` is about
    the predictions made on the way, before each label was known, not about those of ``predict``.

    X is an array, or a frame of pandas, polars or pyarrow, which may have columns of text.

    Parameters
    ----------
    groups : names or numbers of columns, and declarations (``gw.by``, ``gw.cut``, …); without any,
        the always-on group is the only one. The columns of an array are called x0, x1, ….
    range : (low, high) of the labels. None where it is unknown: advice is then not clipped,
        certificates are void, and ``label_range_`` reports what was seen.
    learner : the per-group learner, or a list of them; ``learners.portfolio(loss)`` by default.
    aggregator : ``aggregators.Prod()`` by default.
    features : names or numbers of the columns to use, or {column: (low, high)}; None for all.
    indicators : whether each group is a 0/1 feature as well.
    intercept : whether to add a feature that is 1 in every row.
    seed : names all the randomness there is.
    intervals : the share of labels that ``predict_interval`` is to cover on every group, such as
        0.9; it needs a range.
    windows : True for small regret on every recent stretch of every group too
        (``regret(last=1000)``), or ``gw.windows(shortest)``.

    Attributes
    ----------
    model_ : the :class:`groupwise.Groupwise` inside, for tickets, snapshots and all else.
    label_range_ : the smallest and the largest label seen.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    >>> import numpy as np
    >>> from groupwise.compat.sklearn import GroupwiseRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 200), rng.random((200, 2))])
    >>> y = np.where(X[:, 0] == 1, X[:, 1], 1 - X[:, 2])
    >>> regressor = GroupwiseRegressor(groups=[0], range=(0, 1)).fit(X, y)
    >>> regressor.score(X, y) > 0.95
    True
    >>> sorted(row["group"] for row in regressor.regret())
    ['always_on', 'x0=0', 'x0=1']

    Guarantee
    ---------
    With a range: after every label and for every group, regret ≤ certificate, as ``regret()``
    shows both. Without: none.
    """

    def fit(self, X: Any, y: ArrayLike) -> "GroupwiseRegressor":
        """Run through the rows from a fresh start."""
        return self._learn(X, y, fresh=True)

    def partial_fit(self, X: Any, y: ArrayLike) -> "GroupwiseRegressor":
        """Run through more rows."""
        return self._learn(X, y, fresh=not hasattr(self, "model_"))

    def predict(self, X: Any) -> Vector:
        """What the model would predict for each row now."""
        return np.array(self._predictions(X), dtype=float)

    def predict_interval(self, X: Any) -> Vector:
        """The ends of each row's interval now, in two columns; NaN where it is empty."""
        found = [ticket.interval or (np.nan, np.nan) for ticket in self._previews(X)]
        if self.model_.intervals is None:
            raise ConfigurationError("There are no intervals: give intervals=0.9, then fit.")
        return np.array(found, dtype=float)

    def coverage(self) -> CoverageTable:
        """How often the labels of every group were in their intervals, on the way."""
        check_is_fitted(self)
        return self.model_.coverage()

    def _learn(self, X: Any, y: ArrayLike, fresh: bool) -> "GroupwiseRegressor":
        table = self._table(X, reset=fresh)
        labels = self._labels(y, "numeric").astype(np.float64)
        check_consistent_length(X, labels)
        self._run(table, labels.tolist(), self._loss() if fresh else None)
        seen = None if fresh else self.label_range_
        self.label_range_: tuple[float, float] = widened(seen, labels)
        return self


class GroupwiseClassifier(Fitting, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Probabilities with a regret guarantee for every group at once, for scikit-learn.

    ``fit`` starts afresh and runs through the rows in their order, predicting each before learning
    from it; ``partial_fit`` goes on from there. ``predict_proba`` learns nothing, and ``predict``
    gives the likeliest class, the first of them in a tie. ``regret()`` is about the predictions
    made on the way, before each label was known, not about those of ``predict_proba``.

    X is an array, or a frame of pandas, polars or pyarrow, which may have columns of text. The
    classes are those of the y given to ``fit``, two at least, or those that the first
    ``partial_fit`` declares, of which one may be all that comes.

    Parameters
    ----------
    groups : names or numbers of columns, and declarations (``gw.by``, ``gw.cut``, …); without any,
        the always-on group is the only one. The columns of an array are called x0, x1, ….
    learner : the per-group learner, or a list of them; ``learners.Logistic()`` by default.
    aggregator : ``aggregators.Specialists()`` by default.
    features : names or numbers of the columns to use, or {column: (low, high)}; None for all.
    indicators : whether each group is a 0/1 feature as well.
    intercept : whether to add a feature that is 1 in every row.
    seed : names all the randomness there is.

    Attributes
    ----------
    classes_ : the classes, sorted; three and more are told apart by a chain of yes-or-no learners,
        in this order.
    model_ : the :class:`groupwise.Groupwise` inside, for tickets, snapshots and all else.
    n_features_in_, feature_names_in_ : as everywhere in scikit-learn.

    >>> import numpy as np
    >>> from groupwise.compat.sklearn import GroupwiseClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.integers(0, 2, 300), rng.random((300, 2))])
    >>> y = np.where(np.where(X[:, 0] == 1, X[:, 1], 1 - X[:, 2]) > 0.5, "yes", "no")
    >>> classifier = GroupwiseClassifier(groups=[0]).fit(X, y)
    >>> classifier.classes_.tolist()
    ['no', 'yes']
    >>> classifier.score(X, y) > 0.95
    True
    >>> sorted(row["group"] for row in classifier.regret())
    ['always_on', 'x0=0', 'x0=1']

    Guarantee
    ---------
    After every label and for every group, regret ≤ certificate, as ``regret()`` shows both.
    """

    def fit(self, X: Any, y: ArrayLike) -> "GroupwiseClassifier":
        """Run through the rows from a fresh start; the classes are those of y."""
        table = self._table(X, reset=True)
        labels = self._classified(X, y)
        return self._learn(table, labels, np.unique(labels))

    def partial_fit(
        self, X: Any, y: ArrayLike, classes: ArrayLike | None = None
    ) -> "GroupwiseClassifier":
        """Run through more rows. The first call, if ``fit`` was not, declares all classes."""
        fresh = not hasattr(self, "model_")
        with of_one_kind():
            names = None if classes is None else np.unique(np.asarray(classes))
        if fresh and names is None:
            raise ValueError("classes must be passed on the first call to partial_fit.")
        if not fresh and names is not None and not np.array_equal(names, self.classes_):
            raise ValueError(
                f"classes={names.tolist()} are not those of before, {self.classes_.tolist()}. "
                "Leave classes out, or start afresh with fit."
            )
        table = self._table(X, reset=fresh)
        return self._learn(table, self._classified(X, y), names if fresh else None)

    def predict_proba(self, X: Any) -> Vector:
        """What each row's probabilities would be now: a column for each of ``classes_``."""
        return np.array([[*shares.values()] for shares in self._predictions(X)])

    def predict(self, X: Any) -> NDArray[Any]:
        """The likeliest class of each row."""
        likeliest = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[likeliest])

    def calibration(self) -> CalibrationTable:
        """Calibration of every group, of the probabilities given on the way."""
        check_is_fitted(self)
        return self.model_.calibration()

    def _classified(self, X: Any, y: Any) -> NDArray[Any]:
        labels = self._labels(y, None)
        with of_one_kind():
            check_classification_targets(labels)
        check_consistent_length(X, labels)
        return labels

    def _learn(
        self, table: Any, labels: NDArray[Any], classes: NDArray[Any] | None
    ) -> "GroupwiseClassifier":
        """Run through the rows, with classes from a fresh start."""
        if classes is not None and classes.size == 1:
            raise ConfigurationError(
                f"There is only one class, {classes.item()!r}, and telling classes apart takes "
                "two. Declare what may come later with partial_fit(X, y, classes=[...])."
            )
        loss = None if classes is None else Log(classes=classes.tolist())
        self._run(table, labels.tolist(), loss)
        if classes is not None:
            self.classes_: NDArray[Any] = classes
        return self
