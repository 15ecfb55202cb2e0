"""Windows: stretches of every group's own time as further time selections of Algorithm 1.

A window is a group like any other, whose rounds are some consecutive rounds of another one. Here is
which windows there are, and their numbers: those of groups come first, and of windows after them.
"""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.aggregators import AdaNormalHedge, Prod, Specialists
from groupwise.arrays import Index, Vector, capacity, enlarge
from groupwise.errors import ConfigurationError
from groupwise.kernels import windows as kernels
from groupwise.losses import Log, Loss
from groupwise.protocols import Awake

if TYPE_CHECKING:
    from groupwise.records import Records
    from groupwise.reduction import Reduction

LONGEST = 1 << 40
ROOM = 8
OUTWARD = 1.0 + 2.0**-50
"""More than what rounding does to a sum of two."""
MOST = 1 << 62
ALREADY = 15
"""The first window weighs what it would if so many had begun before it. With none, the first few
weigh more than their group itself, for which they who know nothing yet then speak: on streams where
nothing changes that took 11 % of the loss, and now takes 0.1 % (labels with noise of 0.02)."""


@dataclass(frozen=True)
class Windows:
    """Regret that is small on every recent stretch of every group, not only on all of its rounds.

    Each group has a clock, which counts its settled rounds, whatever they weigh. For every length
    ℓ = shortest · 2^j that the clock has reached, the rounds from kℓ to (k + 1)ℓ, k ≥ 1, are a
    *window*: a group of its own, awake with the group while the clock is in there, with learners
    that begin when it begins and are freed when it ends. At clock c there are
    1 + ⌊log₂(c / shortest)⌋ of them. One that begins at clock (s − 15) shortest has the prior mass
    of its group times 1/(s ln²(s + 1)), so that all windows of a group, forever, weigh less than
    the group.

    Parameters
    ----------
    shortest : the rounds of the shortest windows, a power of two. Shorter ones would follow a
        change sooner, at a higher price for all others: learners that have seen next to nothing.

    >>> Windows(shortest=64)
    Windows(shortest=64)

    Guarantee
    ---------
    At every moment and for every window, regret ≤ certificate, as for every group. The last n
    rounds of a group, n ≥ shortest, are within its last two windows of some length ℓ < 2n, or
    within all of its rounds if these are fewer than 2ℓ: so within a stretch of less than 4n rounds,
    on which regret is at most the certificates of one or two windows
    (``model.regret(last=n)``). Any rounds in a row of a group, from one multiple of ``shortest``
    to another, are at most 2 log₂ of their number windows one after the other (and perhaps the
    group's first rounds), whose certificates add up. Of what happens inside the shortest windows
    nothing is said.

    References
    ----------
    Daniely, Gonen and Shalev-Shwartz, "Strongly adaptive online learning", ICML 2015.
    Hazan and Seshadhri, "Efficient learning algorithms for changing environments", ICML 2009.
    """

    shortest: int = 128

    def __post_init__(self) -> None:
        whole = isinstance(self.shortest, (int, np.integer)) and not isinstance(self.shortest, bool)
        if not whole or not 1 <= self.shortest <= LONGEST or self.shortest & (self.shortest - 1):
            raise ConfigurationError(
                f"shortest must be a power of two, such as 128, not {self.shortest!r}."
            )
        object.__setattr__(self, "shortest", int(self.shortest))  # as files keep it


def windows(shortest: int = 128) -> Windows:
    """Windows of every group's own time: ``Groupwise(..., windows=windows())``; see `Windows`.

    >>> windows() == Windows()
    True
    """
    return Windows(shortest)


def as_windows(windows: Any, loss: Loss, aggregator: Any, recalibrate: Any) -> Windows | None:
    """What ``windows`` asks for, checked; None where it asks for none."""
    if windows is None or windows is False:
        return None
    if windows is not True and not isinstance(windows, Windows):
        raise ConfigurationError(f"windows={windows!r}: give True, gw.windows(...) or False.")
    if type(aggregator) not in (AdaNormalHedge, Prod, Specialists):
        raise ConfigurationError(
            "Windows come and go, and certificates must not forget those that are gone: that is "
            f"known of groupwise's own aggregators, not of {type(aggregator).__name__}."
        )
    if isinstance(loss, Log):
        raise ConfigurationError(
            "windows are for labels that are numbers: hindsight for log loss keeps rows, and those "
            "of windows would be all of them. Leave windows out."
        )
    if recalibrate is not None:
        raise ConfigurationError("windows and recalibrate do not go together: leave one out.")
    return Windows() if windows is True else windows


