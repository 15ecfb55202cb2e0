"""The ledger: what was lost on every group, and what regret needs to be known about it."""

import copy
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.arrays import capacity, duplicate, enlarge, room
from groupwise.kernels.cells import tidy_row
from groupwise.kernels.ledger import record
from groupwise.learners.ridge import Ridge
from groupwise.losses import Loss
from groupwise.protocols import Awake, Row
from groupwise.reduction import Settlement
from groupwise.regret.hindsight import gram_matrix, least_squares_loss
from groupwise.states import HELD, HindsightSums, LedgerState, Vector


class Ledger:
    """Records settled rounds; arithmetic in the kernels."""

    def __init__(self, learners: int, hindsight: bool) -> None:
        self.hindsight = hindsight
        none = np.zeros(0)
        self.state = LedgerState(none, none, none, none, none, np.zeros((0, learners)))
        self.sums = HindsightSums(
            gram=np.zeros((0, 0, 0)),
            place=np.zeros(0, dtype=np.int64),
            placed=np.zeros(1, dtype=np.int64),
            moment=np.zeros((0, 0)),
            power=np.zeros(0),
            held=np.zeros((0, HELD, 0)),
            waiting=np.zeros(0, dtype=np.int64),
            rows=np.zeros(0, dtype=np.int64),
        )

    def reserve(self, groups: int, features: int) -> None:
        """Make room."""
        have_groups, have_features = self.sums.moment.shape
        wanted = room(features) if self.hindsight else 0
        if groups <= have_groups and wanted <= have_features:
            return
        g = capacity(groups, have_groups)
        d = wanted if have_features == 0 else capacity(wanted, have_features)
        self.state = LedgerState(*(enlarge(a, (g, *a.shape[1:])) for a in self.state))
        sums = self.sums
        self.sums = HindsightSums(
            gram=enlarge(sums.gram[: sums.placed[0]], (g, d, d)),
            place=enlarge(sums.place, (g,), -1),
            placed=sums.placed,
            moment=enlarge(sums.moment, (g, d)),
            power=enlarge(sums.power, (g,)),
            held=enlarge(sums.held, (g, HELD, d)),
            waiting=enlarge(sums.waiting, (g,)),
            rows=enlarge(sums.rows, (g,)),
        )

    def __deepcopy__(self, memo: Any) -> "Ledger":
        """Of the matrices only those in use are copied."""
        copied = copy.copy(self)
        copied.state = LedgerState(*(array.copy() for array in self.state))
        gram = duplicate(self.sums.gram, self.sums.placed[0])
        rest = {k: array.copy() for k, array in self.sums._asdict().items() if k != "gram"}
        copied.sums = HindsightSums(gram=gram, **rest)
        return copied

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
        record(
            self.state,
            self.sums,
            *awake,
            *tidy_row(row.indices, row.values),
            label,
            self.hindsight,
            settled.losses,
            settled.charged,
            played.charged,
            played.realised,
            baseline,
        )

    def best_loss(self, group: int, features: int) -> float:
        """The scaled loss of the best linear model on the group's settled rounds."""
        return least_squares_loss(
            gram_matrix(self.sums, group, features),
            self.sums.moment[group, :features],
            float(self.sums.power[group]),
        )


def keeps_sums(learners: Sequence[object], loss: Loss) -> bool:
    """Are the sums of squares needed: for hindsight, or by ridge learners against rounding?"""
    return loss.linear_hindsight or any(isinstance(learner, Ridge) for learner in learners)


def baseline_of(losses: Vector, awake: Awake, baseline: int) -> float:
    """The loss of the baseline group's first learner; not a number where it sleeps."""
    for a, group in enumerate(awake.groups.tolist()):
        if group == baseline:
            return float(losses[a, 0])
    return math.nan
