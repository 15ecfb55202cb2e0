"""Checks for aggregators."""

import math
import pickle
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from groupwise.arrays import Vector
from groupwise.checks.bench import copies, during, replay_is_the_loop, require, same
from groupwise.errors import ConfigurationError
from groupwise.kernels.rounds import PLAYS
from groupwise.learners.ridge import Ridge
from groupwise.losses import Absolute, Log, Loss, Square, ZeroOne
from groupwise.protocols import AnyAggregator, Awake, Play, Row, Stateful
from groupwise.reduction import Reduction
from groupwise.regret.certificate import aggregator_bounds

GROUPS = 4
EVERYBODY = np.arange(GROUPS)
ROUNDING = 1e-9
ADVICE = ("x0", "x1", "x2")
"""Each of the experts below advises one of these."""
REMEMBERS = "it changed while it was used: what there is to remember, the reduction keeps."


@dataclass(frozen=True)
class Expert:
    """A learner that advises what the row says."""

    place: int

    def advise(self, row: Row, weight: float) -> float:
        """The number at its place."""
        return float(row.dense()[self.place])

    def update(self, row: Row, label: float, weight: float) -> None:
        """Nothing to learn."""


@dataclass(frozen=True)
class Bench:
    """An aggregator with a loss and a play that it says are sound."""

    aggregator: Any
    loss: Loss
    play: str
    rounds: int

    def reduction(self) -> Reduction:
        """Groups with the same three experts each, so that only who is awake tells them apart."""
        experts = [Expert(k) for k in range(len(ADVICE))]
        reduction = Reduction(experts, self.aggregator, self.loss, self.play)
        reduction.reserve(EVERYBODY, len(ADVICE), EVERYBODY, [1.0, 2.0, 0.5, 1.0])
        return reduction


def check_aggregator(
    aggregator: Any, *, losses: Sequence[Loss] | None = None, rounds: int = 300
) -> None:
    """Check that an aggregator keeps the contract of ``groupwise.protocols``.

    Parameters
    ----------
    aggregator : an aggregator of groupwise, or an object with the three methods.
    losses : those to try; those that ``plays`` refuses with ConfigurationError are left out.
    rounds : the length of a stream; longer finds more and takes longer.

    >>> from groupwise.aggregators import Specialists
    >>> check_aggregator(Specialists(), rounds=50)
    """
    with during("construction", aggregator):
        require(
            isinstance(aggregator, AnyAggregator) and not isinstance(aggregator, type),
            "an aggregator has the methods log_weights, bound and plays.",
        )
        benches = _benches(aggregator, losses, rounds)
    own = isinstance(aggregator, Stateful)
    for check in AGGREGATOR_CHECKS if own else (*POTENTIAL_CHECKS, *AGGREGATOR_CHECKS):
        for bench in benches:
            with during(check.__name__.removeprefix("_").replace("_", " "), aggregator):
                check(bench)


def _benches(aggregator: Any, losses: Sequence[Loss] | None, rounds: int) -> list[Bench]:
    tried = (Square(), Absolute(), Log(floor=0.01), ZeroOne()) if losses is None else losses
    benches: list[Bench] = []
    for loss in tried:
        try:
            plays = aggregator.plays(loss)
        except ConfigurationError:
            continue
        require(
            isinstance(plays, tuple) and plays and all(play in PLAYS for play in plays),
            f"plays({loss}) is {plays!r}; give a tuple of some of {', '.join(PLAYS)}.",
        )
        benches.extend(Bench(aggregator, loss, play, rounds) for play in plays)
    require(benches, f"plays refuses every loss tried: {', '.join(map(str, tried))}.")
    return benches


def _weights_are_numbers(bench: Bench) -> None:
    ends = np.array([-1e7, -1.0, 0.0, 1.0, 1e7])
    for size in (0.0, 1.0, 1e3, 1e7):
        regret = np.clip(ends, -size, size)[:, None]
        absolute = np.full(regret.shape, size)
        found = bench.aggregator.log_weights(regret, absolute, bench.loss)
        require(
            isinstance(found, np.ndarray) and found.shape == regret.shape,
            "log_weights must return an array of the shape of regret.",
        )
        bad = np.isnan(found) | (found == np.inf)
        require(
            not bad.any(),
            f"log_weights is {found[bad]} at R = {regret[bad]}, C = {size:g}: it must be a number "
            "or minus infinity. Compute it in logarithms.",
        )


def _bounds_are_numbers(bench: Bench) -> None:
    prior = np.full((GROUPS, 1), 1.0 / GROUPS)
    for size in (0.0, 1.0, 1e7):
        absolute = np.full(prior.shape, size)
        found = bench.aggregator.bound(0.5 * absolute, absolute, prior, bench.loss)
        require(
            isinstance(found, np.ndarray) and found.shape == prior.shape,
            "bound must return an array of the shape of regret.",
        )
        require(not np.isnan(found).any(), f"bound is NaN at C = {size:g}.")
        require((found >= 0.0).all(), f"bound is {found.min():g} < 0 at C = {size:g}.")


def _arrays_stay_as_they_are(bench: Bench) -> None:
    regret, absolute = np.array([[0.5], [-2.0]]), np.array([[1.0], [3.0]])
    prior = np.array([[0.25], [0.75]])
    given = [array.copy() for array in (regret, absolute, prior)]
    weights = bench.aggregator.log_weights(regret, absolute, bench.loss)
    bounds = bench.aggregator.bound(regret, absolute, prior, bench.loss)
    for now, then in zip((regret, absolute, prior), given, strict=True):
        require(same(now, then), "log_weights or bound changed an array that it was given.")
        shared = np.shares_memory(weights, now) or np.shares_memory(bounds, now)
        require(not shared, "what it returns shares memory with what it was given. Copy it.")


