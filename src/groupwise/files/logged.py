"""Predictions as they were issued: what they lose on every group, and how calibrated they are.

Those of other models come from columns of a file: a number for each row, or the probability of the
positive class; where there are three classes and more, a column for each of them, such as
``mine:red``, ``mine:green`` and ``mine:blue`` of the model ``mine``.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError, DataError
from groupwise.files.rows import Piece
from groupwise.files.scan import Scan
from groupwise.files.task import Task
from groupwise.files.text import amount, listed, quoted, shown
from groupwise.groups import FrameMembership
from groupwise.losses import CERTAINTY
from groupwise.regret.calibration import CalibrationTable, Tally

if TYPE_CHECKING:
    from groupwise.model import Groupwise

MOST = 3
"""Models to be compared at a time, for the sake of tables and colours."""
MARKS = (":", "_")
"""What may stand between the name of a model and that of a class."""
SLACK = 0.02
"""How far from 1 the probabilities of all classes may be in sum, having been rounded."""


class Logged(NamedTuple):
    """The predictions of another model: its name, and its column, or one for each class."""

    name: str
    columns: tuple[str, ...]

    def read(self, piece: Piece, source: str) -> Vector:
        """The predictions of some rows, with a last axis for columns; those of classes sum to 1."""
        found = np.column_stack([piece.frame.column(name).to_numpy() for name in self.columns])
        if len(self.columns) == 1:
            return found
        totals = found.sum(axis=1)
        off = np.abs(totals - 1.0) > SLACK
        if off.any():
            row = int(np.argmax(off))
            raise DataError(
                f"Row {int(piece.numbers[row])} of {shown(source)}: the probabilities of "
                f"{quoted(self.name)} add up to {totals[row]:.4g}, not to 1."
            )
        shares: Vector = found / totals[:, None]
        return shares

    def refused(self, piece: Piece, task: Task) -> Iterator[tuple[int, str]]:
        """The rows, by their place, in which it says nothing that is a prediction, and why."""
        found = np.column_stack([piece.frame.column(name).to_numpy() for name in self.columns])
        low, high = (0.0, 1.0) if task.is_chance else (-np.inf, np.inf)
        fine = (found >= low) & (found <= high) & np.isfinite(found)
        off = (np.abs(found.sum(axis=1) - 1.0) > SLACK) & (len(self.columns) > 1)
        for row in np.flatnonzero(~fine.all(axis=1) | off).tolist():
            yield row, f"it holds no prediction of {quoted(self.name)} that can be used."


def find_experts(
    scan: Scan, task: Task, target: str, names: Sequence[str], skip: bool
) -> tuple[str, ...]:
    """The columns of these models, each an expert of every group, if they hold predictions."""
    if names and len(task.events) > 1:
        raise ConfigurationError(
            f"An expert is one column, and {quoted(target)} has {len(task.events)} classes: "
            "experts are for numbers, and for yes or no."
        )
    found = find_logged(scan, task, target, names, skip, "--expert")
    return tuple(column for one in found for column in one.columns)


def find_logged(
    scan: Scan,
    task: Task,
    target: str,
    names: Sequence[str],
    skip: bool = False,
    option: str = "--prediction",
) -> tuple[Logged, ...]:
    """The columns of these models, if they hold predictions: in all rows, unless some may skip."""
    if len(names) > MOST:
        raise ConfigurationError(f"Name at most {MOST} models at a time with {option}.")
    if len(set(names)) < len(names):
        raise ConfigurationError(f"A column is named twice with {option}.")
    found = tuple(Logged(name, _columns(scan, task, target, name)) for name in names)
    for column in (column for one in found for column in one.columns):
        profile = scan.columns[column]
        if column == target:
            raise ConfigurationError(f"{quoted(column)} is the label itself, not a prediction.")
        profile.check_numbers("prediction")
        if skip:
            continue
        profile.check_complete("--skip-bad leaves out the rows without a prediction.")
        if task.is_chance and not 0.0 <= profile.low <= profile.high <= 1.0:
            outside = profile.low if profile.low < 0.0 else profile.high
            raise DataError(
                f"The prediction column {quoted(column)} holds {amount(outside)}, and "
                f"probabilities are from 0 to 1. Say --task number if {quoted(target)} is a "
                "number; --skip-bad leaves such rows out."
            )
    return found


def _columns(scan: Scan, task: Task, target: str, name: str) -> tuple[str, ...]:
    if len(task.events) < 2:
        wanted = [name, *(name + mark + event for mark in MARKS for event in task.events)]
        known = [column for column in wanted if column in scan.columns]
        return (scan.column((known or wanted)[0], "for predictions").name,)
    for mark in MARKS:
        columns = tuple(f"{name}{mark}{event}" for event in task.events)
        there = [column for column in columns if column in scan.columns]
        if len(there) == len(columns):
            return columns
        if there:
            absent = [column for column in columns if column not in scan.columns]
            raise DataError(
                f"{shown(scan.source.name)} has {listed(there)}, and no column {listed(absent)}: "
                f"the probability of every class of {quoted(target)} is needed."
            )
    wanted = [f"{name}{MARKS[0]}{event}" for event in task.events]
    if name not in scan.columns:
        raise scan.unknown(wanted[0], "for predictions")
    raise DataError(
        f"{quoted(name)} is one column, and {quoted(target)} has {len(task.events)} classes: give "
        f"the probability of each in columns such as {listed(wanted, 3)}."
    )


class Scores:
    """What predictions lost on every group, and their calibration where they are probabilities."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.losses: dict[str, float] = defaultdict(float)
        self.sure = 0
        """In how many rows a class came to which less than 1e-15 had been given."""
        self._tallies = [Tally() for _ in task.events] if task.is_chance else []

    def add(self, membership: FrameMembership, predictions: Vector, labels: Vector) -> None:
        """Count some rows: predictions with a last axis for columns, and labels as numbers."""
        names = membership.names
        losses = self.task.losses(predictions, labels)
        rows = np.repeat(np.arange(labels.size), np.diff(membership.indptr))
        totals = np.bincount(membership.indices, membership.weights * losses[rows], len(names))
        for name, loss in zip(names, totals.tolist(), strict=True):
            self.losses[name] += loss
        many, entries = len(self._tallies) > 1, (membership.indices, membership.weights)
        for event, tally in enumerate(self._tallies):
            came = (labels == event).astype(np.float64) if many else labels
            chance = np.ascontiguousarray(predictions[:, event])
            tally.add(names, membership.indptr, *entries, chance, came)
        if self._tallies:
            self.sure += int(np.count_nonzero(losses >= -np.log(CERTAINTY) * (1.0 - 1e-9)))

    def calibration(self) -> dict[str, CalibrationTable]:
        """The tables by the class that has a probability; log loss is that of all classes."""
        pairs = zip(self.task.events, self._tallies, strict=True)
        return {event: self._with_losses(tally.table()) for event, tally in pairs}

    def _with_losses(self, table: CalibrationTable) -> CalibrationTable:
        sums = [one._replace(loss=self.losses[one.group]) for one in table.sums]
        rows = [
            {**row, "log_loss": one.loss / max(one.rounds, 1e-300)}
            for row, one in zip(table, sums, strict=True)
        ]
        return CalibrationTable(rows, table.settled, tuple(sums))


def calibration_of(model: "Groupwise", task: Task) -> dict[str, CalibrationTable]:
    """The same of what a model has predicted."""
    if len(task.events) == 1:
        return {task.events[0]: model.calibration()}
    pairs = zip(task.names, task.classes, strict=True)
    return {name: model.calibration(of=one) for name, one in pairs}


def said_for_sure(name: str, scores: Scores) -> list[str]:
    """What to know of a model that gave nothing to what came."""
    if not scores.sure:
        return []
    rows = "one row" if scores.sure == 1 else f"{scores.sure:,} rows"
    return [
        f"{shown(name)} gave no more than {CERTAINTY:g} to what came in {rows}. The log loss of 0 "
        f"would be infinite; it is counted as {CERTAINTY:g}, which costs "
        f"{-np.log(CERTAINTY):.3g} nats."
    ]
