"""Any scikit-learn classifier as a heuristic oracle."""

import copy
import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.oracles.costs import context_matrix, cost_matrix


@dataclass(frozen=True, eq=False)
class FittedPolicy:
    """A fitted classifier, or a constant, per label."""

    parts: list[Any]
    single: bool

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        row = np.asarray(x, dtype=np.float64)[None, :]
        values = [
            part if isinstance(part, int) else int(part.predict(row)[0]) for part in self.parts
        ]
        return values[0] if self.single else np.array(values)


@dataclass(frozen=True, eq=False)
class Sklearn:
    """A scikit-learn classifier that takes sample weights, as a *heuristic* oracle.

    Minimising Σ_x f(x) c_x is weighted classification: label 1 where c_x < 0, weight |c_x|; a copy
    of the classifier is fitted for every label. Nothing says that a classifier's fit is the best in
    its class, so nothing is guaranteed: the certificates of a model that uses this oracle are
    marked as estimated, and regret is against the best policy that the heuristic found.

    Parameters
    ----------
    estimator : a classifier whose ``fit`` takes ``sample_weight``; it is copied, never changed.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> oracle = Sklearn(DecisionTreeClassifier(max_depth=1))
    >>> policy = oracle.minimise([[0.0], [1.0]], costs=[2.0, -1.0])
    >>> policy([1.0])
    1

    Guarantee
    ---------
    None.
    """

    exact: ClassVar[bool] = False
    independent: ClassVar[bool] = True
    estimator: Any

    def __post_init__(self) -> None:
        fit = getattr(self.estimator, "fit", None)
        if fit is None or "sample_weight" not in inspect.signature(fit).parameters:
            raise ConfigurationError(
                f"{type(self.estimator).__name__} cannot serve as an oracle: its fit must take "
                "sample_weight."
            )

    @property
    def name(self) -> str:
        """How messages call this oracle."""
        return f"Sklearn({type(self.estimator).__name__})"

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> FittedPolicy:
        """A policy with a small Σ_x ⟨f(x), costs_x⟩."""
        matrix = context_matrix(contexts)
        table = cost_matrix(costs, matrix)
        parts = [self._fit(matrix, column) for column in table.T]
        return FittedPolicy(parts, np.ndim(costs) == 1)

    def _fit(self, contexts: Vector, costs: Vector) -> Any:
        used = costs != 0.0
        labels = (costs < 0.0)[used]
        if not used.any() or labels.all() or not labels.any():
            return int(bool(labels.any()))
        estimator = copy.deepcopy(self.estimator)
        estimator.fit(contexts[used], labels.astype(np.int64), sample_weight=np.abs(costs[used]))
        return estimator
