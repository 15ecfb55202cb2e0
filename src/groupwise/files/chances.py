"""Probabilities of groups in tables and sentences: log loss, base rates, calibration, notes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from groupwise.files.tables import (
    Measure,
    Row,
    fixed,
    is_small,
    mean_loss,
    title_of,
    worst,
)
from groupwise.files.text import amount, shown
from groupwise.groups import ALWAYS_ON
from groupwise.regret.calibration import CalibrationTable
from groupwise.report.calibration import (
    calibration_section,
    calibration_table,
    excess,
    reliability,
    verdict,
)
from groupwise.report.figures import draw, inline
from groupwise.report.page import Illustration, Section
from groupwise.report.tables import Column, Table

CERTAIN = 1e-3
"""With so little loss per round a logistic model tells the classes apart nearly for sure."""
TOLD = 15
"""So many groups' notes are told one by one."""

Calibrations = Mapping[str, Mapping[str, CalibrationTable]]
"""By the name of the model, then by class."""

NOTE = (
    "Log loss: minus the logarithm of the probability that was given to what came, in nats per "
    "round; the less the better. Base rate: of who knows the share of every class in the group, "
    "and nothing else. Best in hindsight: the logistic model that fits all the group’s rows best "
    "within the bound, fitted after the fact. Single model: one online logistic regression for "
    "everybody. Regret: loss beyond that of the best in hindsight, summed over the group’s rounds, "
    "in nats; below 0 every such model for the group was beaten. Certificate: the regret cannot be "
    "above it. Green: at least half a percent better than the single model, red: worse."
)


@dataclass(frozen=True)
class Nats(Measure):
    """What figures of log loss mean.

    ``shares`` has for every group the shares of the classes, whose names are ``classes``; of two
    classes the second is the positive one.
    """

    shares: Mapping[str, Sequence[float]] = field(default_factory=dict)
    classes: Sequence[str] = ()

    @property
    def heading(self) -> str:
        return "log loss, nats per round"

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
            column = Column(name)
        else:
            most = int(np.argmax(shares)) if shares else 0
            told = f"{shown(self.classes[most], 16)} {shares[most]:.0%}" if shares else "–"
            column = Column("most frequent", numeric=False)
        return [(column, told), (Column("base rate", self.heading), fixed(self.base_rate(row), 4))]

    def shows_status(self, rows: object) -> bool:
        """Always."""
        return True

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
            for said in (*self._everybody(rows, name, key), self._verdict(rows, name, key))
        ]

    def _everybody(self, rows: Sequence[Row], name: str = "", key: str = "regret") -> list[str]:
        row = next((row for row in rows if row["group"] == ALWAYS_ON), None)
        if row is None:
            return []
        others = f"; of groupwise: {amount(self.figure(row))}" if name else ""
        return [
            f"Mean log loss{f' of {shown(name)}' if name else ''} "
            f"{amount(self.figure(row, key))} nats over {amount(row['rounds'])} rows "
            f"(base rate alone: {amount(self.base_rate(row))}{others})."
        ]

    def _worst(self, rows: Sequence[Row]) -> str:
        row = worst(rows)
        single = self.figure(row, "baseline_regret")
        best = amount(self.figure(row, None))
        compared = f", and that of a single model for everybody {amount(single)}"
        return (
            f"Worst group: {title_of(row['group'])}. Over its {amount(row['rounds'])} rounds the "
            f"mean log loss is {amount(self.figure(row))}{self._alone(row)}; that of the best "
            f"logistic model for this group alone, in hindsight, is {best}"
            f"{compared if math.isfinite(single) else ''}."
        )

    def _verdict(self, rows: Sequence[Row], name: str, key: str) -> str:
        row = worst(rows, key)
        return (
            f"Worst group of {shown(name)}: {title_of(row['group'])}. Over its "
            f"{amount(row['rounds'])} rounds its mean log loss is {amount(self.figure(row, key))}"
            f"{self._alone(row)}; groupwise would have had {amount(self.figure(row))}, and the "
            "best logistic model for this group alone, in hindsight, "
            f"{amount(self.figure(row, None))}."
        )

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


def notes(rows: Sequence[Row], measure: Nats) -> list[str]:
    """What to know of groups: one class only, and bests in hindsight that are beyond the bound."""
    single = [
        row["group"]
        for row in rows
        if max(measure.shares.get(row["group"], (0.0,))) == 1.0 and not is_small(row)
    ]
    said = []
    if single:
        names = ", ".join(title_of(group) for group in single[:TOLD])
        more = f" and {len(single) - TOLD:,} more" if len(single) > TOLD else ""
        said.append(f"All labels are the same in {names}{more}.")
    noted = [row for row in rows if row.get("note") and not is_small(row)]
    said += [f"{title_of(row['group'])}: {row['note']}." for row in noted[:TOLD]]
    if len(noted) > TOLD:
        said.append(f"Of {len(noted) - TOLD:,} more groups the like is true; regret.json has it.")
    return said


def calibration(tables: Calibrations) -> Section:
    """The section of a page: of two classes by group; of more by class, and by group and class."""
    if all(len(by_class) == 1 for by_class in tables.values()):
        single = {name: next(iter(by_class.values())) for name, by_class in tables.items()}
        return calibration_section(single, title_of, TOLD + 10)
    everybody = {name: _named(by_class, everybody=True) for name, by_class in tables.items()}
    groups = {name: _named(by_class, everybody=False) for name, by_class in tables.items()}
    several = len(tables) > 1
    blocks: list[Table | Illustration | str] = []
    for name in tables:
        every = [*everybody[name], *groups[name]]
        told = verdict(CalibrationTable(every), shown)
        blocks.append(f"{name}: {told}" if several else told)
    figure = reliability(everybody, name=shown)
    blocks.append(Illustration(figure, inline(figure, draw(figure, pdf=False))))
    for name in tables:
        of = f" of {name}" if several else ""
        table = calibration_table(everybody[name], f"Everybody, by class{of}", None, shown, "")
        blocks.append(
            replace(table, columns=(Column("class", numeric=False), *table.columns[1:]))
        )
    last = list(tables)[-1]
    for name in tables:
        title = f"Groups and classes{f' of {name}' if several else ''}, the worst first"
        found = calibration_table(groups[name], title, TOLD + 10, shown)
        blocks.append(found if name == last else replace(found, note=""))
    return Section("Calibration", "calibration", blocks)


def _named(tables: Mapping[str, CalibrationTable], everybody: bool) -> CalibrationTable:
    """One table of all classes: of everybody by class, or of the groups by group and class."""
    rows, sums = [], []
    for event, table in tables.items():
        for row, kept in zip(table.rows, table.sums, strict=True):
            if (row["group"] == ALWAYS_ON) is everybody:
                name = event if everybody else f"{row['group']}: {event}"
                rows.append({**row, "group": name})
                sums.append(kept._replace(group=name))
    return CalibrationTable(rows, max(table.settled for table in tables.values()), tuple(sums))


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
