"""Groups: declarations, and which groups a row or a frame is in."""

from groupwise.groups.declarations import (
    ALWAYS_ON,
    Group,
    Member,
    by,
    cut,
    from_dict,
    pairs,
    weight,
    where,
)
from groupwise.groups.family import Groups, Indicator
from groupwise.groups.frames import FrameMembership, Table
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
