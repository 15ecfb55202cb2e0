"""Shortest paths: right on random graphs, all ways to give a graph, and what is refused."""

import itertools

import networkx
import numpy as np
import pytest
from scipy.sparse import csr_array

from groupwise.errors import ConfigurationError
from groupwise.oracles import ShortestPath, oracle_from_dict

SQUARE = [("a", "b"), ("b", "z"), ("a", "c"), ("c", "z"), ("a", "z")]


def random_graph(rng: np.random.Generator) -> tuple[networkx.DiGraph, int, int]:
    """A random directed graph in which the target can be reached."""
    while True:
        nodes = int(rng.integers(3, 15))
        graph = networkx.gnp_random_graph(
            nodes, rng.uniform(0.15, 0.6), seed=int(rng.integers(2**31)), directed=True
        )
        if rng.random() < 0.3:  # no cycles
            graph = networkx.DiGraph([(u, v) for u, v in graph.edges() if u < v])
        if 0 in graph and nodes - 1 in graph and networkx.has_path(graph, 0, nodes - 1):
            return graph, 0, nodes - 1


def test_agrees_with_networkx_on_500_random_graphs() -> None:
    rng = np.random.default_rng(5)
    kinds = set()
    for _ in range(500):
        graph, source, target = random_graph(rng)
        oracle = ShortestPath(graph, source, target)
        kinds.add(oracle.action_set.kind)
        costs = np.round(rng.random(oracle.dimension), int(rng.integers(1, 4)))  # with ties
        for (u, v), cost in zip(oracle.edges, costs, strict=True):
            graph[u][v]["weight"] = cost
        action = oracle.minimise(costs)
        assert action @ costs == pytest.approx(
            networkx.dijkstra_path_length(graph, source, target), abs=1e-12
        )
        path = oracle.path(action)
        assert (path[0][0], path[-1][1]) == (source, target)
        assert all(one[1] == other[0] for one, other in itertools.pairwise(path))
        assert len(path) == action.sum()
    assert len(kinds) == 2


def test_negative_costs_without_cycles() -> None:
    oracle = ShortestPath(SQUARE, "a", "z")
    assert oracle.minimise([1.0, -5.0, 1.0, 1.0, -3.0]).tolist() == [1, 1, 0, 0, 0]
    cyclic = ShortestPath([*SQUARE, ("b", "c"), ("c", "b")], "a", "z")
    with pytest.raises(ConfigurationError, match=r"at least 0; edge \('b', 'z'\)"):
        cyclic.minimise([1.0, -5.0, 1.0, 1.0, -3.0, 0.0, 0.0])


def test_ties_are_always_decided_alike() -> None:
    oracle = ShortestPath(SQUARE, "a", "z")
    costs = [1.0, 1.0, 1.0, 1.0, 2.0]
    assert oracle.minimise(costs).tolist() == oracle.minimise(costs).tolist()
    again = ShortestPath(SQUARE, "a", "z")
    assert oracle.minimise(costs).tolist() == again.minimise(costs).tolist()


def test_parallel_edges_are_separate() -> None:
    oracle = ShortestPath([("a", "z"), ("a", "z")], "a", "z")
    assert oracle.minimise([2.0, 1.0]).tolist() == [0, 1]


def test_graphs_of_networkx_and_scipy() -> None:
    graph = networkx.DiGraph([(0, 1), (1, 2), (0, 2)])
    matrix = csr_array(np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]]))
    from_graph, from_matrix = ShortestPath(graph, 0, 2), ShortestPath(matrix, 0, 2)
    assert from_matrix.edges == [(0, 1), (0, 2), (1, 2)]
    assert from_graph.path(from_graph.minimise([1.0] * 3)) == [(0, 2)]
    assert from_matrix.path(from_matrix.minimise([1.0] * 3)) == [(0, 2)]


def test_diameter_of_the_grid() -> None:
    grid = networkx.grid_2d_graph(10, 10, create_using=networkx.DiGraph)
    monotone = [(u, v) for u, v in grid.edges() if sum(u) < sum(v)]
    oracle = ShortestPath(monotone, (0, 0), (9, 9))
    assert (oracle.dimension, oracle.diameter) == (180, 36.0)


def test_round_trip_keeps_tuple_nodes() -> None:
    oracle = ShortestPath([((0, 0), (0, 1)), ((0, 1), (1, 1))], (0, 0), (1, 1))
    written = oracle.to_dict()
    assert written is not None
    again = oracle_from_dict(written)
    assert (again.edges, again.source, again.target) == (oracle.edges, (0, 0), (1, 1))
    assert ShortestPath([(object, "z")], object, "z").to_dict() is None


@pytest.mark.parametrize(
    ("edges", "source", "target", "message"),
    [
        ([("a", "b"), ("z", "b")], "a", "z", "cannot be reached"),
        ([("a", "b")], "a", "q", "target 'q' is not a node"),
        ([("a", "b")], "a", "a", "the same node"),
        ([], "a", "z", "no edges"),
        (["ab"], "a", "b", "not an edge"),
        ([("a", "b", "c")], "a", "b", "not an edge"),
        ([("a", [])], "a", "b", "cannot be hashed"),
        (networkx.Graph([("a", "b")]), "a", "b", "undirected"),
        (csr_array(np.ones((2, 3))), 0, 1, "square"),
    ],
)
def test_refused(edges: object, source: str, target: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ShortestPath(edges, source, target)


def test_costs_must_fit() -> None:
    oracle = ShortestPath(SQUARE, "a", "z")
    for costs in ([1.0] * 4, [np.nan] * 5, [[1.0] * 5]):
        with pytest.raises(ConfigurationError, match="5 finite numbers"):
            oracle.minimise(costs)
