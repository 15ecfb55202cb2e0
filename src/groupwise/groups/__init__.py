"""Groups: declarations, and which groups a row or a frame is in."""

from __future__ import annotations

from .base import ALWAYS_ON, Group
from .columns import Table
from .declarations import by, cut, pairs, weight, where
from .family import Groups, Indicator
from .frames import FrameMembership
from .toml import dumps, from_dict, loads

__all__ = [
    "ALWAYS_ON",
    "FrameMembership",
    "Group",
    "Groups",
    "Indicator",
    "Table",
    "by",
    "cut",
    "dumps",
    "from_dict",
    "loads",
    "pairs",
    "weight",
    "where",
]
