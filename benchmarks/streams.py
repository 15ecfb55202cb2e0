"""Seeded streams of the sizes that the targets speak of."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray


class Stream(NamedTuple):
    """Arrays as `gw.replay` takes them; the last group is always on."""

    features: NDArray[np.float64]
    label: NDArray[np.float64]
    membership: NDArray[np.float64]

    def head(self, rows: int) -> "Stream":
        """The first rows."""
        return Stream(*(array[:rows] for array in self))


def synthetic(rows: int, features: int = 25, seed: int = 0) -> Stream:
    """Dense rows, six groups, three awake: shape, colour and always on, as in the paper."""
    generator = np.random.default_rng(seed)
    values = generator.random((rows, features))
    shape = generator.choice(3, rows, p=[0.5, 0.3, 0.2])
    colour = generator.choice(2, rows, p=[0.6, 0.4])
    groups = [shape == 0, shape == 1, shape == 2, colour == 0, colour == 1, np.ones(rows)]
    return Stream(values, _labels(generator, values), np.column_stack(groups).astype(np.float64))


def adult_like(rows: int = 49_531, seed: int = 0) -> Stream:
    """One-hot rows of 96 columns with 12 non-zeros; 13 groups, five awake."""
    generator = np.random.default_rng(seed)
    levels = (8, 7, 6, 41, 14, 5, 2, 2, 5)  # nine one-hot fields
    columns: list[Any] = [generator.random(rows) for _ in range(3)]
    for count in levels:
        code = generator.choice(count, rows, p=_decaying(count))
        columns += [code == level for level in range(count)]
    columns += [np.zeros(rows)] * (96 - len(columns))
    values = np.column_stack(columns).astype(np.float64)
    kinds = [generator.choice(count, rows, p=_decaying(count)) for count in (2, 5, 3, 2)]
    groups = [kind == level for kind in kinds for level in range(kind.max() + 1)]
    groups.append(np.ones(rows))
    return Stream(values, _labels(generator, values), np.column_stack(groups).astype(np.float64))


def many_groups(rows: int, groups: int, features: int = 25, seed: int = 0) -> Any:
    """A sparse membership with five awake groups a row out of many, and its features and labels."""
    from scipy.sparse import csr_array

    generator = np.random.default_rng(seed)
    values = generator.random((rows, features))
    fifth = groups // 5
    columns = generator.integers(0, fifth, (rows, 5)) + fifth * np.arange(5)
    indptr = np.arange(0, 5 * rows + 1, 5)
    membership = csr_array((np.ones(5 * rows), columns.ravel(), indptr), shape=(rows, groups))
    return values, _labels(generator, values), membership


def dictionaries(rows: int, features: int = 25, seed: int = 0) -> tuple[list[Any], list[float]]:
    """Rows as dictionaries: two of the fields are group columns of two values each."""
    generator = np.random.default_rng(seed)
    values = generator.random((rows, features))
    values[:, 0] = generator.integers(1, 3, rows)
    values[:, 1] = generator.integers(1, 3, rows)
    names = ["colour", "shape", *(f"x{i}" for i in range(features - 2))]
    labels = _labels(generator, values)
    return [dict(zip(names, row, strict=True)) for row in values.tolist()], labels.tolist()


def _labels(generator: np.random.Generator, values: NDArray[np.float64]) -> NDArray[np.float64]:
    weights = generator.random(values.shape[1])
    raw = values @ weights + 0.05 * generator.standard_normal(len(values))
    return (raw - raw.min()) / (raw.max() - raw.min())


def _decaying(count: int) -> NDArray[np.float64]:
    shares = 0.6 ** np.arange(count) + 0.01
    return shares / shares.sum()
