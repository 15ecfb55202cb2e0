"""One run: a data set in one order under given settings, with every group's regret over time."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.datasets import Dataset, paper_order
from groupwise.reproduce.certificates import Experts, certificates
from groupwise.reproduce.clock import best_losses, moments, sums_at
from groupwise.reproduce.settings import Settings
from groupwise.arrays import Index, Vector

POINTS = 60
"""How many moments of every group's own clock are kept, for the figures."""


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
    if settings.always_on:
        baseline = experts.losses[declared.shape[1] - 1][:, 0]
    else:  # the single model is not among the experts, so it runs alone
        _, alone = _replay(data, data.membership[:, -1:], 1, settings)
        baseline = alone.losses[0][:, 0]

    of_groups = []
    for g, name in enumerate(data.group_names):
        rows = np.flatnonzero(data.membership[:, g])
        ends = moments(len(rows), points)
        all_but_last = max(len(rows) - 1, 0)
        best = best_losses(data.features[rows], data.label[rows], np.append(ends, all_but_last))
        certificate, void = certificates(experts, settings, g, ends, best[:-1])
        of_groups.append(
            Run(
                groups=np.array(name),
                rounds=ends,
                loss=sums_at(expected[rows], ends),
                baseline_loss=sums_at(baseline[rows], ends),
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
    return np.column_stack([declared, *(column for _, column in sorted(seen, key=_first))])


def _first(pair: tuple[int, NDArray[np.uint8]]) -> int:
    return pair[0]


def _replay(
    data: Dataset, membership: NDArray[np.uint8], declared: int, settings: Settings
) -> tuple[Vector, Experts]:
    """The expected loss of every row, and what the experts lost on their own rows."""
    import groupwise

    prior = np.ones(membership.shape[1])
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
    )
    return result.expected_loss, experts
