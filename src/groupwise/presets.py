"""Whole configurations by name: keyword arguments for :class:`groupwise.Groupwise`."""

from typing import Any

from groupwise.aggregators import AdaNormalHedge
from groupwise.learners import Ridge


def paper() -> dict[str, Any]:
    """What the experiments of the paper run, and ``groupwise reproduce`` does.

    Ridge with penalty 1 on every group, its advice not clipped; AdaNormalHedge, which draws one of
    the awake experts; every level and indicator a feature of its own, and no intercept besides.
    Labels of another range than [0, 1] need their ``loss``.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([gw.by("sex")], **gw.presets.paper())
    >>> model.play, model.clip, model.intercept
    ('sample', False, False)
    """
    return {
        "learner": Ridge(1.0),
        "aggregator": AdaNormalHedge(),
        "play": "sample",
        "clip": False,
        "intercept": False,
        "max_levels": None,
    }
