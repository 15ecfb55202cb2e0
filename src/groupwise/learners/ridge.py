"""Online ridge regression and its forward form."""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise import bounds
from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, is_finite
from groupwise.kernels import ridge, stiff
from groupwise.kernels.compiled import Kernel
from groupwise.learners.compiled import CompiledBank
from groupwise.protocols import Hindsight, Setting
from groupwise.store import Arrays

SMALLEST, LARGEST = 1e-60, 1e60
"""Penalties with which x²/λ is finite for every feature that is let in."""
BRIEFEST = 1e-9
"""The fastest forgetting after which what is left of A can still be told from nothing."""
ROUNDING = 1e-9
"""By which share of itself and of 1 what was summed up may be wrong."""
ONLY = "only"
FADED = "faded"
"""The array that files have whose matrices had faded."""
_alone = threading.Lock()
"""Threads that need the same kernel wait for one of them to compile it."""


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

    Features may be of any size and have any offset (timestamps, amounts, collinear columns): where
    P would lose digits, the learner keeps the triangular factor of A instead, and rotations take
    in the rows. The advice is that of exact arithmetic to 1e-7 of the label's range; that which
    leans to everybody to 1e-4 where a group has had fewer rows than columns, of sizes 10⁹ apart.
    Where columns have depended on each other for hundreds of rows, and one of them is then some
    10⁸ times as large, errors from 1e-6 to 1e-2 were seen (certificates hold for what was said).

    Parameters
    ----------
    penalty : λ, from 1e-60 to 1e60.
    forward : shrink the advice as the forward algorithm does.
    forgetting : γ from 1e-9 to 1; with γ < 1 the learner follows a drifting group. A round of
        weight w multiplies all that was learned before by γʷ, A ← γʷ(A + w x xᵀ), exactly. The
        penalty fades with it and is renewed whenever it has faded to a millionth, so P stays
        bounded.

    everybody : give a second advice beside the first, of the same matrix: that of the model
        P (Σ w y x + λθ_on), shrunk to the always-on group's θ_on, as it is now, instead of to 0:

            θ·x + λ (P x)·θ_on.

        A group with few rows predicts as everybody does, and comes into its own with more. Both
        advices are experts of the group; in the always-on group itself they are the same. "only"
        gives the second one alone, and θ_on is then that of the first ridge learner: a large
        penalty holds a group to everybody's model, which itself has a small one.

    >>> Ridge(penalty=0.5, forward=True)
    Ridge(penalty=0.5, forward=True, forgetting=1.0, everybody=False)

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
    everybody: bool | str = False

    adds_up: ClassVar[bool] = True
    """It is a function of sums over rows, with which segments can begin (``beginnings``)."""

    def __post_init__(self) -> None:
        checked_penalty(self.penalty)
        _check_positive("forgetting", self.forgetting)
        if not BRIEFEST <= self.forgetting <= 1.0:
            raise ConfigurationError(
                f"forgetting must be between {BRIEFEST:g} and 1, not {self.forgetting!r}."
            )
        if not isinstance(self.forward, bool):
            raise ConfigurationError(f"forward must be True or False, not {self.forward!r}.")
        if not isinstance(self.everybody, bool) and self.everybody != ONLY:
            raise ConfigurationError(
                f'everybody must be True, False or "{ONLY}", not {self.everybody!r}.'
            )

    @property
    def experts(self) -> int:
        """How many experts it is in a group."""
        return 2 if self.everybody is True else 1

    @classmethod
    def banks(
        cls, learners: Sequence["Ridge"], columns: Sequence[int], setting: Setting
    ) -> "list[Any]":
        """One bank for all ridge learners of a group."""
        leading = setting.leading
        if leading is not None:
            leading = [one for one in leading if isinstance(one, Ridge)]
            for one in learners:
                if (one.everybody is True and one not in leading) or (
                    one.everybody and not leading
                ):
                    raise ConfigurationError(
                        f"{one} leans to the ridge models of the always-on group, which has "
                        f"{'no ridge learner' if one.everybody == ONLY else 'no such learner'}: "
                        'give "always_on" one, or take everybody=... out.'
                    )
        return [RidgeBank(learners, columns, setting.loss.linear_hindsight, leading)]


