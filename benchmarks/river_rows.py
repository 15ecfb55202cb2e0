"""How long river takes for a row: predict_one and learn_one of its Bayesian linear regression.

That regression is online ridge too, so one of them is what a single learner costs when rows
come as dictionaries, and one per awake group is the least that Algorithm 1 would cost on it.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np


def seconds_per_row(
    rows: int = 2_000, features: int = 25, awake: int = 1, warm_up: int = 100, seed: int = 0
) -> float:
    """Mean seconds for `awake` models to predict and then learn one row of dense features."""
    from river.linear_model import BayesianLinearRegression

    generator = np.random.default_rng(seed)
    values = generator.random((warm_up + rows, features))
    labels = (values @ generator.random(features) / features).tolist()
    names = [f"x{i}" for i in range(features)]
    stream: list[dict[str, Any]] = [dict(zip(names, v, strict=True)) for v in values.tolist()]
    models: list[Any] = [BayesianLinearRegression() for _ in range(awake)]

    started = time.perf_counter()
    for t, (row, label) in enumerate(zip(stream, labels, strict=True)):
        if t == warm_up:
            started = time.perf_counter()
        for model in models:
            model.predict_one(row)
        for model in models:
            model.learn_one(row, label)
    return (time.perf_counter() - started) / rows


if __name__ == "__main__":
    for count in (1, 3):
        print(f"river, {count} awake: {seconds_per_row(awake=count) * 1e6:.0f} µs a row")
