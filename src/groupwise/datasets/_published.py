"""The paper's tables, cell by cell, and the ten row orders in which it streams each data set."""

import json
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

PAPER_SEEDS = (473, 503, 623, 550, 692, 989, 617, 458, 301, 205)


class PublishedRow(NamedTuple):
    """A line of a published table; the regrets are mean and standard deviation over ten seeds.

    The regrets are measured against ``best_loss``, which the paper computes on all but the last
    row of the group: exact regrets are a little lower, most visibly on small groups.
    """

    group: str
    size: int
    baseline_regret: tuple[float, float]
    algorithm_regret: tuple[float, float]
    best_loss: float


def published() -> dict[tuple[str, str], tuple[PublishedRow, ...]]:
    """The published tables by experiment and order.

    >>> published()["medical", "sorted"][0]
    PublishedRow(group='young', size=574, baseline_regret=(0.82, 0.09), \
algorithm_regret=(-1.09, 0.07), best_loss=5.4)
    """
    stored = json.loads(files(__package__).joinpath("published.json").read_text("utf-8"))
    return {
        (experiment, order): tuple(
            PublishedRow(group, size, tuple(baseline), tuple(algorithm), best)
            for group, size, baseline, algorithm, best in rows
        )
        for experiment, orders in stored["tables"].items()
        for order, rows in orders.items()
    }


def paper_order(rows: int, seed: int, key: NDArray[Any] | None = None) -> NDArray[np.intp]:
    """The row numbers in the order of one of the paper's runs.

    The paper shuffles with pandas, ``Series(range(rows)).sample(frac=1, random_state=seed)``.
    Underneath that is this permutation of numpy's legacy generator, so pandas is not needed.

    Parameters
    ----------
    rows: how many rows there are.
    seed: of the shuffle; the paper's are in ``PAPER_SEEDS``.
    key: one value per row. When given, the shuffled rows are then sorted by it, ascending;
        the sort is stable, so rows of equal key stay in shuffled order.

    >>> paper_order(5, seed=473).tolist()
    [3, 4, 2, 1, 0]
    >>> paper_order(5, seed=473, key=np.array([1, 0, 1, 0, 1])).tolist()
    [3, 1, 4, 2, 0]
    """
    order = np.random.RandomState(seed).permutation(rows).astype(np.intp, copy=False)
    if key is None:
        return order
    if np.shape(key) != (rows,):
        raise ValueError(f"key has shape {np.shape(key)}; expected one value for each of {rows}.")
    return order[np.argsort(np.asarray(key)[order], kind="stable")]
