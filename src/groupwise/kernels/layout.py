"""One table of a state's axes, and everything that follows from it.

A state keeps a *record* for every group: its numbers, vectors and matrices side by side in one pool
of memory, on cache lines of their own. Two groups never share a line, so threads do not fight over
one, and what a round needs of a group lies together. A record is described once, by a named tuple
and the axes of its fields:

- ``LEARNER``, the learners of a group;
- ``OWN``, the group's own columns: each group may have a width of its own;
- ``EXTENT``, a length that is the same for all groups;
- a number: an axis of that length.

Fields that are *late* get their memory apart, when the group first needs them. From this table come
the arrays that kernels see (``Layout.view``), those that Python sees (``Layout.of``), and, in
``groupwise.store``, growing, copying, saving and loading.

Kernels get what they work on as one *message* (:class:`Message`): an array of whole numbers and
addresses, because handing over an array costs some 60 ns, more than the work on a small row.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from math import prod
from typing import Any, NamedTuple, get_type_hints

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from groupwise.arrays import Flags, Index, Vector
from groupwise.kernels.addresses import INTERPRETED, WORD, array_at

LANES = 4
"""Rows of features have room for whole vectors of this many numbers."""
LINE = 8
"""Numbers in a cache line."""
LEARNER, OWN, EXTENT = "learner", "own", "extent"
UNKNOWN = 1 << 60
"""The length that a kernel sees of an array whose length it does not need."""

Axes = tuple[str | int, ...]
ONE: Axes = (1,)
"""The axes of a single number."""


class _Number:
    """Arithmetic on numbers that are known when a kernel runs, written like that on ints."""

    def __init__(self, builder: ir.IRBuilder, value: Any) -> None:
        self.builder = builder
        self.value = value

    def _other(self, other: "int | _Number") -> Any:
        return other.value if isinstance(other, _Number) else ir.Constant(WORD, other)

    def __add__(self, other: "int | _Number") -> "_Number":
        return _Number(self.builder, self.builder.add(self.value, self._other(other)))

    def __mul__(self, other: "int | _Number") -> "_Number":
        return _Number(self.builder, self.builder.mul(self.value, self._other(other)))

    def __and__(self, other: int) -> "_Number":
        return _Number(self.builder, self.builder.and_(self.value, self._other(other)))

    __radd__, __rmul__ = __add__, __mul__


def on_a_line(place: Any) -> Any:
    """The next place that begins a cache line."""
    return (place + (LINE - 1)) & -LINE


def room(features: int) -> int:
    """Columns for this many features, in whole vectors."""
    return -(-max(features, 1) // LANES) * LANES


def rooms(counts: Index) -> Index:
    """The same for many groups."""
    return -(-np.maximum(counts, 1) // LANES) * LANES


class Place(NamedTuple):
    """Where a state keeps its records."""

    pool: Vector
    block: Index
    """Where a group's record starts; -1 for a group without one."""
    late: Index
    """Where its late fields start; -1 until they are needed."""
    width: Index
    """How many columns it has."""
    used: Index
    """One number: how much of the pool is taken."""
    groups: int
    """How many groups there is room for."""
    learners: int
    extent: int
    parameters: Vector
    """What the configuration says, as the learner's own kernels lay it out."""
    rare: int
    """A further kernel of the learner's, compiled when a group first needs it; 0 until then."""
    upkeep: int
    """A function of Python's to be called with a group's number, for what is rarely needed."""


