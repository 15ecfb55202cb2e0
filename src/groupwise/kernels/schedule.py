"""From rows to subsequences, and fair shares of them for threads."""

import numpy as np
from numba import njit


@njit(nogil=True, cache=True)
def by_group(groups, count):
    """Counting sort of the (row, group) pairs by group: ``(starts, entries)``, rows in order."""
    starts = np.zeros(count + 1, dtype=np.int64)
    for group in groups:
        starts[group + 1] += 1
    for g in range(count):
        starts[g + 1] += starts[g]
    entries = np.empty(groups.size, dtype=np.int64)
    place = starts[:-1].copy()
    for entry in range(groups.size):
        group = groups[entry]
        entries[place[group]] = entry
        place[group] += 1
    return starts, entries


@njit(nogil=True, cache=True)
def share_out(sizes, order, jobs):
    """The job that takes each group: largest group first, to the job with least work so far."""
    load = np.zeros(jobs, dtype=np.int64)
    job = np.empty(sizes.size, dtype=np.int64)
    for group in order:
        least = 0
        for j in range(1, jobs):
            if load[j] < load[least]:
                least = j
        job[group] = least
        load[least] += sizes[group]
    return job


@njit(nogil=True, cache=True)
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
