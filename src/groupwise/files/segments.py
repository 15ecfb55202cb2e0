"""A run in segments: tasks read the rows, predict them, and write what comes of it.

Whoever starts the run holds no rows: only what is summed up by group, and handles to the rest.
Predictions are Parquet, a file for each segment, in a folder that all workers must see.
"""

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute
import pyarrow.parquet as arrow_parquet

from groupwise.engines import opened
from groupwise.errors import ConfigurationError, DataError, OutputError
from groupwise.files.learning import prediction_columns
from groupwise.files.plan import Plan
from groupwise.files.predictions import joined, schema_of
from groupwise.files.profile import Kind
from groupwise.files.ranges import Range, ranges, units_of
from groupwise.files.rows import Piece, as_frames, in_file
from groupwise.files.scan import Scan
from groupwise.files.settings import DROP
from groupwise.files.task import Task
from groupwise.files.text import shown
from groupwise.groups import FrameMembership
from groupwise.intervals import ends_of
from groupwise.pipeline import Encoded, Handles, Pipeline, account, in_turn
from groupwise.progress import progress_bar
from groupwise.protocols import Engine
from groupwise.report.errors import Errors
from groupwise.segments import Settled

if TYPE_CHECKING:
    from groupwise.model import Groupwise
    from groupwise.regret.table import RegretTable

FOLDER, UNFINISHED = "predictions", ".part-"
INSTEAD = "Take such rows out of the files, or leave out --segment."
AHEAD = 2
"""Segments per worker that are on their way at once."""


@dataclass(frozen=True)
class Asked:
    """How a run is cut, and where it goes.

    ``segment`` is how many rows a segment has; ``aggregators_at`` where aggregators begin: with the
    "stream", or anew with every "segment".
    """

    segment: int
    engine: str | Engine = "local"
    aggregators_at: str = "stream"
    jobs: int | None = None

    @property
    def settings(self) -> dict[str, Any]:
        """What numbers depend on: not where they are computed."""
        return {"segment": self.segment, "aggregators_at": self.aggregators_at}


class Job(NamedTuple):
    """What all segments have in common."""

    kinds: dict[str, Kind]
    target: str
    task: Task
    columns: tuple[str, ...]
    """Those of a prediction."""
    folder: Path
    name: str


class Told(NamedTuple):
    """What is kept of a segment."""

    rows: int
    learned: int
    loss: float
    errors: Errors


@dataclass
class Outcome:
    """What came of all segments: the model goes on from there."""

    rows: int = 0
    learned: int = 0
    errors: Errors = field(default_factory=Errors)
    tables: "dict[int, RegretTable]" = field(default_factory=dict)
    """Regret tables by how many rows there were."""


# The tasks.


def read(job: Job, rows: Range) -> pa.Table:
    """The rows of a segment, in the kinds that the model reads, with labels."""
    frames = [frame for frame, _ in as_frames(rows, job.kinds, job.target)]
    piece = Piece(np.arange(1, rows.rows + 1), pa.concat_tables(frames))
    if piece.frame.num_rows < rows.rows:
        raise DataError(f"{shown(rows.name)} has fewer rows than when it was first read.")
    gaps = compute.is_null(piece.frame.column(job.target))
    if compute.any(gaps).as_py():
        place = rows.located(compute.index(gaps, True).as_py() + 1)
        raise DataError(
            f"{place}: the label is missing. Rows without one are predicted in order only: leave "
            "them out, or leave out --segment."
        )
    return job.task.labelled(piece, job.target, rows)


