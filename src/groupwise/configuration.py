"""A model's configuration as plain values, for files, and back."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from groupwise.features.derived import features_from_json, features_to_json
from groupwise.groups import from_dict
from groupwise.intervals import Intervals
from groupwise.losses import loss_from_dict
from groupwise.recalibration import layer_from_dict, layer_to_dict
from groupwise.validation import part_from_dict, part_to_save

if TYPE_CHECKING:
    from groupwise.model import Groupwise

BEFORE: dict[str, Any] = {"intercept": False, "max_levels": None, "recalibrate": None}
BEFORE |= {"experts": (), "missing": None, "intervals": None}
"""What models were like whose files do not say."""


def configuration_of(model: "Groupwise") -> dict[str, Any]:
    """The arguments that make such a model, in a form that JSON keeps."""
    return {
        "groups": [declaration.to_dict() for declaration in model.declarations],
        "learner": [part_to_save(learner) for learner in model.learners],
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
    }


def arguments_from(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments that :func:`configuration_of` wrote."""
    settings = {**BEFORE, **fields}
    settings["groups"] = [from_dict(one) for one in settings["groups"]]
    settings["learner"] = [part_from_dict(one) for one in settings["learner"]]
    settings["aggregator"] = part_from_dict(settings["aggregator"])
    settings["loss"] = loss_from_dict(settings["loss"])
    settings["features"] = features_from_json(settings["features"])
    settings["recalibrate"] = layer_from_dict(settings["recalibrate"])
    if settings["intervals"] is not None:
        settings["intervals"] = Intervals(**settings["intervals"])
    return settings
