"""Tables as data: columns and cells of text, before they are laid out."""

from dataclasses import dataclass
from typing import NamedTuple


class Column(NamedTuple):
    """A column's heading, and the wider heading that it stands under, if any."""

    title: str
    span: str = ""
    numeric: bool = True


class Cell(NamedTuple):
    """Text, and whether it is to stand out ("bad", "good") or to stand back ("faint")."""

    text: str
    mark: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns. Columns of one span stand next to each other."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The wider headings from left to right, each with its number of columns."""
        spans: list[tuple[str, int]] = []
        for column in self.columns:
            if spans and column.span and spans[-1][0] == column.span:
                spans[-1] = (column.span, spans[-1][1] + 1)
            else:
                spans.append((column.span, 1))
        return spans

    def by_span(self) -> "list[Table]":
        """A narrower table for each wider heading, with the columns that stand under none."""
        wider = list(dict.fromkeys(column.span for column in self.columns if column.span))
        return [self._only(f"{self.title}: {span}", {"", span}) for span in wider] or [self]

    def without(self, span: str) -> "Table":
        """The table without the columns of one wider heading."""
        return self._only(self.title, {column.span for column in self.columns} - {span})

    def _only(self, title: str, spans: set[str]) -> "Table":
        kept = [i for i, column in enumerate(self.columns) if column.span in spans]
        columns = tuple(self.columns[i] for i in kept)
        return Table(title, columns, tuple(tuple(r[i] for i in kept) for r in self.rows), self.note)


def number(value: float, decimals: int = 2, signed: bool = False) -> str:
    """A figure as text, with a real minus sign and no minus zero.

    >>> number(-0.001), number(-1.5), number(0.25, 3, signed=True)
    ('0.00', '−1.50', '+0.250')
    """
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    if float(text) == 0.0:
        text = text.lstrip("+-")
    return text.replace("-", "−")


def mean_and_spread(pair: tuple[float, float], decimals: int = 2) -> str:
    """A mean ± a standard deviation.

    >>> mean_and_spread((1.234, 0.1))
    '1.23 ± 0.10'
    """
    return f"{number(pair[0], decimals)} ± {number(pair[1], decimals)}"
