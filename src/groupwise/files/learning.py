"""Rows of a file through a model: those without a label are predicted, bad ones named and skipped.

A row whose label is missing is predicted in its place, with what the rows before it have taught,
and nothing is learned from it. A row that cannot be used stops everything, with its number; where
that was asked for, it is set aside instead, and the others go on as if it were not there.
"""

import itertools
import warnings
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow.compute as compute

from groupwise.arrays import Vector
from groupwise.errors import FeatureError, GroupError, LabelError, ManyLevelsWarning
from groupwise.files.aside import Aside
from groupwise.files.predictions import ENDS, SEPARATOR, guarded, joined
from groupwise.files.rows import Piece, in_file, without
from groupwise.files.task import Task

if TYPE_CHECKING:
    from groupwise.model import Groupwise
    from groupwise.replay_frames import FrameReplay


class Learned(NamedTuple):
    """Rows that are learned."""

    piece: Piece
    replay: "FrameReplay"


class Done(NamedTuple):
    """Rows that are predicted, and learned where ``replay`` is there.

    ``predictions`` have a column for each that they are made of, and then for an interval's ends.
    """

    piece: Piece
    predictions: Vector
    groups: Any
    replay: "FrameReplay | None"


def prediction_columns(model: "Groupwise", task: Task) -> list[str]:
    """The columns of a model's predictions in a file."""
    return [*task.columns, *(() if model.intervals is None else ENDS)]


def complete(piece: Piece, columns: Collection[str], aside: Aside) -> Piece:
    """The rows in which none of some columns is missing."""
    gaps = np.zeros(len(piece.numbers), dtype=np.bool_)
    for name in columns:
        gaps |= piece.frame.column(name).is_null().to_numpy()
    aside.dropped += int(gaps.sum())
    return without(piece, gaps) if gaps.any() else piece


def stretches(piece: Piece, target: str) -> Iterator[tuple[Piece, bool]]:
    """Rows that follow one another, with labels or without, and which of the two."""
    column = piece.frame.column(target)
    if not column.null_count:
        yield piece, True
        return
    there = compute.is_valid(column).to_numpy()
    ends = [0, *(np.flatnonzero(np.diff(there)) + 1).tolist(), len(there)]
    for start, stop in itertools.pairwise(ends):
        part = Piece(piece.numbers[start:stop], piece.frame.slice(start, stop - start))
        yield part, bool(there[start])


def done(
    model: "Groupwise", piece: Piece, target: str, task: Task, aside: Aside, jobs: int | None
) -> Iterator[Done]:
    """Predict rows, and learn those that have a label."""
    for part, labelled in stretches(task.unmarked(piece, target), target):
        if labelled:
            part, result = _replayed(model, part, target, task, aside, jobs)
            if result is not None:
                predictions = task.of_prediction(result.prediction)
                if result.interval is not None:
                    predictions = np.column_stack([predictions, result.interval])
                yield Done(part, predictions, joined(result.memberships[0]), result)
        else:
            aside.unlabelled += len(part.numbers)
            part, predictions, groups = previewed(model, part, target, task, aside)
            if len(part.numbers):
                yield Done(part, predictions, groups, None)


def learned(
    model: "Groupwise", piece: Piece, target: str, task: Task, aside: Aside, jobs: int | None
) -> Iterator[Learned]:
    """Learn the rows that have a label; the others are counted."""
    piece = task.unmarked(piece, target)
    gaps = piece.frame.column(target).is_null().to_numpy()
    aside.unlabelled += int(gaps.sum())
    piece = without(piece, gaps) if gaps.any() else piece
    piece, result = _replayed(model, piece, target, task, aside, jobs)
    if result is not None:
        yield Learned(piece, result)


def _replayed(
    model: "Groupwise", piece: Piece, target: str, task: Task, aside: Aside, jobs: int | None
) -> "tuple[Piece, FrameReplay | None]":
    """Learn rows, bad ones set aside where that was asked for."""
    if aside.skip:
        refused = dict(task.refused(piece, target))
        for row, reason in refused.items():
            aside.add(piece.numbers[row], reason)
        piece = without(piece, list(refused)) if refused else piece
    while len(piece.numbers):
        frame = task.labelled(piece, target, aside.source)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ManyLevelsWarning)  # the report has it
                return piece._replace(frame=frame), model.replay(frame, target, jobs)
        except (LabelError, FeatureError, GroupError) as error:
            piece = _spared(piece, error, aside)
    return piece, None


def _spared(piece: Piece, error: Any, aside: Aside) -> Piece:
    """The rows but for the one that an error is about."""
    if not aside.skip or (error.row is None and len(piece.numbers) > 1):
        with in_file(aside.source, piece.numbers):
            raise error
    row = error.row or 0
    aside.add(piece.numbers[row], error.message)
    return without(piece, row)


def previewed(
    model: "Groupwise", piece: Piece, target: str | None, task: Task, aside: Aside
) -> tuple[Piece, Vector, list[str]]:
    """What the model predicts for rows; it learns nothing."""
    names = piece.frame.column_names
    frame = piece.frame.drop_columns([target]) if target in names else piece.frame
    predictions, groups, bad = [], [], []
    for place, row in enumerate(frame.to_pylist()):
        try:
            seen = model.preview(row)
        except (LabelError, FeatureError, GroupError) as error:
            _spared(Piece(piece.numbers[place : place + 1], frame.slice(place, 1)), error, aside)
            bad.append(place)
            continue
        said = task.of_prediction(seen.prediction)
        if model.intervals is not None:
            said = np.concatenate([said, seen.interval or (np.nan, np.nan)])
        predictions.append(said)
        groups.append(guarded(SEPARATOR.join(seen.names)))
    piece = without(piece, bad) if bad else piece
    return piece, np.array(predictions), groups
