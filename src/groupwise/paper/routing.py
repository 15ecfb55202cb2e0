"""Routing on a grid under overlapping conditions."""

from functools import partial
from itertools import pairwise

import numpy as np

import groupwise as gw
from groupwise.arrays import Index
from groupwise.paper.claims import Outcome, Request, Study
from groupwise.paper.variants import Following, Trace, Variant, outcome_of

Node = tuple[int, int]

SEEDS = tuple(range(1_000, 1_020))
"""Fresh: nothing was tuned on them."""
ROUNDS = 5_000
SIZE = 10
EDGES = 2 * SIZE * (SIZE - 1)
PATH = 2 * (SIZE - 1)
CHANCES = {"rain": 0.3, "rush_hour": 0.35, "weekend": 2 / 7}
"""How often each condition holds; the first that does makes its corridor cheap."""
TURNS = {"rain": "R" * 9 + "D" * 9, "rush_hour": "D" * 9 + "R" * 9, "weekend": "RD" * 9}
CHEAP, DEAR = (0.0, 0.3), (0.4, 1.0)
SURCHARGE = 0.5
DRIFT = 0.01
"""A step of the drifting levels, which stay within ± their limit."""
DRIFT_LIMIT = 0.2


def grid_edges(size: int) -> list[tuple[Node, Node]]:
    """The edges to the right, row by row, then those down."""
    return [
        *(((r, c), (r, c + 1)) for r in range(size) for c in range(size - 1)),
        *(((r, c), (r + 1, c)) for r in range(size - 1) for c in range(size)),
    ]


def grid_oracle(size: int) -> gw.oracles.ShortestPath:
    """Paths from one corner to the opposite one."""
    return gw.oracles.ShortestPath(grid_edges(size), (0, 0), (size - 1, size - 1))


def corridor(turns: str, size: int) -> Index:
    """The edges of the path that takes these turns, R and D."""
    number = {edge: i for i, edge in enumerate(grid_edges(size))}
    nodes = [(turns[:i].count("D"), turns[:i].count("R")) for i in range(len(turns) + 1)]
    return np.array([number[step] for step in pairwise(nodes)])


def run(request: Request) -> Outcome:
    """All three cost models."""
    variants = [
        Variant("routing-fixed", "Fixed levels", partial(simulate, "fixed"), "third"),
        Variant("routing-drifting", "Drifting levels", partial(simulate, "drifting"), "third"),
        Variant("routing-adaptive", "Last path dearer", partial(simulate, "adaptive"), "third"),
    ]
    return outcome_of(variants, request, SEEDS, ROUNDS)


def router(costs: str, seed: int, always_on: bool = True) -> gw.Groupwise:
    """The model."""
    surcharge = SURCHARGE if costs == "adaptive" else 0.0
    return gw.Groupwise(
        [gw.by(name) for name in CHANCES],
        gw.learners.FTPL(grid_oracle(SIZE), cost_norm=EDGES + surcharge * PATH),
        loss=gw.losses.Linear(0.0, PATH * (1.0 + surcharge)),
        always_on=always_on,
        seed=seed,
    )


def simulate(costs: str, seed: int, rounds: int, always_on: bool = True) -> Trace:
    """One run."""
    rng = np.random.default_rng(seed)
    model = router(costs, seed, always_on)
    following = Following(model, rounds)
    corridors = {name: corridor(turns, SIZE) for name, turns in TURNS.items()}
    last = level = np.zeros(EDGES)
    for _ in following:
        row = {name: bool(rng.random() < chance) for name, chance in CHANCES.items()}
        price = rng.uniform(*DEAR, EDGES)
        cheap = next((corridors[name] for name in CHANCES if row[name]), None)
        if cheap is not None:
            price[cheap] = rng.uniform(*CHEAP, PATH)
        if costs == "drifting":
            level = np.clip(level + rng.normal(0.0, DRIFT, EDGES), -DRIFT_LIMIT, DRIFT_LIMIT)
            price = np.clip(price + level, 0.0, 1.0)
        if costs == "adaptive":
            price += SURCHARGE * last
        ticket = model.predict(row)
        model.learn(ticket, price)
        last = ticket.prediction.astype(np.float64)
    return following.trace()


STUDY = Study(
    "Routing under overlapping conditions",
    "Every round a path is chosen through a 10 × 10 grid, from corner to corner, and the costs "
    "of all edges are seen afterwards. A corridor is cheap in rain, another in the rush hour "
    "unless it rains, a third at the weekend unless one of the others is. A single learner must "
    "settle for one path; the reduction has a learner for rain, one for its absence, and so on, "
    "each calling the same shortest-path oracle, and follows whoever has done well in such "
    "rounds. Three cost models: fixed levels; levels that drift; and levels to which 0.5 is "
    "added on the edges played last. Regret below zero means that the model beats the best "
    "single path of the group, by telling apart rounds that the group does not.",
    run,
)
