"""What is kept of a group's rows for hindsight, apart from any model: it adds up.

With the rows √w [x, y] of a group one below the other as [X, y], any other rows [B, b] with
BᵀB = XᵀX and Bᵀb = Xᵀy, and what is left of the labels, ρ = ‖y‖² − ‖b‖², tell the loss of every
linear model: ‖Xθ − y‖² = ‖Bθ − b‖² + ρ. Few rows are kept as they are, more as a triangular factor
(``kernels.factor``); those of another part of the stream are folded in like any rows, and ρ adds
up. So do the sketches that tell exact dependences (``kernels.sketch``): the factors of the second
part's rows are as many steps further.
"""

from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels.factor import fold
from groupwise.kernels.hindsight import HELD, TOGETHER
from groupwise.kernels.layout import room
from groupwise.kernels.sketch import MISSING, PRIME, SEEDS
from groupwise.protocols import Hindsight
from groupwise.regret.hindsight import Factor, factored


class GroupSums(NamedTuple):
    """The sums of one group's rows. Nobody changes the arrays."""

    features: Index
    """Which feature a column is, in the order in which they came."""
    rows: Vector
    """B: few rows, or an upper triangle of room for all columns."""
    right: Vector
    """b."""
    rest: float
    """ρ."""
    power: float
    """Σ w y², of the scaled label."""
    folds: int
    """How often rows were folded in."""
    summed: int
    """How many roundings, at most, one sum of products of 16 digits has had."""
    lengths: Vector
    """√Σ x² by column, of such rows."""
    factors: Index
    """The random factors of the next row in the sketches."""
    sketch: Index
    sample: Vector
    firm: int

    @property
    def width(self) -> int:
        """How many columns there is room for."""
        return int(self.rows.shape[1])

    @property
    def is_triangle(self) -> bool:
        """Are the rows a factor? Few rows may look like one, and yet have labels where it has none.

        What a factor has of the labels in the row of a column that nobody has used is 0.
        """
        if len(self.rows) != self.width or np.tril(self.rows, -1).any():
            return False
        return not self.right[~self.rows.any(axis=0)].any()

    def hindsight(self) -> Hindsight:
        """The scaled loss of the best linear model, and how sure that is."""
        found = Factor(self.width)
        if self.is_triangle:
            found.matrix[:], found.right[:] = self.rows, self.right
        else:
            found.add(self.rows, self.right)
        found.rest, found.folds = found.rest + self.rest, found.folds + self.folds
        if self.summed > 0:
            found.sums.append((0.5 * _EPSILON * self.summed, self.lengths))
        if self.factors[0] != MISSING:
            found.sketch, found.sample, found.firm = self.sketch, self.sample, self.firm
        return found.hindsight(self.power)


_EPSILON = float(np.finfo(np.float64).eps)


def taken(sums: Any, products: Any, features: Index) -> GroupSums:
    """The sums of a group's records, cut to the columns that it has (``learners.recorders``)."""
    folds, summed, lengths = 0, 0, np.zeros_like(sums.right)
    if sums.factor is None and products.gram is None:
        waiting = int(sums.waiting[0])
        rows, right, rest = sums.few[:waiting].copy(), sums.labels[:waiting].copy(), 0.0
    else:
        if int(products.coarse[0]) > 0:
            raise ConfigurationError(
                "Sums of an earlier version, to half the digits, do not add up with others: begin "
                "with a new model, or leave segment out."
            )
        found = factored(sums, products)
        rows, right, rest = found.matrix, found.right, float(found.rest)
        folds, summed = int(np.ceil(found.folds)), int(sums.summed[0])
        if found.sums:
            lengths = found.sums[0][1]
    return GroupSums(
        np.asarray(features).copy(),
        *(rows, right, rest, float(sums.power[0]), folds, summed, lengths),
        *(sums.factors.copy(), sums.sketch.copy(), sums.sample.copy(), int(sums.firm[0])),
    )


def together(first: Index, second: Index) -> tuple[Index, Index]:
    """The columns of both, those of the first part first; and where those of the second are."""
    if np.array_equal(first[: second.size], second):
        return first, np.arange(second.size)
    known = dict(zip(first.tolist(), range(first.size), strict=True))
    places = np.array([known.setdefault(one, len(known)) for one in second.tolist()])
    return np.array(list(known), dtype=np.int64), places.astype(np.int64)


def placed(values: Any, places: Index, width: int, rows: int | None = None) -> Any:
    """An array whose last axis is columns, with these where ``places`` says; and so many rows."""
    shape = list(values.shape[:-1]) if rows is None else [rows]
    out = np.zeros((*shape, width), dtype=values.dtype)
    part = values[..., : places.size]
    if rows is None:
        out[..., places] = part
    else:
        out[: len(part), places] = part
    return out


