"""A model from settings alone, as ``groupwise init`` writes them."""

import re
from functools import lru_cache
from typing import Any

from groupwise.errors import ConfigurationError
from groupwise.features import hashed
from groupwise.features.calendar import Calendar
from groupwise.features.encoding import encoded
from groupwise.features.past import Past
from groupwise.files.asked import parts_for
from groupwise.files.labels import loss_for
from groupwise.files.plan import Plan
from groupwise.files.settings import CLASSES, ERROR, NUMBER, PROBABILITY, TASKS, Request, request_of
from groupwise.files.task import Task
from groupwise.files.text import quoted, shown
from groupwise.groups.text import DATE_WORD, ENCODED_WORD, HASHED_WORD
from groupwise.losses import Loss, Square
from groupwise.model import Groupwise

DEEPEST = 100
"""Keys within keys; what reads TOML takes a time that grows with the square of them."""
MOST_GROUPS = 500
"""Declarations of groups: a row is in a group of each, and waits for the learners of all."""


def declared_model(settings: str, name: str) -> Groupwise:
    """The model that settings declare; without features in them, every field is one."""
    if any(part.count(".") > DEEPEST for part in re.split(r"[][{},=\n]", settings)):
        raise ConfigurationError(f"The settings of {name}: this is nested too deeply.")
    plan, every_field = _plan(request_of(settings.encode(), f"The settings of {name}"))
    return plan.model(every_field)


@lru_cache(64)
def target_of(settings: str) -> str | None:
    """The name of the label, where settings give it one; long ones take a while, once."""
    return request_of(settings.encode(), "The settings").target


def _plan(request: Request) -> tuple[Plan, bool]:
    request = request.preset_read()
    if not request.groups:
        raise ConfigurationError("The settings have no groups. Write [[groups]] tables.")
    if len(request.groups) > MOST_GROUPS:
        raise ConfigurationError(
            f"The settings declare groups {len(request.groups):,} times, and a service takes at "
            f"most {MOST_GROUPS} of these: every row would wait for the learners of all. Leave out "
            "those that matter least."
        )
    task = Task(_loss(request))
    features = {
        name: _feature(name, said, request) for name, said in (request.features or {}).items()
    }
    plan = Plan(
        target=request.target or "label",
        task=task,
        order=(),
        groups=tuple(request.groups),
        features=features,
        indicators=request.indicators is not False,
        intercept=request.intercept,
        **parts_for(request, task),
        kinds={},
        experts=request.experts,
        past=_past(request, task),
        hinges=bool(request.hinges),
        missing=request.missing or ERROR,
        interval=request.interval,
    )
    return plan, request.features is None


def _loss(request: Request) -> Loss:
    task = request.task or (NUMBER if request.range is not None else None)
    task = task or (CLASSES if request.classes is not None else None)
    if task == NUMBER:
        if request.range is None:
            raise ConfigurationError(
                "The settings do not say what range labels have. Write range = [low, high]."
            )
        return Square(*request.range)
    if task == CLASSES and request.classes is None:
        raise ConfigurationError('Name the classes: classes = ["red", "green", "blue"].')
    if task in (PROBABILITY, CLASSES):
        return loss_for(request.classes)
    raise ConfigurationError(
        f"The settings do not say what the label is. Write task = one of {', '.join(TASKS)}."
    )


def _feature(name: str, said: Any, request: Request) -> Any:
    """A feature as settings have it; there is no file to look anything up in."""
    if name == request.target:
        raise ConfigurationError(f"{quoted(name)} is the label, which no feature may hold.")
    if isinstance(said, dict):
        if set(said) - {"date", "aside", "format"} or "date" not in said:
            raise ConfigurationError(f"features.{shown(name)} has the keys date, aside and format.")
        return Calendar(name, said["date"], said.get("aside", ()), said.get("format"))
    if isinstance(said, tuple):
        return said
    makers: dict[Any, Any] = {
        HASHED_WORD: lambda: hashed(),
        ENCODED_WORD: lambda: encoded(name),
        DATE_WORD: lambda: Calendar(name),
    }
    return makers[said]() if said in makers else None


def _past(request: Request, task: Task) -> tuple[Past, ...]:
    if request.past and task.loss.nodes > 1:
        raise ConfigurationError("The past of a label with several classes is no feature.")
    if request.past and request.target is None:
        raise ConfigurationError('The past is that of a label: write target = "its name".')
    return tuple(Past(**{**one, "label": request.target}) for one in request.past or ())
