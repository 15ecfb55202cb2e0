"""A file through a model: predictions, regret along the way, a snapshot and a report.

Or, as an audit, beside the logged predictions of other models, all of them compared on every group.
"""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from groupwise.archive import MODEL
from groupwise.errors import DataError, OutputError
from groupwise.files import segments
from groupwise.files.aside import Aside
from groupwise.files.chances import Calibrations, Nats, calibrated
from groupwise.files.covered import Covered
from groupwise.files.learning import Done, complete, done, prediction_columns
from groupwise.files.logged import Scores, calibration_of, said_for_sure
from groupwise.files.pages import compare_page, run_page
from groupwise.files.plan import Plan
from groupwise.files.predictions import prediction_file
from groupwise.files.recent import RECENT
from groupwise.files.rows import AT_MOST, Piece, pieces, without
from groupwise.files.scan import Scan
from groupwise.files.settings import DROP
from groupwise.files.several import files_of
from groupwise.files.snapshots import Reading, save
from groupwise.files.tables import OURS, Measure, Row, afterwards
from groupwise.files.text import quoted, shown
from groupwise.progress import progress_bar
from groupwise.regret.calibration import UNITS
from groupwise.regret.curves import Curve, Recorder
from groupwise.regret.table import LOST
from groupwise.report.errors import Errors
from groupwise.report.provenance import command, moment, versions
from groupwise.report.tables import json_text
from groupwise.writing import Outputs, outputs, without_parts

if TYPE_CHECKING:
    from groupwise.regret.calibration import CalibrationTable
    from groupwise.regret.table import RegretTable
    from groupwise.replay_frames import FrameReplay

PREDICTIONS, REGRET, REPORT = "predictions.csv", "regret.json", "report.html"
COMPARISON = "compare.json"
LONGEST = 1 << 20
"""Bytes of a header that is looked at: with many classes it is long."""
POINTS = 60
"""Points on a curve, where the groups are few."""
LEAST = 6
SOLVES = 8_000
"""Least-squares problems that all curves together may take; each is well under a millisecond where
features are few, so that curves cost a few seconds at most."""
FOLLOWED = 1_000
"""Where there are more groups, only the largest have curves."""
WIDE = 28
"""From so many features on, problems get markedly slower and points fewer."""
REFITS = 400_000
"""Rows, in all groups, that logistic models may be fitted to for curves: about four seconds."""
FIT = 2_000
"""So many rows could be fitted while a fit to a few rows is made."""
REFITTED, REFIT_POINTS = 6, 12
"""Of probabilities only so many groups have curves, of so many points at most."""


