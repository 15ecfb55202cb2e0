"""Plays as JSON keeps them."""

from typing import Any

import numpy as np

from groupwise.actions import ActionPlay
from groupwise.reduction import Play


def play_to_dict(play: Play | ActionPlay) -> dict[str, Any]:
    """A play as numbers and lists."""
    if isinstance(play, Play):
        return {"prediction": play.prediction, "said": play.said.tolist()}
    action = play.prediction
    return {
        "prediction": action.tolist() if isinstance(action, np.ndarray) else action,
        "advice": play.advice.tolist(),
        "shape": list(play.advice.shape),
        "probabilities": play.probabilities.tolist(),
    }


def play_from_dict(fields: dict[str, Any]) -> Play | ActionPlay:
    """The play that :func:`play_to_dict` wrote."""
    if "said" in fields:
        said = np.array(fields["said"], dtype=np.float64)
        return Play(float(fields["prediction"]), said)
    action = fields["prediction"]
    advice = np.array(fields["advice"]).reshape(fields["shape"])
    probabilities = np.array(fields["probabilities"], dtype=np.float64)
    return ActionPlay(
        np.array(action) if isinstance(action, list) else action,
        advice,
        probabilities.reshape(fields["shape"][:2]),
    )
