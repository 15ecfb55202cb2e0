"""The regret table: one row per group, for terminals, notebooks and frames."""

import html
import math
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.groups import ALWAYS_ON
from groupwise.protocols import BRACKET, Hindsight
from groupwise.regret.certificate import aggregator_bounds, certify, totals

if TYPE_CHECKING:
    from groupwise.reduction import Reduction

WIDEST = 1e7
"""From here on figures are shown with an exponent."""
NOTES = 5
"""So many groups' notes are printed below a table."""
SHOWN = (
    "group",
    "rounds",
    "loss",
    "best_loss",
    "best_high",
    "best_kind",
    "payments",
    "regret",
    "certificate",
    "learner",
    "aggregator",
    "delay",
    "status",
)


@dataclass(frozen=True)
class RegretTable:
    """Regret and certificate of every group over the settled rounds.

    ``rows`` is a list of dictionaries with the keys group, rounds, loss, realised_loss, best_loss,
    best_error, best_kind, best_low, best_high, regret, baseline_regret, certificate, learner,
    aggregator, delay, a_priori, status and note; figures are in the label's units. ``loss`` and
    ``regret`` are expectations over the aggregator's draw where it samples; ``realised_loss`` is
    what the drawn predictions lost. ``best_kind`` is "exact", or "bracket" where all that is known
    of the best loss is that it lies between ``best_low`` and ``best_high``; ``best_loss`` is the
    lower side, so that ``regret`` is the upper side of regret. ``best_error`` is how far it may be
    from the truth by rounding. ``baseline_regret`` is that of the always-on group's own learner,
    the single model; None where there is no such group. ``note`` is what to know about the best.
    ``comparator`` says what ``best_loss`` is the loss of. Groups that happen to have the same name
    have a row each; ``table[name]`` is the first of them, the one that appeared first.
    """

    rows: list[dict[str, Any]]
    comparator: str = "the best linear model in hindsight"
    settled: int = 0

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows)

    def __getitem__(self, group: str) -> dict[str, Any]:
        """The row of the group of this name; of the first, where several have it."""
        by_name: dict[str, dict[str, Any]] = {row["group"]: row for row in reversed(self.rows)}
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
        """The cells to print, the heading first; payments and brackets where there are any."""
        left_out = {"best_high", "best_kind"} if not self._brackets() else set()
        if not any("payments" in row for row in self.rows):
            left_out.add("payments")
        shown = [key for key in SHOWN if key not in left_out]
        return [shown, *([_text(row[key]) for key in shown] for row in self.rows)]

    def _brackets(self) -> bool:
        return any(row.get("best_kind") == BRACKET for row in self.rows)

    def _remarks(self) -> list[str]:
        """What to say below the rows."""
        said = [f"{self.settled} settled rounds; regret is against {self.comparator}."]
        if self._brackets():
            said.append(
                "Where best_kind is bracket, the best loss is between best_loss and best_high, and "
                "regret is what it is at most."
            )
        noted = [(row["group"], row["note"]) for row in self.rows if row.get("note")]
        said += [f"{_text(group)}: {note}." for group, note in noted[:NOTES]]
        if len(noted) > NOTES:
            said.append(f"… and {len(noted) - NOTES} more notes.")
        return said

    def __str__(self) -> str:
        cells = self._lines()
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        heading, *lines = (
            "  ".join(
                cell.ljust(width) if i in (0, len(widths) - 1) else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        )
        rule = "  ".join("─" * width for width in widths)
        return "\n".join([heading, rule, *lines, *self._remarks()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        head, *body = (
            "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in line)
            for line, tag in zip(self._lines(), ["th", *["td"] * len(self)], strict=True)
        )
        caption = "<br>".join(map(html.escape, self._remarks()))
        return (
            f"<table><caption>{caption}</caption><thead><tr>{head}</tr></thead>"
            f"<tbody>{''.join(f'<tr>{line}</tr>' for line in body)}</tbody></table>"
        )


def _text(value: Any) -> str:
    """A cell: figures to four significant digits, control characters made visible."""
    if value is None:
        return "–"
    if not isinstance(value, float):
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(value))
    plain = abs(value) < WIDEST
    if plain and value != 0.0 and value == int(value):
        return f"{int(value)}"
    return f"{value:.2f}" if plain and abs(value) >= 100 else f"{value:.4g}"


def regret_table(
    reduction: "Reduction",
    names: list[str],
    features: int,
    settled: int,
    largest: int | None = None,
) -> RegretTable:
    """The table for groups 0 … len(names) − 1; the always-on group comes last.

    With ``largest``, only so many groups, by their rounds.
    """
    unit = reduction.loss.unit
    if largest is None:
        order = sorted(range(len(names)), key=lambda g: names[g] == ALWAYS_ON)
    else:
        rounds = reduction.books.column("rounds", len(names))[:, 0]
        order = np.argsort(-rounds, kind="stable")[:largest].tolist()
    bounds = aggregator_bounds(reduction, len(names)) if names else np.zeros((0, 0))
    rows = []
    for g in order:
        own = totals(reduction.books.of(g))
        known = reduction.hindsight(g, features) or Hindsight(float(own.expert_loss.min()))
        best = known.best
        certificate = certify(reduction, own, g, known, bounds[g])
        loss, baseline = float(own.loss[0]), float(own.baseline_loss[0])
        rows.append(
            {
                "group": names[g],
                "rounds": float(own.rounds[0]),
                "loss": unit * loss,
                "realised_loss": unit * float(own.realised_loss[0]),
                "best_loss": unit * best,
                "best_error": unit * known.error,
                "best_kind": known.kind,
                "best_low": unit * best,
                "best_high": unit * (best if known.high is None else known.high),
                "regret": unit * (loss - best),
                "baseline_regret": None if math.isnan(baseline) else unit * (baseline - best),
                "certificate": certificate.total,
                "learner": certificate.learner,
                "aggregator": certificate.aggregator,
                "delay": certificate.delay,
                "a_priori": certificate.a_priori,
                "status": certificate.status,
                "note": known.note,
            }
        )
    return RegretTable(rows, reduction.comparator, settled)
