"""The paper's tables: a row per group over several seeds, next to the published one, judged."""

from collections.abc import Iterable, Iterator, Sequence
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
_THREE = ("found", "published", "difference")

COLUMNS = (
    Column("Group", numeric=False),
    Column("Size"),
    *(Column(title, span) for span in (BASELINE, OURS, BEST) for title in _THREE),
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

    def cells(self) -> tuple[float | Pair, ...]:
        """As a table shows them."""
        return self.baseline_regret, self.algorithm_regret, self.best_in_hindsight_loss

    def flat(self) -> Iterator[float]:
        """All five figures."""
        yield from self.baseline_regret
        yield from self.algorithm_regret
        yield self.best_in_hindsight_loss

    def to_dict(self) -> dict[str, Any]:
        """For files: pairs as lists."""
        return {
            key: list(value) if isinstance(value, tuple) else value
            for key, value in self._asdict().items()
        }


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
            **self.found.to_dict(),
            "exact": self.exact.to_dict(),
            "published": None if self.published is None else self.published.to_dict(),
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
    return Table(
        title=result.title,
        columns=COLUMNS,
        rows=tuple(tuple(_cells(row, result)) for row in result.rows),
    )


def summary_table(results: Iterable[Result]) -> Table:
    """How every table came out."""
    columns = (
        Column("Experiment", numeric=False),
        Column("Order", numeric=False),
        Column("Difference"),
        Column("Tolerance"),
        Column("Outcome", numeric=False),
    )
    rows = []
    for result in results:
        tolerance = result.experiment.tolerance
        rows.append(
            (
                Cell(result.experiment.name),
                Cell(result.order),
                Cell("–" if result.worst is None else number(result.worst, 3)),
                Cell("–" if tolerance is None else f"{tolerance:g}"),
                _outcome(result),
            )
        )
    return Table("Against the published tables", columns, tuple(rows))


def _outcome(result: Result) -> Cell:
    if not result.judged:
        return Cell(f"not judged: {result.why_not_judged}", "faint")
    if result.misses:
        return Cell(f"misses in {', '.join(result.misses)}", "bad")
    return Cell("agrees", "good")


def _cells(row: Row, result: Result) -> Iterable[Cell]:
    yield Cell(row.group)
    yield Cell(f"{row.size:,}")
    deviations = row.deviations()
    for place, value in enumerate(row.found.cells()):
        yield Cell(_text(value))
        if row.published is None or deviations is None:
            yield from (Cell("–", "faint"), Cell("–", "faint"))
        else:
            yield Cell(_text(row.published.cells()[place]), "faint")
            yield _difference(deviations.cells()[place], result)
    yield from (Cell(_text(value)) for value in row.exact.cells())


def _text(value: float | Pair) -> str:
    return mean_and_spread(value) if isinstance(value, tuple) else number(value)


def _difference(deviation: float | Pair, result: Result) -> Cell:
    both = deviation if isinstance(deviation, tuple) else (deviation,)
    largest = max(both, key=abs)
    tolerance = result.experiment.tolerance
    missed = result.judged and tolerance is not None and abs(largest) > tolerance
    return Cell(number(largest, 3, signed=True), "bad" if missed else "")


def _figures(baseline: Vector, loss: Vector, best: Vector) -> Figures:
    regrets = baseline - best, loss - best
    pairs = [(float(regret.mean()), float(regret.std())) for regret in regrets]
    return Figures(pairs[0], pairs[1], float(best.mean()))
