"""A round of Algorithm 1 together with its entry in the ledger."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.kernels import entry
from groupwise.protocols import Awake, Row
from groupwise.reduction import Play, Reduction
from groupwise.regret.ledger import Ledger
from groupwise.states import LARGEST
from groupwise.stream import NOBODY, upkeep

_as_play = tuple.__new__  # what Play(...) does, without its frame


class Rounds:
    """Plays rounds with a reduction and records them in a ledger.

    With ``always_on`` the last awake group of every row is the always-on one, whose first learner
    is the baseline.
    """

    def __init__(self, reduction: Reduction, ledger: Ledger, always_on: bool) -> None:
        self.reduction = reduction
        self.ledger = ledger
        self.always_on = always_on
        self.label_weight = 1.0
        """How many rounds a label stands for; more than one where feedback is partial."""

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """The play for a row; not a number if a value is beyond all bounds. Changes nothing."""
        if not (np.abs(row.values) <= LARGEST).all():
            return Play(math.nan, np.empty((2, 0, 0)))
        return self.reduction.predict(number, awake, row.without_zeros())

    def settle(
        self, number: int, awake: Awake, row: Row, label: float, late: Play | None = None
    ) -> None:
        """Learn from a label and record the round.

        ``late`` is what was played, where other labels have come since.
        """
        row = row.without_zeros()
        _, settled = self.reduction.learn(number, awake, row, label)
        played = settled if late is None else self.reduction.score(late, label)
        baseline = float(played.losses[-1, 0]) if self.always_on else math.nan
        self.ledger.record(self.counted(awake), row, label, settled, played, baseline)
        upkeep(self.reduction, self.ledger, awake)

    def counted(self, awake: Awake) -> Awake:
        """The awake groups with the weight that this label has in the ledger."""
        if self.label_weight == 1.0:
            return awake
        self.ledger.sums.rows[awake.groups] = -1
        return Awake(awake.groups, awake.weights * self.label_weight)

    def rest(self, row: Row) -> Play:
        """The play where nobody is awake: the middle of the range."""
        del row
        return Play(NOBODY, np.empty((2, 0, len(self.reduction.learners))))

    def reserve(self, groups: int, features: int, masses: Sequence[float] = ()) -> None:
        """Make room for this many groups and features; see :meth:`Reduction.reserve`."""
        self.reduction.reserve(groups, features, masses)
        self.ledger.reserve(groups, features)

    def refresh(self) -> None:
        """To be called when a state was changed from elsewhere."""


class CompiledRounds(Rounds):
    """The same steps with each round as one compiled call."""

    def __init__(self, reduction: Reduction, ledger: Ledger, always_on: bool) -> None:
        super().__init__(reduction, ledger, always_on)
        self._predict = entry.predict.compile(entry.PREDICT)
        self._settle = entry.settle.compile(entry.SETTLE)
        ((self._bank, _),) = reduction.banks
        self._learners = len(reduction.learners)
        self._handle: Any = None
        self._held: Any = None
        self._room = 0
        self._scratch = np.empty((3, 0, self._learners))

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """The play for a row; see :meth:`Rounds.predict`."""
        handle = self._open() if self._handle is None else self._handle
        groups, weights = awake
        indices, values, names, _ = row
        said = np.empty((2, len(groups), self._learners))
        prediction = self._predict(
            handle, number, groups, weights, indices, values, len(names), said
        )
        return _as_play(Play, (prediction, said))

    def settle(
        self, number: int, awake: Awake, row: Row, label: float, late: Play | None = None
    ) -> None:
        """Learn from a label and record the round; see :meth:`Rounds.settle`."""
        if self.label_weight != 1.0:
            super().settle(number, awake, row, label, late)
            return
        groups, weights = awake
        indices, values, names, _ = row
        played = realised = baseline = math.nan
        if late is not None:
            losses, played, realised = self.reduction.score(late, label)
            if self.always_on:
                baseline = float(losses[-1, 0])
        if self._room < len(groups):
            self._room = len(groups)
            self._scratch = np.empty((3, self._room, self._learners))
        self._settle(
            self._open() if self._handle is None else self._handle,
            number,
            groups,
            weights,
            indices,
            values,
            len(names),
            label,
            self._scratch,
            played,
            realised,
            baseline,
        )

    def reserve(self, groups: int, features: int, masses: Sequence[float] = ()) -> None:
        """Make room; see :meth:`Rounds.reserve`."""
        super().reserve(groups, features, masses)
        self._handle = None

    def refresh(self) -> None:
        """To be called when a state was changed from elsewhere."""
        self._handle = None

    def _open(self) -> Any:
        """The addresses of all state arrays; ``_held`` keeps the arrays while these are in use."""
        self._handle, self._held = entry.handle(
            self.reduction.settings,
            self.always_on,
            self._bank.parameters,
            self._bank.state,
            self.reduction.state,
            self.ledger.state,
            self.ledger.sums,
        )
        return self._handle

    def __getstate__(self) -> dict[str, Any]:
        keep = {k: v for k, v in self.__dict__.items() if k not in ("_predict", "_settle")}
        return {**keep, "_handle": None, "_held": None}  # addresses are not for copies

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._predict = entry.predict.compile(entry.PREDICT)
        self._settle = entry.settle.compile(entry.SETTLE)


def rounds_for(reduction: Reduction, ledger: Ledger, always_on: bool) -> Rounds:
    """Compiled rounds where all parts are compiled, else plain ones."""
    kind = CompiledRounds if reduction.compiled else Rounds
    return kind(reduction, ledger, always_on)
