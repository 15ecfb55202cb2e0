"""How fast regret and time grow, measured beside the corollaries' rates and their numbers."""

import itertools
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

import groupwise as gw
from groupwise import bounds
from groupwise.arrays import Vector
from groupwise.paper.claims import Check, Outcome, Request, Study
from groupwise.paper.engine import in_processes
from groupwise.paper.enumeration import FAMILIES, Case
from groupwise.paper.routing import grid_edges, grid_oracle
from groupwise.report.figures import Figure, Line, Panel
from groupwise.report.tables import Cell, Column, Table, number

SEEDS = tuple(range(2_000, 2_006))
"""Fresh: nothing was tuned on them."""
LENGTHS = (500, 1_000, 2_000, 4_000)
FAMILY = 4
"""Groups of the streams whose length grows, each with half of the rows, and everybody."""
MANY = (2, 8, 32, 128)
"""Groups of the streams whose number of groups grows."""
SEPARATORS = (2, 3, 4, 5, 6)
"""Sizes of separators, where these grow."""
FIXED = 1_000
"""Rounds where something else than their number grows."""
FEATURES = 5
SIZE = 4
"""Of the grid that paths lead through."""
BITS = 4
SLACK = 0.1
"""So much a measured exponent may be above the corollary's."""
TIMED, WARM, AWAKE = 300, 20, 4
EVERYBODY = "always_on"


class Found(NamedTuple):
    """The largest regret of a group in a run, and the bound for that group."""

    regret: float
    bound: float


def member(rng: np.random.Generator, groups: int) -> dict[str, int]:
    """A row's groups: each with chance one half."""
    return {f"g{i}": one for i, one in enumerate(rng.integers(0, 2, groups).tolist())}


def declared(groups: int) -> list[Any]:
    """The groups of such rows."""
    return [gw.where(f"g{i}", "==", 1) for i in range(groups)]


def worst(model: Any, bound: Callable[[float], float], scale: float = 1.0) -> Found:
    """The largest regret, and the bound for that group's rounds."""
    row = max(model.regret(), key=lambda one: float(one["regret"]))
    return Found(float(row["regret"]) / scale, bound(float(row["rounds"])))


def regression(rounds: int, seed: int, groups: int = FAMILY) -> Found:
    """Labels that are noise around a line: Corollary cor:reg, as published."""
    rng = np.random.default_rng(seed)
    parts: dict[str, Any] = gw.presets.paper() | {"clip": True, "play": "mean"}
    features = [f"x{i}" for i in range(FEATURES)]
    model = gw.Groupwise(declared(groups), features=features, indicators=False, **parts)
    truth = rng.random(FEATURES) / FEATURES
    for _ in range(rounds):
        x = rng.random(FEATURES)
        y = float(np.clip(truth @ x + rng.normal(0.0, 0.25), 0.0, 1.0))
        model.learn_one(dict(zip(features, x.tolist(), strict=True)) | member(rng, groups), y)
    known: dict[str, Any] = {
        "groups": groups + 1,
        "features": FEATURES,
        "norm": 2.0,
        "horizon": rounds,
    }
    return worst(model, lambda own: bounds.regression(own, **known))


def paths(rounds: int, seed: int, groups: int = FAMILY) -> Found:
    """Costs that nothing can be learned from: the corollary on linear optimisation."""
    rng = np.random.default_rng(seed)
    edges, longest = len(grid_edges(SIZE)), 2 * (SIZE - 1)
    learner = gw.learners.FTPL(grid_oracle(SIZE), cost_norm=float(edges))
    loss = gw.losses.Linear(0.0, float(longest))
    model = gw.Groupwise(declared(groups), learner, loss=loss, seed=seed)
    for _ in range(rounds):
        model.learn_one(member(rng, groups), rng.integers(0, 2, edges).astype(float))
    known: dict[str, Any] = {
        "groups": groups + 1,
        "diameter": 2.0 * longest,
        "cost_norm": float(edges),
    }
    span = {"cost_range": float(longest), "horizon": rounds}
    return worst(model, lambda own: bounds.linear_optimisation(own, **known, **span))


class Known(NamedTuple):
    """A corollary, and what it calls the contexts that get noise."""

    bound: Callable[..., float]
    contexts: str


BOUNDS = {
    "separator": Known(bounds.classification_separator, "separator"),
    "transductive": Known(bounds.classification_transductive, "contexts"),
}


