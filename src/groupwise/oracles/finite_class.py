"""A finite class of policies, given as a table of their predictions."""

from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels import erm_oracles
from groupwise.oracles.costs import context_matrix, cost_matrix

TABLE_AXES = (2, 3)


@dataclass(frozen=True, eq=False)
class TablePolicy:
    """A row of a table."""

    oracle: "FiniteClass"
    number: int

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        values = self.oracle.cells[self.number, self.oracle.column(x)].astype(np.int64)
        return int(values[0]) if np.ndim(self.oracle.table) == min(TABLE_AXES) else values


@dataclass(frozen=True, eq=False)
class FiniteClass:
    """Policies as the rows of a table: the best is found by trying them all.

    Ties go to the first. The time is linear in the policies: for large classes look for an oracle
    that uses their structure.

    Parameters
    ----------
    table : policies × contexts, entries 0 and 1; or policies × contexts × labels.
    contexts : the contexts that the columns stand for, one a row; left out, a context is a single
        feature, the number of its column.

    >>> oracle = FiniteClass([[0, 0, 1], [1, 0, 1]])
    >>> policy = oracle.minimise([[0], [1], [2]], costs=[-1.0, 2.0, 0.5])
    >>> policy.number, policy([0])
    (1, 1)

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    table: ArrayLike
    contexts: ArrayLike | None = None
    cells: Vector = field(init=False, repr=False)
    known: Vector = field(init=False, repr=False)
    """The contexts as a matrix."""
    columns: dict[bytes, int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        cells = _cells(self.table)
        count = cells.shape[1]
        given = np.arange(float(count))[:, None] if self.contexts is None else self.contexts
        known = context_matrix(given)
        columns = {(row + 0.0).tobytes(): i for i, row in enumerate(known)}
        if len(known) != count or len(columns) != count:
            raise ConfigurationError(
                f"The table has {count} columns and there are {len(columns)} different contexts: "
                "give one for every column."
            )
        object.__setattr__(self, "cells", cells)
        object.__setattr__(self, "known", known)
        object.__setattr__(self, "columns", columns)

    @property
    def labels(self) -> int:
        """How many labels a prediction has."""
        return int(self.cells.shape[2])

    def column(self, x: ArrayLike) -> int:
        """The number of a context."""
        row = np.asarray(x, dtype=np.float64)
        found = self.columns.get((row + 0.0).tobytes())
        if found is None:
            raise ConfigurationError(f"The context {row.tolist()} is in no column of the table.")
        return found

    def check_contexts(self, contexts: Vector) -> Vector:
        """The contexts, if the table has them all."""
        for row in contexts:
            self.column(row)
        return contexts

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> TablePolicy:
        """The policy f with the least Σ_x ⟨f(x), costs_x⟩."""
        return TablePolicy(self, self._best(contexts, costs)[0])

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        return self._best(contexts, costs)[1]

    def separator(self, features: int | None = None) -> Vector:
        """Contexts on which any two different policies differ, found greedily."""
        del features
        different = np.unique(self.cells, axis=0)
        parts = np.zeros(len(different), dtype=np.int64)
        chosen: list[int] = []
        while parts.max(initial=0) + 1 < len(different):
            finer = [
                np.unique(
                    np.column_stack([parts, different[:, column].astype(np.int64)]),
                    axis=0,
                    return_inverse=True,
                )[1].reshape(-1)
                for column in range(different.shape[1])
            ]
            column = int(np.argmax([split.max() for split in finer]))
            chosen.append(column)
            parts = finer[column]
        return self.known[sorted(chosen) or [0]]

    def separates(self, contexts: Vector) -> bool:
        """Do any two different policies differ on one of the contexts?"""
        columns = [self.column(row) for row in contexts]
        return len(np.unique(self.cells[:, columns], axis=0)) == len(np.unique(self.cells, axis=0))

    def _best(self, contexts: ArrayLike, costs: ArrayLike) -> tuple[int, float]:
        matrix = context_matrix(contexts)
        table = cost_matrix(costs, matrix)
        if table.shape[1] != self.labels:
            raise ConfigurationError(
                f"costs has {table.shape[1]} columns; the table's predictions have {self.labels}."
            )
        cells = np.ascontiguousarray(self.cells[:, [self.column(row) for row in matrix]])
        number, least = erm_oracles.best_row(cells, len(matrix), table)
        return int(number), float(least)

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        contexts = None if self.contexts is None else self.known.tolist()
        return {"type": "FiniteClass", "table": np.array(self.table).tolist(), "contexts": contexts}


def _cells(table: ArrayLike) -> Vector:
    try:
        cells = np.array(table, dtype=np.float64)
    except (TypeError, ValueError):
        cells = np.empty(0)
    binary = ((cells == 0.0) | (cells == 1.0)).all()
    if cells.ndim not in TABLE_AXES or 0 in cells.shape or not binary:
        raise ConfigurationError(
            "table must be policies × contexts, or policies × contexts × labels, of 0 and 1."
        )
    return np.ascontiguousarray(cells[:, :, None] if cells.ndim == min(TABLE_AXES) else cells)
