"""Algorithm 1: one no-regret learner per group, combined by a sleeping-experts aggregator.

Acharya, Arunachaleswaran, Kannan, Roth and Ziani, "Oracle Efficient Algorithms for Groupwise
Regret", ICLR 2024. In the paper's words, for the groups (subsequences) I in 𝓘:

1. an instance 𝒵_I of an external-regret learner for every group I;
2. an instance 𝒵 of AdaNormalHedge with {𝒵_I} as its experts;
3. for t = 1, 2, …, T:

   a. *subsequence-level prediction*: observe x_t; every awake 𝒵_I gives advice;
   b. *prediction aggregation*: 𝒵 turns its weights over the awake 𝒵_I into a play;
   c. *update*: observe y_t; 𝒵 is updated with the losses of the advice, and every awake 𝒵_I with
      (x_t, y_t), whatever was played.

Guarantee: the regret on a group is at most that of the group's learner on its own rounds plus that
of the aggregator to this learner on the rounds where it is awake.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.errors import ConfigurationError
from groupwise.kernels import losses, rounds
from groupwise.learners.objects import ObjectBank
from groupwise.learners.ridge import Ridge, RidgeBank
from groupwise.losses import Loss
from groupwise.protocols import Aggregator, Awake, Row
from groupwise.states import AggregatorState, Settings, Vector

PLAYS = {"mean": 0, "sample": 1, "substitution": 2}


class Play(NamedTuple):
    """What was played, and why; scaled to [0, 1]."""

    prediction: float
    said: Vector

    @property
    def advice(self) -> Vector:
        """What each awake expert advised: a row per group, a column per learner."""
        advice: Vector = self.said[0]
        return advice

    @property
    def probabilities(self) -> Vector:
        """The aggregator's weights over them."""
        probabilities: Vector = self.said[1]
        return probabilities


class Settlement(NamedTuple):
    """What a label said about a round; scaled losses."""

    losses: Vector
    """ℓ_i of the experts' advice."""
    charged: float
    """ℓ̂ of the play, which the aggregator is updated with."""
    realised: float
    """The loss of the prediction itself; differs from ``charged`` where the play is sampled."""


