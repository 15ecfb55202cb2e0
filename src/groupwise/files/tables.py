"""Groups in tables and sentences: which come first, and what is said about them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from groupwise.files.text import amount, quoted, shown
from groupwise.groups import ALWAYS_ON
from groupwise.protocols import BRACKET
from groupwise.regret.certificate import LOOSE, PROVED, VACUOUS, VOID
from groupwise.regret.table import CERTIFIED, LOST
from groupwise.report.tables import Cell, Column, Table

OURS, SINGLE, BEST = "groupwise", "single model", "best in hindsight"
EVERYBODY = f"everybody ({ALWAYS_ON})"
NAME, NARROW_NAME = 60, 30
NOTICEABLE = 0.005
"""A difference in error of half a percent is marked."""
FIRST = 15
"""So many groups are enough for a terminal."""
ENOUGH = 30
"""On fewer rounds regret per round says more about the start than about the group."""

EXACT = 1e-6
"""A linear model whose error is so small a part of ours has found the label in the features."""

NOTE = (
    "Error: the root of the mean squared error, in the label’s own units. Best in hindsight: the "
    "linear model that fits all the group’s rows best, fitted after the fact. Single model: one "
    "online ridge regression for everybody. Regret: squared error beyond that of the best in "
    "hindsight, summed over the group’s rounds; 1 is one prediction off by the whole range of the "
    "label, and below 0 every linear model for the group was beaten. Certificate: the regret "
    "cannot be above it. {status} Green: at least half a percent better than the single "
    "model, red: worse."
)
STATUS = (
    "It is grey where that says little: loose, above what the best in hindsight lost itself, or "
    "vacuous, above what all rounds together could lose."
)
UNTOLD = (
    "Which group is the worst cannot be told: none has more rounds than features, and a model "
    "fitted to so few afterwards may fit anything."
)

AGAINST = (
    "Against {name}: loss beyond that of its predictions, which are an expert of every group, and "
    "what that cannot be above; below 0 it is beaten. Green and red are there compared with it."
)

Row = dict[str, Any]


def per_round(row: Row, key: str = "regret") -> float:
    """A total per round of the group."""
    return float(row[key]) / max(float(row["rounds"]), 1.0)


def is_fitted(row: Row) -> bool:
    """Are rounds so few that a model fitted afterwards may fit whatever they are?"""
    return bool(row.get("few_rows"))


def title_of(group: str, longest: int = NAME) -> str:
    """A group's name as people read it."""
    return EVERYBODY if group == ALWAYS_ON else shown(group, longest)


def mean_loss(row: Row, regret: str | None = "regret") -> float:
    """The loss per round, by the key of the regret; of the best in hindsight without key.

    An expert's loss is what its key has.
    """
    if regret is not None and row[regret] is None:
        return math.nan
    total = 0.0 if regret is None else float(row[regret])
    if regret is None or not regret.startswith(LOST):
        total += float(row["best_loss"])
    return max(total, 0.0) / max(float(row["rounds"]), 1.0)