def _check_positive(name: str, value: Any) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ConfigurationError(f"{name} must be a number, not {value!r}.")
    if not (is_finite(value) and value > 0.0):
        raise ConfigurationError(f"{name} must be positive and finite, not {value!r}.")


def checked_penalty(penalty: Any) -> None:
    """Raise ConfigurationError unless it is a penalty that can be computed with."""
    _check_positive("penalty", penalty)
    if not SMALLEST <= penalty <= LARGEST:
        raise ConfigurationError(
            f"penalty must be between {SMALLEST:g} and {LARGEST:g}, not {penalty!r}."
        )


class QuadraticBank(CompiledBank):
    """Learners that keep the minimum of a sum of squares, λ‖θ‖² + …, for every group.

    Calm ones keep P, stiff ones a triangular factor of P⁻¹ (``kernels.ridge``).
    """

    learners: Sequence[Any]

    def stiff_kernel(self) -> Kernel:
        """What stiff learners need; it is compiled when the first becomes stiff."""
        raise NotImplementedError

    def work_size(self, width: int) -> int:
        """Room for products that are formed together."""
        return ridge.work_size(len(self.learners), width)

    def _unused(self, learner: int, mine: Any) -> float:
        """What stands on the diagonal of a group's matrix for features that no row has had yet."""
        penalty = float(self.learners[learner].penalty)
        return math.sqrt(penalty) if mine.stiff[learner] else 1.0 / penalty

    def opened(self, groups: Index, first: int) -> None:
        """The columns from ``first`` on are those of features that no row has had yet."""
        for group in groups[self.store.late[groups] >= 0].tolist():
            mine = self.store.of(group)
            for k in range(len(self.learners)):
                mine.diagonal[k, first:] = 0.0 if mine.stiff[k] else self._unused(k, mine)
                np.fill_diagonal(mine.inverse[k][first:, first:], self._unused(k, mine))

    def completed(self, arrays: Arrays, counts: Index) -> Arrays:
        """The arrays of a file; up to schema 3 there were no learners but calm ones."""
        shape, columns = (counts.size, len(self.learners)), int(counts.max(initial=0))
        if "stiff" not in arrays:
            diagonal = np.zeros((*shape, columns))
            diagonal[arrays["place"] >= 0] = np.diagonal(arrays["inverse"], axis1=2, axis2=3)
            none = np.zeros(shape, dtype=np.int64)
            arrays = arrays | {"mass": np.zeros(shape), "diagonal": diagonal}
            arrays |= {"stiff": none, "checks": none, "pivot": none}
        whole = np.stack([arrays[name] for name in ("stiff", "checks", "pivot")])
        if (whole < 0).any() or (whole[2] >= np.maximum(counts, 1)[:, None]).any():
            raise ValueError("pivot is not a column")
        if whole[0, arrays["place"] < 0].any():
            raise ValueError("stiff does not fit the matrices")
        finite = all(np.isfinite(array).all() for array in arrays.values())
        if not finite or (arrays["strength"] <= 0.0).any():
            raise ValueError("what was learned is not finite")
        return arrays

    def upkeep(self, group: int) -> None:
        """Compile what stiff learners need."""
        with _alone:
            self.store.supply(self.stiff_kernel().pointer)


def _whole(faded: Vector, strength: Vector, penalty: Vector) -> Vector:
    """Numbers of P as they were before they faded; where no row has been, 1/λ to the digit."""
    return np.where(faded == 1.0 / (penalty * strength), 1.0 / penalty, faded * strength)


