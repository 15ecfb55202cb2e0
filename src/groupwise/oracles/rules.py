"""Further classes of policies with exact minimisers: trees of two levels, and halfspaces."""

import itertools
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.oracles.finite import binary
from groupwise.oracles.policies import Stumps, context_matrix, question

WIDEST = 3
"""Halfspaces are of so many features at most: their number grows like contexts to that power."""


ROUNDING = 1e-12
"""A value that is a larger share of its terms than this has the sign that doubles give it."""
HUGE = 1e100
"""Nor are features larger there: what underflows in their functions is nothing then."""


@dataclass(frozen=True)
class TreePolicy:
    """A bit to ask first and a stump for either answer, for every label: (bit, if 0, if 1).

    A stump is a pair: a bit, or −1 for none, and whether the answer is turned round.
    """

    trees: tuple[tuple[int, tuple[int, bool], tuple[int, bool]], ...]
    single: bool

    def __call__(self, x: ArrayLike) -> Any:
        """The prediction for one context: 0 or 1, or a vector with one for every label."""
        bits = np.asarray(x, dtype=np.float64)
        said = []
        for root, if_zero, if_one in self.trees:
            bit, turned = if_one if bits[root] == 1.0 else if_zero
            said.append(int((bit >= 0 and bits[bit] == 1.0) != turned))
        return said[0] if self.single else np.array(said)


