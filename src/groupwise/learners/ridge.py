"""Online ridge regression and its forward form."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.errors import ConfigurationError
from groupwise.protocols import Awake, Index, Row, Vector

if TYPE_CHECKING:
    from groupwise.stream import Chunk, Subsequences

WIDE = 64
"""From this many features on, updates are held back and folded in together."""
HELD_BACK = 16
"""How many updates are held back then."""


@dataclass(frozen=True)
class Ridge:
    """Online ridge regression: one linear model per group, updated exactly every round.

    With A = λI + Σ w x xᵀ, P = A⁻¹ and θ = P Σ w y x over the group's earlier rounds, the advice is

        θ·x                    (``forward=False``: what the paper's experiments run)
        θ·x / (1 + w xᵀPx)     (``forward=True``: Vovk, Azoury and Warmuth, what the paper cites)

    and a label updates, with e = y − θ·x, u = P x and s = 1 + w xᵀPx,

        θ += w e u / s,    P −= w u uᵀ / s.

    A feature never seen before was 0 in all earlier rounds, so P grows by 1/λ on its diagonal and θ
    by 0: new features in mid-stream are exact. The intercept is whatever your features span.

    Parameters
    ----------
    penalty : λ > 0.
    forward : shrink the advice as the forward algorithm does.

    >>> Ridge(penalty=0.5, forward=True)
    Ridge(penalty=0.5, forward=True)

    Guarantee
    ---------
    With M = min_θ λ‖θ‖² + Σ w (θ·x − y)², for unclipped advice: the loss of the plain form is
    *exactly* M + Σ w e² (s − 1)/s, and that of the forward form at most M + Y² ln det(A/λ),
    Y = max |y| (1 in scaled labels), which grows like d ln T_g. Clipping only lowers the loss.

    References
    ----------
    Azoury and Warmuth, "Relative loss bounds for on-line density estimation with the exponential
    family of distributions", Machine Learning, 2001. Vovk, "Competitive on-line statistics", 2001.
    """

    penalty: float = 1.0
    forward: bool = False

    def __post_init__(self) -> None:
        penalty = self.penalty
        if isinstance(penalty, bool) or not isinstance(penalty, (int, float)):
            raise ConfigurationError(f"penalty must be a number, not {penalty!r}.")
        if not (math.isfinite(penalty) and penalty > 0.0):
            raise ConfigurationError(f"penalty must be positive and finite, not {penalty!r}.")
        if not isinstance(self.forward, bool):
            raise ConfigurationError(f"forward must be True or False, not {self.forward!r}.")


class RidgeState(NamedTuple):
    """All groups' models. P is ``inverse`` less the outer products of the ``count`` held rows."""

    theta: Vector
    inverse: Vector
    held: Vector
    count: Index
    minimum: Vector
    """M = Σ w e² / (1 + w xᵀPx) = min_θ λ‖θ‖² + Σ w (θ·x − y)²."""
    log_determinant: Vector
    """ln det(A / λ)."""


class RidgeBank:
    """The ridge learners of every group: (configuration, state), arithmetic in the kernels."""

    def __init__(self, learners: Sequence[Ridge]) -> None:
        from groupwise.kernels import ridge

        self._kernels = ridge
        self.learners = tuple(learners)
        self.forward = np.array([learner.forward for learner in learners])
        count = len(learners)
        self.state = RidgeState(
            theta=np.zeros((0, count, 0)),
            inverse=np.zeros((0, count, 0, 0)),
            held=np.zeros((0, count, 0, 0)),
            count=np.zeros(0, dtype=np.int64),
            minimum=np.zeros((0, count)),
            log_determinant=np.zeros((0, count)),
        )

    def reserve(self, groups: int, features: int) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        state = self.state
        have_groups, count, have_features = state.theta.shape
        lanes = self._kernels.LANES
        wanted = -(-max(features, 1) // lanes) * lanes
        if groups <= have_groups and wanted <= have_features:
            return
        g = capacity(groups, have_groups)
        d = wanted if have_features == 0 else capacity(wanted, have_features)
        held = state.held.shape[2]
        inverse = np.zeros((g, count, d, d))
        old_g, old_d = have_groups, have_features
        inverse[:old_g, :, :old_d, :old_d] = state.inverse
        diagonal = np.einsum("gkii->gki", inverse)
        for k, learner in enumerate(self.learners):
            diagonal[old_g:, k] = 1.0 / learner.penalty
            diagonal[:old_g, k, old_d:] = 1.0 / learner.penalty
        self.state = RidgeState(
            theta=enlarge(state.theta, (g, count, d)),
            inverse=inverse,
            held=enlarge(state.held, (g, count, held, d)),
            count=enlarge(state.count, (g,)),
            minimum=enlarge(state.minimum, (g, count)),
            log_determinant=enlarge(state.log_determinant, (g, count)),
        )

    def hold_back(self, features: int) -> None:
        """Hold updates back from now on if rows this wide are learned from."""
        groups, count, held, capacity_of_features = self.state.held.shape
        if features >= WIDE and held == 0:
            rows = np.zeros((groups, count, HELD_BACK, capacity_of_features))
            self.state = self.state._replace(held=rows)

    def width(self, features: int) -> int:
        """The columns that the kernels run over."""
        lanes: int = self._kernels.LANES
        return -(-features // lanes) * lanes

    def advise(self, awake: Awake, row: Row, out: Vector) -> None:
        """out[a, k] = advice of learner k of the a-th awake group."""
        self._kernels.advise(
            self.state,
            self.forward,
            awake.groups,
            awake.weights,
            row.indices,
            row.values,
            self.width(len(row.names)),
            out,
        )

    def step(self, awake: Awake, row: Row, label: float, out: Vector) -> None:
        """Advice as of now, then the update."""
        self.hold_back(len(row.names))
        self._kernels.step(
            self.state,
            self.forward,
            awake.groups,
            awake.weights,
            row.indices,
            row.values,
            label,
            self.width(len(row.names)),
            out,
        )

    def step_subsequences(
        self, chunk: "Chunk", parts: "Subsequences", share: Index, advice: Vector
    ) -> None:
        """``step`` over all rounds of the groups in ``share``, group by group."""
        self._kernels.step_subsequences(
            self.state,
            self.forward,
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
            advice,
        )
