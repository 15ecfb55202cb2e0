"""A Groupwise model as a regressor or a classifier of river."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from groupwise.class_names import ClassName
from groupwise.compat import TARGET, Adapter, Regression, widened
from groupwise.dyadic import Windows
from groupwise.errors import ConfigurationError, is_finite
from groupwise.extras import needed_by
from groupwise.groups import Group
from groupwise.intervals import CoverageTable, Intervals
from groupwise.losses import Log, Loss
from groupwise.model import Groupwise
from groupwise.protocols import AnyAggregator
from groupwise.regret.calibration import CalibrationTable
from groupwise.regret.table import RegretTable
from groupwise.ticket import Ticket

with needed_by("The adapter for river"):
    from river import base

if TYPE_CHECKING:
    import pandas as pd


class Remembering(Adapter):
    """What both estimators have: a model, and its tickets, which river settles none of.

    A label goes to the oldest outstanding prediction for an equal row.
    """

    outstanding: int
    _model: Groupwise | None = None

    def _start(self, outstanding: int) -> None:
        """Remember nothing yet, and later so many predictions."""
        self.outstanding = outstanding
        self._tickets: dict[int, tuple[Hashable, Ticket]] = {}
        self._places: dict[Hashable, deque[int]] = {}
        self._latest: tuple[str, Hashable] | None = None

    def _loss(self) -> Loss:
        """The loss that the parameters describe."""
        raise NotImplementedError

    @property
    def model(self) -> Groupwise:
        """The model inside, for tickets, snapshots and all else."""
        if self._model is None:
            if not is_finite(self.outstanding, int) or self.outstanding < 0:
                raise ConfigurationError(
                    f"outstanding must be a whole number, 0 or more, not {self.outstanding!r}."
                )
            self._model = self._build(self._loss())
        return self._model

    def regret(self, last: int | None = None) -> RegretTable:
        """Regret and certificate of every group over the rounds whose labels came.

        With windows, of so many of the ``last`` of each, or a few more.
        """
        return self.model.regret(last=last)

    def _predict(self, x: Mapping[Any, Any]) -> Ticket:
        """The ticket for a row, which is remembered."""
        ticket, key = self.model.predict(_row(x)), _key(x)
        self._tickets[ticket.number] = key, ticket
        self._places.setdefault(key, deque()).append(ticket.number)
        while len(self._tickets) > self.outstanding:
            oldest, dropped = next(iter(self._tickets.values()))
            self.model.forget(dropped)
            self._let_go(oldest)
        return ticket

    def _asked(self, x: Mapping[Any, Any], what: str) -> Ticket:
        """The ticket for a row; the last one where it was just asked for something else of it."""
        key, latest = _key(x), self._latest
        self._latest = what, key
        if latest is not None and latest[0] != what and latest[1] == key and key in self._places:
            self._latest = None
            return self._tickets[self._places[key][-1]][1]
        return self._predict(x)

    def _learn(self, x: Mapping[Any, Any], y: Any) -> None:
        """Settle the oldest ticket for an equal row, or else one that is made now."""
        key = _key(x)
        if key in self._places:
            self.model.learn(self._tickets[self._places[key][0]][1], y)
            self._let_go(key)
        else:
            self.model.learn_one(_row(x), y)
        self._latest = None

    def _learn_frame(self, X: "pd.DataFrame", labels: NDArray[Any]) -> None:
        """The same for a frame's rows, one after another in its order."""
        if labels.shape != (len(X),):
            raise ConfigurationError(f"X has {len(X)} rows and y has shape {labels.shape}.")
        rows = X.to_dict(orient="records") if self._places else []
        if any(_key(x) in self._places for x in rows):
            self.model.loss.encode_many(labels)  # all of them are labels, or none is learned from
            for x, label in zip(rows, labels.tolist(), strict=True):
                self._learn(x, label)
        elif len(X):
            frame = X.rename(columns=str)
            self.model.replay(frame[sorted(frame.columns)].assign(**{TARGET: labels}), TARGET)
        self._latest = None

    def _let_go(self, key: Hashable) -> None:
        """Forget the oldest prediction for this row."""
        places = self._places[key]
        del self._tickets[places.popleft()]
        if not places:
            del self._places[key]


