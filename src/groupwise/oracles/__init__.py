"""Offline optimisers that learners call.

An oracle has one method: ``minimise(costs) -> action`` for linear optimisation over a decision set,
``minimise(contexts, costs) -> policy`` with ``policy(x) -> action`` for classes of policies. Any
object with that method can be one; ``groupwise.protocols`` says what else it may tell.
"""

from collections.abc import Mapping
from typing import Any

from groupwise.errors import named
from groupwise.oracles.combinatorial import Assignment, Matroid, SpanningTree, TopK
from groupwise.oracles.finite import Finite
from groupwise.oracles.policies import FiniteClass, Sklearn, Stumps
from groupwise.oracles.rules import Halfspaces, Trees
from groupwise.oracles.shortest_path import ShortestPath

__all__ = [
    "Assignment",
    "Finite",
    "FiniteClass",
    "Halfspaces",
    "Matroid",
    "ShortestPath",
    "Sklearn",
    "SpanningTree",
    "Stumps",
    "TopK",
    "Trees",
    "oracle_from_dict",
]
SAVED = Assignment, Finite, FiniteClass, Halfspaces, ShortestPath, SpanningTree, Stumps, TopK, Trees
KINDS: dict[str, Any] = {kind.__name__: kind for kind in SAVED}


def oracle_from_dict(fields: Mapping[str, Any]) -> Any:
    """The oracle that its ``to_dict`` wrote."""
    return named(KINDS, fields, "oracle")
