"""The bounds as code: what the regret on every group can be at most, and why.

    certificate of g = learner term + aggregator term + delay term

- *learner*: the regret that the group's learner realised on the group's rounds or, where the
  learner draws, a bound on its expectation; with several learners on a group, the one for which
  learner + aggregator is least;
- *aggregator*: its bound on the regret to that learner (``bound``, ``bound_of``);
- *delay*: the loss that playing before earlier labels had arrived has cost, measured.

What is proved may yet say little: it is *loose* where it exceeds the best loss itself (so we may
have lost more than twice what the best has), *vacuous* where it exceeds what can be lost at all.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector, enlarge
from groupwise.errors import ConfigurationError
from groupwise.losses import Absolute, Log, Square
from groupwise.protocols import Hindsight
from groupwise.regret.hindsight import EPSILON, SURE

if TYPE_CHECKING:
    from groupwise.kernels.rounds import Books
    from groupwise.losses import Loss
    from groupwise.records import Records
    from groupwise.reduction import Reduction

ROUNDING = 1e-12

PROVED = "proved"
IN_EXPECTATION = "in expectation"
SAMPLED = "in expectation, sampled"
ESTIMATED = "estimated"
UNCERTAIN = "numerically uncertain"
VOID = "void"
VACUOUS = "vacuous"
LOOSE = "loose"


class Certificate(NamedTuple):
    """The certificate of one group and its terms, in the label's units."""

    total: float
    learner: float
    aggregator: float
    delay: float
    a_priori: float | None
    """What was known before the first row of all of it, given T_g; None where nothing was."""
    learner_a_priori: float | None
    """The learner's part of that."""
    status: str


def totals(books: "Books") -> "Books":
    """The sums of a group with what rounding had left out of them."""
    return books._replace(
        loss=books.loss + books.loss_rest,
        delay=books.delay + books.delay_rest,
        expert_loss=books.expert_loss + books.expert_loss_rest,
    )


def aggregator_bounds(reduction: "Records", groups: int) -> Vector:
    """The aggregator's bound per expert of the first ``groups`` groups, scaled.

    Behind them come those of windows; what is gone counts as one group more, which has no bound.
    Where it began anew, bounds add up: regret up to then and regret since. What an expert's regret
    is since then needs no bound where no round has changed it: it is 0.
    """
    count, gone = seen(reduction, groups)
    regret, absolute, mass = (
        reduction.state.column(name, count) for name in ("regret", "absolute", "mass")
    )
    mass, absolute = (np.concatenate(pair) for pair in zip((mass, absolute), gone, strict=False))
    regret = enlarge(regret, mass.shape)
    there, own = present(mass), reduction.own
    if own is not None:
        names = own.layout.record._fields
        columns = (own.column(name, count) for name in names)
        each = (enlarge(a, (len(mass), *a.shape[1:])) for a in columns)
        records = own.layout.record(*(one[there] for one in each))
        found = reduction.aggregator.bound_of(records, reduction.common, mass[there])
    else:
        parts = regret[there], absolute[there], mass[there] / mass[there].sum()
        found = checked(
            reduction.aggregator, reduction.aggregator.bound(*parts, reduction.loss), parts
        )
    bounds = spread_out(found, there, mass)[:count]
    if reduction.earlier is None:
        return bounds
    before = enlarge(reduction.earlier, bounds.shape)
    total: Vector = before + np.where(absolute[:count] > 0.0, bounds, 0.0)
    total += ROUNDING * np.abs(total)
    return total


def checked(aggregator: Any, bounds: Any, parts: tuple[Vector, ...]) -> Vector:
    """The bounds of an aggregator, one for every expert that it was asked about."""
    found: Vector = np.asarray(bounds, dtype=np.float64)
    if found.shape != parts[0].shape:
        raise ConfigurationError(
            f"{type(aggregator).__name__}.bound gave {found.shape}, and was asked about experts of "
            f"the shape {parts[0].shape}. It gives one bound for each."
        )
    return found


def seen(reduction: "Records", groups: int) -> tuple[int, tuple[Vector, Vector, Vector]]:
    """How many numbers groups and windows have, and mass, C and T of what is gone."""
    windows = reduction.windows
    if windows is None:
        return groups, (np.zeros((0, reduction.experts)),) * 3
    return windows.tidy(reduction, groups), windows.gone(reduction.experts)


def present(mass: Vector) -> Any:
    """Which experts there are: all, or those with a mass where groups have different learners."""
    return ... if (mass > 0.0).all() else mass > 0.0


def spread_out(found: Vector, there: Any, mass: Vector) -> Vector:
    """Figures of the experts that there are, a row per group; of others they are not numbers."""
    if there is ...:
        return found
    out = np.full(mass.shape, np.nan)
    out[there] = found
    return out


