"""Each group's own columns, against a plain list of the features that its rows have had."""

from typing import Any

import numpy as np
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import groupwise as gw
from groupwise.kernels import columns
from groupwise.kernels.cells import of_sparse
from groupwise.kernels.layout import room
from groupwise.store import Store
from tests.states import assert_same_arrays, state_of

FEATURES = 60


class Keeper:
    """Makes the tables anew where there is more room."""

    def __init__(self):
        self.store = Store(columns.COLUMNS, keeper=self)

    def begun(self, groups):
        pass

    def opened(self, groups, first):
        columns.rehash(self.store.address, groups)


def positions_of(keeper, features, known):
    """What a kernel makes of a row with these features, laid out once and admitted once."""
    indices = np.array(sorted(features), dtype=np.int64)
    indptr, indices, values, full = of_sparse(
        np.array([0, indices.size]), indices, np.arange(1.0, indices.size + 1)
    )
    count = np.zeros(1, dtype=np.int64)
    one, scratch = np.zeros(1, dtype=np.int64), np.empty_like(indices)
    state = keeper.store.address
    columns.counted(state, one, indices, values, full[0], scratch, count)
    assert keeper.store.of(0).count[0] == known
    keeper.store.reserve(one, room(int(count[0])), room(FEATURES))
    places, last = np.empty(1, dtype=np.int64), np.empty(1, dtype=np.int64)
    positions = np.empty(values.size, dtype=np.int64)
    starts, rows = np.array([0, 1]), np.zeros(1, dtype=np.int64)
    cells = indptr, indices, values, full
    columns.lay_out(state, one, starts, rows, *cells, places, positions, last)
    assert keeper.store.of(0).count[0] == last[0] == count[0]
    if places[0] == columns.FULL:
        return {k: k for k in np.flatnonzero(values).tolist()}, bool(full[0])
    given = np.arange(values.size) if full[0] else indices
    found = zip(given.tolist(), positions.tolist(), values.tolist(), strict=True)
    return {feature: column for feature, column, value in found if value != 0.0}, bool(full[0])


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(st.lists(st.sets(st.integers(0, FEATURES - 1), min_size=1, max_size=12), max_size=20))
def test_a_feature_s_column_is_the_order_it_came_in(rows):
    keeper = Keeper()
    keeper.store.reserve(np.zeros(1, dtype=np.int64), 4)
    own: list[int] = []
    for row in rows:
        found, full = positions_of(keeper, row, len(own))
        if full and own == list(range(len(own))):
            own += range(len(own), room(max(row) + 1))
        own += [feature for feature in sorted(row) if feature not in own]
        assert found == {feature: own.index(feature) for feature in row}


def shop(count, seed=0):
    """Rows of many shops, each with levels that others do not have."""
    generator = np.random.default_rng(seed)
    for _ in range(count):
        shop = int(generator.integers(12))
        article = f"{shop}-{generator.integers(6)}"
        row = {"price": generator.random(), "shop": f"s{shop}", "article": article}
        yield row, float(generator.random())


def test_a_group_is_as_wide_as_its_own_rows():
    model = gw.Groupwise([gw.by("shop")])
    for row, label in shop(600):
        model.learn_one(row, label)
    crew: Any = model._reduction.banks[0]
    counts = dict(zip(model.group_names, crew.seen.column("count", 13)[:, 0].tolist(), strict=True))
    assert counts.pop("always_on") >= 12 + 72
    assert (
        max(counts.values()) <= 16
    )  # its own eight or nine; the first, full rows bring a few more
    for group in range(13):
        width = crew.seen.of(group).count[0]
        assert crew.recorder.stores["hindsight"].width[group] <= room(int(width) * 5 // 4 + 4)


def test_what_is_only_asked_for_leaves_no_trace():
    """A row that is predicted and never learned from takes no column and no number."""
    plain, asked = gw.Groupwise([gw.by("shop")]), gw.Groupwise([gw.by("shop")])
    asked._key = plain._key
    others = shop(300, seed=1)
    for (row, label), (other, _) in zip(shop(300), others, strict=True):
        asked.preview({**other, "shop": row["shop"]})
        assert asked.preview(row).prediction == plain.predict_one(row)
        for model in (plain, asked):
            model.learn_one(row, label)
    assert_same_arrays(state_of(plain), state_of(asked))


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_replay_gives_every_group_the_same_columns(jobs):
    rows = list(shop(900))
    frame = pandas.DataFrame([{**row, "y": label} for row, label in rows])
    loop, whole, parts = (gw.Groupwise([gw.by("shop")]) for _ in range(3))
    predictions = [loop.predict_one(rows[0][0])]
    for (row, label), (following, _) in zip(rows, [*rows[1:], rows[0]], strict=True):
        loop.learn_one(row, label)
        predictions.append(loop.predict_one(following))
    assert whole.replay(frame, "y", jobs=jobs).prediction.tolist() == predictions[:-1]
    parts.replay([frame[:1], frame[1:400], frame[400:]], "y", jobs=jobs)
    for other in (whole, parts):
        assert_same_arrays(state_of(loop), state_of(other))
