"""Sleeping-experts algorithms that turn the awake experts' advice into one play."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels.adanormalhedge import log_weight
from groupwise.kernels.prod import COMMON, EXCESS, RECORDS, Rates
from groupwise.kernels.reference import RATES, SHARES
from groupwise.losses import Log, Loss, Square

__all__ = ["AdaNormalHedge", "Prod", "Specialists"]


@dataclass(frozen=True)
class AdaNormalHedge:
    """A parameter-free aggregator whose overhead on a group is O(√(T_g log N)).

    Expert i keeps R_i = Σ_t r_i and C_i = Σ_t |r_i|, where r_i = I_i(ℓ̂ − ℓ_i). With
    Φ(R, C) = exp([R]₊² / 3C) its weight is

        p_i ∝ q_i I_i w(R_i, C_i),   w(R, C) = ½(Φ(R+1, C+1) − Φ(R−1, C+1)),

    and p_i ∝ q_i I_i where all of these are 0. ``mean`` play charges ℓ̂ = ℓ(Σ p_i a_i), ``sample``
    play ℓ̂ = Σ p_i ℓ(a_i), the expected loss over the draw. All is computed in logarithms.

    >>> from groupwise.losses import Square
    >>> regret, absolute = np.array([0.0, 3000.0]), np.array([0.0, 3000.0])
    >>> AdaNormalHedge().log_weights(regret, absolute, Square()).round(3)
    array([ -1.62 , 999.334])

    Guarantee
    ---------
    For losses in [0, 1], at every moment and for every expert i,

        R_i ≤ √(3 C_i ln(B / q_i)),   B = 1 + (3/2) Σ_j q_j (1 + ln(1 + C_j)),

    the sum over all experts seen. C_i is at most the number of rounds of i's group.

    References
    ----------
    Luo and Schapire, "Achieving All with No Parameters: AdaNormalHedge", COLT 2015.
    """

    kernel: ClassVar[str] = "AdaNormalHedge"

    def log_weights(self, regret: Vector, absolute: Vector, loss: Loss) -> Vector:
        """ln w(R_i, C_i)."""
        pairs = zip(regret.ravel().tolist(), absolute.ravel().tolist(), strict=True)
        return np.array([log_weight(r, c) for r, c in pairs]).reshape(regret.shape)

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """√(3 C_i ln(B / q_i))."""
        potential = 1.0 + 1.5 * float(np.sum(prior * (1.0 + np.log1p(absolute))))
        return np.sqrt(3.0 * absolute * (math.log(potential) - np.log(prior)))

    def before(self, rounds: Vector, prior: Vector, loss: Loss) -> Vector:
        """The same before the first row, given the rounds of every expert: C_i is at most that."""
        return self.bound(rounds, rounds, prior, loss) * (1.0 + _OUTWARD)

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """Mean and sample for convex losses, sample for discrete ones."""
        if loss.ranged and not loss.bounded:
            floor = " Or give the loss a floor, as in losses.Log(floor=0.001)."
            raise ConfigurationError(
                f"AdaNormalHedge needs a bounded loss and {loss} is not. Use "
                "aggregators.Specialists(), which takes log loss as it is."
                f"{floor if loss.nodes == 1 else ''}"
            )
        return ("mean", "sample") if loss.convex else ("sample",)


@dataclass(frozen=True)
class Specialists:
    """A constant overhead on every group, for mixable losses (square and log).

    Expert i keeps R_i = Σ_t I_i(ℓ̂ − ℓ_i) and weighs p_i ∝ q_i I_i exp(η R_i). Square loss on
    [0, 1] has η = 2 and is played by substitution,

        ŷ = ½ + ½(G(0) − G(1)),   G(y) = −(1/η) ln Σ p_i exp(−η (a_i − y)²);

    log loss has η = 1 and plays the mean. The play belongs to the algorithm: averaging or sampling
    square-loss advice at η = 2 has no guarantee.

    >>> from groupwise.losses import Square
    >>> Specialists().plays(Square())
    ('substitution',)

    Guarantee
    ---------
    At every moment and for every expert i, also with fractional memberships,
    R_i ≤ ln(1/q_i) / η: a constant, where AdaNormalHedge pays √T_g.

    References
    ----------
    Freund, Schapire, Singer and Warmuth, "Using and combining predictors that specialize", 1997.
    Vovk, "Competitive on-line statistics", International Statistical Review, 2001.
    """

    kernel: ClassVar[str] = "Specialists"
    widens: ClassVar[bool] = True
    """Does its bound hold on where the range of labels is widened along the way?"""

    def log_weights(self, regret: Vector, absolute: Vector, loss: Loss) -> Vector:
        """η R_i."""
        assert loss.eta is not None
        return loss.eta * regret

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """ln(1/q_i) / η."""
        assert loss.eta is not None
        return -np.log(prior) / loss.eta

    def before(self, rounds: Vector, prior: Vector, loss: Loss) -> Vector:
        """The same: it is known before the first row."""
        return self.bound(rounds, rounds, prior, loss) * (1.0 + _OUTWARD) + _OUTWARD

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """Substitution for square loss, the mean for log loss, and no others."""
        if loss.eta is None:
            raise ConfigurationError(
                f"Specialists has no guarantee for {loss}: it needs a mixable loss "
                "(losses.Square or losses.Log). Use aggregators.AdaNormalHedge()."
            )
        return ("mean",) if isinstance(loss, Log) else ("substitution",)


@dataclass(frozen=True)
class Prod:
    """An overhead in the errors really made, for square loss: not in squares of the label's range.

    Prod on the linearised loss, at eight rates η_k = ½·4^k at once, k = 0 … 7, with the prior
    γ_k ∝ 2^−k over them and c = ½. Labels and advice are in [0, 1], B is the largest |p − y| so
    far. Expert i keeps W_ik = 1, S_ik = 0 and D_i = 0. The *play* is the root p of

        Σ_ik m_i I_i γ_k η_k W_ik h_ik(p) = 0,   h_ik = p − a_i clipped to ± c/(2 η_k I_i μ_i),

    μ_i = min(B, p) where a_i > p, else min(B, 1 − p); it is a weighted mean of the advice, and
    ``ticket.weights`` are its weights. With e = p − y, ẽ = e clipped to ± B, d = p − a_i,
    x = 2 I |e d| and z = 2 η_k I |ẽ h_ik|, a label *updates*

        W_ik ×= 1 + 2 η_k I ẽ h_ik,   D_i += I d²,   B = max(B, |e|),
        S_ik += x − ln(1 + z)/η_k or, where |ẽ| ≤ μ_i, the larger of this and −x − ln(1 − z)/η_k,

    with 2z/(2 + z) for ln(1 + z) and z + z²/(2 − 2z) for −ln(1 − z). The play belongs to it.

    >>> from groupwise.losses import Square
    >>> Prod().plays(Square())
    ('root',)
    >>> round(float(Prod().a_priori(prior=0.1, error=0.125)), 3)
    0.797

    Guarantee
    ---------
    At every moment and for every expert i, also with fractional memberships, R_i is at most the
    root r of

        Σ_k γ_k exp(η_k (r − S_ik + D_i)) = 1/q_i.

    It may be below 0. Known beforehand (:meth:`a_priori`):

        R_i ≤ ln(1/(q_i γ_k))/η_k + 2 B max|p − a_i|

    for the largest rate η_k ≤ 1/(4B²), or ½ where there is none. So small errors cost little, and
    large ones at most about 2 ln(2/q_i) + 2, more than the ½ ln(1/q_i) of Specialists.

    *Proof.* The left side of the play's equation rises with p, is ≤ 0 at the least advice and ≥ 0
    at the most, so there is a root; there Σ_ik m_i γ_k W_ik is not changed by the update, whatever
    y is: it is the mass of all experts seen, to which a newcomer adds its own. An increment below 0
    needs 0 < e ≤ p where a_i > p, or 0 < −e ≤ 1 − p where a_i < p, so |ẽ| ≤ μ_i: factors are at
    least 1 − c. A charge is such that 2 I e d ≤ ln(1 + 2 η_k I ẽ h_ik)/η_k + charge, and R_i + D_i
    is Σ 2 I e d, so that W_ik ≥ exp(η_k (R_i + D_i − S_ik)). Hence
    m_i Σ_k γ_k exp(η_k (R_i + D_i − S_ik)) ≤ Σ_j m_j = m_i / q_i. For the bound known beforehand:
    at η_k ≤ 1/(4B²) charges are at most I d², but for what B still grows by, 2 I (|e| − B)|d|.
    All of it holds for the numbers as they are rounded (``kernels.prod``).

    References
    ----------
    Cesa-Bianchi, Mansour and Stoltz, "Improved second-order bounds for prediction with expert
    advice", Machine Learning, 2007.
    Gaillard, Stoltz and van Erven, "A second-order bound with excess losses", COLT 2014.
    Koolen and van Erven, "Second-order quantile methods for experts and combinatorial games",
    COLT 2015.
    """

    kernel: ClassVar[str] = "Prod"
    widens: ClassVar[bool] = True
    """Does its bound hold on where the range of labels is widened along the way?"""
    records: ClassVar[Any] = RECORDS
    common: ClassVar[tuple[str, ...]] = COMMON

    def bound_of(self, records: Rates, common: Vector, mass: Vector) -> Vector:
        """The root r of Σ_k γ_k exp(η_k (r − S_ik + D_i)) = 1/q_i, rounded up.

        Newton's method on the logarithm of the sum, which is convex, from above the root.
        """
        grown = max(0.0, float(common[EXCESS])) / sum(SHARES)
        rounding = (mass.size + 8) * _EPSILON
        asked = np.log((mass.sum() + grown) / mass) * (1.0 + _EPSILON) + rounding
        found = np.min(records.charge + (asked[..., None] - _LOG_SHARES) / _RATES, axis=-1)
        for _ in range(_STEPS):
            parts = _LOG_SHARES + _RATES * (found[..., None] - records.charge)
            top = parts.max(axis=-1)
            parts = np.exp(parts - top[..., None])
            whole = parts.sum(axis=-1)
            step = (np.log(whole) + top - asked) * whole / (parts @ _RATES)
            found = found - np.maximum(step, 0.0)
            if (step <= _EPSILON * found).all():
                break
        # What rounding can have done to a sum of which every term is at most 1/q, at a slope ≥ ½.
        found = found + 16.0 * _EPSILON * (found + asked + 100.0)
        bounds: Vector = found - records.distance * (1.0 - 2.0 * _EPSILON)
        return bounds

    def a_priori(self, prior: Any, error: float, distance: Any = 1.0) -> Any:
        """What R_i can be at most where no |p − y| exceeds ``error``, no |p − a_i| ``distance``."""
        rates = 0.25 / error**2 >= _RATES if error > 0.0 else _RATES > 0.0
        k = max(int(rates.sum()) - 1, 0)
        return (-np.log(prior) - _LOG_SHARES[k]) / _RATES[k] + 2.0 * error * distance

    def before(self, rounds: Vector, prior: Vector, loss: Loss) -> Vector:
        """:meth:`a_priori` where nothing is known of the errors: they are at most 1."""
        known: Vector = self.a_priori(prior, error=1.0) * (1.0 + _OUTWARD)
        return known

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """The root, for square loss alone."""
        if not isinstance(loss, Square):
            other = "Specialists" if isinstance(loss, Log) else "AdaNormalHedge"
            raise ConfigurationError(
                f"Prod is for square loss and {loss} is another. Use aggregators.{other}()."
            )
        return ("root",)


_EPSILON = float(np.finfo(np.float64).eps)
_OUTWARD = 16.0 * _EPSILON
"""More than what rounding does to a bound that is a formula."""
_STEPS = 100
_RATES = np.array(RATES)
_LOG_SHARES = np.log(np.array(SHARES) / sum(SHARES))