class Message:
    """A named tuple of whole numbers and arrays as one array of words, and back in a kernel.

    >>> class Pair(NamedTuple):
    ...     count: int
    ...     values: Vector
    >>> Message(Pair).slots
    {'count': 0, 'values': 1}
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        hints = get_type_hints(kind)
        kinds = {int: None, Vector: types.float64, Index: types.int64, Flags: types.boolean}
        self.slots = {name: slot for slot, name in enumerate(kind._fields)}
        arrays = [kinds[hints[name]] for name in kind._fields]
        self.open = kind._make if INTERPRETED else _opener(kind, arrays)

    def pack(self, values: Any) -> Any:
        """The words of a message. Whoever keeps them must keep the arrays too."""
        if INTERPRETED:  # an address has no shape
            return [x.reshape(-1) if isinstance(x, np.ndarray) else x for x in values]
        words = [x.ctypes.data if isinstance(x, np.ndarray) else int(x) for x in values]
        return np.array(words, dtype=np.int64)


def address(words: Any) -> Any:
    """Where a message is, which is how another message or a call names it."""
    return words if INTERPRETED else words.ctypes.data


class Table(NamedTuple):
    """Where the fields of a record are whose sizes are known."""

    cells: dict[str, tuple[int, tuple[int, ...], int]]
    """Place, shape and length of each."""
    size: int
    """How much of the pool they take together."""


class Layout:
    """The table of a record's axes.

    Parameters
    ----------
    record : a named tuple, the fields of which are arrays.
    axes : the axes of every field, in the order of the record's fields.
    integers : the fields that hold whole numbers.
    late : the fields, last in the record, that a group gets when it first needs them.
    ones : the fields that begin at 1; all others begin at 0.
    """

    def __init__(
        self,
        record: Any,
        axes: Mapping[str, Axes],
        integers: tuple[str, ...] = (),
        late: tuple[str, ...] = (),
        ones: tuple[str, ...] = (),
    ) -> None:
        if tuple(axes) != record._fields:
            raise ValueError(f"{record.__name__} has {record._fields}, its table {tuple(axes)}.")
        if late and tuple(axes)[-len(late) :] != late:
            raise ValueError(f"The late fields {late} must be the last of {tuple(axes)}.")
        if set(late) & set(ones):
            raise ValueError(f"Late fields begin at 0: {late} cannot be among {ones}.")
        self.record = record
        self.axes = dict(axes)
        self.integers, self.late, self.ones = integers, late, ones
        self._tables: dict[tuple[int, int, int, bool], Table] = {}
        self.view: Any = self.of if INTERPRETED else _viewer(self)
        self.give_late: Any = self._give_late if INTERPRETED else _giver(self)
        if not INTERPRETED:  # part of what a kernel outside the package is compiled from
            self.view.described = self.give_late.described = repr((axes, integers, late))

    def places(
        self, learners: Any, extent: Any, width: Any, late: bool
    ) -> Iterator[tuple[str, Any, list[Any]]]:
        """Name, place and shape of every field of a record, or of its late ones; then the end.

        The numbers may be ints, or such as are only known to a running kernel.
        """
        sizes = {LEARNER: learners, EXTENT: extent, OWN: width}
        place: Any = 0
        for name, axes in self.axes.items():
            if (name in self.late) != late:
                continue
            if len(axes) > 1 or OWN in axes:
                place = on_a_line(place)
            shape = [sizes[axis] if isinstance(axis, str) else axis for axis in axes]
            yield name, place, shape
            size: Any = 1
            for length in shape:
                size = length * size
            place = place + size
        yield "", on_a_line(place), []

    def table(self, learners: int, extent: int, width: int, late: bool) -> "Table":
        """The same of a record of so many columns, worked out once for each width."""
        key = learners, extent, width, late
        found = self._tables.get(key)
        if found is None:
            *fields, (_, end, _) = self.places(learners, extent, width, late)
            cells = {name: (place, tuple(shape), prod(shape)) for name, place, shape in fields}
            found = self._tables[key] = Table(cells, int(end))
        return found

    def size(self, learners: int, extent: int, width: int, late: bool = False) -> int:
        """How much of the pool a record takes, or its late fields."""
        return self.table(learners, extent, width, late).size

    def of(self, place: Place, group: int) -> Any:
        """A group's record, as arrays that share its memory; late ones that are not there: None."""
        width = int(place.width[group])
        fields: dict[str, Any] = {}
        for late, start in ((False, int(place.block[group])), (True, int(place.late[group]))):
            table = self.table(int(place.learners), int(place.extent), width, late)
            for name, (offset, shape, length) in table.cells.items():
                fields[name] = None
                if start >= 0:
                    part = place.pool[start + offset : start + offset + length]
                    kind = np.int64 if name in self.integers else np.float64
                    fields[name] = part.view(kind).reshape(shape)
        return self.record(**fields)

    def _give_late(self, place: Place, group: int) -> None:
        """Give a group its late fields, which other threads do for other groups."""
        place.late[group] = place.used[0]
        width = int(place.width[group])
        place.used[0] += self.size(place.learners, place.extent, width, late=True)

    def __deepcopy__(self, memo: Any) -> "Layout":
        return self  # a table does not change

    def __reduce__(self) -> tuple[Any, ...]:
        axes = tuple(self.axes.items())
        return _same_layout, (self.record, axes, self.integers, self.late, self.ones)


