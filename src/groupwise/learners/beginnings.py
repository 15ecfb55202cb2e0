"""What learners begin a segment with, and how the sums of the segment change it.

A ridge learner is a function of A = λI + Σ w x xᵀ and Σ w y x, and these add up: after a segment
with the sums S,

    A ← γ^W A + S,    W = Σ w,

where S, of a learner that forgets, has every row as faded as it is at the end. The penalty fades
with A and is renewed as it is round by round: when that happens is known from the weights alone.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import beginnings
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.layout import room
from groupwise.kernels.ridge import Models
from groupwise.learners.crew import Crew
from groupwise.learners.ridge import RidgeBank
from groupwise.regret.sums import GroupSums, placed, together


class Beginning(NamedTuple):
    """The learners of a group at the beginning of a segment. Nobody changes the arrays."""

    features: Index
    """Which feature a column is, in the order in which they came."""
    models: Models
    """All of them stiff."""


Beginnings = Mapping[int, Beginning]


class Adding(Protocol):
    """A learner whose ``adds_up`` says that it is a function of A and Σ w y x."""

    @property
    def penalty(self) -> float:
        """λ."""

    @property
    def forgetting(self) -> float:
        """γ."""


class Apart(NamedTuple):
    """Rows that stand for those of a segment, as they are or without multiples of one column."""

    rows: Vector
    right: Vector
    multiples: Vector
    """By column; none of any where rows are as they are."""
    pivot: int = 0
    """The column whose multiples they are without."""


class Passed(NamedTuple):
    """What a segment was for the learners of one group."""

    features: Index
    """Which feature a column of its rows is."""
    sums: Mapping[float, Apart]
    """Its rows, by forgetting factor."""
    masses: Mapping[float, float]
    """Σ w of them, as faded as they are at the end."""
    rounds: int
    weights: Vector
    """Those of its rounds, one after another; none where all are 1."""


FAR = 1e5
"""What a column has in common with others is so many times the rest where this is to be kept."""


def fresh(penalties: Sequence[float], width: int) -> Models:
    """Stiff learners that have seen nothing."""
    count = len(penalties)
    inverse = np.zeros((count, width, width))
    for k, penalty in enumerate(penalties):
        np.fill_diagonal(inverse[k], np.sqrt(penalty))
    return Models(
        waiting=np.zeros(1, dtype=np.int64),
        minimum=np.zeros(count),
        log_determinant=np.zeros(count),
        strength=np.ones(count),
        mass=np.zeros(count),
        stiff=np.ones(count, dtype=np.int64),
        checks=np.zeros(count, dtype=np.int64),
        pivot=np.zeros(count, dtype=np.int64),
        theta=np.zeros((count, width)),
        diagonal=np.zeros((count, width)),
        held=np.zeros((count, HELD, width)),
        inverse=inverse,
    )


def of_crew(crew: Crew, groups: int) -> dict[int, Beginning]:
    """What the learners of the first groups are now."""
    bank = bank_of(crew)
    found = {}
    for group in range(min(groups, len(bank.store))):
        if bank.store.block[group] < 0:
            continue
        features = crew.features(group)
        width = room(features.size)
        mine = bank.store.part(group, width)
        if mine.inverse is None and mine.waiting[0] == 0:
            continue
        own = fresh([one.penalty for one in bank.learners], width)
        if mine.inverse is None:
            for k, one in enumerate(bank.learners):
                np.fill_diagonal(own.inverse[k], 1.0 / one.penalty)
            mine = mine._replace(inverse=own.inverse)
        copy = Models(*(np.ascontiguousarray(value).copy() for value in mine))
        beginnings.stiffen(copy, bank.parameters)
        copy.waiting[0] = 0
        copy.minimum[:] = copy.log_determinant[:] = 0.0  # added up apart: ``figures``
        found[group] = Beginning(features.copy(), copy)
    return found


def bank_of(crew: Crew) -> RidgeBank:
    """What learns in a crew whose learners all add up, which is one bank."""
    (bank,) = crew.banks
    return cast(RidgeBank, bank)


def widened(own: Models, penalties: Sequence[float], width: int) -> Models:
    """A copy with room for so many columns."""
    wider = fresh(penalties, width)
    had = own.theta.shape[1]
    for name in ("strength", "mass", "pivot"):
        getattr(wider, name)[:] = getattr(own, name)
    for name in ("theta", "diagonal"):
        getattr(wider, name)[:, :had] = getattr(own, name)
    wider.inverse[:, :had, :had] = own.inverse
    return wider


def followed(
    before: Beginning | None, learners: Sequence[Adding], parameters: Vector, passed: Passed
) -> Beginning:
    """What the learners of a group begin the next segment with."""
    penalties = [one.penalty for one in learners]
    known = before.features if before is not None else passed.features[:0]
    features, places = together(known, passed.features)
    width = room(features.size)
    models = fresh(penalties, width) if before is None else widened(before[1], penalties, width)
    weight = float(passed.rounds) if not passed.weights.size else float(passed.weights.sum())
    for k, one in enumerate(learners):
        gamma = float(one.forgetting)
        left, strength = 1.0, float(models.strength[k])
        if gamma < 1.0:
            rounds = gamma, passed.rounds, passed.weights
            now, renewed = beginnings.fade_through(strength, *rounds)
            if renewed:
                left = strength * gamma**weight / now
            strength = models.strength[k] = now
        models.mass[k] = models.mass[k] * left + passed.masses[gamma] / strength
        _take_in(models, k, parameters, left, passed.sums[gamma], strength, places)
    return Beginning(features, models)


def _take_in(
    models: Models, k: int, parameters: Vector, left: float, sums: Apart, strength: float, at: Index
) -> None:
    """Fold the rows of a segment, whose columns are at these places, into a learner."""
    width = models.theta.shape[1]
    rows, multiples = placed(sums.rows, at, width), placed(sums.multiples, at, width)
    pivot = int(at[sums.pivot]) if at.size else 0
    right = np.ascontiguousarray(sums.right)
    beginnings.take_in(models, k, parameters, left, rows, right, strength, multiples, pivot)


def multiples_for(
    sums: GroupSums, learner: Adding, parameters: Vector
) -> tuple[Vector, int] | None:
    """Which multiples of which column rows are to be without; None where they may be as they are.

    Rounding takes ε times as much from a column as it has in common with others.
    """
    width = sums.width
    root = np.sqrt(learner.penalty)
    used = (sums.rows != 0.0).any(axis=0)
    if np.count_nonzero(np.diag(sums.rows)) < np.count_nonzero(used):
        return None  # fewer rows than columns: rows as they are lean on each other by chance
    if np.abs(sums.rows).max(initial=0.0) * np.sqrt(len(sums.rows)) <= FAR * root:
        return None
    alone = fresh([learner.penalty], width)
    as_is = Apart(sums.rows, sums.right, np.zeros(width))
    _take_in(alone, 0, parameters, 1.0, as_is, 1.0, np.arange(width))
    whole = alone.inverse[0] + alone.diagonal[0] * alone.inverse[0][:, alone.pivot[0], None]
    if beginnings.farthest(whole) <= FAR or not alone.diagonal.any():
        return None
    return alone.diagonal[0], int(alone.pivot[0])


def take_up(crew: Crew, groups: Index, given: Beginnings, calm: bool) -> None:
    """Give the learners of groups what they begin with, calm where they may be, if asked for."""
    bank = bank_of(crew)
    known = np.array([group for group in groups.tolist() if group in given], dtype=np.int64)
    crew.name(known, [given[group].features for group in known.tolist()])
    widths = np.array([given[group].models.theta.shape[1] for group in known.tolist()])
    bank.store.reserve(known, widths.astype(np.int64))
    bank.store.give_late(known)
    for group in known.tolist():
        mine, models = bank.store.part(group, given[group].models.theta.shape[1]), given[group][1]
        for name, value in models._asdict().items():
            getattr(mine, name)[...] = value
        bank.opened(np.array([group]), models.theta.shape[1])
        if calm:
            beginnings.calm_down(bank.store.of(group), bank.parameters)


def figures(crew: Crew, groups: Index) -> Any:
    """The sums of every learner that are not in A: M and ln det(A/λ), group by group."""
    bank = bank_of(crew)
    own = [bank.store.of(group) for group in groups.tolist()]
    return np.array([[one.minimum, one.log_determinant] for one in own])
