"""Probabilities of groups in tables and sentences: log loss, base rates, calibration, notes."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from groupwise.files.tables import (
    COLOURS,
    ENOUGH,
    EVERYBODY,
    NAME,
    RANGE,
    SPREAD,
    Measure,
    Row,
    mean_loss,
    title_of,
)
from groupwise.files.text import amount, shown
from groupwise.files.units import Scale, fixed
from groupwise.groups import ALWAYS_ON
from groupwise.regret.calibration import CalibrationTable
from groupwise.report.calibration import DRAWN, calibration_section, excess, reliability, verdict
from groupwise.report.calibration import NOTE as CALIBRATION_NOTE
from groupwise.report.figures import draw, inline
from groupwise.report.page import Illustration, Section
from groupwise.report.tables import Cell, Column, Table

CERTAIN = 1e-3
"""With so little loss per round a logistic model tells the classes apart nearly for sure."""
EACH = 2
"""Rounds for every feature, on fewer of which the best in hindsight says little."""
TOLD = 15
"""So many groups' notes are told one by one."""

Calibrations = Mapping[str, Mapping[str, CalibrationTable]]
"""By the name of the model, then by class."""

TERMS = {
    "Gap": "the mean probability less the share of positive labels: above 0, probabilities are too "
    "high on average. In bold where its interval is on one side of 0.",
    "Log loss": "minus the logarithm of the probability that was given to what came, in nats per "
    "round; the less the better.",
    "Base rate": "of who knows the share of every class in the group, and nothing else.",
    "Single model": "one online logistic regression for everybody.",
    "Best in hindsight": "the {best} that fits all the group’s rows best within the bound, fitted "
    "after the fact.",
    "Regret": "loss beyond that of the best in hindsight, summed over the group’s rounds, in nats; "
    "below 0 every such model for the group was beaten.",
}


