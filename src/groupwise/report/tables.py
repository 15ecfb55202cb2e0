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

UNLIMITED = 100_000
"""The width of what is no terminal: a file, or a pipe."""
SHORT, SHORTEST = 20, 8
"""Names are cut down to so much before columns are left out, and to so much if all else fails."""
WRAPPED = 20
"""The least room for text that goes on in the next line."""
GAP = 3
"""Between two columns."""
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

    Where a terminal has too little room, text that ``wraps`` goes on in the next line, and columns
    that are ``spare`` are left out, the last of them first.
    """

    title: str
    span: str = ""
    numeric: bool = True
    wraps: bool = False
    spare: bool = False


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
        """A narrower table for each wider heading, with the columns that stand under none.

        Those that come after all headings are in the last table alone.
        """
        wider = list(dict.fromkeys(column.span for column in self.columns if column.span))
        end = max((i for i, column in enumerate(self.columns) if column.span), default=0) + 1
        found = []
        for span in wider:
            until = len(self.columns) if span == wider[-1] else end
            kept = [i for i in range(until) if self.columns[i].span in ("", span)]
            found.append(replace(self.of_columns(kept), title=f"{self.title}: {span}"))
        return found or [self]

    def without(self, span: str) -> "Table":
        """The table without the columns of one wider heading."""
        return self.of_columns([i for i, one in enumerate(self.columns) if one.span != span])

    def sparing(self) -> "Iterator[Table]":
        """The table, then without columns that can be spared, one by one; its note names them."""
        yield self
        spare = [i for i, column in enumerate(self.columns) if column.spare]
        for first in reversed(range(len(spare))):
            gone = spare[first:]
            kept = [i for i in range(len(self.columns)) if i not in gone]
            names = " and ".join(self.columns[i].title for i in gone)
            said = f"{self.note} There is no room for {names}.".lstrip()
            yield replace(self.of_columns(kept), note=said)

    def of_columns(self, kept: Sequence[int]) -> "Table":
        """The table of these columns alone."""
        columns = tuple(self.columns[i] for i in kept)
        return replace(
            self, columns=columns, rows=tuple(tuple(row[i] for i in kept) for row in self.rows)
        )


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


def clipped(text: str, longest: int) -> str:
    """Text without its middle where it is too long, as both ends tell names apart.

    >>> clipped("health=excellent & limitation=no", 24)
    'health=excelle…tation=no'
    """
    if len(text) <= longest:
        return text
    tail = (longest - 1) * 2 // 5
    return f"{text[: longest - 1 - tail]}…{text[len(text) - tail :]}"


def console() -> "Console":
    """Standard output; where that is no terminal, nothing is too wide."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else UNLIMITED)


def show(console: "Console", table: Table) -> None:
    """Print a table; where it is too wide, several. Figures are never cut."""
    from rich.text import Text

    for part in fitted(table, console.width):
        widths = _widths(part, console.width)
        breadth = min(_breadth(widths), console.width)
        console.print(Text(part.title, style="bold"))
        if any(column.span for column in part.columns):
            above = Text(_above(part, widths), style="bold")
            console.print("\n", above, sep="", no_wrap=True, overflow="ignore", crop=False)
        else:
            console.print()
        console.print(_rich_table(part, widths), crop=False)
        if part.note:
            console.print(Text(part.note, style="dim"), width=max(breadth, 40))
        console.print()


def fitted(table: Table, width: int) -> list[Table]:
    """The tables that show a table where there is so much room.

    Names in the first column are shortened first, then columns left out that can be spared, then
    there is a table for each wider heading, or for as many columns as there is room for.
    """
    for whole in table.sparing():
        found = _shortened(whole, width, SHORT)
        if found is not None:
            return [found]
    parts = table.by_span()
    if len(parts) > 1:
        return [one for part in parts for one in fitted(part, width)]
    return _by_columns(whole, width)


