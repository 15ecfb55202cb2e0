"""Algorithm 1 where predictions are discrete actions: paths, labels, sets of labels.

The same steps as in ``reduction``. Advice are vectors, and the play is the advice of one awake
learner, drawn with the aggregator's weights; the aggregator is charged the expected loss over this
draw.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import actions
from groupwise.learners.actions import ActionBank, ActionLearner, Seat
from groupwise.losses import Loss
from groupwise.protocols import Aggregator, Awake, Row
from groupwise.reduction import Reduction, Settlement
from groupwise.rounds import Rounds
from groupwise.states import Vector

ROUNDING = 1e-9


class ActionPlay(NamedTuple):
    """What was played, and why: the action, every expert's action, and the aggregator's weights."""

    prediction: Any
    advice: Any
    """A row per awake group, a column per learner; a third axis where actions are vectors."""
    probabilities: Vector


class ActionReduction(Reduction):
    """Algorithm 1 on numbers, for learners whose advice are actions."""

    def __init__(
        self,
        learners: Sequence[ActionLearner],
        aggregator: Aggregator,
        loss: Loss,
        play: str | None,
        seed: int,
        width: int,
    ) -> None:
        super().__init__(learners, aggregator, loss, play, seed=seed)
        # Step 1: a learner for every group, made as groups appear.
        seats = [Seat(k, len(learners), seed) for k in range(len(learners))]
        pairs = zip(learners, seats, strict=True)
        self.action_banks: list[ActionBank] = [x.bank(loss, width, seat) for x, seat in pairs]
        self.banks = [(bank, [k]) for k, bank in enumerate(self.action_banks)]
        dimensions = {bank.dimension for bank in self.action_banks}
        if len(dimensions) > 1:
            raise ConfigurationError(
                f"The learners' actions have {sorted(dimensions)} coordinates: give learners of "
                "the same decision set."
            )
        (self.dimension,) = dimensions
        integral = all(bank.integral for bank in self.action_banks)
        self._kind: type[Any] = np.int64 if integral else np.float64
        self.comparator = self.action_banks[0].comparator

    def predict(self, number: int, awake: Awake, row: Row) -> Any:
        """Steps (a) and (b). Changes nothing."""
        # (a) Subsequence-level prediction: every awake learner gives advice.
        advice = self._advice(number, 0, awake, row)
        # (b) Prediction aggregation: draw one, with the aggregator's weights.
        probabilities = np.empty(advice.shape[:2])
        self._exponents(awake, probabilities)
        chosen = actions.predict(self.settings, self.state, *awake, number, probabilities)
        return self._play(advice, chosen, probabilities)

    def learn(
        self, number: int, awake: Awake, row: Row, label: Any, attempt: int = 0
    ) -> tuple[Any, Settlement]:
        """Step (c). Advice and play are those of the present state.

        With ``attempt`` 0 the learners' noise is that of the play; a late label, which may depend
        on what was played, needs another.
        """
        costs, offset = self.loss.linear(label)
        self._check_costs(costs)
        advice = self._advice(number, attempt, awake, row)
        probabilities = np.empty(advice.shape[:2])
        self._exponents(awake, probabilities)
        chosen = actions.predict(self.settings, self.state, *awake, number, probabilities)
        lost = np.empty_like(probabilities)
        charged = actions.score(advice, costs, offset, self.loss.unit, probabilities, lost)
        self._check_range(lost)
        # (c) Update: every awake learner with (x_t, y_t), whatever was played …
        for bank in self.action_banks:
            bank.update(awake, row, costs)
        # … and the aggregator with the losses of the advice.
        actions.update(self.state, *awake, lost, charged)
        play = self._play(advice, chosen, probabilities)
        return play, Settlement(lost, charged, float(lost.flat[chosen]))

    def score(self, play: Any, label: Any) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        costs, offset = self.loss.linear(label)
        lost = np.empty_like(play.probabilities)
        advice = np.asarray(play.advice, dtype=np.float64).reshape(*lost.shape, -1)
        charged = actions.score(advice, costs, offset, self.loss.unit, play.probabilities, lost)
        return Settlement(lost, charged, self.loss_of(play.prediction, label))

    def loss_of(self, prediction: Any, label: Any) -> float:
        """The scaled loss of one action."""
        costs, offset = self.loss.linear(label)
        return float((np.atleast_1d(prediction) @ costs + offset) / self.loss.unit)

    def check_label(self, play: Any, label: Any) -> None:
        """Raise LabelError where a play could not be settled with a label."""
        self._check_costs(self.loss.linear(label)[0])
        if len(play.probabilities):
            self._check_range(self.score(play, label).losses)

    def rest(self, row: Row) -> ActionPlay:
        """The play where nobody is awake."""
        advice = np.empty((0, len(self.learners), self.dimension))
        action = np.atleast_1d(self.action_banks[0].rest(row))
        play = self._play(action[None, None], 0, np.empty((0, len(self.learners))))
        return play._replace(advice=self._plain(advice))

    def best_loss(self, group: int) -> float | None:
        """The scaled loss of the best action or policy in hindsight, by the oracle."""
        return min(bank.best(group) for bank in self.action_banks) / self.loss.unit

    def learner_bounds(self, group: int) -> Vector | None:
        """The learners' run-time bounds; None where an oracle is a heuristic."""
        bounds = [bank.bound(group) for bank in self.action_banks]
        return None if None in bounds else np.array(bounds)

    def restart(self, groups: int, features: int) -> None:
        """Make all learners and the aggregator forget, as if no label had come."""
        del groups, features
        for bank in self.action_banks:
            bank.restart()
        self.state.regret[...] = 0.0
        self.state.absolute[...] = 0.0

    def _advice(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        advice = np.empty((awake.groups.size, len(self.learners), self.dimension))
        for bank in self.action_banks:
            bank.advise(number, attempt, awake, row, advice)
        return advice

    def _play(self, advice: Vector, chosen: int, probabilities: Vector) -> ActionPlay:
        plain = self._plain(advice)
        if self.loss.vector:
            return ActionPlay(plain.reshape(-1, self.dimension)[chosen], plain, probabilities)
        return ActionPlay(int(plain.flat[chosen]), plain, probabilities)

    def _plain(self, advice: Vector) -> Any:
        plain = advice.astype(self._kind)
        return plain if self.loss.vector else plain[:, :, 0]

    def _check_costs(self, costs: Vector) -> None:
        for bank in self.action_banks:
            bank.check(costs)

    def _check_range(self, lost: Vector) -> None:
        if lost.min() < -ROUNDING or lost.max() > 1.0 + ROUNDING:
            worst = lost.min() if lost.min() < -ROUNDING else lost.max()
            low, high = self.loss.low, self.loss.high
            raise LabelError(
                f"An advised action costs {low + worst * (high - low):g}, outside [{low:g}, "
                f"{high:g}]. Give losses.Linear(low, high) the range of what an action can cost."
            )
        np.clip(lost, 0.0, 1.0, out=lost)


class ActionRounds(Rounds):
    """Plays rounds of actions and records them."""

    reduction: ActionReduction

    def predict(self, number: int, awake: Awake, row: Row) -> Any:
        """The play for a row. Changes nothing."""
        return self.reduction.predict(number, awake, row)

    def settle(self, number: int, awake: Awake, row: Row, label: Any, late: Any = None) -> None:
        """Learn from a label and record the round; see :meth:`Rounds.settle`."""
        attempt = 0 if late is None else 1
        _, settled = self.reduction.learn(number, awake, row, label, attempt)
        played = settled if late is None else self.reduction.score(late, label)
        self.record(awake, row, label, settled, played)

    def record(
        self, awake: Awake, row: Row, label: Any, settled: Settlement, played: Settlement
    ) -> None:
        """Enter a settled round in the ledger and in the sums of hindsight."""
        baseline = float(played.losses[-1, 0]) if self.always_on else np.nan
        counted = self.counted(awake)
        self.ledger.record(counted, row, 0.0, settled, played, baseline)
        costs, offset = self.reduction.loss.linear(label)
        for bank in self.reduction.action_banks:
            bank.record(counted, row, costs, offset)

    def rest(self, row: Row) -> Any:
        """The play where nobody is awake."""
        return self.reduction.rest(row)
