"""Reading directed graphs: edge lists, networkx graphs and scipy sparse matrices."""

from collections.abc import Hashable, Iterable
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Index
from groupwise.errors import ConfigurationError
from groupwise.kernels import linear_oracles
from groupwise.oracles.action_set import ActionSet

Edge = tuple[Hashable, Hashable]


class Digraph(NamedTuple):
    """A directed graph with numbered nodes; edge e goes from tails[e] to heads[e]."""

    nodes: int
    tails: Index
    heads: Index


def read_edges(graph: Any) -> list[Edge]:
    """The edges in their order: as listed, as networkx gives them, or row by row of a matrix."""
    if hasattr(graph, "is_directed"):
        if not graph.is_directed():
            raise ConfigurationError(
                "The graph is undirected. Give graph.to_directed(), or a list of (from, to) pairs."
            )
        edges: Iterable[Any] = graph.edges()
    elif hasattr(graph, "tocoo"):
        matrix = graph.tocsr().tocoo()
        if matrix.shape[0] != matrix.shape[1]:
            raise ConfigurationError("A graph as a sparse matrix must be square: node × node.")
        edges = zip(matrix.row.tolist(), matrix.col.tolist(), strict=True)
    else:
        edges = graph
    found = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, (tuple, list)) or len(edge) != 2:
            raise ConfigurationError(f"{edge!r} is not an edge. Give (from, to) pairs.")
        try:
            hash(edge[0])
            hash(edge[1])
        except TypeError:
            raise ConfigurationError(f"The nodes of the edge {edge!r} cannot be hashed.") from None
        found.append((edge[0], edge[1]))
    if not found:
        raise ConfigurationError("The graph has no edges.")
    return found


def number_nodes(edges: list[Edge]) -> tuple[Digraph, dict[Hashable, int]]:
    """Nodes as numbers, in the order in which the edges name them."""
    index: dict[Hashable, int] = {}
    for edge in edges:
        for node in edge:
            index.setdefault(node, len(index))
    tails = np.array([index[tail] for tail, _ in edges], dtype=np.int64)
    heads = np.array([index[head] for _, head in edges], dtype=np.int64)
    return Digraph(len(index), tails, heads), index


def path_set(graph: Digraph, source: int, target: int) -> ActionSet | None:
    """The paths from source to target; None where there are none.

    Only nodes on some way from source to target are kept; the source becomes number 0, and where
    the rest has no cycle, nodes are in topological order.
    """
    # No path needs an edge out of the target or into the source: without them, every node that is
    # kept is reached before the target.
    inner = (graph.tails != target) & (graph.heads != source)
    tails, heads = graph.tails[inner], graph.heads[inner]
    forward = _reached(tails, heads, graph.nodes, source)
    if target not in forward:
        return None
    useful = forward & _reached(heads, tails, graph.nodes, target)
    kept = [
        e
        for e in np.flatnonzero(inner).tolist()
        if int(graph.tails[e]) in useful and int(graph.heads[e]) in useful
    ]
    order = _topological(useful, [(int(graph.tails[e]), int(graph.heads[e])) for e in kept])
    kind = linear_oracles.DIJKSTRA if order is None else linear_oracles.ACYCLIC
    if order is None:
        order = [source, *sorted(useful - {source})]
    place = {node: i for i, node in enumerate(order)}
    kept.sort(key=lambda e: (place[int(graph.tails[e])], e))
    tails = np.array([place[int(graph.tails[e])] for e in kept], dtype=np.int64)
    heads = np.array([place[int(graph.heads[e])] for e in kept], dtype=np.int64)
    starts = np.searchsorted(tails, np.arange(len(order) + 1)).astype(np.int64)
    none = np.zeros((0, 0))
    edges = np.array(kept, dtype=np.int64)
    return ActionSet(kind, none, starts, tails, heads, edges, place[target])


def longest_path(paths: ActionSet) -> int:
    """The most edges that a path has; without cycles exactly, else at most the nodes less one."""
    nodes = paths.starts.size - 1
    if paths.kind == linear_oracles.DIJKSTRA:
        return nodes - 1
    steps = np.zeros(nodes, dtype=np.int64)
    for tail, head in _pairs(paths.tails, paths.heads):
        steps[head] = max(steps[head], steps[tail] + 1)
    return int(steps[paths.target])


def _pairs(tails: Index, heads: Index) -> list[tuple[int, int]]:
    return list(zip(tails.tolist(), heads.tolist(), strict=True))


def _reached(tails: Index, heads: Index, nodes: int, start: int) -> set[int]:
    following: list[list[int]] = [[] for _ in range(nodes)]
    for tail, head in _pairs(tails, heads):
        following[tail].append(head)
    found, waiting = {start}, [start]
    while waiting:
        for node in following[waiting.pop()]:
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def _topological(nodes: set[int], edges: list[tuple[int, int]]) -> list[int] | None:
    """The nodes in an order that all edges follow; None where there is a cycle."""
    following: dict[int, list[int]] = {node: [] for node in nodes}
    waiting_for = dict.fromkeys(nodes, 0)
    for tail, head in edges:
        following[tail].append(head)
        waiting_for[head] += 1
    ready = sorted((node for node in nodes if waiting_for[node] == 0), reverse=True)
    order = []
    while ready:
        node = ready.pop()
        order.append(node)
        for head in following[node]:
            waiting_for[head] -= 1
            if waiting_for[head] == 0:
                ready.append(head)
    return order if len(order) == len(nodes) else None