def labels(
    setting: str,
    rounds: int,
    seed: int,
    groups: int = FAMILY,
    bits: int = BITS,
    count: int = 1,
) -> Found:
    """Labels that are coins: the corollaries on classification, for stumps on so many bits."""
    rng = np.random.default_rng(seed)
    oracle = gw.oracles.Stumps()
    every = np.array(list(itertools.product([0.0, 1.0], repeat=bits)))
    contexts = every if setting == "transductive" else oracle.separator(bits)
    fields = [f"bit{i}" for i in range(bits)]
    model = gw.Groupwise(
        declared(groups),
        gw.learners.ContextualFTPL(oracle, contexts, setting),
        loss=gw.losses.ZeroOne() if count == 1 else gw.losses.Hamming(count),
        features=fields,
        seed=seed,
    )
    for _ in range(rounds):
        row = dict(zip(fields, rng.integers(0, 2, bits).tolist(), strict=True))
        coins = rng.integers(0, 2, count)
        model.learn_one(row | member(rng, groups), int(coins[0]) if count == 1 else coins)
    known = BOUNDS[setting]
    size: dict[str, Any] = {"labels": count, "policies": 2 * bits + 2, "independent": True}
    size |= {"groups": groups + 1, known.contexts: len(contexts), "horizon": rounds}
    return worst(model, lambda own: known.bound(own, **size), float(count))


def separated(rounds: int, seed: int, size: int) -> Found:
    """Classification with a separator of so many contexts: stumps on 2^(s − 2) bits have one."""
    return labels("separator", rounds, seed, bits=2 ** (size - 2))


def tasting(rounds: int, seed: int, groups: int = FAMILY) -> Found:
    """The same where only those who are accepted show their label: the corollary's rate is ⅔."""
    rng = np.random.default_rng(seed)
    oracle = gw.oracles.Stumps()
    contexts, fields = oracle.separator(BITS), [f"bit{i}" for i in range(BITS)]
    learner = gw.learners.ContextualFTPL(oracle, contexts, "separator")
    model = gw.Groupwise(
        declared(groups), learner, loss=gw.losses.ZeroOne(), features=fields, seed=seed
    )
    lender = gw.AppleTasting(model, horizon=rounds)
    bits, coins = rng.integers(0, 2, (rounds, BITS)), rng.integers(0, 2, rounds)
    members = np.column_stack([rng.integers(0, 2, (rounds, groups)), np.ones(rounds, int)])
    lost = np.empty(rounds)
    for t in range(rounds):
        row = dict(zip(fields, bits[t].tolist(), strict=True))
        named = {f"g{i}": one for i, one in enumerate(members[t, :-1].tolist())}
        ticket = lender.predict(row | named)
        wrong = np.abs(ticket.advice - coins[t])
        lost[t] = 1.0 - coins[t] if ticket.wants_label else float(ticket.weights @ wrong)
        if ticket.wants_label:
            lender.learn(ticket, int(coins[t]))
    said = np.column_stack([bits, 1 - bits, np.zeros(rounds), np.ones(rounds)])
    best = (members.T @ np.abs(said - coins[:, None])).min(axis=1)
    regret = members.T @ lost - best
    group = int(np.argmax(regret))
    known: dict[str, Any] = {
        "groups": groups + 1,
        "separator": len(contexts),
        "policies": 2 * BITS + 2,
    }
    own = float(members[:, group].sum())
    return Found(float(regret[group]), bounds.apple_tasting(own, horizon=rounds, **known))


class Rate(NamedTuple):
    """What grows, over which values, and the exponent that the corollary has for it."""

    title: str
    what: str
    values: Sequence[int]
    exponent: float
    run: Callable[[int, int], Found]


def _of(call: Callable[..., Found], name: str, **fixed: Any) -> Callable[[int, int], Found]:
    """A run by the value of what grows, and a seed."""
    return partial(_with, call, name, fixed)


def _with(
    call: Callable[..., Found], name: str, fixed: dict[str, Any], value: int, seed: int
) -> Found:
    return call(seed=seed, **{**fixed, name: value})


