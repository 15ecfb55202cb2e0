"""Decision sets with quick exact minimisers: the best k, assignments, spanning trees, matroids."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index
from groupwise.errors import ConfigurationError, is_finite
from groupwise.oracles.finite import cost_vector
from groupwise.oracles.shortest_path import node_of, plain_node


def _whole(name: str, value: Any) -> int:
    """A whole number from 1 on."""
    if not is_finite(value, (int, np.integer)) or value < 1:
        raise ConfigurationError(f"{name} must be a whole number from 1 on, not {value!r}.")
    return int(value)


@dataclass(frozen=True)
class _Sets:
    """Sets of a fixed size as 0/1 vectors. To be derived from."""

    exact: ClassVar[bool] = True
    any_sign: ClassVar[bool] = True
    integral: ClassVar[bool] = True

    def to_dict(self) -> dict[str, Any] | None:
        """The oracle by name, for snapshots; None where it cannot be saved."""
        kept = {key: value for key, value in vars(self).items() if not key.startswith("_")}
        return {"type": type(self).__name__, **kept}


@dataclass(frozen=True)
class TopK(_Sets):
    """Exactly ``size`` of ``dimension`` coordinates: a team, a shortlist, the ads of a page.

    The cheapest ones, by sorting. Ties go to the first.

    >>> TopK(4, 2).minimise([3.0, 1.0, 2.0, 2.0])
    array([0, 1, 1, 0])

    Guarantee
    ---------
    Exact. E min ⟨a, u⟩ = k(k + 1)/(2(d + 1)), u uniform: the i-th least of d numbers has the mean
    i/(d + 1).
    """

    dimension: int
    size: int

    def __post_init__(self) -> None:
        if _whole("size", self.size) > _whole("dimension", self.dimension):
            raise ConfigurationError(f"{self.size} of {self.dimension} coordinates are too many.")

    @property
    def diameter(self) -> float:
        """D = max ‖a − a'‖₁."""
        return 2.0 * min(self.size, self.dimension - self.size)

    def minimise(self, costs: ArrayLike) -> Index:
        """The action with the least ⟨a, costs⟩."""
        order = np.argsort(cost_vector(costs, self.dimension), kind="stable")
        return _vector(order[: self.size], self.dimension)

    def mean_minimum(self) -> float:
        """E min_a ⟨a, u⟩, u uniform on [0, 1]^d."""
        return self.size * (self.size + 1) / (2.0 * (self.dimension + 1))


@dataclass(frozen=True)
class Assignment(_Sets):
    """One column for every row, no column twice (or one row for every column, where these are few).

    Coordinate i · ``columns`` + j of an action says that row i gets column j. Found by
    ``scipy.optimize.linear_sum_assignment``.

    >>> Assignment(2, 3).minimise([5, 1, 9, 1, 2, 9]).reshape(2, 3)
    array([[0, 1, 0],
           [1, 0, 0]])

    Guarantee
    ---------
    Exact.
    """

    rows: int
    columns: int

    def __post_init__(self) -> None:
        _whole("rows", self.rows)
        _whole("columns", self.columns)

    @property
    def dimension(self) -> int:
        """d, the length of actions and cost vectors."""
        return self.rows * self.columns

    @property
    def diameter(self) -> float:
        """D = max ‖a − a'‖₁: with two columns or rows there are assignments that share nothing."""
        return 2.0 * min(self.rows, self.columns) if self.dimension > 1 else 0.0

    def minimise(self, costs: ArrayLike) -> Index:
        """The action with the least ⟨a, costs⟩."""
        from scipy.optimize import linear_sum_assignment

        matrix = cost_vector(costs, self.dimension).reshape(self.rows, self.columns)
        chosen, places = linear_sum_assignment(matrix)
        return _vector(chosen * self.columns + places, self.dimension)


