"""Losses of one prediction, scaled to [0, 1]; labels come as (y − low) / (high − low)."""

import math

from groupwise.kernels.compiled import inlined

SQUARE, ABSOLUTE, LOG, ZERO_ONE, LINEAR = range(5)
CODES = {
    "square": SQUARE,
    "absolute": ABSOLUTE,
    "log": LOG,
    "zero-one": ZERO_ONE,
    "linear": LINEAR,
}
"""The kernels' numbers for what ``Loss.kernel`` names; linear losses are not computed here."""


@inlined
def _logarithm(p, complement):
    """ln p, from whichever of p and 1 − p has more digits of it."""
    return math.log1p(-complement) if p > 0.5 else math.log(p)


@inlined
def log_loss(scale, p, complement, y):
    """(−y ln p − (1 − y) ln(1 − p)) / scale; 1 − p is given, as a p near 1 has lost its digits."""
    loss = 0.0
    if y > 0.0:
        loss -= y * _logarithm(p, complement)
    if y < 1.0:
        loss -= (1.0 - y) * _logarithm(complement, p)
    return loss / scale


@inlined
def value(kind, scale, advice, y):
    """The loss of ``advice`` on label ``y``, divided by ``scale`` (1 but for the log loss)."""
    if kind == SQUARE:
        return (advice - y) * (advice - y)
    if kind == ABSOLUTE:
        return abs(advice - y)
    if kind == ZERO_ONE:
        return 0.0 if advice == y else 1.0
    if kind == LOG:
        return log_loss(scale, advice, 1.0 - advice, y)
    return math.nan
