"""Checking the parts of a configuration, and writing them down by name."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, cast

import numpy as np

from groupwise.aggregators import AdaNormalHedge, Prod, Specialists
from groupwise.arrays import LARGEST
from groupwise.errors import ConfigurationError, SnapshotError, is_finite, named
from groupwise.features import Derived, Encoder
from groupwise.features.declared import Hashed
from groupwise.groups import ALWAYS_ON, Group, Groups, pairs
from groupwise.kernels import rounds
from groupwise.learners import FTPL, ContextualFTPL, Logistic, Ridge, portfolio
from groupwise.learners.actions import Policies
from groupwise.learners.portfolio import EVERYBODY
from groupwise.learners.wrapped import name_of
from groupwise.losses import Log, Loss, Square
from groupwise.protocols import AnyAggregator, Banked, Learner

SEED_LIMIT = 2**63
MASSES = f"from {1.0 / LARGEST:g} to {LARGEST:g}"
AnyLearner = Learner | Banked
OWN_PLAYS = ("substitution", "root")
"""Plays that belong to an aggregator, which needs advice within the range for them."""
PORTFOLIO = "portfolio"
"""What the command line calls the recommended learners."""
_AGGREGATORS = (AdaNormalHedge, Specialists, Prod)

PARTS: dict[str, dict[str, dict[str, Any]]] = {
    "learner": {
        "ridge": {"type": "Ridge"},
        "forward": {"type": "Ridge", "forward": True},
        "logistic": {"type": "Logistic"},
    },
    "aggregator": {kind.__name__.lower(): {"type": kind.__name__} for kind in _AGGREGATORS},
}
"""What the command line and files of settings call the parts."""


def as_learners(
    learner: AnyLearner | Sequence[AnyLearner] | None, loss: Loss | None
) -> tuple[AnyLearner, ...]:
    """The learners of a group as a tuple, checked; the best that there is for the loss, if None."""
    if learner is None and loss is not None:
        return tuple(portfolio(loss))
    learners = tuple(learner) if isinstance(learner, (list, tuple)) else (learner,)
    if not learners:
        raise ConfigurationError("learner=[] has no learner in it; give at least one.")
    for item in learners:
        if isinstance(item, type) or not isinstance(item, AnyLearner):
            raise ConfigurationError(
                _nearly("learner", item)
                or f"{item!r} is not a learner: it needs the methods advise and update "
                "(see groupwise.protocols.Learner). Wrap models of river or scikit-learn "
                "in learners.Foreign(...)."
            )
    return learners


def _nearly(kind: str, given: Any) -> str:
    """What to give in the place of a class, or of a name that only settings know; else nothing."""
    if isinstance(given, type):
        name = given.__name__
        return f"{name} is a class, and not a{'n' * (kind[0] == 'a')} {kind}: give {name}(...)."
    if not isinstance(given, str):
        return ""
    if kind == "learner" and given == PORTFOLIO:
        return f"{given!r} is a name in settings. In Python it is the default: leave it out."
    if given in PARTS[kind]:
        options = dict(PARTS[kind][given])
        name = f"gw.{kind}s.{options.pop('type')}"
        written = ", ".join(f"{key}={value!r}" for key, value in options.items())
        return f"{given!r} is a name in settings. In Python give {name}({written})."
    return ""


def as_experts(
    experts: Sequence[str] | None, loss: Loss, learners: Sequence[Any]
) -> tuple[str, ...]:
    """The columns of predictions that come with the rows, checked."""
    if not experts and not isinstance(experts, str):
        return ()
    whole = isinstance(experts, (list, tuple)) and all(isinstance(one, str) for one in experts)
    if not whole or len(set(experts)) < len(experts):
        raise ConfigurationError(
            f"experts={experts!r}: give a list of different columns, each with the predictions of "
            'one model, as in experts=["theirs"].'
        )
    if loss.nodes > 1:
        raise ConfigurationError(
            f"An expert is one column, and there are {loss.nodes + 1} classes: experts are for "
            "numbers, and for the probability of one of two classes."
        )
    if not loss.convex or any(hasattr(one, "context_width") for one in learners):
        raise ConfigurationError(
            "Experts predict numbers or probabilities, which can be averaged: they are for "
            "losses.Square, losses.Absolute and losses.Log, and for learners such as Ridge."
        )
    return tuple(experts)


def as_aggregator(
    aggregator: AnyAggregator | None, loss: Loss, play: str | None = None, clip: bool = True
) -> AnyAggregator:
    """The aggregator, checked; if None, the best that there is for the loss, and for the play.

    That is Prod for square loss and Specialists for log loss, which bring a play of their own, and
    AdaNormalHedge where neither applies.
    """
    if aggregator is None:
        if isinstance(loss, Log):
            return AdaNormalHedge() if loss.bounded else Specialists()
        own = isinstance(loss, Square) and clip and play in (None, *Prod().plays(loss))
        return Prod() if own else AdaNormalHedge()
    if isinstance(aggregator, type) or not isinstance(aggregator, AnyAggregator):
        raise ConfigurationError(
            _nearly("aggregator", aggregator)
            or f"{aggregator!r} is not an aggregator: it needs the methods log_weights, bound and "
            "plays (see groupwise.protocols.Aggregator)."
        )
    return aggregator


def as_loss(loss: Loss | None) -> Loss:
    """The loss, checked; square loss on [0, 1] by default."""
    if loss is None:
        return Square()
    if not isinstance(loss, Loss):
        raise ConfigurationError(
            f"{loss!r} is not a loss; use gw.losses.Square(low, high), or gw.losses.Log() for "
            "probabilities."
        )
    return loss


def sound_play(aggregator: AnyAggregator, loss: Loss, play: str | None, clip: bool) -> str:
    """The play to use: the one asked for if it is sound, the preferred one if none was.

    Models of before may have a floor for Specialists, which costs them a little and is no gain;
    their files name the play.
    """
    plays = aggregator.plays(loss)
    if not clip and plays[0] in OWN_PLAYS:
        raise ConfigurationError(
            f"{type(aggregator).__name__} needs advice within the label range: leave clip=True."
        )
    if not clip and isinstance(loss, Log):
        raise ConfigurationError("Log loss needs advice within (0, 1): leave clip=True.")
    if play is None:
        if isinstance(aggregator, Specialists) and isinstance(loss, Log) and loss.bounded:
            raise ConfigurationError(
                "Specialists takes log loss as it is: leave the floor out, as in losses.Log(). "
                "A floor is for aggregators.AdaNormalHedge()."
            )
        return plays[0]
    if play not in list(rounds.PLAYS):
        raise ConfigurationError(f'play must be "mean" or "sample" or None, not {play!r}.')
    if play not in plays:
        raise ConfigurationError(
            f"play={play!r} has no guarantee for {loss} with {type(aggregator).__name__}; "
            f"use play={plays[0]!r}, or leave it out."
        )
    return play


def encoder_for(
    learners: Sequence[Any],
    features: Any,
    indicators: bool,
    groups: Groups,
    intercept: bool,
    max_levels: int | None,
    derived: Derived | None = None,
    experts: Sequence[str] = (),
    missing: str | None = None,
) -> Encoder:
    """What turns rows into numbers; for learners of actions, contexts are declared numbers."""
    widths = [one.context_width() for one in learners if hasattr(one, "context_width")]
    if not widths:
        apart = experts if derived is None else (*derived.takes, *experts)
        return Encoder(features, indicators, groups, intercept, max_levels, apart, missing)
    if derived is not None:
        raise ConfigurationError("A context is made of declared numbers: leave the makers out.")
    if not any(widths):
        if features is not None:
            raise ConfigurationError("These learners use no features: leave features out.")
        return Encoder([], True, groups, max_levels=None)
    if features is None:
        raise ConfigurationError(
            "Name the fields that make a context with features=[...], in the order of the columns "
            "of contexts."
        )
    ranges = features if isinstance(features, Mapping) else dict.fromkeys(features, (0.0, 1.0))
    if any(isinstance(one, Hashed) for one in ranges.values()):
        raise ConfigurationError("A context is made of numbers: none of its fields can be hashed.")
    return Encoder(ranges, False, groups)


def with_intersections(declarations: Sequence[Group], intersections: int | None) -> Sequence[Group]:
    """The declarations, with all pairs of them where two-way intersections are asked for."""
    if intersections in (None, 1) and not isinstance(intersections, bool):
        return declarations
    if intersections != 2:
        raise ConfigurationError(f"intersections must be 2 or None, not {intersections!r}.")
    if len(declarations) < 2:
        raise ConfigurationError("intersections=2 needs at least two group declarations.")
    return [*declarations, pairs(*declarations)]


def checked_seed(seed: int) -> int:
    """The seed, if it is a whole number that fits in 63 bits."""
    if not is_finite(seed, (int, np.integer)) or not 0 <= seed < SEED_LIMIT:
        raise ConfigurationError(f"seed must be a whole number from 0 to 2**63 − 1, not {seed!r}.")
    return int(seed)


def is_mass(mass: Any) -> Any:
    """Is it a prior mass that can be computed with, a number or each of an array?"""
    return (mass >= 1.0 / LARGEST) & (mass <= LARGEST)


def mass_of_everybody(learners: Sequence[Any]) -> float:
    """The prior mass of the always-on group: 1, or more where others begin by leaning to it."""
    return EVERYBODY if any(getattr(one, "everybody", False) for one in learners) else 1.0


def as_prior(prior: Mapping[str, float] | None, learners: Sequence[Any]) -> dict[str, float]:
    """The prior masses by group name, all positive; if None, those that suit the learners."""
    if prior is None:
        prior = {ALWAYS_ON: mass_of_everybody(learners)}
        return {name: mass for name, mass in prior.items() if mass != 1.0}
    if not isinstance(prior, Mapping):
        raise ConfigurationError("prior must be a mapping from group name to a positive mass.")
    for name, mass in prior.items():
        if not isinstance(name, str) or not is_finite(mass) or not is_mass(mass):
            raise ConfigurationError(
                f"prior[{name!r}] = {mass!r}: give group names positive masses, {MASSES}."
            )
    return {name: float(mass) for name, mass in prior.items()}


_PARTS: dict[str, Any] = {
    kind.__name__: kind for kind in (Ridge, Logistic, FTPL, ContextualFTPL, Policies, *_AGGREGATORS)
}
"""The learners and aggregators that a file may name."""


def register(kind: Any) -> Any:
    """Let snapshots name a learner or aggregator of yours; to be used as a decorator.

    It is saved as the name of its class and its parameters: what ``to_dict`` gives or, for a
    dataclass, its fields; it is made again by ``from_dict`` or its constructor. A file is only ever
    read with parts that were registered before, so that reading it runs no code but yours.

    >>> from dataclasses import dataclass
    >>> @register
    ... @dataclass(frozen=True)
    ... class Mine:
    ...     rate: float = 0.5
    >>> part_from_dict(part_to_dict(Mine(0.25)))
    Mine(rate=0.25)
    """
    name = kind.__name__
    if _PARTS.get(name, kind) is not kind and _PARTS[name].__qualname__ != kind.__qualname__:
        raise ConfigurationError(f"There is a part called {name} already: {_PARTS[name]!r}.")
    _PARTS[name] = kind
    return kind


def part_to_dict(part: object) -> dict[str, Any] | None:
    """A learner or aggregator by name and parameters; None where it cannot be saved."""
    if _PARTS.get(type(part).__name__) is not type(part):
        return None
    if hasattr(part, "to_dict"):
        return cast(dict[str, Any] | None, part.to_dict())
    return {"type": type(part).__name__, **asdict(cast(Any, part))}


def part_to_save(part: object) -> dict[str, Any]:
    """The same; SnapshotError where it cannot be saved."""
    fields = part_to_dict(part)
    if fields is None:
        raise SnapshotError(
            f"{name_of(part)} cannot be saved in a snapshot: only groupwise's own learners and "
            "aggregators can, and those of yours that groupwise.register knows. Keep "
            "the stream and replay it, use learners.Ridge, or log what your model predicts and "
            "give the column as an expert, experts=[...]."
        )
    return fields


def part_from_dict(fields: Mapping[str, Any]) -> Any:
    """The part that :func:`part_to_dict` wrote."""
    remedy = " Register one of your own with groupwise.register before reading the file."
    return named(_PARTS, fields, "part", remedy)


def part_called(what: str, name: str, **parameters: Any) -> Any:
    """The learner or aggregator that has this name among ``PARTS``.

    >>> part_called("learner", "forward", penalty=2.0)
    Ridge(penalty=2.0, forward=True, forgetting=1.0, everybody=False)
    """
    known = PARTS[what]
    if name not in known:
        choice = ", ".join([PORTFOLIO, *known] if what == "learner" else known)
        raise ConfigurationError(f"There is no {what} {name!r}. Choose one of {choice}.")
    return part_from_dict({**known[name], **parameters})


def learners_called(name: str, loss: Loss, **parameters: Any) -> list[Any]:
    """The learners that have this name: one of ``PARTS``, or the portfolio for a loss.

    >>> len(learners_called("portfolio", Square(), penalty=0.1))
    3
    """
    if name == PORTFOLIO:
        return portfolio(loss, **parameters)
    return [part_called("learner", name, **parameters)]