@dataclass(frozen=True, eq=False)
class Matroid(_Sets):
    """The bases of a matroid: the largest sets that ``independent`` says yes to.

    Greedy: coordinates from the cheapest on, each taken that leaves the set independent. Ties go to
    the first. It cannot be saved, as ``independent`` is a function.

    Parameters
    ----------
    dimension : d.
    independent : is this list of coordinates independent? Subsets of independent sets must be, and
        all largest ones be of one size in every set of coordinates: else nothing is guaranteed.

    >>> at_most_one_of_each_pair = lambda chosen: len({i // 2 for i in chosen}) == len(chosen)
    >>> Matroid(4, at_most_one_of_each_pair).minimise([1.0, 2.0, 4.0, 3.0])
    array([1, 0, 0, 1])

    Guarantee
    ---------
    Exact for matroids (Rado 1957, Edmonds 1971).
    """

    dimension: int
    independent: Callable[[list[int]], bool]
    rank: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        _whole("dimension", self.dimension)
        if not callable(self.independent):
            raise ConfigurationError("independent must be a function of a list of coordinates.")
        vars(self).update(rank=int(self.minimise(np.zeros(self.dimension)).sum()))
        if self.rank == 0:
            raise ConfigurationError("No coordinate is independent: there is nothing to choose.")

    @property
    def diameter(self) -> float:
        """D ≥ max ‖a − a'‖₁: bases have the same size."""
        return 2.0 * min(self.rank, self.dimension - self.rank)

    def minimise(self, costs: ArrayLike) -> Index:
        """The basis with the least ⟨a, costs⟩."""
        chosen: list[int] = []
        for place in np.argsort(cost_vector(costs, self.dimension), kind="stable").tolist():
            if self.independent([*chosen, place]):
                chosen.append(place)
        return _vector(np.array(chosen, dtype=np.int64), self.dimension)

    def to_dict(self) -> dict[str, Any] | None:
        """A function cannot be saved."""
        return None


@dataclass(frozen=True, eq=False)
class SpanningTree(_Sets):
    """The spanning trees of a graph: a network that reaches every node.

    Kruskal's algorithm. Ties go to the first edge. An action has an entry for each edge.

    Parameters
    ----------
    edges : pairs of nodes, of any names; several between two nodes are fine, loops are not.

    >>> SpanningTree([("a", "b"), ("b", "c"), ("a", "c")]).minimise([1.0, 3.0, 2.0])
    array([1, 0, 1])

    Guarantee
    ---------
    Exact.
    """

    edges: Sequence[tuple[Any, Any]]
    _ends: tuple[list[int], list[int], int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        try:
            pairs = [(tail, head) for tail, head in self.edges]
            nodes = {node: i for i, node in enumerate(dict.fromkeys(x for e in pairs for x in e))}
        except (TypeError, ValueError):
            raise ConfigurationError("edges must be pairs of nodes.") from None
        if not pairs or any(tail == head for tail, head in pairs):
            raise ConfigurationError("edges must be pairs of different nodes, one at least.")
        tails, heads = ([nodes[e[side]] for e in pairs] for side in (0, 1))
        vars(self).update(edges=pairs, _ends=(tails, heads, len(nodes)))
        if int(self.minimise(np.zeros(len(pairs))).sum()) < len(nodes) - 1:
            raise ConfigurationError("The graph is not connected: it has no spanning tree.")

    @property
    def dimension(self) -> int:
        """d, the number of edges."""
        return len(self.edges)

    @property
    def diameter(self) -> float:
        """D ≥ max ‖a − a'‖₁: trees have the same size."""
        size = self._ends[2] - 1
        return 2.0 * min(size, self.dimension - size)

    def minimise(self, costs: ArrayLike) -> Index:
        """The tree with the least ⟨a, costs⟩."""
        tails, heads, count = self._ends
        leader = list(range(count))

        def root(node: int) -> int:
            while leader[node] != node:
                leader[node] = leader[leader[node]]
                node = leader[node]
            return node

        chosen = []
        for edge in np.argsort(cost_vector(costs, self.dimension), kind="stable").tolist():
            one, other = root(tails[edge]), root(heads[edge])
            if one != other:
                leader[one] = other
                chosen.append(edge)
        return _vector(np.array(chosen, dtype=np.int64), self.dimension)

    def to_dict(self) -> dict[str, Any] | None:
        """The oracle by name, for snapshots; None where JSON cannot keep its nodes."""
        try:
            return {"type": "SpanningTree", "edges": plain_node(tuple(self.edges))}
        except TypeError:
            return None

    @classmethod
    def from_dict(cls, fields: dict[str, Any]) -> "SpanningTree":
        """The oracle that :meth:`to_dict` wrote."""
        return cls(node_of(fields["edges"]))


def _vector(chosen: Index, dimension: int) -> Index:
    """A set of coordinates as 0 and 1."""
    action = np.zeros(dimension, dtype=np.int64)
    action[chosen] = 1
    return action
