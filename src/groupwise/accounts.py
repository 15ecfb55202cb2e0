"""What a model says of its settled rounds: what was lost, and what can be said about it."""

from typing import Any

from groupwise.errors import ConfigurationError
from groupwise.features import Encoder
from groupwise.intervals import CoverageTable
from groupwise.layers import coverage_table, recalibration_table
from groupwise.losses import Loss
from groupwise.recalibration import GapTable
from groupwise.reduction import Reduction
from groupwise.registry import Registry
from groupwise.regret.calibration import CalibrationTable, calibration_table
from groupwise.regret.table import RegretTable, regret_table
from groupwise.ticket import Ticket
from groupwise.turns import Locked


class Accounts(Locked):
    """The tables of a model. Looking at them changes nothing."""

    loss: Loss
    _encoder: Encoder
    _reduction: Reduction
    _registry: Registry
    _version: int

    @property
    def group_names(self) -> list[str]:
        """The groups that were seen so far, in the order they appeared."""
        with self.lock:
            return list(self._registry.names)

    def regret(
        self,
        largest: int | None = None,
        progress: bool = False,
        against: str | None = None,
        last: int | None = None,
    ) -> RegretTable:
        """Regret and certificate of every group over the settled rounds.

        ``largest`` asks only for so many groups: those with most rounds, the largest first.
        ``progress`` shows a bar. Regret is to the best in hindsight, or ``against`` an expert.
        With windows, ``last`` asks for the shortest stretch of each group that covers so many of
        its last rounds.
        """
        with self.lock:
            known = self._registry.names, len(self._encoder.names), self._version
            return regret_table(self._reduction, *known, largest, progress, against, last)

    def calibration(self, largest: int | None = None, of: Any = None) -> CalibrationTable:
        """Calibration of every group, or of the ``largest``: of probabilities, as issued.

        With three classes and more they are those ``of`` one of them.
        """
        with self.lock:
            known = self.group_names, self._version
            return calibration_table(self._reduction, *known, largest, of)

    def recalibration(self, largest: int | None = None) -> RegretTable | GapTable:
        """What recalibration promises on every group: regret to its best map, or its gap."""
        with self.lock:
            known = self.group_names, self._version, largest
            return recalibration_table(self._reduction, *known)

    def coverage(self, largest: int | None = None) -> CoverageTable:
        """How often labels were in the intervals issued for them: every group, or the largest."""
        with self.lock:
            known = self.group_names, self._version, largest
            return coverage_table(self._reduction, *known)

    def best_elsewhere(self, group: str, of: str) -> float:
        """What the best action or policy of the group ``of`` would have lost on ``group``.

        In hindsight, over the settled rounds and in the label's units, from the range's low end, as
        ``best_loss`` in the regret table.
        """
        if not self._reduction.actions:
            raise ConfigurationError(
                "best_elsewhere compares actions or policies: it needs learners such as "
                "learners.FTPL or learners.ContextualFTPL."
            )
        with self.lock:
            first = self._registry.first
            for name in (group, of):
                if name not in first:
                    raise ConfigurationError(f"No row of group {name!r} has been learned from yet.")
            return self.loss.unit * self._reduction.elsewhere(first[group], first[of])

    def loss_of(self, prediction: Any, y: Any) -> float:
        """What a prediction loses on a label, scaled to [0, 1]."""
        return self._reduction.loss_of(prediction, self.loss.encode(y))

    def loss_of_ticket(self, ticket: Ticket, y: Any, expected: bool = False) -> float:
        """What a ticket's prediction loses on a label, scaled to [0, 1]; perhaps in expectation."""
        settlement = self._reduction.score(ticket.play, self.loss.encode(y))
        return settlement.charged if expected else settlement.realised

    def check_label(self, ticket: Ticket, y: Any) -> None:
        """Raise LabelError where a ticket could not be settled with a label."""
        self._reduction.check_label(ticket.play, self.loss.encode(y))