def foreknown(reduction: "Reduction", groups: int) -> tuple[Vector | None, str]:
    """The aggregator's bounds of before the first row, scaled, given all rounds; or why not."""
    loss, aggregator = reduction.loss, reduction.aggregator
    reason = ""
    if not loss.ranged:
        reason = "labels have no range"
    elif loss.widened:
        reason = "the range of labels was widened along the way"
    elif isinstance(loss, Log) and loss.bounded:
        reason = "a floor holds advice back"
    elif not reduction.clipped:
        reason = "advice is not held to the range of labels (clip=False)"
    elif reduction.restarts:
        reason = "learners have begun again"
    elif reduction.earlier is not None:
        reason = "the aggregator has begun anew along the way"
    elif not hasattr(aggregator, "before"):
        reason = f"{type(aggregator).__name__} has no method before"
    if reason:
        return None, reason
    count, gone = seen(reduction, groups)
    mass = np.concatenate([reduction.state.column("mass", count), gone[0]])
    lasted = reduction.books.column("rounds", count)
    rounds = np.concatenate([np.broadcast_to(lasted, (count, mass.shape[1])), gone[2]])
    there = present(mass)
    found = aggregator.before(rounds[there], mass[there] / mass[there].sum(), loss)
    return spread_out(found, there, mass)[:groups], ""


def least_learner(learner: Vector, aggregator: Vector) -> Any:
    """On the last axis, the learner whose term and the aggregator's bound to it sum to least."""
    return np.argmin(learner + aggregator, axis=-1)


def leaves_range(regret: Any) -> Any:
    """Is some |r| > 1, after which the certificates of a bounded loss are void?"""
    return np.abs(regret) > 1.0 + ROUNDING


def randomised(reduction: "Reduction") -> bool:
    """Does some learner draw?"""
    return any(getattr(learner, "randomised", False) for learner in reduction.learners)


def is_coarse(loss: "Loss") -> bool:
    """Does rounding predictions to doubles, in the label's units, cost more than is allowed for?

    A prediction is off by 2⁻⁵³ of the larger end of the range, and by as much of twice the error a
    round's square loss changes.
    """
    if not isinstance(loss, (Square, Absolute)):
        return False
    largest = max(abs(loss.low), abs(loss.high))
    return bool(EPSILON * largest > SURE * (loss.high - loss.low))


def certify(
    reduction: "Reduction",
    books: "Books",
    group: int,
    hindsight: Hindsight,
    bounds: Vector,
    moved: float = 0.0,
    before: Vector | None = None,
    to_expert: bool = False,
) -> Certificate:
    """The certificate of a group with these ``totals`` and this best loss in hindsight.

    Both are scaled; so is what a layer over the model has lost more, which is measured, and what
    the aggregator promised ``before`` the first row. ``to_expert``: the best is one of the experts.
    """
    unit = reduction.loss.unit
    best = hindsight.best
    proved = reduction.bounds(group)
    own = reduction.experts_of(group)
    bounds = bounds[:own]
    learner_terms = books.expert_loss[:own] - best if proved is None else proved
    least = int(least_learner(learner_terms, bounds))
    learner = unit * float(learner_terms[least])
    aggregator = unit * float(bounds[least])
    delay = unit * float(books.delay[0])
    terms = learner, aggregator, delay
    total = learner + aggregator + delay + unit * moved
    beyond = reduction.loss.bounded and leaves_range(float(reduction.largest[0]))
    if reduction.loss.widened:
        beyond = not getattr(reduction.aggregator, "widens", False)
    if not reduction.loss.ranged or beyond:
        status = VOID
    elif (
        hindsight.uncertain
        or is_coarse(reduction.loss)
        or not np.isfinite((*terms, total, books.loss[0], best)).all()
    ):
        status = UNCERTAIN
    elif reduction.restarts:  # the aggregator's bound is of the rounds since the last
        status = ESTIMATED
    elif total > unit * float(books.rounds[0]):
        status = VACUOUS
    elif any(getattr(one, "randomised", False) for one in reduction.learners_of(group)):
        heuristic = proved is None and reduction.actions
        status = SAMPLED if reduction.sampled else IN_EXPECTATION
        status = ESTIMATED if heuristic else status
    elif total > unit * best:
        status = LOOSE
    else:
        status = PROVED
    known = 0.0 if to_expert else None
    if not (to_expert or reduction.loss.widened):
        known = reduction.a_priori(group, float(books.rounds[0]), hindsight)
    a_priori = None
    if known is not None and before is not None and not hindsight.uncertain:
        a_priori = unit * (known + float(before[:own].max())) + delay + unit * moved
    learners = None if known is None else unit * known
    return Certificate(*(total, *terms, a_priori, learners), status)
