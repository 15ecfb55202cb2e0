"""What is known of every expert, whatever the aggregator."""

from typing import NamedTuple

from groupwise.arrays import Vector
from groupwise.kernels.layout import LEARNER, Layout


class Experts(NamedTuple):
    """What the sleeping-experts algorithm knows of a group's learners, each of them an expert."""

    regret: Vector
    """R_i = Σ I_i(ℓ̂ − ℓ_i)."""
    absolute: Vector
    """C_i = Σ |I_i(ℓ̂ − ℓ_i)|."""
    mass: Vector
    """The prior mass m_i, given when the expert is made and never changed; 0 where there is none:
    the group has fewer learners than another."""


EXPERTS = Layout(Experts, {"regret": (LEARNER,), "absolute": (LEARNER,), "mass": (LEARNER,)})
experts_of = EXPERTS.view