@dataclass(frozen=True)
class Nats(Measure):
    """What figures of log loss mean.

    ``shares`` has for every group the shares of the classes, whose names are ``classes``; of two
    classes the second is the positive one.
    """

    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    classes: Sequence[str] = ()
    squares: bool = False
    signed: ClassVar[str] = "gap"
    key: ClassVar[str] = "log_loss"
    words: ClassVar[tuple[str, str, str]] = ("has a mean log loss of", "of", "a mean log loss of")
    slow: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        target: str | None,
        classes: Sequence[str],
        tables: Mapping[str, CalibrationTable],
        features: int,
    ) -> "Nats":
        """For models of so many features: on hardly more rounds, one can be fitted to anything."""
        enough = max(ENOUGH, EACH * features)
        return cls(target, enough, shares=shares_of(tables), classes=classes)

    @property
    def terms(self) -> dict[str, str]:
        own = {word: meaning.format(best=self._best) for word, meaning in TERMS.items()}
        if len(self.classes) > 2:
            del own["Gap"]
        spread = {RANGE: SPREAD.format(values="losses, or of probability less label (gap),")}
        return {**own, **spread, **COLOURS, "Small groups": self.small}

    @property
    def small(self) -> str:
        if self.enough == ENOUGH:
            return super().small
        return (
            f"Groups with under {self.enough:,} rounds, {EACH} for every feature, are grey and "
            "come last: to so few rows a model can be fitted afterwards, whatever they are (few "
            "rows: no more than the group itself has features)."
        )

    @property
    def error_unit(self) -> str:
        return "nats per round"

    @property
    def loss_unit(self) -> str:
        return "nats"

    @property
    def bias_unit(self) -> str:
        return "share"

    def heading(self, figures: Scale) -> str:
        return f"log loss, {self.error_unit}"

    def figures(self, values: Iterable[float]) -> Scale:
        """How figures are shown: without powers of ten, as base rates beside them."""
        return Scale.of(values, powers=False)

    def biases(self, figures: Scale) -> Scale:
        """How shares are shown."""
        return Scale(0, 3)

    def figure(self, row: Row, regret: str | None = "regret") -> float:
        """The mean log loss."""
        return mean_loss(row, regret)

    def base_rate(self, row: Row) -> float:
        """The log loss per round of who knows the shares of the classes; NaN where unknown."""
        return entropy(self.shares[row["group"]]) if row["group"] in self.shares else math.nan

    def about(self, row: Row) -> list[tuple[Column, str]]:
        """The share of the positive class, or the most frequent one; and the base rate's loss."""
        if not self.shares:
            return []
        shares = self.shares.get(row["group"], ())
        if len(self.classes) == 2:
            name = f"{shown(self.classes[1], 16)}, %"
            told = fixed(100.0 * shares[1], 1) if shares else "–"
            column = Column(name, spare=True)
        else:
            most = int(np.argmax(shares)) if shares else 0
            told = f"{shown(self.classes[most], 16)} {shares[most]:.0%}" if shares else "–"
            column = Column("most frequent", numeric=False, spare=True)
        return [
            (column, told),
            (Column("base rate", self.heading(Scale())), fixed(self.base_rate(row), 4)),
        ]

    def shows_status(self, rows: object, narrow: bool = False) -> bool:
        """In a terminal; a page, which has it beside the terms of certificates, has no room."""
        return narrow

    def is_exact(self, row: Row) -> bool:
        """Is there a logistic model that is nearly sure of all labels, which are not all alike?"""
        alike = max(self.shares.get(row["group"], (1.0,))) == 1.0
        return not alike and row["best_high"] < CERTAIN * row["rounds"]

    def headlines(self, rows: Sequence[Row], players: Mapping[str, str]) -> list[str]:
        """The loss on everybody, and the worst group; in an audit, of every model."""
        if not players:
            return [*self._everybody(rows), self._worst(rows)]
        return [
            said
            for name, key in players.items()
            for said in (*self._everybody(rows, name, key), self._worst(rows, name, key))
        ]

    def _everybody(self, rows: Sequence[Row], name: str = "", key: str = "regret") -> list[str]:
        row = next((row for row in rows if row["group"] == ALWAYS_ON), None)
        if row is None:
            return []
        others = f"groupwise: {amount(self.figure(row))}, " if name else ""
        of = f" of {shown(name)}:" if name else ""
        known = f"{others}base rate alone: {amount(self.base_rate(row))}"
        return [
            f"Mean log loss{of} {amount(self.figure(row, key))} nats over {amount(row['rounds'])} "
            f"rows ({known}).{self._in_vain(row, key)}"
        ]

    def _in_vain(self, row: Row, key: str) -> str:
        """What to say where nothing was gained."""
        if not self.figure(row, key) >= self.base_rate(row):
            return ""
        return (
            " That is no better than the base rate: the columns say little of the label, or are "
            "too many for these rows. Try fewer with --features."
        )

    def _of_ours(self, row: Row) -> str:
        single = self.figure(row, "baseline_regret")
        best = amount(self.figure(row, None))
        compared = f", and that of a single model for everybody {amount(single)}"
        return (
            f"Worst group: {title_of(row['group'])}. Over its {amount(row['rounds'])} rounds the "
            f"mean log loss is {amount(self.figure(row))}{self._alone(row)}; that of the best "
            f"{self._best} for this group alone, in hindsight, is {best}"
            f"{compared if math.isfinite(single) else ''}."
        )

    def _of_another(self, row: Row, name: str, key: str) -> str:
        return (
            f"Worst group of {shown(name)}: {title_of(row['group'])}. Over its "
            f"{amount(row['rounds'])} rounds its mean log loss is {amount(self.figure(row, key))}"
            f"{self._alone(row)}; groupwise would have had {amount(self.figure(row))}, and the "
            f"best {self._best} for this group alone, in hindsight, "
            f"{amount(self.figure(row, None))}."
        )

    @property
    def _best(self) -> str:
        return "chain of logistic models" if len(self.classes) > 2 else "logistic model"

    def _alone(self, row: Row) -> str:
        rate = self.base_rate(row)
        return f" (base rate alone: {amount(rate)})" if math.isfinite(rate) else ""

    def gained(self, row: Row) -> str:
        return (
            f"Most is gained on {title_of(row['group'])}: a mean log loss of "
            f"{amount(self.figure(row))} rather than the single model’s "
            f"{amount(self.figure(row, 'baseline_regret'))}."
        )


def entropy(shares: Sequence[float]) -> float:
    """The log loss per round of who knows these shares, and nothing else.

    >>> round(entropy([0.5, 0.5]), 4), entropy([0.0, 1.0])
    (0.6931, 0.0)
    """
    return math.fsum(-share * math.log(share) for share in shares if share > 0.0) + 0.0


def shares_of(tables: Mapping[str, CalibrationTable]) -> dict[str, list[float]]:
    """The share of every class in every group; of two classes, one has a table."""
    shares: dict[str, list[float]] = {}
    for table in tables.values():
        for row in table:
            if row["mean_label"] is not None:
                shares.setdefault(row["group"], []).append(row["mean_label"])
    if len(tables) == 1:
        return {group: [1.0 - yes, yes] for group, (yes,) in shares.items()}
    return shares


def notes(rows: Sequence[Row], measure: Nats) -> list[str | Table]:
    """What to know of groups: one class only, and bests in hindsight that are beyond the bound."""
    single = [row["group"] for row in rows if max(measure.shares.get(row["group"], (0.0,))) == 1.0]
    said: list[str | Table] = []
    if single:
        names = ", ".join(title_of(group) for group in single[:TOLD])
        more = f" and {len(single) - TOLD:,} more" if len(single) > TOLD else ""
        said.append(f"All labels are the same in {names}{more}.")
    noted = [row for row in rows if row.get("note")]
    if noted:
        said.append(
            f"On {len(noted):,} of {len(rows):,} groups there is a better logistic model beyond "
            "the bound that best in hindsight and certificates are for; losses are in nats, all "
            "rounds together."
        )
        columns = Column("group", numeric=False), Column("beyond the bound", numeric=False)
        lines = [(Cell(title_of(row["group"], NAME)), Cell(row["note"])) for row in noted[:TOLD]]
        more = f"… and {len(noted) - TOLD:,} more, which regret.json has."
        said.append(Table("", columns, tuple(lines), more if len(noted) > TOLD else ""))
    return said


