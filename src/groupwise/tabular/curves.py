"""Regret of every group along the way, read off the model between pieces of the stream."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.regret.curves import Recorder

if TYPE_CHECKING:
    from groupwise.model import Groupwise
    from groupwise.regret.table import RegretTable

POINTS = 60
"""Points on a curve, where the groups are few."""
LEAST = 6
SOLVES = 8_000
"""Least-squares problems that all curves together may take; each is well under a millisecond where
features are few, so that curves cost a few seconds at most."""
FOLLOWED = 1_000
"""Where there are more groups, only the largest have curves."""
WIDE = 28
"""From so many features on, problems get markedly slower and points fewer."""


def points(groups: int, features: int) -> int:
    """How many points the curves have.

    >>> points(9, 12), points(500, 30), points(10_000, 12)
    (60, 13, 6)
    """
    slower = max(1.0, (features / WIDE) ** 2)
    return int(np.clip(SOLVES / (max(groups, 1) * slower), LEAST, POINTS))


class Following:
    """Takes down a model's regret table at evenly spaced rows of a file."""

    def __init__(self, model: "Groupwise", total: int) -> None:
        self.model = model
        self.total = total
        self.recorder = Recorder()
        self._next = 0.0

    def reached(self, done: int) -> "Iterable[dict[str, Any]]":
        """Take note, if it is time to, that so many rows are done; gives what was noted."""
        if done < self._next or done >= self.total:
            return ()
        groups = min(len(self.model.group_names), FOLLOWED)
        self._next = done + self.total / points(groups, len(self.model.feature_names))
        return self._record(done, FOLLOWED)

    def finish(self, done: int) -> "RegretTable":
        """The table of all groups at the end of the file."""
        return self._record(done, None)

    def _record(self, done: int, largest: int | None) -> "RegretTable":
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # solves many small problems sooner than several threads do
            table = self.model.regret(largest)
        self.recorder.record(done, table)
        return table
