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
def value(kind, scale, advice, y):
    """The loss of ``advice`` on label ``y``, divided by ``scale`` (1 but for the log loss)."""
    if kind == SQUARE:
        return (advice - y) * (advice - y)
    if kind == ABSOLUTE:
        return abs(advice - y)
    if kind == ZERO_ONE:
        return 0.0 if advice == y else 1.0
    if kind == LOG:
        loss = 0.0
        if y > 0.0:
            loss -= y * math.log(advice) if advice > 0.0 else -math.inf
        if y < 1.0:
            loss -= (1.0 - y) * math.log1p(-advice) if advice < 1.0 else -math.inf
        return loss / scale
    return math.nan
