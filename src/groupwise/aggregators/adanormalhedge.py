"""AdaNormalHedge for sleeping, confidence-rated experts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.kernels.adanormalhedge import log_weight
from groupwise.losses import Loss


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
        del loss
        flat = [
            log_weight(r, c)
            for r, c in zip(regret.ravel().tolist(), absolute.ravel().tolist(), strict=True)
        ]
        return np.array(flat).reshape(regret.shape)

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """√(3 C_i ln(B / q_i))."""
        del regret, loss
        potential = 1.0 + 1.5 * float(np.sum(prior * (1.0 + np.log1p(absolute))))
        return np.sqrt(3.0 * absolute * np.log(potential / prior))

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """Mean and sample for convex losses, sample for discrete ones."""
        if loss.ranged and not loss.bounded:
            raise ConfigurationError(
                f"AdaNormalHedge needs a bounded loss and {loss} is not. Give it a floor, "
                "as in losses.Log(floor=0.001), or use aggregators.Specialists()."
            )
        return ("mean", "sample") if loss.convex else ("sample",)
