"""Tables: columns and cells of text, for a terminal and for LaTeX; records as JSON and CSV."""

import csv
import io
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from groupwise.arrays import Vector

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

WIDE = 160
STYLES = {"bad": "bold red", "good": "green", "faint": "dim", "": ""}
LATEX = {
    "\\": r"\textbackslash{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "±": r"$\pm$",
    "−": "$-$",
    "–": "--",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
}
PAIR = ("mean", "std")
"""What a list of two figures in a record is."""


class Column(NamedTuple):
    """A column's heading, and the wider heading that it stands under, if any.

    Where a terminal has too little room, text that ``wraps`` goes on in the next line.
    """

    title: str
    span: str = ""
    numeric: bool = True
    wraps: bool = False


class Cell(NamedTuple):
    """Text, and whether it is to stand out ("bad", "good") or to stand back ("faint").

    On a page it is sorted by its value, where it has one, and leads to a place on the page;
    ``drawing`` is a small one, as markup, in the place of the text.
    """

    text: str
    mark: str = ""
    value: float | None = None
    target: str = ""
    drawing: str = ""


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns. Columns of one span stand next to each other.

    On a page a table that is ``sortable`` can be sorted and searched, and shows ``first``
    rows until all are asked for.
    """

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str = ""
    sortable: bool = False
    first: int | None = None

    @property
    def spans(self) -> list[tuple[str, int]]:
        """The wider headings from left to right, each with its number of columns."""
        return [
            pair
            for span, columns in groupby(self.columns, lambda column: column.span)
            for pair in ([(span, len(list(columns)))] if span else [(span, 1) for _ in columns])
        ]

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
        rows = tuple(tuple(row[i] for i in kept) for row in self.rows)
        return replace(self, title=title, columns=columns, rows=rows)


def number(value: float, decimals: int = 2, signed: bool = False) -> str:
    """A figure as text, with a real minus sign and no minus zero.

    >>> number(-0.001), number(-1.5), number(0.25, 3, signed=True)
    ('0.00', '−1.50', '+0.250')
    """
    text = f"{value:{'+' if signed else ''}.{decimals}f}"
    return text.lstrip("+-") if float(text) == 0.0 else text.replace("-", "−")


def over_seeds(values: Vector, decimals: int = 1) -> str:
    """The mean of several figures ± their standard deviation.

    >>> import numpy as np
    >>> over_seeds(np.array([1.0, 3.0]))
    '2.0 ± 1.0'
    """
    return mean_and_spread((float(values.mean()), float(values.std())), decimals)


def mean_and_spread(pair: tuple[float, float], decimals: int = 2) -> str:
    """A mean ± a standard deviation.

    >>> mean_and_spread((1.234, 0.1))
    '1.23 ± 0.10'
    """
    return f"{number(pair[0], decimals)} ± {number(pair[1], decimals)}"


def console() -> "Console":
    """Standard output; where that is no terminal, wide enough for any table of ours."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def show(console: "Console", table: Table) -> None:
    """Print a table; where it is too wide, one table for each of its wider headings."""
    unlimited = console.options.update(max_width=10 * WIDE)
    fits = console.measure(rich_table(table), options=unlimited).maximum <= console.width
    for part in [table] if fits else table.by_span():
        console.print(rich_table(part))


def rich_table(table: Table) -> "RichTable":
    """The table as rich lays it out. Text is shown as it is: square brackets are no markup."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    laid_out = RichTable(
        title=Text(table.title, style="bold"),
        caption=Text(table.note, style="dim") if table.note else None,
        box=box.SIMPLE_HEAD,
        padding=(0, 1),
        title_justify="left",
        caption_justify="left",
    )
    spans = _spread(table)
    for span, column in zip(spans, table.columns, strict=True):
        laid_out.add_column(
            Text(f"{span}\n{column.title}" if any(spans) else column.title),
            justify="right" if column.numeric else "left",
            no_wrap=not column.wraps,
            vertical="bottom",
        )
    for row in table.rows:
        laid_out.add_row(*(Text(cell.text, style=STYLES[cell.mark]) for cell in row))
    return laid_out


def _spread(table: Table) -> list[str]:
    """The wider headings, word by word over the columns that they stand over, as there is room."""
    found: list[str] = []
    words: list[str] = []
    for i, column in enumerate(table.columns):
        if i == 0 or column.span != table.columns[i - 1].span:
            words = column.span.split()
        room = max([len(column.title), *(len(row[i].text) for row in table.rows)])
        last = i + 1 == len(table.columns) or table.columns[i + 1].span != column.span
        taken: list[str] = []
        while words and (last or not taken or len(" ".join([*taken, words[0]])) <= room):
            taken.append(words.pop(0))
        found.append(" ".join(taken))
    return found


def escape(text: str) -> str:
    r"""Text that LaTeX prints as it is.

    >>> escape("HighSchool&less ± 5%")
    'HighSchool\\&less $\\pm$ 5\\%'
    """
    return "".join(LATEX.get(character, character) for character in text)


def latex(table: Table) -> str:
    """A ``table`` environment to be included in a document."""
    spans = " & ".join(
        escape(span) if count == 1 else rf"\multicolumn{{{count}}}{{c}}{{{escape(span)}}}"
        for span, count in table.spans
    )
    lines = [
        r"\begin{table}[ht]",
        r"\centering",
        rf"\caption{{{escape(table.title)}}}",
        r"\begin{tabular}{" + "".join("lr"[column.numeric] for column in table.columns) + "}",
        r"\hline",
        *([rf"{spans} \\"] if any(column.span for column in table.columns) else []),
        " & ".join(escape(column.title) for column in table.columns) + r" \\",
        r"\hline",
        *(" & ".join(escape(cell.text) for cell in row) + r" \\" for row in table.rows),
        r"\hline",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def json_text(value: Any) -> str:
    """JSON that any reader takes: a figure that is not finite is null."""
    finite = json.loads(json.dumps(value), parse_constant=lambda name: None)
    return json.dumps(finite, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def csv_text(records: Sequence[Mapping[str, Any]]) -> str:
    """One line per record; nested keys are joined by underscores."""
    flat = [dict(_flat(record)) for record in records]
    stream = io.StringIO()
    header = dict.fromkeys(key for record in flat for key in record)
    writer = csv.DictWriter(stream, list(header), lineterminator="\n")
    writer.writeheader()
    writer.writerows(flat)
    return stream.getvalue()


def _flat(record: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in record.items():
        inner = dict(zip(PAIR, value, strict=True)) if isinstance(value, (list, tuple)) else value
        if isinstance(inner, Mapping):
            yield from _flat(inner, f"{prefix}{key}_")
        else:
            yield f"{prefix}{key}", value
