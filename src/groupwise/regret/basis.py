"""Rows in a basis: columns that are far from dependent, made of columns that may be anything.

Columns that are combinations of others are left out; a column of which hardly anything is left
beside others (an amount far from 0 beside a constant) is replaced by what is left, computed to 32
digits. Rows that are mostly zeros remain so. A model in the basis is a model in the columns as they
are, as a vector of pairs (``kernels.gram``), so that nothing is lost on the way back.
"""

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse

from groupwise.arrays import Index, Vector
from groupwise.kernels import rows as kernels
from groupwise.kernels.gram import ROUNDING, Grams
from groupwise.kernels.sketch import PRIME
from groupwise.regret.hindsight import EPSILON, Factor, Independent

SPARSE = 3
"""Rows are taken by their cells where less than one in so many is not 0."""
CLOSE = 1e-6
"""A column of whose squares less than this is left beside others is replaced by what is left."""
MOST = 3e8
"""Operations modulo p that proving a dependence of columns may take."""


class Lines(NamedTuple):
    """Rows as the kernels take them; ``columns`` is empty where they are full."""

    starts: Index
    columns: Any
    values: Vector
    width: int

    def dot(self, high: Vector, low: Vector) -> tuple[Vector, Vector]:
        """X (high + low), and how far each product may be off."""
        found, sizes = np.zeros((2, self.starts.size - 1))
        kernels.dots(*self[:3], high, low, found, sizes)
        return found, EPSILON * np.abs(found) + 4.0 * ROUNDING * self.width**2 * sizes

    def back(self, factors: Vector, high: Vector, low: Vector) -> None:
        """Add Xᵀ factors to a vector of pairs."""
        kernels.back(*self[:3], factors, high, low)


class Basis(NamedTuple):
    """Rows B = X Tᵀ of all that is known, and of the pseudo-rows of a factor Q = R Tᵀ."""

    rows: Any
    others: Vector
    maps: Lines
    """T: each row is a column of the basis as a combination of the columns as they are."""

    def model(self, beta: Vector) -> tuple[Vector, Vector]:
        """θ = Tᵀ β, as pairs."""
        high, low = np.zeros((2, self.maps.width))
        self.maps.back(beta, high, low)
        return high, low


def tidy(features: Any) -> Any:
    """Rows as a matrix in one piece or, where they are mostly zeros, as a ``csr_array``."""
    rows, columns = features.shape
    sparse = scipy.sparse.issparse(features)
    count = features.nnz if sparse else np.count_nonzero(features)
    if SPARSE * count >= rows * columns:
        whole = features.toarray() if sparse else features
        return np.ascontiguousarray(whole, dtype=np.float64)
    found = scipy.sparse.csr_array(features, dtype=np.float64, copy=sparse)
    found.sum_duplicates()  # and columns in order
    found.eliminate_zeros()
    return found


def in_use(features: Any) -> Any:
    """The columns that are not 0 in all rows."""
    return features[:, np.flatnonzero(_used(features))]


def _used(features: Any) -> Any:
    """How often each column is not 0, or whether it ever is."""
    if scipy.sparse.issparse(features):
        found = features.tocsr()
        return np.bincount(found.indices, found.data != 0.0, minlength=features.shape[1])
    return features.any(axis=0)


def lines_of(features: Any) -> Lines:
    """Tidy rows as the kernels take them."""
    width = features.shape[1]
    if scipy.sparse.issparse(features):
        starts, columns = features.indptr.astype(np.int64), features.indices.astype(np.int32)
        return Lines(starts, columns, features.data, width)
    starts = np.arange(len(features) + 1, dtype=np.int64) * width
    return Lines(starts, np.zeros(0, dtype=np.int32), features.ravel(), width)


