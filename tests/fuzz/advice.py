"""The advice of every ridge learner against its definition in decimals of 250 digits.

    python -m tests.fuzz.advice --seconds 600 --seed 1 --jobs 2

Clipped to the label range, advice is right up to 1e-7 of it: penalties from 1e-9 to 1e9, forward,
forgetting, fractional weights, features up to 1e40, offsets up to 1e8, timestamps. A row that
cannot be computed with is refused by an error that names its column. Where the definition itself
moves by as much when the last bit of the features does, double precision cannot tell: such advice
is counted, and is no violation. Counted apart is what is known to be missed: columns that depend on
each other and are so large that the square root of the penalty is less than their last bit.
"""

import numpy as np

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.exact import ridge_advice
from tests.fuzz.runner import main

TOLERANCE = 1e-7
LIMITS = (-40, 40)
LAST_BIT = 2.0**-52
TRIES, ROUNDS = 4, 30.0
"""How often the features are rounded anew, and how many times the largest effect of that counts as
beyond double precision."""


def labels_for(draw, table):
    """Scaled labels: noise, the ends, or a linear function of a column."""
    rows = len(next(iter(table.values())))
    kind = draws.choose(draw, ["noise", "ends", "linear"])
    if kind == "noise":
        return draw.random(rows)
    if kind == "ends":
        return np.round(draw.random(rows))
    column = draws.choose(draw, list(table.values()))
    low, high = column.min(), column.max()
    return (column - low) / (high - low) if high > low else np.full(rows, 0.7)


def case(draw, found):
    """One stream of arrays, two groups of it, one learner or a few."""
    rows = int(draws.choose(draw, [draw.integers(4, 25), draw.integers(25, 60), 150], [8, 3, 0.2]))
    table = draws.columns(draw, rows, draws.choose(draw, [1, 2, 3, 5]), LIMITS)
    x = np.column_stack(list(table.values()))
    if draw.random() < 0.5:
        x = np.column_stack([x, np.ones(rows)])
    labels = labels_for(draw, table)
    low, high = draws.label_range(draw) if draw.random() < 0.3 else (0.0, 1.0)
    if not 1e-100 < high - low < 1e100:
        low, high = 0.0, 1.0
    y = np.clip(low + (high - low) * labels, low, high)
    members = np.ones((rows, 2))
    members[:, 1] = draws.choose(
        draw, [np.round(draw.random(rows)), draw.random(rows), draw.random(rows) ** 20]
    )
    learners = [draws.ridge(draw) for _ in range(draws.choose(draw, [1, 2], [3, 1]))]
    found.about = ", ".join(table)
    try:
        result = gw.replay(
            x, y, members, learner=learners, loss=gw.losses.Square(low, high), jobs=1
        )
    except gw.errors.FeatureError:
        found.count("refused")
        return
    told = (np.asarray(result.advice).reshape(-1, len(learners)) - low) / (high - low)
    scaled = (y - low) / (high - low)
    entries = np.argwhere(members)
    for group in range(2):
        inside = members[:, group] > 0.0
        mine = told[entries[:, 1] == group]
        if not inside.any():
            continue
        for k, one in enumerate(learners):
            check(draw, found, one, x[inside], scaled[inside], members[inside, group], mine[:, k])


def check(draw, found, learner, x, y, weights, advice):
    """Compare one learner's advice in one group with its definition; all scaled to [0, 1]."""
    settings = learner.penalty, learner.forward, learner.forgetting
    exact = np.clip(ridge_advice(x, y, weights, *settings), 0.0, 1.0)
    error = np.abs(advice - exact)
    found.count("advice", len(error))
    about = f"{learner}; {found.about}; {len(error)} rows"
    if not found.require(not np.isnan(error).any(), "not a number", about):
        return
    if error.max() > TOLERANCE:
        effect = np.zeros(len(error))
        for _ in range(TRIES):
            moved = x * (1.0 + LAST_BIT * draw.choice([-1.0, 0.0, 1.0], x.shape))
            other = np.clip(ridge_advice(moved, y, weights, *settings), 0.0, 1.0)
            effect = np.maximum(effect, np.abs(other - exact))
        beyond = (error > TOLERANCE) & (error <= ROUNDS * effect)
        found.count("beyond double precision", int(beyond.sum()))
        error = np.where(beyond, 0.0, error)
    if error.max() > TOLERANCE and dwarf_the_penalty(x, learner.penalty):
        found.count("known to be missed", int((error > TOLERANCE).sum()))
        return
    worst = int(np.argmax(error))
    found.measure("error", float(error[worst]))
    found.require(
        error[worst] <= TOLERANCE, "advice", f"round {worst}: off by {error[worst]:.2g};", about
    )


def dwarf_the_penalty(x, penalty):
    """Do columns depend on each other whose last bit is more than the root of the penalty?"""
    lengths = np.linalg.norm(x, axis=0)
    large = x[:, LAST_BIT * lengths > np.sqrt(penalty)]
    rest = x[:, (lengths > 0.0) & (LAST_BIT * lengths <= np.sqrt(penalty))]
    both = np.column_stack([large, rest])
    both = both / np.linalg.norm(both, axis=0)
    return large.size > 0 and np.linalg.matrix_rank(both, tol=1e-12) < both.shape[1]


if __name__ == "__main__":
    main("tests.fuzz.advice")