class RidgeBank(QuadraticBank):
    """The ridge learners of every group: (configuration, state), arithmetic in the kernels."""

    name = "ridge"
    layout = ridge.MODELS
    advise = ridge.advise
    learn = ridge.learn

    lead = ridge.lead

    def __init__(
        self,
        learners: Sequence[Ridge],
        columns: Sequence[int],
        square: bool = True,
        leading: Sequence[Ridge] | None = None,
    ) -> None:
        self.learners = tuple(learners)
        self.square = square
        """Is it square loss that they are charged with, as their bounds are about?"""
        each = [[x.penalty, x.forward, x.forgetting] for x in learners]
        counts = np.array([x.experts for x in learners])
        only = np.array([x.everybody == ONLY for x in learners])
        first, last = np.cumsum(counts) - counts, np.cumsum(counts) - 1
        plain = np.where(only, ridge.NONE, first)
        leaning = np.where([bool(x.everybody) for x in learners], last, ridge.NONE)
        leads = np.where(only, 0, np.arange(len(counts)))
        if leading is not None:  # those of the always-on group are others
            leads = np.array([leading.index(x) if x.everybody is True else 0 for x in learners])
        told = [len(learners) if leading is None else len(leading)]
        experts = [at + k for at, count in zip(columns, counts, strict=True) for k in range(count)]
        super().__init__(experts, np.concatenate([np.ravel(each), plain, leaning, leads, told]))

    @property
    def size(self) -> int:
        """A learner with a second advice is two experts, with one matrix."""
        return len(self.learners)

    @property
    def leans(self) -> bool:  # type: ignore[override]
        """Do some lean to θ of the always-on group?"""
        return any(x.everybody for x in self.learners)

    def kernels(self) -> tuple[Kernel, Kernel]:
        """The forward form, and leaning to everybody, need more for their advice."""
        more = any(x.forward or x.everybody for x in self.learners)
        return ridge.advise_with_product if more else ridge.advise, ridge.learn

    def stiff_kernel(self) -> Kernel:
        """What stiff learners need."""
        return stiff.serve

    def completed(self, arrays: Arrays, counts: Index) -> Arrays:
        """The same; up to schema 4 the matrices of learners that forget had faded (``FADED``)."""
        arrays = dict(arrays)
        faded = arrays.pop(FADED, None) is not None
        arrays = super().completed(arrays, counts)
        if not faded:
            return arrays
        strength = np.where(arrays["stiff"] == 0, arrays["strength"], 1.0)
        penalty = np.array([x.penalty for x in self.learners])
        placed = np.flatnonzero(arrays["place"] >= 0)
        of_place = placed[np.argsort(arrays["place"][placed])]
        cells = strength[of_place][..., None, None], penalty[:, None, None]
        return arrays | {
            "mass": arrays["mass"] / strength,
            "held": arrays["held"] * np.sqrt(strength)[..., None, None],
            "diagonal": _whole(arrays["diagonal"], strength[..., None], penalty[:, None]),
            "inverse": _whole(arrays["inverse"], *cells),
        }

    def upkeep(self, group: int) -> None:
        """The same, and penalties that have faded away are renewed."""
        super().upkeep(group)
        mine = self.store.of(group)
        if (mine.strength < ridge.FAINT).any():
            stiff.restore_penalty(mine, self.parameters)

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """M − best + ln det(A/λ), the least over those that do not forget and are clipped.

        The forward form need not be clipped, and keeps the determinant. For the plain form that is
        what it can be for rows of this size, d ln(1 + Σ w‖x‖²/(λd)).
        """
        if group >= len(self.store) or not self.square:
            return None
        mine = self.store.of(group)
        if mine.minimum is None:  # nothing learned since a restart
            return None
        least = math.inf
        for k, one in enumerate(self.learners):
            if one.forgetting < 1.0 or one.everybody == ONLY or not (clipped or one.forward):
                continue
            most = bounds.log_determinant(known.power, known.columns, one.penalty)
            if one.forward:
                most = min(most, float(mine.log_determinant[k]) * (1.0 + ROUNDING) + ROUNDING)
            norm = float(mine.minimum[k]) - known.best  # λ‖θ‖² at most, of the best model
            slack = ROUNDING * (1.0 + float(mine.minimum[k])) + known.error
            least = min(least, norm + slack + most)
        return None if math.isinf(least) else least
