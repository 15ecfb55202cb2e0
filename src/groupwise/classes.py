"""Predictions of classes: what is shown of a play."""

from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import classes
from groupwise.losses import Loss
from groupwise.protocols import Play


def shown(loss: Loss, indptr: Index, prediction: Vector, advice: Vector, odds: Vector) -> Vector:
    """The predictions of some rows; where classes are named, with a column for each of them.

    Advice and the weights over it are those of row t from ``indptr[t]`` to ``indptr[t + 1]``.
    """
    if loss.classes is None:
        return prediction
    out = np.empty((prediction.size, 2))
    classes.pairs(indptr, prediction, advice, odds, out)
    return out


def shown_one(loss: Loss, play: Play) -> Any:
    """The prediction of one play, in the label's units."""
    if loss.classes is None:
        return loss.decode(play.prediction)
    ends = np.array([0, len(play.advice)])
    rows = shown(loss, ends, np.array([play.prediction]), play.advice, play.probabilities)
    return loss.decode(rows[0])
