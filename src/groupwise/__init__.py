"""Online prediction with a regret guarantee for every group at once.

The names below are the whole public surface. They are loaded when first used, so that
``import groupwise`` is quick: numba and scipy come with the first model or replay.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from groupwise import (
        aggregators,
        bounds,
        checks,
        datasets,
        enumerated,
        errors,
        learners,
        losses,
        oracles,
        presets,
    )
    from groupwise.dyadic import Windows, windows
    from groupwise.errors import GroupwiseError
    from groupwise.features import calendar, encoded, hashed, hinges, past
    from groupwise.groups import by, cut, pairs, weight, where
    from groupwise.intervals import Intervals
    from groupwise.learners.platt import Platt
    from groupwise.model import Groupwise
    from groupwise.partial_feedback import AppleTasting, PayForFeedback
    from groupwise.recalibration import Gap
    from groupwise.replaying import replay
    from groupwise.snapshot import load
    from groupwise.sums import Sums
    from groupwise.ticket import Ticket
    from groupwise.validation import register

__version__ = "0.1.0"

_HOMES = {
    "GroupwiseError": "errors",
    "AppleTasting": "partial_feedback",
    "Gap": "recalibration",
    "Groupwise": "model",
    "Intervals": "intervals",
    "PayForFeedback": "partial_feedback",
    "Platt": "learners.platt",
    "Sums": "sums",
    "load": "snapshot",
    "Ticket": "ticket",
    "Windows": "dyadic",
    "register": "validation",
    "replay": "replaying",
    "by": "groups",
    "cut": "groups",
    "calendar": "features",
    "encoded": "features",
    "hashed": "features",
    "hinges": "features",
    "past": "features",
    "pairs": "groups",
    "weight": "groups",
    "where": "groups",
    "windows": "dyadic",
}
_MODULES = (
    "aggregators",
    "bounds",
    "checks",
    "datasets",
    "enumerated",
    "errors",
    "learners",
    "losses",
    "oracles",
    "presets",
)

__all__ = [
    "AppleTasting",
    "Gap",
    "Groupwise",
    "GroupwiseError",
    "Intervals",
    "PayForFeedback",
    "Platt",
    "Sums",
    "Ticket",
    "Windows",
    "aggregators",
    "bounds",
    "by",
    "calendar",
    "checks",
    "cut",
    "datasets",
    "encoded",
    "enumerated",
    "errors",
    "hashed",
    "hinges",
    "learners",
    "load",
    "losses",
    "oracles",
    "pairs",
    "past",
    "presets",
    "register",
    "replay",
    "weight",
    "where",
    "windows",
]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"groupwise.{name}")
    if name in _HOMES:
        value = getattr(import_module(f"groupwise.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'groupwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