class GroupwiseRegressor(Regression, Remembering, base.MiniBatchRegressor):
    """Square-loss regression with a regret guarantee for every group at once, for river.

    ``predict_one`` and ``learn_one`` are those of :class:`groupwise.Groupwise`; ``learn_many`` and
    ``predict_many`` give the numbers of the loop. River settles no tickets, so the adapter keeps
    them: a label goes to the oldest outstanding prediction for an equal row, and the books are
    charged with what was predicted then, however late the label comes (``progressive_val_score``
    with ``delay``). A label without such a prediction is learned from as if just predicted.

    In a pipeline, groups read the row that reaches this step: group columns must survive the
    transformers before it, and be in every row. All of ``river.checks`` apply; none is skipped.

    Parameters
    ----------
    groups : names of columns and declarations (``gw.by``, ``gw.cut``, …); without any, the
        always-on group is the only one.
    range : (low, high) of the labels. None where it is unknown: advice is then not clipped,
        certificates are void, and ``label_range`` reports what was seen.
    learner : the per-group learner, or a list of them; ``learners.portfolio(loss)`` by default.
    aggregator : ``aggregators.Prod()`` by default.
    features : the fields to use, as in ``Groupwise``; None for all.
    indicators : whether each group is a 0/1 feature as well.
    intercept : whether to add a feature that is 1 in every row.
    seed : names all the randomness there is.
    outstanding : how many predictions are remembered until their labels come; the oldest are let
        go first.
    intervals : the share of labels that ``predict_interval_one`` is to cover on every group, such
        as 0.9; it needs a range.
    windows : True for small regret on every recent stretch of every group too
        (``regret(last=1000)``), or ``gw.windows(shortest)``.

    >>> from groupwise.compat.river import GroupwiseRegressor
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | GroupwiseRegressor(range=(0, 100))
    >>> evaluate.progressive_val_score(datasets.TrumpApproval().take(100), model, metrics.MAE())
    MAE: 1.500932

    Guarantee
    ---------
    With a range: after every label and for every group, regret ≤ certificate, as ``regret()``
    shows both, over the rounds whose labels came. Without: none.
    """

    def __init__(
        self,
        groups: Sequence[str | Group] | None = None,
        range: tuple[float, float] | None = None,
        learner: Any = None,
        aggregator: AnyAggregator | None = None,
        features: Sequence[str] | Mapping[str, tuple[float, float]] | None = None,
        indicators: bool = True,
        intercept: bool = True,
        seed: int = 0,
        outstanding: int = 1_000,
        intervals: float | Intervals | None = None,
        windows: bool | Windows | None = False,
    ) -> None:
        settings = groups, range, learner, aggregator, features, indicators, intercept, seed
        super().__init__(*settings, intervals, windows)
        self._start(outstanding)
        self.label_range: tuple[float, float] | None = None

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction for a row."""
        return float(self._asked(x, "prediction").prediction)

    def predict_interval_one(self, x: dict[Any, Any]) -> tuple[float, float] | None:
        """The interval around it; None where it is empty.

        Asking for both, one right after the other, is one prediction.
        """
        if self.intervals in (None, False):
            raise ConfigurationError("There are no intervals: give intervals=0.9.")
        return self._asked(x, "interval").interval

    def coverage(self) -> CoverageTable:
        """How often the labels of every group were in their intervals."""
        return self.model.coverage()

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn from a row's label."""
        self._learn(x, y)
        self.label_range = widened(self.label_range, float(y))

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """The predictions for the rows of a frame."""
        import pandas as pd

        predictions = [self.predict_one(x) for x in X.to_dict(orient="records")]
        return pd.Series(predictions, index=X.index, dtype="float64")

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from the labels of a frame's rows, one after another in its order."""
        labels = np.asarray(y, dtype=np.float64)
        self._learn_frame(X, labels)
        if labels.size:
            self.label_range = widened(self.label_range, labels)