@dataclass(frozen=True)
class Trees:
    """Decision trees of two levels on bits; for several labels, a tree each.

    The root asks for a bit and either answer leads to a stump: 0, 1, a bit or its negation. That is
    d (2d + 2)² policies a label, and the best is found in O(contexts · d²). Ties go to the first
    root, then to constants, then to the first bit.

    >>> contexts = [[0, 0], [0, 1], [1, 0], [1, 1]]
    >>> exclusive_or = Trees().minimise(contexts, costs=[1.0, -1.0, -1.0, 1.0])
    >>> [exclusive_or(x) for x in contexts]
    [0, 1, 1, 0]

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = True
    """Is the best policy for several labels the best for each?"""

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> TreePolicy:
        """The policy f with the least Σ_x ⟨f(x), costs_x⟩."""
        best = self._best(contexts, costs)
        return TreePolicy(tuple(tree for tree, _ in best), np.ndim(costs) == 1)

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        return float(sum(least for _, least in self._best(contexts, costs)))

    def check_contexts(self, contexts: Vector) -> None:
        """Refuse contexts that are not bits."""
        if not binary(contexts).all():
            raise ConfigurationError(
                "Trees are on bits: every feature must be 0 or 1. Cut numbers into bits first."
            )

    def every(self, contexts: ArrayLike) -> Vector:
        """What all policies of one label say: policies × contexts, each pattern once."""
        matrix = context_matrix(contexts)
        stumps = Stumps().every(matrix)
        found = []
        for bit in matrix.T:
            zero = np.unique(stumps * (1.0 - bit), axis=0)
            one = np.unique(stumps * bit, axis=0)
            found.append((zero[:, None, :] + one[None, :, :]).reshape(-1, len(matrix)))
        every: Vector = np.unique(np.concatenate(found), axis=0)
        return every

    def _best(
        self, contexts: ArrayLike, costs: ArrayLike
    ) -> list[tuple[tuple[int, tuple[int, bool], tuple[int, bool]], float]]:
        matrix, table = question(contexts, costs)
        self.check_contexts(matrix)
        found = []
        for label in table.T:
            # Σ of the costs where both bits are 1, where one is, and over all.
            both, one, total = matrix.T @ (label[:, None] * matrix), matrix.T @ label, label.sum()
            trees = []
            for root in range(matrix.shape[1]):
                if_one = _stump(one[root], both[root])
                if_zero = _stump(total - one[root], one - both[root])
                trees.append(((root, if_zero[0], if_one[0]), if_zero[1] + if_one[1]))
            found.append(min(trees, key=lambda tree: tree[1]))
        return found

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Trees"}


def _stump(total: float, sums: Vector) -> tuple[tuple[int, bool], float]:
    """The best of 0, 1, every bit and its negation, from sums of costs over all and by bit."""
    each: Vector = np.concatenate([[0.0, total], sums, total - sums])
    place = int(np.argmin(each))
    if place < 2:
        return (-1, place == 1), float(each[place])
    bit, turned = (place - 2) % sums.size, place - 2 >= sums.size
    return (bit, turned), float(each[place])


@dataclass(frozen=True)
class HalfspacePolicy:
    """1 where the first of some affine functions that is not 0 is above 0; with all 0, ``last``.

    A limit of halfspaces: on any finite set of contexts, f_1 + ε f_2 + ε² f_3 with a small ε.
    """

    functions: tuple[tuple[Fraction, ...], ...]
    last: bool

    def __call__(self, x: ArrayLike) -> int:
        """The prediction for one context."""
        point = [Fraction(float(value)) for value in np.asarray(x, dtype=np.float64).ravel()]
        for *weights, offset in self.functions:
            value = sum((w * v for w, v in zip(weights, point, strict=True)), offset)
            if value != 0:
                return int(value > 0)
        return int(self.last)


@dataclass(frozen=True, eq=False)
class Halfspaces:
    """All linear classifiers 1[w·x > b] of up to three features, for one label.

    Which sets of the contexts a halfspace can cut off is found once for every set of contexts: a
    plane through as many of them as it takes, those on it cut by a halfspace of one dimension less;
    both sides of each. For N contexts in d dimensions these are O(Nᵈ), in exact arithmetic.

    >>> contexts = [[0.0], [1.0], [2.5]]
    >>> policy = Halfspaces().minimise(contexts, costs=[-1.0, 2.0, 3.0])
    >>> [policy(x) for x in contexts]
    [1, 0, 0]

    Guarantee
    ---------
    Exact.
    """

    exact: ClassVar[bool] = True
    independent: ClassVar[bool] = False
    labels: ClassVar[int] = 1
    _known: dict[bytes, tuple[Vector, list[HalfspacePolicy]]] = field(
        init=False, repr=False, default_factory=dict
    )

    def minimise(self, contexts: ArrayLike, costs: ArrayLike) -> HalfspacePolicy:
        """The policy f with the least Σ_x f(x) costs_x."""
        said, policies, column = self._asked(contexts, costs)
        return policies[int(np.argmin(said @ column))]

    def least(self, contexts: ArrayLike, costs: ArrayLike) -> float:
        """The cost of the best policy."""
        said, _, column = self._asked(contexts, costs)
        return float((said @ column).min())

    def every(self, contexts: ArrayLike) -> Vector:
        """What all policies say: policies × contexts, each pattern once."""
        return self._dichotomies(context_matrix(contexts))[0]

    def check_contexts(self, contexts: Vector) -> None:
        """Refuse too many features."""
        if contexts.shape[1] > WIDEST:
            raise ConfigurationError(
                f"Halfspaces are of {WIDEST} features at most, not {contexts.shape[1]}. Use "
                "oracles.Sklearn with a linear classifier, a heuristic, for more."
            )

    def _asked(
        self, contexts: ArrayLike, costs: ArrayLike
    ) -> tuple[Vector, list[HalfspacePolicy], Vector]:
        matrix, table = question(contexts, costs)
        if table.shape[1] > 1:
            raise ConfigurationError("Halfspaces are for one label.")
        return *self._dichotomies(matrix), table[:, 0]

    def _dichotomies(self, matrix: Vector) -> tuple[Vector, list[HalfspacePolicy]]:
        """What every policy says about the contexts, and the policies."""
        self.check_contexts(matrix)
        key = (matrix + 0.0).tobytes()
        if key not in self._known:
            points = [[Fraction(value) for value in row] for row in matrix.tolist()]
            found: dict[bytes, HalfspacePolicy] = {}
            for functions, last, said in _cuts(points, list(range(len(points)))):
                found.setdefault(said.tobytes(), HalfspacePolicy(functions, last))
            if len(self._known) > 64:
                self._known.clear()
            table = np.frombuffer(b"".join(found), dtype=np.int8).reshape(len(found), len(points))
            self._known[key] = table.astype(np.float64), list(found.values())
        return self._known[key]

    def to_dict(self) -> dict[str, Any]:
        """The oracle by name, for snapshots."""
        return {"type": "Halfspaces"}


def _cuts(points: list[list[Fraction]], some: list[int]) -> Any:
    """All ways to cut some of the points: the functions, the side of what is on them, who is 1."""
    basis = _spanning(points, some)
    for last in (False, True):  # nothing is cut off
        yield (), last, np.full(len(points), last, dtype=np.int8)
    size = len(basis) - 1  # of the flat that the points lie in
    if size < 1:
        return
    rough = np.array([[float(value) for value in (*point, 1)] for point in points])
    for through in itertools.combinations(some, size):
        flat = _plane(points, through, basis)
        if flat is None:
            continue
        signs = _signs(points, rough, flat)
        on = [i for i in some if signs[i] == 0]
        inner = list(_cuts(points, on))
        for sign in (1, -1):
            own = tuple(sign * part for part in flat)
            for functions, last, within in inner:
                said = np.where(signs == 0, within, sign * signs > 0).astype(np.int8)
                yield (own, *functions), last, said


def _signs(points: list[list[Fraction]], rough: Vector, flat: tuple[Fraction, ...]) -> Any:
    """On which side of a plane every point is: by doubles where they tell, else exactly."""
    largest = max(map(abs, flat))
    parts = np.array([float(part / largest) for part in flat])
    value, most = rough @ parts, np.abs(rough) @ np.abs(parts)
    signs = np.sign(value).astype(np.int8)
    told = (np.abs(value) > ROUNDING * most) & (np.abs(rough) < HUGE).all(axis=1)
    for i in np.flatnonzero(~told).tolist():
        exact = sum((w * v for w, v in zip(flat, points[i], strict=False)), flat[-1])
        signs[i] = (exact > 0) - (exact < 0)
    return signs


def _spanning(points: list[list[Fraction]], some: list[int]) -> list[int]:
    """Some of the points that span, affinely, all of them: one more than their dimension."""
    chosen: list[int] = []
    for i in some:
        if _rank([[*points[j], Fraction(1)] for j in [*chosen, i]]) == len(chosen) + 1:
            chosen.append(i)
    return chosen


def _rank(rows: list[list[Fraction]]) -> int:
    return len(_reduced(rows))


def _reduced(rows: list[list[Fraction]]) -> list[tuple[int, list[Fraction]]]:
    """The rows of the reduced echelon form, each with the place of its leading 1."""
    left = [list(row) for row in rows]
    found: list[tuple[int, list[Fraction]]] = []
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in left if row[column] != 0), None)
        if pivot is None:
            continue
        left.remove(pivot)
        pivot = [value / pivot[column] for value in pivot]
        for row in [*left, *(other for _, other in found)]:
            factor = row[column]
            row[:] = [value - factor * own for value, own in zip(row, pivot, strict=True)]
        found.append((column, pivot))
    return found


def _plane(
    points: list[list[Fraction]], through: tuple[int, ...], basis: list[int]
) -> tuple[Fraction, ...] | None:
    """An affine function that is 0 on these points and not on all of the basis; None for none."""
    rows = [[*points[i], Fraction(1)] for i in through]
    reduced = _reduced(rows)
    if len(reduced) < len(through):
        return None
    leading = dict(reduced)
    for free in (c for c in range(len(rows[0])) if c not in leading):
        function = [Fraction(0)] * len(rows[0])
        function[free] = Fraction(1)
        for column, row in leading.items():
            function[column] = -row[free]
        values = (
            sum((w * v for w, v in zip(function, points[i], strict=False)), function[-1])
            for i in basis
        )
        if any(value != 0 for value in values):
            return tuple(function)
    return None
