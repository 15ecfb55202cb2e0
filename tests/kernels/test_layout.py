"""Tables of axes: kernels and Python see the same numbers, and fields that change places show."""

import copy
import itertools
import pickle
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

import groupwise as gw
from groupwise import archive
from groupwise.arrays import Flags, Index, Vector
from groupwise.kernels.contextual_ftpl import HISTORY
from groupwise.kernels.experts import EXPERTS
from groupwise.kernels.ftpl import COSTS
from groupwise.kernels.hindsight import SUMS
from groupwise.kernels.layout import (
    LANES,
    LEARNER,
    LINE,
    ONE,
    OWN,
    Layout,
    Message,
    address,
    open_place,
    room,
)
from groupwise.kernels.ridge import MODELS
from groupwise.kernels.rounds import BOOKS
from groupwise.store import Store
from tests.records import LAYOUT, Record


class Letter(NamedTuple):
    """A message with something of every kind."""

    cells: int
    values: Vector
    other: int
    positions: Index
    flags: Flags


LETTER = Message(Letter)
open_letter = LETTER.open


@njit
def answer(message, out):
    """Read a message, and write into its arrays."""
    letter = open_letter(message)
    for i in range(letter.cells):
        out[i] = letter.values[letter.positions[i]] * (2.0 if letter.flags[i] else 1.0)
        letter.values[letter.positions[i]] = -1.0
    return letter.other


@settings(deadline=None)  # the first call compiles
@given(st.lists(st.tuples(st.floats(-9, 9), st.booleans())), st.integers(-(2**62), 2**62))
def test_what_is_packed_is_what_a_kernel_opens(cells, other):
    values, flags = np.array([x for x, _ in cells]), np.array([x for _, x in cells], dtype=bool)
    positions = np.arange(len(cells))[::-1].copy()
    message = LETTER.pack(Letter(len(cells), values, other, positions, flags))
    wanted = values[::-1] * np.where(flags, 2.0, 1.0)
    out = np.empty(len(cells))
    assert answer(address(message), out) == other
    assert np.array_equal(out, wanted)
    assert (values == -1.0).all()


view, give_late = LAYOUT.view, LAYOUT.give_late


