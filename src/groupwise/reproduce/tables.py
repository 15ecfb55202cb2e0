"""The paper's tables as ours: found, published, and how far apart."""

from collections.abc import Iterable

from groupwise.report.tables import Cell, Column, Table, mean_and_spread, number
from groupwise.reproduce.results import Result
from groupwise.reproduce.summary import Pair, Row

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