class Expanded(NamedTuple):
    """The awake groups of some rows with their windows, and what becomes of these."""

    indptr: Index
    groups: Index
    weights: Vector
    own: Index
    """The places of the groups themselves."""
    log: Index
    """The windows that begin in these rows (``kernels.windows``)."""


class Stretch(NamedTuple):
    """Some of the last rounds of a group: how many, and which numbers have them in their books."""

    length: int
    numbers: tuple[int, ...]


class Clocks:
    """The clock of every group, and the numbers of its windows.

    Parameters
    ----------
    kind : which windows there are.
    experts : how many learners a group has.
    """

    def __init__(self, kind: Windows, experts: int) -> None:
        self.kind = kind
        self.shift = kind.shortest.bit_length() - 1
        self.clock: Index = np.zeros(0, dtype=np.int64)
        self.live: Index = np.zeros((0, 1), dtype=np.int64)
        """The awake window of every group and level; -1 where there is none."""
        self.before: Index = np.zeros((0, 1), dtype=np.int64)
        """The one before it."""
        self.mass = np.zeros((0, experts))
        """The prior masses of the groups' experts."""
        self.free: Index = np.zeros(ROOM, dtype=np.int64)
        self.marks: Index = np.array([0, 0, ROOM], dtype=np.int64)
        self.first = ROOM
        """The first number that a window may have: groups have those below."""
        self.freed = np.zeros(3)
        """Of experts that are gone: Σ m, Σ m ln(1 + C) and Σ m ln(1 + T), at least."""

    # Rounds.

    def around(self, awake: Awake) -> Awake:
        """The awake groups with their windows before them."""
        live = self.live[awake.groups]
        there = live >= 0
        numbers = np.concatenate([live[there], awake.groups])
        weights = np.broadcast_to(awake.weights[:, None], live.shape)[there]
        return Awake(numbers, np.concatenate([weights, awake.weights]))

    def turn(self, reduction: "Reduction", groups: Index) -> None:
        """A round of these groups is settled."""
        self._reach(int(self.clock[groups].max()) + 1)
        log = np.empty((groups.size * self.live.shape[1], 6), dtype=np.int64)
        self.marks[kernels.BEGUN] = 0
        kernels.advance(groups, *self._state(), log)
        log = log[: self.marks[kernels.BEGUN]]
        if len(log):
            self.end(reduction, log)
            self.begin(reduction, log)

    def expanded(self, indptr: Index, groups: Index, weights: Vector) -> Expanded:
        """The groups of rows whose labels come at once, with their windows; clocks go on."""
        found = np.zeros(2, dtype=np.int64)
        clock = self.clock.copy()
        kernels.count(groups, self.shift, clock, found)
        self._reach(int(clock[groups].max(initial=0)))
        entries = groups.size + int(found[0])
        log = np.empty((int(found[1]), 6), dtype=np.int64)
        out = Expanded(
            np.empty_like(indptr),
            np.empty(entries, dtype=np.int64),
            np.empty(entries),
            np.empty_like(groups),
            log,
        )
        self.marks[kernels.BEGUN] = 0
        kernels.expand(indptr, groups, weights, *self._state(), log, *out[:4])
        return out

    def _state(self) -> tuple[Any, ...]:
        return self.shift, self.clock, self.live, self.before, self.free, self.marks

    def _reach(self, clock: int) -> None:
        """Room for the levels that clocks are about to reach."""
        wanted = max(1, (clock >> self.shift).bit_length())
        if wanted > self.live.shape[1]:
            shape = self.live.shape[0], wanted
            self.live, self.before = (enlarge(a, shape, -1) for a in (self.live, self.before))

    def begin(self, reduction: "Reduction", log: Index) -> None:
        """Windows begin: with learners that know nothing, and prior masses."""
        numbers, groups = (log[:, k].copy() for k in (kernels.NUMBER, kernels.GROUP))
        shares = np.array([share(start) for start in log[:, kernels.START].tolist()])
        for store in reduction.records().values():
            store.reserve(numbers, 0)
        for bank in reduction.banks:
            bank.reserve_as(numbers, groups)
        reduction.state.fill("mass", numbers, self.mass[groups] * shares[:, None])

    def end(self, reduction: "Reduction", log: Index) -> None:
        """Windows end: their learners are freed, and of those before them the books."""
        asleep, gone = (log[:, k][log[:, k] >= 0] for k in (kernels.TO_SLEEP, kernels.TO_FREE))
        for bank in reduction.banks if asleep.size else ():
            bank.free_learners(asleep)
        if not gone.size:
            return
        mass, absolute = (reduction.state.some(name, gone) for name in ("mass", "absolute"))
        rounds = np.broadcast_to(reduction.books.some("rounds", gone), mass.shape)
        there = mass > 0.0  # of experts; others have more than these groups have
        each = zip(*(one[there].tolist() for one in (mass, absolute, rounds)), strict=True)
        total, spread, longest = self.freed.tolist()
        for m, c, t in each:
            total = (total + m) * OUTWARD
            spread = (spread + m * math.log1p(c) * OUTWARD) * OUTWARD
            longest = (longest + m * math.log1p(t) * OUTWARD) * OUTWARD
        self.freed[:] = total, spread, longest
        _free(reduction, gone)
        count = int(self.marks[kernels.FREE])
        self.free = enlarge(self.free, (capacity(count + gone.size, self.free.size),))
        self.free[count : count + gone.size] = gone
        self.marks[kernels.FREE] += gone.size

    # Numbers.

    def widen(self, experts: int) -> None:
        """Groups may have so many learners."""
        self.mass = enlarge(self.mass, (len(self.mass), experts))

    def welcome(self, reduction: "Reduction", new: Index) -> None:
        """Groups get numbers, which windows may have to give up."""
        last = int(new.max()) + 1
        if last > self.first:
            self._renumber(reduction, self.clock.size, capacity(last, self.first))
        size = capacity(last, self.clock.size)
        if size > self.clock.size:
            self.clock = enlarge(self.clock, (size,))
            shape = size, self.live.shape[1]
            self.live, self.before = (enlarge(a, shape, -1) for a in (self.live, self.before))
            self.mass = enlarge(self.mass, (size, self.mass.shape[1]))

    def tidy(self, reduction: "Records", groups: int) -> int:
        """Give windows the numbers that follow those of so many groups, in a fixed order.

        Returns how many numbers there are then. Nothing that is predicted depends on them.
        """
        return self._renumber(reduction, groups, groups)

    def _renumber(self, reduction: "Records", groups: int, first: int) -> int:
        both = np.stack([self.live[:groups], self.before[:groups]], axis=-1)
        there = both >= 0
        old = both[there]
        new = np.arange(first, first + old.size)
        if self.first != first or self.marks[kernels.FREE] or not np.array_equal(old, new):
            start = min(first, self.first)
            for store in reduction.records().values():
                store.renumber(start, old, new)
            for bank in reduction.banks:
                bank.renumber(start, old, new)
            both[there] = new
            self.live[:groups], self.before[:groups] = both[..., 0], both[..., 1]
            self.first = first
            self.marks[kernels.FREE], self.marks[kernels.NEXT] = 0, first + old.size
        return first + old.size

    # What is known.

    def gone(self, experts: int) -> tuple[Vector, Vector, Vector]:
        """Mass, C and T of all experts that are gone, as of one: the first of a group more.

        In a bound that sums m (1 + ln(1 + C)) over all experts ever seen they count as all of them.
        """
        total, spread, longest = self.freed.tolist()
        if total == 0.0:
            return (np.zeros((0, experts)),) * 3
        mass, absolute, rounds = (np.zeros((1, experts)) for _ in range(3))
        mass[0, 0] = total * OUTWARD
        absolute[0, 0], rounds[0, 0] = (
            math.expm1(x / total * OUTWARD) * OUTWARD for x in (spread, longest)
        )
        return mass, absolute, rounds

    def last(self, group: int, rounds: int) -> Stretch:
        """The shortest stretch that covers the last rounds of a group: one or two windows, or all.

        Two windows of one length, the one that is awake and the one before it. Of two stretches
        that are as long, the one of fewer windows.
        """
        clock = int(self.clock[group]) if group < self.clock.size else 0
        found = Stretch(clock, (group,))
        for level in range(self.live.shape[1]):
            length = self.kind.shortest << level
            live, before = int(self.live[group, level]), int(self.before[group, level])
            inside = clock % length
            both = (before, live) if inside else (before,)  # one that just begins has no rounds
            for size, numbers in ((inside, (live,)), (inside + length, both)):
                least = size, len(numbers)
                if min(numbers) >= 0 and rounds <= size and least < (found[0], len(found[1])):
                    found = Stretch(size, numbers)
        return found

    # Beginning again, and files.

    def restart(self, reduction: "Reduction") -> None:
        """All windows end, and all clocks begin again."""
        every = np.concatenate([self.live[self.live >= 0], self.before[self.before >= 0]])
        _free(reduction, every)
        self.clock[:] = 0
        self.live[:] = self.before[:] = -1
        self.freed[:] = 0.0
        self.marks[kernels.FREE], self.marks[kernels.NEXT] = 0, self.first

    def save(self, groups: int) -> dict[str, Any]:
        """The clocks of the first groups; which windows there are follows from them."""
        return {"windows.clock": self.clock[:groups].copy(), "windows.freed": self.freed.copy()}

    def load(self, arrays: dict[str, Any], groups: int) -> int:
        """Take over what ``save`` gave; returns how many numbers there are, windows included."""
        clock, freed = arrays["windows.clock"], arrays["windows.freed"]
        if clock.shape != (groups,) or clock.dtype != np.int64 or not _within(clock, MOST):
            raise ValueError("windows.clock is not one count per group")
        if freed.shape != (3,) or freed.dtype != np.float64 or not _within(freed, np.inf):
            raise ValueError("windows.freed are not three sums")
        if (freed[1:] > MOST.bit_length() * freed[0]).any():  # Σ m ln(1 + C) and Σ m ln(1 + T)
            raise ValueError("windows.freed has means that no logarithm of a count is")
        self.clock, self.freed = clock.copy(), freed.copy()
        length = np.array([self.kind.shortest << level for level in range(62 - self.shift)])
        length = length[: max(1, int(clock.max(initial=0) >> self.shift).bit_length())]
        there = np.stack([clock[:, None] >= length, clock[:, None] >= 2 * length], axis=-1)
        both = np.full(there.shape, -1, dtype=np.int64)
        both[there] = np.arange(groups, groups + int(there.sum()))
        self.live, self.before = both[..., 0].copy(), both[..., 1].copy()
        self.first = groups
        total = groups + int(there.sum())
        self.marks[kernels.FREE], self.marks[kernels.NEXT] = 0, total
        return total

    def loaded(self, reduction: "Reduction", groups: int) -> None:
        """Everybody has taken over the rest."""
        if reduction.divided is not None:
            whose = reduction.divided.division
            for numbers in (self.live, self.before):
                group, level = np.nonzero(numbers >= 0)
                if (whose[numbers[group, level]] != whose[group]).any():
                    raise ValueError("windows have other learners than their groups")
        self.mass = reduction.state.column("mass", groups)
        for bank in reduction.banks:
            bank.free_learners(self.before[self.before >= 0])


def _within(array: Index | Vector, most: float) -> bool:
    """Are all of them numbers, and from 0 to that?"""
    return bool(((array >= 0) & (array <= most)).all())


def _free(reduction: "Reduction", groups: Index) -> None:
    """Give up all that is kept of some groups."""
    for store in reduction.records().values():
        store.free(groups)
    for bank in reduction.banks:
        bank.free(groups)


def share(start: int) -> float:
    """1/(s ln²(s + 1)), s = start + 15: the prior mass of a window as a share of its group's.

    >>> round(share(1), 4), round(share(100), 4)
    (0.0078, 0.0004)
    """
    later = start + ALREADY
    return 1.0 / (later * math.log(later + 1.0) ** 2)


def open_windows(reduction: "Reduction", kind: Windows | None) -> None:
    """From the first round on, stretches of every group's own time are groups as well."""
    if kind is None:
        return
    for bank in reduction.banks:
        if not bank.frees:
            raise ConfigurationError(
                f"{type(reduction.learners[bank.columns[0]]).__name__} has no windows: those are "
                "for learners of numbers, such as learners.Ridge. Leave windows out."
            )
    reduction.windows = Clocks(kind, reduction.experts)
