"""One reproduced table: its runs, its rows, and the verdict."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from groupwise.datasets import PAPER_SEEDS
from groupwise.reproduce.experiments import Experiment
from groupwise.reproduce.run import Run
from groupwise.reproduce.settings import Settings
from groupwise.reproduce.summary import Row, misses, worst


@dataclass(frozen=True, eq=False)
class Result:
    """An experiment in one order, over all its seeds."""

    experiment: Experiment
    order: str
    settings: Settings
    seeds: Sequence[int]
    runs: Sequence[Run]
    rows: Sequence[Row]

    @property
    def groups(self) -> list[str]:
        """The groups, in the order of the table."""
        return [row.group for row in self.rows]

    @property
    def name(self) -> str:
        """The name of its files."""
        return f"{self.experiment.name}-{self.order}"

    @property
    def title(self) -> str:
        """The heading of its table."""
        return self.experiment.titled(self.order)

    @property
    def why_not_judged(self) -> str:
        """Why no verdict is given; empty where it is."""
        if not self.settings.is_paper:
            return "other settings than the paper’s"
        if tuple(self.seeds) != PAPER_SEEDS:
            return "not all of the paper’s seeds"
        if self.experiment.tolerance is None:
            return "no tolerance is known for these data"
        return ""

    @property
    def judged(self) -> bool:
        """Is this comparable with the paper, cell by cell?"""
        return not self.why_not_judged

    @property
    def worst(self) -> float | None:
        """The largest difference from a published figure."""
        return worst(self.rows)

    @property
    def misses(self) -> list[str]:
        """The groups with a figure beyond its tolerance, where that is judged."""
        if not self.judged or self.experiment.tolerance is None:
            return []
        return misses(self.rows, self.experiment.tolerance)

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "experiment": self.experiment.name,
            "order": self.order,
            "settings": {**self.settings.to_dict(), "seeds": list(self.seeds)},
            "rows": [row.to_dict() for row in self.rows],
        }
