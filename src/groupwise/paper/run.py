"""One run: a data set in one order under given settings, with every group's regret over time."""

from operator import itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import groupwise
from groupwise.arrays import Index, Vector
from groupwise.datasets import Dataset, paper_order
from groupwise.losses import Square
from groupwise.paper.published import AGGREGATORS, Settings
from groupwise.protocols import Aggregator
from groupwise.regret.certificate import least_learner, leaves_range
from groupwise.regret.curves import best_losses, own_moments, sums_at
from groupwise.validation import mass_of_everybody

POINTS = 60
"""How many moments of every group's own clock are kept, for the figures."""


class Experts(NamedTuple):
    """Per expert group: its rows in the stream and, a column per learner, what happened there."""

    rows: list[NDArray[np.intp]]
    losses: list[Vector]
    """ℓ_i, of the learner's advice."""
    regrets: list[Vector]
    """r_i = ℓ̂ − ℓ_i, the aggregator's regret to it."""
    prior: Vector
    """The prior mass of each expert group."""
    declared: int
    """How many are groups of the data set; the others are intersections."""


class Run(NamedTuple):
    """Sums of losses per group (first axis) at moments of the group's own clock (second axis).

    The groups are those of the data set, whether or not each has an expert of its own. The
    certificate is not a number where there is no such expert; ``void`` says from which moment on
    it does not hold, because a loss has left [0, 1]. ``published_best`` is the final best loss in
    the paper's convention, which leaves out the group's last row.
    """

    groups: NDArray[np.str_]
    rounds: Index
    loss: Vector
    baseline_loss: Vector
    best_loss: Vector
    certificate: Vector
    void: NDArray[np.bool_]
    published_best: Vector


def run(data: Dataset, order: str, seed: int, settings: Settings, points: int = POINTS) -> Run:
    """Replay the data set in the paper's order of this seed; add up what every group lost."""
    data = data.take(paper_order(data.rows, seed, data.sort_key if order == "sorted" else None))
    declared = data.membership if settings.always_on else data.membership[:, :-1]
    membership = with_pairs(declared, settings)
    expected, experts = _replay(data, membership, declared.shape[1], settings)
    single = experts.losses[declared.shape[1] - 1]
    if not settings.always_on:  # it is not among the experts, so it runs alone
        single = _replay(data, data.membership[:, -1:], 1, settings)[1].losses[0]
    of_groups = []
    for g, name in enumerate(data.group_names):
        rows = np.flatnonzero(data.membership[:, g])
        ends = own_moments(len(rows), points)
        moments = np.append(ends, max(len(rows) - 1, 0))  # the last leaves out the last row
        best = best_losses(data.features[rows], data.label[rows], moments)
        certificate, void = certificates(experts, settings, g, ends, best[:-1])
        of_groups.append(
            Run(
                groups=np.array(name),
                rounds=ends,
                loss=sums_at(expected[rows], ends),
                baseline_loss=sums_at(single[rows, 0], ends),
                best_loss=best[:-1],
                certificate=certificate,
                void=void,
                published_best=best[-1],
            )
        )
    return Run(*(np.array(column) for column in zip(*of_groups, strict=True)))


def with_pairs(declared: NDArray[np.uint8], settings: Settings) -> NDArray[np.uint8]:
    """The membership with a column for every two groups that meet, in the order they first do."""
    if settings.intersections < 2:
        return declared
    count = declared.shape[1] - settings.always_on
    both = [declared[:, i] * declared[:, j] for j in range(count) for i in range(j)]
    seen = [(int(np.argmax(column > 0)), column) for column in both if column.any()]
    return np.column_stack([declared, *(column for _, column in sorted(seen, key=itemgetter(0)))])


def _replay(
    data: Dataset, membership: NDArray[np.uint8], declared: int, settings: Settings
) -> tuple[Vector, Experts]:
    """The expected loss of every row, and what the experts lost on their own rows."""
    prior = np.ones(membership.shape[1])
    if settings.always_on:
        prior[declared - 1] = mass_of_everybody(settings.parts()["learner"])
    pairs = np.arange(1.0, membership.shape[1] - declared + 1)
    prior[declared:] = 1.0 / (pairs * (pairs + 1.0))  # as ``Groupwise(intersections=2)`` does
    result = groupwise.replay(
        data.features,
        data.label,
        membership,
        jobs=1,
        keep=("advice",),
        prior=prior,
        **settings.parts(),
    )
    assert result.advice is not None
    row, group = np.nonzero(membership)  # in the order of the advice
    losses = (result.advice.reshape(row.size, -1) - data.label[row, None]) ** 2
    regrets = result.expected_loss[row, None] - losses
    of_group = [np.flatnonzero(group == g) for g in range(membership.shape[1])]
    experts = Experts(
        rows=[row[entries] for entries in of_group],
        losses=[losses[entries] for entries in of_group],
        regrets=[regrets[entries] for entries in of_group],
        prior=prior,
        declared=declared,
    )
    return result.expected_loss, experts


def certificates(
    experts: Experts, settings: Settings, group: int, ends: Index, best: Vector
) -> tuple[Vector, NDArray[np.bool_]]:
    """The certificate of a group after ``ends`` of its rounds, and whether it is void by then.

    It is the learner's regret to ``best`` plus the aggregator's bound, the least over the group's
    learners (``groupwise.regret.certificate``). The bound looks at all experts at that moment, and
    not a number is said for an aggregator that needs to know more of them than their regrets.
    """
    aggregator = AGGREGATORS[settings.aggregator]
    known = group < experts.declared and experts.rows[group].size > 0
    if not known or not isinstance(aggregator, Aggregator):
        return np.full(ends.size, np.nan), np.zeros(ends.size, dtype=bool)
    times = experts.rows[group][ends - 1] + 1
    counts = [np.searchsorted(rows, times) for rows in experts.rows]
    every = list(zip(experts.regrets, counts, strict=True))
    regret = np.stack([sums_at(values, count) for values, count in every], axis=1)
    absolute = np.stack([sums_at(np.abs(values), count) for values, count in every], axis=1)
    masses = np.repeat(experts.prior[:, None], regret.shape[2], axis=1)
    prior = masses / masses.sum()
    sums = zip(regret, absolute, strict=True)
    bounds = np.array([aggregator.bound(*both, prior, Square())[group] for both in sums])
    learner = sums_at(experts.losses[group], ends) - best[:, None]
    least = np.arange(ends.size), least_learner(learner, bounds)
    beyond = [  # the rows on which some |r_i| > 1: after the first of all, no certificate holds
        rows[leaves_range(values).any(axis=1)]
        for rows, values in zip(experts.rows, experts.regrets, strict=True)
    ]
    void = times > np.concatenate(beyond).min(initial=times[-1])
    return learner[least] + bounds[least], void
