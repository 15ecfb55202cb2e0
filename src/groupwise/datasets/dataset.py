"""What every data set of this package is: arrays, and the names of their columns."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from groupwise.errors import DatasetError


@dataclass(frozen=True, eq=False, repr=False)
class Dataset:
    """A stream with a real label and known groups, ready for ``groupwise.replay``.

    Attributes
    ----------
    name: what ``published()`` calls it.
    features: T x d; the group indicators that the paper appends are among them.
    feature_names: d names; ``column=level`` for a one-hot level.
    label: T values, scaled to [low, high].
    label_name: what the label measures.
    membership: T x N of 0 and 1; the last column, ``always_on``, is all ones.
    group_names: N names, in the order of the paper's tables.
    sort_key: T values; the paper's sorted streams ascend by it.
    low, high: the range of the label.
    """

    name: str
    features: NDArray[np.float64]
    feature_names: tuple[str, ...]
    label: NDArray[np.float64]
    label_name: str
    membership: NDArray[np.uint8]
    group_names: tuple[str, ...]
    sort_key: NDArray[np.float64]
    low: float = 0.0
    high: float = 1.0

    def __post_init__(self) -> None:
        for field, shape in (
            ("features", (self.rows, len(self.feature_names))),
            ("membership", (self.rows, len(self.group_names))),
            ("sort_key", (self.rows,)),
        ):
            found = getattr(self, field).shape
            if found != shape:
                raise DatasetError(f"{self.name}: {field} has shape {found}, expected {shape}.")

    @property
    def rows(self) -> int:
        return len(self.label)

    @property
    def group_sizes(self) -> dict[str, int]:
        """How many rows each group has."""
        counts = self.membership.sum(axis=0, dtype=np.int64)
        return dict(zip(self.group_names, counts.tolist(), strict=True))

    def take(self, order: NDArray[Any]) -> "Dataset":
        """The rows in another order (or some of them), as a new data set."""
        return replace(
            self,
            features=self.features[order],
            label=self.label[order],
            membership=self.membership[order],
            sort_key=self.sort_key[order],
        )

    def __repr__(self) -> str:
        return (
            f"Dataset({self.name!r}: {self.rows:,} rows, {len(self.feature_names)} features, "
            f"label {self.label_name} in [{self.low:g}, {self.high:g}], "
            f"{len(self.group_names)} groups: {', '.join(self.group_names)})"
        )
