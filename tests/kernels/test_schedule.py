"""Subsequences, and the queue that threads take them from."""

import threading

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from groupwise.kernels import schedule
from groupwise.kernels.addresses import next_of

GROUPS = 7


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.sets(st.integers(0, GROUPS - 1)), max_size=30))
def test_every_group_has_its_rows_in_order(rows):
    lists = [sorted(row) for row in rows]
    groups = np.array([g for row in lists for g in row], dtype=np.int64)
    indptr = np.cumsum([0, *map(len, lists)])
    slots = np.full(GROUPS, -1, dtype=np.int32)
    parts = schedule.Parts(*schedule.subsequences(indptr, groups, slots))
    assert (slots == -1).all()
    assert sorted(parts.groups) == sorted({g for row in lists for g in row})
    sizes = np.diff(parts.starts)
    assert (np.diff(sizes) <= 0).all()
    for i, group in enumerate(parts.groups):
        own = slice(parts.starts[i], parts.starts[i + 1])
        assert list(parts.rows[own]) == [t for t, row in enumerate(lists) if group in row]
        assert (groups[parts.entries[own]] == group).all()
        assert (np.searchsorted(indptr, parts.entries[own], "right") - 1 == parts.rows[own]).all()


@njit(nogil=True)
def take(queue, total, batch, taken):
    first = next_of(queue, batch)
    while first < total:
        for i in range(first, min(first + batch, total)):
            taken[i] += 1
        first = next_of(queue, batch)


def test_threads_take_everything_once():
    total = 200_000
    taken, queue = np.zeros(total, dtype=np.int64), np.zeros(1, dtype=np.int64)
    take(queue.copy(), 0, 3, taken)  # compiled before the threads start
    threads = [threading.Thread(target=take, args=(queue, total, 3, taken)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (taken == 1).all()
