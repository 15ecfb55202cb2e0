"""The last rounds of every group on a page: what was lost on them, and what that is at most."""

import math
from typing import TYPE_CHECKING

from groupwise.files.tables import NAME, title_of
from groupwise.files.units import Scale
from groupwise.groups import ALWAYS_ON
from groupwise.report.page import Section
from groupwise.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from groupwise.regret.table import RegretTable

RECENT = 1_000
"""So many of every group's last rounds are looked at, or somewhat more."""
MOST = 60
NOTE = (
    f"The last {RECENT:,} rounds of every group, within the shortest stretch for which learners "
    "began anew (rounds). Error: root of the mean square of what was predicted, and of the best "
    "linear model of the stretch, or of each half of it. At most: what the error can be by the "
    "certificate of the stretch, given the best model."
)


def recent_section(table: "RegretTable", unit: str) -> Section:
    """Error, that of the best and what it is at most: everybody first, then by the regret."""
    rows = [row for row in table if row["rounds"] > 0.0]
    rows.sort(key=lambda row: (row["group"] != ALWAYS_ON, -row["regret"] / row["rounds"]))

    def roots(row: "dict[str, float]") -> list[float]:
        sums = row["loss"], row["best_loss"], row["best_loss"] + row["certificate"]
        return [math.sqrt(max(0.0, one) / row["rounds"]) for one in sums]

    scale = Scale.of((one for row in rows for one in roots(row)), powers=False)
    shown = tuple(
        (
            Cell(title_of(str(row["group"]), NAME)),
            Cell(f"{row['length']:,}"),
            *(Cell(scale(one)) for one in roots(row)),
            Cell(str(row["status"])),
        )
        for row in rows[:MOST]
    )
    columns = (
        Column("group", numeric=False),
        Column("rounds"),
        Column(f"error, {unit}"),
        Column("of the best"),
        Column("at most"),
        Column("status", numeric=False),
    )
    return Section("Recently", "recently", [Table("The last rounds", columns, shown, NOTE)])
