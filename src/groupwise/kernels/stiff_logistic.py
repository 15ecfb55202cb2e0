"""Logistic learners whose rows are too much for the matrix P: as ``kernels.stiff`` for ridge.

A round enters the triangular factor with the weight w c and the label z + (y − π)/c of its parabola
(``kernels.logistic``). Compiled when a group first needs it.
"""

from groupwise.kernels.compiled import Kernel
from groupwise.kernels.hindsight import HELD
from groupwise.kernels.layout import open_place
from groupwise.kernels.logistic import (
    account,
    difference,
    link_of,
    logistics_of,
    note,
    target,
)
from groupwise.kernels.ridge import (
    ADVISE,
    AHEAD,
    ROOM,
    ROUND,
    TAKE_OVER,
    TASK,
    WHO,
    give_matrices,
)
from groupwise.kernels.stiff import factorise, grow_older, lay, take_multiples
from groupwise.kernels.stretch import cells_of, open_stretch
from groupwise.kernels.triangles import absorb, substitute
from groupwise.kernels.vectors import dense_dot


@Kernel
def serve(state, message):
    """Advice of a stiff learner, and its update; or make a calm learner stiff."""
    place, stretch = open_place(state), open_stretch(message)
    group, i, k = stretch.group, stretch.marks[ROUND], stretch.marks[WHO]
    task = stretch.marks[TASK]
    room = place.learners * AHEAD * place.width[group] + HELD
    if task == TAKE_OVER:
        give_matrices(place, group)
        factorise(logistics_of(place, group), k, place.parameters, stretch.work[room:])
    mine = logistics_of(place, group)
    width, used = mine.theta.shape[1], stretch.width
    work = stretch.work[room : room + ROOM * width].reshape((ROOM, width))
    solved, rest = work[0, :used], work[1, :used]
    first, last, start, stop = cells_of(stretch, i)
    xi, xv = stretch.positions[first:last], stretch.values[start:stop]
    top = lay(rest, xi, xv)
    take_multiples(mine, k, rest)
    solved[:top] = 0.0
    substitute(mine.inverse[k], rest, solved, top, used)
    entry = stretch.entries[i]
    weight = stretch.weights[entry]
    kappa = weight * dense_dot(solved, solved, used)
    at = link_of(place, k, dense_dot(mine.theta[k], solved, used), kappa)
    if task != TAKE_OVER:
        stretch.advice[entry * stretch.columns + stretch.column + k] = at.advice
    if task == ADVISE:
        return stretch.last
    y, reached = target(place, stretch, i, k)
    note(place, stretch, mine, i, k, xi, xv, y, reached, at)
    if reached:
        account(mine, k, weight, y, kappa, at)
        top = lay(rest, xi, xv)
        take_multiples(mine, k, rest)
        label = at.z + difference(y, at) / at.c
        absorb(mine.inverse[k], mine.theta[k], rest, solved, weight * at.c, label, top, used)
        mine.mass[k] += weight * at.c
    grow_older(mine, k, place.parameters, work)
    return stretch.last
