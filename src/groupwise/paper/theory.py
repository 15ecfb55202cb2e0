"""What the paper says of its algorithm, of time and of bounds: each sentence put to the test."""

import math
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import groupwise as gw
from groupwise import bounds
from groupwise.arrays import Vector
from groupwise.checks import bench
from groupwise.paper import rates
from groupwise.paper.classification import CONTEXTS, FIELDS, stump_table
from groupwise.paper.enumeration import FAMILIES, FLAT
from groupwise.paper.routing import grid_edges, grid_oracle
from groupwise.paper.statements import Judgement, Statement, percent, stated
from groupwise.report.tables import number

ABSTRACT, INTRO, MODEL = "Abstract", "1 Introduction", "2 Model"
METHOD, USES = "3 Subsequence regret minimisation", "4 Applications"
TASTING = "E Apple tasting"
ROUNDS, SEEDS = 1_000, (2_100, 2_101, 2_102)
"""Of the streams on which corollaries are checked; ``rates`` measures their exponents as well."""
TIMED = 30
"""Rounds whose median is the time of a round, where classes grow."""
AWAKE = (16, 64, 256)
SLACK = 0.1
"""So much the exponent of a measured time may be off."""


class Sentence(NamedTuple):
    """A claim and what judges it."""

    section: str
    name: str
    claim: str
    how: str
    judge: Callable[[], Judgement]


def judged(sentence: Sentence) -> Statement:
    """The claim with what became of it."""
    return stated(*sentence[:4], sentence.judge())


# Time.


def quickest(measure: Callable[[int], float], sizes: Sequence[int]) -> Vector:
    """The time at every size, least of three turns: what else the machine does only adds to it."""
    turns = [[measure(size) for size in sizes] for _ in range(3)]
    least: Vector = np.array(turns).min(axis=0)
    return least


def linear_in_groups() -> Judgement:
    """Exponent of the time of a round against the groups that are awake."""
    times = quickest(lambda awake: rates.timed(awake, 0), AWAKE)
    grows = rates.slope(AWAKE, times)
    found = f"exponent {number(grows)} from {AWAKE[0]} to {AWAKE[-1]} groups awake"
    return Judgement(found, grows <= 1.0 + SLACK)


def oracle_efficient() -> Judgement:
    """A round's time where the class grows and its structure stays."""
    measure, sizes = FAMILIES["Paths through a grid"]
    few, many = (measure(size, 1)[0] for size in (sizes[0], sizes[-1]))
    short, long = quickest(lambda size: measure(size, TIMED)[1], (sizes[0], sizes[-1]))
    found = f"{few:,} to {many:,} paths: {number(long / short, 1)} times the time"
    return Judgement(found, long / short <= FLAT)


def enumeration_is_linear() -> Judgement:
    """Exponent of Blum and Lykouris's time against the number of policies."""
    measure, _ = FAMILIES["A plain table"]
    sizes = (10_000, 40_000)
    grows = rates.slope(sizes, quickest(lambda size: measure(size, TIMED)[2], sizes))
    found = f"exponent {number(grows)} from {sizes[0]:,} to {sizes[1]:,} policies"
    return Judgement(found, grows >= 1.0 - 3.0 * SLACK)


# Experts.


def pairs_of_policy_and_group() -> Judgement:
    """The experts of one round, counted."""
    policies = gw.oracles.FiniteClass(stump_table(), CONTEXTS)
    model = gw.enumerated.BlumLykouris(policies, rates.declared(4), features=FIELDS)
    row = dict.fromkeys(FIELDS, 0) | {"g0": 1, "g1": 0, "g2": 1, "g3": 1}
    experts, count = len(np.ravel(model.predict(row).weights)), len(stump_table())
    holds = experts == count * 4
    found = f"{experts} awake: {count} policies × 4 of 5 groups"
    return Judgement(found, holds, {"experts": float(experts)})


def one_expert_per_group() -> Judgement:
    """Ours, counted in the same round; those asleep have no weight."""
    parts = gw.presets.paper()
    model = gw.Groupwise(rates.declared(4), features=["x"], indicators=False, **parts)
    for awake in (1, 0):
        model.learn_one({f"g{i}": awake for i in range(4)} | {"x": 0.5}, 0.5)
    ticket = model.predict({"g0": 1, "g1": 0, "g2": 1, "g3": 1, "x": 0.5})
    experts, known = len(ticket.weights), len(model.regret())
    whole = abs(float(np.sum(ticket.weights)) - 1.0) < 1e-12
    found = f"{known} experts for 4 groups and everybody; {experts} awake have all the weight"
    return Judgement(found, (experts, known) == (4, 5) and whole, {"experts": float(known)})


