"""Regret beside its certificate, explained: what each of them is, and what the terms say."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from groupwise.files.tables import NAME, Row, is_fitted, regret_scale, title_of
from groupwise.files.text import amount
from groupwise.protocols import BRACKET
from groupwise.regret.certificate import (
    ESTIMATED,
    IN_EXPECTATION,
    LOOSE,
    PROVED,
    SAMPLED,
    UNCERTAIN,
    VACUOUS,
    VOID,
)
from groupwise.report.page import Block, Terms
from groupwise.report.tables import Cell, Column, Table

if TYPE_CHECKING:
    from groupwise.files.run import Finished

STATUS = {
    PROVED: "regret is at most this, whatever the data, and it is less than the best in hindsight "
    "lost itself.",
    LOOSE: "it holds like one that is proved, but is above what the best in hindsight lost itself, "
    "so that it says little.",
    VACUOUS: "it holds, but is above what all rounds together could lose: too few rounds so far.",
    IN_EXPECTATION: "a learner draws random numbers, and it holds for the mean over all draws.",
    SAMPLED: "a learner draws random numbers, and it holds for the mean over all draws; a constant "
    "in it was sampled, with a margin that is too small once in a million times.",
    ESTIMATED: "it rests on an estimate.",
    VOID: "a condition is violated, such as predictions that left the range of the label: it "
    "says nothing.",
    UNCERTAIN: "double precision cannot tell the best loss closely enough.",
}
KEYS = {"learner": "the group’s own model", "aggregator": "combining", "delay": "late labels"}
MOVED = "recalibration"


def explained(done: "Finished", most: int) -> list[Block]:
    """What regret and certificate are here, and the terms of the certificates."""
    rows = done.rows
    exact = (
        "the best in hindsight is known between two bounds, and regret is what it is at most"
        if _bracketed(rows)
        else "all labels are in, so the best model of every group was fitted to them, and regret "
        "is exact"
    )
    model = "logistic" if done.measure.slow else "linear"
    said = [
        f"Two figures answer two questions. Regret: by how much did we lose more than the best "
        f"{model} model of the group? Here {exact}. Certificate: by how much can we have lost more "
        "at most? What the group’s own model lost more than the best, which is measured, and what "
        "combining it with the models of other groups can have cost at most, which is proved. It "
        "assumes nothing about the data, neither that rows are alike nor that they are "
        "independent; it holds at every moment and for all groups at once.",
        "Where regret is known, why a certificate beside it? Regret is a finding about these rows; "
        "the certificate says that it was no luck. Whatever the labels had been, even chosen by "
        "somebody who sees every prediction first, regret would have stayed below a certificate "
        "that is computed in the same way. Beside the exact regret it can be checked, which is "
        "never above it; what is between the two is what the proof gives away.",
    ]
    return [*said, _terms(done, rows, most), Terms(_words(rows))]


def _terms(done: "Finished", rows: Sequence[Row], most: int) -> Table:
    scale = regret_scale(rows, done.players)
    unit = scale.unit(done.measure.loss_unit)
    keys = {**KEYS, **({MOVED: MOVED} if any(MOVED in row for row in rows) else {})}
    foreseen = any(row.get("a_priori") is not None for row in rows)
    columns = (
        Column("group", numeric=False),
        Column("rounds"),
        Column("exact" if not _bracketed(rows) else "at most", f"regret, {unit}"),
        Column("total", f"certificate, {unit}"),
        *(Column(word, f"certificate, {unit}") for word in keys.values()),
        Column("given away", f"certificate less regret, {unit}"),
        *([Column("known", f"before the first row, {unit}")] if foreseen else []),
        Column("status", numeric=False),
    )
    lines = []
    for row in rows:
        faint = "faint" if done.measure.is_small(row) else ""
        room = row["certificate"] - row["regret"]
        values = [row["regret"], row["certificate"], *(row.get(key, 0.0) for key in keys), room]
        values += [row.get("a_priori")] if foreseen else []
        lines.append(
            (
                Cell(title_of(row["group"], NAME)),
                Cell(amount(row["rounds"]), faint, float(row["rounds"])),
                *(Cell(scale(value), faint, value) for value in values),
                Cell(f"{row['status']}{', few rows' * is_fitted(row)}", faint),
            )
        )
    note = (
        "The group’s own model: what the learner of the group alone lost more than the best in "
        "hindsight. Combining: what mixing the advice of the groups that a row is in can have cost "
        "at most; below 0, it has gained. Late labels: what it cost to predict before earlier "
        f"labels had come. {done.table.foreknown.replace('a_priori', 'Known before the first row')}"
    )
    first = most if len(lines) > most else None
    title = "Certificates and their terms"
    return Table(title, columns, tuple(lines), note, sortable=True, first=first)


def _bracketed(rows: Sequence[Row]) -> bool:
    return any(row.get("best_kind") == BRACKET for row in rows)


def _words(rows: Sequence[Row]) -> dict[str, str]:
    """The words for certificates that these groups have."""
    found = {row["status"] for row in rows}
    return {word: meaning for word, meaning in STATUS.items() if word in found}
