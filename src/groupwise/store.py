"""The records of all groups, as a layout describes them: made, widened, copied, saved, loaded."""

import ctypes
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any
from weakref import ref

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from groupwise.arrays import Index, Vector, capacity, enlarge, zeros
from groupwise.kernels.addresses import INTERPRETED
from groupwise.kernels.layout import (
    EXTENT,
    LEARNER,
    ONE,
    OWN,
    PLACE,
    Axes,
    Layout,
    Place,
    address,
    rooms,
)

Arrays = dict[str, NDArray[Any]]
AT_ONCE = 1 << 20
"""Numbers that are moved together: a few megabytes."""
_Upkeep = ctypes.CFUNCTYPE(None, ctypes.c_int64)


class Store:
    """The records of one state.

    Memory beyond what is taken is always zero, and there is always room for the late fields of all
    records: kernels take it as they need it.

    Parameters
    ----------
    layout : the table of axes.
    learners, extent : the lengths of these axes.
    parameters : what the kernels need of the configuration.
    keeper : whose ``upkeep`` a kernel calls with a group's number, whose ``begun`` is called with
        groups that are new, and whose ``opened`` with groups and the columns that they had before
        they were widened. The keeper owns the store, so the store does not hold on to it.
    """

    def __init__(
        self,
        layout: Layout,
        learners: int = 1,
        extent: int = 0,
        parameters: Vector | None = None,
        keeper: Any = None,
    ) -> None:
        self.layout = layout
        self.learners = learners
        self.extent = extent
        self.parameters = np.zeros(0) if parameters is None else parameters
        self.pool = zeros((0,))
        self.block, self.late, self.width = (np.zeros(0, dtype=np.int64) for _ in range(3))
        self.used = np.zeros(1, dtype=np.int64)
        self._promised = 0
        self._frees = False
        self.kept_by(keeper)

    def __len__(self) -> int:
        """How many groups there is room for."""
        return self.block.size

    def kept_by(self, keeper: Any) -> None:
        """Take a keeper, and make the message for the kernels."""
        self._keeper: Callable[[], Any] = _nobody if keeper is None else ref(keeper)
        upkeep: Any = 0 if keeper is None else partial(_upkeep, self._keeper)
        if keeper is not None and not INTERPRETED:
            self._callback = _Upkeep(upkeep)
            upkeep = ctypes.cast(self._callback, ctypes.c_void_p).value
        self._fixed = {"upkeep": upkeep}
        self.message = PLACE.pack(self.place._replace(**self._fixed))
        self.address = address(self.message)

    def supply(self, rare: Any) -> None:
        """Tell the kernels of one that they rarely need."""
        self._fixed["rare"] = rare
        self._moved()

    def _moved(self) -> None:
        """Tell the kernels where everything is now."""
        self.message[:] = PLACE.pack(self.place._replace(**self._fixed))

    @property
    def place(self) -> Place:
        """Where the records are."""
        return Place(
            self.pool,
            self.block,
            self.late,
            self.width,
            self.used,
            self.block.size,
            self.learners,
            self.extent,
            self.parameters,
            0,
            0,
        )

    def of(self, group: int) -> Any:
        """A group's record, as arrays that share its memory."""
        return self.layout.of(self.place, group)

    def part(self, group: int, width: int) -> Any:
        """A group's record in its first columns alone."""
        own = self.of(group)
        cut = {
            name: value[tuple(slice(width) if a == OWN else slice(None) for a in axes)]
            for (name, axes), value in zip(self.layout.axes.items(), own, strict=True)
            if value is not None and OWN in axes
        }
        return own._replace(**cut)

    def reserve(self, groups: Index, widths: Index | int, most: int = 0) -> None:
        """Make sure that these groups have records of at least so many columns.

        Records that are widened get a quarter more, up to ``most``, so that few are.
        """
        if groups.size == 0:
            return
        last = int(groups.max()) + 1
        if last > self.block.size:
            length = (capacity(last, self.block.size),)
            self.block, self.late = (enlarge(a, length, -1) for a in (self.block, self.late))
            self.width = enlarge(self.width, length)
            self._moved()
        narrow = (self.block[groups] < 0) | (self.width[groups] < widths)
        if not narrow.any():
            return
        wanted = np.broadcast_to(widths, groups.shape)[narrow]
        groups, first = np.unique(groups[narrow], return_index=True)
        wanted = wanted[first]
        wanted = np.maximum(wanted, np.minimum(rooms(self.width[groups] * 5 // 4), most))
        kinds = list(zip(*np.unique(wanted, return_counts=True), strict=True))
        records, late = (
            sum(int(n) * self._size(int(width), late) for width, n in kinds)
            for late in (False, True)
        )
        self._make_room(records, late)
        for width, _ in kinds:
            some = groups[wanted == width]
            made = some[self.block[some] >= 0]
            for had in _distinct(self.width[made]).tolist():
                self._widen(made[self.width[made] == had], had, int(width))
            fresh = some[self.block[some] < 0]
            self._begin(fresh, int(width))
            if fresh.size and self._keeper() is not None:
                self._keeper().begun(fresh)

    def _make_room(self, records: int, late: int) -> None:
        """Make sure that the pool has room for new records and for all late fields."""
        self._promised += late
        needed = int(self.used[0]) + records + self._promised
        if needed <= self.pool.size:
            return
        # What is moved leaves behind what earlier widening has left unused.
        old = self.pool
        have = self.block >= 0
        whole = have & (self.late >= 0)
        widths = self.width[have]
        live, open_late = 0, 0
        for width, count in zip(*np.unique(widths, return_counts=True), strict=True):
            live += int(count) * self._size(int(width))
            late_size = self._size(int(width), late=True)
            live += int((whole & (self.width == width)).sum()) * late_size
            open_late += int((have & ~whole & (self.width == width)).sum()) * late_size
        self._promised = open_late + late
        needed = live + records + self._promised
        spare = needed if self._frees else 0  # so that what comes and goes is not moved every time
        size = capacity(needed + spare, max(old.size, 1))
        self.pool = zeros((size,))
        self.used[0] = 0
        for places, which, late_part in ((self.block, have, False), (self.late, whole, True)):
            for width in _distinct(self.width[which]).tolist():
                groups = np.flatnonzero(which & (self.width == width))
                length = self._size(width, late=late_part)
                starts = places[groups]
                places[groups] = self._take(groups.size, length)
                for some in _portions(groups.size, length):
                    cells = np.arange(length)
                    taken = old[starts[some][:, None] + cells]
                    self.pool[places[groups[some]][:, None] + cells] = taken
        self._moved()

    def _size(self, width: int, late: bool = False) -> int:
        """How much of the pool a record takes, or its late fields."""
        return self.layout.size(self.learners, self.extent, width, late)

    def _take(self, count: int, size: int) -> Index:
        """The places of so many pieces of the pool."""
        start = int(self.used[0])
        self.used[0] = start + count * size
        return start + size * np.arange(count, dtype=np.int64)

    def _begin(self, groups: Index, width: int) -> None:
        """Give groups new records, with the first values in them."""
        self.block[groups] = self._take(groups.size, self._size(width))
        self.width[groups] = width
        for name in self.layout.ones:
            for cells in self._cells(groups, name):
                self.pool[cells] = 1.0

    def _widen(self, groups: Index, had: int, width: int) -> None:
        """Move records of one width to wider ones."""
        names = list(self.layout.axes)
        early = {name: self._gather(groups, name) for name in names if name not in self.layout.late}
        placed = groups[self.late[groups] >= 0]
        late = {name: self._gather(placed, name) for name in self.layout.late}
        self._begin(groups, width)
        self.late[placed] = self._take(placed.size, self._size(width, late=True))
        for some, fields in ((groups, early), (placed, late)):
            for name, values in fields.items():
                self._scatter(some, name, values)
        if self._keeper() is not None:
            self._keeper().opened(groups, had)

    def _cells(self, groups: Index, name: str) -> Iterator[Index]:
        """Where a field's numbers are in the pool, for groups of one width, some at a time."""
        if groups.size == 0:
            return
        starts, shape, length = self._starts(groups, name)
        cells = np.arange(length).reshape(shape)
        for some in _portions(groups.size, max(cells.size, 1)):
            yield starts[some].reshape(-1, *(1,) * cells.ndim) + cells

    def _starts(self, groups: Index, name: str) -> tuple[Index, tuple[int, ...], int]:
        """Where a field begins in the pool, for groups of one width; its shape and its length."""
        late = name in self.layout.late
        width = int(self.width[groups[0]])
        table = self.layout.table(self.learners, self.extent, width, late)
        offset, shape, length = table.cells[name]
        return (self.late if late else self.block)[groups] + offset, shape, length

    def _gather(self, groups: Index, name: str) -> NDArray[Any]:
        """A field of groups of one width, one after another."""
        kind = np.int64 if name in self.layout.integers else np.float64
        if groups.size == 0:
            return np.zeros(0, dtype=kind)
        pool = self.pool.view(kind)
        starts, shape, length = self._starts(groups, name)
        # All stretches of this length, of which whole ones are copied, not number by number.
        stretches = as_strided(pool, (pool.size - length + 1, length), pool.strides * 2)
        return stretches[starts].reshape(groups.size, *shape)

    def _scatter(self, groups: Index, name: str, values: NDArray[Any]) -> None:
        """Write a field of groups of one width, in the first columns."""
        pool = self.pool.view(values.dtype)
        first = 0
        for cells in self._cells(groups, name):
            part = values[first : first + len(cells)]
            pool[cells[tuple(slice(n) for n in part.shape)]] = part
            first += len(cells)

    def _by_width(self, groups: Index) -> Iterator[tuple[Index, int]]:
        """Which of some groups have records of one width."""
        have = np.flatnonzero(groups < self.block.size)
        have = have[self.block[groups[have]] >= 0]
        widths = self.width[groups[have]]
        for width in _distinct(widths).tolist():
            yield have[widths == width], width

    def give_late(self, groups: Index) -> None:
        """Give groups their late fields, unless they have them."""
        for group in groups[self.late[groups] < 0].tolist():
            self.late[group] = self._take(1, self._size(int(self.width[group]), late=True))[0]

    def fill(self, name: str, groups: Index, values: NDArray[Any]) -> None:
        """Write a field of some groups."""
        for which, _ in self._by_width(groups):
            self._scatter(groups[which], name, values[which])

    def some(self, name: str, groups: Index) -> NDArray[Any]:
        """A field that is as long in all groups, of some that have records."""
        return self._gather(groups, name)

    def free(self, groups: Index) -> None:
        """Give up the records of some groups; their memory is used again when the pool is full."""
        self._frees = True
        groups = groups[groups < self.block.size]
        self.block[groups] = self.late[groups] = -1
        self.width[groups] = 0

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Records get other numbers; all others from ``start`` on are given up."""
        last = int(max(old.max(initial=-1), new.max(initial=-1))) + 1
        if last > self.block.size:
            length = (capacity(last, self.block.size),)
            self.block, self.late = (enlarge(a, length, -1) for a in (self.block, self.late))
            self.width = enlarge(self.width, length)
        moved = self.block[old], self.late[old], self.width[old]
        self.free(np.arange(start, self.block.size))
        self.block[new], self.late[new], self.width[new] = moved
        self._moved()

    def column(self, name: str, groups: int | Index) -> NDArray[Any]:
        """A field that is as long in all groups, of the first ones; those without it: as begun."""
        whose = _numbers(groups)
        return self._column(name, whose, self._by_width(whose))

    def _column(
        self, name: str, whose: Index, by_width: Iterable[tuple[Index, int]]
    ) -> NDArray[Any]:
        kind = np.int64 if name in self.layout.integers else np.float64
        shape = whose.size, *self._shape(self.layout.axes[name], 0)
        out = np.full(shape, name in self.layout.ones, dtype=kind)
        for which, _ in by_width:
            found = self._gather(whose[which], name)
            if which.size == whose.size:
                return found
            out[which] = found
        return out

    def save(self, groups: int | Index, features: Index | int) -> Arrays:
        """All fields of the first groups, or of some, in the first of the columns, so many of each.

        Fields that have columns are one after the other, group by group.
        """
        whose = _numbers(groups)
        widths = np.broadcast_to(features, whose.shape)
        fields = {}
        size = max(int(whose.max(initial=-1)) + 1, self.late.size)
        late = enlarge(self.late, (size,), -1)[whose] >= 0
        placed = whose[late], widths[late]
        alike = [*self._alike(whose, widths)]
        alike_late = [*self._alike(*placed)] if self.layout.late else []
        by_width = [*self._by_width(whose)]
        for name, axes in self.layout.axes.items():
            if name in self.layout.late:
                fields[name] = self._flat(name, *placed, alike_late)
            elif OWN in axes:
                fields[name] = self._flat(name, whose, widths, alike)
            else:
                fields[name] = self._column(name, whose, by_width)
            if axes == ONE:
                fields[name] = fields[name][:, 0]
        if self.layout.late:
            fields["place"] = np.where(late, np.cumsum(late) - 1, -1)
            fields["placed"] = np.array([int(late.sum())])
        return fields

    def flat(self, name: str, groups: Index, widths: Index) -> NDArray[Any]:
        """A field of some groups, cut to so many columns, one after the other."""
        return self._flat(name, groups, widths, self._alike(groups, widths))

    def _flat(
        self, name: str, groups: Index, widths: Index, alike: Iterable[tuple[Index, int, int]]
    ) -> NDArray[Any]:
        axes = self.layout.axes[name]
        kind = np.int64 if name in self.layout.integers else np.float64
        sizes = self._sizes(axes, widths)
        ends = np.cumsum(sizes)
        out = np.full(int(sizes.sum()), name in self.layout.ones, dtype=kind)
        for which, width, features in alike:
            shape = which.size, *self._shape(axes, features)
            kept = min(width, features)
            cut = (slice(None), *(slice(kept) if axis == OWN else slice(None) for axis in axes))
            own = self._gather(groups[which], name)[cut]
            if own.shape != shape:
                found, own = own, np.full(shape, name in self.layout.ones, dtype=kind)
                own[cut] = found
            if which.size == groups.size:
                return own.reshape(-1)
            places = (ends - sizes)[which][:, None] + np.arange(sizes[which[0]])
            out[places] = own.reshape(places.shape)
        return out

    def _sizes(self, axes: Axes, widths: Index) -> Index:
        """How many numbers a field has in groups so wide."""
        fixed = int(np.prod(self._shape(axes, 1), dtype=np.int64))
        sizes: Index = fixed * widths ** axes.count(OWN)
        return sizes

    def _alike(self, groups: Index, widths: Index) -> Iterator[tuple[Index, int, int]]:
        """Which of some groups have records of one width, and are to be cut to one width."""
        for which, width in self._by_width(groups):
            for features in _distinct(np.sort(widths[which])).tolist():
                yield which[widths[which] == features], width, features

    def load(
        self, arrays: Arrays, groups: int | Index, features: Index | int, width: int = 0
    ) -> None:
        """Take over what :meth:`save` gave, into records at least so wide."""
        everybody = _numbers(groups)
        widths = np.broadcast_to(features, everybody.shape)
        self.reserve(everybody, width or rooms(widths))
        late: Any = slice(0)
        placed = everybody[:0]
        if self.layout.late:
            place = arrays["place"]
            _check("place", place, everybody.shape, np.dtype(np.int64))
            late = place >= 0
            placed = everybody[late]
            fits = np.array_equal(place[place >= 0], np.arange(placed.size))
            if not fits or (place < -1).any() or arrays["placed"].tolist() != [placed.size]:
                raise ValueError("place does not fit the matrices")
            for which, own in self._by_width(placed):
                self.late[placed[which]] = self._take(which.size, self._size(own, late=True))
        for name, axes in self.layout.axes.items():
            which_ones = late if name in self.layout.late else slice(None)
            some, wides = everybody[which_ones], widths[which_ones]
            kind = np.dtype(np.int64 if name in self.layout.integers else np.float64)
            sizes = self._sizes(axes, wides)
            array = arrays[name]
            shape: tuple[int, ...] = (int(sizes.sum()),)
            flat = OWN in axes or name in self.layout.late
            if array.ndim > 1 or not flat:  # before schema 4 all groups had as many columns
                shape = some.size, *self._shape(axes, int(widths.max(initial=0)))
            _check(name, array, shape[:1] if axes == ONE else shape, kind)
            starts, numbers = np.cumsum(sizes) - sizes, array.reshape(-1)
            for which, _, wide in self._alike(some, wides):
                places = starts[which][:, None] + np.arange(sizes[which[0]])
                found = numbers[places].reshape(which.size, *self._shape(axes, wide))
                self._scatter(some[which], name, found)
        if self._keeper() is not None:
            for which, _, wide in self._alike(everybody, widths):
                self._keeper().opened(everybody[which], wide)

    @property
    def by_learner(self) -> list[str]:
        """The fields that have a number or more for every learner."""
        return [name for name, axes in self.layout.axes.items() if LEARNER in axes]

    def _shape(self, axes: Axes, width: int) -> tuple[int, ...]:
        sizes = {LEARNER: self.learners, EXTENT: self.extent, OWN: width}
        return tuple(sizes[axis] if isinstance(axis, str) else axis for axis in axes)

    def longer(self, learners: int) -> "Store":
        """The same records with more learners, the further ones as begun; none is late or wide."""
        other = Store(self.layout, learners, self.extent, self.parameters)
        groups = np.flatnonzero(self.block >= 0)
        other.reserve(groups, 0)
        for name in self.layout.axes:
            other.fill(name, groups, self.column(name, groups))
        return other

    def clear(self, names: tuple[str, ...]) -> None:
        """Put fields of all groups back to their first values."""
        for name in names:
            late = name in self.layout.late
            have = np.flatnonzero((self.late if late else self.block) >= 0)
            for which, _ in self._by_width(have):
                for cells in self._cells(have[which], name):
                    self.pool[cells] = 1.0 if name in self.layout.ones else 0.0

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("message", "address", "_callback", "_keeper", "_fixed")
        state = {key: value for key, value in self.__dict__.items() if key not in left_out}
        return {**state, "pool": self.pool[: self.used[0]], "size": self.pool.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        size = state.pop("size")
        self.__dict__.update(state)
        self.pool = zeros((size,))
        self.pool[: self.used[0]] = state["pool"]
        self.kept_by(None)


def _nobody() -> None:
    """The keeper of a store that has none."""


def _upkeep(keeper: Callable[[], Any], group: int) -> None:
    keeper().upkeep(group)


def _numbers(groups: int | Index) -> Index:
    """The numbers of the first groups, or those given."""
    return groups if isinstance(groups, np.ndarray) else np.arange(groups)


def _distinct(numbers: Index) -> Index:
    """The different ones among some numbers, ascending; quick where there is nothing to do."""
    if numbers.size and (numbers == numbers[0]).all():
        return numbers[:1]
    return numbers if (np.diff(numbers) > 0).all() else np.unique(numbers)


def _portions(count: int, size: int) -> Iterator[slice]:
    """Slices of things of one size, not too much at a time."""
    step = max(1, AT_ONCE // size)
    for start in range(0, count, step):
        yield slice(start, start + step)


def _check(name: str, array: NDArray[Any], shape: tuple[int, ...], kind: np.dtype[Any]) -> None:
    if array.shape != tuple(shape) or array.dtype != kind:
        raise ValueError(f"{name} has shape {array.shape}, not {tuple(shape)}")