# Bounds.


def same_rate() -> Judgement:
    """The bounds of both for stumps, as the group's rounds grow."""
    lengths = (10**4, 10**6, 10**8)
    known: dict[str, Any] = {"groups": 5, "policies": 14}
    theirs = np.array([bounds.enumerated(t, **known) for t in lengths])
    ours = np.array(
        [bounds.classification_transductive(t, contexts=64, labels=1, **known) for t in lengths]
    )
    exponents = [rates.slope(lengths, values) for values in (ours, theirs)]
    ratio = float(ours[1] / theirs[1])
    found = "exponents {} and {} of T_g; but ours is {} times as large, for 14 policies".format(
        *(number(value) for value in (*exponents, ratio))
    )
    return Judgement(found, max(exponents) <= 0.5 + SLACK, {"ratio": ratio})


def below(call: Callable[[int, int], rates.Found]) -> Judgement:
    """The worst group's regret as a part of its bound, at most over the seeds."""
    runs = [call(ROUNDS, seed) for seed in SEEDS]
    part = max(one.regret / one.bound for one in runs)
    found = f"worst group of {ROUNDS:,} rounds: {percent(part)} of the bound"
    return Judgement(found, part <= 1.0, {"part": part})


def kalai_vempala() -> Judgement:
    """Paths with losses in [0, 1]: the costs of an edge are then at most 1/6."""
    edges, longest = len(grid_edges(rates.SIZE)), 2 * (rates.SIZE - 1)
    most, wide = edges / longest, 2.0 * longest
    limit = math.sqrt(8.0 * most * wide * edges * ROUNDS)
    runs = [_one_leader(edges, longest, seed) for seed in SEEDS]
    found = f"{number(max(runs), 1)} of {number(limit, 1)}, with losses in [0, 1]; the formula is "
    found += "not one for larger losses: costs k times as large raise it √k times only"
    return Judgement(found, max(runs) <= limit, {"regret": max(runs)})


def _one_leader(edges: int, longest: int, seed: int) -> float:
    """The regret of a single perturbed leader on the costs of ``rates.paths``."""
    rng = np.random.default_rng(seed)
    learner = gw.learners.FTPL(grid_oracle(rates.SIZE), cost_norm=edges / longest)
    model = gw.Groupwise([], learner, loss=gw.losses.Linear(0.0, 1.0), seed=seed)
    for day in range(ROUNDS):
        model.learn_one({"day": day}, rng.integers(0, 2, edges) / longest)
    return float(model.regret()["always_on"]["regret"])


def separators() -> Judgement:
    """|H| against 2^s, for stumps."""
    pairs = [(2 * d + 2, len(gw.oracles.Stumps().separator(d))) for d in range(1, 17)]
    holds = all(size <= 2**s for size, s in pairs)
    found = f"stumps on 16 bits: {pairs[-1][0]} policies ≤ 2^{pairs[-1][1]}"
    return Judgement(found, holds, {"separator": float(pairs[-1][1])})


def fractional() -> Judgement:
    """Ridge on a group that holds shares of rows, at every moment of two streams."""
    shares, moments, above = 0.0, 0, 0
    for seed, stream in enumerate((bench.linear, bench.contrary)):
        model = gw.Groupwise(
            bench.declarations(fractional=True),
            gw.learners.Ridge(1.0),
            gw.aggregators.AdaNormalHedge(),
            features=bench.FEATURES,
            indicators=False,
        )
        for row, answer in islice(stream(seed), 300):
            ticket = model.predict(row)
            model.learn(ticket, answer(ticket.prediction))
            for line in (one for one in model.regret() if one["rounds"] > 0.0):
                moments += 1
                above += line["regret"] > line["certificate"]
                shares += line["rounds"] % 1.0
    found = f"certificates of all groups at every round, {moments:,} in all: {above} exceeded"
    return Judgement(found, not above and shares > 0.0, {"exceeded": float(above)})


