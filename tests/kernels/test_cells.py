"""Rows in the form that the kernels take, whatever they come from."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numba import njit

from groupwise.kernels import cells
from groupwise.kernels.cells import Cells

MATRICES = arrays(
    np.float64,
    st.tuples(st.integers(1, 6), st.integers(1, 19)),
    elements=st.sampled_from([0.0, 0.0, 1.0, -2.5, 1e-300]),
)


def dense(found, columns):
    out = np.zeros((len(found.full), columns))
    for t in range(len(found.full)):
        positions, values = found.row(t)
        out[t, positions] = values
    return out


@njit
def _tidy(xi, xv, indices, values):
    return cells.tidy(xi, xv, indices, values)


def tidied(xi, xv):
    """A single row in the form that the kernels take."""
    room = 4 * xv.size + 4
    indices, values = np.full(room, -1), np.full(room, np.nan)
    positions, size = _tidy(xi, xv, indices, values)
    return indices[:positions], values[:size]


@settings(deadline=None)  # the first call compiles
@given(MATRICES)
def test_nothing_is_lost(matrix):
    found = Cells(*cells.of_matrix(matrix))
    assert np.array_equal(dense(found, matrix.shape[1]), matrix)


FULLER = arrays(
    np.float64,
    st.tuples(st.integers(1, 4), st.sampled_from([3, 4, 8, 16])),
    elements=st.sampled_from([0.0, 1.0, -2.5, 1e-300, 4.0, 5.0]),
)


@settings(deadline=None)  # the first call compiles
@given(MATRICES | FULLER)
def test_a_matrix_is_taken_as_it_is_only_where_its_cells_are_the_same(matrix):
    found, wanted = Cells.of_dense(matrix), Cells(*cells.of_matrix(matrix))
    for name in ("indptr", "values", "full"):
        assert np.array_equal(getattr(found, name), getattr(wanted, name))
    assert np.array_equal(dense(found, matrix.shape[1]), matrix)


def test_memory_of_a_matrix():
    matrix = np.arange(1.0, 17.0).reshape(2, 8)
    assert np.shares_memory(Cells.of_dense(matrix).values, matrix)
    matrix[1, 4:] = 0.0  # a row that ends before the last whole vector
    assert not np.shares_memory(Cells.of_dense(matrix).values, matrix)
    matrix[:] = 1.0
    matrix.flags.writeable = False  # kernels are compiled for arrays that may be written
    assert not np.shares_memory(Cells.of_dense(matrix).values, matrix)


@settings(deadline=None)  # the first call compiles
@given(MATRICES)
def test_full_rows_have_all_cells_and_others_their_non_zeros(matrix):
    found = Cells(*cells.of_matrix(matrix))
    for t, row in enumerate(matrix):
        positions = np.flatnonzero(row)
        part = slice(found.indptr[t], found.indptr[t + 1])
        values = found.values[part]
        if positions.size == 0:
            assert values.size == 0
        elif 2 * positions.size > positions[-1]:
            assert found.full[t]
            assert values.size % 4 == 0
            assert 0 <= values.size - (positions[-1] + 1) < 4
            assert np.array_equal(np.flatnonzero(values), positions)
        else:
            assert not found.full[t]
            assert np.array_equal(found.indices[part], positions)
            assert np.array_equal(values, row[positions])


@settings(deadline=None)  # the first call compiles
@given(MATRICES)
def test_where_a_row_comes_from_does_not_matter(matrix):
    found = Cells(*cells.of_matrix(matrix))
    sparse = sp.csr_array(matrix)
    sparse.data[:1] = 0.0  # a zero that is written down
    again = Cells(
        *cells.of_sparse(
            sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), sparse.data
        )
    )
    wanted = Cells(*cells.of_matrix(sparse.toarray()))
    for one, other in zip(again, wanted, strict=True):
        if one is not again.indices and one is not again.full:
            assert np.array_equal(one, other)
    for t, row in enumerate(matrix):
        indices, values = tidied(np.arange(row.size), row)
        part = slice(found.indptr[t], found.indptr[t + 1])
        assert np.array_equal(values, found.values[part])
        if values.size:
            assert (indices.size == 0) == found.full[t]
        if indices.size:
            assert np.array_equal(indices, found.indices[part])


@settings(deadline=None)  # the first call compiles
@given(MATRICES)
def test_a_part_is_the_cells_of_those_rows(matrix):
    found = Cells(*cells.of_matrix(matrix))
    half = len(matrix) // 2
    assert np.array_equal(dense(found.part(half, len(matrix)), matrix.shape[1]), matrix[half:])


@settings(deadline=None)  # the first call compiles
@given(MATRICES)
def test_every_cell_knows_where_it_is(matrix):
    found = Cells(*cells.of_matrix(matrix))
    for place in np.flatnonzero(found.values).tolist():
        assert matrix[found.cell(place)] == found.values[place]


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1.5, -0.5])
def test_the_first_value_outside_is_found(bad):
    values = np.linspace(0.0, 1.0, 50)
    assert cells.first_outside(values, 0.0, 1.0) == -1
    values[[31, 40]] = bad
    assert cells.first_outside(values, 0.0, 1.0) == 31
