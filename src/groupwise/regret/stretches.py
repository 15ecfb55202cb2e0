"""Regret on a stretch of a group: one window, or two one after the other."""

from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.regret.certificate import (
    ESTIMATED,
    IN_EXPECTATION,
    LOOSE,
    PROVED,
    UNCERTAIN,
    VACUOUS,
    VOID,
    randomised,
)

if TYPE_CHECKING:
    from groupwise.dyadic import Clocks
    from groupwise.reduction import Reduction


def clocks_for(reduction: "Reduction", last: int | None) -> "Clocks | None":
    """The clocks by which to tell the ``last`` rounds; None where all rounds are meant."""
    if last is None:
        return None
    if isinstance(last, bool) or not isinstance(last, (int, np.integer)) or last < 1:
        raise ConfigurationError(f"last must be a positive whole number, not {last!r}.")
    if reduction.windows is None:
        raise ConfigurationError(
            f"regret(last={last}) needs windows: make the model with windows=True, or with "
            "groupwise run --windows."
        )
    return reduction.windows


def joined(reduction: "Reduction", pieces: list[dict[str, Any]]) -> dict[str, Any]:
    """The row of stretches one after the other, from the rows of each.

    Losses and certificates add up: the best model of all rounds loses no less than the best of each
    stretch together, so regret to it is at most the sum of the regrets.
    """
    first = pieces[0]
    row = dict(first)
    for piece in pieces[1:]:
        for key, value in piece.items():
            if isinstance(value, float) and isinstance(row[key], float):
                row[key] += value
        row["few_rows"] &= piece["few_rows"]
        row["note"] = "; ".join(dict.fromkeys(filter(None, (row["note"], piece["note"]))))
    statuses = [piece["status"] for piece in pieces]
    if len(pieces) > 1:
        row["status"] = _status(reduction, row, statuses)
    return row


def _status(reduction: "Reduction", row: dict[str, Any], statuses: list[str]) -> str:
    """What a sum of certificates is."""
    for worst in (VOID, UNCERTAIN, ESTIMATED):
        if worst in statuses:
            return worst
    if row["certificate"] > reduction.loss.unit * row["rounds"]:
        return VACUOUS
    if randomised(reduction):
        return IN_EXPECTATION
    return LOOSE if row["certificate"] > row["best_loss"] else PROVED
