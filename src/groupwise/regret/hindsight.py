"""The best linear model in hindsight: unregularised least squares per group, and how sure it is.

A group's rows √w [x, y], one below the other, are [X, y]. What is kept of them is a triangular
factor of [X', y'], rows that differ from these by rounding: column by column by less than
η ‖X_j‖, and η ‖y‖ in the labels. How large η is follows from how roundings of either sign add up
over the foldings of rows and the reflections of each: about ε √(foldings + columns). It is taken
to be four times that (which is more than was ever seen; that it cannot be more is not proved).
Everything else here is.

Bring the columns to unit length, R = U S Vᵀ, and write a model as Σ_j of terms c_j = θ_j ‖X_j‖ with
c = V a. Its loss is ρ + Σ_i (σ_i a_i − u_i·z)², and with the rows as they really were its root
differs from that by at most η (Σ|c_j| + ‖y‖). Directions with σ_i ≤ 8 η √d are *dependences* among
the columns: rounding may have made them. They are left out,

    best = ρ + Σ over dependences (u_i·z)²,

and of all models whose part along dependences is at most ``REACH`` ‖y‖ none loses less than

    (√(best (1 − t²) − 2 ‖u·z‖ s REACH ‖y‖) − η (Σ|c_j| + ‖y‖ + √d REACH ‖y‖))²,

with t = η √d / σ for the least σ that is not a dependence, the norm of u·z and the largest σ = s
those of dependences, and c the best model; without dependences the terms with REACH are not there,
and the bound holds for *all* models. What this is below ``best`` is its ``error``. Where all
dependences are exact (``kernels.sketch`` tells), a part along them changes no prediction, and the
bound holds for all models again; where one is not, ``best`` is uncertain.
"""

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from groupwise.arrays import Flags, Index, Vector
from groupwise.kernels.calm import ROUNDINGS, take_back, to_factor
from groupwise.kernels.factor import fold
from groupwise.kernels.gram import ROUNDING, UNIT, eliminate
from groupwise.kernels.hindsight import TOGETHER
from groupwise.kernels.layout import room
from groupwise.kernels.sketch import MISSING, vanishes
from groupwise.protocols import Hindsight

EPSILON = float(np.finfo(np.float64).eps)
REACH = 1000.0
"""How large models along dependences of the columns may be, in units of the labels' length.

What terms of a thousand times the labels' size leave there after they have cancelled is at most a
few 1e-11 of it.
"""
NOTHING = 1e-8, 1e-6, 1e-4
"""A coefficient of a dependence that is less than the first of these is none, or else than the
next: columns that are nearly the same have large ones that nearly cancel, and are noise."""
CLOSE, SIMPLE = 0.1, 1 << 13
"""As close as these a coefficient must be to a ratio of numbers, or ten times as close to a
fraction; and how large the denominator of that may be. Wrong guesses do no harm: the sketches
tell."""
FAINT = 2.0**-548
"""A column whose weighted numbers are shorter than this, all together, may have lost digits, or all
of itself, where its squares are summed up (``kernels.gram.UNIT``)."""
SURE, SURE_OF_BEST = 1e-9, 1e-6
"""An error is no matter if it is below so much of Σ w y² plus so much of the best loss."""


class Independent(NamedTuple):
    """Columns that span all others, as far as a factor can tell."""

    columns: Index
    lengths: Vector
    """Of these columns."""
    least: float
    """No combination of them at unit length is shorter than this times its coefficients' norm; 0
    where that cannot be told."""
    rounding: float
    """η: by which share of its length a column of the factor may be wrong."""
    exact: bool
    """Are all other columns combinations of these, to the last bit?"""


