"""Classes of policies: a table, decision stumps, and any scikit-learn classifier as a heuristic."""

import copy
import inspect
import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels import erm_oracles
from groupwise.oracles.finite import binary, numbers

TABLE_AXES = (2, 3)


def context_matrix(contexts: ArrayLike) -> Vector:
    """Contexts as a matrix of finite numbers, one context a row."""
    wanted = "contexts must be a matrix of finite numbers: a context a row, a feature a column."
    return numbers(contexts, (2,), np.isfinite, wanted)


def question(contexts: ArrayLike, costs: ArrayLike) -> tuple[Vector, Vector]:
    """Contexts, and the costs as contexts × labels; one column where they came as a vector."""
    known = context_matrix(contexts)
    matrix = numbers(
        costs,
        (1, 2),
        lambda given: np.isfinite(given) & (len(given) == len(known)),
        f"costs must be finite, with a row for each of the {len(known)} contexts.",
    )
    return known, matrix.reshape(len(known), -1)


def context_key(context: Vector) -> bytes:
    """What tells contexts apart."""
    return (context + 0.0).tobytes()  # −0 is 0


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
        cells = numbers(
            self.table,
            TABLE_AXES,
            binary,
            "table must be policies × contexts, or policies × contexts × labels, of 0 and 1.",
        )
        count = cells.shape[1]
        given = np.arange(float(count))[:, None] if self.contexts is None else self.contexts
        known = context_matrix(given)
        columns = {context_key(row): i for i, row in enumerate(known)}
        if len(known) != count or len(columns) != count:
            raise ConfigurationError(
                f"The table has {count} columns and there are {len(columns)} different contexts: "
                "give one for every column."
            )
        vars(self).update(cells=cells.reshape(len(cells), count, -1), known=known, columns=columns)

    @property
    def labels(self) -> int:
        """How many labels a prediction has."""
        return int(self.cells.shape[2])

    def column(self, x: ArrayLike) -> int:
        """The number of a context."""
        row = np.asarray(x, dtype=np.float64)
        found = self.columns.get(context_key(row))
        if found is None:
            raise ConfigurationError(f"The context {row.tolist()} is in no column of the table.")
        return found

    def check_contexts(self, contexts: Vector) -> None:
        """Refuse contexts that the table does not have."""
        for row in contexts:
            self.column(row)

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> TablePolicy:
        """The policy f with the least Σ_x ⟨f(x), costs_x⟩."""
        return TablePolicy(self, self._best(contexts, costs)[0])

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        return self._best(contexts, costs)[1]

    def separator(self, features: int | None = None) -> Vector:
        """Contexts on which any two different policies differ, found greedily."""
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
            chosen.append(int(np.argmax([split.max() for split in finer])))
            parts = finer[chosen[-1]]
        return self.known[sorted(chosen) or [0]]

    def separates(self, contexts: Vector) -> bool:
        """Do any two different policies differ on one of the contexts?"""
        columns = [self.column(row) for row in contexts]
        return len(np.unique(self.cells[:, columns], axis=0)) == len(np.unique(self.cells, axis=0))

    def _best(self, contexts: ArrayLike, costs: ArrayLike) -> tuple[int, float]:
        matrix, table = question(contexts, costs)
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


@dataclass(frozen=True, eq=False)
class StumpPolicy:
    """A stump per label: 0 and 1 are the constants, 2 + 2b is bit b, 3 + 2b its negation."""

    stumps: Index
    single: bool

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        bits = np.asarray(x, dtype=np.float64)
        values = [int(erm_oracles.stump_value(stump, bits)) for stump in self.stumps.tolist()]
        return values[0] if self.single else np.array(values)

    def describe(self) -> list[str]:
        """The stumps in words."""
        words = {0: "never", 1: "always"}
        return [
            words.get(s, ("not " if s % 2 else "") + f"bit {(s - 2) // 2}")
            for s in self.stumps.tolist()
        ]


