"""Do machines compute the same? The last digits of a tiny stream, in a few letters.

Linear algebra and elementary functions differ between processors and versions of their libraries,
in the last digits. A run on several machines repeats tasks anywhere when one is lost; it gives the
same bytes only where all of them give the same digits.
"""

import hashlib
from functools import cache

import numpy as np

from groupwise import __version__
from groupwise.arrays import Vector
from groupwise.kernels.cells import Cells
from groupwise.kernels.schedule import compress
from groupwise.layers import reduction_for
from groupwise.losses import Square
from groupwise.regret.table import regret_table
from groupwise.stream import Chunk, Outcome, Stream
from groupwise.validation import as_aggregator, as_learners

ROWS, FEATURES = 192, 12
"""Enough that learners fold rows into their matrices, by blocks and one by one."""


@cache
def fingerprint() -> str:
    """The version, and sixteen letters that differ where a digit does."""
    digits = hashlib.sha256()
    for values in (*_functions(), *_algebra(), *_stream()):
        digits.update(np.ascontiguousarray(values).tobytes())
    return f"{__version__}:{digits.hexdigest()[:16]}"


def _grid(rows: int, columns: int) -> Vector:
    """Numbers in [0, 1] that are the same everywhere: no libraries are asked."""
    counted = np.arange(1, rows * columns + 1, dtype=np.uint64)
    mixed = (counted * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(11)
    return (mixed.astype(np.float64) / 2.0**53).reshape(rows, columns)


def _functions() -> list[Vector]:
    x = _grid(1, 512) * 20.0 - 10.0
    return [np.exp(x), np.log(np.abs(x)), np.log1p(np.abs(x)), np.expm1(x), np.tanh(x), np.sin(x)]


def _algebra() -> list[Vector]:
    a = _grid(96, 48)
    gram = a.T @ a + np.eye(48)
    return [gram, np.linalg.cholesky(gram), np.linalg.solve(gram, a[0]), *np.linalg.eigh(gram)]


def _stream() -> list[Vector]:
    """A replay with what models have by default, and its regret."""
    x = _grid(ROWS, FEATURES)
    x[:, 0] = 1.0
    y = np.clip(x @ _grid(1, FEATURES)[0] / FEATURES + 0.1 * (_grid(1, ROWS)[0] - 0.5), 0.0, 1.0)
    members = np.column_stack([x[:, 1] < 0.5, x[:, 2] < 0.3, np.ones(ROWS)]).astype(np.float64)
    loss = Square(0.0, 1.0)
    parts = as_learners(None, loss), as_aggregator(None, loss, None, True), loss
    reduction = reduction_for(None, *parts, None, True, 0)
    everybody = np.arange(members.shape[1])
    reduction.reserve(everybody, FEATURES, everybody, np.ones(everybody.size))
    found: list[Outcome] = []
    names = tuple(f"x{i}" for i in range(FEATURES))
    indptr, groups, weights = compress(members)
    chunk = Chunk(Cells.of_dense(x), indptr, groups, weights, y, names, np.zeros((ROWS, 0)))
    Stream(reduction, everybody.size - 1, 0, 1).run([chunk], found.append)
    table = regret_table(reduction, ["a", "b", "always_on"], FEATURES, ROWS)
    figures = [[row["regret"], row["certificate"]] for row in table]
    return [found[0].prediction, found[0].advice, np.array(figures)]
