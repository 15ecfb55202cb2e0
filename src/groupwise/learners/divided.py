"""Groups that have different learners: a bank that knows which group has which."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Index, Vector, capacity, enlarge
from groupwise.errors import ConfigurationError
from groupwise.learners.compiled import CompiledBank
from groupwise.learners.crew import Crew, joint
from groupwise.learners.divisions import named_from, roster_prefix
from groupwise.learners.kinds import banks_by_kind
from groupwise.learners.logged import LoggedBank
from groupwise.learners.rosters import Rosters
from groupwise.learners.wrapped import WrappedBank
from groupwise.losses import Loss
from groupwise.protocols import Awake, Bank, Hindsight, Row, Setting

NUMBERS = "rosters.number"
"""The array of a file that has the roster of every group."""
MANY = 1 << 20
"""With the group's number this names an expert, however many its group has."""


class Team(NamedTuple):
    """The banks of a roster, and how many experts its groups have."""

    size: int
    compiled: list[CompiledBank]
    others: list[Bank]


class Divided(Bank):
    """The learners of groups that do not all have the same: Theorem 2 of the paper allows any.

    A group has the learners of its roster and no others: no copy, no record, no work. Advice has as
    many columns as the largest roster; beyond those of its own, a group's row repeats its first,
    which has no prior mass there and so counts for nothing.

    Parameters
    ----------
    rosters : the learners of every roster; further ones may come (:meth:`enlist`).
    loss, seed, width : as in :class:`groupwise.protocols.Setting`.
    intercept, always_on : as for :class:`groupwise.learners.crew.Crew`.
    """

    actions: bool = False  # type: ignore[misc]

    def __init__(
        self,
        rosters: Rosters,
        loss: Loss,
        seed: int,
        width: int,
        intercept: bool = False,
        always_on: bool = False,
    ) -> None:
        self.rosters = Rosters([], rosters.leader, rosters.logged, rosters.open)
        self.setting = Setting(loss, seed, MANY, width)
        self.nodes = loss.nodes
        self.division = np.zeros(0, dtype=np.int64)
        """The roster of every group."""
        self.teams: list[Team] = []
        self.crew: Crew | None = None
        self._about = loss, intercept, always_on
        self._leading = None if rosters.leader is None else rosters[rosters.leader]
        for learners in rosters.learners:
            self.enlist(learners)

    def enlist(self, learners: Sequence[Any]) -> int:
        """Make the banks of a further roster; its number. With an error nothing has changed."""
        number, whole = len(self.rosters), (*learners, *self.rosters.logged)
        leading = None if number == self.rosters.leader else self._leading
        made = banks_by_kind(whole, self.setting._replace(leading=leading))
        trial = Rosters([learners], logged=self.rosters.logged)
        self._join(Team(trial.size(0), *made))
        return self.rosters.append(learners)

    def _join(self, team: Team) -> None:
        acts = bool(team.others) and team.others[0].actions
        if self.teams and acts != self.actions:
            raise ConfigurationError(
                "FTPL and ContextualFTPL advise actions, other learners advise numbers: all groups "
                "of a model have learners of the one kind or of the other."
            )
        lengths = {bank.dimension for one in (*self.teams, team) for bank in one.others}
        if acts and (len(lengths) > 1 or 0 in lengths):
            raise ConfigurationError(
                f"The learners' actions have {sorted(lengths)} coordinates: give learners of the "
                "same decision set, and no enumerated policies."
            )
        self.actions = acts
        if acts:
            self.dimension = team.others[0].dimension
        elif self.crew is None:
            self.crew = Crew(team.compiled, *self._about)
        else:
            self.crew.join(team.compiled)
        self.teams.append(team)
        self.columns = list(range(max(one.size for one in self.teams)))

    def assign(self, groups: Index, rosters: Sequence[int]) -> None:
        """Say of which roster some groups are."""
        size = int(groups.max(initial=-1)) + 1
        if size > self.division.size:
            self.division = enlarge(self.division, (capacity(size, self.division.size),))
            self._tell_crew()
        self.division[groups] = rosters

    def _tell_crew(self) -> None:
        if self.crew is not None:
            self.crew.divide(self.division)

    def team_of(self, group: int) -> Team:
        """The banks of a group."""
        return self.teams[int(self.division[group])]

    def _shares(self, awake: Awake) -> Iterator[tuple[Team, Index, Awake]]:
        """The awake groups of every roster, and their places among all of them."""
        numbers = self.division[awake.groups]
        for number in np.unique(numbers).tolist():
            own = np.flatnonzero(numbers == number)
            whole = own.size == numbers.size
            some = awake if whole else Awake(awake.groups[own], awake.weights[own])
            yield self.teams[number], own, some

    def _others(self) -> Iterator[Bank]:
        return (bank for team in self.teams for bank in team.others)

    @property
    def compiled(self) -> bool:  # type: ignore[override]
        """Does everybody do without the interpreter?"""
        return all(bank.compiled for bank in self._others())

    @property
    def integral(self) -> bool:
        """Are all actions in whole numbers?"""
        return all(getattr(bank, "integral", False) for bank in self._others())

    @property
    def sampled(self) -> bool:
        """Is a constant of somebody's bounds sampled, with a margin?"""
        return any(getattr(bank, "sampled", False) for bank in self._others())

    @property
    def measured(self) -> bool:  # type: ignore[override]
        """Is some of :meth:`a_priori` measured?"""
        return self.crew is not None or any(bank.measured for bank in self._others())

    def _banks(self) -> list[Bank]:
        """All there are, the crew as one."""
        return [*([] if self.crew is None else [self.crew]), *self._others()]

    # Rounds.

    def reserve(self, groups: Index, features: int) -> None:
        """Make room for these groups, each where its learners are."""
        if self.crew is not None:
            self.crew.reserve(groups, features)
        for team, own, _ in self._shares(Awake(groups, np.ones(groups.size))):
            for bank in team.others:
                bank.reserve(groups[own], features)

    def reserve_as(self, groups: Index, others: Index) -> None:
        """Make room for groups that have the learners of others."""
        self.assign(groups, self.division[others].tolist())
        if self.crew is not None:
            self.crew.reserve_as(groups, others)
        for team, own, _ in self._shares(Awake(groups, np.ones(groups.size))):
            for bank in team.others:
                bank.reserve_as(groups[own], others[own])

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group's own learners. Changes nothing."""
        out = self._room(len(awake))
        if self.crew is not None:
            self._place(out, self.crew.advise(number, attempt, awake, row), awake.groups)
        for team, own, some in self._shares(awake):
            for bank in team.others:
                out[own[:, None], bank.columns] = bank.advise(number, attempt, some, row)
        self._repeat(out, awake.groups)
        return out

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """All learners of the awake groups, or none."""
        self._update_others(awake, row, label)
        if self.crew is not None:
            self.crew.update(awake, row, label)

    def _update_others(self, awake: Awake, row: Row, label: Any) -> None:
        """Those that may fail come first, and change nothing until all of them are through."""
        shares = [(bank, some) for team, _, some in self._shares(awake) for bank in team.others]
        ready = [
            (bank, bank.updated(some, row, label))
            for bank, some in shares
            if isinstance(bank, WrappedBank)
        ]
        for bank, some in shares:
            if not isinstance(bank, WrappedBank):
                bank.update(some, row, label)
        for objects, updated in ready:
            objects.learners.update(updated)

    def record(self, awake: Awake, row: Row, label: Any, stands_for: float) -> None:
        """Add a label to what the hindsight of learners needs that are not compiled."""
        for team, _, some in self._shares(awake):
            for bank in team.others:
                bank.record(some, row, label, stands_for)

    def step(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Vector:
        """The advice as of now, then the update, then hindsight."""
        out = self._room(len(awake))
        self._step_others(number, attempt, awake, row, label, stands_for, out)
        if self.crew is not None:  # compiled: it cannot fail
            said = self.crew.step(number, attempt, awake, row, label, stands_for)
            self._place(out, said, awake.groups)
        self._repeat(out, awake.groups)
        return out

    def _step_others(
        self,
        number: int,
        attempt: int,
        awake: Awake,
        row: Row,
        label: Any,
        stands_for: float,
        out: Vector,
    ) -> None:
        for team, own, some in self._shares(awake):
            for bank in team.others:
                out[own[:, None], bank.columns] = bank.advise(number, attempt, some, row)
        self._update_others(awake, row, label)
        self.record(awake, row, label, stands_for)

    def _room(self, rows: int) -> Vector:
        last = (self.dimension,) if self.actions else (self.nodes,) if self.nodes > 1 else ()
        return np.zeros((rows, len(self.columns), *last))

    def _place(self, out: Vector, said: Vector, groups: Index) -> None:
        """Put what the crew said where its learners stand in the rosters of their groups."""
        assert self.crew is not None
        numbers = self.division[groups]
        for number in np.unique(numbers).tolist():
            own, columns = np.flatnonzero(numbers == number), self.crew.divisions[number].columns()
            out[own[:, None], columns] = said[own, : len(columns)]

    def _repeat(self, out: Vector, groups: Index) -> None:
        """Fill the columns beyond a group's own: with its first, which is fit for everything."""
        numbers = self.division[groups]
        for number in np.unique(numbers).tolist():
            size = self.teams[number].size
            if size < out.shape[1]:
                own = np.flatnonzero(numbers == number)
                out[own, size:] = out[own, :1]

    # Whole stretches. Those of the crew may be in several threads, so all else waits for the end.

    def lay_out(self, rounds: Any) -> Any:
        """What the crew needs, and room for what it says where that is not in its place at once."""
        assert self.crew is not None
        entries, width = rounds.groups.size, self.crew.width
        room = None if self._in_place() else np.empty((entries, width * self.nodes))
        return self.crew.lay_out(rounds), room

    def _in_place(self) -> bool:
        """Does the crew alone give advice, in the order of the columns?"""
        assert self.crew is not None
        orders = (one.columns() for one in self.crew.divisions)
        in_order = all(columns == list(range(len(columns))) for columns in orders)
        return in_order and self.crew.width == len(self.columns)

    def remembered(self, features: int) -> int:
        """How many numbers the crew remembers of every row."""
        return 0 if self.crew is None else self.crew.remembered(features)

    def run(self, rounds: Any, out: Vector) -> None:
        """The crew's stretch; then, in one thread alone, that of learners in Python."""
        assert self.crew is not None
        laid_out, room = rounds.laid_out[self]
        rounds.laid_out.setdefault(self.crew, laid_out)
        if not self.compiled:
            for t, number, awake, row, label in rounds:
                self._step_others(number, 0, awake, row, label, 1.0, out[t])
        self.crew.run(rounds, out if room is None else room)

    def finish(self, rounds: Any, out: Vector) -> None:
        """Put what was said where it belongs."""
        groups, (_, room) = rounds.groups, rounds.laid_out[self]
        if room is not None:
            assert self.crew is not None
            shape = len(room), self.crew.width, self.nodes
            self._place(out, room if self.nodes == 1 else room.reshape(shape), groups)
        if self.compiled and self.rosters.logged:
            logged = np.repeat(rounds.logged, np.diff(rounds.indptr), axis=0)
            for team, own, _ in self._shares(Awake(groups, rounds.weights)):
                for bank in team.others:
                    if isinstance(bank, LoggedBank):
                        out[own[:, None], bank.columns] = logged[own]
        self._repeat(out, groups)

    # Actions.

    def check(self, label: Any) -> None:
        """Raise LabelError where a label cannot be learned from."""
        for bank in self._others():
            bank.check(label)

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """The scaled losses of advice on a label, and their mean over the draw."""
        return self.teams[0].others[0].score(advice, probabilities, label)

    def rest(self, row: Row) -> Any:
        """What to play where no group is awake: what the first learner says."""
        return self.teams[0].others[0].rest(row)

    # What is known about groups.

    def hindsight(self, group: int, features: int) -> Hindsight | float | None:
        """The scaled loss of the best of the classes of the group's own learners."""
        found = [bank.hindsight(group, features) for bank in self._of(group)]
        known = [best for best in found if best is not None]
        return min(known, key=lambda x: x.best if isinstance(x, Hindsight) else x, default=None)

    def _of(self, group: int) -> list[Bank]:
        """The banks that know of a group."""
        return [*([] if self.crew is None else [self.crew]), *self.team_of(group).others]

    def comparator_of(self, group: int) -> str:
        """What the hindsight of a group is the loss of."""
        if self.crew is not None:
            return self.crew.of(group).recorder.comparator
        return self.team_of(group).others[0].comparator

    def elsewhere(self, group: int, of: int) -> float:
        """What the best of the class for the group ``of`` would have lost on ``group``, scaled."""
        if self.division[group] != self.division[of]:
            raise ConfigurationError(
                "best_elsewhere compares groups that have the same learners, and these have others."
            )
        return self.team_of(group).others[0].elsewhere(group, of)

    def bounds(self, group: int) -> Vector | None:
        """Those of the group's own learners."""
        return joint([bank.bounds(group) for bank in self._of(group)])

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """The least of the bounds of the group's own learners."""
        found = [bank.a_priori(group, rounds, known, clipped) for bank in self._of(group)]
        return min((bound for bound in found if bound is not None), default=None)

    # Beginning again, and files.

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        for bank in self._banks():
            bank.restart()

    @property
    def frees(self) -> bool:  # type: ignore[override]
        """Can groups be given up, whatever their learners?"""
        return all(bank.frees for bank in self._banks())

    def free_learners(self, groups: Index) -> None:
        """Give up what some groups have learned, not what was recorded of them."""
        for bank in self._banks():
            bank.free_learners(groups)

    def free(self, groups: Index) -> None:
        """Give up all that is kept of some groups."""
        for bank in self._banks():
            bank.free(groups)

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Groups get other numbers, and keep their learners."""
        for bank in self._banks():
            bank.renumber(start, old, new)
        self.assign(new, self.division[old].tolist())

    def kept(self, groups: int) -> list[int]:
        """The rosters that a file of the first groups holds: all, or as they appeared."""
        if not self.rosters.open:
            return list(range(len(self.rosters)))
        first = [] if self.rosters.leader is None else [self.rosters.leader]
        return list(dict.fromkeys([*first, *self.division[:groups].tolist()])) or [0]

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, by roster."""
        order = self.kept(groups)
        places = {number: place for place, number in enumerate(order)}
        numbers = [places[number] for number in self.division[:groups].tolist()]
        found: dict[str, Any] = {NUMBERS: np.array(numbers, dtype=np.int64)}
        if self.crew is not None:
            found |= self.crew.save(groups, features, order)
        for place, number in enumerate(order):
            own = np.flatnonzero(self.division[:groups] == number)
            for bank in self.teams[number].others:
                whose: Any = own if bank.sparse else groups
                saved = bank.save(whose, features)
                found |= {f"{roster_prefix(place)}{name}": array for name, array in saved.items()}
        return found

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""
        numbers = arrays[NUMBERS]
        if numbers.shape != (groups,) or numbers.dtype != np.int64:
            raise ValueError("rosters are not one number per group")
        if ((numbers < 0) | (numbers >= len(self.teams))).any():
            raise ValueError("a roster is beyond what there is")
        self.assign(np.arange(groups), numbers)
        if self.crew is not None:
            self.crew.load(arrays, groups, features)
        for number, team in enumerate(self.teams):
            own, named = (
                np.flatnonzero(numbers == number),
                named_from(roster_prefix(number), arrays),
            )
            for bank in team.others:
                whose: Any = own if bank.sparse else groups
                bank.load(named, whose, features)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._tell_crew()


def by_roster(arrays: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The arrays of a file: those of all groups, and those of every roster by their names there."""
    numbers = np.unique(arrays.get(NUMBERS, ())).tolist()
    prefixes = [roster_prefix(number) for number in numbers]
    yield {name: a for name, a in arrays.items() if not name.startswith(tuple(prefixes))}
    for number, prefix in zip(numbers, prefixes, strict=True):
        own = named_from(prefix, arrays)
        if "columns.count" in arrays:
            own["columns.count"] = arrays["columns.count"][arrays[NUMBERS] == number]
        yield own
