"""A square grid whose paths go right and down."""

import numpy as np

from groupwise.oracles import ShortestPath
from groupwise.arrays import Index

Node = tuple[int, int]


def grid_edges(size: int) -> list[tuple[Node, Node]]:
    """The edges to the right, row by row, then those down."""
    right = [((r, c), (r, c + 1)) for r in range(size) for c in range(size - 1)]
    down = [((r, c), (r + 1, c)) for r in range(size - 1) for c in range(size)]
    return right + down


def grid_oracle(size: int) -> ShortestPath:
    """Paths from one corner to the opposite one."""
    return ShortestPath(grid_edges(size), (0, 0), (size - 1, size - 1))


def corridor(turns: str, size: int) -> Index:
    """The edges of the path that takes these turns, R and D."""
    number = {edge: i for i, edge in enumerate(grid_edges(size))}
    node: Node = (0, 0)
    found = []
    for turn in turns:
        following = (node[0], node[1] + 1) if turn == "R" else (node[0] + 1, node[1])
        found.append(number[node, following])
        node = following
    return np.array(found)
