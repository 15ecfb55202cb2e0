"""Groups in tables and sentences: which come first, and what is said about them."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from groupwise.files.text import LONGEST, amount, quoted, shown
from groupwise.files.units import Scale, label_unit, squared
from groupwise.groups import ALWAYS_ON
from groupwise.protocols import BRACKET
from groupwise.regret.certificate import LOOSE, PROVED, VACUOUS, VOID
from groupwise.regret.table import CERTIFIED, LOST, units_of
from groupwise.report.errors import Errors, Estimate
from groupwise.report.tables import UNLIMITED, Cell, Column, Table, clipped

OURS, SINGLE, BEST = "groupwise", "single model", "best in hindsight"
EVERYBODY = f"everybody ({ALWAYS_ON})"
NAME = 60
"""So much of a group's name is shown on a page, without its middle."""
RANGE = "95\N{NO-BREAK SPACE}% interval"
NOTICEABLE = 0.005
"""A difference in error of half a percent is marked."""
FIRST = 15
"""So many groups are enough for a terminal."""
ENOUGH = 30
"""On fewer rounds regret per round says more about the start than about the group."""

EXACT = 1e-6
"""A linear model whose error is so small a part of ours has found the label in the features."""

TERMS = {
    "Bias": "the mean of predictions less labels, in the label’s own units: above 0, predictions "
    "are too high on average. In bold where its interval is on one side of 0.",
    "Error": "the root of the mean squared error, in the label’s own units.",
    "Single model": "one online ridge regression for everybody.",
    "Best in hindsight": "the linear model that fits all the group’s rows best, fitted after the "
    "fact.",
    "Regret": "squared error beyond that of the best in hindsight, summed over the group’s rounds, "
    "in the square of the label’s units; below 0 every linear model for the group was beaten.",
}
SPREAD = (
    "mean ± q · s ÷ √n, where s is the standard deviation of the {values} of the n rounds, and q "
    "Student’s with n − 1 degrees. It is for what was to be expected of these rounds, each by all "
    "that came before it. Rows need not be independent, since what rounds lose beyond that is a "
    "martingale; but rounds are to be many, and none of them much of the sum. It says nothing of "
    "rows to come that are not like these."
)
COLOURS = {
    "Colours": "green: at least half a percent better than the single model; red: worse. "
    "Certificates are grey where they say little.",
}
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


def title_of(group: str, longest: int = LONGEST) -> str:
    """A group's name as people read it; a long one without its middle.

    >>> title_of("health=excellent & limitation=no", 24)
    'health=excelle…tation=no'
    """
    name = EVERYBODY if group == ALWAYS_ON else shown(group, 10 * longest)
    return clipped(name, longest)


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

    Losses are squared errors, and figures the root of their mean; or, where they are not
    ``squares``, absolute errors and their mean. On groups of under ``enough`` rounds they say
    little.
    """

    target: str | None = None
    enough: int = ENOUGH
    squares: bool = True
    key: ClassVar[str] = "error"
    """The key of the figures in JSON."""
    signed: ClassVar[str] = "bias"
    """What the mean of the predictions less that of the labels is called."""
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
        """The group whose figure is most below the single model's; None where none is."""
        gains = [
            (self.figure(row, "baseline_regret") - self.figure(row), row)
            for row in rows
            if row["baseline_regret"] is not None
            and not self.is_small(row)
            and row["group"] != ALWAYS_ON
        ]
        gain, best = max(gains, key=lambda pair: pair[0], default=(0.0, None))
        return best if gain > 0.0 else None

    @property
    def terms(self) -> dict[str, str]:
        """What the columns mean."""
        values = "signed errors (bias) or of the squared errors (error, of which it is the root)"
        spread = {RANGE: SPREAD.format(values=values)}
        return {**TERMS, **spread, **COLOURS, "Small groups": self.small}

    @property
    def small(self) -> str:
        """What is said of small groups."""
        return (
            f"Groups with under {self.enough} rounds, or no more than they have features (few "
            "rows), are grey and come last: on so few, regret is all start."
        )

    @property
    def error_unit(self) -> str:
        """What the figures are in."""
        return label_unit(self.target)

    @property
    def loss_unit(self) -> str:
        """What losses are in, and regret and certificates with them."""
        return squared(self.error_unit) if self.squares else self.error_unit

    @property
    def bias_unit(self) -> str:
        """What the mean of predictions less labels is in."""
        return self.error_unit

    def units(self, rows: Sequence[Row]) -> dict[str, str]:
        """What the figures of these rows are in, as JSON has it."""
        ends = ("", "_low", "_high")
        own = {
            **{f"{self.key}{end}": self.error_unit for end in ends},
            **{f"bias{end}": self.bias_unit for end in ends},
        }
        known = {key: unit for key, unit in own.items() if any(key in row for row in rows)}
        return {"rounds": "rounds", **known, **units_of(list(rows[:1]), self.loss_unit)}

    def heading(self, figures: Scale) -> str:
        """What stands above figures that are shown so."""
        return f"error, {figures.unit(self.error_unit)}"

    def figures(self, values: Iterable[float]) -> Scale:
        """How figures are shown."""
        return Scale.of(values)

    def biases(self, figures: Scale) -> Scale:
        """How the mean of predictions less labels is shown, where figures are shown so."""
        return figures

    def above(self, what: str, scale: Scale) -> str:
        """What stands above losses that are shown so."""
        return f"{what}, {scale.unit(self.loss_unit)}"

    def figure(self, row: Row, regret: str | None = "regret") -> float:
        """Root of the mean square error, in the label's units."""
        mean = mean_loss(row, regret)
        return math.sqrt(mean) if self.squares else mean

    def estimate(self, errors: Errors, group: str) -> Estimate:
        """The same with its interval."""
        return errors.loss(group).root if self.squares else errors.loss(group)

    def estimates(self, errors: Errors, group: str) -> dict[str, float | None]:
        """Error and bias of a group with their intervals, by the keys that JSON has."""
        own, bias = self.estimate(errors, group), errors.bias(group)
        return {**_keyed(self.key, own), **_keyed("bias", bias)}

    def about(self, row: Row) -> list[tuple[Column, str]]:
        """What else is told of a group: columns, and what stands in them."""
        return []

    def shows_status(self, rows: Iterable[Row], narrow: bool = False) -> bool:
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


