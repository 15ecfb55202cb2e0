"""The advice of every ridge learner against its definition in decimals of 250 digits.

    python -m tests.fuzz.advice --seconds 600 --seed 1 --jobs 2

Clipped to the label range, advice is right up to 1e-7 of it: penalties from 1e-9 to 1e9, forward,
forgetting, leaning to everybody, the learners by default, fractional weights, features up to 1e40,
offsets up to 1e8, timestamps; in one stretch and in segments of time. A row that cannot be computed
with is refused by an error that names its column. Where the definition itself moves by as much when
the last bit of the features does, double precision cannot tell: such advice is counted, and is no
violation. Counted apart is what is known to be missed: columns that depend on each other and are so
large that the square root of the penalty is less than their last bit.
"""

from typing import NamedTuple

import numpy as np

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.exact import leaning_advice, ridge_advice, ridge_rounds
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
    if draw.random() < 0.15:
        learners = gw.learners.portfolio(gw.losses.Square())
    segment = draws.segment(draw, rows)
    found.about = ", ".join(table) + (f"; segments of {segment}" if segment else "")
    loss = gw.losses.Square(low, high)
    try:
        result = gw.replay(x, y, members, learner=learners, loss=loss, jobs=1, segment=segment)
    except gw.errors.FeatureError:
        found.count("refused")
        return
    advice = np.asarray(result.advice)
    told = (advice.reshape(len(advice), -1) - low) / (high - low)
    scaled = (y - low) / (high - low)
    # Advice is a double in the label's units, which far from 0 are coarser than 1e-7 of the range.
    room = TOLERANCE + 2.0**-52 * max(abs(low), abs(high)) / (high - low)
    entries = np.argwhere(members)
    for group in range(2):
        if not members[:, group].any():
            continue
        mine = told[entries[:, 1] == group]
        experts = experts_of(learners)
        found.require(mine.shape[1] == len(experts), "number of experts", mine.shape, learners)
        for column, expert in zip(mine.T, experts, strict=True):
            check(draw, found, expert, x, scaled, members, group, column, room)


class Expert(NamedTuple):
    """One advice of a learner: its own, or the one that leans to a learner of everybody."""

    learner: gw.learners.Ridge
    leans: gw.learners.Ridge | None

    def exact(self, x, y, members, group):
        """What it says before each round of a group, by its definition; 0 is everybody."""
        one, inside = self.learner, members[:, group] > 0.0
        own = x[inside], y[inside], members[inside, group], one.penalty
        if self.leans is None:
            return ridge_advice(*own, one.forward, one.forgetting)
        if group == 0:
            return ridge_advice(*own, False, one.forgetting)
        other = self.leans.penalty, self.leans.forgetting
        rounds = ridge_rounds(x, y, members[:, 0], *other)
        theirs = [theta for (theta, _, _), here in zip(rounds, inside, strict=True) if here]
        return leaning_advice(*own, one.forgetting, theirs)


def experts_of(learners):
    """What the learners of a group say, in order."""
    found = []
    for one in learners:
        if one.everybody != "only":
            found.append(Expert(one, None))
        if one.everybody:
            found.append(Expert(one, learners[0] if one.everybody == "only" else one))
    return found


def check(draw, found, expert, x, y, members, group, advice, room):
    """Compare an expert's advice in one group with its definition; all scaled to [0, 1]."""
    exact = np.clip(expert.exact(x, y, members, group), 0.0, 1.0)
    error = np.abs(advice - exact)
    leaning = "leaning " * (expert.leans is not None and group > 0)
    found.count(f"{leaning}advice", len(error))
    about = f"{expert}; {found.about}; {len(error)} rows"
    if not found.require(not np.isnan(error).any(), "not a number", about):
        return
    if error.max() > room:
        effect = np.zeros(len(error))
        for _ in range(TRIES):
            moved = x * (1.0 + LAST_BIT * draw.choice([-1.0, 0.0, 1.0], x.shape))
            other = np.clip(expert.exact(moved, y, members, group), 0.0, 1.0)
            effect = np.maximum(effect, np.abs(other - exact))
        beyond = (error > room) & (error <= ROUNDS * effect)
        found.count("beyond double precision", int(beyond.sum()))
        error = np.where(beyond, 0.0, error)
    dwarfed = dwarf_the_penalty(x[members[:, group] > 0.0], expert.learner.penalty) or (
        expert.leans is not None and dwarf_the_penalty(x, expert.leans.penalty)
    )
    if error.max() > room and dwarfed:
        found.count("known to be missed", int((error > room).sum()))
        return
    worst = int(np.argmax(error))
    found.measure(f"{leaning}error", float(error[worst]))
    text = f"round {worst}: off by {error[worst]:.2g};"
    found.require(error[worst] <= room, f"{leaning}advice", text, about)


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
