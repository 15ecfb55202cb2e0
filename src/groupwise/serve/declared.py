"""A model from settings alone, as ``groupwise init`` writes them."""

from groupwise.errors import ConfigurationError
from groupwise.features import hashed
from groupwise.features.declared import Hashed
from groupwise.files.labels import loss_for
from groupwise.files.plan import parts_for
from groupwise.files.settings import CLASSES, NUMBER, PROBABILITY, TASKS, Request, request_of
from groupwise.files.task import Task
from groupwise.files.text import quoted
from groupwise.groups.text import HASHED_WORD
from groupwise.losses import Loss, Square
from groupwise.model import Groupwise
from groupwise.validation import part_called


def declared_model(settings: str, name: str) -> Groupwise:
    """The model that settings declare; it has seen nothing yet."""
    request = request_of(settings.encode(), f"The settings of {name}")
    if not request.groups:
        raise ConfigurationError("The settings have no groups. Write [[groups]] tables.")
    loss = _loss(request)
    parts = parts_for(request, Task(loss))
    return Groupwise(
        groups=tuple(request.groups),
        learner=part_called("learner", parts["learner"], **parts["parameters"]),
        aggregator=part_called("aggregator", parts["aggregator"]),
        loss=loss,
        features=_features(request),
        indicators=request.indicators is not False,
        intercept=request.intercept,
    )


def target_of(settings: str) -> str | None:
    """The name of the label, where settings give it one."""
    return request_of(settings.encode(), "The settings").target


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
    raise ConfigurationError(f"The settings do not say what the label is: task = one of {TASKS}.")


def _features(request: Request) -> dict[str, tuple[float, float] | Hashed | None] | None:
    """None is every field, as in Python."""
    if request.features is None:
        return None
    if request.target is not None and request.target in request.features:
        raise ConfigurationError(
            f"{quoted(request.target)} is the label, which no feature may hold."
        )
    return {
        name: bounds if isinstance(bounds, tuple) else hashed() if bounds == HASHED_WORD else None
        for name, bounds in request.features.items()
    }
