"""How often intervals covered the labels of a file: ours, and those around logged predictions."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from groupwise.arrays import Vector
from groupwise.files.tables import OURS, title_of
from groupwise.files.text import shown
from groupwise.files.units import Scale, label_unit
from groupwise.intervals import Around, CoverageTable
from groupwise.losses import Loss
from groupwise.report.coverage import Style, Sums, coverage_section, verdict

if TYPE_CHECKING:
    from groupwise.groups import FrameMembership
    from groupwise.model import Groupwise
    from groupwise.report.page import Section

MOST = 60
"""So many groups are in a table of a page."""


class Covered:
    """Intervals around the predictions of a model, and of others whose predictions were logged.

    ``moments`` has for every model, ours first, what was counted so far at some moments.
    """

    def __init__(
        self, share: float, loss: Loss, target: str, players: Mapping[str, object]
    ) -> None:
        self._unit = label_unit(target)
        self._around = {name: Around(share, loss) for name in players}
        self.moments: dict[str, list[Sums]] = {name: [] for name in (OURS, *players)}
        self.tables: dict[str, CoverageTable] = {}

    def add(
        self, name: str, membership: "FrameMembership", predictions: Vector, labels: Vector
    ) -> None:
        """Count some rows of a model whose predictions were logged."""
        rows = membership.indptr, membership.indices, membership.weights
        self._around[name].add(membership.names, *rows, predictions, labels)

    def record(self, model: "Groupwise", largest: int | None = None) -> None:
        """Take down what has been counted, of all groups or of the largest."""
        self.tables = {OURS: model.coverage(largest)}
        self.tables |= {name: one.table(largest) for name, one in self._around.items()}
        for name, table in self.tables.items():
            sums = {
                row["group"]: (row["rounds"], row["missed"], row["mean_width"] * row["rounds"])
                for row in table
                if row["rounds"] > 0.0
            }
            self.moments[name].append(sums)

    @property
    def _style(self) -> Style:
        widths = (row["mean_width"] for table in self.tables.values() for row in table)
        return Style(title_of, Scale.of(widths, powers=False).__call__, self._unit)

    @property
    def verdicts(self) -> list[str]:
        """A sentence or two about every model's."""
        many = len(self.tables) > 1
        return [
            f"{shown(name)}: {verdict(table, self._style)}" if many else verdict(table, self._style)
            for name, table in self.tables.items()
        ]

    def section(self) -> "Section":
        """That of a page."""
        tables = {shown(name, 30): table for name, table in self.tables.items()}
        moments = {shown(name, 30): found for name, found in self.moments.items()}
        return coverage_section(tables, moments, self._style, MOST)