@dataclass(frozen=True)
class Stumps:
    """The class of 0, 1, every bit and every bit's negation; for several labels, a stump each.

    On d bits these are 2d + 2 policies a label, (2d + 2)ⁿ for n labels, and the best is found in
    O(contexts · d · n): the labels are independent of each other. Ties go to the constants, then to
    the first bit.

    >>> contexts = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> policy = Stumps().minimise(contexts, costs=[1.0, -1.0, 1.0, -1.0])
    >>> policy.describe(), policy([1, 1])
    (['bit 1'], 1)
    >>> Stumps().separator(3)
    array([[0., 0., 0.],
           [1., 0., 1.],
           [0., 1., 1.]])

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = True
    """Is the best policy for several labels the best for each?"""

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> StumpPolicy:
        """The policy f with the least Σ_x ⟨f(x), costs_x⟩."""
        best = self._best(contexts, costs)
        return StumpPolicy(np.array([stump for stump, _ in best]), np.ndim(costs) == 1)

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        return float(sum(least for _, least in self._best(contexts, costs)))

    def check_contexts(self, contexts: Vector) -> None:
        """Refuse contexts that are not bits."""
        if not binary(contexts).all():
            raise ConfigurationError(
                "Stumps are on bits: every feature must be 0 or 1. Cut numbers into bits first."
            )

    def every(self, contexts: ArrayLike) -> Vector:
        """What all policies of one label say: policies × contexts."""
        bits = context_matrix(contexts).T
        zeros = np.zeros((1, bits.shape[1]))
        return np.vstack([zeros, bits, 1.0 - zeros, 1.0 - bits])

    def separator(self, features: int) -> Vector:
        """Few contexts on which no two stumps agree: zeros, and rows that spell column numbers."""
        columns = np.arange(1, features + 1)
        spelled = [columns >> row & 1 for row in range(math.ceil(math.log2(features + 1)))]
        return np.vstack([np.zeros(features), *spelled])

    def separates(self, contexts: Vector) -> bool:
        """Do any two stumps differ on one of the contexts?"""
        columns = [np.zeros(len(contexts)), *contexts.T]
        patterns = {tuple(said) for column in columns for said in (column, 1.0 - column)}
        return len(patterns) == 2 * len(columns)

    def _best(self, contexts: ArrayLike, costs: ArrayLike) -> list[tuple[int, float]]:
        matrix, table = question(contexts, costs)
        self.check_contexts(matrix)
        room = np.empty(matrix.shape[1] + 1)
        return [
            erm_oracles.best_stump(matrix, len(matrix), table, label, room)
            for label in range(table.shape[1])
        ]

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Stumps"}


@dataclass(frozen=True, eq=False)
class FittedPolicy:
    """A fitted classifier, or a constant, per label."""

    parts: list[Any]
    single: bool

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        row = np.asarray(x, dtype=np.float64)[None, :]
        values = [p if isinstance(p, int) else int(p.predict(row)[0]) for p in self.parts]
        return values[0] if self.single else np.array(values)


@dataclass(frozen=True, eq=False)
class Sklearn:
    """A scikit-learn classifier that takes sample weights, as a *heuristic* oracle.

    Minimising Σ_x f(x) c_x is weighted classification: label 1 where c_x < 0, weight |c_x|; a copy
    of the classifier is fitted for every label. Nothing says that a classifier's fit is the best in
    its class, so nothing is guaranteed: the certificates of a model that uses this oracle are
    marked as estimated, and regret is against the best policy that the heuristic found.

    Parameters
    ----------
    estimator : a classifier whose ``fit`` takes ``sample_weight``; it is copied, never changed.

    >>> from sklearn.tree import DecisionTreeClassifier
    >>> oracle = Sklearn(DecisionTreeClassifier(max_depth=1))
    >>> policy = oracle.minimise([[0.0], [1.0]], costs=[2.0, -1.0])
    >>> policy([1.0])
    1

    Guarantee
    ---------
    None.
    """

    exact: ClassVar[bool] = False
    independent: ClassVar[bool] = True
    estimator: Any

    def __post_init__(self) -> None:
        fit = getattr(self.estimator, "fit", None)
        if fit is None or "sample_weight" not in inspect.signature(fit).parameters:
            raise ConfigurationError(
                f"{type(self.estimator).__name__} cannot serve as an oracle: its fit must take "
                "sample_weight."
            )

    @property
    def name(self) -> str:
        """How messages call this oracle."""
        return f"Sklearn({type(self.estimator).__name__})"

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> FittedPolicy:
        """A policy with a small Σ_x ⟨f(x), costs_x⟩."""
        matrix, table = question(contexts, costs)
        parts = [self._fit(matrix, column) for column in table.T]
        return FittedPolicy(parts, np.ndim(costs) == 1)

    def _fit(self, contexts: Vector, costs: Vector) -> Any:
        used = costs != 0.0
        labels = (costs < 0.0)[used]
        if not used.any() or labels.all() or not labels.any():
            return int(bool(labels.any()))
        estimator = copy.deepcopy(self.estimator)
        estimator.fit(contexts[used], labels.astype(np.int64), sample_weight=np.abs(costs[used]))
        return estimator
