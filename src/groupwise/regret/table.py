"""The regret table: one row per group."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.groups import ALWAYS_ON
from groupwise.kernels import compiling
from groupwise.progress import stepping
from groupwise.protocols import BRACKET, Hindsight
from groupwise.regret.certificate import aggregator_bounds, certify, foreknown, totals
from groupwise.regret.printed import Printed, text
from groupwise.regret.stretches import clocks_for, joined
from groupwise.regret.threads import one_thread
from groupwise.store import Store

if TYPE_CHECKING:
    from groupwise.reduction import Reduction

LOSSES = ("loss", "realised_loss")
LOST, CERTIFIED = "loss of ", "certificate against "
"""Before the name of an expert: its loss, and by how much ours can exceed that at most."""
IN_LOSS = (
    *("loss", "realised_loss", "best_loss", "best_error", "best_low", "best_high", "payments"),
    *("regret", "baseline_regret", "certificate", "learner", "aggregator", "delay", "a_priori"),
    *("recalibration", "learner_a_priori"),
)
"""The keys whose figures are in the unit of the loss."""
NOTES = 5
"""So many groups' notes are printed below a table."""
SHOWN = (
    "group",
    "length",
    "rounds",
    "few_rows",
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
    "recalibration",
    "a_priori",
    "status",
)


@dataclass(frozen=True, repr=False)
class RegretTable(Printed):
    """Regret and certificate of every group over the settled rounds.

    ``rows`` is a list of dictionaries with the keys group, rounds, few_rows, loss, realised_loss,
    best_loss, best_error, best_kind, best_low, best_high, regret, baseline_regret, certificate,
    learner, aggregator, delay, a_priori, learner_a_priori, status and note; ``units`` has what
    they are in.
    ``loss`` and ``regret`` are expectations over the aggregator's draw where it samples;
    ``realised_loss`` is what the drawn predictions lost. ``best_kind`` is "exact", or "bracket"
    where all that is known of the best loss is that it lies between ``best_low`` and ``best_high``;
    ``best_loss`` is the lower side, so that ``regret`` is the upper side of regret. ``best_error``
    is how far it may be from the truth by rounding. ``baseline_regret`` is that of the always-on
    group's own learner, the single model; None where there is no such group. ``few_rows`` says that
    the group has no more rounds than its rows have had features: the best may fit them whatever the
    labels are, and regret against it says little. ``note`` is what to know about the best.
    ``a_priori`` is what regret could be at most by what is known before the first row, given the
    group's rounds (:mod:`groupwise.bounds`), with late labels as they were; ``learner_a_priori`` is
    the part of it that is the learner's. Both are None where nothing is known, and ``foreknown``
    says what of it was measured, or why there is none.
    ``comparator`` says what ``best_loss`` is the loss of; where groups have learners of different
    classes, rows have a key ``comparator`` of their own. Groups that happen to have the same name
    have a row each; ``table[name]`` is the first of them, the one that appeared first.

    Of every expert that came with the rows, in a column such as ``theirs``, a row has ``loss of
    theirs`` and ``certificate against theirs``, by which ``loss`` can exceed it at most; below 0 it
    is beaten by as much. ``model.regret(against="theirs")`` is a table about it alone.

    ``model.regret(last=1000)`` is about a stretch of each group, as many of its last rounds as
    ``length`` says (``groupwise.dyadic``).
    """

    comparator: str = "the best linear model in hindsight"
    settled: int = 0
    experts: tuple[str, ...] = ()
    unit: str = "label"
    """What losses, regret and certificates are in: ``units`` has it for every key."""
    foreknown: str = ""
    """What is in ``a_priori``, or why there is none."""
    last: int | None = None
    """Of how many of each group's last rounds it is at least; None: of all."""

    words: ClassVar[frozenset[str]] = frozenset({"group", "status"})

    def shown(self) -> list[str]:
        """The keys to print; payments and brackets where there are any."""
        left_out = {"best_high", "best_kind"} if not self._brackets() else set()
        if not any(row.get("few_rows") for row in self.rows):
            left_out.add("few_rows")
        beside = [f"{what}{name}" for name in self.experts for what in (LOST, CERTIFIED)]
        for key in ("payments", "recalibration", *beside):
            if not any(key in row for row in self.rows):
                left_out.add(key)
        if all(row.get("a_priori") is None for row in self.rows):
            left_out.add("a_priori")
        if self.last is None:
            left_out.add("length")
        return [key for key in (*SHOWN, *beside) if key not in left_out]

    @property
    def units(self) -> dict[str, str]:
        """What every figure is in: losses, regret and certificates in the unit of the loss."""
        return units_of(self.rows, self.unit)

    def _brackets(self) -> bool:
        return any(row.get("best_kind") == BRACKET for row in self.rows)

    def remarks(self) -> list[str]:
        """What regret is against, and what is known of that."""
        said = [f"{self.settled} settled rounds; regret is against {self.comparator}."]
        classes: dict[str, list[str]] = {}
        for row in self.rows:
            if "comparator" in row:
                classes.setdefault(row["comparator"], []).append(text(row["group"]))
        for comparator, groups in classes.items():
            more = f" and {len(groups) - NOTES} more" if len(groups) > NOTES else ""
            said.append(f"Against {comparator}: {', '.join(groups[:NOTES])}{more}.")
        if self.last is not None:
            said.append(
                f"Of every group the last {self.last} rounds, within the shortest stretch that "
                "there is (length): two windows have a best model each."
            )
        if self._brackets():
            said.append(
                "Where best_kind is bracket, the best loss is between best_loss and best_high, and "
                "regret is what it is at most."
            )
        if few := sum(bool(row.get("few_rows")) for row in self.rows):
            said.append(
                f"{few} of {len(self.rows)} groups have no more rounds than features (few_rows): "
                "what is best in hindsight may fit them whatever the labels are."
            )
        if self.foreknown and self.rows and self.last is None:
            said.append(self.foreknown)
        noted = [(row["group"], row["note"]) for row in self.rows if row.get("note")]
        said += [f"{text(group)}: {note}." for group, note in noted[:NOTES]]
        if len(noted) > NOTES:
            said.append(f"… and {len(noted) - NOTES} more notes.")
        return said


