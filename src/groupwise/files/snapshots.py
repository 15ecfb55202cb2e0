"""Snapshots of models that learn from files: how their rows are read, and going on from them."""

import math
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from groupwise import archive
from groupwise.errors import ConfigurationError, DataError, SnapshotError
from groupwise.features.derived import columns_of, split
from groupwise.files.aside import Aside
from groupwise.files.chances import Nats
from groupwise.files.learning import complete, learned, prediction_columns, previewed
from groupwise.files.logged import calibration_of
from groupwise.files.predictions import prediction_file
from groupwise.files.profile import KINDS, Kind
from groupwise.files.rows import AT_MOST, Piece, in_file_order
from groupwise.files.scan import scan
from groupwise.files.tables import OURS, Measure
from groupwise.files.task import Task
from groupwise.files.text import listed, rows_in
from groupwise.losses import Square
from groupwise.writing import alone, replaced

if TYPE_CHECKING:
    from groupwise.files.source import Source
    from groupwise.model import Groupwise
    from groupwise.regret.table import RegretTable

PREDICTED_AT_ONCE = 5_000


@dataclass(frozen=True)
class Reading:
    """The label's column, and the kind of every column that is read; None where it is not known.

    ``drops`` says whether rows are left out in which a feature is missing.
    """

    target: str | None = None
    kinds: Mapping[str, Any] | None = None
    drops: bool = False


def save(model: "Groupwise", path: Path, reading: Reading) -> None:
    """Write a snapshot, which ``groupwise.load`` reads too."""
    kinds = dict(reading.kinds or {}) or None
    drops = {"drops": True} if reading.drops else {}
    model.save(path, table={"target": reading.target, "kinds": kinds, **drops})


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
    if kinds is not None and any(one not in KINDS for one in kinds.values()):
        raise SnapshotError(f"{path} is damaged: a column is of no kind that there is.")
    return model, Reading(target, kinds, known and bool(table.get("drops", False)))


def look(path: Path, last: int | None = None) -> "tuple[RegretTable, Measure, dict[str, Any]]":
    """The regret table of a snapshot, what its figures mean, and calibration by class, if any.

    Of all rounds or, where the model has windows, of the ``last`` of every group.
    """
    model, reading = load(path)
    task = Task(model.loss)
    table = model.regret(progress=True, last=last)
    if not task.is_chance:
        return table, Measure(reading.target, squares=model.loss.kernel == "square"), {}
    tables = calibration_of(model, task)
    known = {event: found.rows for event, found in tables.items()}
    measure = Nats.of(reading.target, task.names, tables, len(model.feature_names))
    return table, measure, {"calibration": {OURS: known}}


@dataclass(frozen=True)
class Learned:
    """Rows that were learned now, those learned ever, and the mean loss of the new ones.

    ``remarks`` are about rows that were set aside, and about a range that was widened.
    """

    rows: int
    settled: int
    loss: float
    task: Task
    remarks: tuple[str, ...] = ()

    @property
    def told(self) -> str:
        """How many there were, and what they cost."""
        if not self.rows:
            return f"No row learned, {self.settled:,} in all"
        one = self.rows == 1
        said, whose = (
            f"{rows_in(self.rows)} learned, {self.settled:,} in all",
            "its" if one else "their",
        )
        if self.task.is_chance:
            return f"{said}; {whose} {'' if one else 'mean '}log loss is {self.loss:.6g} nats"
        return f"{said}; {whose} {'' if one else 'typical '}error is {math.sqrt(self.loss):.6g}"


@dataclass(frozen=True)
class Further:
    """What is asked of further rows.

    ``experts`` are the columns of the model's experts, where they have other names here; ``skip``
    says whether bad rows are skipped, ``widen`` whether the range of labels is made wide enough.
    """

    target: str | None = None
    experts: Sequence[str] = ()
    skip: bool = False
    widen: bool = False


def learn(
    path: Path,
    source: "Source",
    place: Path,
    asked: Further,
    jobs: int | None = None,
    waiting: Callable[[], None] = lambda: None,
) -> Learned:
    """Learn rows from a file and write the model to ``place``, whole or not at all.

    Of several processes that learn into one place, each begins when the one before has written it;
    ``waiting`` is called if this one has to wait.
    """
    with alone(place, waiting):
        return _learn(path, source, place, asked, jobs)


