"""The ten row orders in which the paper streams each data set, shuffled or sorted."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

PAPER_SEEDS = (473, 503, 623, 550, 692, 989, 617, 458, 301, 205)


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
