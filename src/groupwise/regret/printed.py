"""Tables of figures with a row per group, for terminals, notebooks and frames."""

import html
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any, ClassVar, cast

from groupwise.errors import ConfigurationError

WIDEST = 1e7
"""From here on figures are shown with an exponent."""
NEAR = 3
"""So many groups are named where one is asked for that is not there."""


@dataclass(frozen=True, repr=False)
class Printed:
    """A list of dictionaries, each the row of the group that it names. To be derived from."""

    rows: list[dict[str, Any]]
    words: ClassVar[frozenset[str]] = frozenset({"group"})
    """The keys whose cells are text, and not figures."""

    def shown(self) -> list[str]:
        """The keys to print, in order."""
        raise NotImplementedError

    def remarks(self) -> list[str]:
        """What to say below the rows."""
        raise NotImplementedError

    @property
    def units(self) -> dict[str, str]:
        """What the figures are in: a unit for every key that has one."""
        return {}

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, group: str) -> dict[str, Any]:
        """The row of the group of this name; of the first, where several have it."""
        by_name: dict[str, dict[str, Any]] = {row["group"]: row for row in reversed(self.rows)}
        if group not in by_name:
            near = get_close_matches(str(group), by_name, NEAR, 0.0)
            known = f"Its groups are called like {', '.join(near)}." if near else "It has none."
            raise KeyError(f"There is no group {group!r} in this table. {known}")
        return by_name[group]

    def to_frame(self, backend: str | None = None) -> Any:
        """A frame of pandas, polars or pyarrow: the one named, or the first that is installed."""
        import narwhals as nw

        for name in [backend] if backend else ["pandas", "polars", "pyarrow"]:
            try:
                import_module(name)
            except ImportError:
                continue
            keys = self.rows[0] if self.rows else ["group"]
            columns = {key: [row[key] for row in self.rows] for key in keys}
            return nw.from_dict(columns, backend=cast(Any, name)).to_native()
        raise ConfigurationError("to_frame needs pandas, polars or pyarrow: pip install one.")

    def _lines(self) -> list[list[str]]:
        """The cells to print, the heading first."""
        shown = self.shown()
        return [shown, *([text(row[key]) for key in shown] for row in self.rows)]

    def __str__(self) -> str:
        cells, units = self._lines(), self.units
        cells.insert(1, [units.get(key, "") for key in cells[0]])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        heading, below, *lines = (
            "  ".join(
                cell.ljust(width) if key in self.words else cell.rjust(width)
                for key, cell, width in zip(cells[0], line, widths, strict=True)
            ).rstrip()
            for line in cells
        )
        rule = "  ".join("─" * width for width in widths)
        return "\n".join([heading, *([below] if below else []), rule, *lines, *self.remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        keys, *lines = ([html.escape(cell) for cell in line] for line in self._lines())
        below = {key: f"<br>{html.escape(unit)}" for key, unit in self.units.items()}
        head = "".join(f"<th>{key}{below.get(key, '')}</th>" for key in keys)
        body = ("".join(f"<td>{cell}</td>" for cell in line) for line in lines)
        caption = "<br>".join(map(html.escape, self.remarks()))
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{line}</tr>' for line in body)}</tbody></table>"
        )


def text(value: Any) -> str:
    """A cell: figures to four significant digits, control characters made visible."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else ""
    if not isinstance(value, float):
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    plain = abs(value) < WIDEST
    if plain and value != 0.0 and value == int(value):
        return f"{int(value)}"
    return f"{value:.2f}" if plain and abs(value) >= 100 else f"{value:.4g}"
