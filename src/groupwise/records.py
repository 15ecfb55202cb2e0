"""What is kept beside the learners: of the aggregator, in the books, and of calibration."""

from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.arrays import Vector, enlarge
from groupwise.losses import Loss
from groupwise.protocols import Bank
from groupwise.regret.certificate import aggregator_bounds
from groupwise.store import Store

if TYPE_CHECKING:
    from groupwise.dyadic import Clocks


class Records:
    """The records of Algorithm 1 but for its learners': begun anew, saved, loaded."""

    aggregator: Any
    banks: list[Bank]
    loss: Loss
    experts: int
    state: Store
    own: Store | None
    common: Vector
    books: Store
    bins: Store | None
    largest: Vector
    restarts: int
    earlier: Vector | None
    windows: "Clocks | None"

    def records(self) -> dict[str, Store]:
        """What is kept beside the learners, by the names that it has in a file."""
        found = {"aggregator": self.state, "ledger": self.books}
        more = {"own": self.own, "calibration": self.bins}
        return found | {name: store for name, store in more.items() if store is not None}

    def begin_anew(self, groups: int) -> None:
        """The aggregator forgets, nobody else: its bounds so far are kept, and add up."""
        if not self.state.column("absolute", groups).any():
            return
        self.earlier = aggregator_bounds(self, groups)
        self._forget()

    def cut(self, store: Store, groups: int) -> dict[str, Any]:
        """What a store has of experts."""
        return store.save(groups, 0)

    def _forget(self) -> None:
        """Make the aggregator as it was before the first label."""
        self.state.clear(("regret", "absolute"))
        if self.own is not None:
            self.own.clear(tuple(self.own.layout.axes))
        self.common[:] = 0.0

    def save_settled(self, groups: int) -> dict[str, Any]:
        """The same without the learners: aggregator and books."""
        found = {"aggregator.largest": self.largest.copy()}
        if self.restarts:
            found["aggregator.restarts"] = np.array([self.restarts])
        if self.earlier is not None:
            found["aggregator.earlier"] = enlarge(self.earlier, (groups, self.experts))
        if self.own is not None:
            found["aggregator.common"] = self.common.copy()
        for name, store in self.records().items():
            fields = store.save(groups, 0) if store is self.bins else self.cut(store, groups)
            found |= {f"{name}.{k}": a for k, a in fields.items()}
        return found

    def load_settled(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what :meth:`save_settled` gave."""
        self.largest[:] = arrays["aggregator.largest"]
        self.restarts = int(arrays.get("aggregator.restarts", [0])[0])
        self.earlier = arrays.get("aggregator.earlier")
        if self.earlier is not None and self.earlier.shape != (groups, self.experts):
            raise ValueError("earlier bounds are not one per expert")
        if self.own is not None:
            self.common[:] = arrays["aggregator.common"]
        for name, store in self.records().items():
            own = {k.removeprefix(f"{name}."): a for k, a in arrays.items() if k.startswith(name)}
            if store is self.bins and not own:  # of a file without: they begin now
                store.reserve(np.arange(groups), 0)
            else:
                store.load(own, groups, 0, 0)
