"""Compiling what a model needs before somebody waits for it."""

import copy
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from groupwise.errors import GroupwiseError
from groupwise.features.declared import Hashed
from groupwise.losses import Log
from groupwise.model import Groupwise
from groupwise.serve.declared import declared_model
from groupwise.serve.state import Row
from groupwise.ticket import Ticket

USUAL = ("range = [0, 1]", 'task = "probability"')
"""What labels are: numbers, or yes and no."""
OTHERWISE = """
features = { age = [18, 90] }
groups = [{ by = "sex" }]
"""


def warm_usual(ending: Callable[[], bool]) -> None:
    """What most first models need; a kind at a time, until it is too late."""
    for label in USUAL:
        if not ending():
            warm(declared_model(label + OTHERWISE, "the usual"))


def warm(model: Groupwise, row: Row | None = None) -> None:
    """Let a copy of a model predict, learn, and learn late; the model stays as it is.

    Without a row one is made up; what the model makes of it, or that it refuses, does not matter.
    """
    twin = copy.deepcopy(model)
    with suppress(GroupwiseError):
        given = _made_up(twin) if row is None else row
        early, late, sent = (twin.predict(given) for _ in range(3))
        label = _label(twin)
        twin.learn(early, label)
        twin.learn(late, label)
        twin.learn(Ticket.from_json(sent.to_json()), label)


def _made_up(model: Groupwise) -> dict[str, Any]:
    """A row with a number where numbers are declared, and text elsewhere."""
    row: dict[str, Any] = dict.fromkeys(model.groups.columns, "a")
    declared = declared_fields(model)
    for name, bounds in declared.items():
        is_text = isinstance(bounds, Hashed) or (bounds is None and name in row)
        row[name] = "a" if is_text else 0.5 if bounds is None else bounds[0]
    return row


def declared_fields(model: Groupwise) -> dict[str, Any]:
    """The features that are named, with what is said of each; makers are none."""
    given = model.features
    if isinstance(given, list | tuple):
        return {name: what for one in given if isinstance(one, dict) for name, what in one.items()}
    return dict(given) if isinstance(given, dict) else {}


def _label(model: Groupwise) -> Any:
    loss = model.loss
    if isinstance(loss, Log):
        return 1.0 if loss.classes is None else loss.classes[-1]
    return getattr(loss, "low", 0.0)
