"""Certificates over time, from what the aggregator saw of its experts."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.losses import Square
from groupwise.regret.certificate import least_learner, leaves_range
from groupwise.reproduce.clock import sums_at
from groupwise.reproduce.settings import Settings
from groupwise.states import Index, Vector


class Experts(NamedTuple):
    """Per expert group: its rows in the stream and, a column per learner, what happened there."""

    rows: list[NDArray[np.intp]]
    losses: list[Vector]
    """ℓ_i, of the learner's advice."""
    regrets: list[Vector]
    """r_i = ℓ̂ − ℓ_i, the aggregator's regret to it."""
    prior: Vector
    """The prior mass of each expert group."""


def certificates(
    experts: Experts, settings: Settings, group: int, ends: Index, best: Vector
) -> tuple[Vector, NDArray[np.bool_]]:
    """The certificate of a group after ``ends`` of its rounds, and whether it is void by then.

    It is the learner's regret to ``best`` plus the aggregator's bound, the least over the group's
    learners (``groupwise.regret.certificate``). The bound looks at all experts at that moment.
    """
    if group >= len(experts.rows) or not experts.rows[group].size:
        return np.full(ends.size, np.nan), np.zeros(ends.size, dtype=bool)
    times = experts.rows[group][ends - 1] + 1
    counts = [np.searchsorted(rows, times) for rows in experts.rows]
    every = list(zip(experts.regrets, counts, strict=True))
    regret = np.stack([sums_at(values, count) for values, count in every], axis=1)
    absolute = np.stack([sums_at(np.abs(values), count) for values, count in every], axis=1)
    masses = np.repeat(experts.prior[:, None], regret.shape[2], axis=1)
    prior = masses / masses.sum()
    aggregator = settings.parts()["aggregator"]
    sums = zip(regret, absolute, strict=True)
    bounds = np.array([aggregator.bound(*both, prior, Square())[group] for both in sums])
    learner = sums_at(experts.losses[group], ends) - best[:, None]
    least = np.arange(ends.size), least_learner(learner, bounds)
    return learner[least] + bounds[least], times > _void_from(experts)


def _void_from(experts: Experts) -> float:
    """The first row on which some |r_i| > 1, after which no certificate holds."""
    found = [
        rows[leaves_range(values).any(axis=1)]
        for rows, values in zip(experts.rows, experts.regrets, strict=True)
    ]
    return min((float(rows[0]) for rows in found if rows.size), default=np.inf)
