"""Which of the label's past to make features of, where rows have an order.

Streams are told apart by the columns with which the order is unique. Within a stream, the levels
are those that foretell best how much the label rises from one row to the next: "at this hour of a
working day it rose by so much". No period has to be known for it.
"""

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.features.past import Past, past

LAGS, MEANS = (1, 2), (0.5, 0.9, 0.99)
"""Of the stream itself."""
LEVEL_LAGS, LEVEL_MEANS = (1,), (0.9,)
"""By each level, of labels and of rises."""
ROWS = 20_000
"""So many of the first rows tell which columns make the order unique."""
SCORED = 5_000
"""So many tell which levels foretell rises; a thousand are too few where streams are many."""
GAIN = 0.98
"""Levels that leave more of the rises' squares than this are of no use."""
MOST = 4
"""So many combinations of levels at most: the best column, and pairs with it."""
KEYS = 12
"""So many columns are tried in pairs to make the order unique."""


def codes_of(columns: Sequence[Sequence[Any]], rows: int) -> tuple[Index, int]:
    """Number the combinations of values in some columns; how many there are."""
    found = np.zeros(rows, dtype=np.int64)
    for column in columns:
        number: dict[Any, int] = {}
        own = np.array([number.setdefault(one, len(number)) for one in column], dtype=np.int64)
        found = np.unique(found * len(number) + own, return_inverse=True)[1].ravel()
    return found, int(found.max(initial=-1)) + 1


def streams_of(order: Sequence[Any], columns: Mapping[str, Sequence[Any]]) -> tuple[str, ...]:
    """The columns with which an order is unique: none, one or two of them, of fewest values.

    None also where there are no such columns, or none whose values come again: it is one stream.
    """
    rows = len(order)
    if len(set(order)) == rows:
        return ()
    for count in (1, 2):
        names = list(columns)[: KEYS if count > 1 else None]
        unique = []
        for chosen in itertools.combinations(names, count):
            own = [columns[name] for name in chosen]
            streams = codes_of(own, rows)[1]
            if 2 * streams <= rows and codes_of([order, *own], rows)[1] == rows:
                unique.append((streams, chosen))
        if unique:
            return min(unique)[1]
    return ()


def levels_of(
    labels: Vector, streams: Sequence[Sequence[Any]], columns: Mapping[str, Sequence[Any]]
) -> list[tuple[str, ...]]:
    """The column whose levels foretell rises best, and the pairs with it that foretell the rest."""
    rows = min(SCORED, labels.size)
    streams = [column[:rows] for column in streams]
    columns = {name: column[:rows] for name, column in columns.items()}
    rises = _rises(labels[:rows], codes_of(streams, rows)[0])
    whole = float((rises**2).sum())
    if not columns or whole == 0.0:
        return []

    def tried(names: Sequence[str], of: Vector) -> tuple[float, int, tuple[str, ...], Vector]:
        codes, count = codes_of([*streams, *(columns[name] for name in names)], rows)
        left = _left(codes, count, of)
        return float((left**2).sum()), count, tuple(names), left

    best = min((tried([name], rises) for name in columns), key=lambda one: one[:3])
    if best[0] > GAIN * whole:
        return []
    found, sizes = [best[2]], {best[1]}
    first = best[2][0]
    pairs = [tried([first, name], best[3]) for name in columns if name != first]
    for _, count, names, _ in sorted(pairs, key=lambda one: one[:3]):
        if count not in sizes:  # else it splits no further than one that is there
            sizes.add(count)
            found.append(names)
    return found[:MOST]


def _rises(labels: Vector, codes: Index) -> Vector:
    """Labels less the one before, of the same stream; 0 for the first."""
    last: dict[int, float] = {}
    found = np.zeros(labels.size)
    for t, (code, label) in enumerate(zip(codes.tolist(), labels.tolist(), strict=True)):
        found[t] = label - last.get(code, label)
        last[code] = label
    return found


def _left(codes: Index, count: int, values: Vector) -> Vector:
    """Values less what their level's mean so far foretells, decaying and shrunk to 0."""
    sums, weights = [0.0] * count, [0.0] * count
    decay = LEVEL_MEANS[0]
    found = np.empty(values.size)
    for t, (code, value) in enumerate(zip(codes.tolist(), values.tolist(), strict=True)):
        found[t] = value - sums[code] / (weights[code] + 1.0)
        sums[code] = decay * sums[code] + value
        weights[code] = decay * weights[code] + 1.0
    return found


def makers(target: str, of: Sequence[str], levels: Sequence[Sequence[str]]) -> tuple[Past, ...]:
    """The past of a label's streams, and by each of some combinations of levels."""
    whole = past(target, LAGS, MEANS, of=of)
    by = [past(target, LEVEL_LAGS, LEVEL_MEANS, by=one, of=of, rises=True) for one in levels]
    return (whole, *by)
