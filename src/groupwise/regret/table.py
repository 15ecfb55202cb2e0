"""The regret table: one row per group."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from groupwise.groups import ALWAYS_ON
from groupwise.protocols import Hindsight
from groupwise.regret.certificate import aggregator_bounds, certify, totals
from groupwise.regret.printed import Printed

if TYPE_CHECKING:
    from groupwise.reduction import Reduction

SHOWN = (
    "group",
    "rounds",
    "loss",
    "best_loss",
    "payments",
    "regret",
    "certificate",
    "learner",
    "aggregator",
    "delay",
    "status",
)


@dataclass(frozen=True, repr=False)
class RegretTable(Printed):
    """Regret and certificate of every group over the settled rounds.

    ``rows`` is a list of dictionaries with the keys group, rounds, loss, realised_loss, best_loss,
    best_error, regret, baseline_regret, certificate, learner, aggregator, delay, a_priori and
    status; figures are in the label's units. ``loss`` and ``regret`` are expectations over the
    aggregator's draw where it samples; ``realised_loss`` is what the drawn predictions lost.
    ``best_error`` is how far ``best_loss`` may be from the truth. ``baseline_regret`` is that of
    the always-on group's own learner, the single model; None where there is no such group.
    ``comparator`` says what ``best_loss`` is the loss of. Groups that happen to have the same name
    have a row each; ``table[name]`` is the first of them, the one that appeared first.
    """

    comparator: str = "the best linear model in hindsight"
    settled: int = 0

    words: ClassVar[frozenset[str]] = frozenset({"group", "status"})

    def shown(self) -> list[str]:
        """The keys to print; payments where there are any."""
        paid = any("payments" in row for row in self.rows)
        return [key for key in SHOWN if paid or key != "payments"]

    def note(self) -> str:
        """What regret is against."""
        return f"{self.settled} settled rounds; regret is against {self.comparator}."


def in_order(reduction: "Reduction", names: list[str], largest: int | None) -> list[int]:
    """The groups to show: all, the always-on one last; or so many with the most rounds."""
    if largest is None:
        return sorted(range(len(names)), key=lambda g: names[g] == ALWAYS_ON)
    rounds = reduction.books.column("rounds", len(names))[:, 0]
    order: list[int] = np.argsort(-rounds, kind="stable")[:largest].tolist()
    return order


def regret_table(
    reduction: "Reduction",
    names: list[str],
    features: int,
    settled: int,
    largest: int | None = None,
) -> RegretTable:
    """The table for groups 0 … len(names) − 1, or for the ``largest`` of them."""
    unit = reduction.loss.unit
    bounds = aggregator_bounds(reduction, len(names)) if names else np.zeros((0, 0))
    rows = []
    for g in in_order(reduction, names, largest):
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
                "regret": unit * (loss - best),
                "baseline_regret": None if math.isnan(baseline) else unit * (baseline - best),
                "certificate": certificate.total,
                "learner": certificate.learner,
                "aggregator": certificate.aggregator,
                "delay": certificate.delay,
                "a_priori": certificate.a_priori,
                "status": certificate.status,
            }
        )
    return RegretTable(rows, reduction.comparator, settled)