def _keyed(name: str, estimate: Estimate) -> dict[str, float | None]:
    keys = (name, f"{name}_low", f"{name}_high")
    return {key: _value(one) for key, one in zip(keys, estimate, strict=True)}


def regret_scale(rows: Iterable[Row], players: Mapping[str, str] | None = None) -> Scale:
    """How regret and certificates of these groups are shown, on pages, in tables and figures."""
    keys = ("regret", "baseline_regret", "certificate", *(players or {}).values())
    return Scale.of(row.get(key) for row in rows for key in keys)


@dataclass(frozen=True)
class Layout:
    """What the columns of a table of groups are, and how their figures are shown.

    ``players`` are headings with the keys of regret, ``theirs`` those of experts with the keys of
    their losses; ``errors`` by key of regret have bias and intervals, on a page.
    """

    measure: Measure
    players: Mapping[str, str]
    theirs: Mapping[str, str]
    experts: Sequence[str]
    errors: Mapping[str, Errors]
    names: Mapping[str, str]
    """The headings of ``errors``, by key."""
    best: str
    figures: Scale
    biases: Scale
    regret: Scale
    has_status: bool
    foresees: bool = False
    """Is there a bound that was known before the first row?"""
    name: int = NAME
    targets: Mapping[str, str] = field(default_factory=dict)
    """The place on the page that is about a group."""

    def columns(self, rows: Sequence[Row]) -> tuple[Column, ...]:
        """The headings."""
        measure = self.measure
        error, regret = measure.heading(self.figures), measure.above("regret", self.regret)
        bias = f"{measure.signed}, {self.biases.unit(measure.bias_unit)}"
        everyone = {**self.theirs, **self.players}
        return (
            Column("group", numeric=False),
            Column("rounds"),
            *(
                Column(title, bias)
                for key, one in self.errors.items()
                if one.is_signed
                for title in (self.names[key], RANGE)
            ),
            *(column for row in rows[:1] for column, _ in measure.about(row)),
            *(
                Column(title, error)
                for name, key in everyone.items()
                for title in ((name, RANGE) if key in self.errors else (name,))
            ),
            Column(self.best, error),
            *(Column(name, regret) for name in self.players),
            Column("certificate", regret),
            *([Column("a priori", regret, spare=True)] if self.foresees else []),
            *(
                Column(what, measure.above(f"against {shown(name, 30)}", self.regret))
                for name in self.experts
                for what in ("regret", "certificate")
            ),
            *([Column("status", numeric=False)] if self.has_status else []),
        )

    def cells(self, row: Row) -> tuple[Cell, ...]:
        """A group."""
        measure, group = self.measure, row["group"]
        faint = "faint" if measure.is_small(row) else ""
        name = Cell(title_of(group, self.name), target=self.targets.get(group, ""))
        cells = [name, Cell(amount(row["rounds"]), faint, float(row["rounds"]))]
        for errors in self.errors.values():
            if errors.is_signed:
                cells += self._estimated(errors.bias(group), faint, signed=True)
        cells += [Cell(text, faint) for _, text in measure.about(row)]
        single = measure.figure(row, "baseline_regret")
        for key in (*self.theirs.values(), *self.players.values()):
            error = measure.figure(row, key)
            mark = faint or (_mark(error, single) if key != "baseline_regret" else "")
            cells.append(Cell(self.figures(error), mark, _value(error)))
            if key in self.errors:
                found = measure.estimate(self.errors[key], group)
                cells += self._estimated(found, faint, signed=False)[1:]
        best = measure.figure(row, None)
        cells.append(Cell(_best(row, measure, self.figures), faint, _value(best)))
        for key in (*self.players.values(), "certificate"):
            empty = key == "certificate" and row["status"] in (LOOSE, VACUOUS, VOID)
            cells.append(self._regret(row[key], "faint" if empty else faint))
        if self.foresees:
            cells.append(self._regret(row.get("a_priori"), "faint"))
        for name_of in self.experts:
            lost = float(row[f"{LOST}{name_of}"])
            ours, error = measure.figure(row), measure.figure(row, f"{LOST}{name_of}")
            void = "faint" if row["status"] == VOID else ""
            beyond = row["regret"] + row["best_loss"] - lost
            cells.append(self._regret(beyond, faint or _mark(ours, error)))
            cells.append(self._regret(row[f"{CERTIFIED}{name_of}"], faint or void))
        if self.has_status:
            cells.append(Cell(f"{row['status']}{', few rows' * is_fitted(row)}", faint))
        return tuple(cells)

    def _regret(self, value: float | None, mark: str) -> Cell:
        return Cell(self.regret(value), mark, _value(value))

    def _estimated(self, found: Estimate, faint: str, signed: bool) -> list[Cell]:
        """A mean, and the interval it is given with; what is not 0 for sure stands out."""
        sure = signed and (found.low > 0.0 or found.high < 0.0)
        scale = self.biases.signed if signed else self.figures.__call__
        mean, low, high = map(scale, found)
        told = f"{low} to {high}" if math.isfinite(found.low) else "–"
        return [
            Cell(mean, faint or ("strong" if sure else ""), _value(found.mean)),
            Cell(told, "faint", _value(found.low)),
        ]


