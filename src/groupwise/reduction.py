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

This is the code that runs, for every model: single rounds come here, and whole stretches
(``groupwise.stream``) do step (c) for the learners first and for the aggregator afterwards, which
is the same, as learners do not depend on what is played. Learners are behind
:class:`groupwise.protocols.Bank`, be they compiled or plain Python, of numbers, labels or paths.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import LARGEST, Index, Vector
from groupwise.class_names import loss_of_class
from groupwise.dyadic import Clocks
from groupwise.errors import ConfigurationError, LabelError
from groupwise.kernels import rounds
from groupwise.kernels.compiled import ready
from groupwise.kernels.experts import EXPERTS
from groupwise.kernels.layout import address
from groupwise.kernels.losses import CODES, value
from groupwise.kernels.stretch import addressed
from groupwise.learners.crew import Crew, joint
from groupwise.learners.rosters import Rosters
from groupwise.losses import Log, Loss
from groupwise.protocols import (
    AnyAggregator,
    Awake,
    Hindsight,
    Play,
    Row,
    Said,
    Settlement,
    Stateful,
)
from groupwise.records import Records
from groupwise.regret.calibration import bins_for
from groupwise.staff import Staff
from groupwise.store import Store
from groupwise.validation import sound_play

NOBODY = 0.5
"""The scaled play where no group is awake: the middle of the range."""
ROUNDING = 1e-9
NAN = float("nan")
NONE: Index = np.zeros(0, dtype=np.int64)
_as_play = tuple.__new__  # what Play(...) does, without its frame


