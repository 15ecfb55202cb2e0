"""Going on from a snapshot: predicting and learning further rows."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.errors import DataError
from groupwise.progress import meter
from groupwise.tabular import model_file
from groupwise.tabular.cells import Kind, frame, in_pieces
from groupwise.tabular.predictions import SEPARATOR, PredictionFile, guarded, prediction_file
from groupwise.tabular.rows import AT_MOST, Piece, in_file, replay
from groupwise.tabular.run import first_pass
from groupwise.tabular.scan import unknown_column

if TYPE_CHECKING:
    from groupwise.model import Groupwise
    from groupwise.tabular.source import Source

PREDICTED_AT_ONCE = 5_000


@dataclass(frozen=True)
class Learned:
    """Rows that were learned now, those learned ever, and the error of the new ones."""

    rows: int
    settled: int
    error: float


def learn(
    path: Path, source: "Source", target: str | None, place: Path, jobs: int | None = None
) -> Learned:
    """Learn rows from a file and write the model to ``place``, whole or not at all."""
    model, reading = model_file.load(path)
    target = target or reading.target
    if target is None:
        raise DataError(f"{path} does not say which column holds the label. Give --target COLUMN.")
    kinds = _kinds(model, reading, source, target)
    kinds[target] = "number"
    rows, loss = 0, 0.0
    with meter(source.size, "learn", True) as advance:
        for piece, reached in _pieces(source, kinds, AT_MOST, {target}):
            result = replay(model, piece, target, source.name, jobs)
            rows += len(piece.numbers)
            loss += float(result.loss.sum())
            advance(len(piece.numbers), reached)
    model_file.save(model, place, model_file.Reading(target, kinds))
    return Learned(rows, model.regret().settled, math.sqrt(loss / max(rows, 1)))


def predict(path: Path, source: "Source", target: str | None, out: Path | None) -> int:
    """Write a prediction for every row of a file; the model learns nothing. Gives their number."""
    model, reading = model_file.load(path)
    target = target or reading.target
    kinds = _kinds(model, reading, source, target)
    if target is not None:
        kinds.pop(target, None)
    if out is not None:
        with prediction_file(out, labels=False) as file:
            return _predict(model, source, kinds, file)
    file = PredictionFile(sys.stdout.buffer, labels=False)
    count = _predict(model, source, kinds, file)
    file.writer.close()
    sys.stdout.flush()
    return count


def _predict(
    model: "Groupwise", source: "Source", kinds: dict[str, Kind], file: PredictionFile
) -> int:
    count = 0
    with meter(source.size, "predict", True) as advance:
        for piece, reached in _pieces(source, kinds, PREDICTED_AT_ONCE, set()):
            predictions, groups = [], []
            for place, row in enumerate(piece.frame.to_pylist()):
                one = Piece(piece.numbers[place : place + 1], piece.frame)
                prediction, awake = in_file(partial(_one, model, row), one, source.name)
                predictions.append(prediction)
                groups.append(guarded(SEPARATOR.join(awake)))
            file.write(piece.numbers, np.array(predictions), None, groups)
            count += len(predictions)
            advance(len(predictions), reached)
    return count


def _one(model: "Groupwise", row: dict[str, Any]) -> tuple[float, list[str]]:
    return model.predict_one(row), model.groups.of_row(row)[0]


def _kinds(
    model: "Groupwise", reading: model_file.Reading, source: "Source", target: str | None
) -> dict[str, Kind]:
    """What the columns hold: as the snapshot says, or else as the file looks."""
    if reading.kinds is not None:
        return dict(reading.kinds)
    kinds = dict(first_pass(source, None, None).kinds)
    if target is not None and target not in kinds:
        return kinds
    if model.features is not None:
        used = {*model.features, *model.groups.columns, target}
        kinds = {name: kind for name, kind in kinds.items() if name in used}
    for name, known in model.field_kinds.items():
        if name in kinds:
            kinds[name] = known
    return kinds


def _pieces(
    source: "Source", kinds: dict[str, Kind], size: int, needed: set[str]
) -> Iterator[tuple[Piece, int]]:
    """Pieces of a file, each with the bytes read since the last."""
    position = told = read = 0

    def tables() -> Iterator[Any]:
        nonlocal position, read
        for table, reached in source.chunks(list(kinds)):
            absent = [name for name in kinds if name not in table.column_names]
            if not read and absent and (source.format != "JSON Lines" or needed & set(absent)):
                what = "for the label" if absent[0] in needed else "that the model reads"
                raise unknown_column(absent[0], table.column_names, source.name, what)
            position = reached
            yield frame(table, kinds, source.name, read + 1)
            read += table.num_rows

    start = 1
    for table in in_pieces(tables(), size):
        yield Piece(np.arange(start, start + table.num_rows), table), position - told
        told = position
        start += table.num_rows
