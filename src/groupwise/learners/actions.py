"""What learners of discrete actions share: how their advice loses, their oracle, and their state.

Labels reach such a learner as cost vectors: an action a loses ⟨a, costs⟩, up to a constant.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, ClassVar, Self

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.kernels import actions
from groupwise.kernels.layout import address
from groupwise.oracles import oracle_from_dict
from groupwise.protocols import Awake, Bank, Setting
from groupwise.store import Store

MONTE_CARLO_SEED = 0
MONTE_CARLO_DRAWS = 1_000
HEURISTIC_DRAWS = 20
"""How often an oracle is asked to estimate the W of a run-time bound: exact ones, heuristics."""


@dataclass(frozen=True, eq=False)
class OracleLearner:
    """The configuration of a learner with an oracle. To be derived from."""

    randomised: ClassVar[bool] = True
    oracle: Any

    def to_dict(self) -> dict[str, Any] | None:
        """The learner by name, for snapshots; None where its oracle cannot be saved."""
        oracle = self.oracle.to_dict() if hasattr(self.oracle, "to_dict") else None
        if oracle is None:
            return None
        parts = {k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in vars(self).items()}
        return {"type": type(self).__name__, **parts, "oracle": oracle}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Self:
        """The learner that :meth:`to_dict` wrote."""
        return cls(**{**fields, "oracle": oracle_from_dict(fields["oracle"])})


class ActionBank(Bank):
    """One learner's copies for all groups. To be derived from."""

    actions: ClassVar[bool] = True
    integral: bool = True
    """Are actions vectors of 0 and 1?"""

    def __init__(self, column: int, setting: Setting, dimension: int) -> None:
        self.columns = [column]
        self.setting = setting
        self.dimension = dimension

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """The scaled losses of advice on a label, and their mean over the draw."""
        loss = self.setting.loss
        costs, offset = loss.linear(label)
        lost = np.empty_like(probabilities)
        vectors = np.asarray(advice, dtype=np.float64).reshape(*lost.shape, -1)
        return lost, actions.score(vectors, costs, offset, loss.unit, probabilities, lost)


class OracleBank(ActionBank):
    """The learners of all groups: (configuration, state), arithmetic in the kernels.

    Its oracle is compiled, or an object in Python that is asked for every group.
    """

    kernels: ModuleType
    """The arithmetic: ``perturbed`` gives a group's costs so far with its noise of this round."""
    store: Store
    rate: float
    """ε_t √t."""

    def __init__(self, oracle: Any, column: int, setting: Setting, dimension: int) -> None:
        super().__init__(column, setting, dimension)
        self.oracle = oracle
        self.exact = bool(getattr(oracle, "exact", True))
        self.column = column
        self.prefix = f"learner{column}."

    @property
    def span(self) -> tuple[int, int]:
        """How many columns of a record are in use, and how many there is room for."""
        return 0, 0

    def reserve(self, groups: Index, features: int) -> None:
        """Make room; the new slots hold learners that have seen nothing."""
        self.store.reserve(groups, self.span[1])

    def asked(
        self,
        number: int,
        attempt: int,
        awake: Awake,
        noise: Any,
        shape: tuple[int, ...],
        answer: Callable[[Vector], Any],
    ) -> Vector:
        """What an oracle in Python answers to the perturbed costs of every awake group."""
        out = np.empty((len(awake.groups), 1, self.dimension))
        for a, (group, weight) in enumerate(zip(*awake, strict=True)):
            state, costs = address(self.store.message), np.empty(shape)
            named = self.setting.seed, number, group * self.setting.experts + self.column, attempt
            self.kernels.perturbed(state, self.rate, noise, group, weight, *named, costs)
            out[a, 0] = answer(costs)
        return out

    def expected_minimum(
        self, noise: Callable[[np.random.Generator], Vector], least: Callable[[Vector], float]
    ) -> float:
        """The mean of ``least`` over a fixed sequence of noise."""
        generator = np.random.default_rng(MONTE_CARLO_SEED)
        draws = MONTE_CARLO_DRAWS if self.exact else HEURISTIC_DRAWS
        return float(np.mean([least(noise(generator)) for _ in range(draws)]))

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.store.clear(self.kernels.LEARNED)

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, by name."""
        saved = self.store.save(groups, self.span[0])
        return {self.prefix + name: array for name, array in saved.items()}

    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""
        names = [name for name in arrays if name.startswith(self.prefix)]
        own = {name.removeprefix(self.prefix): arrays[name] for name in names}
        self.store.load(own, groups, *self.span)