class Factor:
    """R, z and ρ of weighted rows, of a width of their own.

    >>> x = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 1.0], [1.0, 1.0, 0.0]])  # one-hot: rank 2
    >>> y = np.array([0.0, 1.0, 1.0])
    >>> factor = Factor(3)
    >>> factor.add(x, y)
    >>> round(factor.hindsight(float(y @ y)).best, 12)
    0.5
    """

    def __init__(self, width: int) -> None:
        size = room(width)
        self.matrix, self.right = np.zeros((size, size)), np.zeros(size)
        self.rest = 0.0
        self.folds = 0.0
        self.sums: list[tuple[float, Vector]] = []
        """Rows that were added up to 16 digits: by which share of its columns' lengths a sum of
        products may be wrong, and the lengths."""
        self.sketch: Index | None = None
        self.sample = np.zeros(size)
        self.firm = 0
        """So many of the first columns are known to be independent of all others."""

    def add(self, rows: Vector, labels: Vector) -> None:
        """Fold in rows and labels that are multiplied by √w."""
        size = self.right.size
        for start in range(0, len(rows), TOGETHER):
            some, answers = np.zeros((TOGETHER, size)), np.zeros(TOGETHER)
            count = len(rows[start : start + TOGETHER])
            some[:count, : rows.shape[1]] = rows[start : start + TOGETHER]
            answers[:count] = labels[start : start + TOGETHER]
            self.rest += fold(self.matrix, self.right, some, answers, count, size)
            self.folds += count / TOGETHER

    def add_sums(self, grams: Any) -> None:
        """Fold in the sums of products of rows that are mostly zeros (``kernels.gram``)."""
        if grams.gram is None:
            self.rest += float(grams.power.sum())
            return
        high = np.tril(grams.gram) + np.tril(grams.gram, -1).T
        low = np.triu(grams.gram, 1)
        low = low + low.T + np.diag(grams.diagonal_low)
        used = np.flatnonzero(np.diag(high) > 0.0)
        exponents = np.frexp(np.sqrt(np.diag(high)[used]))[1]
        both = -exponents[:, None] - exponents[None, :]
        high, low = (np.ldexp(a[np.ix_(used, used)], both) for a in (high, low))
        moment, moment_low = (
            np.ldexp(a[used], -exponents) for a in (grams.moment, grams.moment_low)
        )
        rows, labels = np.zeros((used.size, used.size)), np.zeros(used.size)
        added, coarse = float(grams.added[0]), float(grams.coarse[0])
        slack = 64.0 * ROUNDING * (used.size + np.sqrt(added + coarse))
        answer = eliminate(high, low, moment, moment_low, grams.power, slack, rows, labels)
        rank, rest, rest_low, noise = answer
        found = np.zeros((rank, self.right.size))
        # Back to the columns' own size, in two steps: one alone might leave the range of numbers.
        found[:, used] = np.ldexp(rows[:rank], exponents) / UNIT
        self.add(found, labels[:rank])
        self.rest += max(rest + rest_low, 0.0)
        self.folds += added / TOGETHER
        if coarse > 0.0:
            # What 16 digits leave of a dependence to 32 of them is exactly nothing, or unknown.
            share = coarse * EPSILON if noise <= slack else 1.0
            self.sums.append((share, np.sqrt(np.diag(grams.gram)) / UNIT))

    def merge(self, other: "Factor", scale: float) -> None:
        """Fold in the rows of another factor, not wider than this, times a power of two."""
        beyond = self.right.size - other.right.size
        self.add(scale * other.matrix, scale * other.right)
        self.rest += scale * (scale * other.rest)
        self.folds += other.folds
        self.sums += [
            (share, np.pad(scale * lengths, (0, beyond))) for share, lengths in other.sums
        ]
        self.firm = max(self.firm, other.firm)
        if self.sketch is None or other.sketch is None:
            self.sketch = None
        else:
            # Rows may have been combined by the same factors: each of the sums is looked at.
            combined = np.pad(other.sketch, ((0, 0), (0, beyond)))
            self.sketch = np.concatenate([self.sketch, combined])
            sample = np.pad(other.sample, (0, beyond))
            self.sample = np.where(self.sample != 0.0, self.sample, sample)

    def hindsight(self, power: float) -> Hindsight:
        """The best loss, and by how much it may be wrong.

        ``power`` is Σ w y² of scaled labels; it is taken with those that the factor has, which may
        be shifted, where that is less.
        """
        used: Flags = (self.matrix != 0.0).any(axis=0)
        if not used.any():
            lost = self.rest > SURE * power and self.is_faint()
            return Hindsight(self.rest, self.rest if lost else EPSILON * self.rest, lost)
        target = self.right[used]
        labels = float(target @ target) + self.rest  # ‖y‖²
        power = min(power, labels)
        matrix, lengths, rounding = self._scaled(used)
        size = np.sqrt(matrix.shape[1])
        nothing = 0.25 * rounding
        rows, left, values, right, kept = _directions(matrix, rounding)
        dependent = int(kept.sum()) < matrix.shape[1]
        along = target[rows] @ left[:, kept]
        unspanned = np.concatenate([target[rows] - left[:, kept] @ along, target[~rows]])
        unexplained = float(np.linalg.norm(unspanned))
        best = min(self.rest + unexplained**2, labels)
        model = (along / values[kept]) @ right[kept]
        length = np.sqrt(labels)
        reach = REACH * length if dependent else 0.0
        terms = float(np.abs(model).sum())
        own = rounding * (terms + length)
        loose = rounding * (terms + length + size * reach)
        tilt = rounding * size / float(values[kept].min())
        least = best * (1.0 - tilt**2)
        if dependent:
            least -= 2.0 * unexplained * float(values[~kept].max(initial=nothing * size)) * reach
        below = best - max(0.0, np.sqrt(max(0.0, least)) - loose) ** 2
        above = (2.0 * np.sqrt(best) + own) * own
        for share, summed in self.sums:
            # A model's loss is wrong by at most this share of (Σ |c_j| + ‖y‖)², where columns are
            # as long as they were in the sums; the more of them there is, the more has to be lost.
            parts = summed[used] / lengths
            along_sums = np.abs(right[kept]) @ parts / values[kept]
            space = 1.0 - 2.0 * share * float(along_sums @ along_sums)
            square = 2.0 * share * (float(np.abs(model) @ parts) + length) ** 2
            below = min(best, below + square) if space > 0.5 else best
            above += square
        # Where next to nothing is left to explain, nobody asks whether dependences are exact: it is
        # beneath the tolerance anyway. But then a model along them may explain all of it.
        little = best <= SURE * power
        if dependent and (little or not self._dependences_are_exact(right[kept], lengths, used)):
            below = best
        if self.is_faint():
            below = best
        uncertain = below > SURE * power + SURE_OF_BEST * best
        error, columns = float(max(below, above)), matrix.shape[1]
        size = float(lengths @ lengths)
        return Hindsight(best, error, bool(uncertain), columns=columns, power=size)

    def is_faint(self) -> bool:
        """Has some column numbers other than 0 that are too small for the factor to tell of?"""
        used: Flags = (self.matrix != 0.0).any(axis=0)
        short = ~used
        short[used] = _lengths(self.matrix[:, used]) < FAINT
        return bool(np.any(short & (used | (self.sample != 0.0))))

    def independent(self, rows: int | None = None) -> Independent:
        """Columns that span the others, and how far from dependent they are.

        Where the number of ``rows`` is known, as many columns span everything.
        """
        used: Flags = (self.matrix != 0.0).any(axis=0)
        if not used.any():
            return Independent(np.zeros(0, dtype=np.int64), np.zeros(0), 1.0, 0.0, True)
        matrix, lengths, rounding = self._scaled(used)
        _, _, values, right, kept = _directions(matrix, rounding)
        columns, exact = np.flatnonzero(used), True
        count = int(kept.sum())
        if count < columns.size:
            exact = count == rows or self._dependences_are_exact(right[kept], lengths, used)
            chosen = np.sort(_spanning(right[kept])[0])
            columns, lengths = columns[chosen], lengths[chosen]
            least = float(singular(matrix[:, chosen])[1].min())
        else:
            least = float(values.min())
        least -= rounding * np.sqrt(columns.size)
        square = max(least, 0.0) ** 2
        for share, summed in self.sums:
            square -= 2.0 * share * float(np.sum((summed[columns] / lengths) ** 2))
        return Independent(columns, lengths, float(np.sqrt(max(square, 0.0))), rounding, exact)

    def _scaled(self, used: Flags) -> tuple[Vector, Vector, float]:
        """R with columns of unit length, their lengths, and η.

        Without the columns that nobody uses, of which there may be more or fewer.
        """
        matrix = self.matrix[np.ix_(used, used)]
        lengths = _lengths(matrix)
        rounding = 4.0 * EPSILON * np.sqrt(self.folds + np.sqrt(matrix.shape[1]) ** 2)
        return matrix / lengths, lengths, float(rounding)

    def _dependences_are_exact(self, kept: Vector, lengths: Vector, used: Flags) -> bool:
        """Is what no direction in ``kept`` spans 0 in every row, to the last bit?

        Each of the columns that the others span is a combination of them. Where its coefficients
        are near small fractions, or near ratios of numbers that columns have had (a column that is
        constant in the group), the sketches tell whether it is that, exactly.
        """
        if self.sketch is None:
            return False
        columns = np.flatnonzero(used).tolist()
        free, bound, shares = _spanning(kept)
        for i, share in zip(bound.tolist(), shares.T, strict=True):
            parts = {columns[j]: part for j, part in zip(free.tolist(), share, strict=True)}
            # Where a coefficient overflows the guess is wrong, and does not vanish.
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = {columns[j]: lengths[i] / lengths[j] for j in free.tolist()}
                guesses = (self._guess(columns[i], parts, sizes, nothing) for nothing in NOTHING)
                if not any(min(one) >= self.firm and vanishes(one, self.sketch) for one in guesses):
                    return False
        return True

    def _guess(
        self, column: int, parts: Mapping[int, float], sizes: Mapping[int, float], nothing: float
    ) -> dict[int, Fraction]:
        """What a combination of columns that leaves nothing of one is likely to be."""
        terms = {column: Fraction(-1)}
        for other, part in parts.items():
            if abs(part) > nothing:
                terms[other] = self._fraction(float(part * sizes[other]), column, nothing)
        return terms

    def _fraction(self, value: float, column: int, near: float) -> Fraction:
        """The exact number that a coefficient of a column is likely to be."""
        own, numbers = float(self.sample[column]), self.sample[self.sample != 0.0]
        far = np.abs(np.abs(own / numbers) - abs(value))
        if own == 0.0 or far.min() > near * abs(value):
            simple = Fraction(value).limit_denominator(SIMPLE)
            if abs(float(simple) - value) <= CLOSE * near * abs(value):
                return simple
            part, power = math.frexp(value)  # or few binary digits, as knots have
            return Fraction(round(part * SIMPLE)) * Fraction(2) ** power / SIMPLE
        ratio = Fraction(own) / Fraction(float(numbers[far.argmin()]))
        return ratio if (ratio > 0) == (value > 0) else -ratio


