"""A Groupwise model as a regressor of river."""

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.compat import TARGET, Adapter, widened
from groupwise.errors import ConfigurationError, is_finite
from groupwise.extras import needed_by
from groupwise.groups import Group
from groupwise.model import Groupwise
from groupwise.protocols import AnyAggregator
from groupwise.regret.table import RegretTable
from groupwise.ticket import Ticket

with needed_by("The adapter for river"):
    from river import base

if TYPE_CHECKING:
    import pandas as pd


class GroupwiseRegressor(Adapter, base.MiniBatchRegressor):
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
    learner : the per-group learner, or a list of them; ``learners.Ridge()`` by default.
    aggregator : ``aggregators.AdaNormalHedge()`` by default.
    features : the fields to use, as in ``Groupwise``; None for all.
    indicators : whether each group is a 0/1 feature as well.
    intercept : whether to add a feature that is 1 in every row.
    seed : names all the randomness there is.
    outstanding : how many predictions are remembered until their labels come; the oldest are let
        go first.

    >>> from groupwise.compat.river import GroupwiseRegressor
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> model = preprocessing.StandardScaler() | GroupwiseRegressor(range=(0, 100))
    >>> evaluate.progressive_val_score(datasets.TrumpApproval().take(100), model, metrics.MAE())
    MAE: 2.755491

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
    ) -> None:
        super().__init__(groups, range, learner, aggregator, features, indicators, intercept, seed)
        self.outstanding = outstanding
        self.label_range: tuple[float, float] | None = None
        self._model: Groupwise | None = None
        self._tickets: dict[int, tuple[Hashable, Ticket]] = {}
        self._places: dict[Hashable, deque[int]] = {}

    @property
    def model(self) -> Groupwise:
        """The model inside, for tickets, snapshots and all else."""
        if self._model is None:
            if not is_finite(self.outstanding, int) or self.outstanding < 0:
                raise ConfigurationError(
                    f"outstanding must be a whole number, 0 or more, not {self.outstanding!r}."
                )
            self._model = self._build()
        return self._model

    def regret(self) -> RegretTable:
        """Regret and certificate of every group over the rounds whose labels came."""
        return self.model.regret()

    def predict_one(self, x: dict[Any, Any]) -> float:
        """The prediction for a row."""
        ticket, key = self.model.predict(self._row(x)), _key(x)
        self._tickets[ticket.number] = key, ticket
        self._places.setdefault(key, deque()).append(ticket.number)
        while len(self._tickets) > self.outstanding:
            oldest, dropped = next(iter(self._tickets.values()))
            self.model.forget(dropped)
            self._let_go(oldest)
        return float(ticket.prediction)

    def learn_one(self, x: dict[Any, Any], y: float) -> None:
        """Learn from a row's label."""
        key = _key(x)
        if key in self._places:
            self.model.learn(self._tickets[self._places[key][0]][1], y)
            self._let_go(key)
        else:
            self.model.learn_one(self._row(x), y)
        self.label_range = widened(self.label_range, float(y))

    def predict_many(self, X: "pd.DataFrame") -> "pd.Series":
        """The predictions for the rows of a frame."""
        import pandas as pd

        predictions = [self.predict_one(x) for x in X.to_dict(orient="records")]
        return pd.Series(predictions, index=X.index, dtype="float64")

    def learn_many(self, X: "pd.DataFrame", y: "pd.Series") -> None:
        """Learn from the labels of a frame's rows, one after another in its order."""
        labels = np.asarray(y, dtype=np.float64)
        if labels.shape != (len(X),):
            raise ConfigurationError(f"X has {len(X)} rows and y has shape {labels.shape}.")
        if not len(X):
            return
        rows = X.to_dict(orient="records") if self._places else []
        if any(_key(x) in self._places for x in rows):
            for x, label in zip(rows, labels.tolist(), strict=True):
                self.learn_one(x, label)
            return
        frame = X.rename(columns=str)
        self.model.replay(frame[sorted(frame.columns)].assign(**{TARGET: labels}), TARGET)
        self.label_range = widened(self.label_range, labels)

    def _row(self, x: Mapping[Any, Any]) -> dict[str, Any]:
        """The row with its fields in order: river wants no number to depend on theirs."""
        return dict(sorted(((str(name), value) for name, value in x.items()), key=itemgetter(0)))

    def _let_go(self, key: Hashable) -> None:
        """Forget the oldest prediction for this row."""
        places = self._places[key]
        del self._tickets[places.popleft()]
        if not places:
            del self._places[key]


def _key(x: Mapping[Any, Any]) -> Hashable:
    """What tells rows apart, whatever the order of their fields."""
    try:
        return frozenset(x.items())
    except TypeError:
        return frozenset((name, repr(value)) for name, value in x.items())
