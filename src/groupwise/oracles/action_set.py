"""A decision set as arrays, the form that the compiled learners take."""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector


class ActionSet(NamedTuple):
    """Actions as the rows of a table, or as the paths of a graph from node 0 to ``target``.

    The graph's edges leave node i at the places starts[i] … starts[i + 1]; the edge at a place goes
    from ``tails`` to ``heads`` and is coordinate ``edges`` of an action.
    """

    kind: int
    table: Vector
    starts: Index
    tails: Index
    heads: Index
    edges: Index
    target: int

    @classmethod
    def of_table(cls, kind: int, table: Vector) -> "ActionSet":
        """A list of actions."""
        none = np.zeros(0, dtype=np.int64)
        return cls(kind, table, np.zeros(1, dtype=np.int64), none, none, none, 0)