def rates(lengths: Sequence[int], fixed: int) -> list[Rate]:
    """All that is measured. Logarithms have the exponent 0."""
    separator, transductive = (partial(labels, one) for one in ("separator", "transductive"))
    grown = {"rounds": fixed}
    return [
        Rate("Regression, ridge", "T", lengths, 0.5, _of(regression, "rounds")),
        Rate("Paths, FTPL", "T", lengths, 0.5, _of(paths, "rounds")),
        Rate("Classification, separator", "T", lengths, 0.5, _of(separator, "rounds")),
        Rate("Classification, transductive", "T", lengths, 0.5, _of(transductive, "rounds")),
        Rate("Apple tasting", "T", lengths, 2 / 3, _of(tasting, "rounds")),
        Rate("Regression, ridge", "|G|", MANY, 0.0, _of(regression, "groups", **grown)),
        Rate("Classification, separator", "|G|", MANY, 0.0, _of(separator, "groups", **grown)),
        Rate("Classification, separator", "s", SEPARATORS, 0.75, _of(separated, "size", **grown)),
        Rate("Classification, separator", "n", (1, 2, 4), 0.75, _of(separator, "count", **grown)),
    ]


def slope(values: Sequence[int], regrets: Vector) -> float:
    """The exponent: of a line through the logarithms."""
    return float(np.polyfit(np.log(values), np.log(np.maximum(regrets, 1e-3)), 1)[0])


def timed(awake: int, asleep: int) -> float:
    """Microseconds of a round with so many groups awake, and others that exist; the median."""
    model = gw.Groupwise(
        [*declared(awake), gw.by("other")], gw.learners.Ridge(), features=["x"], indicators=False
    )
    on = {f"g{i}": 1 for i in range(awake)}
    off = dict.fromkeys(on, 0)
    for number_ in range(asleep):
        model.learn_one({**off, "other": f"o{number_}", "x": 0.5}, 0.5)
    times = []
    for t in range(TIMED):
        start = time.perf_counter()
        model.learn(model.predict({**on, "other": None, "x": t / TIMED}), 0.5)
        times.append(time.perf_counter() - start)
    return float(np.median(times[WARM:])) * 1e6


SLEEPING = (10, 100, 1_000, 10_000)
WAKING = (1, 4, 16, 64)
CLASSES, CLASS_SIZES = "Stumps for n labels", (1, 2, 3, 4)
"""The class H against whose size time is measured: 14ⁿ policies."""
ROUNDS_OF_CLASS = 30