def one_payment_per_block() -> Judgement:
    """Which rounds of 1,000 are paid for."""
    model = gw.Groupwise([gw.by("g")], loss=gw.losses.Square(0.0, 1.0))
    paying = gw.PayForFeedback(model, horizon=ROUNDS)
    asked = [paying.predict({"g": t % 2}).wants_label for t in range(ROUNDS)]
    blocks = np.array(asked).reshape(-1, 10).sum(axis=1)
    found = f"{len(blocks)} blocks of 10 rounds, {int(blocks.min())} to {int(blocks.max())} in each"
    return Judgement(found, bool((blocks == 1).all()), {"paid": float(blocks.sum())})


def elsewhere() -> Judgement:
    """A claim about what others have done."""
    return Judgement("a statement about other work, when the paper was written; no run tells", None)


TIMINGS: Sequence[Sentence] = (
    Sentence(
        ABSTRACT,
        "time-groups",
        "We run in time linear in the number of groups (again in section 1)",
        "time of a round, groups awake",
        linear_in_groups,
    ),
    Sentence(
        ABSTRACT,
        "time-oracle",
        "We are oracle-efficient in the hypothesis class",
        "time of a round, paths through grids",
        oracle_efficient,
    ),
    Sentence(
        INTRO,
        "time-enumeration",
        "The running times of Blum and Lykouris are at least linear in |H|",
        "time of a round, BlumLykouris",
        enumeration_is_linear,
    ),
)
"""They measure time, so that they are run one after another."""

CLAIMS: Sequence[Sentence] = (
    Sentence(
        ABSTRACT,
        "bounds-similar",
        "Our regret guarantees are similar to those of Blum and Lykouris",
        "gw.bounds, stumps, 10⁴ to 10⁸ rounds",
        same_rate,
    ),
    Sentence(
        INTRO,
        "experts-enumerated",
        "Blum and Lykouris have one expert for every pairing of groups with hypotheses",
        "BlumLykouris, experts counted",
        pairs_of_policy_and_group,
    ),
    Sentence(
        INTRO,
        "literature",
        "None of the earlier algorithms is oracle efficient or has been implemented; no other "
        "implementable algorithm has subsequence regret for linear regression",
        "–",
        elsewhere,
    ),
    Sentence(
        MODEL,
        "fractional",
        "Results hold for fractional time selection without significant modification",
        "streams of gw.checks, shares of rows",
        fractional,
    ),
    Sentence(
        METHOD,
        "experts-ours",
        "We use exactly |𝓘| experts; only those of active subsequences are drawn",
        "a model, experts counted",
        one_expert_per_group,
    ),
    Sentence(
        USES,
        "corollary-regression",
        "Regression: O(d ln(1 + T_g) + √(T_g ln |𝒢|) + ‖θ‖²) for every group",
        "rates, gw.bounds",
        partial(below, rates.regression),
    ),
    Sentence(
        USES,
        "separator-finite",
        "A separator of s contexts bounds |H| by |𝒜|^s",
        "stumps, 1 to 16 bits",
        separators,
    ),
    Sentence(
        USES,
        "corollary-separator",
        "Separator: O(√T_g (√(s^{3/2} n^{3/2} log |H|) + √log |𝒢|)) for each group",
        "rates, gw.bounds",
        partial(below, partial(rates.labels, "separator")),
    ),
    Sentence(
        USES,
        "corollary-transductive",
        "Transductive: O(√T_g (√(s^{1/2} n^{3/2} log |H|) + √log |𝒢|)) for each group",
        "rates, gw.bounds",
        partial(below, partial(rates.labels, "transductive")),
    ),
    Sentence(
        USES,
        "kalai-vempala",
        "Follow the perturbed leader has regret at most √(8CAdT)",
        "rates, paths, one learner",
        kalai_vempala,
    ),
    Sentence(
        USES,
        "corollary-linear",
        "Linear optimisation: O(√(T_I CAd) + √(T_I log |𝓘|)) for every subsequence",
        "rates, gw.bounds",
        partial(below, rates.paths),
    ),
    Sentence(
        TASTING,
        "payments",
        "Contiguous sub-intervals of equal length; one random time step of each is paid for",
        "PayForFeedback, 1,000 rounds",
        one_payment_per_block,
    ),
    Sentence(
        TASTING,
        "corollary-tasting",
        "Apple tasting: O(T^{1/6} √T_g (√(s^{3/2} log |F|) + √log |𝒢|))",
        "rates, gw.bounds",
        partial(below, rates.tasting),
    ),
)