def units_of(rows: list[dict[str, Any]], unit: str) -> dict[str, str]:
    """The unit of every key of these rows that has one.

    >>> units_of([{"group": "a", "rounds": 3.0, "loss": 1.0, "loss of theirs": 2.0}], "label²")
    {'loss': 'label²', 'loss of theirs': 'label²'}
    """
    keys = rows[0] if rows else ()
    in_loss = (key for key in keys if key in IN_LOSS or key.startswith((LOST, CERTIFIED)))
    return dict.fromkeys(in_loss, unit)


def in_order(books: Store, names: list[str], largest: int | None) -> list[int]:
    """The groups to show: all, the always-on one last; or so many with the most rounds."""
    if largest is None:
        return sorted(range(len(names)), key=lambda g: names[g] == ALWAYS_ON)
    rounds = books.column("rounds", len(names))[:, 0]
    order: list[int] = np.argsort(-rounds, kind="stable")[:largest].tolist()
    return order


@compiling()
@one_thread()
def regret_table(
    reduction: "Reduction",
    names: list[str],
    features: int,
    settled: int,
    largest: int | None = None,
    progress: bool = False,
    against: str | None = None,
    last: int | None = None,
) -> RegretTable:
    """The table for groups 0 … len(names) − 1, or for the ``largest`` of them.

    Regret is to the best of the class or, where it is ``against`` one, to an expert; on all rounds
    or, with windows, on the shortest stretches that cover the ``last`` of each group.
    """
    unit, experts = reduction.loss.unit, reduction.logged
    comparators = reduction.comparators(len(names))
    if against is not None and against not in experts:
        named = ", ".join(map(repr, experts)) or "none: give some with experts=[...]"
        raise ConfigurationError(f"There is no expert {against!r}. Known are {named}.")
    bounds = aggregator_bounds(reduction, len(names)) if names else np.zeros((0, 0))
    before, reason = foreknown(reduction, len(names)) if names else (None, "")
    clocks = clocks_for(reduction, last)
    if clocks is not None:
        before = None

    def row_of(g: int, name: str) -> dict[str, Any]:
        own = totals(reduction.books.of(g))
        said = reduction.logged_of(g)
        theirs = {name: Hindsight(float(own.expert_loss[k])) for name, k in said.items()}
        if against is None:
            losses = own.expert_loss[: reduction.experts_of(g) - len(experts)]
            known = reduction.hindsight(g, features) or Hindsight(float(losses.min()))
        else:
            known = theirs[against]
        best = known.best
        loss, baseline = float(own.loss[0]), float(own.baseline_loss[0])
        issued = reduction.issued_loss(g)
        moved = 0.0 if issued is None else issued - loss
        foreseen = None if before is None else before[g]
        certificate = certify(
            reduction, own, g, known, bounds[g], moved, foreseen, to_expert=against is not None
        )
        row: dict[str, Any] = {
            "group": name,
            "rounds": float(own.rounds[0]),
            "few_rows": bool(0.0 < own.rounds[0] <= known.columns),
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
            "learner_a_priori": certificate.learner_a_priori,
            "status": certificate.status,
            "note": known.note,
        }
        if against is None and len(comparators) > 1:
            row["comparator"] = reduction.comparator_of(g)
        if against is None:
            for name, expert in theirs.items():
                bound = certify(reduction, own, g, expert, bounds[g], moved).total
                row |= {f"{LOST}{name}": unit * expert.best, f"{CERTIFIED}{name}": bound}
        if issued is not None:
            row |= {**dict.fromkeys(LOSSES, unit * issued), "recalibration": unit * moved}
            row["regret"] += unit * moved
        return row

    rows: list[dict[str, Any]] = []
    order = in_order(reduction.books, names, largest)
    for g in stepping(order, "best in hindsight", progress, "groups"):
        if clocks is None or last is None:
            rows.append(row_of(g, names[g]))
            continue
        stretch = clocks.last(g, last)
        pieces = [row_of(number, names[g]) for number in stretch.numbers]
        rows.append({**joined(reduction, pieces), "length": stretch.length})
    named = " or ".join(comparators) or reduction.comparator
    if len(comparators) > 1:
        named += ", as the group's own learners are"
    named = named if against is None else f"the predictions in {against!r}"
    beside = tuple(experts) if against is None else ()
    told = "a_priori is not known for stretches."
    if clocks is None:
        told = said_beforehand(reduction, rows, reason, against is not None)
    return RegretTable(rows, named, settled, beside, reduction.loss.measure, told, last)


def said_beforehand(
    reduction: "Reduction", rows: list[dict[str, Any]], reason: str, to_expert: bool
) -> str:
    """What is in ``a_priori``, or why there is none."""
    if all(row["a_priori"] is None for row in rows):
        return f"No a_priori: {reason or 'no learner has a bound from before the first row'}."
    if to_expert or not any(bank.measured for bank in reduction.banks):
        return "a_priori is the bound known before the first row, given the rounds."
    return (
        "a_priori is the bound known before the first row, given the rounds; the size of rows and "
        "of the best model in it are measured."
    )
