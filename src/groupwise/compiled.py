"""Algorithm 1 with every round as one compiled call: the same steps as ``reduction``, fused."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.kernels import entry
from groupwise.learners.ridge import WIDE, Ridge, RidgeBank
from groupwise.losses import Loss
from groupwise.protocols import Aggregator, Awake, Learner, Row
from groupwise.reduction import Play, Reduction, Settlement


def make_reduction(
    learners: Sequence[Ridge | Learner],
    aggregator: Aggregator,
    loss: Loss,
    play: str | None = None,
    clip: bool = True,
    seed: int = 0,
) -> Reduction:
    """A compiled reduction where all parts are compiled, else the plain one."""
    compiled = hasattr(aggregator, "kernel") and all(isinstance(x, Ridge) for x in learners)
    kind = CompiledReduction if compiled else Reduction
    return kind(learners, aggregator, loss, play, clip, seed)


class CompiledReduction(Reduction):
    """A reduction over ridge learners and a compiled aggregator."""

    compiled = True

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._handle: tuple[Any, Any] | None = None
        self._bank: RidgeBank = self.banks[0][0]

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """Steps (a) and (b). Changes nothing."""
        said = np.empty((2, awake.groups.size, len(self.learners)))
        prediction = entry.predict(
            self._open(), number, *awake, row.indices, row.values, len(row.names), said
        )
        return Play(prediction, said)

    def learn(
        self, number: int, awake: Awake, row: Row, label: float
    ) -> tuple[Play, Settlement]:
        """Step (c)."""
        said = np.empty((3, awake.groups.size, len(self.learners)))
        if len(row.names) >= WIDE:
            self.widen(len(row.names))
        prediction, charged, realised = entry.learn(
            self._open(), number, *awake, row.indices, row.values, len(row.names), label, said
        )
        return Play(prediction, said), Settlement(said[2], charged, realised)

    def reserve(self, groups: int, features: int, masses: Sequence[float] = ()) -> None:
        """Make room; as in :class:`Reduction`."""
        super().reserve(groups, features, masses)
        self._handle = None

    def widen(self, features: int) -> None:
        """Get ready to learn from rows with this many features."""
        if self._bank.hold_back(features):
            self._handle = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_handle": None}  # addresses mean nothing to a copy

    def _open(self) -> Any:
        """The state as one argument."""
        if self._handle is None:
            self._handle = entry.reduction_handle(
                self.settings, self._bank.forward, self._bank.state, self.state
            )
        return self._handle[0]
