"""What is carried from round to round: arrays with a leading group axis.

The second axis, where there is one, is the learner within the group; an *expert* is a (group,
learner) pair. All losses are scaled to [0, 1]. The kernels change these arrays in place.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

LANES = 4
"""Numbers in a vector of the processor; rows of features have room for whole ones."""
HELD = 8
"""Rows that are held back and then folded into a matrix together."""
LARGEST = 1e100
"""No feature may be larger: products of two must stay finite."""

Vector = NDArray[np.float64]
Index = NDArray[np.int64]
Flags = NDArray[np.bool_]


class RidgeState(NamedTuple):
    """All groups' ridge models. P is ``inverse`` less the outer products of the rows held back."""

    theta: Vector
    inverse: Vector
    """Not by group but by ``place``: groups with few rows have none, theirs is I/λ."""
    place: Index
    """Where a group's matrices are in ``inverse``; -1 until rows are folded into them."""
    placed: Index
    """How many places are taken."""
    held: Vector
    waiting: Index
    """How many rows are held back."""
    minimum: Vector
    """M = Σ w e² / (1 + w xᵀPx) = min_θ λ‖θ‖² + Σ w (θ·x − y)²."""
    log_determinant: Vector
    """ln det(A / λ), kept for the forward form."""
    strength: Vector
    """What is left of the penalty of a learner that forgets; 1 for all others."""


class AggregatorState(NamedTuple):
    """The sleeping-experts algorithm: one entry per expert."""

    regret: Vector
    """R_i = Σ I_i(ℓ̂ − ℓ_i)."""
    absolute: Vector
    """C_i = Σ |I_i(ℓ̂ − ℓ_i)|."""
    mass: Vector
    """The prior mass m_i, given when the expert is made and never changed."""
    largest: Vector
    """The largest |r_i| of any expert in any round; above 1 the guarantee is void."""


class LedgerState(NamedTuple):
    """Sums over the settled rounds of each group, weighted by membership."""

    rounds: Vector
    loss: Vector
    """Losses of the plays; their expectation over the aggregator's draw where it samples."""
    realised_loss: Vector
    delay: Vector
    baseline_loss: Vector
    expert_loss: Vector
    """Losses of each learner of the group, at settlement."""


class HindsightSums(NamedTuple):
    """Per group: Σ w x xᵀ (lower triangle, plus rows held back), Σ w y x and Σ w y²."""

    gram: Vector
    """By ``place``, like the matrices of the learners."""
    place: Index
    placed: Index
    moment: Vector
    power: Vector
    held: Vector
    waiting: Index
    """How many rows are held back."""
    rows: Index
    """How many rows were added; -1 where they weigh more here than for the learners."""


class Settings(NamedTuple):
    """What the kernels need to know of a configuration, as plain numbers."""

    aggregator: int
    play: int
    loss: int
    seed: int
    eta: float
    scale: float
    low: float
    high: float
