"""Models of river and scikit-learn as learners: numbers, and probabilities of classifiers."""

import copy
import inspect
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError, FeatureError, LabelError
from groupwise.protocols import Row

MIDDLE = 0.5


class Foreign:
    """A learner from another library: river (``predict_one``/``learn_one``) or scikit-learn.

    Every group gets its own copy of ``model``. Labels reach it scaled to [0, 1]; features as they
    are, by name (river; one that is 0 is left out until the group has learned from a row with
    another value of it) or as a dense row (scikit-learn, which wants a fixed number of features, so
    declare ``features=[...]`` there). Before its first fit a copy advises the middle of the range.
    Fractional groups need a model that takes sample weights (``w`` in river's ``learn_one``,
    ``sample_weight`` in scikit-learn's ``partial_fit``).

    A classifier (``predict_proba_one`` in river, ``predict_proba`` in scikit-learn) advises the
    probability of the second of its two classes: ½ before its first fit, and kept off 0 and 1 by
    log loss. A label y between 0 and 1 is two updates, one that weighs 1 − y for the first class
    and one that weighs y for the second, so it needs sample weights. Of three classes and more,
    each yes-or-no question that tells them apart has a copy of its own.

    Parameters
    ----------
    model : the river or scikit-learn object; it is copied, never changed. A label updates a copy of
        each awake group's model and then puts the copies in place, so that all are updated or none.
    classes : what a classifier calls 0 and 1; None for False and True (river), for 0 and 1 or the
        classes that it was fitted with (scikit-learn).

    >>> from sklearn.linear_model import SGDClassifier, SGDRegressor
    >>> Foreign(SGDRegressor()).name
    'Foreign(SGDRegressor)'
    >>> Foreign(SGDClassifier(loss="log_loss")).classes
    (0, 1)

    Guarantee
    ---------
    None of its own. The certificate's learner term is the regret that the model realised, and the
    aggregator's guarantee towards it holds in full. It cannot be saved in a snapshot.
    """

    def __init__(self, model: Any, classes: Sequence[Any] | None = None) -> None:
        self._river = hasattr(model, "predict_one") and hasattr(model, "learn_one")
        if not self._river and not (hasattr(model, "predict") and hasattr(model, "partial_fit")):
            raise ConfigurationError(
                f"{type(model).__name__} has neither predict_one and learn_one (river) "
                "nor predict and partial_fit (scikit-learn), so it cannot learn online."
            )
        self.model = copy.deepcopy(model)
        update = _final(model).learn_one if self._river else model.partial_fit
        self._accepted = frozenset(inspect.signature(update).parameters)
        self._weight_name = next((n for n in ("w", "sample_weight") if n in self._accepted), None)
        self._features: int | None = None
        self._zeros: dict[str, float] = {}
        self.classes = self._two(classes) if self._classifies() else None
        if classes is not None and self.classes is None:
            raise ConfigurationError(f"{self.name} is no classifier: leave classes out.")

    @property
    def name(self) -> str:
        """How messages call this learner."""
        return f"Foreign({type(self.model).__name__})"

    @property
    def takes_weights(self) -> bool:
        """Can it serve fractional groups?"""
        return self._weight_name is not None

    def advise(self, row: Row, weight: float) -> float:
        """The model's prediction or probability; the middle of the range before its first fit."""
        if self._features is None:
            return MIDDLE
        if self.classes is not None:
            return self._probability(row, self.classes[1])
        if self._river:
            return float(self.model.predict_one(self._named(row)))
        return float(self.model.predict(self._dense(row))[0])

    def update(self, row: Row, label: float, weight: float) -> None:
        """``learn_one`` or ``partial_fit`` with the scaled label, or with the class that it is."""
        if self.classes is None:
            self._fit(row, label, weight)
            return
        if not 0.0 <= label <= 1.0:
            raise LabelError(
                f"{self.name} is a classifier and cannot learn from a label of {label:g}. Use "
                "losses.Log(), or losses.Square(low, high) with the range of your labels."
            )
        if 0.0 < label < 1.0 and not self.takes_weights:
            raise LabelError(
                f"{self.name} takes no sample weights, so it cannot learn from a label of "
                f"{label:g}, which is between its classes. Use a learner that can, such as "
                "learners.Logistic, or labels that are 0 or 1."
            )
        for name, share in zip(self.classes, (1.0 - label, label), strict=True):
            if share > 0.0:
                self._fit(row, name, weight * share)

    def _fit(self, row: Row, label: Any, weight: float) -> None:
        given = weight if self._river else np.array([weight])
        more: dict[str, Any] = {} if self._weight_name is None else {self._weight_name: given}
        if self._river:
            named = self._named(row)
            self.model.learn_one(named, label, **more)
            self._zeros = dict.fromkeys(named, 0.0)
        else:
            if self.classes is not None and "classes" in self._accepted:
                more["classes"] = np.array(self.classes)
            self.model.partial_fit(self._dense(row), np.array([label]), **more)
        self._features = len(row.names)

    def _probability(self, row: Row, name: Any) -> float:
        """What the model says of a class; ½ where it says nothing of any."""
        if self._river:
            said = self.model.predict_proba_one(self._named(row))
        else:
            (shares,) = self.model.predict_proba(self._dense(row)).tolist()
            said = dict(zip(self.model.classes_.tolist(), shares, strict=True))
        total = sum(said.values())
        return float(said.get(name, 0.0) / total) if total != 0.0 else MIDDLE

    def _named(self, row: Row) -> dict[str, float]:
        """The features by name, with those learned from before: scalers and trees need the 0s."""
        return self._zeros | row.mapping()

    def _dense(self, row: Row) -> np.ndarray[Any, Any]:
        if self._features is not None and len(row.names) != self._features:
            raise FeatureError(
                f"{self.name} was fitted on {self._features} features and the row has "
                f"{len(row.names)}. Declare them all with features=[...]."
            )
        return row.dense()[None, :]

    def _classifies(self) -> bool:
        """Is the model a classifier? One without probabilities is refused."""
        if self._river:
            if not hasattr(_final(self.model), "predict_proba_one"):
                return False
            try:
                told = isinstance(copy.deepcopy(self.model).predict_proba_one({}), Mapping)
            except NotImplementedError:
                told = False
            except Exception:  # it has probabilities, but not for a row without features
                told = True
        else:
            told = hasattr(self.model, "predict_proba")
            tags = getattr(self.model, "__sklearn_tags__", None)
            if not told and (tags is None or tags().estimator_type != "classifier"):
                return False
        if not told:
            raise ConfigurationError(
                f"{self.name} is a classifier that gives no probabilities. Use one that does, such "
                'as linear_model.LogisticRegression of river or SGDClassifier(loss="log_loss") of '
                "scikit-learn."
            )
        return True

    def _two(self, classes: Sequence[Any] | None) -> tuple[Any, Any]:
        """The classes given, or those that the model has as a rule."""
        if classes is None:
            fitted = np.asarray(getattr(self.model, "classes_", (0, 1))).tolist()
            classes = (False, True) if self._river else fitted
        if len(classes) != 2 or classes[0] == classes[1]:
            raise ConfigurationError(
                f"{self.name} must tell two classes apart, not {list(classes)}. For more, give the "
                "loss the classes and this the model before any fit: it is asked yes or no of each."
            )
        return classes[0], classes[1]

    def __repr__(self) -> str:
        return f"Foreign({self.model!r})"


def _final(model: Any) -> Any:
    """The model itself, or what a pipeline of river ends in: it predicts as that does."""
    steps = getattr(model, "steps", None)
    return _final([*steps.values()][-1]) if isinstance(steps, Mapping) and steps else model