@dataclass(frozen=True)
class Measure:
    """What the figures of a group mean, and how they are told: here for numbers.

    Losses are squared errors in units of ``unit``, and figures the root of their mean. On groups of
    under ``enough`` rounds they say little.
    """

    target: str | None = None
    unit: float = 1.0
    enough: int = ENOUGH
    axis: ClassVar[str] = "regret"
    words: ClassVar[tuple[str, str, str]] = ("is typically off by", "by", "off by")
    """What is said of a figure, of a second one, and of a further one."""
    slow: ClassVar[bool] = False
    """Is regret along the way known at a few moments alone, and of the largest groups?"""

    def is_small(self, row: Row) -> bool:
        """Whether a group has too few rounds to be compared."""
        return float(row["rounds"]) < self.enough or is_fitted(row)

    def ranked(self, rows: Iterable[Row], key: str = "regret") -> list[Row]:
        """Everybody first; then by regret per round, the largest first; small groups last."""

        def place(row: Row) -> tuple[bool, bool, float]:
            return row["group"] != ALWAYS_ON, self.is_small(row), -per_round(row, key)

        return sorted(rows, key=place)

    def worst(self, rows: Iterable[Row], key: str = "regret") -> Row | None:
        """The group with the largest regret per round; a small one only where all are.

        None where all have so few rounds that anything can be fitted to them.
        """
        order = self.ranked(rows, key)
        groups = [row for row in order if row["group"] != ALWAYS_ON] or order
        return next((row for row in groups if not is_fitted(row)), None)

    def most_gained(self, rows: Iterable[Row]) -> Row | None:
        """The group on which the single model loses most to us, per round; None where on none."""
        gains = [
            (per_round(row, "baseline_regret") - per_round(row), row)
            for row in rows
            if row["baseline_regret"] is not None
            and not self.is_small(row)
            and row["group"] != ALWAYS_ON
        ]
        gain, best = max(gains, key=lambda pair: pair[0], default=(0.0, None))
        return best if gain > 0.0 else None

    @property
    def note(self) -> str:
        """What the columns mean."""
        return f"{NOTE.format(status=STATUS)} {self.small}"

    @property
    def small(self) -> str:
        """What is said of small groups."""
        return (
            f"Groups with under {self.enough} rounds, or no more than they have features (few "
            "rows), are grey and come last: on so few, regret is all start."
        )

    @property
    def heading(self) -> str:
        """What stands above the figures."""
        return f"error, in {shown(self.target, 16)}" if self.target else "error"

    def figure(self, row: Row, regret: str | None = "regret") -> float:
        """Root of the mean square error, in the label's units."""
        return math.sqrt(mean_loss(row, regret))

    def about(self, row: Row) -> list[tuple[Column, str]]:
        """What else is told of a group: columns, and what stands in them."""
        return []

    def shows_status(self, rows: Iterable[Row]) -> bool:
        """Is the status of certificates shown? Where it is not the same everywhere."""
        return any(row["status"] != PROVED or is_fitted(row) for row in rows)

    def is_exact(self, row: Row) -> bool:
        """Did the best in hindsight hardly err?"""
        return bool(row["best_loss"] <= EXACT * row["loss"])

    def headlines(self, rows: Sequence[Row], players: Mapping[str, str]) -> list[str]:
        """A sentence about the worst group; in an audit, one for every model."""
        return [self._worst(rows, *one) for one in players.items()] or [self._worst(rows)]

    def _worst(self, rows: Sequence[Row], name: str = "", key: str = "regret") -> str:
        row = self.worst(rows, key)
        if row is None:
            return f"{shown(name)}: {UNTOLD}" if name else UNTOLD
        return self._of_another(row, name, key) if name else self._of_ours(row)

    def _of_ours(self, row: Row) -> str:
        """On which group we are worst."""
        single = self.figure(row, "baseline_regret")
        compared = f", and a single model for everybody by {amount(single)}"
        return (
            f"Worst group: {title_of(row['group'])}. Over its {amount(row['rounds'])} rounds a "
            f"prediction is typically off by {amount(self.figure(row))}; the best linear model for "
            f"this group alone, in hindsight, by {amount(self.figure(row, None))}"
            f"{compared if math.isfinite(single) else ''}."
        )

    def _of_another(self, row: Row, name: str, key: str) -> str:
        """On which group another model is worst."""
        return (
            f"Worst group of {shown(name)}: {title_of(row['group'])}. Over its "
            f"{amount(row['rounds'])} rounds it is typically off by "
            f"{amount(self.figure(row, key))}; groupwise would have been off by "
            f"{amount(self.figure(row))}, and the best linear model for this group alone, in "
            f"hindsight, by {amount(self.figure(row, None))}."
        )

    def beside(self, rows: Sequence[Row], name: str) -> str:
        """A sentence or two about an expert: where it is better than we are, if anywhere."""
        key, (has, of, being) = f"{LOST}{name}", self.words
        every = [row for row in rows if row["group"] == ALWAYS_ON]
        said = "".join(
            f"Expert {shown(name)} {has} {amount(self.figure(row, key))} on everybody, groupwise "
            f"{of} {amount(self.figure(row))}. "
            for row in every
        )
        ahead = {
            row["group"]: self.figure(row) / self.figure(row, key)
            for row in rows
            if row not in every
            and not self.is_small(row)
            and _mark(self.figure(row), self.figure(row, key)) == "bad"
        }
        if not ahead:
            return f"{said}On no group is groupwise noticeably worse than {shown(name)}."
        most = max(ahead, key=lambda group: ahead[group])
        row = next(row for row in rows if row["group"] == most)
        return (
            f"{said}Groupwise is worse on {len(ahead):,} of {len(rows) - len(every):,} groups, "
            f"most on {title_of(most)}: {being} {amount(self.figure(row))} rather than "
            f"{amount(self.figure(row, key))}."
        )

    def gained(self, row: Row) -> str:
        """A sentence about the group on which most is gained."""
        return (
            f"Most is gained on {title_of(row['group'])}: typically off by "
            f"{amount(self.figure(row))} rather than the single model’s "
            f"{amount(self.figure(row, 'baseline_regret'))}."
        )


def afterwards(rows: Iterable[Row], target: str, measure: Measure) -> list[str]:
    """What can only be said when the run is over."""
    every = next((row for row in rows if row["group"] == ALWAYS_ON), None)
    if every is None or measure.is_small(every) or not measure.is_exact(every):
        return []
    return [
        f"Some features together give {quoted(target)} exactly, as the parts of a sum do. If they "
        "become known only with the label, leave them out with --drop."
    ]


