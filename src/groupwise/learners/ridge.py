"""Online ridge regression and its forward form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.arrays import Index
from groupwise.errors import ConfigurationError
from groupwise.kernels import renewal, ridge
from groupwise.kernels.compiled import Kernel
from groupwise.kernels.hindsight import WHOLE
from groupwise.learners.compiled import CompiledBank
from groupwise.protocols import Setting
from groupwise.regret.hindsight import factored


@dataclass(frozen=True)
class Ridge:
    """Online ridge regression: one linear model per group, updated exactly every round.

    With A = λI + Σ w x xᵀ, P = A⁻¹ and θ = P Σ w y x over the group's earlier rounds, the advice is

        θ·x                    (``forward=False``: what the paper's experiments run)
        θ·x / (1 + w xᵀPx)     (``forward=True``: Vovk, Azoury and Warmuth, what the paper cites)

    and a label updates, with e = y − θ·x, u = P x and s = 1 + w xᵀPx,

        θ += w e u / s,    P −= w u uᵀ / s.

    A feature never seen before was 0 in all earlier rounds, so P grows by 1/λ on its diagonal and θ
    by 0: new features in mid-stream are exact. The intercept is a feature that is 1 in every row
    (``Groupwise(intercept=True)``, the default), shrunk like every other.

    Parameters
    ----------
    penalty : λ > 0.
    forward : shrink the advice as the forward algorithm does.
    forgetting : γ in (0, 1]; with γ < 1 the learner follows a drifting group. A round of weight w
        multiplies all that was learned before by γʷ, A ← γʷ(A + w x xᵀ), exactly. The penalty fades
        with it and is renewed whenever it has faded to a millionth, so P stays bounded.

    >>> Ridge(penalty=0.5, forward=True)
    Ridge(penalty=0.5, forward=True, forgetting=1.0)

    Guarantee
    ---------
    With M = min_θ λ‖θ‖² + Σ w (θ·x − y)², for unclipped advice: the loss of the plain form is
    *exactly* M + Σ w e² (s − 1)/s, and that of the forward form at most M + Y² ln det(A/λ),
    Y = max |y| (1 in scaled labels), which grows like d ln T_g. Clipping only lowers the loss.
    With forgetting there is no such bound against a fixed model; the certificate, which adds up
    what the learner really lost, holds all the same.

    References
    ----------
    Azoury and Warmuth, "Relative loss bounds for on-line density estimation with the exponential
    family of distributions", Machine Learning, 2001. Vovk, "Competitive on-line statistics", 2001.
    """

    penalty: float = 1.0
    forward: bool = False
    forgetting: float = 1.0

    def __post_init__(self) -> None:
        for name in ("penalty", "forgetting"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ConfigurationError(f"{name} must be a number, not {value!r}.")
            if not (math.isfinite(value) and value > 0.0):
                raise ConfigurationError(f"{name} must be positive and finite, not {value!r}.")
        if self.forgetting > 1.0:
            raise ConfigurationError(f"forgetting must be at most 1, not {self.forgetting!r}.")
        if not isinstance(self.forward, bool):
            raise ConfigurationError(f"forward must be True or False, not {self.forward!r}.")

    @classmethod
    def banks(
        cls, learners: Sequence["Ridge"], columns: Sequence[int], setting: Setting
    ) -> "list[Any]":
        """One bank for all ridge learners of a group."""
        return [RidgeBank(learners, columns)]


class RidgeBank(CompiledBank):
    """The ridge learners of every group: (configuration, state), arithmetic in the kernels."""

    name = "ridge"
    layout = ridge.MODELS
    advise = ridge.advise
    learn = ridge.learn
    wants_sums = True

    def __init__(self, learners: Sequence[Ridge], columns: Sequence[int]) -> None:
        self.learners = tuple(learners)
        super().__init__(columns, [[x.penalty, x.forward, x.forgetting] for x in learners])

    def kernels(self) -> tuple[Kernel, Kernel]:
        """The forward form needs more for its advice."""
        forward = any(x.forward for x in self.learners)
        return ridge.advise_forward if forward else ridge.advise, ridge.learn

    @property
    def also(self) -> Any:
        """What makes learners forget, where some do."""
        return ridge.fade.pointer if any(x.forgetting < 1.0 for x in self.learners) else 0

    def work_size(self, width: int) -> int:
        """Room for products that are formed together."""
        return ridge.work_size(len(self.learners), width)

    def opened(self, groups: Index, first: int) -> None:
        """The columns from ``first`` on are those of features that no row has had yet."""
        for group in groups[self.store.late[groups] >= 0].tolist():
            mine = self.store.of(group)
            for k, learner in enumerate(self.learners):
                unused = 1.0 / (learner.penalty * mine.strength[k])
                np.fill_diagonal(mine.inverse[k][first:, first:], unused)

    def upkeep(self, group: int) -> None:
        """Renew learners: those whose penalty has faded away, and stiff ones from the sums."""
        mine = self.store.of(group)
        if (mine.strength < ridge.FAINT).any():
            renewal.restore_penalty(mine, self.parameters)
        assert self.store.beside is not None
        sums = self.store.beside.of(group)
        whole = sums.rows[0] > 0 and sums.rows[0] % WHOLE == 0
        beside = self.store.beside
        if whole and beside.beside is not None and beside.parameters[0] == 0.0:
            factor = factored(sums, beside.beside.of(group))
            gram, moment = (factor.matrix.T @ x for x in (factor.matrix, factor.right))
            if renewal.stiff(gram) >= min(x.penalty for x in self.learners):
                renewal.renew(mine, self.parameters, gram, moment)

    def a_priori(self, group: int, best: float) -> float | None:
        """M − best + ln det(A/λ), the least over forward learners that do not forget."""
        mine = self.store.of(group)
        bounded = [x.forward and x.forgetting == 1.0 for x in self.learners]
        bounds = mine.minimum - best + mine.log_determinant
        return float(bounds[bounded].min()) if any(bounded) else None