class GroupwiseClassifier(Remembering, base.MiniBatchClassifier):
    """Probabilities with a regret guarantee for every group at once, for river.

    ``predict_proba_one`` and ``learn_one`` are those of :class:`groupwise.Groupwise` with log loss;
    ``predict_one`` is the likeliest class, the first of them in a tie. Mini-batches give the
    numbers of the loop. Late labels, pipelines and ``outstanding`` are as in
    :class:`GroupwiseRegressor`; asking for the class and the probabilities of a row, one right
    after the other, is one prediction.

    Classes are False and True unless they are declared: the guarantee is about probabilities of
    classes that are known before the first row, so a label that is none of them is an error and
    adds no class. All of ``river.checks`` apply; none is skipped.

    Parameters
    ----------
    groups : names of columns and declarations (``gw.by``, ``gw.cut``, …); without any, the
        always-on group is the only one.
    classes : all classes that can come, two or more: texts, numbers or booleans. None for False and
        True, which 0 and 1 are as well. Three and more are told apart by a chain of yes-or-no
        learners, in this order.
    learner : the per-group learner, or a list of them; ``learners.Logistic()`` by default.
    aggregator : ``aggregators.Specialists()`` by default.
    features : the fields to use, as in ``Groupwise``; None for all.
    indicators : whether each group is a 0/1 feature as well.
    intercept : whether to add a feature that is 1 in every row.
    seed : names all the randomness there is.
    outstanding : how many predictions are remembered until their labels come; the oldest are let
        go first.

    >>> from groupwise.compat.river import GroupwiseClassifier
    >>> from river import datasets, evaluate, metrics
    >>> model = GroupwiseClassifier()
    >>> model.predict_proba_one({"age": 0.3})
    {False: 0.5, True: 0.5}
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.LogLoss())
    LogLoss: 0.25800...

    Guarantee
    ---------
    After every label and for every group, regret ≤ certificate, as ``regret()`` shows both, over
    the rounds whose labels came.
    """

    def __init__(
        self,
        groups: Sequence[str | Group] | None = None,
        classes: Sequence[ClassName] | None = None,
        learner: Any = None,
        aggregator: AnyAggregator | None = None,
        features: Sequence[str] | Mapping[str, tuple[float, float]] | None = None,
        indicators: bool = True,
        intercept: bool = True,
        seed: int = 0,
        outstanding: int = 1_000,
    ) -> None:
        super().__init__(groups, learner, aggregator, features, indicators, intercept, seed)
        self.classes = classes
        self._start(outstanding)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """The probability of every class for a row."""
        return self._shares(x, "probabilities")

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """The likeliest class of a row."""
        shares = self._shares(x, "class")
        return max(shares, key=lambda name: shares[name])

    def learn_one(self, x: dict[Any, Any], y: ClassName) -> None:
        """Learn from a row's class."""
        self._learn(x, y)

    def predict_proba_many(self, X: "pd.DataFrame") -> "pd.DataFrame":
        """The probability of every class, a column for each, for the rows of a frame."""
        import pandas as pd

        shares = [[*self.predict_proba_one(x).values()] for x in X.to_dict(orient="records")]
        return pd.DataFrame(shares, index=X.index, columns=[*self._names], dtype="float64")

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """The likeliest classes of the rows of a frame."""
        import pandas as pd

        names = [self.predict_one(x) for x in X.to_dict(orient="records")]
        return pd.Series(names, index=X.index, dtype=None if names else "object")

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from the classes of a frame's rows, one after another in its order."""
        self._learn_frame(X, np.asarray(y, dtype=object))

    def calibration(self) -> CalibrationTable:
        """Calibration of every group, of the probabilities whose labels came."""
        return self.model.calibration()

    @property
    def _multiclass(self) -> bool:
        return len(self._names) > 2

    @property
    def _names(self) -> Sequence[ClassName]:
        return (False, True) if self.classes is None else self.classes

    def _loss(self) -> Loss:
        return Log(classes=self._names)

    def _shares(self, x: Mapping[Any, Any], what: str) -> dict[ClassName, float]:
        """The probabilities for a row; those just given where they were asked for otherwise."""
        return dict(self._asked(x, what).prediction)


def _row(x: Mapping[Any, Any]) -> dict[str, Any]:
    """The row with its fields in order: river wants no number to depend on theirs."""
    return dict(sorted(((str(name), value) for name, value in x.items()), key=itemgetter(0)))


def _key(x: Mapping[Any, Any]) -> Hashable:
    """What tells rows apart, whatever the order of their fields."""
    try:
        return frozenset(x.items())
    except TypeError:
        return frozenset((name, repr(value)) for name, value in x.items())