def _directions(matrix: Vector, rounding: float) -> tuple[Flags, Vector, Vector, Vector, Flags]:
    """U, σ and Vᵀ of R, with the rows of it that are more than rounding, and which σ are.

    With fewer rows than columns most of R, from some row down, is nothing but that.
    """
    rows = np.any(_below(matrix) > 0.25 * rounding, axis=1)
    left, values, right = singular(matrix[rows])
    return rows, left, values, right, values > 8.0 * rounding * np.sqrt(matrix.shape[1])


def singular(matrix: Vector) -> tuple[Vector, Vector, Vector]:
    """U, σ and Vᵀ.

    LAPACK's divide and conquer does not converge for some finite matrices, among them the factor of
    a file with 54 columns of which 20 depend on others. Its iteration by QR is slower, and does.
    """
    try:
        return np.linalg.svd(matrix, full_matrices=False)
    except np.linalg.LinAlgError:
        found: tuple[Vector, Vector, Vector] = scipy.linalg.svd(
            matrix, full_matrices=False, check_finite=False, lapack_driver="gesvd"
        )
        return found


def _spanning(kept: Vector) -> tuple[Index, Index, Vector]:
    """Columns that span these directions, the other columns, and these as combinations of them."""
    found = scipy.linalg.qr(kept, mode="r", pivoting=True)
    count = len(kept)
    triangle, order = np.triu(found[0])[:count], found[1]
    shares = scipy.linalg.solve_triangular(triangle[:, :count], triangle[:, count:])
    return order[:count], order[count:], shares


