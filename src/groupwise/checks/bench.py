"""A learner on the bench: all that is needed to run it in a model."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from groupwise.checks.streams import Source
from groupwise.losses import Loss
from groupwise.model import Groupwise
from groupwise.protocols import Learner


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
            learner=copy.deepcopy(self.learner),
            loss=self.loss,
            features=self.features,
            indicators=False,
            seed=seed,
        )

    @property
    def is_object(self) -> bool:
        """Does it advise and update itself, so that it can be called directly?"""
        return isinstance(self.learner, Learner)

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
