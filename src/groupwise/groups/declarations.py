"""The functions that declare groups."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import GroupError
from .base import Group
from .compounds import Pairs
from .leaves import By, Closed, Cut, Weight, Where


def by(column: str) -> Group:
    """Declare a group for every value of a column; a new value is a new group.

    >>> by("sex")
    By(column='sex')
    """
    return By(column)


def cut(
    column: str,
    edges: Sequence[float],
    labels: Sequence[str] | None = None,
    closed: Closed = "right",
) -> Group:
    """Declare a group for every interval between edges of a numeric column.

    With closed="right" an interval holds its upper edge, with closed="left" its lower one.

    >>> cut("age", [35, 50]).names
    ('age: <= 35', 'age: (35, 50]', 'age: > 50')
    >>> cut("age", [35, 50], labels=["young", "middle", "old"]).names
    ('age: young', 'age: middle', 'age: old')
    """
    kept = labels if labels is None or isinstance(labels, str) else tuple(labels)
    try:
        bounds = tuple(edges)
    except TypeError:
        raise GroupError(
            f"The edges of cut({column!r}) are {edges!r}. Give a list of numbers."
        ) from None
    return Cut(column, bounds, kept, closed)  # type: ignore[arg-type]


def where(column: str, op: str, value: object) -> Group:
    """Declare one group: the rows where a column compares with a value.

    The operators are ==, !=, <, <=, >, >=, in and not in; the four order operators compare numbers.

    >>> where("bmi", ">=", 30).names
    ('bmi >= 30',)
    >>> where("region", "in", ["north", "south"]).names
    ('region in [north, south]',)
    """
    return Where(column, op, value)  # type: ignore[arg-type]


def weight(column: str) -> Group:
    """Declare one fractional group, whose weight in [0, 1] is the value of a column.

    >>> weight("likely_smoker").names
    ('likely_smoker',)
    """
    return Weight(column)


def pairs(*groups: Group) -> Group:
    """Declare the intersections of every two of the given declarations.

    >>> pairs(where("bmi", ">", 30), cut("age", [50]), weight("smoker")).names[:3]
    ('bmi > 30 & age: <= 50', 'bmi > 30 & age: > 50', 'bmi > 30 & smoker')
    """
    return Pairs(groups)
