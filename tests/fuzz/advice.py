"""The advice of every ridge learner against its definition in decimals of 250 digits.

    python -m tests.fuzz.advice --seconds 600 --seed 1 --jobs 2

Clipped to the label range, advice is right up to 1e-7 of it: penalties from 1e-9 to 1e9, forward,
forgetting, fractional weights, features up to 1e40, offsets up to 1e8, timestamps. A row that
cannot be computed with is refused by an error that names its column.
"""

import numpy as np

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.exact import ridge_advice
from tests.fuzz.runner import main

TOLERANCE = 1e-7
LIMITS = (-40, 40)


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
    about = f"{learners}; {', '.join(table)}; {rows} rows"
    try:
        result = gw.replay(
            x, y, members, learner=learners, loss=gw.losses.Square(low, high), jobs=1
        )
    except gw.errors.FeatureError:
        found.count("refused")
        return
    told = np.asarray(result.advice).reshape(-1, len(learners))
    scaled = (y - low) / (high - low)
    entries = np.argwhere(members)
    for group in range(2):
        inside = members[:, group] > 0.0
        mine = told[entries[:, 1] == group]
        if not inside.any():
            continue
        for k, one in enumerate(learners):
            exact = ridge_advice(
                x[inside],
                scaled[inside],
                members[inside, group],
                one.penalty,
                one.forward,
                one.forgetting,
            )
            with np.errstate(invalid="ignore"):
                error = np.abs((mine[:, k] - low) / (high - low) - np.clip(exact, 0.0, 1.0))
            found.count("advice", len(error))
            worst = int(np.argmax(np.where(np.isnan(error), np.inf, error)))
            if found.require(not np.isnan(error).any(), "not a number", f"row {worst};", about):
                found.measure("error", float(error[worst]))
            said = f"group {group}, row {worst}: off by {error[worst]:.2g};"
            found.require(not error[worst] > TOLERANCE, "advice", said, about)


if __name__ == "__main__":
    main("tests.fuzz.advice")
