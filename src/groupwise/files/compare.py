"""Auditing another model's logged predictions, group by group."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.files.pages import compare_page
from groupwise.files.plan import Plan
from groupwise.files.rows import Piece
from groupwise.files.run import Following, facts
from groupwise.files.scan import Scan
from groupwise.files.tables import Row, ranked
from groupwise.files.text import quoted
from groupwise.regret.curves import Curve, Recorder
from groupwise.report.page import versions
from groupwise.report.tables import json_text
from groupwise.writing import outputs

if TYPE_CHECKING:
    from groupwise.groups import FrameMembership
    from groupwise.regret.table import RegretTable

COMPARISON, REPORT = "compare.json", "report.html"
REGRET_OF = "regret of "
MOST = 3
"""Models at a time, for the sake of tables and colours."""


@dataclass(frozen=True)
class Comparison:
    """A finished audit. ``players`` are the models: name to the key of their regret in a row."""

    scan: Scan
    plan: Plan
    players: dict[str, str]
    rows: list[Row]
    table: "RegretTable"
    curves: Mapping[str, Curve]
    logged: Mapping[str, Mapping[str, Curve]]
    unit: float
    features: int


class Logged:
    """The squared errors of logged predictions, summed by group."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.columns = columns
        self.losses: dict[str, Any] = {}
        self.recorders = {column: Recorder() for column in columns}

    def add(self, piece: Piece, target: str, membership: "FrameMembership") -> None:
        """Some rows with their predictions and labels."""
        labels = piece.frame.column(target).to_numpy()
        rows = np.repeat(np.arange(labels.size), np.diff(membership.indptr))
        for place, column in enumerate(self.columns):
            errors = (piece.frame.column(column).to_numpy() - labels) ** 2
            sums = np.bincount(
                membership.indices,
                weights=membership.weights * errors[rows],
                minlength=len(membership.names),
            )
            for name, loss in zip(membership.names, sums.tolist(), strict=True):
                self.losses.setdefault(name, np.zeros(len(self.columns)))[place] += loss

    def with_regret(self, row: Row) -> Row:
        """A row of the regret table, with the regret of the logged predictions."""
        losses = self.losses.get(row["group"], np.zeros(len(self.columns))).tolist()
        regrets = {
            f"{REGRET_OF}{column}": loss - row["best_loss"]
            for column, loss in zip(self.columns, losses, strict=True)
        }
        return {**row, **regrets}

    def record(self, done: int, rows: Iterable[Row]) -> None:
        """Add a point to the curves."""
        for row in map(self.with_regret, rows):
            for column, recorder in self.recorders.items():
                recorder.record(done, [{**row, "regret": row[f"{REGRET_OF}{column}"]}])


def compare(
    found: Scan,
    plan: Plan,
    columns: Sequence[str],
    out: Path | None,
    jobs: int | None = None,
    progress: bool = True,
) -> Comparison:
    """Run groupwise beside the logged predictions, and compare all of them on every group."""
    plan = replace(plan, kinds={**plan.kinds, **dict.fromkeys(columns, "number")})
    logged, following = Logged(columns), Following(found, plan)
    for piece, result in following.pieces("compare", jobs, progress):
        logged.add(piece, plan.target, result.memberships[0])
        logged.record(following.done, following.reached())
    table = following.record()
    logged.record(following.done, table)
    players = {column: f"{REGRET_OF}{column}" for column in columns}
    rows = ranked(map(logged.with_regret, table.rows), players[columns[0]])
    compared = Comparison(
        found,
        plan,
        players,
        rows,
        table,
        following.recorder.curves(),
        {column: recorder.curves() for column, recorder in logged.recorders.items()},
        following.model.loss.unit,
        len(following.model.feature_names),
    )
    if out is not None:
        _write(compared, out)
    return compared


def check_columns(found: Scan, target: str | None, columns: Sequence[str]) -> None:
    """Refuse columns that are no predictions."""
    if len(columns) > MOST:
        raise ConfigurationError(f"Compare at most {MOST} models at a time.")
    if len(set(columns)) < len(columns):
        raise ConfigurationError("A --prediction column is named twice.")
    for column in columns:
        profile = found.column(column, "for predictions")
        if column == target:
            raise ConfigurationError(f"{quoted(column)} is the label itself, not a prediction.")
        profile.check_numbers("prediction", "Leave out the rows without a prediction.")


def _plain(row: Row, players: Mapping[str, str]) -> Row:
    """A row for JSON, the logged models under their names."""
    logged = {
        name: {"loss": row[key] + row["best_loss"], "regret": row[key]}
        for name, key in players.items()
    }
    kept = {key: value for key, value in row.items() if key not in players.values()}
    return {**kept, "predictions": logged}


def _write(compared: Comparison, out: Path) -> None:
    record = {
        "schema": 1,
        "rows": [_plain(row, compared.players) for row in compared.rows],
        "comparator": compared.table.comparator,
        "predictions": list(compared.players),
        "rounds": compared.scan.rows,
        **facts(compared.scan, compared.plan),
        "versions": versions(),
    }
    with outputs(out) as files:
        files.path(COMPARISON).write_text(json_text(record), "utf-8")
        files.path(REPORT).write_text(compare_page(compared), "utf-8")
        files.publish()