def factor_of(features: Any, roots: Vector, width: int, more: bool) -> tuple[Factor, Index]:
    """A factor of the rows times their roots, and random combinations of the rows.

    It is triangular if there are ``more`` rows to come.
    """
    found, lines = Factor(width), lines_of(features)
    size, none = found.right.size, np.zeros(1, dtype=np.int64)
    weighted = features * roots[:, None]
    places = np.flatnonzero(_used(weighted))
    if len(roots) <= places.size and not more:
        # So few rows are a factor as they are.
        dense = weighted.toarray() if scipy.sparse.issparse(features) else weighted
        found.matrix[places[: len(roots)], : lines.width] = dense
    elif scipy.sparse.issparse(features):
        low, moment, moment_low, sums = *np.zeros((3, size)), np.zeros((size, size))
        kernels.add_pairs(*lines[:3], roots, sums.reshape(-1), size, low)
        count = np.array([len(roots)])
        found.add_sums(Grams(none, count, none, np.zeros(2), moment, moment_low, low, sums))
    else:
        found.add(weighted, np.zeros(len(roots)))
    combined = np.zeros((2, size), dtype=np.int64)
    own = kernels.Sketched(np.zeros(2, dtype=np.int64), none, combined, found.sample)
    kernels.add_sketch(*lines[:3], own)
    found.sketch = combined
    return found, combined


def exactly_spanned(lines: Lines, columns: Index, sketch: Index) -> bool:
    """Are all columns of the rows combinations of these, to the last bit?

    The coefficients are found modulo a prime, whatever numbers they are, from random combinations
    of few rows each, and tried on combinations of all rows (``kernels.sketch``).
    """
    others = np.flatnonzero(sketch.any(axis=0))
    others = others[~np.isin(others, columns)]
    everything = np.concatenate([columns, others])
    order = np.full(sketch.shape[1], -1)
    order[everything] = np.arange(everything.size)
    rows = lines.starts.size - 1
    count = columns.size + 32
    while True:
        count = min(2 * count, rows)
        if count * columns.size * everything.size > MOST:
            return False
        mixed = np.zeros((count, everything.size), dtype=np.int64)
        kernels.mix(*lines[:3], order, mixed)
        answer = kernels.spanned(mixed, columns.size, sketch[:, everything] % PRIME)
        if answer >= 0 or count == rows:
            return bool(answer > 0)


def basis_of(features: Any, others: Vector, factor: Factor, own: Independent) -> Basis:
    """The basis, from a factor of all rows and the columns that span the others."""
    columns, lengths, width = own.columns, own.lengths, factor.right.size
    if columns.size == 0:
        none = Lines(np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int32), np.zeros(0), width)
        return Basis(np.zeros((features.shape[0], 0)), np.zeros((len(others), 0)), none)
    triangle, order = scipy.linalg.qr(factor.matrix[:, columns] / lengths, mode="r", pivoting=True)
    left = np.diag(triangle) ** 2
    maps = []
    for i in np.flatnonzero(left >= CLOSE).tolist():
        place = order[i : i + 1]
        maps.append((columns[place], 1.0 / _power(lengths[place])))
    for i in np.flatnonzero(left < CLOSE).tolist():
        share = scipy.linalg.solve_triangular(triangle[:i, :i], triangle[:i, i])
        places = order[: i + 1]
        terms = np.append(-share, 1.0) / lengths[places]
        maps.append((columns[places], terms / _power(np.sqrt(left[i]))))
    starts = np.cumsum([0, *(len(where) for where, _ in maps)])
    where, terms = (np.concatenate([pair[k] for pair in maps]) for k in (0, 1))
    combined = Lines(starts, where.astype(np.int32), terms, width)
    rows, pseudo = _mapped(features, combined), _mapped(others, combined)
    return Basis(rows, pseudo.toarray() if scipy.sparse.issparse(pseudo) else pseudo, combined)


def _mapped(features: Any, maps: Lines) -> Any:
    """X Tᵀ, every product rounded once."""
    sparse = scipy.sparse.issparse(features)
    single = np.diff(maps.starts) == 1
    plain, scale = maps.columns[: single.sum()], maps.values[: single.sum()]
    parts = [
        features[:, plain] @ scipy.sparse.diags_array(scale)
        if sparse
        else features[:, plain] * scale
    ]
    lines = lines_of(features)
    for i in np.flatnonzero(~single).tolist():
        where = slice(maps.starts[i], maps.starts[i + 1])
        theta = np.zeros((2, maps.width))
        theta[0, maps.columns[where]] = maps.values[where]
        parts.append(lines.dot(*theta)[0][:, None])
    return tidy(scipy.sparse.hstack(parts) if sparse else np.hstack(parts))


def _power(values: Any) -> Any:
    """Powers of two near positive numbers."""
    return np.ldexp(1.0, np.frexp(values)[1])
