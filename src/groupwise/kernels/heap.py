"""A binary heap in two arrays: lengths, and the nodes they belong to; the least is first."""

from groupwise.kernels.compiled import inlined, lean


@inlined
def _before(lengths, nodes, i, j):
    if lengths[i] != lengths[j]:
        return lengths[i] < lengths[j]
    return nodes[i] < nodes[j]


@inlined
def _swap(lengths, nodes, i, j):
    lengths[i], lengths[j] = lengths[j], lengths[i]
    nodes[i], nodes[j] = nodes[j], nodes[i]


@lean
def push(lengths, nodes, count, length, node):
    """Add a pair to a heap of ``count``; returns the new count."""
    i = count
    lengths[i], nodes[i] = length, node
    while i > 0:
        parent = (i - 1) // 2
        if not _before(lengths, nodes, i, parent):
            break
        _swap(lengths, nodes, i, parent)
        i = parent
    return count + 1


@lean
def pop(lengths, nodes, count):
    """Remove the first pair of a heap of ``count``; returns the new count."""
    last = count - 1
    lengths[0], nodes[0] = lengths[last], nodes[last]
    i = 0
    while True:
        child = 2 * i + 1
        if child >= last:
            return last
        if child + 1 < last and _before(lengths, nodes, child + 1, child):
            child += 1
        if not _before(lengths, nodes, child, i):
            return last
        _swap(lengths, nodes, i, child)
        i = child
