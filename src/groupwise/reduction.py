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
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.arrays import capacity, enlarge
from groupwise.errors import ConfigurationError
from groupwise.learners.objects import ObjectBank
from groupwise.learners.ridge import Ridge, RidgeBank
from groupwise.losses import Loss
from groupwise.protocols import Aggregator, Awake, Learner, Row, Vector

if TYPE_CHECKING:
    from groupwise.stream import Chunk, Outcome

PLAYS = {"mean": 0, "sample": 1, "substitution": 2}


class AggregatorState(NamedTuple):
    """The aggregator's state: one entry per expert, a (group, learner) pair."""

    regret: Vector
    """R_i = Σ I_i(ℓ̂ − ℓ_i)."""
    absolute: Vector
    """C_i = Σ |I_i(ℓ̂ − ℓ_i)|."""
    mass: Vector
    """The prior mass m_i, given when the expert is made and never changed."""
    largest: Vector
    """The largest |r_i| of any expert in any round; above 1 the guarantee is void."""


class Settings(NamedTuple):
    """What the kernels need to know, as plain numbers."""

    aggregator: int
    eta: float
    play: int
    loss: int
    scale: float
    low: float
    high: float
    seed: int


class Play(NamedTuple):
    """What was played, and why; scaled to [0, 1]."""

    prediction: float
    advice: Vector
    probabilities: Vector


class Settlement(NamedTuple):
    """What a label said about a round; scaled losses."""

    losses: Vector
    """ℓ_i of the experts' advice as of now."""
    charged: float
    """ℓ̂ of the play as of now, which the update used."""
    realised: float
    """The loss of the prediction itself; differs from ``charged`` where the play is sampled."""


