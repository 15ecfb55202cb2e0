"""From rows to subsequences: the rounds of each group."""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index
from groupwise.kernels.compiled import compiled


class Parts(NamedTuple):
    """Some rows by group, the largest group first.

    Group ``groups[i]`` has the rounds ``starts[i]`` to ``starts[i + 1]``: ``rows`` are their rows,
    ``entries`` their places in the row-major list of (row, awake group) pairs.
    """

    groups: Index
    starts: Index
    entries: Index
    rows: Index


@compiled
def subsequences(indptr, groups, slots):
    """The rounds of every group that is awake in some row: the fields of :class:`Parts`.

    ``slots`` has a -1 for every group there is, before and after. The time does not depend on how
    many groups there are, only on how many are awake.
    """
    present = np.empty(min(groups.size, slots.size), dtype=np.int64)
    sizes = np.zeros(present.size + 1, dtype=np.int64)
    count = 0
    for group in groups:
        if slots[group] < 0:
            slots[group] = count
            present[count] = group
            count += 1
        sizes[slots[group]] += 1
    present, sizes = present[:count], sizes[:count]
    order = _largest_first(sizes)
    starts = np.zeros(count + 1, dtype=np.int64)
    for i in range(count):
        starts[i + 1] = starts[i] + sizes[order[i]]
    places = np.empty(count, dtype=np.int64)
    for i in range(count):
        places[order[i]] = starts[i]
    entries, rows = np.empty_like(groups), np.empty_like(groups)
    for t in range(indptr.size - 1):
        for entry in range(indptr[t], indptr[t + 1]):
            slot = slots[groups[entry]]
            entries[places[slot]], rows[places[slot]] = entry, t
            places[slot] += 1
    for group in present:
        slots[group] = -1
    return present[order], starts, entries, rows


@compiled
def _largest_first(sizes):
    """Positions by falling size, by counting."""
    largest = 0
    for size in sizes:
        largest = max(largest, size)
    after = np.zeros(largest + 2, dtype=np.int64)
    for size in sizes:
        after[largest - size + 1] += 1
    for i in range(largest + 1):
        after[i + 1] += after[i]
    order = np.empty_like(sizes)
    for i in range(sizes.size):
        key = largest - sizes[i]
        order[after[key]] = i
        after[key] += 1
    return order


@compiled
def compress(matrix):
    """A dense matrix as sparse rows ``(indptr, indices, values)``, zeros left out."""
    rows, columns = matrix.shape
    indptr = np.zeros(rows + 1, dtype=np.int64)
    zeros = 0
    for t in range(rows):
        for j in range(columns):
            zeros += matrix[t, j] == 0
    indices = np.empty(rows * columns, dtype=np.int64)
    values = np.empty(rows * columns)
    if zeros == 0:
        for t in range(rows):
            indptr[t + 1] = (t + 1) * columns
            for j in range(columns):
                indices[t * columns + j] = j
                values[t * columns + j] = matrix[t, j]
        return indptr, indices, values
    place = 0
    for t in range(rows):
        for j in range(columns):
            # Written always and kept by the step, so that no branch is to be guessed.
            indices[place] = j
            values[place] = matrix[t, j]
            place += matrix[t, j] != 0
        indptr[t + 1] = place
    return indptr, indices[:place], values[:place]
