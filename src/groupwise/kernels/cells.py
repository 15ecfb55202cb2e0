"""Rows of features in the form that the kernels take, and their products.

A row that is mostly zeros is given by the positions ``xi`` of its non-zeros, in ascending order,
and their values ``xv``. Any other row is *full*: ``xi`` is empty and ``xv`` has all cells from the
first to the last non-zero one, filled up with zeros to whole vectors. Which of the two it is
depends on the row alone, so that every driver takes the same way.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Flags, Index, Vector
from groupwise.kernels.compiled import compiled, inlined, lean
from groupwise.kernels.layout import LANES
from groupwise.kernels.vectors import dense_dot, fma

UNSIGNED = np.uint64
"""Positions that are taken for such need no check for negative ones, which costs a kernel more than
what it does with the cell."""


@inlined
def padded(features):
    """The number of columns rounded up to whole vectors."""
    return (features + LANES - 1) // LANES * LANES


@inlined
def is_full(count, last):
    """Is a row with this many non-zeros, the last of them at this position, given in full?"""
    return 2 * count > last


@inlined
def tidy(xi, xv, indices, values):
    """Write a row into the buffers given, in the form that the kernels take.

    Returns how many positions and how many values it has then.
    """
    count, last = 0, 0
    for k in range(xv.size):
        if xv[k] != 0.0:
            count += 1
            last = max(last, xi[k])
    if count > 0 and is_full(count, last):
        size = padded(last + 1)
        values[:size] = 0.0
        for k in range(xv.size):
            if xv[k] != 0.0:
                values[xi[k]] = xv[k]
        return 0, size
    place = 0
    for k in range(xv.size):
        if xv[k] != 0.0:
            indices[place], values[place] = xi[k], xv[k]
            place += 1
    return place, place


@inlined
def dot(vector, xi, xv):
    """⟨vector, x⟩ in four interleaved sums."""
    if xi.size == 0:
        return dense_dot(vector, xv, xv.size)
    sum_0, sum_1, sum_2, sum_3 = 0.0, 0.0, 0.0, 0.0
    count = xi.size
    k = 0
    while k + 4 <= count:
        sum_0 = fma(vector[UNSIGNED(xi[k])], xv[k], sum_0)
        sum_1 = fma(vector[UNSIGNED(xi[k + 1])], xv[k + 1], sum_1)
        sum_2 = fma(vector[UNSIGNED(xi[k + 2])], xv[k + 2], sum_2)
        sum_3 = fma(vector[UNSIGNED(xi[k + 3])], xv[k + 3], sum_3)
        k += 4
    while k < count:
        sum_0 = fma(vector[UNSIGNED(xi[k])], xv[k], sum_0)
        k += 1
    return (sum_0 + sum_1) + (sum_2 + sum_3)


@inlined
def gathered_dot(vector, places, values, count):
    """Σ vector[places[k]] values[k] over the first ``count``; zeros after them change no digit."""
    sum_0, sum_1, sum_2, sum_3 = 0.0, 0.0, 0.0, 0.0
    k = 0
    while k + 4 <= count:
        sum_0 = fma(vector[UNSIGNED(places[k])], values[k], sum_0)
        sum_1 = fma(vector[UNSIGNED(places[k + 1])], values[k + 1], sum_1)
        sum_2 = fma(vector[UNSIGNED(places[k + 2])], values[k + 2], sum_2)
        sum_3 = fma(vector[UNSIGNED(places[k + 3])], values[k + 3], sum_3)
        k += 4
    if k < count:
        sum_0 = fma(vector[UNSIGNED(places[k])], values[k], sum_0)
    if k + 1 < count:
        sum_1 = fma(vector[UNSIGNED(places[k + 1])], values[k + 1], sum_1)
    if k + 2 < count:
        sum_2 = fma(vector[UNSIGNED(places[k + 2])], values[k + 2], sum_2)
    return (sum_0 + sum_1) + (sum_2 + sum_3)


class Cells(NamedTuple):
    """Row t has the values ``values[indptr[t]:indptr[t + 1]]``.

    Their positions stand at the same places of ``indices``, unless the row is ``full``: then they
    are 0, 1, 2, …, and there are zeros among them. Where all rows are, there may be no ``indices``.
    """

    indptr: Index
    indices: Index
    values: Vector
    full: Flags

    @staticmethod
    def of_dense(matrix: Vector) -> "Cells":
        """Those of a matrix, whose own memory they are where they would be the same."""
        if not (matrix.flags.writeable and is_whole(matrix)):
            return Cells(*of_matrix(matrix))
        rows, columns = matrix.shape
        none = np.zeros(0, dtype=np.int64)
        indptr = columns * np.arange(rows + 1, dtype=np.int64)
        return Cells(indptr, none, matrix.reshape(-1), np.ones(rows, dtype=np.bool_))

    def part(self, start: int, stop: int) -> "Cells":
        """Some of the rows."""
        cells = slice(self.indptr[start], self.indptr[stop])
        indptr = self.indptr[start : stop + 1] - self.indptr[start]
        return Cells(indptr, self.indices[cells], self.values[cells], self.full[start:stop])

    def row(self, t: int) -> tuple[Index, Vector]:
        """The positions and values of a row's non-zeros."""
        part = slice(self.indptr[t], self.indptr[t + 1])
        if not self.full[t]:
            return self.indices[part], self.values[part]
        positions = np.flatnonzero(self.values[part])
        return positions, self.values[part][positions]

    def cell(self, place: int) -> tuple[int, int]:
        """The row and column of a value."""
        row = int(np.searchsorted(self.indptr, place, "right")) - 1
        return row, int(place - self.indptr[row] if self.full[row] else self.indices[place])


