"""Any river regressor or scikit-learn ``partial_fit`` estimator as the per-group learner."""

import copy
import inspect
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError, FeatureError
from groupwise.protocols import Row

MIDDLE = 0.5


class Foreign:
    """A learner from another library: river (``predict_one``/``learn_one``) or scikit-learn.

    Every group gets its own copy of ``model``. Labels reach it scaled to [0, 1]; features as they
    are, by name (river) or as a dense row (scikit-learn, which wants a fixed number of features, so
    declare ``features=[...]`` there). Before its first fit a copy advises the middle of the range.
    Fractional groups need a model that takes sample weights (``w`` in river's ``learn_one``,
    ``sample_weight`` in scikit-learn's ``partial_fit``).

    Parameters
    ----------
    model : the river or scikit-learn object; it is copied, never changed. A label updates a copy of
        each awake group's model and then puts the copies in place, so that all are updated or none.

    >>> from sklearn.linear_model import SGDRegressor
    >>> Foreign(SGDRegressor()).name
    'Foreign(SGDRegressor)'

    Guarantee
    ---------
    None of its own. The certificate's learner term is the regret that the model realised, and the
    aggregator's guarantee towards it holds in full. It cannot be saved in a snapshot.
    """

    def __init__(self, model: Any) -> None:
        if all(hasattr(model, method) for method in ("predict_one", "learn_one")):
            self._river = True
        elif all(hasattr(model, method) for method in ("predict", "partial_fit")):
            self._river = False
        else:
            raise ConfigurationError(
                f"{type(model).__name__} has neither predict_one and learn_one (river) "
                "nor predict and partial_fit (scikit-learn), so it cannot learn online."
            )
        self.model = copy.deepcopy(model)
        update = model.learn_one if self._river else model.partial_fit
        parameters = inspect.signature(update).parameters
        self._weight_name = next((n for n in ("w", "sample_weight") if n in parameters), None)
        self._features: int | None = None

    @property
    def name(self) -> str:
        """How messages call this learner."""
        return f"Foreign({type(self.model).__name__})"

    @property
    def takes_weights(self) -> bool:
        """Can it serve fractional groups?"""
        return self._weight_name is not None

    def advise(self, row: Row, weight: float) -> float:
        """The model's prediction; the middle of the range before its first fit."""
        del weight
        if self._features is None:
            return MIDDLE
        if self._river:
            return float(self.model.predict_one(row.mapping()))
        return float(self.model.predict(self._dense(row))[0])

    def update(self, row: Row, label: float, weight: float) -> None:
        """``learn_one`` or ``partial_fit`` with the scaled label."""
        weights: dict[str, Any] = {}
        if self._weight_name is not None:
            weights[self._weight_name] = weight
        if self._river:
            self.model.learn_one(row.mapping(), label, **weights)
        else:
            if weights:
                weights = {"sample_weight": np.array([weight])}
            self.model.partial_fit(self._dense(row), np.array([label]), **weights)
        self._features = len(row.names)

    def _dense(self, row: Row) -> np.ndarray[Any, Any]:
        if self._features is not None and len(row.names) != self._features:
            raise FeatureError(
                f"{self.name} was fitted on {self._features} features and the row has "
                f"{len(row.names)}. Declare them all with features=[...]."
            )
        return row.dense()[None, :]

    def __repr__(self) -> str:
        return f"Foreign({self.model!r})"
