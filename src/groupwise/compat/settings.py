"""What the adapters have in common: plain constructor values to a model."""

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.groups import Group, by
from groupwise.losses import Loss, Square, Unbounded
from groupwise.model import Groupwise

INTERCEPT = "(intercept)"
"""The field that is 1 in every row, where the adapter adds one."""


def build(
    *,
    groups: Any,
    range: tuple[float, float] | None,
    learner: Any,
    aggregator: Any,
    features: Any,
    indicators: bool,
    intercept: bool,
    seed: int,
) -> Groupwise:
    """The model that an adapter's parameters describe."""
    return Groupwise(
        groups=as_groups(groups),
        learner=learner,
        aggregator=aggregator,
        loss=as_loss(range),
        features=_with_intercept(features) if intercept else features,
        indicators=indicators,
        clip=range is not None,
        seed=seed,
    )


def as_groups(groups: Any) -> list[Group]:
    """Declarations as they are, names of columns as ``by(name)``.

    Copied: a declaration remembers its names once it is used, and suites that test estimators
    compare parameters before and after.
    """
    if groups is None:
        return []
    if isinstance(groups, (str, Group)):
        groups = [groups]
    return [by(item) if isinstance(item, str) else copy.deepcopy(item) for item in groups]


def as_loss(range: tuple[float, float] | None) -> Loss:
    """Square loss on the range, or without one."""
    if range is None:
        return Unbounded()
    try:
        low, high = range
    except (TypeError, ValueError):
        raise ConfigurationError(
            f"range={range!r}. Give (low, high), between which all labels are, or None."
        ) from None
    return Square(low, high)


def widened(
    seen: tuple[float, float] | None, labels: "np.ndarray[Any, np.dtype[np.float64]] | float"
) -> tuple[float, float]:
    """The running range of the labels after some more of them."""
    low, high = float(np.min(labels)), float(np.max(labels))
    return (low, high) if seen is None else (min(seen[0], low), max(seen[1], high))


def _with_intercept(
    features: Sequence[str] | Mapping[str, tuple[float, float]] | None,
) -> Any:
    if features is None or isinstance(features, str):
        return features
    if isinstance(features, Mapping):
        return {**features, INTERCEPT: (0.0, 1.0)}
    return [*features, INTERCEPT]