@lean
def is_whole(matrix):
    """Are all rows of a matrix full, and to the last column, and are these whole vectors?"""
    rows, columns = matrix.shape
    if columns != padded(columns):
        return False
    for t in range(rows):
        last = columns - 1
        while last >= 0 and matrix[t, last] == 0.0:
            last -= 1
        if padded(last + 1) < columns:
            return False
        count = 0
        for j in range(columns):
            count += matrix[t, j] != 0.0
        if not is_full(count, last):
            return False
    return True


@compiled
def of_matrix(matrix):
    """The cells of a dense matrix."""
    rows, columns = matrix.shape
    indptr = np.zeros(rows + 1, dtype=np.int64)
    full = np.empty(rows, dtype=np.bool_)
    indices = np.empty(rows * padded(columns), dtype=np.int64)
    values = np.empty(rows * padded(columns))
    for t in range(rows):
        _lay(matrix[t], indptr[t : t + 2], full[t : t + 1], indices, values)
    return indptr, indices[: indptr[-1]], values[: indptr[-1]], full


@inlined
def _lay(row, span, full, indices, values):
    """Write a dense row to its place in the cells."""
    first = span[0]
    count = 0
    for j in range(row.size):
        values[first + j] = row[j]
        count += row[j] != 0.0
    last = row.size - 1
    while last >= 0 and row[last] == 0.0:
        last -= 1
    full[0] = is_full(count, last)
    if full[0]:
        span[1] = first + padded(last + 1)
        for place in range(first + last + 1, span[1]):
            values[place] = 0.0
        return
    place = first
    for j in range(last + 1):
        # Written always and kept by the step, so that no branch is to be guessed.
        indices[place], values[place] = j, row[j]
        place += row[j] != 0.0
    span[1] = place


@lean
def first_outside(values, low, high):
    """The position of the first value that is not in [low, high]; -1 if there is none."""
    fine = 0
    for k in range(values.size):
        fine += (values[k] >= low) & (values[k] <= high)
    if fine < values.size:
        for k in range(values.size):
            if not low <= values[k] <= high:
                return k
    return -1


@compiled
def of_sparse(indptr, indices, values):
    """The cells of sparse rows; each row's positions ascend."""
    rows = indptr.size - 1
    starts = np.zeros(rows + 1, dtype=np.int64)
    full = np.empty(rows, dtype=np.bool_)
    for t in range(rows):
        count, last = 0, 0
        for k in range(indptr[t], indptr[t + 1]):
            if values[k] != 0.0:
                count += 1
                last = indices[k]
        full[t] = count > 0 and is_full(count, last)
        starts[t + 1] = starts[t] + (padded(last + 1) if full[t] else count)
    tidy_indices = np.empty(starts[-1], dtype=np.int64)
    tidy_values = np.empty(starts[-1])
    for t in range(rows):
        given = slice(indptr[t], indptr[t + 1])
        room = slice(starts[t], starts[t + 1])
        tidy(indices[given], values[given], tidy_indices[room], tidy_values[room])
    return starts, tidy_indices, tidy_values, full