def _below(matrix: Vector) -> Vector:
    """The lengths of columns, not longer than 1, from each row down."""
    found: Vector = np.sqrt(np.cumsum(matrix[::-1] ** 2, axis=0)[::-1])
    return found


def _lengths(matrix: Vector) -> Vector:
    """The lengths of columns whose squares may overflow or vanish."""
    scale = np.abs(matrix).max(axis=0)
    lengths: Vector = scale * np.sqrt(np.sum((matrix / scale) ** 2, axis=0))
    return lengths


def factored(sums: Any, products: Any) -> Factor:
    """The factor of all rows of a group: those folded in, those held back, and the sums."""
    found = Factor(sums.right.size)
    found.right[:] = sums.right
    found.rest, found.folds = float(sums.rest[0]), float(sums.folds[0])
    held = sums.few
    if sums.factor is not None:
        found.matrix[:] = sums.factor
        lengths, held = sums.lengths.copy(), sums.held
        if sums.calm[0]:
            rest = np.array([found.rest])
            if sums.calm[0] == 2:
                take_back(found.matrix, found.right, rest, sums.few.copy(), found.right.size)
            lengths[:] = np.sqrt(np.diag(found.matrix))
            to_factor(found.matrix, found.right, rest, found.right.size)
            found.rest = float(rest[0])
        found.matrix[:] = np.triu(found.matrix)
        if sums.summed[0] > 0:
            roundings = float(sums.summed[0]) + (ROUNDINGS if sums.calm[0] == 1 else 0)
            found.sums.append((0.5 * EPSILON * roundings, lengths))
    if sums.factors[0] != MISSING:
        found.sketch, found.sample, found.firm = sums.sketch, sums.sample, int(sums.firm[0])
    waiting = int(sums.waiting[0])
    found.add(held[:waiting], sums.labels[:waiting])
    found.add_sums(products)
    return found
