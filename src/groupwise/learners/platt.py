"""Platt's map of a probability, as a learner: logistic regression on its logit."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.arrays import Index
from groupwise.learners.logistic import Logistic, LogisticBank
from groupwise.learners.recorders import Recorder
from groupwise.losses import Loss
from groupwise.protocols import Setting


@dataclass(frozen=True)
class Platt(Logistic):
    """Recalibration by σ(a · logit p + b), with a and b of their own for every group.

    One :class:`~groupwise.learners.Logistic` per group, of the two features (logit p, 1), where p
    is what the model would have predicted: clipped to |logit p| ≤ ``bound``. It starts from the map
    that changes nothing, θ = (a, b) = (1, 0), and is penalised by λ/2 ‖θ − (1, 0)‖². The maps of
    the awake groups are mixed like the models themselves, with the same prior masses, and the
    mixture is what is predicted.

    Parameters
    ----------
    penalty, bound, keep_rows : as for Logistic; the guarantee is against maps with
        |a · logit p + b| ≤ bound on the rows of the group.

    >>> Platt(penalty=10.0)
    Platt(penalty=10.0, bound=8.0, keep_rows=2000)

    Guarantee
    ---------
    On every group the log loss is at most that of the group's best map in hindsight, and so also at
    most that of the predictions as they were, plus the certificate that ``model.recalibration()``
    shows. This does not prove calibration: ``model.calibration()`` measures it.

    References
    ----------
    Platt, "Probabilistic outputs for support vector machines", 1999.
    """

    @classmethod
    def banks(
        cls, learners: Sequence["Logistic"], columns: Sequence[int], setting: Setting
    ) -> list[Any]:
        """One bank for the maps of all groups."""
        return [PlattBank(learners, columns)]


class PlattBank(LogisticBank):
    """The maps of every group; the logit is the first of their columns."""

    def begun(self, groups: Index) -> None:
        """Maps of new groups change nothing."""
        self.store.fill("theta", groups, np.ones((groups.size, len(self.learners), 1)))

    def recorder(self, loss: Loss) -> Recorder:
        """The same as for models, under another name."""
        found = super().recorder(loss)
        bound = f"|a·logit p + b| ≤ {self.learners[0].bound:g}"
        found.comparator = f"the best map σ(a·logit p + b) with {bound} in hindsight"
        return found
