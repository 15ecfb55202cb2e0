"""A file through a model: predictions, regret, a snapshot and a report."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from groupwise.progress import meter
from groupwise.report.page import versions
from groupwise.report.tables import json_text
from groupwise.tabular import model_file
from groupwise.tabular.curves import POINTS, Following
from groupwise.tabular.predictions import joined, prediction_file
from groupwise.tabular.ranking import afterwards
from groupwise.tabular.rows import AT_MOST, pieces, replay
from groupwise.tabular.scan import Scan, scan
from groupwise.writing import outputs

if TYPE_CHECKING:
    from groupwise.regret.curves import Curve
    from groupwise.regret.table import RegretTable
    from groupwise.tabular.plan import Plan
    from groupwise.tabular.source import Source

PREDICTIONS, REGRET, MODEL, REPORT = "predictions.csv", "regret.json", "model.gw", "report.html"


@dataclass(frozen=True)
class Finished:
    """A run that is over."""

    scan: Scan
    plan: "Plan"
    table: "RegretTable"
    curves: Mapping[str, "Curve"]
    unit: float
    features: int
    seconds: float

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to know about the columns, before and after the run."""
        return (*self.plan.warnings, *afterwards(self.table.rows, self.plan.target))

    @property
    def speed(self) -> float:
        """Rows a second, the first pass not counted."""
        return self.scan.rows / max(self.seconds, 1e-9)


def first_pass(
    source: "Source", target: str | None, order: str | None, progress: bool = True
) -> Scan:
    """Look at every column of a file."""
    with meter(source.size, "first pass", progress) as advance:
        return scan(source, target, order, advance)


def piece_size(rows: int) -> int:
    """Rows at a time: few enough that even a short stream has curves."""
    return max(1, min(AT_MOST, -(-rows // POINTS)))


def run(
    found: Scan, plan: "Plan", out: Path, jobs: int | None = None, progress: bool = True
) -> Finished:
    """Run a plan and write everything that comes of it to ``out``."""
    from groupwise.tabular.page import run_page

    source = found.source
    model = plan.model()
    following = Following(model, found.rows)
    started = time.monotonic()
    with outputs(out) as files:
        done = 0
        with (
            prediction_file(files.path(PREDICTIONS)) as predictions,
            meter(found.rows, "predict and learn", progress) as advance,
        ):
            for piece in pieces(found, plan, piece_size(found.rows)):
                result = replay(model, piece, plan.target, source.name, jobs)
                labels = piece.frame.column(plan.target)
                (membership,) = result.memberships
                predictions.write(piece.numbers, result.prediction, labels, joined(membership))
                done += len(piece.numbers)
                following.reached(done)
                advance(len(piece.numbers), len(piece.numbers))
        table = following.finish(done)
        seconds = time.monotonic() - started
        width, unit = len(model.feature_names), model.loss.unit
        curves = following.recorder.curves()
        finished = Finished(found, plan, table, curves, unit, width, seconds)
        model_file.save(model, files.path(MODEL), model_file.Reading(plan.target, plan.kinds))
        files.path(REGRET).write_text(json_text(record(finished)), "utf-8")
        files.path(REPORT).write_text(run_page(finished), "utf-8")
        files.publish()
    return finished


def record(finished: Finished) -> dict[str, Any]:
    """All figures of a run as plain values."""
    return {
        "schema": 1,
        "rows": finished.table.rows,
        "comparator": finished.table.comparator,
        "rounds": finished.scan.rows,
        **facts(finished.scan, finished.plan),
        "warnings": list(finished.warnings),
        "versions": versions(),
    }


def facts(found: Scan, plan: "Plan") -> dict[str, Any]:
    """The data and the settings as plain values."""
    return {
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
        "warnings": list(plan.warnings),
    }