def _by_columns(table: Table, width: int) -> list[Table]:
    """Tables of as many columns as there is room for, each with the names of the first."""
    found: list[Table] = []
    left = list(range(1, len(table.columns)))
    title = table.title
    while left or not found:
        part, taken = table.of_columns([0, *left[:1]]), 1
        for count in range(2, len(left) + 1):
            wider = table.of_columns([0, *left[:count]])
            if _shortened(wider, width, SHORT) is None:
                break
            part, taken = wider, count
        left = left[taken:]
        part = replace(part, title=title, note="" if left else part.note)
        found.append(_shortened(part, width, SHORTEST) or part)
        title = f"{table.title}, continued"
    return found


def _shortened(table: Table, width: int, shortest: int) -> Table | None:
    """The table with names as long as there is room for.

    None where that is less than this, or so little that names are told apart no more.
    """
    from rich.cells import cell_len

    needed = [_natural(table, i, least=True) for i in range(len(table.columns))]
    beyond = _breadth(_below_spans(table, needed)) - width
    if beyond <= 0:
        return table
    first = table.columns[0]
    room = max(needed[0] - beyond, cell_len(first.title))
    if first.numeric or first.wraps or room < min(shortest, needed[0]) or needed[0] - room < beyond:
        return None

    def short(cell: Cell) -> Cell:
        size = room
        while cell_len(text := clipped(cell.text, size)) > room:
            size -= 1
        return cell._replace(text=text)

    rows = tuple((short(row[0]), *row[1:]) for row in table.rows)
    if len({row[0].text for row in rows}) < len({row[0].text for row in table.rows}):
        return None
    return replace(table, rows=rows)


def _natural(table: Table, i: int, least: bool = False) -> int:
    """How wide a column is, or may be at ``least``: less where its text wraps."""
    from rich.cells import cell_len

    texts = [table.columns[i].title, *(row[i].text for row in table.rows)]
    whole = max(cell_len(line) for text in texts for line in text.split("\n"))
    return min(whole, WRAPPED) if least and table.columns[i].wraps else whole


def _widths(table: Table, width: int) -> list[int]:
    """The width of every column; text that wraps has what room the others leave."""
    found = [_natural(table, i, least=True) for i in range(len(table.columns))]
    found = _below_spans(table, found)
    for i, column in enumerate(table.columns):
        if column.wraps:
            spare = max(width - _breadth(found), 0)
            found[i] = max(found[i], min(_natural(table, i), found[i] + spare))
    return found


def _breadth(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * len(widths) - 1


def _below_spans(table: Table, widths: Sequence[int]) -> list[int]:
    """Widths where every wider heading has room above its columns, the last of which is widened."""
    from rich.cells import cell_len

    found, end = list(widths), 0
    for span, count in table.spans:
        start, end = end, end + count
        room = sum(found[start:end]) + GAP * (count - 1)
        found[end - 1] += max(cell_len(span) - room, 0)
    return found


def _above(table: Table, widths: Sequence[int]) -> str:
    """The line of the wider headings, each in the middle above its columns."""
    from rich.cells import cell_len

    line, end = " ", 0
    for span, count in table.spans:
        start, end = end, end + count
        room = sum(widths[start:end]) + GAP * (count - 1)
        free = room - cell_len(span)
        if count == 1:
            before = free if table.columns[start].numeric else 0
            line += " " * before + span + " " * (free - before)
        elif free < 4:
            line += " " * (free // 2) + span + " " * (free - free // 2)
        else:
            line += f"{'─' * (free // 2 - 1)} {span} {'─' * (free - free // 2 - 1)}"
        line += " " * GAP
    return line.rstrip()


def _rich_table(table: Table, widths: Sequence[int]) -> "RichTable":
    """The table as rich lays it out. Text is shown as it is: square brackets are no markup."""
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    laid_out = RichTable(
        box=box.SIMPLE_HEAD, padding=(0, 1), show_edge=False, width=_breadth(widths)
    )
    for width, column in zip(widths, table.columns, strict=True):
        laid_out.add_column(
            Text(column.title),
            justify="right" if column.numeric else "left",
            no_wrap=not column.wraps,
            vertical="bottom",
            width=width,
        )
    for row in table.rows:
        laid_out.add_row(*(Text(cell.text, style=STYLES[cell.mark]) for cell in row))
    return laid_out


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
