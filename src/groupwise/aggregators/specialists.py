"""The aggregating algorithm for sleeping experts."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.losses import Log, Loss


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
        del absolute
        assert loss.eta is not None
        return loss.eta * regret

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """ln(1/q_i) / η."""
        del regret, absolute
        assert loss.eta is not None
        return np.log(1.0 / prior) / loss.eta

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """Substitution for square loss, the mean for log loss, and no others."""
        if loss.eta is None:
            raise ConfigurationError(
                f"Specialists has no guarantee for {loss}: it needs a mixable loss "
                "(losses.Square or losses.Log). Use aggregators.AdaNormalHedge()."
            )
        return ("mean",) if isinstance(loss, Log) else ("substitution",)
