"""Sums for the best linear model in hindsight: Σ w x xᵀ, Σ w y x, Σ w y² per group.

Rows that are mostly zeros go straight into the lower triangle of the matrix; full rows are held
back and added together, which saves most of the memory traffic. The lower triangle plus the held
rows is the truth.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.cells import fma, padded
from groupwise.kernels.compiled import Kernel, lean
from groupwise.kernels.layout import ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.vectors import add_and_scale, add_outer

HELD = 8
"""Rows that are held back and then folded into a matrix together."""
WHOLE = 1 << 14
"""Rounds of a group after which nothing is held back for a moment: learners may be renewed."""


class Sums(NamedTuple):
    """One group's sums."""

    waiting: Index
    """How many rows are held back."""
    rows: Index
    """How many rows were added; -1 where they weigh more here than for the learners."""
    power: Vector
    """Σ w y²."""
    moment: Vector
    """Σ w y x."""
    held: Vector
    gram: Vector
    """Σ w x xᵀ, the lower triangle, without the rows held back."""


SUMS = Layout(
    Sums,
    {
        "waiting": ONE,
        "rows": ONE,
        "power": ONE,
        "moment": (OWN,),
        "held": (HELD, OWN),
        "gram": (OWN, OWN),
    },
    integers=("waiting", "rows"),
    late=("gram",),
)
sums_of, give_late = SUMS.view, SUMS.give_late


@Kernel
def record(state, message):
    """Add the rounds of a stretch; stops early where nothing is held back, every so often."""
    place, stretch = open_place(state), open_stretch(message)
    group = stretch.group
    own = sums_of(place, group)
    share = stretch.stands_for[0]
    if share != 1.0:
        own.rows[0] = -1
    for i in range(stretch.first, stretch.last):
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        weight, y = stretch.weights[stretch.entries[i]] * share, stretch.labels[stretch.rows[i]]
        own.power[0] += weight * y * y
        if own.rows[0] >= 0:
            own.rows[0] += 1
        if xi.size == 0:
            count = own.waiting[0]
            add_and_scale(own.moment, weight * y, own.held[count], np.sqrt(weight), xv, xv.size)
            own.waiting[0] = count + 1
            if count + 1 == HELD:
                fold(place, group)
                own = sums_of(place, group)
        else:
            if place.late[group] < 0:
                give_late(place, group)
                own = sums_of(place, group)
            for k in range(xi.size):
                factor, row_of_gram = weight * xv[k], own.gram[xi[k]]
                own.moment[xi[k]] = fma(factor, y, own.moment[xi[k]])
                for j in range(k + 1):
                    row_of_gram[xi[j]] = fma(factor, xv[j], row_of_gram[xi[j]])
        if own.rows[0] > 0 and own.rows[0] % WHOLE == 0:
            fold(place, group)
            return i + 1
    return stretch.last


@lean
def fold(place, group):
    """Add the held rows to the lower triangle, and clear them."""
    stay_apart()
    if place.late[group] < 0:
        give_late(place, group)
    own = sums_of(place, group)
    width = 0
    for k in range(HELD):
        for j in range(width, own.held.shape[1]):
            if own.held[k, j] != 0.0:
                width = j + 1
    width = padded(width)
    add_outer(own.gram, 1.0, own.held, width, False)
    for k in range(HELD):
        for j in range(width):
            own.held[k, j] = 0.0
    own.waiting[0] = 0
