"""Snapshots of models that learn from files: how their rows are read, and going on from them."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from groupwise import archive
from groupwise.errors import ConfigurationError, DataError, SnapshotError
from groupwise.features.derived import columns_of
from groupwise.files.chances import Nats
from groupwise.files.logged import calibration_of
from groupwise.files.predictions import SEPARATOR, guarded, prediction_file
from groupwise.files.rows import AT_MOST, Piece, in_file, in_file_order
from groupwise.files.scan import Kind, scan
from groupwise.files.tables import OURS, Measure
from groupwise.files.task import Task
from groupwise.files.text import listed
from groupwise.writing import alone, replaced

if TYPE_CHECKING:
    from groupwise.files.source import Source
    from groupwise.model import Groupwise
    from groupwise.regret.table import RegretTable

PREDICTED_AT_ONCE = 5_000


@dataclass(frozen=True)
class Reading:
    """The label's column, and the kind of every column that is read; None where it is not known."""

    target: str | None = None
    kinds: Mapping[str, Any] | None = None


def save(model: "Groupwise", path: Path, reading: Reading) -> None:
    """Write a snapshot, which ``groupwise.load`` reads too."""
    model.save(path, table={"target": reading.target, "kinds": dict(reading.kinds or {}) or None})


def load(path: Path) -> "tuple[Groupwise, Reading]":
    """Read a snapshot; one written by ``model.save`` says nothing about columns."""
    from groupwise.model import Groupwise
    from groupwise.snapshot import restored

    header, arrays = archive.read(path)
    model = restored(path, header, arrays)
    if not isinstance(model, Groupwise):
        raise SnapshotError(
            f"{path} holds a model in {type(model).__name__}, which files know nothing of. "
            "Use groupwise.load(path) in Python."
        )
    table = header.get("table") or {}
    known = isinstance(table, dict)
    target, kinds = (table.get(key) if known else False for key in ("target", "kinds"))
    if not isinstance(target, str | None) or not isinstance(kinds, dict | None):
        raise SnapshotError(f"{path} is damaged: what it says about columns is unreadable.")
    if kinds is not None and any(one not in ("number", "text") for one in kinds.values()):
        raise SnapshotError(f"{path} is damaged: a column is neither number nor text.")
    return model, Reading(target, kinds)


def look(path: Path) -> "tuple[RegretTable, Measure, dict[str, Any]]":
    """The regret table of a snapshot, what its figures mean, and calibration by class, if any."""
    model, reading = load(path)
    task = Task(model.loss)
    table = model.regret(progress=True)
    if not task.is_chance:
        return table, Measure(reading.target, squares=model.loss.kernel == "square"), {}
    tables = calibration_of(model, task)
    known = {event: found.rows for event, found in tables.items()}
    measure = Nats.of(reading.target, task.names, tables, len(model.feature_names))
    return table, measure, {"calibration": {OURS: known}}


@dataclass(frozen=True)
class Learned:
    """Rows that were learned now, those learned ever, and the mean loss of the new ones."""

    rows: int
    settled: int
    loss: float
    task: Task

    @property
    def told(self) -> str:
        """The loss in words."""
        if self.task.is_chance:
            return f"their mean log loss is {self.loss:.6g} nats"
        return f"their typical error is {math.sqrt(self.loss):.6g}"


def learn(
    path: Path,
    source: "Source",
    target: str | None,
    place: Path,
    jobs: int | None = None,
    waiting: Callable[[], None] = lambda: None,
    experts: Sequence[str] = (),
) -> Learned:
    """Learn rows from a file and write the model to ``place``, whole or not at all.

    ``experts`` are the columns of the model's experts, where they have other names here. Of several
    processes that learn into one place, each begins when the one before has written it; ``waiting``
    is called if this one has to wait.
    """
    with alone(place, waiting):
        return _learn(path, source, target, place, jobs, experts)


