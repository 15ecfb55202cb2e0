"""What the terminal shows at the end."""

from typing import TYPE_CHECKING

from groupwise.report.tables import Table
from groupwise.tabular.page import headline
from groupwise.tabular.ranking import ranked, worst
from groupwise.tabular.tables import group_table, title_of, typical_error
from groupwise.tabular.text import amount, shown

if TYPE_CHECKING:
    from groupwise.regret.table import RegretTable
    from groupwise.tabular.compare import Comparison
    from groupwise.tabular.run import Finished

FIRST = 15
"""So many groups are enough for a terminal."""


def summary(finished: "Finished") -> tuple[Table, str]:
    """The worst groups, and a sentence about the worst."""
    table = model_summary(finished.table, finished.unit, finished.plan.target, FIRST)
    return table, headline(finished.table.rows)


def model_summary(
    table: "RegretTable", unit: float, target: str | None, first: int | None
) -> Table:
    """The worst groups of a model."""
    rows = ranked(table.rows)
    return group_table(rows[:first], unit, target, _title(len(rows), first), narrow=True)


def comparison_summary(compared: "Comparison") -> tuple[Table, list[str]]:
    """The groups on which the logged predictions are worst, and a sentence for each of them."""
    rows, first = compared.rows, FIRST
    target = compared.plan.target
    title = _title(len(rows), first)
    table = group_table(rows[:first], compared.unit, target, title, compared.players, narrow=True)
    sentences = []
    for name, key in compared.players.items():
        row = worst(rows, key)
        sentences.append(
            f"Worst group of {shown(name)}: {title_of(row['group'])}. Over its "
            f"{amount(row['rounds'])} rounds it is typically off by "
            f"{amount(typical_error(row, key))}; groupwise would have been off by "
            f"{amount(typical_error(row))}, and the best linear model for this group alone, in "
            f"hindsight, by {amount(typical_error(row, None))}."
        )
    return table, sentences


def _title(count: int, first: int | None) -> str:
    if first is None or count <= first:
        return f"{count:,} groups, the worst first"
    return f"The {first} worst of {count:,} groups"