def merged(first: GroupSums | None, second: GroupSums) -> GroupSums:
    """The sums of two parts of the stream, the second after the first."""
    if first is None:
        return second
    features, places = together(first.features, second.features)
    width = room(features.size)
    own = np.arange(first.features.size)
    count, more = len(first.rows), len(second.rows)
    rest, folds = first.rest + second.rest, first.folds + second.folds
    if count + more <= HELD:
        rows = np.concatenate([placed(first.rows, own, width), placed(second.rows, places, width)])
        right = np.concatenate([first.right, second.right])
    else:
        rows, right = np.zeros((width, width)), np.zeros(width)
        if first.is_triangle:
            rows[:count] = placed(first.rows, own, width)
            right[:count] = first.right
        else:
            rest += _fold(rows, right, placed(first.rows, own, width), first.right)
            folds += -(-count // TOGETHER)
        rest += _fold(rows, right, placed(second.rows, places, width), second.right)
        folds += -(-more // TOGETHER)
    lengths = np.hypot(placed(first.lengths, own, width), placed(second.lengths, places, width))
    samples = placed(first.sample, own, width), placed(second.sample, places, width)
    return GroupSums(
        features,
        *(rows, right, rest, first.power + second.power, folds),
        *(max(first.summed, second.summed), lengths),
        *_sketches(first, second, own, places, width),
        np.where(samples[0] != 0.0, *samples),
        _passed(first, second, places).size,
    )


def _fold(matrix: Vector, right: Vector, rows: Vector, labels: Vector) -> float:
    """Fold rows into a triangle; returns what is left of the labels."""
    rest, width = 0.0, right.size
    for start in range(0, len(rows), TOGETHER):
        some, answers = np.zeros((TOGETHER, width)), np.zeros(TOGETHER)
        count = len(rows[start : start + TOGETHER])
        some[:count] = rows[start : start + TOGETHER]
        answers[:count] = labels[start : start + TOGETHER]
        rest += fold(matrix, right, some, answers, count, width)
    return rest


def _passed(first: GroupSums, second: GroupSums, places: Index) -> Index:
    """The columns that the sketches of one part or the other have passed over, as firm ones."""
    found: Index = np.union1d(np.arange(first.firm), places[: second.firm])
    return found


def _sketches(
    first: GroupSums, second: GroupSums, own: Index, places: Index, width: int
) -> tuple[Index, Index]:
    """The factors of the next row, and both sums: those of the second part so many steps on.

    Columns that one part has passed over, as they are firm there, must be the first of all;
    otherwise the sums are missing.
    """
    passed = _passed(first, second, places)
    apart = passed.size > 0 and passed[-1] >= passed.size
    if apart or MISSING in (first.factors[0], second.factors[0]):
        return np.full(2, MISSING), np.zeros((2, width), dtype=np.int64)
    if second.factors[0] == 0:
        return first.factors, placed(first.sketch, own, width)
    steps = np.array([1, 1])
    if first.factors[0] != 0:
        inverses = [pow(seed, -1, PRIME) for seed in SEEDS]
        steps = first.factors % PRIME * np.array(inverses) % PRIME
    moved = placed(second.sketch, places, width) % PRIME * steps[:, None] % PRIME
    found = (placed(first.sketch, own, width) + moved) % PRIME
    return second.factors % PRIME * steps % PRIME, found


def written(sums: GroupSums, own: Any, products: Any) -> None:
    """Write sums to a group's records, which have seen nothing; with room for a factor, if wanted.

    A record without room for one takes few rows.
    """
    own.columns[0] = products.columns[0] = sums.features.size
    own.power[0], own.firm[0] = sums.power, sums.firm
    own.factors[:] = sums.factors
    width = sums.width
    own.sketch[:, :width], own.sample[:width] = sums.sketch, sums.sample
    own.lengths[:width] = sums.lengths
    own.rest[0] = sums.rest
    if own.factor is None:
        own.few[: len(sums.rows), :width] = sums.rows
        own.labels[: len(sums.rows)] = sums.right
        own.waiting[0] = len(sums.rows)
        return
    if sums.is_triangle:
        own.factor[:width, :width], own.right[:width] = sums.rows, sums.right
    else:
        matrix, right = np.zeros((width, width)), np.zeros(width)
        own.rest[0] += _fold(matrix, right, sums.rows, sums.right)
        own.factor[:width, :width], own.right[:width] = matrix, right
    own.folds[0], own.summed[0] = max(sums.folds, 1), sums.summed


def is_few(sums: GroupSums) -> bool:
    """Can a record keep these as rows that were held back?"""
    return len(sums.rows) < HELD and sums.rest == 0.0 and sums.folds == 0
