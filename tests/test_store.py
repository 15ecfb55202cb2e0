"""The records of all groups, against a plain dictionary of arrays."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwise.kernels.addresses import INTERPRETED
from groupwise.kernels.layout import EXTENT, LEARNER, LINE, OWN
from groupwise.store import Store
from tests.records import LAYOUT

LEARNERS, LENGTH = 2, 3
GROUPS, WIDEST = 9, 11


EARLY = tuple(name for name in LAYOUT.axes if name not in LAYOUT.late)


def shape_of(name, width):
    sizes = {LEARNER: LEARNERS, EXTENT: LENGTH, OWN: width}
    return tuple(sizes.get(str(axis), axis) for axis in LAYOUT.axes[name])


def first_values(name, width):
    """A field as it begins."""
    kind = np.int64 if name in LAYOUT.integers else np.float64
    return np.full(shape_of(name, width), int(name in LAYOUT.ones), dtype=kind)


def widened(name, array, width):
    """The same numbers in more columns."""
    wide = first_values(name, width)
    wide[tuple(slice(n) for n in array.shape)] = array
    return wide


class Plain:
    """What a store should hold: {group: {field: array}}."""

    def __init__(self):
        self.records: dict[int, dict[str, Any]] = {}
        self.width: dict[int, int] = {}

    def reserve(self, groups, width):
        for group in groups:
            fields = self.records.setdefault(group, {})
            had = self.width.get(group, -1)
            if had < 0:
                fields.update({name: first_values(name, width) for name in EARLY})
            elif had < width:
                fields.update({name: widened(name, fields[name], width) for name in fields})
            self.width[group] = max(width, had)

    def give_late(self, group):
        for name in LAYOUT.late:
            self.records[group][name] = first_values(name, self.width[group])

    def cut(self, name, group, features):
        """A field in the columns of the features in use, as ``save`` writes it."""
        out = first_values(name, features)
        found = self.records.get(group, {}).get(name)
        if found is not None:
            part = tuple(slice(min(a, b)) for a, b in zip(out.shape, found.shape, strict=True))
            out[part] = found[part]
        return out


def check(store, plain):
    """Every number is where it should be, and there is room for what may yet come."""
    for group in range(len(store)):
        if group not in plain.records:
            assert store.block[group] == -1
            continue
        assert store.block[group] % LINE == 0
        assert store.width[group] == plain.width[group]
        own = store.of(group)
        for name in LAYOUT.axes:
            wanted = plain.records[group].get(name)
            found = getattr(own, name)
            if wanted is None:
                assert found is None, name
            else:
                assert found.dtype == wanted.dtype
                assert np.array_equal(found, wanted), (group, name)
    used = int(store.used[0])
    assert not store.pool[used:].any()
    missing = [g for g in plain.records if "matrix" not in plain.records[g]]
    promised = sum(LAYOUT.size(LEARNERS, LENGTH, plain.width[g], late=True) for g in missing)
    assert used + promised <= store.pool.size


def check_saved(store, plain, groups, features):
    """Fields with columns stand one after the other, cut to so many columns in each group."""
    arrays = store.save(groups, features)
    widths = np.broadcast_to(features, (groups,)).tolist()
    placed = [g for g in range(groups) if "matrix" in plain.records.get(g, {})]
    for name, axes in LAYOUT.axes.items():
        some = placed if name in LAYOUT.late else range(groups)
        wanted = [plain.cut(name, group, widths[group]) for group in some]
        assert arrays[name].dtype == first_values(name, 0).dtype
        flat = np.concatenate([*(values.ravel() for values in wanted), np.zeros(0)])
        assert np.array_equal(arrays[name].ravel(), flat), name
        if OWN not in axes and name not in LAYOUT.late:
            assert np.array_equal(store.column(name, groups).ravel(), flat), name
    assert arrays["placed"].tolist() == [len(placed)]
    wanted_place = [placed.index(g) if g in placed else -1 for g in range(groups)]
    assert arrays["place"].tolist() == wanted_place
    return arrays


def new_store():
    return Store(LAYOUT, LEARNERS, LENGTH, np.array([0.5]))


numbers = st.integers(0, GROUPS - 1)
steps = st.one_of(
    st.tuples(st.just("reserve"), st.lists(numbers, max_size=5), st.integers(0, WIDEST)),
    st.tuples(st.just("write"), numbers, st.sampled_from(list(LAYOUT.axes))),
    st.tuples(st.just("late"), numbers, st.none()),
    st.tuples(st.just("fill"), st.lists(numbers, unique=True), st.sampled_from(EARLY)),
    st.tuples(st.just("clear"), st.lists(st.sampled_from(list(LAYOUT.axes))), st.none()),
    st.tuples(st.just("copy"), st.booleans(), st.none()),
    st.tuples(st.just("load"), st.integers(0, GROUPS), st.integers(0, WIDEST)),
    st.tuples(st.just("ragged"), st.lists(st.integers(0, WIDEST), max_size=GROUPS), st.none()),
)


class Random:
    """Numbers that are all different, of a field's kind."""

    def __init__(self):
        self.last = 1

    def __call__(self, shape, kind):
        size = int(np.prod(shape))
        self.last += size
        return np.arange(self.last - size, self.last).reshape(shape).astype(kind)


