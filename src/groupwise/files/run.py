"""A file through a model: predictions, regret along the way, a snapshot and a report."""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.files.pages import run_page
from groupwise.files.plan import Plan
from groupwise.files.predictions import joined, prediction_file
from groupwise.files.rows import AT_MOST, Piece, in_file, pieces
from groupwise.files.scan import Scan
from groupwise.files.snapshots import Reading, save
from groupwise.files.tables import Row, afterwards, ranked
from groupwise.progress import progress_bar
from groupwise.regret.curves import Curve, Recorder
from groupwise.report.page import versions
from groupwise.report.tables import json_text
from groupwise.writing import outputs

if TYPE_CHECKING:
    from groupwise.regret.table import RegretTable
    from groupwise.replaying import FrameReplay

PREDICTIONS, REGRET, MODEL, REPORT = "predictions.csv", "regret.json", "model.gw", "report.html"
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


@dataclass(frozen=True)
class Finished:
    """A run that is over, or an audit of ``players``: models whose predictions were logged."""

    scan: Scan
    plan: Plan
    table: "RegretTable"
    curves: Mapping[str, Curve]
    unit: float
    features: int
    seconds: float
    players: Mapping[str, str] = field(default_factory=dict)
    """The name of a model to the key of its regret in a row."""
    logged: Mapping[str, Mapping[str, Curve]] = field(default_factory=dict)
    """The name of a model to the curve of every group."""

    @property
    def rows(self) -> list[Row]:
        """A row per group, the worst first; in an audit those on which the first model is worst."""
        return ranked(self.table.rows, next(iter(self.players.values()), "regret"))

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know about the columns, before and after the run."""
        known = [] if self.players else afterwards(self.table.rows, self.plan.target)
        return (*self.plan.warnings, *known)

    @property
    def speed(self) -> float:
        """Rows a second, the first pass not counted."""
        return self.scan.rows / max(self.seconds, 1e-9)


class Following:
    """Replays a plan's rows through its model, and takes down the regret table at times."""

    def __init__(self, found: Scan, plan: Plan) -> None:
        self.scan = found
        self.plan = plan
        self.model = plan.model()
        self.recorder = Recorder()
        self.done, self._next = 0, 0.0
        self._started = time.monotonic()

    def pieces(
        self, what: str, jobs: int | None, progress: bool
    ) -> "Iterator[tuple[Piece, FrameReplay]]":
        """The rows, so many at a time, once they are learned."""
        rows, plan = self.scan.rows, self.plan
        # Few enough at a time that even a short stream has curves.
        size = max(1, min(AT_MOST, -(-rows // POINTS)))
        # On an error the model is thrown away, and with one copy of it before the first row.
        with self.model.all_or_nothing(), progress_bar(rows, what, progress) as advance:
            for piece in pieces(self.scan, plan.kinds, plan.order, size):
                with in_file(self.scan.source, piece.numbers):
                    result = self.model.replay(piece.frame, plan.target, jobs)
                self.done += len(piece.numbers)
                yield piece, result
                advance(len(piece.numbers))

    def reached(self) -> Iterable[dict[str, Any]]:
        """Take down the table of the largest groups if it is time to; gives what was noted."""
        if self.done < self._next or self.done >= self.scan.rows:
            return ()
        groups = min(len(self.model.group_names), FOLLOWED)
        wanted = points(groups, len(self.model.feature_names))
        self._next = self.done + self.scan.rows / wanted
        return self.record(FOLLOWED)

    def record(self, largest: int | None = None) -> "RegretTable":
        """Take down the table of all groups, or of the largest."""
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # solves many small problems sooner than several threads do
            table = self.model.regret(largest)
        self.recorder.record(self.done, table)
        return table

    def finished(self) -> Finished:
        """What came of it, when all rows are learned."""
        table, seconds = self.record(), time.monotonic() - self._started
        unit, width = self.model.loss.unit, len(self.model.feature_names)
        curves = self.recorder.curves()
        return Finished(self.scan, self.plan, table, curves, unit, width, seconds)


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
    following = Following(found, plan)
    with outputs(out) as files:
        with files.path(PREDICTIONS).open("wb") as stream, prediction_file(stream) as write:
            for piece, result in following.pieces("predict and learn", jobs, progress):
                labels = piece.frame.column(plan.target)
                write(piece.numbers, result.prediction, labels, joined(result.memberships[0]))
                following.reached()
        finished = following.finished()
        save(following.model, files.path(MODEL), Reading(plan.target, plan.kinds))
        files.path(REGRET).write_text(json_text(record(finished)), "utf-8")
        files.path(REPORT).write_text(run_page(finished), "utf-8")
        files.publish()
    return finished


def record(finished: Finished) -> dict[str, Any]:
    """All figures of a run or an audit, its data and its settings, as plain values."""
    found, plan = finished.scan, finished.plan
    return {
        "schema": 1,
        "rows": finished.table.rows,
        "comparator": finished.table.comparator,
        **({"predictions": list(finished.players)} if finished.players else {}),
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
            "range": list(plan.range),
            "order": plan.order,
            "learner": plan.learner,
            "penalty": plan.penalty,
            "aggregator": plan.aggregator,
            "indicators": plan.indicators,
            "features": plan.features,
            "groups": [declaration.to_dict() for declaration in plan.groups],
        },
        "looked_ahead": list(plan.looked_ahead),
        "warnings": list(finished.warnings),
        "versions": versions(),
    }