def run(request: Request) -> Outcome:
    """Regret against everything that the corollaries name, then time against the groups."""
    seeds = SEEDS[: request.seeds]
    longest = request.rounds or LENGTHS[-1]
    lengths = [length for length in LENGTHS if length <= longest]
    lengths = lengths if len(lengths) > 1 else [max(longest // 2, 1), longest]
    every = rates(lengths, min(FIXED, longest))
    for one in every:  # what all processes need is compiled once, and said to be
        one.run(one.values[0] if one.what != "T" else WARM, seeds[0])
    calls = [
        partial(one.run, value, seed) for one in every for value in one.values for seed in seeds
    ]
    found = iter(list(in_processes(calls, request.jobs, request.what)))
    measured = [
        np.array([[*islice(found, len(seeds))] for _ in one.values]) for one in every
    ]  # value × seed × (regret, bound)
    tables, checks, panels, numbers = [], [], [], {}
    for one, runs in zip(every, measured, strict=True):
        regrets, limits = runs.mean(axis=1).T
        grows = slope(one.values, regrets)
        name = f"{one.title}, against {one.what}"
        tables.append(_table(one, regrets, limits, grows))
        checks += [
            Check(
                f"{name}: grows at most like the corollary, exponent {number(one.exponent)}",
                grows <= one.exponent + SLACK,
                number(grows),
            ),
            Check(
                f"{name}: no run's regret is above its bound",
                bool((runs[:, :, 0] <= runs[:, :, 1]).all()),
                f"at most {number(float((runs[:, :, 0] / runs[:, :, 1]).max()), 3)} of it",
            ),
        ]
        numbers[f"{name}/exponent"] = grows
        panels.append(_panel(one, regrets, limits))
    asleep, awake = _pairs()
    times = [partial(timed, *pair) for pair in (*asleep, *awake)]
    # One at a time: it is their time that counts.
    micro = list(in_processes(times, 1, request.what, "times"))
    sleeping, waking = micro[: len(asleep)], micro[len(asleep) :]
    measure, _ = FAMILIES[CLASSES]
    sizes = [partial(measure, size, ROUNDS_OF_CLASS) for size in CLASS_SIZES]
    measure(CLASS_SIZES[0], WARM)
    cases = list(in_processes(sizes, 1, request.what, "classes"))
    tables += [_times(sleeping, waking), _class_times(cases)]
    figure = Figure(
        "rates",
        "The worst group’s regret and its bound against what grows, both as powers of ten; means "
        "over the seeds.",
        "log₁₀ of what grows",
        "log₁₀ regret",
        tuple(panels),
    )
    return Outcome(tables, [figure, _time_figure(sleeping, waking, cases)], checks, numbers)


def _pairs() -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    return [(AWAKE, asleep) for asleep in SLEEPING], [(awake, 0) for awake in WAKING]


def _table(one: Rate, regrets: Vector, limits: Vector, grows: float) -> Table:
    columns = (Column(one.what), Column("Regret"), Column("Bound"), Column("Regret / bound"))
    return Table(
        f"{one.title}, against {one.what}",
        columns,
        tuple(
            (Cell(f"{value:,}"), Cell(number(r, 1)), Cell(number(b, 1)), Cell(number(r / b, 3)))
            for value, r, b in zip(one.values, regrets.tolist(), limits.tolist(), strict=True)
        ),
        f"Measured exponent {number(grows)}; the corollary’s is {number(one.exponent)}. The worst "
        "group’s regret, and the bound for its rounds; means over the seeds.",
    )


def _panel(one: Rate, regrets: Vector, limits: Vector) -> Panel:
    x = np.log10(np.array(one.values, dtype=np.float64))
    lines = (
        Line("regret", x, np.log10(np.maximum(regrets, 1e-3)), None, 1, "marked"),
        Line("bound", x, np.log10(limits), None, 4, "dashed"),
    )
    return Panel(f"{one.title}, {one.what}", lines)


def _times(sleeping: Sequence[float], waking: Sequence[float]) -> Table:
    columns = (Column("Groups awake"), Column("Groups asleep"), Column("Round, µs"))
    lines = zip([pair for pairs in _pairs() for pair in pairs], [*sleeping, *waking], strict=True)
    return Table(
        "Time of a round against the number of groups",
        columns,
        tuple(
            (Cell(f"{awake:,}"), Cell(f"{asleep:,}"), Cell(number(micro, 1)))
            for (awake, asleep), micro in lines
        ),
        f"The median over {TIMED - WARM} rounds of ridge regression.",
    )


def _class_times(cases: Sequence[Case]) -> Table:
    columns = (Column("|H|"), Column("Ours, µs"), Column("Enumerated, µs"))
    return Table(
        "Time of a round against the number of policies",
        columns,
        tuple(
            (Cell(f"{size:,}"), Cell(number(ours, 0)), Cell(number(theirs, 0)))
            for size, ours, theirs in cases
        ),
        "Stumps for one to four labels, two groups awake; enumerated: Blum and Lykouris. Other "
        "classes: reproduce enumeration.",
    )


def _time_figure(
    sleeping: Sequence[float], waking: Sequence[float], cases: Sequence[Case]
) -> Figure:
    """The three of them."""

    def line(label: str, sizes: Sequence[float], micro: Sequence[float], colour: int) -> Line:
        return Line(label, np.log10(sizes), np.log10(micro), None, colour, "marked")

    sizes, ours, theirs = zip(*cases, strict=True)
    return Figure(
        "rates-time",
        "The time of a round against groups that are awake, groups that are asleep, and policies, "
        "all as powers of ten. Enumerated: Blum and Lykouris.",
        "log₁₀ of what grows",
        "log₁₀ µs",
        (
            Panel("Groups awake", (line("ours", WAKING, waking, 1),)),
            Panel("Groups asleep", (line("ours", SLEEPING, sleeping, 1),)),
            Panel(
                "Policies, |H|",
                (line("enumerated", sizes, theirs, 0), line("ours", sizes, ours, 1)),
            ),
        ),
        shared_legend=False,
    )


STUDY = Study(
    "How fast regret and time grow",
    "The corollaries say how regret grows with the length of the stream, the number of groups, the "
    "size of the separator and the number of labels. Here each is measured on streams that have "
    "nothing to learn but noise, where the best in hindsight looks better than it is and regret is "
    "as large as chance makes it; beside it stands gw.bounds, the same corollary as a number, with "
    "the constants that are proved. Exponents are those of a line through the logarithms; where "
    "the corollary has a logarithm, its exponent is 0. Time depends on the groups that are awake, "
    "not on how many there are; where all policies are enumerated, as Blum and Lykouris do, on how "
    "many of those there are.",
    run,
)
