"""The ledger: what was lost on every group, and what regret needs to be known about it."""

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.protocols import Awake, Index, Row, Vector
from groupwise.reduction import Settlement
from groupwise.regret.hindsight import HindsightSums, gram_matrix, least_squares_loss

if TYPE_CHECKING:
    from groupwise.stream import Chunk, Outcome, Subsequences


class LedgerState(NamedTuple):
    """Sums over the settled rounds of each group, weighted by membership; scaled losses."""

    rounds: Vector
    loss: Vector
    """Losses of the plays; their expectation over the aggregator's draw where it samples."""
    realised_loss: Vector
    delay: Vector
    baseline_loss: Vector
    expert_loss: Vector
    """Losses of each learner of the group, at settlement."""


class Ledger:
    """Records settled rounds; arithmetic in the kernels."""

    def __init__(self, learners: int, hindsight: bool) -> None:
        from groupwise.kernels import arithmetic, hindsight as sums, ledger

        self.kernels = ledger
        self._lanes: int = arithmetic.LANES
        self._held: int = sums.HELD
        self.hindsight = hindsight
        self.state = LedgerState(*(np.zeros(0) for _ in range(5)), np.zeros((0, learners)))
        self.sums = HindsightSums(
            np.zeros((0, 0, 0)),
            np.zeros((0, 0)),
            np.zeros(0),
            np.zeros((0, self._held, 0)),
            np.zeros(0, dtype=np.int64),
        )

    def width(self, features: int) -> int:
        """The columns that the kernels run over; none where no hindsight is kept."""
        return -(-features // self._lanes) * self._lanes if self.hindsight else 0

    def reserve(self, groups: int, features: int) -> None:
        """Make room."""
        have_groups, have_features = self.sums.moment.shape
        width = self.width(features)
        if groups <= have_groups and width <= have_features:
            return
        g = capacity(groups, have_groups)
        d = width if have_features == 0 else capacity(width, have_features)
        self.state = LedgerState(*(enlarge(a, (g, *a.shape[1:])) for a in self.state))
        self.sums = HindsightSums(
            enlarge(self.sums.gram, (g, d, d)),
            enlarge(self.sums.moment, (g, d)),
            enlarge(self.sums.power, (g,)),
            enlarge(self.sums.held, (g, self._held, d)),
            enlarge(self.sums.count, (g,)),
        )

    def record(
        self,
        awake: Awake,
        row: Row,
        label: float,
        settled: Settlement,
        played: Settlement,
        baseline: float,
    ) -> None:
        """One settled round: ``settled`` as of now, ``played`` as it really was."""
        self.kernels.record(
            self.state,
            self.sums,
            awake.groups,
            awake.weights,
            row.indices,
            row.values,
            label,
            self.width(len(row.names)),
            settled.losses,
            settled.charged,
            played.charged,
            played.realised,
            baseline,
        )

    def baseline_losses(self, chunk: "Chunk", losses: Vector, baseline: int) -> Vector:
        """The loss of the baseline group's first learner in every row of a chunk."""
        out = np.empty(chunk.labels.size)
        self.kernels.baseline_losses(chunk.member_indptr, chunk.groups, losses, baseline, out)
        return out

    def record_subsequences(
        self,
        chunk: "Chunk",
        parts: "Subsequences",
        share: Index,
        losses: Vector,
        outcome: "Outcome",
        baseline: Vector,
    ) -> None:
        """``record`` over all rounds of the groups in ``share``; labels came at once."""
        self.kernels.record_subsequences(
            self.state,
            self.sums,
            share,
            parts.starts,
            parts.entries,
            parts.rows,
            chunk.weights,
            chunk.indptr,
            chunk.indices,
            chunk.values,
            chunk.labels,
            self.width(len(chunk.features)),
            losses,
            outcome.expected,
            outcome.realised,
            baseline,
        )

    def best_loss(self, group: int, features: int) -> float:
        """The scaled loss of the best linear model on the group's settled rounds."""
        return least_squares_loss(
            gram_matrix(self.sums, group, features),
            self.sums.moment[group, :features],
            float(self.sums.power[group]),
        )


def baseline_of(losses: Vector, awake: Awake, baseline: int) -> float:
    """The loss of the baseline group's first learner; not a number where it sleeps."""
    for a, group in enumerate(awake.groups.tolist()):
        if group == baseline:
            return float(losses[a, 0])
    return math.nan
