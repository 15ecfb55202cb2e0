"""Groups: declarations, and which groups a row or a frame is in."""

from groupwise.groups.algebra import ALWAYS_ON, Group, Member, from_dict
from groupwise.groups.columns import Table
from groupwise.groups.declarations import by, cut, pairs, weight, where
from groupwise.groups.family import Groups, Indicator
from groupwise.groups.frames import FrameMembership
from groupwise.groups.text import dumps, loads

__all__ = [
    "ALWAYS_ON",
    "FrameMembership",
    "Group",
    "Groups",
    "Indicator",
    "Member",
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
