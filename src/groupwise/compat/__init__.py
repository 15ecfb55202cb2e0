"""Thin adapters: a Groupwise model as an estimator of river or of scikit-learn."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Vector
from groupwise.dyadic import Windows
from groupwise.errors import ConfigurationError
from groupwise.groups import Group, by
from groupwise.intervals import Intervals
from groupwise.losses import Loss, Square, Unbounded
from groupwise.model import Groupwise
from groupwise.protocols import AnyAggregator

TARGET = "(label)"
"""The column in which labels go into a replay."""


class Adapter:
    """The parameters that all adapters have, stored as given, and the model they describe."""

    def __init__(
        self,
        groups: Sequence[str | int | Group] | None = None,
        learner: Any = None,
        aggregator: AnyAggregator | None = None,
        features: Sequence[Any] | Mapping[Any, tuple[float, float]] | None = None,
        indicators: bool = True,
        intercept: bool = True,
        seed: int = 0,
    ) -> None:
        self.groups = groups
        self.learner = learner
        self.aggregator = aggregator
        self.features = features
        self.indicators = indicators
        self.intercept = intercept
        self.seed = seed

    def _name(self, column: Any) -> Any:
        """What a column that the parameters give is called."""
        return column

    def _build(self, loss: Loss) -> Groupwise:
        """The model; names of columns are ``by(name)``.

        Declarations are copied: one remembers its names once it is used, and suites that test
        estimators compare parameters before and after.
        """
        given: Any = () if self.groups is None else self.groups
        names = map(self._name, [given] if isinstance(given, (str, Group)) else given)
        groups = [by(name) if isinstance(name, str) else copy.deepcopy(name) for name in names]
        features: Any = self.features
        if isinstance(features, Mapping):
            features = {self._name(column): bounds for column, bounds in features.items()}
        elif features is not None and not isinstance(features, str):
            features = [*map(self._name, features)]
        return Groupwise(
            groups,
            learner=self.learner,
            aggregator=self.aggregator,
            loss=loss,
            features=features,
            indicators=self.indicators,
            intercept=self.intercept,
            clip=loss.ranged,
            seed=self.seed,
            **self._more(),
        )

    def _more(self) -> dict[str, Any]:
        """Further arguments of the model."""
        return {}


class Regression(Adapter):
    """The parameters of both regressors: a range of the labels as well, which makes the loss."""

    def __init__(
        self,
        groups: Sequence[str | int | Group] | None = None,
        range: tuple[float, float] | None = None,
        learner: Any = None,
        aggregator: AnyAggregator | None = None,
        features: Sequence[Any] | Mapping[Any, tuple[float, float]] | None = None,
        indicators: bool = True,
        intercept: bool = True,
        seed: int = 0,
        intervals: float | Intervals | None = None,
        windows: bool | Windows | None = False,
    ) -> None:
        super().__init__(groups, learner, aggregator, features, indicators, intercept, seed)
        self.range = range
        self.intervals = intervals
        self.windows = windows

    def _more(self) -> dict[str, Any]:
        """Intervals and windows, if there are such."""
        return {"intervals": self.intervals, "windows": self.windows}

    def _loss(self) -> Loss:
        """Square loss on the range, if there is one."""
        if self.range is None:
            if self.intervals not in (None, False):
                raise ConfigurationError(
                    "Intervals need the range of the labels: give range=(low, high)."
                )
            return Unbounded()
        try:
            low, high = self.range
        except (TypeError, ValueError):
            raise ConfigurationError(
                f"range={self.range!r}. Give (low, high), between which all labels are, or None."
            ) from None
        return Square(low, high)


def widened(seen: tuple[float, float] | None, labels: Vector | float) -> tuple[float, float]:
    """The running range of the labels after some more of them."""
    low, high = float(np.min(labels)), float(np.max(labels))
    return (low, high) if seen is None else (min(seen[0], low), max(seen[1], high))
