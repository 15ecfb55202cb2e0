"""Shortest paths in a directed graph."""

from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.errors import ConfigurationError
from groupwise.kernels import linear_oracles
from groupwise.oracles.action_set import ActionSet
from groupwise.oracles.costs import cost_vector
from groupwise.oracles.graphs import Edge, longest_path, number_nodes, path_set, read_edges


@dataclass(frozen=True, eq=False)
class ShortestPath:
    """The paths from ``source`` to ``target`` as decision set: 0/1 vectors over the edges.

    Where no cycle lies between source and target, nodes are taken in topological order and costs
    may have any sign; otherwise Dijkstra's algorithm runs, and costs must be at least 0. Equally
    short paths: always the same one, that of the smaller numbers of nodes and edges.

    Parameters
    ----------
    edges : (from, to) pairs, a directed networkx graph, or a square scipy sparse matrix whose
        stored entries are the edges (nodes are then 0 … n − 1). Parallel edges are allowed. The
        order of the edges is that of the action's coordinates: ``oracle.edges`` lists them.
    source, target : two different nodes; a target out of reach is an error.

    >>> oracle = ShortestPath([("a", "b"), ("b", "z"), ("a", "z")], source="a", target="z")
    >>> oracle.minimise([1.0, 1.0, 3.0])
    array([1, 1, 0])

    Guarantee
    ---------
    Exact. ``diameter``, D = max ‖a − a'‖₁, is at most twice the edges of the longest path, which is
    known exactly where there is no cycle and bounded by the nodes less one where there is.
    """

    exact: ClassVar[bool] = True
    integral: ClassVar[bool] = True
    edges: Any
    source: Hashable
    target: Hashable
    action_set: ActionSet = field(init=False, repr=False)
    diameter: float = field(init=False, repr=False)

    def __post_init__(self) -> None:
        edges = read_edges(self.edges)
        graph, index = number_nodes(edges)
        for role, node in (("source", self.source), ("target", self.target)):
            if node not in index:
                raise ConfigurationError(f"The {role} {node!r} is not a node of any edge.")
        if self.source == self.target:
            raise ConfigurationError(f"Source and target are the same node, {self.source!r}.")
        paths = path_set(graph, index[self.source], index[self.target])
        if paths is None:
            raise ConfigurationError(
                f"The target {self.target!r} cannot be reached from {self.source!r}. "
                "Edges are directed: (from, to)."
            )
        object.__setattr__(self, "edges", edges)
        object.__setattr__(self, "action_set", paths)
        diameter = min(2.0 * longest_path(paths), float(paths.heads.size))
        object.__setattr__(self, "diameter", diameter)

    @property
    def dimension(self) -> int:
        """The number of edges, the length of actions and cost vectors."""
        return len(self.edges)

    @property
    def any_sign(self) -> bool:
        """May costs be negative?"""
        return self.action_set.kind == linear_oracles.ACYCLIC

    def minimise(self, costs: ArrayLike) -> Any:
        """The shortest path as a 0/1 vector over the edges."""
        vector = cost_vector(costs, self.dimension)
        if not self.any_sign and vector.min() < 0.0:
            raise ConfigurationError(
                "The graph has cycles, so costs must be at least 0; "
                f"edge {self.edges[int(vector.argmin())]!r} costs {vector.min():g}."
            )
        nodes = self.action_set.starts.size - 1
        path = np.empty(self.dimension)
        linear_oracles.minimise(
            self.action_set, vector, np.empty(nodes), np.empty(nodes, dtype=np.int64), path
        )
        return path.astype(np.int64)

    def path(self, action: ArrayLike) -> list[Edge]:
        """The edges of an action, in the order in which they are travelled."""
        used = np.flatnonzero(np.asarray(action)).tolist()
        leaving = {self.edges[e][0]: self.edges[e] for e in used}
        found: list[Edge] = []
        node = self.source
        while node != self.target:
            found.append(leaving[node])
            node = leaving[node][1]
        return found

    def to_dict(self) -> dict[str, Any] | None:
        """The oracle by name, for snapshots; None where JSON cannot keep its nodes."""
        try:
            edges = [[_plain(tail), _plain(head)] for tail, head in self.edges]
            ends = {"source": _plain(self.source), "target": _plain(self.target)}
        except TypeError:
            return None
        return {"type": "ShortestPath", "edges": edges, **ends}

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "ShortestPath":
        """The oracle that :meth:`to_dict` wrote."""
        edges = [(_node(tail), _node(head)) for tail, head in fields["edges"]]
        return cls(edges, _node(fields["source"]), _node(fields["target"]))


def _plain(node: Any) -> Any:
    """A node as JSON keeps it: tuples become lists, which are no nodes themselves."""
    if isinstance(node, np.generic):
        node = node.item()
    if isinstance(node, tuple):
        return [_plain(part) for part in node]
    if node is None or isinstance(node, (str, int, float)):
        return node
    raise TypeError(f"JSON cannot keep the node {node!r}")


def _node(plain: Any) -> Any:
    return tuple(_node(part) for part in plain) if isinstance(plain, list) else plain