@cache
def _same_layout(record: Any, axes: tuple[tuple[str, Axes], ...], *marks: Any) -> Layout:
    """The table that was pickled; its code is made anew, once."""
    return Layout(record, dict(axes), *marks)


def _opener(kind: Any, arrays: list[Any]) -> Any:
    """What makes the named tuple of a message at an address."""
    fields = [types.int64 if one is None else types.Array(one, 1, "C") for one in arrays]
    opened = types.NamedTuple(fields, kind)

    @intrinsic
    def open_message(typing_context, place):
        def generate(context, builder, signature, arguments):
            words = builder.inttoptr(arguments[0], WORD.as_pointer())
            values = []
            for slot, field in enumerate(fields):
                word = builder.load(builder.gep(words, [ir.Constant(WORD, slot)]))
                if field is types.int64:
                    values.append(word)
                else:
                    data = context.get_data_type(field.dtype).as_pointer()
                    pointer = builder.inttoptr(word, data)
                    length = [ir.Constant(WORD, UNKNOWN)]
                    values.append(array_at(context, builder, field, pointer, length))
            return context.make_tuple(builder, opened, values)

        return opened(types.int64), generate

    return open_message


class _Running:
    """A Place in a running kernel, group by group."""

    def __init__(self, context: Any, builder: Any, kind: Any, place: Any, group: Any) -> None:
        self.context, self.builder, self.kind = context, builder, kind
        self.value, self.group = place, group
        self.learners, self.extent = (self.number(name) for name in ("learners", "extent"))
        self.width = _Number(builder, builder.load(self.at("width")))

    def _member(self, name: str) -> Any:
        return self.builder.extract_value(self.value, Place._fields.index(name))

    def number(self, name: str) -> _Number:
        """One of its whole numbers."""
        return _Number(self.builder, self._member(name))

    def data(self, name: str) -> Any:
        """Where one of its arrays is."""
        kind = self.kind.types[Place._fields.index(name)]
        return self.context.make_array(kind)(self.context, self.builder, self._member(name)).data

    def at(self, name: str) -> Any:
        """Where the group's number in one of its arrays is."""
        return self.builder.gep(self.data(name), [self.group])


def _value(number: Any) -> Any:
    return number.value if isinstance(number, _Number) else ir.Constant(WORD, number)


def _viewer(layout: Layout) -> Any:
    """What makes the named tuple of a group's record, from a Place and the group's number."""

    def kind(name: str) -> Any:
        number = types.int64 if name in layout.integers else types.float64
        return types.Array(number, len(layout.axes[name]), "C")

    kinds = {name: kind(name) for name in layout.axes}
    viewed = types.NamedTuple(list(kinds.values()), layout.record)

    @intrinsic
    def view(typing_context, place, group):
        def generate(context, builder, signature, arguments):
            running = _Running(context, builder, signature.args[0], *arguments)
            sizes = running.learners, running.extent, running.width
            values = {}
            for late, name in ((False, "block"), (True, "late")):
                if late and not layout.late:
                    continue
                start = builder.gep(running.data("pool"), [builder.load(running.at(name))])
                for field, offset, shape in layout.places(*sizes, late):
                    if field:
                        pointer = builder.gep(start, [_value(offset)])
                        lengths = [_value(number) for number in shape]
                        values[field] = array_at(context, builder, kinds[field], pointer, lengths)
            return context.make_tuple(builder, viewed, list(values.values()))

        return viewed(place, types.int64), generate

    return view


def _giver(layout: Layout) -> Any:
    """What gives a group its late fields; threads may do that at once for different groups."""

    @intrinsic
    def give_late(typing_context, place, group):
        def generate(context, builder, signature, arguments):
            running = _Running(context, builder, signature.args[0], *arguments)
            sizes = running.learners, running.extent, running.width
            *_, (_, size, _) = layout.places(*sizes, True)
            taken = builder.atomic_rmw("add", running.data("used"), _value(size), "monotonic")
            builder.store(taken, running.at("late"))
            return context.get_dummy_value()

        return types.void(place, types.int64), generate

    return give_late


PLACE = Message(Place)
open_place = PLACE.open
