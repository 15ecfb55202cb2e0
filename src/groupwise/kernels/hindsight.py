"""What the best linear model in hindsight is found from: a triangular factor per group.

Full rows, as √w [x, y], are held back and folded into the factor together (``kernels.factor``),
which saves most of the memory traffic; where sums of products are as good, they stand in its place
(``kernels.calm``). Rows that are mostly zeros beside the columns that the group
has had (``is_dense``) are summed up apart (``kernels.gram``). The label y is the scaled one plus
``parameters[OFFSET]``, low / (high − low): a linear model in the label's own units is then one of
y. Or weights and labels are those of parabolas that bound a loss (``kernels.logistic``): of which,
and how many there are, the other parameters tell.
"""

from typing import NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import sketch
from groupwise.kernels.addresses import call, stay_apart
from groupwise.kernels.calm import (
    ROUNDINGS,
    SCRATCH,
    TIMES,
    far_from_dependent,
    goes_beyond,
    has_grown,
    set_aside,
    take_back,
    to_factor,
    to_sums,
)
from groupwise.kernels.compiled import Kernel, inlined, lean
from groupwise.kernels.factor import fold
from groupwise.kernels.layout import ONE, OWN, Layout, open_place
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.vectors import add_outer, combine_first, dense_dot, scale

OFFSET, WHICH, EACH = range(3)
"""The parameters; ``EACH`` is 0 where there are no parabolas."""
HELD = 8
"""Rows that a group has room for before it gets a matrix."""
TOGETHER = 32
"""Rows that are held back and then folded into the factor together, once it has."""


class Sums(NamedTuple):
    """One group's rows, as far as hindsight needs them."""

    waiting: Index
    """How many full rows are held back."""
    columns: Index
    """How many columns the rows have had."""
    folds: Index
    """How often rows were folded into the factor."""
    calm: Index
    """Do sums of products stand in the place of the factor? 1 where nothing of them is set aside,
    as in files of earlier versions, where above the diagonal is nothing of use; 2 otherwise."""
    summed: Index
    """How many roundings such a sum has had at most."""
    power: Vector
    """Σ w y² of all rows, of the scaled label."""
    rest: Vector
    """ρ: the squares of what of the full rows' labels the factor's columns do not span; or Σ y²."""
    labels: Vector
    """√w y of the rows held back."""
    right: Vector
    """z; or g."""
    firm: Index
    """So many of the first columns were found to be far from dependent, so they are for ever."""
    factors: Index
    """The random factors of the next row in the sketches (``kernels.sketch``); 0 at first."""
    sketch: Index
    """Two random combinations of the rows, exactly."""
    sample: Vector
    """The first number other than 0 that a column has had."""
    lengths: Vector
    """√Σ x², by column, of the rows that are or were in sums, as of the last look."""
    few: Vector
    """The rows held back, as √w x, in a group that has no factor yet; then what is set aside."""
    held: Vector
    """The same, once it has one."""
    factor: Vector
    """R, on and above the diagonal; or G, on and below it."""


SUMS = Layout(
    Sums,
    {
        "waiting": ONE,
        "columns": ONE,
        "folds": ONE,
        "calm": ONE,
        "summed": ONE,
        "power": ONE,
        "rest": ONE,
        "labels": (TOGETHER,),
        "right": (OWN,),
        "firm": ONE,
        "factors": (2,),
        "sketch": (2, OWN),
        "sample": (OWN,),
        "lengths": (OWN,),
        "few": (HELD, OWN),
        "held": (TOGETHER, OWN),
        "factor": (OWN, OWN),
    },
    integers=("waiting", "columns", "folds", "calm", "summed", "firm", "factors", "sketch"),
    late=("held", "factor"),
)
sums_of, give_late = SUMS.view, SUMS.give_late


@inlined
def is_dense(columns, xi, xv):
    """Is a row for the factor, and not for the sums? ``columns`` counts those that rows have had.

    A row of c cells costs some c²/2 additions of pairs there and a share of the factor here: about
    as much where it has a third of the columns.
    """
    most = columns[0]
    if xi.size == 0:
        columns[0] = max(most, xv.size)
        return True
    for k in range(xi.size):
        most = max(most, xi[k] + 1)
    columns[0] = most
    return 3 * xi.size > most


@inlined
def weighted_label(place, stretch, i):
    """The weight and the label of a round in the sums.

    They are those of the round or, where ``parameters`` say that it has parabolas, of one of them;
    a weight of 0 where the round is not in the sums.
    """
    entry, each = stretch.entries[i], int(place.parameters[EACH])
    if each == 0:
        return stretch.weights[entry] * stretch.stands_for[0], stretch.labels[stretch.rows[i]]
    at = 2 * (entry * each + int(place.parameters[WHICH]))
    return stretch.anchors[at], stretch.anchors[at + 1]