def _learn(
    path: Path,
    source: "Source",
    target: str | None,
    place: Path,
    jobs: int | None,
    experts: Sequence[str],
) -> Learned:
    model, reading = load(path)
    target = target or reading.target
    if target is None:
        raise DataError(f"{path} does not say which column holds the label. Give --target COLUMN.")
    task = Task(model.loss)
    kinds = _kinds(model, reading, source, target)
    kinds[target] = task.kind_of(kinds.get(target, "number"))
    names = _names(model, experts)
    rows, loss = 0, 0.0
    with model.all_or_nothing():
        for found in in_file_order(source, _here(kinds, names), AT_MOST, target, "learn"):
            piece = _renamed(found, names)
            frame = task.labelled(piece, target, source.name)
            with in_file(source, piece.numbers):
                result = model.replay(frame, target, jobs)
            rows += len(piece.numbers)
            loss += float(result.loss.sum())
    save(model, place, Reading(target, kinds))
    return Learned(rows, model.regret(0).settled, loss / max(rows, 1), task)


def predict(
    path: Path,
    source: "Source",
    target: str | None,
    out: Path | None,
    experts: Sequence[str] = (),
) -> int:
    """Write a prediction for every row of a file, to standard output where ``out`` is None.

    The model learns nothing. Gives the number of rows.
    """
    model, reading = load(path)
    target = target or reading.target
    task, known = Task(model.loss), _kinds(model, reading, source, target)
    names = _names(model, experts)
    kinds = _here({name: kind for name, kind in known.items() if name != target}, names)
    count = 0
    with ExitStack() as opened:
        stream: IO[bytes] = sys.stdout.buffer
        if out is not None:
            stream = opened.enter_context(opened.enter_context(replaced(out)).open("wb"))
        write = opened.enter_context(prediction_file(stream, task.columns))
        for found in in_file_order(source, kinds, PREDICTED_AT_ONCE, what="predict"):
            piece, predictions, groups = _renamed(found, names), [], []
            for number, row in zip(piece.numbers, piece.frame.to_pylist(), strict=True):
                with in_file(source, [number]):
                    seen = model.preview(row)
                    predictions.append(task.of_prediction(seen.prediction))
                    groups.append(guarded(SEPARATOR.join(seen.names)))
            write(piece.numbers, np.array(predictions), groups)
            count += len(predictions)
    return count


def _names(model: "Groupwise", experts: Sequence[str]) -> dict[str, str]:
    """What the columns of experts are called in a file, and in the model."""
    if experts and len(experts) != len(model.experts):
        raise ConfigurationError(
            f"The model has {len(model.experts)} experts, {listed(model.experts)}: give --expert "
            "once for each, in this order, or not at all where the columns have these names."
            if model.experts
            else "The model has no experts: leave out --expert. They are named when a model is "
            "made, by groupwise run --expert."
        )
    return dict(zip(experts, model.experts, strict=False))


def _here(kinds: dict[str, Kind], names: Mapping[str, str]) -> dict[str, Kind]:
    """The columns to read, under the names that they have in a file."""
    kept = {name: kind for name, kind in kinds.items() if name not in (*names, *names.values())}
    return kept | dict.fromkeys(names, "number")


def _renamed(piece: Piece, names: Mapping[str, str]) -> Piece:
    """The same rows, columns called as the model has them."""
    columns = [names.get(name, name) for name in piece.frame.column_names]
    return piece._replace(frame=piece.frame.rename_columns(columns))


def _kinds(
    model: "Groupwise", reading: Reading, source: "Source", target: str | None
) -> dict[str, Kind]:
    """What the columns hold: as the snapshot says, or else as the file looks."""
    if reading.kinds is not None:
        return dict(reading.kinds)
    kinds = scan(source, None, progress=True).kinds
    if target is not None and target not in kinds:
        return kinds
    used = columns_of(model.features)
    if used is not None:
        used |= {*model.groups.columns, *model.experts, str(target)}
        kinds = {name: kind for name, kind in kinds.items() if name in used}
    return {name: model.field_kinds.get(name, kind) for name, kind in kinds.items()}