@dataclass(frozen=True)
class Finished:
    """A run that is over, or an audit of ``players``, models whose predictions were logged.

    ``players`` has the names of these models, and the keys of their regret in a row; ``logged`` the
    same names, and the curve of every group. ``seconds`` do not count the first pass. ``hashed``
    are the columns whose values share features, and how many.
    """

    scan: Scan
    plan: Plan
    table: "RegretTable"
    curves: Mapping[str, Curve]
    foreseen: Mapping[str, Curve]
    """The same with the bound that is known before the first row in the certificate's place."""
    features: int
    seconds: float
    hashed: Mapping[str, int]
    players: Mapping[str, str]
    logged: Mapping[str, Mapping[str, Curve]]
    calibration: Calibrations = field(default_factory=dict)
    """Ours first; empty where numbers were predicted."""
    remarks: tuple[str, ...] = ()
    """What to know of rows that were set aside, and of the other models' predictions."""
    covered: Covered | None = None
    """What there is to say of intervals, where there are such."""
    recent: "RegretTable | None" = None
    """The table of the last rounds of every group, where there are windows."""
    errors: Mapping[str, Errors] = field(default_factory=dict)
    """Those of every model by the key of its regret in a row, the audited ones first."""
    asked: segments.Asked | None = None
    """How it was cut, where it ran in segments."""
    command: str = ""
    made: str = field(default_factory=moment)

    @cached_property
    def measure(self) -> Measure:
        """What the figures mean."""
        plan, task = self.plan, self.plan.task
        if not task.is_chance:
            return Measure(plan.target)
        return Nats.of(plan.target, task.names, self.calibration[OURS], self.features)

    @cached_property
    def rows(self) -> list[Row]:
        """A row per group, the worst first; in an audit those on which the first model is worst."""
        return self.measure.ranked(self.table.rows, next(iter(self.players.values()), "regret"))

    @property
    def verdicts(self) -> list[str]:
        """What came of it, in a few sentences."""
        told = self.measure.headlines(self.rows, self.players)
        beside = [self.measure.beside(self.rows, name) for name in self.plan.experts]
        within = [] if self.covered is None else self.covered.verdicts
        return [*told, *beside, *calibrated(self.calibration), *within]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know about the columns, before and after the run."""
        known = [] if self.players else afterwards(self.table.rows, self.plan.target, self.measure)
        shared = [
            f"Column {quoted(name)} has more values than features of its own: some or all of its "
            f"values share {columns} features. Groups stay one per value."
            for name, columns in self.hashed.items()
            if name not in self.plan.features
        ]
        return (*self.plan.warnings, *self.remarks, *shared, *known)


class Following:
    """Replays a plan's rows through its model, and takes down the regret table at times.

    Beside it, the losses of other models' logged predictions are summed by group, and where
    predictions are probabilities, the calibration of all of them.
    """

    def __init__(self, found: Scan, plan: Plan) -> None:
        columns = [column for one in plan.logged for column in one.columns]
        self.scan = found
        self.plan = replace(plan, kinds={**plan.kinds, **dict.fromkeys(columns, "number")})
        self.task = plan.task
        self.model = plan.model()
        self.players = {one.name: f"regret of {one.name}" for one in plan.logged}
        keys = "regret", *self.players.values(), *map(lost_by, plan.experts)
        self.recorders = {key: Recorder() for key in keys}
        self.scores = {one.name: Scores(plan.task) for one in plan.logged}
        loss, chance = plan.task.loss, plan.task.is_chance
        sizes = (1.0, 1.0) if chance else (loss.high - loss.low, loss.unit)
        self.errors = {key: Errors(*sizes) for key in (*self.players.values(), "regret")}
        self.covered: Covered | None = None
        if plan.interval is not None:
            self.covered = Covered(plan.interval, loss, plan.target, self.players)
        self.aside = Aside(found.source, plan.skip_bad)
        self.done, self._next = 0, 0.0
        self._spent = 0.0
        self._rounds: Counter[str] = Counter()
        self._started = time.monotonic()

    def pieces(self, what: str, jobs: int | None, progress: bool) -> Iterator[Done]:
        """The rows, so many at a time, once they are predicted, and learned where they can be."""
        rows, plan = self.scan.rows, self.plan
        # Few enough at a time that even a short stream has curves, of as many points as they get.
        size = max(1, min(AT_MOST, -(-rows // points(1, len(plan.features)))))
        # On an error the model is thrown away, and with one copy of it before the first row.
        with self.model.all_or_nothing(), progress_bar(rows, what, progress) as advance:
            for whole in pieces(self.scan, plan.kinds, plan.order, size, self.aside):
                piece = self._told(whole) if plan.skip_bad else whole
                if plan.missing == DROP:
                    piece = complete(piece, plan.filled, self.aside)
                own = self.model, piece, plan.target, self.task
                for part in done(*own, self.aside, jobs):
                    self.done += len(part.piece.numbers)
                    if part.replay is not None:
                        self._add(part.piece, part.replay)
                    yield part
                advance(len(whole.numbers))
        if not self.model.issued:
            raise DataError(f"No row of {shown(self.scan.source.name)} could be learned.")

    def _told(self, piece: Piece) -> Piece:
        """The rows in which all the other models have predicted something."""
        for one in self.plan.logged:
            refused = dict(one.refused(piece, self.task))
            for row, reason in refused.items():
                self.aside.add(piece.numbers[row], reason)
            piece = without(piece, list(refused)) if refused else piece
        return piece

    def _add(self, piece: Piece, result: "FrameReplay") -> None:
        """Sum up errors on some rows, and what the other models lost."""
        membership = result.memberships[0]
        counts = np.bincount(membership.indices, minlength=len(membership.names))
        self._rounds.update(dict(zip(membership.names, counts.tolist(), strict=True)))
        labels = self.task.encode(piece.frame.column(self.plan.target))
        said = {"regret": self.task.of_prediction(result.prediction)}
        for one in self.plan.logged:
            predictions = one.read(piece, self.scan.source.name)
            self.scores[one.name].add(membership, predictions, labels)
            said[self.players[one.name]] = predictions
            if self.covered is not None:
                self.covered.add(one.name, membership, predictions[:, 0], labels)
        for key, predictions in said.items():
            signed = predictions[:, 0] - labels if predictions.shape[1] == 1 else None
            self.errors[key].add(membership, self.task.losses(predictions, labels), signed)

    def reached(self) -> Iterable[dict[str, Any]]:
        """Take down the table of the largest groups if it is time to; gives what was noted."""
        if self.done < self._next or self.done >= self.scan.rows or not self._rounds:
            return ()
        groups, features = len(self.model.group_names), len(self.model.feature_names)
        if self.task.is_chance:
            return self._refitted(min(groups, REFITTED))
        self._next = self.done + self.scan.rows / points(min(groups, FOLLOWED), features)
        return self.record(FOLLOWED)

    def _refitted(self, groups: int) -> Iterable[dict[str, Any]]:
        """The same where every figure takes a fit to all rows so far.

        At even distances where that can be afforded, or else whenever rows have doubled, until
        what may be spent is spent.
        """
        rows = sum(count for _, count in self._rounds.most_common(groups))
        work = self.task.loss.nodes * (rows + FIT * groups)
        if self._spent + work > REFITS:
            self._next = math.inf
            return ()
        self._spent += work
        whole = self.task.loss.nodes * (rows * self.scan.rows / self.done / 2.0 + FIT * groups)
        many = REFITS / whole
        even = self.scan.rows / min(many, REFIT_POINTS)
        self._next = self.done + (even if many >= LEAST else self.done)
        return self.record(groups)

    def take(self, outcome: segments.Outcome) -> None:
        """Take over what came of a run in segments."""
        self.errors["regret"] = outcome.errors
        for self.done, table in outcome.tables.items():
            self._note(table)
        self.done = outcome.rows

    def record(self, largest: int | None = None, progress: bool = False) -> "RegretTable":
        """Take down the table of all groups, or of the largest."""
        table = self.model.regret(largest, progress)
        if self.covered is not None:
            self.covered.record(self.model, largest)
        return self._note(table)

    def _note(self, table: "RegretTable") -> "RegretTable":
        """Add a point to every curve."""
        for name, scores in self.scores.items():
            for row in table:
                row[self.players[name]] = scores.losses[row["group"]] - row["best_loss"]
        for key, recorder in self.recorders.items():
            own = key.startswith(LOST)
            recorder.record(
                self.done,
                ({**row, "regret": row[key] - (row["best_loss"] if own else 0.0)} for row in table),
            )
        return table

    def finished(self, progress: bool) -> Finished:
        """What came of it, when all rows are learned."""
        table = self.record(progress=progress)
        seconds = time.monotonic() - self._started
        curves = {key: recorder.curves() for key, recorder in self.recorders.items()}
        calibration: dict[str, Mapping[str, CalibrationTable]] = {}
        if self.task.is_chance:
            calibration[OURS] = calibration_of(self.model, self.task)
            calibration |= {name: scores.calibration() for name, scores in self.scores.items()}
        return Finished(
            scan=self.scan,
            plan=self.plan,
            table=table,
            curves=curves["regret"],
            foreseen=self.recorders["regret"].curves("a_priori"),
            features=len(self.model.feature_names),
            seconds=seconds,
            hashed=self.model.hashed_fields,
            players=self.players,
            logged={
                **{column: curves[lost_by(column)] for column in self.plan.experts},
                **{column: curves[key] for column, key in self.players.items()},
            },
            calibration=calibration,
            remarks=(
                *self.aside.told,
                *(x for pair in self.scores.items() for x in said_for_sure(*pair)),
            ),
            covered=self.covered,
            recent=self.model.regret(last=RECENT) if self.plan.windows else None,
            errors=self.errors,
            command=command(),
        )


def lost_by(expert: str) -> str:
    """Where a row has the loss of an expert."""
    return f"{LOST}{expert}"


def points(groups: int, features: int) -> int:
    """How many points the curves have.

    >>> points(9, 12), points(500, 30), points(10_000, 12)
    (60, 13, 6)
    """
    slower = max(1.0, (features / WIDE) ** 2)
    return int(np.clip(SOLVES / (max(groups, 1) * slower), LEAST, POINTS))


def run(
    found: Scan, plan: Plan, out: Path, jobs: int | None = None, progress: bool = True
) -> Finished:
    """Run a plan and write everything that comes of it to ``out``."""
    keep_files(found, out)
    following, task = Following(found, plan), plan.task
    with outputs(out) as files:
        with (
            files.path(PREDICTIONS).open("wb") as stream,
            prediction_file(stream, prediction_columns(following.model, task), task.kind) as write,
        ):
            for part in following.pieces("predict and learn", jobs, progress):
                labels = part.piece.frame.column(plan.target)
                write(part.piece.numbers, part.predictions, labels, part.groups)
                following.reached()
        finished = following.finished(progress)
        _write(files, following, finished, without_segments)
    return finished


def keep_files(found: Scan, out: Path) -> None:
    """Raise OutputError where what is written would take the place of a file that is read."""
    out = out.resolve()
    ours = {out / name for name in (PREDICTIONS, REGRET, MODEL, REPORT)}
    for source in files_of(found.source):
        place = source.origin.resolve()
        if not source.remote and (place in ours or place.parent == out / segments.FOLDER):
            raise OutputError(
                f"{shown(source.name)} is read, and would be replaced. Give another --out."
            )


def without_segments(out: Path) -> None:
    """Take away predictions of an earlier run in segments."""
    without_parts(out / segments.FOLDER)


def without_whole(out: Path) -> None:
    """Take away predictions of an earlier run without segments: a file that has their header."""
    with suppress(OSError):
        with (out / PREDICTIONS).open("rb") as file:
            header = file.readline(LONGEST).strip()
        if header.startswith(b"row,") and header.endswith(b",groups"):
            (out / PREDICTIONS).unlink()


def run_in_segments(
    found: Scan, plan: Plan, out: Path, asked: segments.Asked, progress: bool = True
) -> Finished:
    """The same in segments, on any engine; predictions are Parquet, a file for each."""
    segments.refuse(plan)
    keep_files(found, out)
    pa.default_memory_pool().release_unused()  # what the first pass took
    following = Following(found, plan)
    with outputs(out) as files:
        many = min(POINTS, -(-found.rows // asked.segment) - 1) if plan.interval is None else 0
        where = files.path(segments.FOLDER), many, FOLLOWED, progress
        following.take(segments.run(following.model, found, plan, asked, *where))
        finished = replace(following.finished(progress), asked=asked)
        _write(files, following, finished, without_whole)
    return finished


def _write(
    files: Outputs, following: Following, finished: Finished, instead: Callable[[Path], None]
) -> None:
    """Write everything but the predictions, and put all in place ``instead`` of others."""
    plan = finished.plan
    drops = plan.missing == DROP
    save(following.model, files.path(MODEL), Reading(plan.target, plan.kinds, drops))
    files.path(REGRET).write_text(json_text(record(finished)), "utf-8")
    files.path(REPORT).write_text(run_page(finished), "utf-8")
    files.publish(instead)


def compare(
    found: Scan,
    plan: Plan,
    out: Path | None,
    jobs: int | None = None,
    progress: bool = True,
) -> Finished:
    """Run groupwise beside the logged predictions, and compare all of them on every group."""
    following = Following(found, plan)
    with ExitStack() as stack:
        files = None if out is None else stack.enter_context(outputs(out))
        for _ in following.pieces("compare", jobs, progress):
            following.reached()
        compared = following.finished(progress)
        if files is not None:
            files.path(COMPARISON).write_text(json_text(record(compared)), "utf-8")
            files.path(REPORT).write_text(compare_page(compared), "utf-8")
            files.publish()
    return compared


def record(finished: Finished) -> dict[str, Any]:
    """All figures of a run or an audit, its data and its settings, as plain values."""
    found, plan, players = finished.scan, finished.plan, finished.players
    audited = [_audited(row, players) for row in finished.rows] if players else None
    errors = _errors(finished)
    return {
        "schema": 1,
        "units": finished.measure.units([*finished.table.rows[:1], *errors[OURS][:1]]),
        "rows": audited or finished.table.rows,
        "errors": errors,
        "comparator": finished.table.comparator,
        **({"predictions": list(players)} if players else {}),
        **(_calibration(finished.calibration) if finished.calibration else {}),
        **(_coverage(finished.covered) if finished.covered is not None else {}),
        **({} if finished.recent is None else {"last": RECENT, "recent": finished.recent.rows}),
        "rounds": found.rows,
        "data": {
            "name": found.source.name,
            "format": found.source.format,
            "sha256": found.source.sha256,
            "bytes": found.source.size,
            "rows": found.rows,
            "columns": list(found.columns),
        },
        "settings": {
            "target": plan.target,
            "task": plan.task.name,
            **plan.range_or_classes,
            "order": plan.plain_order,
            "learner": plan.learner,
            **plan.parameters,
            "aggregator": plan.aggregator,
            **(finished.asked.settings if finished.asked is not None else {}),
            "interval": plan.interval,
            "windows": plan.windows,
            "indicators": plan.indicators,
            "experts": list(plan.experts),
            "features": plan.plain_features,
            "past": plan.plain_past,
            "hinges": plan.hinges,
            "missing": plan.missing,
            "groups": [declaration.to_dict() for declaration in plan.groups],
        },
        "a_priori": finished.table.foreknown,
        "looked_ahead": list(plan.looked_ahead),
        "warnings": list(finished.warnings),
        "command": finished.command,
        "made": finished.made,
        "versions": versions(),
    }


def _calibration(tables: Calibrations) -> dict[str, Any]:
    """Figures by model, class and group, and what they are in."""
    figures = {
        name: {event: table.rows for event, table in by_class.items()}
        for name, by_class in tables.items()
    }
    return {"calibration": figures, "calibration_units": UNITS}


def _coverage(covered: Covered) -> dict[str, Any]:
    """Coverage by model and group, and what its figures are in."""
    tables = covered.tables
    return {
        "coverage": {name: table.rows for name, table in tables.items()},
        "coverage_units": tables[OURS].units,
    }


def _errors(finished: Finished) -> dict[str, list[Row]]:
    """Error and bias of every model on every group, with their intervals."""
    groups = [row["group"] for row in finished.table.rows]
    names = {key: name for name, key in finished.players.items()} | {"regret": OURS}
    return {
        names[key]: [
            {"group": group, **finished.measure.estimates(errors, group)} for group in groups
        ]
        for key, errors in finished.errors.items()
    }


def _audited(row: Row, players: Mapping[str, str]) -> Row:
    """A row for JSON, the logged models under their names."""
    return {
        **{key: value for key, value in row.items() if key not in players.values()},
        "predictions": {
            name: {"loss": row[key] + row["best_loss"], "regret": row[key]}
            for name, key in players.items()
        },
    }
