"""Tables for a terminal."""

import sys
from typing import TYPE_CHECKING

from groupwise.report.table import Table

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table as RichTable

WIDE = 160
STYLES = {"bad": "bold red", "good": "green", "faint": "dim", "": ""}


def console() -> "Console":
    """Standard output; where that is no terminal, wide enough for any table of ours."""
    from rich.console import Console

    return Console(highlight=False, width=None if sys.stdout.isatty() else WIDE)


def show(console: "Console", table: Table) -> None:
    """Print a table; where it is too wide, one table for each of its wider headings."""
    whole = rich_table(table)
    unlimited = console.options.update(max_width=10 * WIDE)
    fits = console.measure(whole, options=unlimited).maximum <= console.width
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
    spanned = any(column.span for column in table.columns)
    previous = ""
    for column in table.columns:
        span = column.span if column.span != previous else ""
        previous = column.span
        laid_out.add_column(
            Text(f"{span}\n{column.title}" if spanned else column.title),
            justify="right" if column.numeric else "left",
            no_wrap=True,
            vertical="bottom",
        )
    for row in table.rows:
        laid_out.add_row(*(Text(cell.text, style=STYLES[cell.mark]) for cell in row))
    return laid_out