def _learn(path: Path, source: "Source", place: Path, asked: Further, jobs: int | None) -> Learned:
    model, reading = load(path)
    target = asked.target or reading.target
    if target is None:
        raise DataError(f"{path} does not say which column holds the label. Give --target COLUMN.")
    task = Task(model.loss)
    kinds = _kinds(model, reading, source, target)
    kinds[target] = task.kind_of(kinds.get(target, "number"))
    names = _names(model, asked.experts)
    remarks: list[str] = []
    if asked.widen:
        model, remarks = _wide_enough(model, source, target)
        task = Task(model.loss)
    aside, rows, loss = Aside(source, asked.skip), 0, 0.0
    here = _here(kinds, names)
    with model.all_or_nothing():
        for found in in_file_order(source, here, AT_MOST, target, "learn", aside):
            piece = _renamed(found, names)
            if reading.drops:
                piece = complete(piece, _features(model, piece), aside)
            for part in learned(model, piece, target, task, aside, jobs):
                rows += len(part.piece.numbers)
                loss += float(part.replay.loss.sum())
    save(model, place, Reading(target, kinds, reading.drops))
    settled = model.regret(0).settled
    return Learned(rows, settled, loss / max(rows, 1), task, (*remarks, *aside.told))


def _wide_enough(
    model: "Groupwise", source: "Source", target: str
) -> "tuple[Groupwise, list[str]]":
    """The model with a range that holds every label of a file, and what to say of it."""
    from groupwise.snapshot import widened

    loss = model.loss
    if not isinstance(loss, Square):
        raise ConfigurationError("--widen is for labels that are numbers, which have a range.")
    label = scan(source, target, progress=True).column(target, "for the label")
    if not label.distinct:
        return model, []
    label.check_numbers("label")
    low, high = min(loss.reach[0], label.low), max(loss.reach[1], label.high)
    if (low, high) == loss.reach:
        return model, []
    wider = widened(model, low, high)
    said = f"The range of labels is widened to {low:g},{high:g}; losses stay in units of "
    said += f"{loss.high - loss.low:g}, the width of {loss.low:g},{loss.high:g}"
    proved = getattr(model.aggregator, "widens", False)
    kept = "certificates hold as before" if proved else "certificates are void from now on"
    return wider, [f"{said}, and {kept}."]


def _features(model: "Groupwise", piece: Piece) -> list[str]:
    """The columns that are features as they are."""
    declared = split(model.features)[0]
    return [name for name in declared or () if name in piece.frame.column_names]


def predict(
    path: Path, source: "Source", out: Path | None, asked: Further
) -> tuple[int, list[str]]:
    """Write a prediction for every row of a file, to standard output where ``out`` is None.

    The model learns nothing. Gives the number of rows, and what to say of those left out.
    """
    model, reading = load(path)
    target = asked.target or reading.target
    task, known = Task(model.loss), _kinds(model, reading, source, target)
    names, aside = _names(model, asked.experts), Aside(source, asked.skip)
    kinds = _here({name: kind for name, kind in known.items() if name != target}, names)
    count = 0
    with ExitStack() as opened:
        stream: IO[bytes] = sys.stdout.buffer
        if out is not None:
            stream = opened.enter_context(opened.enter_context(replaced(out)).open("wb"))
        write = opened.enter_context(prediction_file(stream, prediction_columns(model, task)))
        for found in in_file_order(source, kinds, PREDICTED_AT_ONCE, None, "predict", aside):
            piece = _renamed(found, names)
            if reading.drops:
                piece = complete(piece, _features(model, piece), aside)
            piece, predictions, groups = previewed(model, piece, target, task, aside)
            if len(piece.numbers):
                write(piece.numbers, predictions, groups)
            count += len(piece.numbers)
    return count, aside.told


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
    known = model.field_kinds
    truths = {name for name, kind in kinds.items() if kind == "boolean"}
    kinds = {name: known.get(name, kind) for name, kind in kinds.items()}
    return kinds | {name: "boolean" for name in truths if kinds[name] == "number"}