def _value(value: float | None) -> float | None:
    """What a cell is sorted by."""
    return value if value is not None and math.isfinite(value) else None


def group_table(
    rows: Sequence[Row],
    measure: Measure,
    title: str,
    others: Mapping[str, str] | None = None,
    note: str = "",
    narrow: bool = False,
    experts: Sequence[str] = (),
    regret: Scale | None = None,
    errors: Mapping[str, Errors] | None = None,
    targets: Mapping[str, str] | None = None,
) -> Table:
    """A row per group. ``others`` are further players: heading to the key of their regret.

    ``regret`` says how regret is shown; ``errors``, by the key of regret, bring bias and intervals.
    """
    single, best = ("single", "hindsight") if narrow else (SINGLE, BEST)
    players = {**(others or {}), OURS: "regret", single: "baseline_regret"}
    theirs = {shown(name, 30): f"{LOST}{name}" for name in experts if name not in (others or {})}
    everyone = {**theirs, **players}
    figures = measure.figures(measure.figure(row, key) for row in rows for key in everyone.values())
    layout = Layout(
        measure=measure,
        players=players,
        theirs=theirs,
        experts=experts,
        errors=errors or {},
        names={key: name for name, key in players.items()},
        best=best,
        figures=figures,
        biases=measure.biases(figures),
        regret=regret or regret_scale(rows, others),
        has_status=measure.shows_status(rows, narrow),
        foresees=any(row.get("a_priori") is not None for row in rows),
        name=UNLIMITED if narrow else NAME,
        targets=targets or {},
    )
    return Table(title, layout.columns(rows), tuple(map(layout.cells, rows)), note)


def _best(row: Row, measure: Measure, figures: Scale) -> str:
    """What the best in hindsight has, or from what to what it may."""
    low = figures(measure.figure(row, None))
    if row.get("best_kind") != BRACKET:
        return low
    high = measure.figure({**row, "best_loss": row["best_high"]}, None)
    return f"{low} to {figures(high)}"


def _mark(error: float, single: float) -> str:
    if not math.isfinite(single) or not math.isfinite(error):
        return ""
    if error < single * (1.0 - NOTICEABLE):
        return "good"
    return "bad" if error > single * (1.0 + NOTICEABLE) else ""


def summary(
    rows: Sequence[Row],
    measure: Measure,
    others: Mapping[str, str] | None = None,
    first: int | None = FIRST,
    experts: Sequence[str] = (),
) -> Table:
    """The first groups of many, for a terminal, whose names are as long as there is room for."""
    title = f"{len(rows):,} groups by regret per round, everybody first"
    if first is not None and len(rows) > first:
        title = f"The {first} worst of {len(rows):,} groups by regret per round, everybody first"
    return group_table(
        rows[:first],
        measure,
        title,
        others,
        narrow=True,
        experts=experts,
        regret=regret_scale(rows, others),
    )
