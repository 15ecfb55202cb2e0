"""Shortest paths in a directed graph: an edge list, a networkx graph or a scipy sparse matrix."""

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.errors import ConfigurationError
from groupwise.kernels import linear_oracles
from groupwise.oracles.finite import ActionSet, cost_vector

Edge = tuple[Hashable, Hashable]


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
        edges = _edges(self.edges)
        number = {node: i for i, node in enumerate(dict.fromkeys(chain.from_iterable(edges)))}
        for role, node in (("source", self.source), ("target", self.target)):
            if node not in number:
                raise ConfigurationError(f"The {role} {node!r} is not a node of any edge.")
        if self.source == self.target:
            raise ConfigurationError(f"Source and target are the same node, {self.source!r}.")
        numbered = [(number[tail], number[head]) for tail, head in edges]
        paths = _paths(numbered, number[self.source], number[self.target])
        if paths is None:
            raise ConfigurationError(
                f"The target {self.target!r} cannot be reached from {self.source!r}. "
                "Edges are directed: (from, to)."
            )
        diameter = min(2.0 * _longest(paths), float(paths.heads.size))
        vars(self).update(edges=edges, action_set=paths, diameter=diameter)

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
        leaving = {self.edges[e][0]: self.edges[e] for e in np.flatnonzero(action).tolist()}
        found = [leaving[self.source]]
        while found[-1][1] != self.target:
            found.append(leaving[found[-1][1]])
        return found

    def to_dict(self) -> dict[str, Any] | None:
        """The oracle by name, for snapshots; None where JSON cannot keep its nodes."""
        parts = {"edges": tuple(self.edges), "source": self.source, "target": self.target}
        try:
            return {
                "type": "ShortestPath",
                **{name: plain_node(part) for name, part in parts.items()},
            }
        except TypeError:
            return None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "ShortestPath":
        """The oracle that :meth:`to_dict` wrote."""
        return cls(*(node_of(fields[name]) for name in ("edges", "source", "target")))


def plain_node(node: Any) -> Any:
    """A node as JSON keeps it: tuples become lists, which are no nodes themselves."""
    if isinstance(node, np.generic):
        node = node.item()
    if isinstance(node, tuple):
        return [plain_node(part) for part in node]
    if node is None or isinstance(node, (str, int, float)):
        return node
    raise TypeError(f"JSON cannot keep the node {node!r}")


def node_of(plain: Any) -> Any:
    """The node that :func:`plain_node` made plain."""
    return tuple(node_of(part) for part in plain) if isinstance(plain, list) else plain


def _edges(graph: Any) -> list[Edge]:
    """The edges in their order: as listed, as networkx gives them, or row by row of a matrix."""
    edges = graph
    if hasattr(graph, "is_directed"):
        if not graph.is_directed():
            raise ConfigurationError(
                "The graph is undirected. Give graph.to_directed(), or a list of (from, to) pairs."
            )
        edges = graph.edges()
    elif hasattr(graph, "tocoo"):
        matrix = graph.tocsr().tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise ConfigurationError("A graph as a sparse matrix must be square: node × node.")
        edges = zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)
    found = []
    for edge in edges:
        if not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise ConfigurationError(f"{edge!r} is not an edge. Give (from, to) pairs.")
        try:
            hash(tuple(edge))
        except TypeError:
            raise ConfigurationError(f"The nodes of the edge {edge!r} cannot be hashed.") from None
        found.append((edge[0], edge[1]))
    if not found:
        raise ConfigurationError("The graph has no edges.")
    return found


def _paths(edges: list[tuple[int, int]], source: int, target: int) -> ActionSet | None:
    """The paths from source to target; None where there are none.

    Only nodes on some way from source to target are kept; the source becomes number 0, and where
    the rest has no cycle, nodes are in topological order.
    """
    # No path needs an edge out of the target or into the source: without them, every node that is
    # kept is reached before the target.
    kept = {e: (t, h) for e, (t, h) in enumerate(edges) if t != target and h != source}
    forward = _reached(kept.values(), source)
    if target not in forward:
        return None
    useful = forward & _reached([(head, tail) for tail, head in kept.values()], target)
    kept = {e: ends for e, ends in kept.items() if useful.issuperset(ends)}
    order = _topological(useful, kept.values())
    kind = linear_oracles.DIJKSTRA if order is None else linear_oracles.ACYCLIC
    place = {node: i for i, node in enumerate(order or [source, *sorted(useful - {source})])}
    columns = sorted((place[tail], e, place[head]) for e, (tail, head) in kept.items())
    tails, numbers, heads = np.array(columns, dtype=np.int64).T.copy()
    starts = np.searchsorted(tails, np.arange(len(place) + 1)).astype(np.int64)
    return ActionSet(kind, np.zeros((0, 0)), starts, tails, heads, numbers, place[target])


def _longest(paths: ActionSet) -> int:
    """The most edges that a path has; without cycles exactly, else at most the nodes less one."""
    nodes = paths.starts.size - 1
    if paths.kind == linear_oracles.DIJKSTRA:
        return nodes - 1
    steps = [0] * nodes
    for tail, head in zip(paths.tails.tolist(), paths.heads.tolist(), strict=True):
        steps[head] = max(steps[head], steps[tail] + 1)
    return steps[paths.target]


def _following(edges: Collection[tuple[int, int]]) -> dict[int, list[int]]:
    following = defaultdict(list)
    for tail, head in edges:
        following[tail].append(head)
    return following


def _reached(edges: Collection[tuple[int, int]], start: int) -> set[int]:
    following = _following(edges)
    found, waiting = {start}, [start]
    while waiting:
        new = set(following[waiting.pop()]) - found
        found |= new
        waiting.extend(new)
    return found


def _topological(nodes: set[int], edges: Collection[tuple[int, int]]) -> list[int] | None:
    """The nodes in an order that all edges follow; None where there is a cycle."""
    following = _following(edges)
    waiting_for = Counter(head for _, head in edges)
    ready = sorted(nodes - waiting_for.keys(), reverse=True)
    order = []
    while ready:
        order.append(ready.pop())
        for head in following[order[-1]]:
            waiting_for[head] -= 1
            if waiting_for[head] == 0:
                ready.append(head)
    return order if len(order) == len(nodes) else None