@settings(deadline=None, max_examples=200)
@given(st.lists(steps, max_size=25))
def test_a_store_is_a_dictionary_of_arrays(story):
    store, plain, number = new_store(), Plain(), Random()
    for step, what, more in story:
        if step == "reserve":
            store.reserve(np.array(what, dtype=np.int64), more)
            plain.reserve(what, more)
        elif step == "write" and more in plain.records.get(what, {}):
            field = plain.records[what][more]
            field[...] = number(field.shape, field.dtype)
            getattr(store.of(what), more)[...] = field
        elif step == "late" and what in plain.records and "matrix" not in plain.records[what]:
            LAYOUT._give_late(store.place, what)
            plain.give_late(what)
        elif step == "fill":
            groups = [group for group in what if group in plain.records]
            least = min((plain.width[group] for group in groups), default=0)
            kind = first_values(more, 0).dtype
            values = number((len(groups), *shape_of(more, least)), kind)
            store.fill(more, np.array(groups, dtype=np.int64), values)
            for group, value in zip(groups, values, strict=True):
                plain.records[group][more][tuple(slice(n) for n in value.shape)] = value
        elif step == "clear":
            store.clear(tuple(what))
            for group, fields in plain.records.items():
                fields.update({n: first_values(n, plain.width[group]) for n in what if n in fields})
        elif step == "copy":
            older = store
            store = pickle.loads(pickle.dumps(store)) if what else copy.deepcopy(store)
            spoil(older)
        elif step == "load":
            arrays = check_saved(store, plain, what, more)
            other = new_store()
            other.load(arrays, what, more, more + 2)
            again = check_saved(other, cut_to(plain, what, more), what, more)
            for name, array in arrays.items():
                assert np.array_equal(again[name], array), name
        elif step == "ragged":
            widths = np.array(what, dtype=np.int64)
            arrays = check_saved(store, plain, widths.size, widths)
            other = new_store()
            other.load(arrays, widths.size, widths)
            again = check_saved(other, cut_to(plain, widths.size, what), widths.size, widths)
            for name, array in arrays.items():
                assert np.array_equal(again[name], array), name
        check(store, plain)


def spoil(store):
    """Write over everything: a copy must not notice."""
    for array in (store.pool, store.block, store.late, store.width, store.used, store.parameters):
        array[...] = 7


def cut_to(plain, groups, features):
    """What is left of it in a file of so many groups and features."""
    left = Plain()
    for group, width in enumerate(np.broadcast_to(features, (groups,)).tolist()):
        left.width[group] = width
        kept = plain.records.get(group, dict.fromkeys(EARLY))
        left.records[group] = {name: plain.cut(name, group, width) for name in kept}
    return left


def test_the_pool_grows_by_doubling_and_leaves_gaps_behind():
    """A group that is widened in many steps does not take the memory of all of them."""
    store, everybody = new_store(), np.arange(4)
    sizes = set()
    for width in range(1, 200):
        store.reserve(everybody, width)
        store.of(3).vector[:] = width
        sizes.add(store.pool.size)
    whole = 4 * (LAYOUT.size(LEARNERS, LENGTH, 199) + LAYOUT.size(LEARNERS, LENGTH, 199, late=True))
    assert store.pool.size <= 4 * whole
    assert len(sizes) < 25
    assert (store.of(3).vector == 199).all()


def test_a_group_costs_what_it_is_wide():
    store = new_store()
    store.reserve(np.arange(1_000), 1)
    narrow = int(store.used[0])
    store.reserve(np.array([500]), 400)
    assert int(store.used[0]) - narrow == LAYOUT.size(LEARNERS, LENGTH, 400)
    assert store.of(499).vector.shape == (LEARNERS, 1)
    assert store.of(500).vector.shape == (LEARNERS, 400)


def test_keepers_are_told_of_groups_that_are_new_or_widened():
    told: list[tuple[list[int], int]] = []
    new: list[list[int]] = []

    class Keeper:
        def begun(self, groups):
            new.append(groups.tolist())

        def opened(self, groups, had):
            told.append((groups.tolist(), had))

    keeper = Keeper()
    store = Store(LAYOUT, LEARNERS, LENGTH, keeper=keeper)
    store.reserve(np.array([0, 2]), 3)
    store.reserve(np.array([0, 1, 2]), 3)
    assert told == []
    store.reserve(np.array([2, 0, 2]), 5)
    store.reserve(np.array([0, 1, 2]), 8)
    assert told == [([0, 2], 3), ([1], 3), ([0, 2], 5)]
    assert new == [[0, 2], [1]]


def test_kernels_find_the_records_where_they_are():
    """The message stays in its place, whatever moves."""
    store = new_store()
    message = store.message
    for width in range(1, 60, 7):
        store.reserve(np.arange(width), width)
        assert store.message is message
        place = store.place
        for slot, value in zip(message, place, strict=True):
            if isinstance(value, np.ndarray):
                assert slot is value if INTERPRETED else slot == value.ctypes.data
            elif value != 0:
                assert slot == value


@pytest.mark.parametrize("name", [*LAYOUT.axes, "place"])
def test_arrays_of_another_shape_are_refused(name):
    store = new_store()
    store.reserve(np.arange(3), 4)
    LAYOUT._give_late(store.place, 1)
    arrays = store.save(3, 4)
    for broken in (arrays[name][:0], arrays[name].astype(np.float32), arrays[name][None, None]):
        with pytest.raises((ValueError, IndexError)):
            new_store().load({**arrays, name: broken}, 3, 4, 4)
    with pytest.raises(KeyError):
        new_store().load({k: a for k, a in arrays.items() if k != name}, 3, 4, 4)
    for name, wrong in (("place", [0, 1, -1]), ("place", [-2, 0, -1]), ("placed", [2])):
        with pytest.raises(ValueError, match="place"):
            new_store().load({**arrays, name: np.array(wrong)}, 3, 4, 4)
    new_store().load(arrays, 3, 4, 4)
