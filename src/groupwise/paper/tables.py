"""The paper's tables: a row per group over several seeds, next to the published one, judged."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.datasets import PAPER_SEEDS, published
from groupwise.paper.published import Experiment, Settings
from groupwise.paper.run import Run
from groupwise.report.tables import Cell, Column, Table, mean_and_spread, number

Pair = tuple[float, float]

BASELINE, OURS, BEST, EXACT = "Baseline’s regret", "Our regret", "Best loss", "Exact"

COLUMNS = (
    Column("Group", numeric=False),
    Column("Size"),
    *(
        Column(title, span)
        for span in (BASELINE, OURS, BEST)
        for title in ("found", "published", "difference")
    ),
    *(Column(title, EXACT) for title in ("baseline", "ours", "best")),
)

NOTE = (
    "Regrets are means ± standard deviations over the seeds; the best loss is that of the best "
    "linear model in hindsight. Found: in the paper’s convention, which fits that model to all but "
    "the group’s last row; exact: to all its rows. Difference: the larger of those of mean and "
    "deviation."
)


class Figures(NamedTuple):
    """What a line of the paper's tables says; regrets are mean and population deviation."""

    baseline_regret: Pair
    algorithm_regret: Pair
    best_in_hindsight_loss: float

    def flat(self) -> list[float]:
        """All five figures."""
        return [*self.baseline_regret, *self.algorithm_regret, self.best_in_hindsight_loss]


@dataclass(frozen=True)
class Row:
    """A group: in the paper's convention, exactly, and as published (where it is)."""

    group: str
    size: int
    found: Figures
    exact: Figures
    published: Figures | None

    def deviations(self) -> Figures | None:
        """How far what was found is from what was published."""
        if self.published is None:
            return None
        d = [a - b for a, b in zip(self.found.flat(), self.published.flat(), strict=True)]
        return Figures((d[0], d[1]), (d[2], d[3]), d[4])

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "group": self.group,
            "size": self.size,
            **self.found._asdict(),
            "exact": self.exact._asdict(),
            "published": self.published and self.published._asdict(),
        }


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
        how = f"sorted by {self.experiment.sorted_by}" if self.order == "sorted" else self.order
        return f"{self.experiment.title}, {how}"

    @property
    def why_not_judged(self) -> str:
        """Why no verdict is given; empty where it is."""
        reasons = {
            "other settings than the paper’s": not self.settings.is_paper,
            "not all of the paper’s seeds": tuple(self.seeds) != PAPER_SEEDS,
            "no tolerance is known for these data": self.experiment.tolerance is None,
        }
        return next((reason for reason, holds in reasons.items() if holds), "")

    @property
    def tolerance(self) -> float:
        """By how much a figure may be off; without limit where no verdict is given."""
        tolerance = self.experiment.tolerance
        return math.inf if tolerance is None or self.why_not_judged else tolerance

    @property
    def misses(self) -> list[str]:
        """The groups with a figure beyond its tolerance, where that is judged."""
        return misses(self.rows, self.tolerance)

    def to_dict(self) -> dict[str, Any]:
        """For files."""
        return {
            "experiment": self.experiment.name,
            "order": self.order,
            "settings": {**self.settings.to_dict(), "seeds": list(self.seeds)},
            "rows": [row.to_dict() for row in self.rows],
        }


def summarise(experiment: str, order: str, runs: Sequence[Run]) -> tuple[Row, ...]:
    """The rows of one table.

    The paper's regret subtracts the least-squares loss on all but the group's last row; the exact
    one that on all its rows.
    """
    loss, baseline, best = (
        np.array([getattr(run, losses)[:, -1] for run in runs])
        for losses in ("loss", "baseline_loss", "best_loss")
    )
    short = np.array([run.published_best for run in runs])
    sizes = runs[0].rounds[:, -1].tolist()
    printed = {
        row.group: Figures(row.baseline_regret, row.algorithm_regret, row.best_loss)
        for row in published().get((experiment, order), ())
    }
    return tuple(
        Row(
            group,
            int(sizes[g]),
            _figures(baseline[:, g], loss[:, g], short[:, g]),
            _figures(baseline[:, g], loss[:, g], best[:, g]),
            printed.get(group),
        )
        for g, group in enumerate(runs[0].groups.tolist())
    )


def worst(rows: Sequence[Row]) -> float | None:
    """The largest deviation from a published figure; None where none is published."""
    found = [abs(d) for row in rows if (all_five := row.deviations()) for d in all_five.flat()]
    return max(found, default=None)


def misses(rows: Sequence[Row], tolerance: float) -> list[str]:
    """The groups of which some figure misses its tolerance."""
    return [
        row.group
        for row in rows
        if (all_five := row.deviations()) and any(abs(d) > tolerance for d in all_five.flat())
    ]


def table_of(result: Result) -> Table:
    """One table of the paper."""
    return Table(result.title, COLUMNS, tuple(tuple(_cells(row, result)) for row in result.rows))


def summary_table(results: Iterable[Result]) -> Table:
    """How every table came out."""
    titles = ("Experiment", "Order", "Difference", "Tolerance", "Outcome")
    columns = tuple(Column(title, numeric=title in titles[2:4]) for title in titles)
    rows = []
    for result in results:
        difference, tolerance = worst(result.rows), result.experiment.tolerance
        if result.why_not_judged:
            outcome = Cell(f"not judged: {result.why_not_judged}", "faint")
        elif result.misses:
            outcome = Cell(f"misses in {', '.join(result.misses)}", "bad")
        else:
            outcome = Cell("agrees", "good")
        rows.append(
            (
                Cell(result.experiment.name),
                Cell(result.order),
                Cell("–" if difference is None else number(difference, 3)),
                Cell("–" if tolerance is None else f"{tolerance:g}"),
                outcome,
            )
        )
    return Table("Against the published tables", columns, tuple(rows))


def _cells(row: Row, result: Result) -> Iterable[Cell]:
    yield from (Cell(row.group), Cell(f"{row.size:,}"))
    deviations = row.deviations()
    for place, value in enumerate(row.found):
        yield Cell(_text(value))
        if row.published is None or deviations is None:
            yield from (Cell("–", "faint"), Cell("–", "faint"))
        else:
            yield Cell(_text(row.published[place]), "faint")
            largest = max(np.atleast_1d(deviations[place]).tolist(), key=abs)
            mark = "bad" if abs(largest) > result.tolerance else ""
            yield Cell(number(largest, 3, signed=True), mark)
    yield from (Cell(_text(value)) for value in row.exact)


def _text(value: Any) -> str:
    return mean_and_spread(value) if isinstance(value, tuple) else number(value)


def _figures(baseline: Vector, loss: Vector, best: Vector) -> Figures:
    ours, theirs = ((float(r.mean()), float(r.std())) for r in (loss - best, baseline - best))
    return Figures(theirs, ours, float(best.mean()))
