"""Learners in Python, those of river and scikit-learn too: a copy of the object for every group."""

import copy
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from groupwise.arrays import LARGEST, Vector
from groupwise.errors import ConfigurationError, FeatureError, SnapshotError
from groupwise.protocols import Awake, Bank, Learner, Row, Setting

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
        self._river = hasattr(model, "predict_one") and hasattr(model, "learn_one")
        if not self._river and not (hasattr(model, "predict") and hasattr(model, "partial_fit")):
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
        if self._features is None:
            return MIDDLE
        if self._river:
            return float(self.model.predict_one(row.mapping()))
        return float(self.model.predict(self._dense(row))[0])

    def update(self, row: Row, label: float, weight: float) -> None:
        """``learn_one`` or ``partial_fit`` with the scaled label."""
        given = weight if self._river else np.array([weight])
        weights = {} if self._weight_name is None else {self._weight_name: given}
        if self._river:
            self.model.learn_one(row.mapping(), label, **weights)
        else:
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


class WrappedBank(Bank):
    """The Python learners of every group, made when a group is first learned from."""

    def __init__(
        self, prototypes: Sequence[Learner], columns: Sequence[int], setting: Setting
    ) -> None:
        self.prototypes = copy.deepcopy(tuple(prototypes))  # another model may have them as well
        self.columns = list(columns)
        self.setting = setting
        self.nodes = setting.loss.nodes
        self.learners: dict[tuple[int, int, int], Learner] = {}

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """A row per awake group, a column per learner, a last axis for the nodes of chains."""
        row = row.without_zeros()
        out = np.empty((len(awake.groups), len(self.prototypes), self.nodes))
        for a, (group, k, node), weight, learner in self._awake(awake):
            if hasattr(learner, "draw"):
                expert = group * self.setting.experts + self.columns[k]
                named = expert * self.nodes + node
                learner.draw((self.setting.seed, number, named, attempt))
            out[a, k, node] = learner.advise(row, weight)
            if not math.isfinite(out[a, k, node]):
                raise not_advice(learner, out[a, k, node])
        return out if self.nodes > 1 else out[:, :, 0]

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """All learners are updated, or none."""
        row = row.without_zeros()
        updated: dict[tuple[int, int, int], Learner] = {}
        for _, name, weight, learner in self._awake(awake):
            if self.nodes > 1 and label < name[2]:
                continue
            updated[name] = copy.deepcopy(learner)
            updated[name].update(row, float(label == name[2]) if self.nodes > 1 else label, weight)
        self.learners.update(updated)

    def restart(self) -> None:
        """Forget what was learned."""
        self.learners = {}

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be saved in a snapshot.")

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Objects cannot be saved."""
        raise SnapshotError(f"{name_of(self.prototypes[0])} cannot be read from a snapshot.")

    def _awake(self, awake: Awake) -> Iterator[tuple[int, tuple[int, int, int], float, Learner]]:
        """Every learner of the awake groups, with its row, its name here and its weight."""
        pairs = zip(awake.groups.tolist(), awake.weights.tolist(), strict=True)
        chains = list(product(range(len(self.prototypes)), range(self.nodes)))
        for a, (group, weight) in enumerate(pairs):
            for k, node in chains:
                learner = self.learners.get((group, k, node), self.prototypes[k])
                if weight != 1.0 and not getattr(learner, "takes_weights", True):
                    raise ConfigurationError(
                        f"{name_of(learner)} takes no sample weights, so it cannot serve a "
                        "fractional group. Use a learner that does, such as learners.Ridge, or "
                        "0/1 groups."
                    )
                yield a, (group, k, node), weight, learner


def not_advice(learner: Any, value: float) -> ConfigurationError:
    """The error for advice that is not a number, or too large where it is not clipped."""
    return ConfigurationError(
        f"{name_of(learner)} advised {value:g}. Advice must be a finite number, and of at most "
        f"{LARGEST:g} where it is not clipped: scale the features, or lower its learning rate."
    )


def name_of(learner: Any) -> str:
    """How messages call a learner."""
    return str(getattr(learner, "name", type(learner).__name__))
