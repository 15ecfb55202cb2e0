"""Contextual follow the perturbed leader: classification with an ERM oracle."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from groupwise import bounds
from groupwise.arrays import Index, Vector, capacity, enlarge
from groupwise.errors import ConfigurationError, FeatureError
from groupwise.kernels import contextual_ftpl
from groupwise.kernels.compiled import ready
from groupwise.kernels.stretch import addressed
from groupwise.learners.actions import (
    HEURISTIC_DRAWS,
    MONTE_CARLO_DRAWS,
    MONTE_CARLO_SEED,
    OracleBank,
    OracleLearner,
)
from groupwise.learners.widths import Width, of_oracle, of_table
from groupwise.losses import Hamming, ZeroOne
from groupwise.oracles import FiniteClass, Stumps
from groupwise.oracles.policies import context_key, context_matrix
from groupwise.protocols import Awake, Hindsight, Row, Setting
from groupwise.store import Store

SETTINGS = ("transductive", "separator")


@dataclass(frozen=True, eq=False)
class ContextualFTPL(OracleLearner):
    """Contextual follow the perturbed leader, for labels 0 and 1 and any class with an ERM oracle.

    With c_τ = 1 − 2y_τ the costs of the group's earlier rounds (times the row's weight in the
    group), draw afresh, for every x in S, a fake cost vector z_x of independent Laplace(1/ε_t)
    entries, and advise f(x_t) for

        f = argmin over f in H of  Σ_{τ<t} ⟨f(x_τ), c_τ⟩ + Σ_{x in S} ⟨f(x), z_x⟩.

    History is kept as one sum of costs per *distinct* context. On the group's clock t,
    ε_t = √(2W / (κ n t)), with W and κ as below and the n labels taken as independent.

    Parameters
    ----------
    oracle : ``oracles.Stumps``, ``oracles.FiniteClass``, the heuristic ``oracles.Sklearn``, or an
        object of yours with ``minimise(contexts, costs) -> policy``.
    contexts : S, a context a row, with the model's declared ``features`` as columns, in that order.
    setting : "transductive" where S holds all contexts that can occur (another one is an error),
        "separator" where S tells any two policies of the class apart (``oracle.separator``).

    >>> from groupwise.oracles import Stumps
    >>> ContextualFTPL(Stumps(), [[0, 0], [0, 1], [1, 0]], setting="transductive").context_width()
    2

    Guarantee
    ---------
    In expectation over the noise, against any policy and for labels that may depend on all earlier
    plays, in losses scaled to [0, 1]:

        regret ≤ Σ w (1 − e^{−κ ε_t w}) + W / (n ε_T),  W = E max_f Σ_{x in S} ⟨f(x), z_x⟩, ε = 1,

    with κ = 1 (transductive) or |S| (separator) where the class takes the best for each label by
    itself, as stumps do; otherwise κ = n or |S| n². This is what the certificate shows, with W by a
    closed form where there is one, else sampled with a margin that is too small with probability
    1e-6: the status says which. Proof: the density of the noise changes by at most e^{κ ε} where
    the noise is shifted by c_t at x_t (transductive), or in favour of the policy that is about to
    be overtaken, by 1 (n) in each entry (separator); so the policy is the same before and after c_t
    up to probability 1 − e^{−κ ε}. The player who knows c_t loses at most what the noise adds,
    W/ε_T in labels, as it is centred.

    References
    ----------
    Syrgkanis, Krishnamurthy and Schapire, "Efficient algorithms for adversarial contextual
    learning", ICML 2016.
    """

    contexts: ArrayLike
    setting: str = "transductive"

    def __post_init__(self) -> None:
        if not hasattr(self.oracle, "minimise"):
            raise ConfigurationError(
                f"{type(self.oracle).__name__} cannot serve as an oracle: it has no minimise. "
                "Use oracles.Stumps or oracles.FiniteClass, or see groupwise.protocols."
            )
        if self.setting not in SETTINGS:
            raise ConfigurationError(
                f'setting must be "transductive" or "separator", not {self.setting!r}.'
            )
        matrix = context_matrix(self.contexts)
        if hasattr(self.oracle, "check_contexts"):
            self.oracle.check_contexts(matrix)
        if len(np.unique(matrix, axis=0)) < len(matrix):
            raise ConfigurationError("contexts has the same row twice; give every context once.")
        separates = getattr(self.oracle, "separates", None)
        if self.setting == "separator" and separates is not None and not separates(matrix):
            raise ConfigurationError(
                "contexts is no separator: two policies of the class agree on all of it. "
                "oracle.separator(number of features) names one."
            )
        vars(self).update(contexts=matrix)

    @classmethod
    def banks(
        cls, learners: "Sequence[ContextualFTPL]", columns: Sequence[int], setting: Setting
    ) -> "list[ContextualBank]":
        """A bank for each of the learners."""
        pairs = zip(learners, columns, strict=True)
        return [ContextualBank(learner, column, setting) for learner, column in pairs]

    def labels_of(self, setting: Setting) -> int:
        """How many labels a prediction has, where the model's parts fit together."""
        loss = setting.loss
        if not isinstance(loss, (ZeroOne, Hamming)):
            raise ConfigurationError(
                f"ContextualFTPL predicts labels 0 and 1: use losses.ZeroOne(), or "
                f"losses.Hamming(labels) for several, not {loss}."
            )
        if setting.width != self.context_width():
            raise ConfigurationError(
                f"The contexts have {self.context_width()} columns and rows have {setting.width} "
                "declared features. Name the fields that make a context with features=[...], in "
                "the order of the columns."
            )
        labels = int(loss.unit)
        known = getattr(self.oracle, "labels", labels)
        if known != labels:
            raise ConfigurationError(
                f"The oracle's policies predict {known} labels and the loss is on {labels}."
            )
        return labels

    def context_width(self) -> int:
        """How many features make a context."""
        return int(np.shape(self.contexts)[1])


