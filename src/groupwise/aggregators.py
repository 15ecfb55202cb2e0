"""Sleeping-experts algorithms that turn the awake experts' advice into one play."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels.adanormalhedge import log_weight
from groupwise.losses import Log, Loss

__all__ = ["AdaNormalHedge", "Specialists"]


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

    def log_weights(self, regret: Vector, absolute: Vector, loss: Loss) -> Vector:
        """η R_i."""
        assert loss.eta is not None
        return loss.eta * regret

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """ln(1/q_i) / η."""
        assert loss.eta is not None
        return -np.log(prior) / loss.eta

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """Substitution for square loss, the mean for log loss, and no others."""
        if loss.eta is None:
            raise ConfigurationError(
                f"Specialists has no guarantee for {loss}: it needs a mixable loss "
                "(losses.Square or losses.Log). Use aggregators.AdaNormalHedge()."
            )
        return ("mean",) if isinstance(loss, Log) else ("substitution",)