@njit
def write(message, group, sizes):
    """Write 1, 2, 3, … into a group's record, field after field; note the sizes of the fields."""
    own = view(open_place(message), group)
    number = 0
    for i in range(own.tally.size):
        number += 1
        own.tally[i] = number
    for vector in (own.level, own.table):
        for i in range(vector.size):
            number += 1
            vector[i] = number
    for i in range(own.vector.size):
        number += 1
        own.vector[i // own.vector.shape[1], i % own.vector.shape[1]] = number
    for i in range(own.weights.size):
        number += 1
        own.weights[i] = number
    for i in range(own.rows.shape[0]):
        for j in range(own.rows.shape[1]):
            number += 1
            own.rows[i, j] = number
    for k in range(own.matrix.shape[0]):
        for i in range(own.matrix.shape[1]):
            for j in range(own.matrix.shape[2]):
                number += 1
                own.matrix[k, i, j] = number
    for k in range(own.marks.size):
        number += 1
        own.marks[k] = number
    sizes[0], sizes[1], sizes[2] = own.tally.size, own.level.size, own.table.size
    sizes[3], sizes[4], sizes[5] = own.vector.size, own.weights.size, own.rows.size
    sizes[6], sizes[7] = own.matrix.size, own.marks.size


@njit
def give(message, group):
    give_late(open_place(message), group)


@settings(deadline=None)  # the first call compiles
@given(
    st.integers(1, 5),
    st.integers(0, 6),
    st.lists(st.integers(1, 13), min_size=1, max_size=6),
    st.randoms(use_true_random=False),
)
def test_a_kernel_sees_what_python_sees(learners, extent, widths, random):
    store, twin = (Store(LAYOUT, learners, extent) for _ in range(2))
    for group, width in enumerate(widths):
        for one in (store, twin):
            one.reserve(np.array([group]), width)
    order = list(range(len(widths)))
    random.shuffle(order)
    message = address(store.message)
    for group in order:
        give(message, group)
        LAYOUT._give_late(twin.place, group)
    assert store.late.tolist() == twin.late.tolist()
    assert store.used.tolist() == twin.used.tolist()
    sizes = np.zeros(len(Record._fields), dtype=np.int64)
    for group, width in enumerate(widths):
        write(message, group, sizes)
        own = LAYOUT.of(store.place, group)
        assert sizes.tolist() == [field.size for field in own]
        written = np.concatenate([field.ravel() for field in own])
        assert written.tolist() == list(range(1, written.size + 1))
        assert own.matrix.shape == (learners, width, width)
    # Nobody wrote into anybody else's record, nor twice to the same place.
    for group in range(len(widths)):
        written = np.concatenate([field.ravel() for field in store.of(group)])
        assert written.tolist() == list(range(1, written.size + 1))


@given(st.integers(1, 5), st.integers(0, 6), st.integers(1, 13), st.booleans())
def test_fields_lie_apart_and_on_lines(learners, extent, width, late):
    *fields, (_, end, _) = LAYOUT.places(learners, extent, width, late)
    taken = 0
    for name, place, shape in fields:
        assert place >= taken
        taken = place + int(np.prod(shape))
        if len(shape) > 1 or OWN in LAYOUT.axes[name]:
            assert place % LINE == 0
    assert taken <= end == LAYOUT.size(learners, extent, width, late)
    assert end % LINE == 0
    assert [name for name, _, _ in fields] == [n for n in LAYOUT.axes if (n in LAYOUT.late) == late]


@given(st.integers(0, 1_000))
def test_columns_come_in_whole_vectors(features):
    assert room(features) % LANES == 0
    assert 0 <= room(features) - max(features, 1) < LANES


# Fields that change places.


class Two(NamedTuple):
    """Fields of one shape, which nothing but their order tells apart."""

    first: Vector
    second: Vector
    matrix: Vector


AXES = {"first": (LEARNER,), "second": (LEARNER,), "matrix": (OWN, OWN)}


def test_a_table_in_another_order_than_its_record_is_refused():
    Layout(Two, AXES, late=("matrix",))
    for names in itertools.permutations(AXES):
        if names != Two._fields:
            with pytest.raises(ValueError, match="Two has"):
                Layout(Two, {name: AXES[name] for name in names})
    with pytest.raises(ValueError, match="Two has"):
        Layout(Two, {"first": ONE, "second": ONE})
    with pytest.raises(ValueError, match="must be the last"):
        Layout(Two, AXES, late=("second",))
    with pytest.raises(ValueError, match="begin at 0"):
        Layout(Two, AXES, late=("matrix",), ones=("first", "matrix"))


def name_of(layout):
    return layout.record.__name__


@pytest.mark.parametrize("layout", [MODELS, SUMS, EXPERTS, BOOKS, COSTS, HISTORY], ids=name_of)
def test_two_fields_that_change_places_in_the_package_are_refused(layout):
    for one, other in itertools.combinations(layout.axes, 2):
        moved = {one: other, other: one}
        axes = {moved.get(name, name): layout.axes[moved.get(name, name)] for name in layout.axes}
        with pytest.raises(ValueError, match=layout.record.__name__):
            Layout(layout.record, axes, layout.integers, layout.late, layout.ones)


def test_a_copy_of_a_table_is_the_table():
    assert copy.deepcopy(LAYOUT) is LAYOUT
    text = pickle.dumps(LAYOUT)
    again = pickle.loads(text)
    assert again is pickle.loads(text)
    assert len(text) < 500
    for name in ("record", "axes", "integers", "late", "ones"):
        assert getattr(again, name) == getattr(LAYOUT, name)


WAYS = (
    *(".columns", ".added", ".coarse", ".folds", ".calm", ".summed", ".firm", ".factors"),
    *(".sketch", ".sample", ".lengths", ".checks", ".mass"),
)
"""Numbers that choose between ways to the same figures, or say how sure these are."""


def figures(path):
    """All that a model says, now and when it goes on; the message where it fails."""
    said = []
    try:
        model = gw.load(path)
        said.append(model.regret().rows)
        generator = np.random.default_rng(1)
        for _ in range(10):
            u, v = generator.normal(size=2)
            ticket = model.predict({"g": str(generator.integers(3)), "u": u, "v": v})
            said.append([ticket.prediction, *ticket.advice.ravel(), *ticket.weights.ravel()])
            model.learn(ticket, float(generator.random()))
        said.append(model.regret().rows)
    except gw.GroupwiseError as error:
        said.append(str(error))
    return repr(said)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # figures in the wrong place overflow
def test_two_arrays_that_change_places_in_a_file_are_seen(tmp_path):
    learners = [gw.learners.Ridge(0.3, forward=True), gw.learners.Ridge(1.0, forgetting=0.98)]
    model = gw.Groupwise([gw.by("g")], learners, play="sample", prior={"g=1": 2.0}, seed=1)
    generator = np.random.default_rng(0)
    for t in range(43):
        row = {"g": str(generator.integers(3)), "u": generator.normal(), "v": generator.normal()}
        ticket = model.predict(row)
        if t % 4:
            model.learn(ticket, float(generator.random()))
        else:  # late, so that there is a delay in the books
            model.learn_one(row, float(generator.random()))
            model.learn(ticket, float(generator.random()))
    path = tmp_path / "model.gw"
    model.save(path)
    header, arrays = archive.read(path)
    wanted = figures(path)
    assert wanted == figures(path)
    swapped = set()
    for one, other in itertools.combinations(sorted(arrays), 2):
        a, b = arrays[one], arrays[other]
        if one.endswith(WAYS) or other.endswith(WAYS) or other == f"{one}_rest":
            continue
        if (a.shape, a.dtype) == (b.shape, b.dtype) and not np.array_equal(a, b):
            archive.write(path, header, {**arrays, one: b, other: a})
            assert figures(path) != wanted, (one, other)
            swapped |= {one, other}
    assert {"ridge.minimum", "aggregator.regret", "ledger.loss", "ledger.delay"} <= swapped
    assert len(swapped) > 15