def group_table(
    rows: Sequence[Row],
    measure: Measure,
    title: str,
    others: Mapping[str, str] | None = None,
    note: str = "",
    narrow: bool = False,
    experts: Sequence[str] = (),
) -> Table:
    """A row per group. ``others`` are further players: heading to the key of their regret."""
    single, best = ("single", "hindsight") if narrow else (SINGLE, BEST)
    players = {**(others or {}), OURS: "regret", single: "baseline_regret"}
    theirs = {shown(name, 30): f"{LOST}{name}" for name in experts if name not in (others or {})}
    status = measure.shows_status(rows)
    # Decimals that give the largest error about four digits, and all of them the same.
    everyone = {**theirs, **players}
    errors = [measure.figure(row, key) for row in rows for key in everyone.values()]
    largest = max(filter(math.isfinite, errors), default=0.0)
    digits = 2 if largest <= 0.0 else min(8, max(0, 3 - math.floor(math.log10(largest))))
    about = [column for row in rows[:1] for column, _ in measure.about(row)]
    columns = (
        Column("group", numeric=False),
        Column("rounds"),
        *about,
        *(Column(name, measure.heading) for name in (*everyone, best)),
        *(Column(name, "regret") for name in players),
        Column("certificate", "regret"),
        *(
            Column(what, f"against {shown(name, 30)}")
            for name in experts
            for what in ("regret", "certificate")
        ),
        *([Column("status", numeric=False)] if status else []),
    )
    return Table(
        title,
        columns,
        tuple(
            _cells(row, measure, (theirs, players, experts), status, digits, narrow) for row in rows
        ),
        note,
    )


def _cells(
    row: Row,
    measure: Measure,
    everyone: tuple[Mapping[str, str], Mapping[str, str], Sequence[str]],
    status: bool,
    digits: int,
    narrow: bool,
) -> tuple[Cell, ...]:
    theirs, players, experts = everyone
    faint = "faint" if measure.is_small(row) else ""
    single = measure.figure(row, "baseline_regret")
    name = title_of(row["group"], NARROW_NAME if narrow else NAME)
    cells = [Cell(name), Cell(amount(row["rounds"]), faint)]
    cells += [Cell(text, faint) for _, text in measure.about(row)]
    for key in (*theirs.values(), *players.values()):
        error = measure.figure(row, key)
        mark = faint or (_mark(error, single) if key != "baseline_regret" else "")
        cells.append(Cell(fixed(error, digits), mark))
    cells.append(Cell(_best(row, measure, digits), faint))
    for key in (*players.values(), "certificate"):
        value = math.nan if row[key] is None else float(row[key]) / measure.unit
        empty = key == "certificate" and row["status"] in (LOOSE, VACUOUS, VOID)
        decimals = 0 if abs(value) >= 1000 else 2  # losses of a whole round, to a hundredth
        cells.append(Cell(fixed(value, decimals), "faint" if empty else faint))
    for name in experts:
        lost = float(row[f"{LOST}{name}"])
        ours, error = measure.figure(row), measure.figure(row, f"{LOST}{name}")
        for value, mark in (
            (row["regret"] + row["best_loss"] - lost, _mark(ours, error)),
            (row[f"{CERTIFIED}{name}"], "faint" if row["status"] == VOID else ""),
        ):
            scaled = value / measure.unit
            cells.append(Cell(fixed(scaled, 0 if abs(scaled) >= 1000 else 2), faint or mark))
    if status:
        cells.append(Cell(f"{row['status']}{', few rows' * is_fitted(row)}", faint))
    return tuple(cells)


def _best(row: Row, measure: Measure, digits: int) -> str:
    """What the best in hindsight has, or from what to what it may."""
    low = fixed(measure.figure(row, None), digits)
    if row.get("best_kind") != BRACKET:
        return low
    high = measure.figure({**row, "best_loss": row["best_high"]}, None)
    return f"{low} to {fixed(high, digits)}"


def _mark(error: float, single: float) -> str:
    if not math.isfinite(single) or not math.isfinite(error):
        return ""
    if error < single * (1.0 - NOTICEABLE):
        return "good"
    return "bad" if error > single * (1.0 + NOTICEABLE) else ""


def fixed(value: float, decimals: int) -> str:
    """A figure with so many decimals, a real minus sign and no minus zero."""
    if not math.isfinite(value):
        return "–"
    if abs(value) >= 1e12:
        return f"{value:.3e}".replace("-", "−")
    text = f"{value:,.{decimals}f}"
    return text.replace("-", "−") if float(text.replace(",", "")) else text.lstrip("-")


def summary(
    rows: Sequence[Row],
    measure: Measure,
    others: Mapping[str, str] | None = None,
    first: int | None = FIRST,
    experts: Sequence[str] = (),
) -> Table:
    """The first groups of many, narrow enough for a terminal."""
    title = f"{len(rows):,} groups, the worst first"
    if first is not None and len(rows) > first:
        title = f"The {first} worst of {len(rows):,} groups"
    return group_table(rows[:first], measure, title, others, narrow=True, experts=experts)
