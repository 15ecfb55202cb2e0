"""What the compiled learners' rounds leave for hindsight: sums, and for log loss rows as well."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import gram, hindsight
from groupwise.kernels.beginnings import decay
from groupwise.kernels.compiled import Kernel
from groupwise.kernels.layout import room
from groupwise.kernels.sketch import MISSING
from groupwise.losses import Loss
from groupwise.protocols import BRACKET, Awake, Hindsight
from groupwise.regret.hindsight import EPSILON, factored
from groupwise.regret.logistic import Quadratic, Reference, Rows, best_logistic
from groupwise.regret.rows import KeptRows
from groupwise.regret.sums import GroupSums, taken
from groupwise.store import Store

Others = tuple[Quadratic | None, Reference | None]
NO_OTHERS: Others = (None, None)


class Recorder:
    """Records nothing: the best in hindsight is then the group's own best learner."""

    comparator = "the group's own best learner"
    afterwards: ClassVar[bool] = False
    """Do the kernels come after those of the learners?"""
    each: int = 0
    """How many parabolas a round leaves for the sums (``kernels.logistic``)."""

    def __init__(self) -> None:
        self.stores: dict[str, Store] = {}

    @property
    def kernels(self) -> list[Kernel]:
        """A kernel for every store, in their order."""
        return [hindsight.record, gram.record] * (len(self.stores) // 2)

    def supply(self) -> None:
        """Tell the kernels of another that they call."""
        for store in list(self.stores.values())[::2]:
            store.supply(hindsight.make_room.pointer)

    def keep(
        self, awake: Awake, row: tuple[Index, Vector], label: float, stands_for: float
    ) -> None:
        """Keep the row of a single round."""

    def wants(self, groups: Index) -> bool:
        """Is the row that some groups have just learned from to be kept?"""
        return False

    def keep_all(self, rounds: Any) -> None:
        """Hold on to the rows of a stretch."""

    def anchors(self, rounds: Any) -> Vector:
        """Weights and labels for the sums of a stretch, by entry; or room for learners' own."""
        return np.empty(2 * rounds.groups.size * self.each)

    def best(self, group: int, features: Index, width: int) -> Hindsight | None:
        """The best in hindsight; ``features`` are the group's own columns, ``width`` with room."""
        return None

    def save(self) -> dict[str, Any]:
        """What is not in the stores, as arrays by name."""
        return {}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""

    def check(self, seen: int) -> None:
        """Raise ValueError where that does not fit to the columns of groups, found at ``seen``."""


class LinearRecorder(Recorder):
    """Sums from which the best linear model is found."""

    comparator = "the best linear model in hindsight"

    def __init__(self, loss: Loss, intercept: bool) -> None:
        super().__init__()
        self.low = loss.low
        # A linear model in the label's units is one of the scaled label plus low/(high − low);
        # with an intercept, so is one of the scaled label itself.
        shifted = loss.ranged and not intercept
        offset = loss.low / (loss.high - loss.low) if shifted else 0.0
        self.stores = _sums("", np.array([offset, 0.0, 0.0]))

    def best(self, group: int, features: Index, width: int) -> Hindsight:
        """The scaled loss of the best linear model."""
        sums, products = (store.part(group, width) for store in self.stores.values())
        return factored(sums, products).hindsight(float(sums.power[0]))

    def save(self) -> dict[str, Any]:
        return {"hindsight.offset": self.stores["hindsight"].parameters[:1].copy()}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Go on with sums of the scaled label plus what it was."""
        offset = float(arrays["hindsight.offset"][0])
        own = self.stores["hindsight"].parameters
        if offset != own[hindsight.OFFSET]:
            self.comparator += f", of the form {self.low:g} + θ·x"
        own[hindsight.OFFSET] = offset


class SegmentRecorder(Recorder):
    """The sums of a segment: those for hindsight, and those that learners begin the next with.

    Parameters
    ----------
    offset : what labels are shifted by for hindsight, as by a ``LinearRecorder``; None where it is
        not that of a linear model, and nothing is recorded for it.
    forgetting : the factors of learners that forget, and 1 where some do not.
    """

    def __init__(self, offset: float | None, forgetting: Sequence[float]) -> None:
        super().__init__()
        if offset is not None:
            self.stores = _sums("", np.array([offset, 0.0, 0.0]))
        # Where labels are not shifted, learners that do not forget begin with the same sums.
        self.factors = np.array([one for one in forgetting if one < 1.0 or offset != 0.0])
        self.each = self.factors.size
        first = len(self.stores) // 2
        self.places = {1.0: 0} | {x: first + k for k, x in enumerate(self.factors.tolist())}
        """Where among the pairs of stores those of a factor are."""
        self._keepers = []
        for k in range(self.each):
            own = _sums(str(k + 1), np.array([0.0, k, self.each]))
            self._keepers.append(_WithoutSketches(own[f"hindsight{k + 1}"]))
            self.stores |= own
        self.left, self.masses = np.zeros(0), np.zeros((0, self.each))

    def begin(self, weights: Vector) -> None:
        """A segment with so much weight in every group."""
        self.left = weights.copy()
        self.masses = np.zeros((weights.size, self.each))

    def anchors(self, rounds: Any) -> Vector:
        """The weights of rounds as they are at the end of the segment, for every factor."""
        out = np.empty(2 * rounds.groups.size * self.each)
        some = rounds.indptr, rounds.groups, rounds.weights, rounds.labels
        decay(*some, self.factors, self.left, self.masses, out)
        return out

    def of(self, group: int, features: Index) -> list[GroupSums]:
        """The sums of a group, for hindsight first, if at all; then for every factor."""
        stores, width = list(self.stores.values()), room(features.size)
        pairs = zip(stores[::2], stores[1::2], strict=True)
        return [
            taken(sums.part(group, width), products.part(group, width), features)
            for sums, products in pairs
        ]


class LogisticRecorder(Recorder):
    """Rows, and the sums of parabolas below the loss of further ones, for logistic models.

    Parameters
    ----------
    bank : the learners, the first ones of which leave the parabolas.
    bound : b; models are compared with that have |x·θ| ≤ b on all rows of the group.
    nodes : of a chain of dichotomies; None where there is no chain.
    limit : how many rows of each group are kept.
    """

    afterwards = True

    def __init__(self, bank: Any, bound: float, nodes: int | None, limit: int) -> None:
        super().__init__()
        self.bank = bank
        self.bound = bound
        self.nodes = nodes
        self.each = nodes or 1
        what = "the best logistic model" if nodes is None else "the best chain of logistic models"
        self.comparator = f"{what} with |x·θ| ≤ {bound:g} in hindsight"
        self.rows = KeptRows(limit, float(self.each))
        for node in range(self.each):
            name = "" if node == 0 else str(node)
            self.stores |= _sums(name, np.array([0.0, node, self.each]))

    def keep(
        self, awake: Awake, row: tuple[Index, Vector], label: float, stands_for: float
    ) -> None:
        weights = awake.weights if stands_for == 1.0 else awake.weights * stands_for
        self.rows.add(awake.groups, weights, *row, label)

    def wants(self, groups: Index) -> bool:
        """Was one of the groups below the limit before it?"""
        store = self.bank.store
        return any(store.of(group).rows[0] <= self.rows.limit for group in groups.tolist())

    def keep_all(self, rounds: Any) -> None:
        row = rounds.cells, rounds.indptr, rounds.groups, rounds.weights, rounds.labels
        self.rows.add_rows(*row, rounds.parts)

    def best(self, group: int, features: Index, width: int) -> Hindsight:
        """The best of every node, together."""
        own = self.bank.store.part(group, width)
        matrix, labels, weights = self.rows.of(group)
        columns = np.full(int(features.max(initial=-1)) + 1, -1)
        columns[features] = np.arange(features.size)
        matrix = _chosen(matrix, columns, features.size)
        if labels.size < own.rows[0]:  # others came after those that are kept, and went
            kept = slice(self.rows.limit)
            matrix, labels, weights = matrix[kept], labels[kept], weights[kept]
            others = [self._others(node, group, width, own) for node in range(self.each)]
        else:
            others = [NO_OTHERS] * self.each
        found = [
            best_logistic(self._rows_of(node, matrix, labels, weights), self.bound, *rest)
            for node, rest in enumerate(others)
        ]
        notes = {one.note: None for one in found if one.note}
        return Hindsight(
            sum(one.best for one in found),
            sum(one.error for one in found),
            any(one.uncertain for one in found),
            sum(one.best if one.high is None else one.high for one in found),
            max(found, key=lambda one: one.kind == BRACKET).kind,
            "; ".join(notes),
            np.unique(matrix.indices[matrix.data != 0.0]).size,
        )

    def _rows_of(self, node: int, matrix: Any, labels: Vector, weights: Vector) -> Rows:
        """The rows of a node, and its labels."""
        if self.nodes is None:
            return Rows(matrix, labels, weights)
        reached = labels >= node
        wanted = (labels[reached] == node).astype(np.float64)
        return Rows(matrix[reached], wanted, weights[reached])

    def _others(self, node: int, group: int, width: int, own: Any) -> Others:
        """What is known of the rows that were not kept."""
        stores = list(self.stores.values())[2 * node : 2 * node + 2]
        factor = factored(*(store.part(group, width) for store in stores))
        rounding = 8.0 * EPSILON * float(own.magnitude[node])
        return (
            Quadratic(factor, float(own.constant[node].sum()), rounding),
            Reference(
                own.known[node],
                float(own.known_loss[node].sum()),
                float(own.reach[node]),
                float(own.weight[node]),
            ),
        )

    def save(self) -> dict[str, Any]:
        return {f"rows.{name}": array for name, array in self.rows.save().items()}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        own = {k.removeprefix("rows."): a for k, a in arrays.items() if k.startswith("rows.")}
        self.rows.load(own, groups, features)

    def check(self, seen: int) -> None:
        self.rows.check(seen)


class _WithoutSketches:
    """Keeps a store of sums of which nobody asks whether columns depend on each other exactly."""

    def __init__(self, store: Store) -> None:
        self._store = store
        store.kept_by(self)

    def begun(self, groups: Index) -> None:
        """Some groups are new."""
        self._store.fill("factors", groups, np.full((groups.size, 2), MISSING))

    def opened(self, groups: Index, first: int) -> None:
        """Some groups have new columns."""


def _sums(name: str, parameters: Vector) -> dict[str, Store]:
    """Sums of full rows, and of those that are mostly zeros."""
    return {
        f"hindsight{name}": Store(hindsight.SUMS, parameters=parameters),
        f"products{name}": Store(gram.GRAMS, parameters=parameters),
    }


def _chosen(matrix: Any, columns: Index, count: int) -> Any:
    """A sparse matrix with its columns where ``columns`` says, of ``count``."""
    from scipy.sparse import csr_array

    indices = columns[matrix.indices]
    return csr_array((matrix.data, indices, matrix.indptr), shape=(matrix.shape[0], count))