class Reduction(Staff, Records):
    """Algorithm 1 on numbers: groups are integers, rows are vectors, labels are encoded.

    Parameters
    ----------
    learners : the learners of every group; or :class:`Rosters`, where not all have the same.
    aggregator, loss, play, clip, seed : as for ``Groupwise``.
    width : how many features are declared; 0 where they come with the rows.
    always_on : is the last awake group of every row the always-on one? Its first learner is the
        single model to compare with.
    intercept : is there a feature that is 1 in every row?
    """

    def __init__(
        self,
        learners: Sequence[Any] | Rosters,
        aggregator: AnyAggregator,
        loss: Loss,
        play: str | None = None,
        clip: bool = True,
        seed: int = 0,
        width: int = 0,
        always_on: bool = False,
        intercept: bool = False,
    ) -> None:
        self.aggregator: Any = aggregator
        self.loss = loss
        self.play = sound_play(aggregator, loss, play, clip)
        self.always_on = always_on
        self.nobody = NOBODY
        self.stands_for = 1.0
        """How many rounds a label stands for; more than one where feedback is partial."""
        # Step 1: a learner for every group, made as groups appear.
        super().__init__(learners, loss, seed, width, intercept, always_on)
        self.actions = self.banks[0].actions
        self.in_order = list(self.banks[0].columns) == list(range(self.experts))
        """Is there one bank, whose learners are the experts in their order?"""
        # Step 2: the aggregator, with these learners as its experts; and the books.
        self.state = Store(EXPERTS, self.experts)
        self.own: Store | None = None
        """What the aggregator keeps of every expert beside that, if anything."""
        self.common = np.zeros(0)
        """What it keeps of all of them together."""
        if isinstance(aggregator, Stateful):
            self.own = Store(aggregator.records, self.experts)
            self.common = np.zeros(len(aggregator.common))
        self.books = Store(rounds.BOOKS, self.experts)
        self.bins: Store | None = None
        """What calibration is found from, where predictions are probabilities."""
        if isinstance(loss, Log):
            self.bins = bins_for(1 if loss.nodes == 1 else loss.nodes + 1)
        low, high = loss.advice_range if clip else (-np.inf, np.inf)
        self._wild = not self.actions and low == -np.inf
        """May advice be large? It must leave room for squares of it and for sums of those."""
        most = LARGEST if self._wild else np.finfo(np.float64).max
        self.largest = np.zeros(1)
        self.restarts = 0
        """How often everybody has forgotten, which the books do not."""
        self.earlier: Vector | None = None
        """The aggregator's bounds up to when it last began anew, by group and expert."""
        self._settings = rounds.Settings(
            aggregator=rounds.AGGREGATORS[getattr(aggregator, "kernel", "")],
            play=rounds.PLAYS[self.play],
            loss=CODES[loss.kernel],
            seed=seed,
            numbers=np.array([loss.eta or 0.0, loss.scale, low, high, most]),
            largest=self.largest,
            experts=0,
            books=0,
            bins=0,
            own=0,
            common=self.common,
        )
        self.in_python = self._settings.aggregator == rounds.GIVEN
        """Is the aggregator written in Python?"""
        alone = self.in_order and not self.in_python and isinstance(self.banks[0], Crew)
        self._crew: Any = self.banks[0] if alone else None
        """Who gives advice and is updated, where there is nobody else."""
        self._baseline = rounds.LAST if always_on else rounds.NOBODY
        self.windows: Clocks | None = None
        """The clocks of the groups, where stretches of their own time are groups as well."""
        self._hand_over()

    def _hand_over(self) -> None:
        """What kernels need to know, as one message."""
        experts, books = self.state.address, self.books.address
        bins = self.bins.address if self.bins is not None and self.loss.nodes == 1 else 0
        own = 0 if self.own is None else self.own.address
        stores = {"experts": experts, "books": books, "bins": bins, "own": own}
        settings = self._settings._replace(largest=self.largest, common=self.common, **stores)
        self._message = rounds.SETTINGS.pack(settings)
        self._address = address(self._message)
        self._predict, self._settle = ready(rounds.SIGNATURES)

    # The three steps of a round.

    def predict(self, number: int, awake: Awake, row: Row) -> Play:
        """Steps (a) and (b). Changes nothing."""
        if self.windows is not None:
            awake = self.windows.around(awake)
        # (a) Subsequence-level prediction: every awake learner gives advice.
        said = (self._crew or self).advice(number, 0, awake, row)
        # (b) Prediction aggregation: the weights over the awake learners make a play.
        return self._played(number, awake, said)

    def learn(
        self, number: int, awake: Awake, row: Row, label: Any, late: Play | None = None
    ) -> Any:
        """Step (c), and the entry in the books; returns what would be played now.

        Advice and play are those of the present state, which is the one that the update changes, as
        the proofs need. ``late`` is what was played, where other labels have come since: the books
        are charged with it, and keep the difference as the delay term.
        """
        groups = awake.groups
        if self.windows is not None:
            awake = self.windows.around(awake)
        # (c) Update: every awake learner with (x_t, y_t), whatever was played …
        again = 0 if late is None else 1
        if late is not None and self._wild:  # labels have come since somebody looked at the advice
            self._played(number, awake, (self._crew or self).advice(number, again, awake, row))
        said = (self._crew or self).updated(number, again, awake, row, label, self.stands_for)
        # … and the aggregator with the losses of the advice.
        play = self.settle(number, awake, said, label, late)
        if self.windows is not None:
            self.windows.turn(self, groups)
        return play

    def settle(
        self, number: int, awake: Awake, said: Any, label: Any, late: Play | None = None
    ) -> Any:
        """The second half of step (c), after the learners spoke and were updated."""
        place, share = awake.address or addressed(awake), self.stands_for
        issued = played = realised = single = NAN
        if late is not None:
            issued = late.prediction
            losses, played, realised = Reduction.score(self, late, label)
            single = float(losses[-1, 0]) if self.always_on else NAN
        if not self.actions:
            books, baseline = self._address, self._baseline
            play = self._settle(
                books, place, number, label, share, baseline, said, issued, played, realised, single
            )
            if play != play:
                raise self.refusal(said[0, : len(awake.groups)], awake.groups)
            return play
        losses, charged = said.losses, said.charged
        if late is None:
            played, realised = charged, float(losses.flat[said.chosen])
            single = float(losses[-1, 0]) if self.always_on else NAN
        entry = losses, charged, played, realised, single
        rounds.absorb_and_enter(self._address, place, share, *entry)
        return said.chosen

    # What the steps are made of.

    def advice(self, number: int, attempt: int, awake: Awake, row: Row) -> Any:
        """What all awake experts advise, with room for the weights over them."""
        if self.actions:
            parts = [bank.advise(number, attempt, awake, row) for bank in self.banks]
            advice = parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1)
            return Said(advice, np.empty(advice.shape[:2]))
        said = np.empty((2, len(awake.groups), self.experts))
        for bank in self.banks:
            said[0][:, bank.columns] = bank.advise(number, attempt, awake, row)
        return said

    def updated(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Any:
        """The same as of now, and then the learners are updated; all of them or, on error, none."""
        if self.actions:
            chosen = self._weighed(number, awake, self.advice(number, attempt, awake, row))
            costs = self.loss.linear(label)
            losses, charged = self.scored(chosen.advice, chosen.probabilities, costs)
            for bank in self.banks:
                bank.update(awake, row, costs)
                bank.record(awake, row, costs, stands_for)
            return chosen._replace(losses=losses, charged=charged)
        said = np.empty((3, len(awake.groups), self.experts))
        if self.in_python:  # first: it may raise, and then nothing has changed
            self._exponents(awake, said[1])
        for bank in reversed(self.banks):  # the compiled ones last: they cannot fail
            advice = bank.step(number, attempt, awake, row, label, stands_for)
            said[0][:, bank.columns] = advice
        return said

    def _played(self, number: int, awake: Awake, said: Any) -> Play:
        """The weights over the awake experts, and the play that they make."""
        if self.actions:
            return self._action(self._weighed(number, awake, said))
        if self.in_python:
            self._exponents(awake, said[1])
        place = awake.address or addressed(awake)
        play = self._predict(self._address, place, number, said)
        if play != play:
            raise self.refusal(said[0], awake.groups)
        return _as_play(Play, (play, said))

    def _weighed(self, number: int, awake: Awake, said: "Said") -> "Said":
        """Actions with the weights over them, and the flat place of the one to follow."""
        if self.in_python:
            self._exponents(awake, said.probabilities)
        chosen = rounds.follow(self._address, addressed(awake), number, said.probabilities)
        return said._replace(chosen=int(chosen))

    def _action(self, said: "Said") -> Play:
        """A play of actions, in whole numbers where they are such."""
        advice, probabilities = said.advice, said.probabilities
        whole = all(getattr(bank, "integral", False) for bank in self.banks)
        if self.banks[0].dimension == 0:  # fixed policies: as what they said shows
            whole = bool(((advice == 0.0) | (advice == 1.0)).all())
        advice = advice.astype(np.int64 if whole else np.float64)
        action = advice.reshape(-1, advice.shape[2])[said.chosen]
        advice = advice[: len(probabilities)]
        if self.loss.vector:
            return Play(action, (advice, probabilities))
        return Play(int(action[0]), (advice[:, :, 0], probabilities))

    def _exponents(self, awake: Awake, out: Vector) -> None:
        """ln w of the awake experts, from an aggregator that is not compiled."""
        own = [self.state.of(group) for group in awake.groups.tolist()]
        regret, absolute = (np.array([x[i] for x in own]) for i in range(2))
        out[:] = self.aggregator.log_weights(regret, absolute, self.loss)
        if not (out < np.inf).all():
            raise ConfigurationError(
                f"{type(self.aggregator).__name__}.log_weights gave {out[~(out < np.inf)][0]}. "
                "Logarithms of weights must be numbers, or minus infinity for no weight."
            )

    def refusal(self, advice: Vector, groups: Index) -> ConfigurationError:
        """The error for advice of groups of which some is not a number, or too large."""
        return self.refused(advice, groups, float(self._settings.numbers[-1]))

    def room(self, rows: int, entries: int) -> tuple[Vector, Vector, Vector]:
        """Room for the predictions of a stretch, for advice, and for advice as learners give it."""
        advice = np.empty((entries, self.experts))
        return np.empty(rows), advice, advice

    def read(self, said: Vector, advice: Vector) -> None:
        """Make advice of what learners gave; here they are the same."""

    def settle_stream(self, *rows: Any) -> int:
        """The second half of step (c) for many rows; see ``kernels.rounds.settle_stream``."""
        return int(rounds.settle_stream(self._address, *rows))

    def conclude(
        self, number: int, awake: Awake, said: Vector, label: float, baseline: int
    ) -> tuple[float, float, float]:
        """The same for one row: its prediction, and what it lost in expectation and really."""
        self._exponents(awake, said[1])
        place, was = addressed(awake), (NAN, NAN, NAN, NAN)
        prediction = self._settle(self._address, place, number, label, 1.0, baseline, said, *was)
        if prediction != prediction:
            raise self.refusal(said[0], awake.groups)
        _, expected, realised = self.score(Play(prediction, said[:2]), label)
        return prediction, expected, realised

    def follow_up(self, work: Any, baseline: int) -> Any:
        """What is left to do for rows of a stretch that are settled; returns their outcome."""
        return work.outcome

    # Losses.

    def score(self, play: Play, label: Any) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        if self.actions:
            costs = self.loss.linear(label)
            losses, charged = self.banks[0].score(play.advice, play.probabilities, costs)
            return Settlement(losses, charged, self.loss_of(play.prediction, label))
        losses = np.empty_like(play.advice)
        figures = rounds.score(self._address, play.prediction, label, play.said, losses)
        return Settlement(losses, *figures)

    def loss_of(self, prediction: Any, label: Any) -> float:
        """The scaled loss of one prediction."""
        if self.actions:
            costs, offset = self.loss.linear(label)
            return float((np.atleast_1d(prediction) @ costs + offset) / self.loss.unit)
        names = self.loss.classes
        if names is not None and (isinstance(prediction, Mapping) or np.ndim(prediction) > 0):
            return loss_of_class(prediction, names, int(label)) / self.loss.scale
        return float(value(self._settings.loss, self.loss.scale, prediction, label))

    def scored(self, advice: Any, probabilities: Vector, costs: Any) -> tuple[Vector, float]:
        """Actions: their losses and the expected one; LabelError where they leave the range."""
        for bank in self.banks:
            bank.check(costs)
        lost, charged = self.banks[0].score(advice, probabilities, costs)
        if lost.size and (lost.min() < -ROUNDING or lost.max() > 1.0 + ROUNDING):
            worst = lost.min() if lost.min() < -ROUNDING else lost.max()
            low, high = self.loss.low, self.loss.high
            raise LabelError(
                f"An advised action costs {low + worst * (high - low):g}, outside [{low:g}, "
                f"{high:g}]. Give losses.Linear(low, high) the range of what an action can cost."
            )
        return np.clip(lost, 0.0, 1.0, out=lost), charged

    def check_label(self, play: Play, label: Any) -> None:
        """Raise LabelError where a play could not be settled with a label; numbers always can."""
        if self.actions:
            self.scored(play.advice, play.probabilities, self.loss.linear(label))

    def rest(self, row: Row) -> Play:
        """The play where nobody is awake: the middle of the range, or what an oracle says."""
        if not self.actions:
            return Play(self.nobody, np.empty((2, 0, self.experts)))
        action = np.atleast_1d(self.banks[0].rest(row))
        every = np.broadcast_to(action, (1, self.experts, action.size))
        return self._action(Said(every, np.empty((0, self.experts))))

    # What is known about groups.

    def hindsight(self, group: int, features: int) -> Hindsight | None:
        """The scaled loss of the best of the class on a group; None where nobody knows it."""
        found = [bank.hindsight(group, features) for bank in self.banks]
        known = (best for best in found if best is not None)
        every = (x if isinstance(x, Hindsight) else Hindsight(x) for x in known)
        return min(every, key=lambda one: one.best, default=None)

    def elsewhere(self, group: int, of: int) -> float:
        """What the best of the class for the group ``of`` would have lost on ``group``, scaled."""
        return self.banks[0].elsewhere(group, of)

    def bounds(self, group: int) -> Vector | None:
        """Bounds on the learners' regret on a group; None where what they realised is used."""
        return joint([bank.bounds(group) for bank in self.banks])

    def a_priori(self, group: int, rounds: float, known: Hindsight) -> float | None:
        """The least of the learners' bounds of before the first row; None where there is none."""
        found = [bank.a_priori(group, rounds, known, self.clipped) for bank in self.banks]
        return min((bound for bound in found if bound is not None), default=None)

    @property
    def sampled(self) -> bool:
        """Is a constant of the learners' bounds sampled, with a margin?"""
        return any(getattr(bank, "sampled", False) for bank in self.banks)

    @property
    def clipped(self) -> bool:
        """Is all advice within a range? Actions always are."""
        return not self._wild

    @property
    def issued_bins(self) -> Store | None:
        """The bins of what was predicted; None where that was no probability."""
        return self.bins

    def issued_loss(self, group: int) -> float | None:
        """The scaled loss of what was predicted, where that is not the play in the books."""
        return None

    @property
    def compiled(self) -> bool:
        """Do the aggregator and all learners run without the interpreter?"""
        return not self.in_python and all(bank.compiled for bank in self.banks)

    # Room, and beginning again.

    def reserve(
        self,
        groups: Index,
        features: int,
        new: Index = NONE,
        masses: Sequence[float] | Vector = (),
        rosters: Sequence[int] = (),
    ) -> None:
        """Make room for these groups and so many features; ``new`` ones weigh ``masses``.

        ``rosters`` are theirs, where not all groups have the same learners. A slot that no label
        has reached is an expert that slept so far, so reserving one for a prediction changes no
        other prediction.
        """
        if self.windows is not None and len(masses):
            self.windows.welcome(self, new)
        if self.divided is not None and len(rosters):
            self.divided.assign(new, rosters)
        shares = self.shares(masses, new)
        if self.windows is not None and len(masses):
            self.windows.mass[new] = shares
        for store in self.records().values():
            store.reserve(groups, 0)
        for bank in self.banks:
            bank.reserve(groups, features)
        if len(masses):
            self.state.fill("mass", new, shares)

    def enlist(self, learners: Sequence[Any]) -> int:
        """The number of the roster that has these learners, made where there is none."""
        number = self.found_or_made(learners)
        most = len(self.banks[0].columns)
        if most > self.experts:  # than any group had
            self.experts = most
            self.state, self.books = self.state.longer(most), self.books.longer(most)
            self.own = None if self.own is None else self.own.longer(most)
            if self.windows is not None:
                self.windows.widen(most)
            self._hand_over()
        return number

    def restart(self) -> None:
        """Make all learners and the aggregator forget, as if no label had come."""
        if self.windows is not None:
            self.windows.restart(self)
        for bank in self.banks:
            bank.restart()
        self.restarts += 1
        self._forget()

    def save(self, groups: int, features: int) -> dict[str, Any]:
        """Everything that was learned and recorded, as arrays by name."""
        found: dict[str, Any] = {}
        if self.windows is not None:
            found |= self.windows.save(groups)
            groups = self.windows.tidy(self, groups)
        found |= self.save_settled(groups)
        for bank in self.banks:
            found |= bank.save(groups, features)
        return found

    def load(self, arrays: dict[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""
        known = groups
        if self.windows is not None:
            groups = self.windows.load(arrays, known)
        self.load_settled(arrays, groups)
        for bank in self.banks:
            bank.load(arrays, groups, features)
        mass = self.state.column("mass", groups)
        if ((mass > 0.0) != self.present(np.arange(groups))).any():
            raise ValueError("aggregator.mass does not fit the groups' learners")
        if self.windows is not None:
            self.windows.loaded(self, known)

    def __getstate__(self) -> dict[str, Any]:
        left_out = ("_message", "_address", "_predict", "_settle")
        return {key: value for key, value in self.__dict__.items() if key not in left_out}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._hand_over()
