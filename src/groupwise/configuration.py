"""A model's configuration as plain values, for files, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from groupwise.assignment import Assignment
from groupwise.dyadic import Windows
from groupwise.errors import ConfigurationError
from groupwise.features.derived import features_from_json, features_to_json
from groupwise.groups import from_dict
from groupwise.intervals import Intervals
from groupwise.losses import loss_from_dict
from groupwise.recalibration import layer_from_dict, layer_to_dict
from groupwise.validation import part_from_dict, part_to_save

if TYPE_CHECKING:
    from groupwise.model import Groupwise

BEFORE: dict[str, Any] = {"intercept": False, "max_levels": None, "recalibrate": None}
BEFORE |= {"experts": (), "missing": None, "intervals": None, "windows": None}
"""What models were like whose files do not say."""


def configuration_of(model: "Groupwise") -> dict[str, Any]:
    """The arguments that make such a model, in a form that JSON keeps."""
    return {
        "groups": [declaration.to_dict() for declaration in model.declarations],
        "learner": learner_of(model),
        "aggregator": part_to_save(model.aggregator),
        "loss": model.loss.to_dict(),
        "features": features_to_json(model.features),
        "indicators": model.indicators,
        "play": model.play,
        "clip": model.clip,
        "always_on": model.groups.always_on,
        "seed": model.seed,
        "prior": model.prior,
        "intersections": model.intersections,
        "intercept": model.intercept,
        "max_levels": model.max_levels,
        "recalibrate": layer_to_dict(model.recalibrate),
        "experts": list(model.experts),
        **({} if model.missing is None else {"missing": model.missing}),
        **({} if model.intervals is None else {"intervals": asdict(model.intervals)}),
        **({} if model.windows is None else {"windows": asdict(model.windows)}),
    }


def learner_of(model: "Groupwise") -> Any:
    """The learners of all groups, or of each."""
    if model.assignment.same:
        return [part_to_save(learner) for learner in model.learners]
    return model.assignment.to_dict(model.saved_rosters())


def check_function(fields: Mapping[str, Any], learner: Any) -> None:
    """Raise ConfigurationError where a file holds all learners, or what is given is no function."""
    saved = fields["learner"]
    if learner is not None and not (
        callable(learner) and isinstance(saved, dict) and saved["asks"]
    ):
        raise ConfigurationError(
            "learner=... is for models whose learners come from a function, which a file does not "
            "hold: give that function, and nothing for a file that holds all of its learners."
        )


def learner_from(saved: Any, learner: Any) -> Any:
    """The same from a file, where ``learner`` is a function that a file does not hold."""
    if isinstance(saved, list):
        return [part_from_dict(one) for one in saved]
    found = Assignment.from_dict(saved)
    found.function = learner
    return found


def arguments_from(fields: Mapping[str, Any], learner: Any = None) -> dict[str, Any]:
    """The arguments that :func:`configuration_of` wrote."""
    settings = {**BEFORE, **fields}
    settings["groups"] = [from_dict(one) for one in settings["groups"]]
    settings["learner"] = learner_from(settings["learner"], learner)
    settings["aggregator"] = part_from_dict(settings["aggregator"])
    settings["loss"] = loss_from_dict(settings["loss"])
    settings["features"] = features_from_json(settings["features"])
    settings["recalibrate"] = layer_from_dict(settings["recalibrate"])
    if settings["intervals"] is not None:
        settings["intervals"] = Intervals(**settings["intervals"])
    if settings["windows"] is not None:
        settings["windows"] = Windows(**settings["windows"])
    return settings