def write(job: Job, rows: Range, frame: pa.Table, encoded: Encoded, settled: Settled) -> Told:
    """Write the predictions of a segment; gives what is summed up of it."""
    outcome, chunk = settled.outcome, encoded.segment.rows[0]
    assert outcome is not None
    loss = job.task.loss
    awake = encoded.segment.awake()
    membership = FrameMembership(
        encoded.members,
        np.asarray(chunk.member_indptr),
        np.searchsorted(awake, chunk.groups),
        np.asarray(chunk.weights),
    )
    predictions = job.task.of_prediction(loss.decode_many(np.array(outcome.prediction)))
    labels = frame.column(job.target)
    ends = [ends_of(loss, np.array(outcome.ends))] if outcome.ends.size else []
    columns = [
        np.arange(rows.first + 1, rows.first + rows.rows + 1),
        *np.ascontiguousarray(np.column_stack([predictions, *ends]).T),
        labels,
        joined(membership),
    ]
    table = pa.table(columns, schema=schema_of(job.columns, job.task.kind))
    if not job.folder.is_dir():
        raise OutputError(
            f"A worker does not see {job.folder}: give --out a folder all nodes have."
        )
    place = job.folder / f"part-{rows.first:012d}.parquet"
    part = place.with_name(f"{UNFINISHED}{secrets.token_hex(6)}")
    try:
        arrow_parquet.write_table(table, part)
        os.replace(part, place)  # a task that is begun again writes the same once more
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    errors = Errors(loss.high - loss.low, loss.unit)
    truth = job.task.encode(labels)
    losses = job.task.losses(predictions, truth)
    errors.add(membership, losses, predictions[:, 0] - truth)
    return Told(rows.rows, encoded.learned, float(losses.sum()), errors)


# The driver.


def refuse(plan: Plan) -> None:
    """Raise ConfigurationError for what rows can only be read in order for."""
    for asked, option, instead in (
        (plan.order, "--order", "Sort the files first"),
        (plan.skip_bad, "--skip-bad", "Take bad rows out of the files first"),
        (plan.missing == DROP, "--missing drop", "Say --missing indicator"),
    ):
        if asked:
            raise ConfigurationError(
                f"{option} goes through all rows in order, and --segment does not. {instead}, or "
                "leave out --segment."
            )


def run(
    model: "Groupwise",
    found: Scan,
    plan: Plan,
    asked: Asked,
    folder: Path,
    points: int = 0,
    largest: int | None = None,
    progress: bool = True,
    most: int | None = None,
) -> Outcome:
    """Predict and learn the rows of files in segments; predictions go to a folder.

    Regret tables of the largest groups are taken at so many ``points``. ``most`` bounds how many
    segments there are.
    """
    parts, carried, reader = model.hand_out(asked.segment, asked.aggregators_at)
    folder.mkdir()
    columns = tuple(prediction_columns(model, plan.task))
    job = Job(plan.kinds, plan.target, plan.task, columns, folder.resolve(), found.source.name)
    every = list(islice(ranges(units_of(found), asked.segment), most))
    noted = set(np.linspace(0, len(every) - 1, points + 2)[1:-1].astype(int).tolist())
    loss = plan.task.loss
    outcome = Outcome(errors=Errors(loss.high - loss.low, loss.unit))
    with opened(asked.engine, asked.jobs) as engine:
        pipeline = Pipeline(engine, parts, carried, reader, plan.target, model.issued)
        given = engine.put(job)
        tables: dict[int, Any] = {}

        def submitted() -> Iterator[Any]:
            for number, rows in enumerate(every):
                at: Handles = pipeline.next(rows.first, read, given, rows)
                if number in noted:
                    state = at.reader, at.begin, at.recorded, at.settled
                    done = rows.first + rows.rows
                    tables[done] = engine.submit(account, pipeline.parts, *state, done, largest)
                yield engine.submit(write, given, rows, at.frame, at.encoded, at.settled)

        everything = range(1, found.rows + 1)  # numbers that take no room
        bar = progress_bar(found.rows, "predict and learn", progress)
        with in_file(found.source, everything, INSTEAD), bar as advance:
            for told in in_turn(engine, submitted(), AHEAD):
                outcome.rows += told.rows
                outcome.learned += told.learned
                outcome.errors.join(told.errors)
                advance(told.rows)
        for part in folder.glob(f"{UNFINISHED}*"):  # of workers that were killed
            part.unlink(missing_ok=True)
        outcome.tables = {done: engine.get(table) for done, table in tables.items()}
        model.take_over(*pipeline.finish(), outcome.rows, outcome.learned)
    return outcome
