"""The bounds as code: what the regret on every group can be at most, and why.

    certificate of g = learner term + aggregator term + delay term

- *learner*: the regret that the group's learner realised on the group's rounds or, where the
  learner draws, a bound on its expectation; with several learners on a group, the one for which
  learner + aggregator is least;
- *aggregator*: its bound on the regret to that learner (``Aggregator.bound``);
- *delay*: the loss that playing before earlier labels had arrived has cost, measured.
"""

from typing import Any, NamedTuple

import numpy as np

from groupwise.learners.ridge import RidgeBank
from groupwise.reduction import Reduction
from groupwise.regret.ledger import Ledger
from groupwise.states import Vector

ROUNDING = 1e-12

PROVED = "proved"
IN_EXPECTATION = "in expectation"
ESTIMATED = "estimated"
VOID = "void"
VACUOUS = "vacuous"


class Certificate(NamedTuple):
    """The certificate of one group and its terms, in the label's units."""

    total: float
    learner: float
    aggregator: float
    delay: float
    a_priori: float | None
    """The learner term's a-priori bound, M − best + ln det(A/λ); forward ridge only."""
    status: str


def aggregator_bounds(reduction: Reduction, groups: int) -> Vector:
    """The aggregator's bound per expert of the first ``groups`` groups, scaled."""
    state = reduction.state
    mass = state.mass[:groups]
    return reduction.aggregator.bound(
        state.regret[:groups], state.absolute[:groups], mass / mass.sum(), reduction.loss
    )


def least_learner(learner: Vector, aggregator: Vector) -> Any:
    """On the last axis, the learner whose term and the aggregator's bound to it sum to least."""
    return np.argmin(learner + aggregator, axis=-1)


def leaves_range(regret: Any) -> Any:
    """Is some |r| > 1, after which the certificates of a bounded loss are void?"""
    return np.abs(regret) > 1.0 + ROUNDING


def certify(
    reduction: Reduction, ledger: Ledger, group: int, best: float, bounds: Vector
) -> Certificate:
    """The certificate of a group whose best loss in hindsight (scaled) is ``best``."""
    unit = reduction.loss.unit
    proved = reduction.learner_bounds(group)
    learner_terms = ledger.state.expert_loss[group] - best if proved is None else proved
    least = int(least_learner(learner_terms, bounds[group]))
    learner = unit * float(learner_terms[least])
    aggregator = unit * float(bounds[group, least])
    delay = unit * float(ledger.state.delay[group])
    total = learner + aggregator + delay
    beyond = reduction.loss.bounded and leaves_range(reduction.state.largest[0])
    if not reduction.loss.ranged or beyond:
        status = VOID
    elif total > unit * float(ledger.state.rounds[group]):
        status = VACUOUS
    elif any(getattr(learner, "randomised", False) for learner in reduction.learners):
        heuristic = proved is None and type(reduction) is not Reduction
        status = ESTIMATED if heuristic else IN_EXPECTATION
    else:
        status = PROVED
    a_priori = _a_priori(reduction, group, best)
    return Certificate(
        total, learner, aggregator, delay, None if a_priori is None else unit * a_priori, status
    )


def _a_priori(reduction: Reduction, group: int, best: float) -> float | None:
    for bank, _ in reduction.banks:
        if isinstance(bank, RidgeBank):
            bounded = [x.forward and x.forgetting == 1.0 for x in bank.learners]
            if any(bounded):
                state = bank.state
                bounds = state.minimum[group] - best + state.log_determinant[group]
                return float(bounds[bounded].min())
    return None
