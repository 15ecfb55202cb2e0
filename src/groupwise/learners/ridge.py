"""Online ridge regression and its forward form."""

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from groupwise.arrays import capacity, duplicate, enlarge, room
from groupwise.errors import ConfigurationError
from groupwise.kernels import ridge
from groupwise.kernels.cells import tidy_row
from groupwise.protocols import Awake, Row
from groupwise.states import HELD, Index, RidgeState, Vector


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


class RidgeBank:
    """The ridge learners of every group: (configuration, state), arithmetic in the kernels."""

    def __init__(self, learners: Sequence[Ridge]) -> None:
        self.learners = tuple(learners)
        self.parameters = np.array([[x.penalty, x.forward, x.forgetting] for x in learners])
        count = len(learners)
        self.state = RidgeState(
            theta=np.zeros((0, count, 0)),
            inverse=np.zeros((0, count, 0, 0)),
            place=np.zeros(0, dtype=np.int64),
            placed=np.zeros(1, dtype=np.int64),
            held=np.zeros((0, count, HELD, 0)),
            waiting=np.zeros(0, dtype=np.int64),
            minimum=np.zeros((0, count)),
            log_determinant=np.zeros((0, count)),
            strength=np.zeros((0, count)),
        )

    def reserve(self, groups: int, features: int) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        state = self.state
        have_groups, count, have_features = state.theta.shape
        wanted = room(features)
        if groups <= have_groups and wanted <= have_features:
            return
        g = capacity(groups, have_groups)
        d = wanted if have_features == 0 else capacity(wanted, have_features)
        self.state = RidgeState(
            theta=enlarge(state.theta, (g, count, d)),
            inverse=enlarge(state.inverse[: state.placed[0]], (g, count, d, d)),
            place=enlarge(state.place, (g,), -1),
            placed=state.placed,
            held=enlarge(state.held, (g, count, HELD, d)),
            waiting=enlarge(state.waiting, (g,)),
            minimum=enlarge(state.minimum, (g, count)),
            log_determinant=enlarge(state.log_determinant, (g, count)),
            strength=enlarge(state.strength, (g, count), 1),
        )
        self.open_columns(have_features)

    def open_columns(self, first: int) -> None:
        """Make the columns from ``first`` on those of features that no row has had yet."""
        inverse, place = self.state.inverse, self.state.place
        groups = np.flatnonzero(place >= 0)
        for k, learner in enumerate(self.learners):
            unused = 1.0 / (learner.penalty * self.state.strength[groups, k])
            for i in range(first, inverse.shape[2]):
                inverse[place[groups], k, i, i] = unused

    def __deepcopy__(self, memo: Any) -> "RidgeBank":
        """Of the matrices only those in use are copied."""
        copied = copy.copy(self)
        inverse = duplicate(self.state.inverse, self.state.placed[0])
        rest = {k: array.copy() for k, array in self.state._asdict().items() if k != "inverse"}
        copied.state = RidgeState(inverse=inverse, **rest)
        return copied

    def advise(self, awake: Awake, row: Row) -> Vector:
        """A row per awake group, a column per learner."""
        out, xi, xv, width, work = self._prepare(awake, row)
        ridge.advise(self.state, self.parameters, *awake, xi, xv, width, out, work)
        return out

    def step(self, awake: Awake, row: Row, label: float) -> Vector:
        """Advice as of now, then the update."""
        out, xi, xv, width, work = self._prepare(awake, row)
        ridge.step(self.state, self.parameters, *awake, xi, xv, label, width, out, work)
        return out

    def _prepare(self, awake: Awake, row: Row) -> tuple[Vector, Index, Vector, int, Vector]:
        """Room for the advice, the row as the kernels take it, and room to work with."""
        out = np.empty((awake.groups.size, len(self.learners)))
        width = room(len(row.names))
        return out, *tidy_row(row.indices, row.values), width, np.empty(width + HELD)