@Kernel
def record(state, message):
    """Add the rounds of a stretch, full rows to the factor."""
    place, stretch = open_place(state), open_stretch(message)
    group, offset = stretch.group, place.parameters[OFFSET]
    own = sums_of(place, group)
    for i in range(stretch.first, stretch.last):
        first, last, start, stop = cells_of(stretch, i)
        xi, xv = stretch.positions[first:last], stretch.values[start:stop]
        weight, y = weighted_label(place, stretch, i)
        if weight == 0.0:
            continue
        own.power[0] += weight * y * y
        sketch.add(own, xi, xv)
        if is_dense(own.columns, xi, xv):
            root, count, late = np.sqrt(weight), own.waiting[0], place.late[group] >= 0
            row = own.held[count] if late else own.few[count]
            if xi.size == 0:
                scale(row, root, xv, xv.size)
            for k in range(xi.size):
                if xv[k] != 0.0:
                    row[xi[k]] = root * xv[k]
            own.labels[count] = root * (y + offset)
            own.waiting[0] = count + 1
            if count + 1 == (TOGETHER if late else HELD):
                call(place.rare, state, message)
                own = sums_of(place, group)
    return stretch.last


@Kernel
def make_room(state, message):
    """Fold the rows held back into the factor; before there is one, move them to where it is.

    ``record`` calls it by its address, and so is not compiled together with all of it.
    """
    place, stretch = open_place(state), open_stretch(message)
    group, width = stretch.group, stretch.width
    own = sums_of(place, group)
    if place.late[group] < 0:
        give_late(place, group)
        own = sums_of(place, group)
        for k in range(HELD):
            for j in range(width):
                own.held[k, j], own.few[k, j] = own.few[k, j], 0.0
        return stretch.last
    due = own.folds[0] & (own.folds[0] + 1) == 0  # after 1, 2, 4, … times
    if own.calm[0] and goes_beyond(own.held, TOGETHER, own.lengths, width):
        leave_sums(own, width)
    if own.calm[0]:
        moment = own.few[SCRATCH]
        add_outer(own.factor, own.held, width)
        combine_first(moment, False, own.held, own.labels, TOGETHER, width)
        for j in range(width):
            own.right[j] += moment[j]
            moment[j] = 0.0
        own.rest[0] += dense_dot(own.labels, own.labels, TOGETHER)
        due = has_grown(own.factor, own.few, own.lengths, width)
        if due:
            leave_sums(own, width)
        elif own.folds[0] % TIMES == 0:
            put_aside(own, width)
    else:
        own.rest[0] += fold(own.factor, own.right, own.held, own.labels, TOGETHER, width)
    own.folds[0] += 1
    if due:
        look(own, width)
    for k in range(TOGETHER):
        for j in range(width):
            own.held[k, j] = 0.0
    own.waiting[0] = 0
    return stretch.last


@lean
def put_aside(own, width):
    """Put the sums aside."""
    stay_apart()
    if own.calm[0] == 1:
        for i in range(width):
            for j in range(i + 1, width):
                own.factor[i, j] = 0.0
        own.calm[0] = 2
        own.summed[0] += ROUNDINGS
    set_aside(own.factor, own.right, own.rest, own.few, width)
    own.summed[0] += 1


@lean
def leave_sums(own, width):
    """Go back to the factor."""
    stay_apart()
    if own.calm[0] == 2:
        take_back(own.factor, own.right, own.rest, own.few, width)
    for j in range(width):
        own.lengths[j] = np.sqrt(own.factor[j, j])
    to_factor(own.factor, own.right, own.rest, width)
    own.calm[0] = 0


@lean
def look(own, width):
    """Go over to sums if they are good enough. The rows held back are used up."""
    stay_apart()
    lengths = own.held[0]
    enough = TOGETHER * own.folds[0] >= 2 * own.columns[0]  # there may be room for more of them
    if enough and far_from_dependent(own.factor, lengths, width):
        for j in range(width):
            own.lengths[j] = lengths[j]
        to_sums(own.factor, own.right, own.rest, own.lengths, width)
        own.calm[0] = 2
        while own.firm[0] < width and own.lengths[own.firm[0]] > 0.0:
            own.firm[0] += 1
        own.summed[0] = max(own.summed[0], ROUNDINGS) + 2 * own.columns[0] + 1  # on the way back
        # What was there before is not rounded once more with every row that comes from now on.
        put_aside(own, width)
