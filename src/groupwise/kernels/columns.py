"""The columns of a group: the features that its own rows have had, in the order they came.

Levels and indicators of other groups cost a group nothing: its matrices are as wide as its own
columns are many. A group whose columns are the first features, in their order, needs no table;
any other finds a feature's column by a table of open addresses.
"""

from typing import NamedTuple

from groupwise.arrays import Index
from groupwise.kernels.cells import UNSIGNED, padded
from groupwise.kernels.compiled import inlined, lean
from groupwise.kernels.layout import ONE, OWN, Layout, open_place

FULL = -1
"""What stands for the positions of a row that is given in full."""
_SPREAD = 2654435761
_BITS = 32


class Columns(NamedTuple):
    """What a group knows of its columns."""

    count: Index
    moved: Index
    """0 as long as column j is feature j."""
    feature: Index
    """Which feature a column is; only where they have moved."""
    table: Index
    """Column + 1 at the place of its feature, or after it; 0 is empty."""


COLUMNS = Layout(
    Columns,
    {"count": ONE, "moved": ONE, "feature": (OWN,), "table": (2, OWN)},
    integers=("count", "moved", "feature", "table"),
)
columns_of = COLUMNS.view


@inlined
def _slot(feature, size):
    """Where in a table of this size a feature is looked for first."""
    if feature < size:
        return feature
    return (((feature * _SPREAD) & ((1 << _BITS) - 1)) * size) >> _BITS


@inlined
def _find(own, feature):
    """The column of a feature; -1 where the group has none."""
    if own.moved[0] == 0:
        return feature if feature < own.count[0] else -1
    size = 2 * own.feature.size
    slot = _slot(feature, size)
    while True:
        column = own.table[slot & 1, UNSIGNED(slot >> 1)] - 1
        if column < 0 or own.feature[UNSIGNED(column)] == feature:
            return column
        slot = slot + 1 if slot + 1 < size else 0


@inlined
def _insert(own, column):
    """Put a column into the table."""
    size = 2 * own.feature.size
    slot = _slot(own.feature[column], size)
    while own.table[slot & 1, slot >> 1] != 0:
        slot = slot + 1 if slot + 1 < size else 0
    own.table[slot & 1, slot >> 1] = column + 1


@inlined
def lay(own, xi, xv, full, out):
    """Write to ``out`` in which columns the cells of a row lie; new features come after the others.

    Returns how many columns the group has with this row, and how many positions were written: none
    where the row is full and column j is feature j. Changes nothing but ``out``.
    """
    count = own.count[0]
    if full and own.moved[0] == 0:
        return max(count, xv.size), 0
    for k in range(xv.size):
        column = 0  # a zero among the cells of a full row may lie anywhere
        if not full or xv[k] != 0.0:
            column = _find(own, k if full else xi[k])
            if column < 0:
                column = count
                count += 1
        out[k] = column
    return count, xv.size


@inlined
def admit(own, xi, xv, full, positions, count):
    """Make the columns of a row, of which ``lay`` told, the group's own."""
    known = own.count[0]
    if own.moved[0] == 0 and full:
        known = count
    for k in range(xv.size):
        if known == count:
            break
        if positions[k] == known:
            feature = k if full else xi[k]
            if own.moved[0] == 0 and feature != known:
                own.moved[0] = 1
                for column in range(known):
                    own.feature[column] = column
                    _insert(own, column)
            if own.moved[0] != 0:
                own.feature[known] = feature
                _insert(own, known)
            known += 1
    own.count[0] = known


@inlined
def name(own, xi, xv, full, positions, out):
    """Which features the columns of a group are, new ones of a row that ``lay`` laid out included.

    ``positions`` are those of the row's cells; none where column j is feature j.
    """
    count = min(own.count[0], out.size)
    moved = own.moved[0] != 0
    for column in range(count if moved or positions.size > 0 else out.size):
        out[column] = own.feature[column] if moved else column
    for k in range(positions.size):
        if positions[k] >= count and xv[k] != 0.0:
            out[positions[k]] = k if full else xi[k]


@lean
def counted(state, groups, xi, xv, full, positions, out):
    """How many columns each group has with a row. Changes nothing."""
    place = open_place(state)
    for i in range(groups.size):
        out[i], _ = lay(columns_of(place, groups[i]), xi, xv, full, positions)


@lean
def most_columns(state, groups, starts, rows, indptr, features, out):
    """How many columns each group can have at most after its rounds."""
    place = open_place(state)
    for i in range(groups.size):
        count = columns_of(place, groups[i]).count[0]
        for r in range(starts[i], starts[i + 1]):
            if count >= features:
                break
            count += padded(indptr[rows[r] + 1] - indptr[rows[r]])
        out[i] = max(columns_of(place, groups[i]).count[0], min(count, padded(features)))


@lean
def lay_out(state, groups, starts, rows, indptr, indices, values, full, places, positions, counts):
    """``lay`` and ``admit`` for all rounds of some groups; there must be room.

    The positions of round r begin at ``places[r]``; ``counts`` is how many columns groups have now.
    """
    place = open_place(state)
    used = 0
    for i in range(groups.size):
        own = columns_of(place, groups[i])
        for r in range(starts[i], starts[i + 1]):
            row = rows[r]
            first, last = indptr[row], indptr[row + 1]
            xi, xv = indices[first:last], values[first:last]
            out = positions[used : used + xv.size]
            count, written = lay(own, xi, xv, full[row], out)
            places[r] = used if written > 0 else FULL
            used += written
            if count > own.count[0]:
                admit(own, xi, xv, full[row], out, count)
        counts[i] = own.count[0]


@lean
def names(state, groups, counts, origins, out):
    """Which features the columns of some groups are; those of ``groups[i]`` from ``origins[i]``."""
    place = open_place(state)
    for i in range(groups.size):
        own = columns_of(place, groups[i])
        for column in range(counts[i]):
            out[origins[i] + column] = own.feature[column] if own.moved[0] != 0 else column


@lean
def count(state, groups, out):
    """How many columns each group has."""
    place = open_place(state)
    for i in range(groups.size):
        out[i] = columns_of(place, groups[i]).count[0]


@lean
def stranger(state, indptr, indices, values, members, groups):
    """The first row with a feature that one of its groups has not; -1 where there is none.

    Row t is in the groups ``groups[members[t]:members[t + 1]]``.
    """
    place = open_place(state)
    for t in range(indptr.size - 1):
        for a in range(members[t], members[t + 1]):
            own = columns_of(place, groups[a])
            for k in range(indptr[t], indptr[t + 1]):
                if values[k] != 0.0 and _find(own, indices[k]) < 0:
                    return t
    return -1


@lean
def rehash(state, groups):
    """Make the tables of groups anew whose room has grown."""
    place = open_place(state)
    for i in range(groups.size):
        own = columns_of(place, groups[i])
        if own.moved[0] != 0:
            own.table[:] = 0
            for column in range(own.count[0]):
                _insert(own, column)