def _weights_are_the_same_again(bench: Bench) -> None:
    question = np.array([[0.5], [-2.0]]), np.array([[1.0], [3.0]])
    before = bench.aggregator.log_weights(*question, bench.loss)
    _run(bench, bench.reduction(), 0, 0, min(bench.rounds, 50))
    after = bench.aggregator.log_weights(*question, bench.loss)
    require(same(before, after), REMEMBERS)


def _nothing_is_remembered(bench: Bench) -> None:
    state = pickle.dumps(bench.aggregator)
    _run(bench, bench.reduction(), 0, 0, min(bench.rounds, 50))
    require(pickle.dumps(bench.aggregator) == state, REMEMBERS)


def _weights_are_probabilities(bench: Bench) -> None:
    for t, row, play in _played(bench, bench.reduction(), 1):
        chances = play.probabilities
        good = (chances >= 0.0).all() and math.isclose(chances.sum(), 1.0, rel_tol=1e-9)
        require(good, f"the weights {chances.ravel()} are no probabilities in round {t}.")
        low, high = row.values.min(), row.values.max()
        inside = bench.play == "substitution" or low - 1e-9 <= play.prediction <= high + 1e-9
        require(inside, f"the play {play.prediction} is outside the advice in round {t}.")


def _split_and_resume_is_one_pass(bench: Bench) -> None:
    half, first = bench.rounds // 2, bench.reduction()
    expected = _run(bench, bench.reduction(), 2)
    _run(bench, first, 2, 0, half)
    for how, resumed in copies(first, "pickled").items():
        require(
            same(_run(bench, resumed, 2, half), expected[half:]),
            f"going on from a {how} made in mid-stream gives other predictions.",
        )


def _replay_is_the_loop(bench: Bench) -> None:
    if not bench.loss.convex:
        return  # ridge advises numbers
    members = np.random.default_rng(3).random((bench.rounds, GROUPS)).round(1)
    members[:, 0] = members[0] = 1.0  # groups are numbered as they come
    parts = {"aggregator": bench.aggregator, "loss": bench.loss, "play": bench.play}
    replay_is_the_loop(members, Ridge(), **parts)


def _bounds(reduction: Reduction) -> Vector:
    """What the aggregator promises now."""
    found = aggregator_bounds(reduction, GROUPS)
    require(not np.isnan(found).any(), "a bound is not a number.")
    return found


def _bounds_hold(bench: Bench) -> None:
    for seed, adversary in enumerate(ADVERSARIES):
        reduction = bench.reduction()
        for t, _, _ in _played(bench, reduction, seed):
            regret, bound = reduction.state.column("regret", GROUPS), _bounds(reduction)
            excess = float((regret - bound).max())
            require(
                excess <= ROUNDING * (1.0 + t),
                f"after {t + 1} rounds the regret to an expert exceeds its bound by {excess:.3g} "
                f"({bench.loss} with {bench.play} play; the adversary is {adversary}).",
            )


POTENTIAL_CHECKS: tuple[Callable[[Bench], None], ...] = (
    _weights_are_numbers,
    _bounds_are_numbers,
    _arrays_stay_as_they_are,
    _weights_are_the_same_again,
)
"""For aggregators that are given by a potential: all but those that keep records of their own."""
AGGREGATOR_CHECKS: tuple[Callable[[Bench], None], ...] = (
    _nothing_is_remembered,
    _weights_are_probabilities,
    _split_and_resume_is_one_pass,
    _replay_is_the_loop,
    _bounds_hold,
)


Adversary: TypeAlias = Callable[[int, Vector, float, np.random.Generator], Any]
ADVERSARIES: dict[str, Adversary] = {
    "random": lambda t, advice, prediction, chance: chance.integers(2),
    "contrary": lambda t, advice, prediction, chance: prediction < 0.5,
    "partial_to_the_last": lambda t, advice, prediction, chance: advice[-1] >= 0.5,
    "fickle": lambda t, advice, prediction, chance: advice[t // 25 % advice.size] >= 0.5,
}
"""Each sees the round, the experts' advice and the play before it sets the label, 0 or 1."""


def _played(
    bench: Bench, reduction: Reduction, seed: int, first: int = 0, last: int | None = None
) -> Iterator[tuple[int, Row, Play]]:
    """Rounds with random advice and random groups awake, some of them in part; some are played."""
    generator = np.random.default_rng(seed)
    adversary = list(ADVERSARIES.values())[seed % len(ADVERSARIES)]
    for t in range(bench.rounds if last is None else last):
        advice = np.clip(generator.beta(0.3, 0.3, len(ADVICE)), *bench.loss.advice_range)
        row = Row(np.arange(len(ADVICE)), advice if bench.loss.convex else advice.round(), ADVICE)
        weights = np.where(generator.random(GROUPS) < 0.5, 1.0, generator.random(GROUPS))
        weights *= generator.random(GROUPS) < 0.6
        weights[0] = 1.0
        if t >= first:
            groups = np.flatnonzero(weights)
            awake = Awake(groups, weights[groups])
            play = reduction.predict(t, awake, row)
            chance = np.random.default_rng([seed, t])
            label = float(adversary(t, row.values, play.prediction, chance))
            reduction.learn(t, awake, row, label)
            yield t, row, play


def _run(
    bench: Bench, reduction: Reduction, seed: int, first: int = 0, last: int | None = None
) -> list[float]:
    return [play.prediction for _, _, play in _played(bench, reduction, seed, first, last)]
