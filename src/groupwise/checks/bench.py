"""What is on the bench: a learner in its model, the streams it runs through, and how checks fail.

The one who sets a label sees the prediction first.
"""

import copy
import math
import pickle
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import GroupwiseError
from groupwise.groups import Group, by, weight, where
from groupwise.losses import Loss
from groupwise.model import Groupwise
from groupwise.replaying import replay

Answer: TypeAlias = Callable[[Any], Any]
"""Gives the label of a round, knowing what was predicted."""
Rounds: TypeAlias = Iterator[tuple[dict[str, Any], Answer]]
Source: TypeAlias = Callable[[int], Rounds]
"""Gives an endless stream for a seed."""

FEATURES = ["u", "v", "one"]
"""The features of the streams below."""
KINDS = ("plain", "striped", "dotted")
POOL = 40
"""How many different rows there are."""


class CheckFailed(GroupwiseError, AssertionError):
    """A component does not keep its contract; the message says which part of it."""


@contextmanager
def during(check: str, component: object) -> Iterator[None]:
    """Name the check and the component in whatever goes wrong inside."""
    name = f"{getattr(component, 'name', type(component).__name__)}, {check}"
    try:
        yield
    except CheckFailed as failure:
        raise CheckFailed(f"{name}: {failure}") from None
    except Exception as error:
        raise CheckFailed(f"{name}: raised {error!r}.") from error


def require(condition: object, message: str) -> None:
    """Fail with the message unless the condition holds."""
    if not condition:
        raise CheckFailed(message)


def same(one: Any, other: Any) -> bool:
    """Equal, bit for bit; two NaN are equal."""
    if isinstance(one, float) and isinstance(other, float) and math.isnan(one):
        return math.isnan(other)
    return bool(np.array_equal(one, other))


def copies(component: object, what: str = "copied or pickled") -> dict[str, Any]:
    """A copy made in either way."""
    try:
        pickled = pickle.loads(pickle.dumps(component))
        return {"deep copy": copy.deepcopy(component), "pickle": pickled}
    except Exception as error:
        raise CheckFailed(f"it cannot be {what}: {error!r}.") from error


@dataclass(frozen=True)
class Bench:
    """A learner, and all that is needed to run it in a model."""

    learner: Any
    loss: Loss
    groups: Sequence[Any]
    features: Sequence[str] | None
    streams: Mapping[str, Source]
    rounds: int

    def model(self, seed: int = 0) -> Groupwise:
        """A fresh model with the learner on every group."""
        return Groupwise(
            self.groups,
            learner=self.fresh(),
            loss=self.loss,
            features=self.features,
            indicators=False,
            seed=seed,
        )

    @property
    def randomised(self) -> bool:
        """Does it draw?"""
        return bool(getattr(self.learner, "randomised", False))

    def shown(self, predictions: list[Any]) -> Any:
        """What the one who sets the label sees: a play, but none whose noise is still in use."""
        if not self.randomised:
            return predictions[-1]
        return predictions[-2] if len(predictions) > 1 else 0 * predictions[-1]

    def fresh(self) -> Any:
        """A copy of the learner, as each group gets one."""
        return copy.deepcopy(self.learner)


def run(bench: Bench, model: Groupwise, rounds: Any) -> list[Any]:
    """Predict and learn every round; the predictions."""
    found: list[Any] = []
    for row, answer in rounds:
        ticket = model.predict(row)
        found.append(ticket.prediction)
        model.learn(ticket, answer(bench.shown(found)))
    return found


def replay_is_the_loop(members: Vector, learner: Any, **parts: Any) -> None:
    """Check that a replay of random rows, in these groups, predicts what a model does in a loop."""
    generator = np.random.default_rng(5)
    features = generator.normal(size=(len(members), 3))
    labels = generator.random(len(members)).round()
    result = replay(features, labels, members, learner=copy.deepcopy(learner), **parts)
    groups = [f"in{g}" for g in range(members.shape[1])]
    numbers = ["x0", "x1", "x2"]
    model = Groupwise(
        [weight(group) for group in groups],
        learner,
        features=numbers,
        indicators=False,
        intercept=False,
        always_on=False,
        **parts,
    )
    for t, row in enumerate(np.column_stack([features, members]).tolist()):
        ticket = model.predict(dict(zip([*numbers, *groups], row, strict=True)))
        require(
            same(ticket.prediction, float(result.prediction[t])),
            f"row {t} of a replay predicts {result.prediction[t]!r}, the loop "
            f"{ticket.prediction!r}.",
        )
        model.learn(ticket, labels[t])


def declarations(fractional: bool) -> list[Group]:
    """Groups that overlap; fractional ones where the learner takes them."""
    return [by("kind"), where("u", ">", 0.3), *([weight("share")] if fractional else [])]


def linear(seed: int) -> Rounds:
    """A linear rule for each kind, with noise."""
    generator = np.random.default_rng(seed)
    rules = {kind: generator.normal(size=2) / 3 for kind in KINDS}
    for row in _rows(generator):
        mean = 0.5 + rules[row["kind"]] @ [row["u"], row["v"]]
        yield row, _always(np.clip(mean + generator.normal() / 10, 0.0, 1.0))


def contrary(seed: int) -> Rounds:
    """The label at the far end from the prediction, always."""
    for row in _rows(np.random.default_rng(seed)):
        yield row, lambda prediction: 1.0 if prediction < 0.5 else 0.0


def switching(seed: int) -> Rounds:
    """A rule that turns round every 30 rounds, just when it has been learned."""
    for t, row in enumerate(_rows(np.random.default_rng(seed))):
        yield row, _always((row["u"] > 0) == (t // 30 % 2 == 0))


def _always(label: Any) -> Answer:
    return lambda prediction: float(label)


def _rows(generator: np.random.Generator) -> Iterator[dict[str, Any]]:
    pool: list[Mapping[str, Any]] = [
        {
            "kind": KINDS[generator.integers(len(KINDS))],
            "u": float(generator.uniform(-1, 1)),
            "v": float(generator.uniform(-1, 1)),
            "one": 1.0,
            "share": float(generator.choice([0.0, 1.0, generator.random()])),
        }
        for _ in range(POOL)
    ]
    while True:
        for place in generator.permutation(POOL):
            yield dict(pool[place])


STREAMS: dict[str, Source] = {"linear": linear, "contrary": contrary, "switching": switching}
