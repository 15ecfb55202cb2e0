"""Losses: what a prediction costs, in which range, and what may be done with it.

Inside, every loss is scaled to [0, 1]: a real label y becomes (y − low) / (high − low), advice
likewise, and ``unit`` turns a scaled loss back into the label's own units.
"""

from typing import Any

from groupwise.errors import ConfigurationError
from groupwise.losses.base import Loss
from groupwise.losses.discrete import Hamming, Linear, ZeroOne
from groupwise.losses.real import Absolute, Log, Square, Unbounded

__all__ = [
    "Absolute",
    "Hamming",
    "Linear",
    "Log",
    "Loss",
    "Square",
    "Unbounded",
    "ZeroOne",
    "loss_from_dict",
]


def loss_from_dict(fields: dict[str, Any]) -> Loss:
    """The loss that :meth:`Loss.to_dict` wrote."""
    every = (Square, Unbounded, Absolute, Log, ZeroOne, Hamming, Linear)
    kinds: dict[str, type[Loss]] = {kind.__name__: kind for kind in every}
    parameters = dict(fields)
    name = parameters.pop("type", None)
    if name not in kinds:
        raise ConfigurationError(f"There is no loss called {name!r}.")
    return kinds[name](**parameters)
