"""Auditing another model's logged predictions, group by group."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from groupwise.files.pages import compare_page
from groupwise.files.plan import Plan
from groupwise.files.rows import Piece
from groupwise.files.run import REPORT, Finished, Following, record
from groupwise.files.scan import Scan
from groupwise.files.tables import Row
from groupwise.regret.curves import Recorder
from groupwise.report.tables import json_text
from groupwise.writing import outputs

if TYPE_CHECKING:
    from groupwise.groups import FrameMembership

COMPARISON = "compare.json"
REGRET_OF = "regret of "


class Logged:
    """The squared errors of logged predictions, summed by group."""

    def __init__(self, columns: Sequence[str]) -> None:
        self.losses: dict[str, dict[str, float]] = {name: defaultdict(float) for name in columns}
        self.recorders = {name: Recorder() for name in columns}

    def add(self, piece: Piece, target: str, membership: "FrameMembership") -> None:
        """Some rows with their predictions and labels."""
        labels = piece.frame.column(target).to_numpy()
        rows = np.repeat(np.arange(labels.size), np.diff(membership.indptr))
        for column, losses in self.losses.items():
            errors = (piece.frame.column(column).to_numpy() - labels) ** 2
            weights, least = membership.weights * errors[rows], len(membership.names)
            sums = np.bincount(membership.indices, weights, least).tolist()
            for name, loss in zip(membership.names, sums, strict=True):
                losses[name] += loss

    def with_regret(self, row: Row) -> Row:
        """A row of the regret table, with the regret of the logged predictions."""
        regrets = {
            f"{REGRET_OF}{column}": losses[row["group"]] - row["best_loss"]
            for column, losses in self.losses.items()
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
) -> Finished:
    """Run groupwise beside the logged predictions, and compare all of them on every group."""
    plan = replace(plan, kinds={**plan.kinds, **dict.fromkeys(columns, "number")})
    logged, following = Logged(columns), Following(found, plan)
    for piece, result in following.pieces("compare", jobs, progress):
        logged.add(piece, plan.target, result.memberships[0])
        logged.record(following.done, following.reached())
    finished = following.finished()
    logged.record(following.done, finished.table)
    compared = replace(
        finished,
        table=replace(finished.table, rows=[logged.with_regret(row) for row in finished.table]),
        players={column: f"{REGRET_OF}{column}" for column in columns},
        logged={column: recorder.curves() for column, recorder in logged.recorders.items()},
    )
    if out is not None:
        rows = [_plain(row, compared.players) for row in compared.rows]
        with outputs(out) as files:
            text = json_text({**record(compared), "rows": rows})
            files.path(COMPARISON).write_text(text, "utf-8")
            files.path(REPORT).write_text(compare_page(compared), "utf-8")
            files.publish()
    return compared


def _plain(row: Row, players: Mapping[str, str]) -> Row:
    """A row for JSON, the logged models under their names."""
    logged = {
        name: {"loss": row[key] + row["best_loss"], "regret": row[key]}
        for name, key in players.items()
    }
    kept = {key: value for key, value in row.items() if key not in players.values()}
    return {**kept, "predictions": logged}
