"""Experts that come with the rows: predictions of any model, logged in a column."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.protocols import Awake, Bank, Row, Setting


@dataclass(frozen=True)
class Logged:
    """What a column says, as an expert of every group: it learns nothing.

    Guarantee
    ---------
    Like any expert's: on every group g, at every moment, the loss of the plays exceeds that of the
    column's predictions, clipped to the label's range, by at most the aggregator's bound on the
    regret to this expert, plus the delay term.
    """

    column: str

    @property
    def name(self) -> str:
        """What messages call it."""
        return f"Expert {self.column!r}"

    @classmethod
    def banks(
        cls, learners: "Sequence[Logged]", columns: Sequence[int], setting: Setting
    ) -> "list[LoggedBank]":
        """One bank for all of them."""
        return [LoggedBank(learners, columns)]


class LoggedBank(Bank):
    """Reads the advice of every awake group from the row, which is the same for all of them."""

    compiled = True
    frees = True

    def __init__(self, learners: Sequence[Logged], columns: Sequence[int]) -> None:
        self.columns = list(columns)
        self.names = {one.column: place for one, place in zip(learners, columns, strict=True)}

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The row's predictions, for every awake group."""
        advice = np.empty((len(awake.groups), len(self.columns)))
        advice[:] = row.logged
        return advice

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Nothing is learned."""

    def run(self, rounds: Any, out: Vector) -> None:
        """The predictions of every row of a stretch, once for each of its groups."""
        out[:] = np.repeat(rounds.logged, np.diff(rounds.indptr), axis=0)

    def restart(self) -> None:
        """There is nothing to forget."""

    def free_learners(self, groups: Index) -> None:
        """Nothing is kept."""

    def free(self, groups: Index) -> None:
        """Nothing is kept."""

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Nothing is kept."""

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """There is nothing to save."""
        return {}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """There is nothing to take over."""
