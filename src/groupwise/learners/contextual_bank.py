"""The contextual learners of all groups."""

import math
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.errors import ConfigurationError, FeatureError
from groupwise.kernels import contextual_ftpl
from groupwise.learners.actions import Seat, copy_into, expected_minimum
from groupwise.learners.contexts import Contexts
from groupwise.oracles import FiniteClass, Stumps
from groupwise.protocols import Awake, Row
from groupwise.states import Vector

PYTHON, STUMPS, TABLE = range(3)
TUNING = 2.0
"""ε over the one that minimises the bound with 1 − e^{−x} ≤ x. The bound itself is flat on that
side (8 % more at 750 rounds) and the noise is half as large."""


class ContextualState(NamedTuple):
    """Per group: what the learner knows, and (``seen``, ``offset``) the sums that hindsight needs.

    Costs are per distinct context and label.
    """

    costs: Vector
    clock: Vector
    stability: Vector
    """Σ w (1 − e^{−κ ε_t w})."""
    seen: Vector
    offset: Vector
    sums: Vector
    """Of the costs, per label: over the contexts with each bit, and over all; for stumps."""


class ContextualBank:
    """(Configuration, state), arithmetic in the kernels, or in the oracle where that is Python."""

    integral = True
    comparator = "the best policy in hindsight"

    def __init__(
        self, oracle: Any, fakes: Vector, transductive: bool, labels: int, seat: Seat
    ) -> None:
        self.oracle = oracle
        self.transductive = transductive
        self.dimension = labels
        self.seat = seat
        self.exact = bool(getattr(oracle, "exact", True))
        self.fakes = len(fakes)
        self.contexts = Contexts(fakes)
        self.kind = PYTHON
        self.table = np.zeros((0, 0, 0))
        if isinstance(oracle, Stumps):
            self.kind = STUMPS
        elif isinstance(oracle, FiniteClass):
            self.kind = TABLE
            for context in oracle.known if not transductive else ():
                self.contexts.add(context)
            known = self.contexts.matrix[: self.contexts.count]
            columns = [oracle.column(context) for context in known]
            self.table = np.ascontiguousarray(oracle.cells[:, columns])
        independent = bool(getattr(oracle, "independent", False))
        self.width = self._noise_width(independent)
        shift = 1.0 if transductive else float(self.fakes)
        self.rate = TUNING * math.sqrt(self.width / labels / (2.0 * shift)) or math.inf
        joint = 1.0 if independent else float(labels) if transductive else float(labels**2)
        self.kappa = shift * joint
        shape = (0, len(self.contexts.matrix), labels)
        none, empty = np.zeros(0), np.zeros(shape)
        sums = np.zeros((0, labels, fakes.shape[1] + 1 if self.kind == STUMPS else 0))
        self.state = ContextualState(empty, none, none, empty, none, sums)
        self._known: tuple[Row, Vector, int] | None = None
        self._handle: Any = None
        self._held: Any = None
        self._compile()

    def reserve(self, groups: int, features: int = 0) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        del features
        self._enlarge(groups, len(self.contexts.matrix))

    def advise(self, number: int, attempt: int, awake: Awake, row: Row, out: Vector) -> None:
        """The oracle's policy on history plus fake samples, for every awake group."""
        x, place = self._context(row)
        column, columns, seed = self.seat
        if self.kind == STUMPS:
            handle = self._open() if self._handle is None else self._handle
            self._advise(handle, *awake, x, number, attempt, out)
        elif self.kind == TABLE:
            contextual_ftpl.advise_table(
                self.state,
                self.table,
                self.fakes,
                self.rate,
                *awake,
                place,
                seed,
                number,
                attempt,
                column,
                columns,
                out,
            )
        else:
            self._advise_by_object(number, attempt, awake, x, out)

    def rest(self, row: Row) -> Vector:
        """The oracle's policy where all costs are 0."""
        x, _ = self._context(row)
        nothing = np.zeros((self.contexts.count, self.dimension))
        return np.asarray(self._policy(nothing)(x), dtype=np.float64)

    def check(self, costs: Vector) -> None:
        """Nothing to do: the loss has checked the labels."""

    def update(self, awake: Awake, row: Row, costs: Vector) -> None:
        """Add the costs at the row's context to every awake group."""
        place = self._place(row)
        if self.kind == STUMPS:
            handle = self._open() if self._handle is None else self._handle
            self._update(handle, *awake, place, costs)
        else:
            contextual_ftpl.update(self.state, self.rate, self.kappa, *awake, place, costs)

    def record(self, awake: Awake, row: Row, costs: Vector, offset: float) -> None:
        """Add the costs to the sums of hindsight."""
        place = self._place(row)
        self.state.seen[awake.groups, place] += awake.weights[:, None] * costs
        self.state.offset[awake.groups] += awake.weights * offset

    def best(self, group: int) -> float:
        """The least Σ_x ⟨f(x), Σ w c_x⟩, with the offsets."""
        costs = self.state.seen[group, : self.contexts.count]
        return self._least(costs) + float(self.state.offset[group])

    def lost_by_best_of(self, other: int, group: int) -> float:
        """What the best policy of another group would have lost on a group."""
        seen = self.state.seen[:, : self.contexts.count]
        return self._loss(self._policy(seen[other]), seen[group]) + float(self.state.offset[group])

    def bound(self, group: int) -> float | None:
        """Σ w (1 − e^{−κ ε_t w}) + W/(n ε_T); None for a heuristic oracle."""
        if not self.exact:
            return None
        last = math.sqrt(float(self.state.clock[group])) / self.rate
        return float(self.state.stability[group]) + self.width * last / self.dimension

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        state = self.state
        for array in (state.costs, state.clock, state.stability, state.sums):
            array[...] = 0.0

    def arrays(self, groups: int) -> dict[str, Any]:
        """The state of the first groups, and the contexts met, by name."""
        count = self.contexts.count
        state = self.state
        return {
            "costs": state.costs[:groups, :count],
            "clock": state.clock[:groups],
            "stability": state.stability[:groups],
            "seen": state.seen[:groups, :count],
            "offset": state.offset[:groups],
            "sums": state.sums[:groups],
            "contexts": self.contexts.matrix[:count],
        }

    def restore(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what ``arrays`` gave."""
        for context in arrays["contexts"]:
            self.contexts.add(context)
        self.reserve(groups)
        for name, target in self.arrays(groups).items():
            copy_into(target, arrays[name], name)

    def _context(self, row: Row) -> tuple[Vector, int]:
        """The row's context and its number, −1 if it is new; errors name it."""
        if self._known is not None and self._known[0] is row:
            return self._known[1], self._known[2]
        x = row.values if row.values.size == len(row.names) else row.dense()
        place = self.contexts.find(x)
        if place < 0 and (self.transductive or self.kind == TABLE):
            known = "the transductive set" if self.transductive else "any column of the table"
            raise FeatureError(
                f"The context {_named(row, x)} is not in {known}. Give ContextualFTPL all contexts "
                'that can occur, or use setting="separator".'
            )
        if place < 0 and hasattr(self.oracle, "check_contexts"):
            try:
                self.oracle.check_contexts(x[None, :])
            except ConfigurationError as error:
                raise FeatureError(f"The context {_named(row, x)} is not usable. {error}") from None
        self._known = row, x, place
        return x, place

    def _place(self, row: Row) -> int:
        """The number of the row's context, a new one where it is new."""
        x, place = self._context(row)
        if place < 0:
            place = self.contexts.add(x)
            self._known = row, x, place
            self._enlarge(len(self.state.clock), len(self.contexts.matrix))
        return place

    def _enlarge(self, groups: int, contexts: int) -> None:
        costs, clock, stability, seen, offset, sums = self.state
        size = capacity(groups, len(clock))
        shape = (size, contexts, self.dimension)
        if costs.shape != shape:
            self.state = ContextualState(
                enlarge(costs, shape),
                enlarge(clock, (size,)),
                enlarge(stability, (size,)),
                enlarge(seen, shape),
                enlarge(offset, (size,)),
                enlarge(sums, (size, *sums.shape[1:])),
            )
        self._handle = None

    def _open(self) -> Any:
        """Sizes and addresses of the state; ``_held`` keeps the arrays while these are in use."""
        numbers = np.array([self.rate, self.kappa])
        self._handle, self._held = contextual_ftpl.stump_handle(
            self.contexts.matrix, self.fakes, numbers, self.seat, self.state
        )
        return self._handle

    def _compile(self) -> None:
        self._advise = contextual_ftpl.advise_stumps.compile(contextual_ftpl.ADVISE_STUMPS)
        self._update = contextual_ftpl.update_stumps.compile(contextual_ftpl.UPDATE_STUMPS)

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_advise", "_update", "_handle", "_held", "_known")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _handle=None, _held=None, _known=None)
        self._compile()

    def _advise_by_object(
        self, number: int, attempt: int, awake: Awake, x: Vector, out: Vector
    ) -> None:
        column, columns, seed = self.seat
        for a, (group, weight) in enumerate(zip(*awake, strict=True)):
            costs = np.empty((self.contexts.count, self.dimension))
            expert = group * columns + column
            contextual_ftpl.perturbed(
                self.state,
                self.rate,
                self.fakes,
                group,
                weight,
                seed,
                number,
                expert,
                attempt,
                costs,
            )
            out[a, column] = self._policy(costs)(x)

    def _policy(self, costs: Vector) -> Any:
        return self.oracle.minimise(self.contexts.matrix[: len(costs)], _plain(costs))

    def _least(self, costs: Vector) -> float:
        """min_f Σ_x ⟨f(x), costs_x⟩ over the first contexts, as many as there are costs."""
        contexts = self.contexts.matrix[: len(costs)]
        if hasattr(self.oracle, "least"):
            return float(self.oracle.least(contexts, _plain(costs)))
        return self._loss(self._policy(costs), costs)

    def _loss(self, policy: Any, costs: Vector) -> float:
        """Σ_x ⟨f(x), costs_x⟩ over the first contexts, as many as there are costs."""
        contexts = self.contexts.matrix[: len(costs)]
        actions = np.array([np.atleast_1d(policy(x)) for x in contexts], dtype=np.float64)
        return float(np.sum(actions * costs))

    def _noise_width(self, independent: bool) -> float:
        """W = E max_f Σ_{x in S} ⟨f(x), Laplace(1)⟩: the noise is symmetric, so it is −E min."""
        copies = self.dimension if independent else 1
        shape = (self.fakes, self.dimension // copies)
        if self.kind == TABLE:  # all policies at once
            flat = self.table[:, : self.fakes].reshape(len(self.table), -1)
            return -expected_minimum(
                lambda generator: float((flat @ generator.laplace(size=shape).ravel()).min()), True
            )
        return -copies * expected_minimum(
            lambda generator: self._least(generator.laplace(size=shape)), self.exact
        )


def _plain(costs: Vector) -> Vector:
    """One label's costs as a vector."""
    return costs[:, 0] if costs.shape[1] == 1 else costs


def _named(row: Row, x: Vector) -> str:
    return "{" + ", ".join(f"{n}: {v:g}" for n, v in zip(row.names, x.tolist(), strict=True)) + "}"