class ContextualBank(OracleBank):
    """The learners of all groups; arithmetic in the kernels, or in an oracle that is Python."""

    comparator = "the best policy in hindsight"
    kernels = contextual_ftpl

    def __init__(self, learner: ContextualFTPL, column: int, setting: Setting) -> None:
        super().__init__(learner.oracle, column, setting, learner.labels_of(setting))
        oracle, labels = self.oracle, self.dimension
        self.transductive = learner.setting == "transductive"
        fakes = np.asarray(learner.contexts)
        self.fakes = len(fakes)
        self.contexts = Contexts(fakes)
        self.table: Vector | None = None
        if isinstance(oracle, FiniteClass):
            for context in () if self.transductive else oracle.known:
                self.contexts.add(context)
            columns = [oracle.column(context) for context in self.contexts.met]
            self.table = np.ascontiguousarray(oracle.cells[:, columns])
        independent = bool(getattr(oracle, "independent", False))
        self.width = self._noise_width(independent)
        self.shift = 1.0 if self.transductive else float(self.fakes)
        self.rate = bounds.TUNING * math.sqrt(self.width / labels / (2.0 * self.shift)) or math.inf
        joint = 1.0 if independent else float(labels if self.transductive else labels**2)
        self.kappa = self.shift * joint
        self.stumps = isinstance(oracle, Stumps)
        extent = fakes.shape[1] + 1 if self.stumps else 0
        self.store = Store(contextual_ftpl.HISTORY, labels, extent)
        self.__setstate__({})

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_known", "_advise", "_update", "_record")
        return {name: value for name, value in vars(self).items() if name not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._known: tuple[Row, Vector, int] | None = None
        self._advise, self._update, self._record = ready(contextual_ftpl.SIGNATURES)

    @property
    def span(self) -> tuple[int, int]:
        """A column of a record is a context."""
        return self.contexts.count, len(self.contexts.matrix)

    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The oracle's policy on history plus fake samples, for every awake group."""
        x, place = self._context(row)
        if not self.stumps and self.table is None:
            shape = self.contexts.count, self.dimension
            return self.asked(
                number, attempt, awake, self.fakes, shape, lambda costs: self._policy(costs)(x)
            )
        out = np.empty((len(awake.groups), 1, self.dimension))
        name = self.setting.seed, number, attempt, self.column, self.setting.experts
        state, samples = self.store.address, (self.fakes, self.rate, addressed(awake))
        if self.stumps:
            self._advise(state, self.contexts.matrix, *samples, x, *name, out)
        else:
            contextual_ftpl.advise_table(state, self.table, *samples, place, *name, out)
        return out

    def rest(self, row: Row) -> Vector:
        """The oracle's policy where all costs are 0."""
        nothing = np.zeros((self.contexts.count, self.dimension))
        return np.asarray(self._policy(nothing)(self._context(row)[0]), dtype=np.float64)

    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Add the costs at the row's context to every awake group."""
        costs, _ = label
        place = self._place(row)
        where = addressed(awake), place, self.contexts.matrix[place]
        while self._update(self.store.address, self.rate, self.kappa, *where, costs):
            self.reserve(awake.groups, 0)

    def record(self, awake: Awake, row: Row, label: Any, stands_for: float) -> None:
        """Add the costs to the sums of hindsight."""
        costs, offset = label
        place = self._place(row)
        self._record(self.store.address, addressed(awake), place, costs, offset, stands_for)

    def hindsight(self, group: int, features: int) -> float | None:
        """The least Σ_x ⟨f(x), Σ w c_x⟩, with the offsets."""
        own = self.store.of(group)
        least = self._least(own.seen[: self.contexts.count]) + float(own.offset[0])
        return least / self.setting.loss.unit

    def elsewhere(self, group: int, of: int) -> float:
        """Σ_x ⟨f(x), Σ w c_x⟩ of the best policy for another group, with the offsets."""
        own, other = (self.store.of(g) for g in (group, of))
        said = self._said(other.seen)
        count = min(len(said), len(own.seen))
        lost = float(np.sum(said[:count] * own.seen[:count])) + float(own.offset[0])
        return lost / self.setting.loss.unit

    def bounds(self, group: int) -> Vector | None:
        """Σ w (1 − e^{−κ ε_t w}) + W/(n ε_T); None for a heuristic oracle."""
        if not self.exact:
            return None
        own = self.store.of(group)
        last = math.sqrt(float(own.clock[0])) / self.rate
        return np.asarray(own.stability + self.noise.value * last / self.dimension)

    @cached_property
    def noise(self) -> Width:  # type: ignore[override]
        """W, or what it is at most."""
        table, copies = self.table, 1
        if table is None and hasattr(self.oracle, "every"):
            table, copies = self.oracle.every(self.contexts.matrix[: self.fakes]), self.dimension
        if table is not None:
            said = np.asarray(table)[:, : self.fakes].reshape(len(table), -1)
            found = of_table(said)
        else:
            independent = bool(getattr(self.oracle, "independent", False))
            copies = self.dimension if independent else 1
            shape = self.fakes, self.dimension // copies
            found = of_oracle(self._least, shape, MONTE_CARLO_DRAWS)
        return found._replace(value=copies * found.value)

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """T (1 − 2 E₃(κ r/√T)) + W √T/(n r), ε_t = r/√t; None for a heuristic oracle."""
        if not self.exact:
            return None
        numbers = self.dimension, self.shift, self.kappa, self.noise.value, self.rate
        return bounds.contextual_ftpl(rounds, *numbers)

    def save(self, groups: int | Index, features: int) -> dict[str, Any]:
        """The state of the first groups, and the contexts met, by name."""
        contexts = {f"{self.prefix}contexts": self.contexts.met}
        return super().save(groups, features) | contexts

    def load(self, arrays: Mapping[str, Any], groups: int | Index, features: int) -> None:
        """Take over what :meth:`save` gave."""
        contexts = arrays[f"{self.prefix}contexts"]
        for context in contexts:
            self.contexts.add(context)
        if not np.array_equal(contexts, self.contexts.met):
            raise ValueError("contexts are not those of the learner")
        super().load(arrays, groups, features)

    def _context(self, row: Row) -> tuple[Vector, int]:
        """The row's context and its number, −1 if it is new; errors name it."""
        if self._known is not None and self._known[0] is row:
            return self._known[1], self._known[2]
        x = row.values if row.values.size == len(row.names) else row.dense()
        place = self.contexts.find(x)
        if place < 0 and (self.transductive or self.table is not None):
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
        return place

    def _policy(self, costs: Vector) -> Any:
        return self.oracle.minimise(self.contexts.matrix[: len(costs)], _plain(costs))

    def _said(self, costs: Vector) -> Vector:
        """What the best policy for these costs says about the first contexts."""
        policy, contexts = self._policy(costs), self.contexts.matrix[: len(costs)]
        return np.array([np.atleast_1d(policy(x)) for x in contexts], dtype=np.float64)

    def _least(self, costs: Vector) -> float:
        """min_f Σ_x ⟨f(x), costs_x⟩ over the first contexts, as many as there are costs."""
        if hasattr(self.oracle, "least"):
            return float(self.oracle.least(self.contexts.matrix[: len(costs)], _plain(costs)))
        return float(np.sum(self._said(costs) * costs))

    def _noise_width(self, independent: bool) -> float:
        """An estimate of W = E max_f Σ_{x in S} ⟨f(x), Laplace(1)⟩, which ε is tuned by."""
        copies = self.dimension if independent else 1
        shape = (self.fakes, self.dimension // copies)
        table = self.table

        def least(noise: Vector) -> float:
            if table is None:
                return self._least(noise)
            every = table[:, : self.fakes].reshape(len(table), -1)  # all policies at once
            return float((every @ noise.ravel()).min())

        generator = np.random.default_rng(MONTE_CARLO_SEED)
        draws = MONTE_CARLO_DRAWS if self.exact else HEURISTIC_DRAWS
        every_least = [least(generator.laplace(size=shape)) for _ in range(draws)]
        return -copies * float(np.mean(every_least))


class Contexts:
    """Contexts by number; the ones given first come first, others are added as they are met."""

    def __init__(self, first: Vector) -> None:
        self.matrix = first.copy()
        self.count = len(first)
        self._numbers = {context_key(row): i for i, row in enumerate(first)}

    @property
    def met(self) -> Vector:
        """All that there are."""
        return self.matrix[: self.count]

    def find(self, x: Vector) -> int:
        """The number of a context; −1 where it is unknown."""
        return self._numbers.get(context_key(x), -1)

    def add(self, x: Vector) -> int:
        """The number of a context, a new one where it was unknown."""
        number = self._numbers.setdefault(context_key(x), self.count)
        if number == self.count:
            size = capacity(self.count + 1, len(self.matrix))
            self.matrix = enlarge(self.matrix, (size, self.matrix.shape[1]))
            self.matrix[number] = x
            self.count += 1
        return number


def _plain(costs: Vector) -> Vector:
    """One label's costs as a vector."""
    return costs[:, 0] if costs.shape[1] == 1 else costs


def _named(row: Row, x: Vector) -> str:
    return "{" + ", ".join(f"{n}: {v:g}" for n, v in zip(row.names, x.tolist(), strict=True)) + "}"
