"""What the best linear model in hindsight is found from: a triangular factor per group.

Full rows, as √w [x, y], are held back and folded into the factor together (``kernels.factor``),
which saves most of the memory traffic. Rows that are mostly zeros are summed up apart
(``kernels.gram``). The label y is the scaled one plus ``parameters[0]``, low / (high − low): a
linear model in the label's own units is then one of y.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels.addresses import stay_apart
from groupwise.kernels.compiled import Kernel, lean
from groupwise.kernels.factor import fold
from groupwise.kernels.layout import ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch

HELD = 8
"""Rows that a group has room for before it gets a matrix."""
TOGETHER = 32
"""Rows that are held back and then folded into the factor together, once it has."""
WHOLE = 1 << 14
"""Rounds of a group after which learners may be renewed."""


class Sums(NamedTuple):
    """One group's rows, as far as hindsight needs them."""

    waiting: Index
    """How many full rows are held back."""
    rows: Index
    """How many rows there were; -1 where they weigh more here than for the learners."""
    folds: Index
    """How often rows were folded into the factor."""
    power: Vector
    """Σ w y² of all rows, of the scaled label."""
    rest: Vector
    """ρ: the squares of what of the full rows' labels the factor's columns do not span."""
    labels: Vector
    """√w y of the rows held back."""
    right: Vector
    """z."""
    few: Vector
    """The rows held back, as √w x, in a group that has no factor yet."""
    held: Vector
    """The same, once it has one."""
    factor: Vector
    """R, on and above the diagonal."""


SUMS = Layout(
    Sums,
    {
        "waiting": ONE,
        "rows": ONE,
        "folds": ONE,
        "power": ONE,
        "rest": ONE,
        "labels": (TOGETHER,),
        "right": (OWN,),
        "few": (HELD, OWN),
        "held": (TOGETHER, OWN),
        "factor": (OWN, OWN),
    },
    integers=("waiting", "rows", "folds"),
    late=("held", "factor"),
)
sums_of, give_late = SUMS.view, SUMS.give_late


@Kernel
def record(state, message):
    """Add the rounds of a stretch, full rows to the factor; stops early every so often."""
    place, stretch = open_place(state), open_stretch(message)
    group, offset = stretch.group, place.parameters[0]
    own = sums_of(place, group)
    share = stretch.stands_for[0]
    if share != 1.0:
        own.rows[0] = -1
    for i in range(stretch.first, stretch.last):
        xi, xv = cells_of(stretch, i)
        weight, y = stretch.weights[stretch.entries[i]] * share, stretch.labels[stretch.rows[i]]
        own.power[0] += weight * y * y
        if own.rows[0] >= 0:
            own.rows[0] += 1
        if xi.size == 0:
            root, count, late = np.sqrt(weight), own.waiting[0], place.late[group] >= 0
            row = own.held[count] if late else own.few[count]
            for j in range(xv.size):
                row[j] = root * xv[j]
            own.labels[count] = root * (y + offset)
            own.waiting[0] = count + 1
            if count + 1 == (TOGETHER if late else HELD):
                make_room(place, group)
                own = sums_of(place, group)
        if own.rows[0] > 0 and own.rows[0] % WHOLE == 0:
            return i + 1
    return stretch.last


@lean
def make_room(place, group):
    """Fold the rows held back into the factor; before there is one, move them to where it is."""
    stay_apart()
    own = sums_of(place, group)
    if place.late[group] < 0:
        give_late(place, group)
        own = sums_of(place, group)
        for k in range(HELD):
            for j in range(own.right.size):
                own.held[k, j], own.few[k, j] = own.few[k, j], 0.0
        return
    own.rest[0] += fold(own.factor, own.right, own.held, own.labels, TOGETHER, own.right.size)
    for k in range(TOGETHER):
        for j in range(own.right.size):
            own.held[k, j] = 0.0
    own.waiting[0] = 0
    own.folds[0] += 1