def calibration(tables: Calibrations) -> Section:
    """The section of a page: of two classes by group, of more by class and group.

    ``tables`` are ours first; in an audit the groups come first on which the second model, the
    first of those audited, is worst.
    """
    every = {model: _joined(by_class) for model, by_class in tables.items()}
    classes = max(len(by_class) for by_class in tables.values())
    if len(every) == 1 and classes == 1:
        return calibration_section(every, title_of, TOLD + 10)
    what = "groups" if classes == 1 else "pairs of group and class"
    blocks: list[Table | Illustration | str] = [
        f"{f'{shown(model, 30)}: ' if len(every) > 1 else ''}{verdict(table, title_of, what)}"
        for model, table in every.items()
    ]
    order = _ranked(list(every.values())[-1 if len(every) == 1 else 1])
    drawn = [row["group"] for row in order if row["ece"] is not None][:DRAWN]
    figure = reliability(every, drawn, title_of)
    if classes > 1:
        caption = figure.caption.replace("positive labels", "rows of the class")
        caption = caption.replace("groups", what)
        figure = replace(figure, caption=caption, y_label="share of rows of the class")
    blocks.append(Illustration(figure, inline(figure, draw(figure, pdf=False))))
    blocks.append(_beside(every, [row["group"] for row in order][: TOLD + 10], classes))
    return Section("Calibration", "calibration", blocks)


def _joined(tables: Mapping[str, CalibrationTable]) -> CalibrationTable:
    """One table of all classes; where they are several, rows are called by group and class."""
    if len(tables) == 1:
        return next(iter(tables.values()))
    rows, sums = [], []
    for event, table in tables.items():
        for row, kept in zip(table.rows, table.sums, strict=True):
            name = f"{title_of(row['group'], NAME)}: {shown(event, 30)}"
            rows.append({**row, "group": name})
            sums.append(kept._replace(group=name))
    return CalibrationTable(rows, max(table.settled for table in tables.values()), tuple(sums))


def _ranked(table: CalibrationTable) -> list[Row]:
    """Everybody first, whatever the class; then by the excess of the error over chance."""

    def place(row: Row) -> tuple[bool, float]:
        everybody = row["group"] == ALWAYS_ON or row["group"].startswith(EVERYBODY)
        return not everybody, -excess(row)

    return sorted(table, key=place)


def _beside(tables: Mapping[str, CalibrationTable], groups: Sequence[str], classes: int) -> Table:
    """The calibration of several models in one table."""
    known = {model: {row["group"]: row for row in table} for model, table in tables.items()}
    first = next(iter(known.values()))
    columns = [Column("group" if classes == 1 else "group and class", numeric=False)]
    columns += [Column("rounds"), Column("labels", "mean, share")]
    for model in tables:
        titles = ("gap, share", "Brier, share²", "AUC, share", "error, share", "by chance, share")
        columns += [Column(title, shown(model, 30)) for title in titles]
    lines = []
    for group in groups:
        row = first[group]
        line = [
            Cell(title_of(group, NAME)),
            Cell(amount(row["rounds"])),
            _cell(row, "mean_label", 3),
        ]
        for rows in known.values():
            row = rows[group]
            line += [_cell(row, "gap", 3), _cell(row, "brier", 4), _cell(row, "auc", 3)]
            line += [_cell(row, "ece", 3, "bad" if excess(row) > 0.0 else "")]
            line += [_cell(row, "ece_95", 3, "faint")]
        lines.append(tuple(line))
    return Table("Calibration", tuple(columns), tuple(lines), CALIBRATION_NOTE)


def _cell(row: Row, key: str, decimals: int, mark: str = "") -> Cell:
    value = row[key]
    return Cell(fixed(math.nan if value is None else value, decimals), mark)


def calibrated(tables: Calibrations) -> list[str]:
    """A sentence about the calibration of every model, of its worst class."""
    said = []
    for name, by_class in tables.items():
        rows = {
            event: row
            for event, table in by_class.items()
            for row in table
            if row["group"] == ALWAYS_ON and row["ece"] is not None
        }
        if rows:
            event = max(rows, key=lambda one: excess(rows[one]))
            row, table = rows[event], by_class[event]
            of = f" of {shown(name)}" if len(tables) > 1 else ""
            which = f", worst for {shown(event, 30)}" if len(by_class) > 1 else ""
            over = sum(excess(one) > 0.0 for one in table)
            said.append(
                f"Calibration error{of}{which}: {row['ece']:.2g} on everybody, where chance "
                f"explains {row['ece_95']:.2g}; above chance on {over:,} of {len(table):,} groups."
            )
    return said