class Reduction:
    """Algorithm 1 on numbers: groups are integers, rows are vectors, labels are in [0, 1]."""

    def __init__(
        self,
        learners: Sequence[Ridge | Learner],
        aggregator: Aggregator,
        loss: Loss,
        play: str | None = None,
        clip: bool = True,
        seed: int = 0,
    ) -> None:
        from groupwise.kernels import rounds

        self._rounds = rounds
        self.learners = tuple(learners)
        self.aggregator = aggregator
        self.loss = loss
        self.play = sound_play(aggregator, loss, play, clip)
        low, high = loss.advice_range if clip else (-np.inf, np.inf)
        assert loss.kernel is not None
        self.settings = Settings(
            aggregator=getattr(aggregator, "kernel", rounds.GIVEN),
            eta=loss.eta or 0.0,
            play=PLAYS[self.play],
            loss=loss.kernel,
            scale=loss.scale,
            low=low,
            high=high,
            seed=seed,
        )
        self.banks = _banks(self.learners, seed)
        self._groups = 0
        count = len(self.learners)
        self.state = AggregatorState(
            np.zeros((0, count)), np.zeros((0, count)), np.zeros((0, count)), np.zeros(1)
        )

    @property
    def compiled(self) -> bool:
        """Are the learners and the aggregator all compiled?"""
        return self.settings.aggregator != self._rounds.GIVEN and all(
            isinstance(bank, RidgeBank) for bank, _ in self.banks
        )

    def reserve(self, groups: int, features: int, masses: Sequence[float] = ()) -> None:
        """Make room for this many groups and features; the newest groups weigh ``masses``.

        A slot that no label has reached is an expert that slept so far, so reserving one for a
        prediction changes no other prediction.
        """
        for bank, _ in self.banks:
            bank.reserve(groups, features)
        if groups > self._groups:
            shape = (capacity(groups, self._groups), len(self.learners))
            regret, absolute, mass, largest = self.state
            self.state = AggregatorState(
                enlarge(regret, shape), enlarge(absolute, shape), enlarge(mass, shape), largest
            )
            self._groups = shape[0]
        if masses:
            fresh = np.asarray(masses)[:, None] / len(self.learners)
            self.state.mass[groups - len(masses) : groups] = fresh

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """Steps (a) and (b). Changes nothing."""
        advice = np.empty((awake.groups.size, len(self.learners)))
        self._each(lambda bank, out: bank.advise(awake, row, out), advice)  # (a)
        probabilities = self._exponents(awake, advice)
        prediction = self._rounds.predict(  # (b)
            self.settings, self.state, awake.groups, awake.weights, number, advice, probabilities
        )
        return Play(prediction, advice, probabilities)

    def learn(
        self, number: int, awake: Awake, row: Row, label: float
    ) -> tuple[Play, Settlement]:
        """Step (c). Advice and play are those of the present state.

        That is the state which the update changes, as the proofs need; where other labels came
        first, what was played may differ, and the ledger keeps the difference as the delay term.
        """
        advice = np.empty((awake.groups.size, len(self.learners)))
        self._each(lambda bank, out: bank.step(awake, row, label, out), advice)
        probabilities = self._exponents(awake, advice)
        losses = np.empty_like(advice)
        prediction, charged, realised = self._rounds.settle(  # (c)
            self.settings,
            self.state,
            awake.groups,
            awake.weights,
            number,
            advice,
            label,
            probabilities,
            losses,
        )
        return Play(prediction, advice, probabilities), Settlement(losses, charged, realised)

    def settle_stream(self, chunk: "Chunk", outcome: "Outcome", number: int, nobody: float) -> (
        Vector
    ):
        """The aggregator's part of step (c) for all rows of a chunk; returns the experts' losses."""
        losses = np.empty_like(outcome.advice)
        self._rounds.settle_stream(
            self.settings,
            self.state,
            chunk.member_indptr,
            chunk.groups,
            chunk.weights,
            outcome.advice,
            chunk.labels,
            number,
            nobody,
            outcome.prediction,
            outcome.expected,
            outcome.realised,
            outcome.probabilities,
            losses,
        )
        return losses

    def loss_of(self, prediction: float, label: float) -> float:
        """The scaled loss of one prediction."""
        return float(self._rounds.value(self.settings.loss, self.settings.scale, prediction, label))

    def score(self, play: Play, label: float) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        losses = np.empty_like(play.advice)
        charged, realised = self._rounds.score(
            self.settings, play.prediction, label, play.advice, play.probabilities, losses
        )
        return Settlement(losses, charged, realised)

    def _exponents(self, awake: Awake, advice: Vector) -> Vector:
        """Where the probabilities go; they come holding ln w if the aggregator is not compiled."""
        if self.settings.aggregator != self._rounds.GIVEN:
            return np.empty_like(advice)
        regret, absolute = self.state.regret[awake.groups], self.state.absolute[awake.groups]
        return np.ascontiguousarray(self.aggregator.log_weights(regret, absolute, self.loss))

    def _each(self, call: Any, out: Vector) -> None:
        """Let every bank of learners fill its columns of ``out``."""
        if len(self.banks) == 1:
            call(self.banks[0][0], out)
            return
        for bank, columns in self.banks:
            part = np.empty((out.shape[0], len(columns)))
            call(bank, part)
            out[:, columns] = part


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


def _banks(learners: Sequence[Ridge | Learner], seed: int) -> list[tuple[Any, list[int]]]:
    """The compiled learners in one bank, the others in another, with their columns."""
    ridges = [k for k, learner in enumerate(learners) if isinstance(learner, Ridge)]
    others = [k for k in range(len(learners)) if k not in ridges]
    banks: list[tuple[Any, list[int]]] = []
    if others:  # first: these may raise, and then nothing has changed
        prototypes = [x for x in learners if not isinstance(x, Ridge)]
        banks.append((ObjectBank(prototypes, seed), others))
    if ridges:
        banks.append((RidgeBank([x for x in learners if isinstance(x, Ridge)]), ridges))
    return banks