class Reduction:
    """Algorithm 1 on numbers: groups are integers, rows are vectors, labels are in [0, 1]."""

    comparator = "the group's own best learner"
    """What ``best_loss`` is the loss of."""

    def __init__(
        self,
        learners: Sequence[Any],
        aggregator: Aggregator,
        loss: Loss,
        play: str | None = None,
        clip: bool = True,
        seed: int = 0,
    ) -> None:
        self.learners = tuple(learners)
        self.aggregator = aggregator
        self.loss = loss
        self.play = sound_play(aggregator, loss, play, clip)
        low, high = loss.advice_range if clip else (-np.inf, np.inf)
        assert loss.kernel is not None
        self.settings = Settings(
            aggregator=getattr(aggregator, "kernel", rounds.GIVEN),
            play=PLAYS[self.play],
            loss=loss.kernel,
            seed=seed,
            eta=loss.eta or 0.0,
            scale=loss.scale,
            low=low,
            high=high,
        )
        # Step 1: a learner for every group, made as groups appear.
        self.banks = learner_banks(self.learners)
        # Step 2: the aggregator, with these learners as its experts.
        none = np.zeros((0, len(self.learners)))
        self.state = AggregatorState(none, none, none, np.zeros(1))

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """Steps (a) and (b). Changes nothing."""
        said = np.empty((2, awake.groups.size, len(self.learners)))
        # (a) Subsequence-level prediction: every awake learner gives advice.
        for bank, columns in self.banks:
            said[0][:, columns] = bank.advise(awake, row)
        # (b) Prediction aggregation: the weights over the awake learners make a play.
        self._exponents(awake, said[1])
        prediction = rounds.predict(self.settings, self.state, *awake, number, said[0], said[1])
        return Play(prediction, said)

    def learn(self, number: int, awake: Awake, row: Row, label: float) -> tuple[Play, Settlement]:
        """Step (c). Advice and play are those of the present state.

        That is the state which the update changes, as the proofs need; where other labels came
        first, what was played may differ, and the ledger keeps the difference as the delay term.
        """
        said = np.empty((3, awake.groups.size, len(self.learners)))
        self._exponents(awake, said[1])  # first: it may raise, and then nothing has changed
        # (c) Update: every awake learner with (x_t, y_t), whatever was played …
        for bank, columns in self.banks:
            said[0][:, columns] = bank.step(awake, row, label)
        # … and the aggregator with the losses of the advice.
        prediction, charged, realised = rounds.settle(
            self.settings, self.state, *awake, number, said[0], label, said[1], said[2]
        )
        return Play(prediction, said), Settlement(said[2], charged, realised)

    def score(self, play: Play, label: float) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        lost = np.empty_like(play.advice)
        charged, realised = rounds.score(
            self.settings, play.prediction, label, play.advice, play.probabilities, lost
        )
        return Settlement(lost, charged, realised)

    def check_label(self, play: Play, label: float) -> None:
        """Raise LabelError where a play could not be settled with a label; numbers always can."""

    def loss_of(self, prediction: float, label: float) -> float:
        """The scaled loss of one prediction."""
        return float(losses.value(self.settings.loss, self.settings.scale, prediction, label))

    def best_loss(self, group: int) -> float | None:
        """The scaled loss of the best of the class on a group, where an oracle knows it."""
        del group
        return None

    def learner_bounds(self, group: int) -> Vector | None:
        """Bounds on the learners' regret on a group; None where what they realised is used."""
        del group
        return None

    def restart(self, groups: int, features: int) -> None:
        """Make all learners and the aggregator forget, as if no label had come."""
        self.banks = learner_banks(self.learners)
        self.reserve(groups, features)
        self.state.regret[...] = 0.0
        self.state.absolute[...] = 0.0

    def reserve(self, groups: int, features: int, masses: Sequence[float] | Vector = ()) -> None:
        """Make room for this many groups and features; the newest groups weigh ``masses``.

        A slot that no label has reached is an expert that slept so far, so reserving one for a
        prediction changes no other prediction.
        """
        for bank, _ in self.banks:
            bank.reserve(groups, features)
        regret, absolute, mass, largest = self.state
        if groups > len(mass):
            shape = (capacity(groups, len(mass)), len(self.learners))
            self.state = AggregatorState(
                enlarge(regret, shape), enlarge(absolute, shape), enlarge(mass, shape), largest
            )
        if len(masses):
            fresh = np.asarray(masses)[:, None] / len(self.learners)
            self.state.mass[groups - len(masses) : groups] = fresh

    @property
    def compiled(self) -> bool:
        """Are the aggregator and all learners compiled?"""
        given = self.settings.aggregator == rounds.GIVEN
        return not given and all(isinstance(x, Ridge) for x in self.learners)

    def _exponents(self, awake: Awake, out: Vector) -> None:
        """ln w of the awake experts, where the aggregator is not compiled."""
        if self.settings.aggregator == rounds.GIVEN:
            regret, absolute = self.state.regret[awake.groups], self.state.absolute[awake.groups]
            out[:] = self.aggregator.log_weights(regret, absolute, self.loss)


def sound_play(aggregator: Aggregator, loss: Loss, play: str | None, clip: bool) -> str:
    """The play to use: the one asked for if it is sound, the preferred one if none was."""
    plays = aggregator.plays(loss)
    if not clip and "substitution" in plays:
        raise ConfigurationError(
            f"{type(aggregator).__name__} needs advice within the label range: leave clip=True."
        )
    if play is None:
        return plays[0]
    if play not in PLAYS:
        raise ConfigurationError(f'play must be "mean" or "sample" or None, not {play!r}.')
    if play not in plays:
        raise ConfigurationError(
            f"play={play!r} has no guarantee for {loss} with {type(aggregator).__name__}; "
            f"use play={plays[0]!r}, or leave it out."
        )
    return play


def learner_banks(learners: Sequence[Any]) -> list[tuple[Any, list[int]]]:
    """The compiled learners in one bank, the others in another, with their columns."""
    ridges = [k for k, learner in enumerate(learners) if isinstance(learner, Ridge)]
    others = [k for k in range(len(learners)) if k not in ridges]
    banks: list[tuple[Any, list[int]]] = []
    if others:  # first: these may raise, and then nothing has changed
        prototypes = [x for x in learners if not isinstance(x, Ridge)]
        banks.append((ObjectBank(prototypes), others))
    if ridges:
        banks.append((RidgeBank([x for x in learners if isinstance(x, Ridge)]), ridges))
    return banks
