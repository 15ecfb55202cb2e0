"""argmin over a decision set of ⟨a, costs⟩: lists of actions, and shortest paths.

A decision set is an ``ActionSet``, the same arrays for every kind so that one compiled learner
serves them all. Ties go to the action, node or edge with the smaller number.
"""

import numpy as np

from groupwise.kernels.compiled import compiled, inlined
from groupwise.kernels.heap import pop, push

FINITE = 0
ACYCLIC = 1
DIJKSTRA = 2


@compiled
def minimise(actions, costs, distance, via, out):
    """Write the best action to ``out``; ``distance`` and ``via`` are room to work in."""
    if actions.kind == FINITE:
        best(actions.table, costs, out)
        return
    if actions.kind == ACYCLIC:
        relax_in_order(actions, costs, distance, via)
    else:
        dijkstra(actions, costs, distance, via)
    walk_back(actions, via, out)


@inlined
def best(table, costs, out):
    """The first row of the table with the least product."""
    place = 0
    least = 0.0
    for i in range(table.shape[0]):
        total = 0.0
        for j in range(costs.size):
            total += table[i, j] * costs[j]
        if i == 0 or total < least:
            place, least = i, total
    for j in range(costs.size):
        out[j] = table[place, j]


@inlined
def relax_in_order(graph, costs, distance, via):
    """Shortest paths from node 0 of a graph whose nodes are in topological order; any costs."""
    for node in range(via.size):
        via[node] = -1
    distance[0] = 0.0
    for node in range(via.size):
        reached = distance[node]
        for place in range(graph.starts[node], graph.starts[node + 1]):
            head = graph.heads[place]
            length = reached + costs[graph.edges[place]]
            if via[head] < 0 or length < distance[head]:
                distance[head] = length
                via[head] = place


@compiled
def dijkstra(graph, costs, distance, via):
    """Shortest paths from node 0; costs at least 0. Ends when the target is settled."""
    for node in range(via.size):
        via[node] = -1
        distance[node] = -1.0  # not reached
    lengths = np.empty(graph.heads.size + 1)
    nodes = np.empty(graph.heads.size + 1, dtype=np.int64)
    distance[0] = 0.0
    count = push(lengths, nodes, 0, 0.0, 0)
    while count > 0:
        reached, node = lengths[0], nodes[0]
        count = pop(lengths, nodes, count)
        if reached > distance[node]:
            continue  # an older, longer way
        if node == graph.target:
            return
        for place in range(graph.starts[node], graph.starts[node + 1]):
            head = graph.heads[place]
            length = reached + costs[graph.edges[place]]
            if distance[head] < 0.0 or length < distance[head]:
                distance[head] = length
                via[head] = place
                count = push(lengths, nodes, count, length, head)


@inlined
def walk_back(graph, via, out):
    """The path to the target as a 0/1 vector over the edges."""
    for j in range(out.size):
        out[j] = 0.0
    node = graph.target
    while node != 0:
        place = via[node]
        out[graph.edges[place]] = 1.0
        node = graph.tails[place]
