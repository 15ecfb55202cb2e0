"""Algorithm 1 with every policy of a finite class as an expert in every group."""

from typing import Any

import numpy as np

from groupwise.actions import ActionPlay, ActionReduction
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import actions
from groupwise.learners.policies import Policies
from groupwise.losses import Hamming, Linear, Loss, ZeroOne
from groupwise.protocols import Aggregator, Awake, Row
from groupwise.reduction import Reduction, Settlement
from groupwise.states import Vector


class FixedPolicyReduction(ActionReduction):
    """The reduction where learners are fixed policies, which say the same in all groups."""

    comparator = "the best policy in hindsight"

    def __init__(
        self, policies: Policies, aggregator: Aggregator, loss: Loss, play: str | None, seed: int
    ) -> None:
        if not isinstance(loss, (ZeroOne, Hamming, Linear)):
            raise ConfigurationError(
                "Enumerated policies choose discrete actions: use losses.ZeroOne(), "
                f"losses.Hamming(labels) or losses.Linear(low, high), not {loss}."
            )
        experts: Any = range(policies.count)
        Reduction.__init__(self, experts, aggregator, loss, play, seed=seed)
        self.policies = policies
        self.banks, self.action_banks = [], []

    def predict(self, number: int, awake: Awake, row: Row) -> Any:
        """Every policy speaks once; a pair of group and policy is drawn."""
        answers = self.policies.answers(row)
        chosen, probabilities = self._draw(number, awake)
        return self._followed(answers, chosen, probabilities)

    def learn(
        self, number: int, awake: Awake, row: Row, label: Any, attempt: int = 0
    ) -> tuple[Any, Settlement]:
        """The aggregator is updated with the losses of the policies, which themselves stay."""
        del attempt
        answers = self.policies.answers(row)
        costs, offset = self.loss.linear(label)
        self._check_costs(costs)
        chosen, probabilities = self._draw(number, awake)
        lost = self._lost(answers, costs, offset, len(probabilities))
        self._check_range(lost)
        charged = float(np.sum(probabilities * lost))
        actions.update(self.state, *awake, lost, charged)
        play = self._followed(answers, chosen, probabilities)
        return play, Settlement(lost, charged, float(lost.flat[chosen]))

    def score(self, play: Any, label: Any) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        costs, offset = self.loss.linear(label)
        answers = np.asarray(play.advice[0], dtype=np.float64).reshape(self.policies.count, -1)
        lost = self._lost(answers, costs, offset, len(play.probabilities))
        charged = float(np.sum(play.probabilities * lost))
        return Settlement(lost, charged, self.loss_of(play.prediction, label))

    def rest(self, row: Row) -> ActionPlay:
        """The first policy, where nobody is awake."""
        nobody = np.empty((0, self.policies.count))
        return self._followed(self.policies.answers(row), 0, nobody)

    def best_loss(self, group: int) -> None:
        """The ledger keeps every policy's loss, so the best is found there."""
        del group

    def learner_bounds(self, group: int) -> None:
        """What the policies lost is known exactly."""
        del group

    def _check_costs(self, costs: Vector) -> None:
        length = self.policies.length
        if length is not None and costs.size != length:
            raise LabelError(f"The label has {costs.size} entries, and an action has {length}.")

    def _draw(self, number: int, awake: Awake) -> tuple[int, Vector]:
        probabilities = np.empty((awake.groups.size, self.policies.count))
        self._exponents(awake, probabilities)
        chosen = actions.predict(self.settings, self.state, *awake, number, probabilities)
        return int(chosen), probabilities

    def _lost(self, answers: Vector, costs: Vector, offset: float, groups: int) -> Vector:
        each = (answers @ costs + offset) / self.loss.unit
        return np.tile(each, (groups, 1))

    def _followed(self, answers: Vector, chosen: int, probabilities: Vector) -> ActionPlay:
        plain: Any = answers if self.loss.vector else answers[:, 0]
        if ((plain == 0.0) | (plain == 1.0)).all():
            plain = plain.astype(np.int64)
        action = plain[chosen % self.policies.count]
        advice = np.broadcast_to(plain, (len(probabilities), *plain.shape))
        return ActionPlay(action if self.loss.vector else int(action), advice, probabilities)
