"""Groupwise: the object people hold."""

import copy
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from groupwise import snapshot
from groupwise.action_models import (
    action_encoder,
    action_rounds,
    plays_actions,
    refuse_replay,
)
from groupwise.configuration import (
    AnyLearner,
    as_aggregator,
    as_learners,
    as_loss,
    checked_prior,
    checked_seed,
    with_intersections,
)
from groupwise.errors import TicketError
from groupwise.features import Encoder
from groupwise.groups import Group, Groups, Member
from groupwise.kernels import compiling
from groupwise.losses import Loss
from groupwise.protocols import Aggregator
from groupwise.reduction import Reduction
from groupwise.registry import Registry
from groupwise.regret.ledger import Ledger, keeps_sums
from groupwise.regret.table import RegretTable, regret_table
from groupwise.replay_frames import FrameReplay, replay_frames
from groupwise.rounds import Rounds, rounds_for
from groupwise.ticket import Settled, Ticket

KEY_BYTES = 16


class Groupwise:
    """Predictions for a stream of individuals, with a regret guarantee for every group at once.

    One no-regret learner per group and one aggregator over the awake ones (Algorithm 1 of the
    paper; ``groupwise.reduction``).

    Parameters
    ----------
    groups : declarations by ``gw.by``, ``gw.cut``, ``gw.where``, ``gw.weight``, ``gw.pairs``.
    learner : the per-group learner, or a list of them: the guarantee is then against the best of
        them on each group. ``learners.Ridge()`` by default.
    aggregator : ``aggregators.AdaNormalHedge()`` by default, or ``aggregators.Specialists()``.
    loss : ``losses.Square(low, high)`` with the range of your labels.
    features : None for every field; a list of names; or {name: (low, high)} to scale to [0, 1],
        {name: None} for text or for a number as it is.
    indicators : append a 0/1 feature for each declared group that is not a one-hot level already.
    play : None for the aggregator's preferred play; "mean" or "sample" where that is sound.
    clip : clip advice to the label range.
    always_on : add a group that every row is in; its learner is the single-model baseline.
    seed : names all the randomness there is.
    prior : {group name: mass}. A mass is fixed when its group appears: the one named here, or 1, or
        for the n-th group from ``gw.pairs`` or ``intersections`` 1/n(n + 1). All pairs together
        then weigh less than one declared group, whose certificates hardly pay for them.
    intersections : 2 adds the intersection of every two declared groups, as they are first seen.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([gw.by("sex"), gw.by("smoker")], loss=gw.losses.Square(0, 50_000))
    >>> ticket = model.predict({"sex": "male", "smoker": "no", "age": 0.4})
    >>> list(ticket.groups)
    ['sex=male', 'smoker=no', 'always_on']
    >>> model.learn(ticket, 4_500)
    >>> model.regret()["sex=male"]["rounds"]
    1.0

    Guarantee
    ---------
    After every label and for every group, regret ≤ certificate, as ``model.regret()`` shows both.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        learner: AnyLearner | Sequence[AnyLearner] | None = None,
        aggregator: Aggregator | None = None,
        loss: Loss | None = None,
        features: Sequence[str] | Mapping[str, tuple[float, float] | None] | None = None,
        indicators: bool = True,
        play: str | None = None,
        clip: bool = True,
        always_on: bool = True,
        seed: int = 0,
        prior: Mapping[str, float] | None = None,
        intersections: int | None = None,
    ) -> None:
        self.intersections = intersections
        self.declarations = tuple(groups) if isinstance(groups, (list, tuple)) else groups
        self.groups = Groups(with_intersections(self.declarations, intersections), always_on)
        self.learners = as_learners(learner)
        self.aggregator = as_aggregator(aggregator)
        self.loss = as_loss(loss)
        self.features = features
        self.indicators = indicators
        self.clip = clip
        self.seed = checked_seed(seed)
        self.prior = checked_prior(prior)
        with compiling():
            self._encoder, self._rounds = self._parts(play, always_on)
        self._reduction, self._ledger = self._rounds.reduction, self._rounds.ledger
        self.play = self._reduction.play
        self._registry = Registry(self.groups, self.prior)
        self._key = os.urandom(KEY_BYTES)
        self._next = 0
        self._settled = Settled()
        self._version = 0

    def predict(self, row: Mapping[str, Any]) -> Ticket:
        """The prediction for a row, as a ticket to settle with its label. Changes nothing else."""
        ticket = self._ticket(row)
        self._next += 1
        return ticket

    def predict_one(self, row: Mapping[str, Any]) -> Any:
        """The prediction that the next ticket would hold; no ticket is issued."""
        return self._ticket(row).prediction

    def learn(self, ticket: Ticket, y: Any) -> None:
        """Settle a ticket with its label: now or much later, in any order, once."""
        self._check(ticket)
        label = self.loss.encode(y)
        if ticket.members:
            self._learn(ticket, label)
        self._settle(ticket.number)

    def learn_one(self, row: Mapping[str, Any], y: Any) -> None:
        """Learn from a row whose label is known at once; no ticket to keep."""
        self.learn(self.predict(row), y)

    def forget(self, ticket: Ticket) -> None:
        """Drop a ticket whose label will never come; its number counts as settled."""
        self._check(ticket)
        self._settle(ticket.number)

    def regret(self) -> RegretTable:
        """Regret and certificate of every group over the settled rounds."""
        return regret_table(
            self._reduction,
            self._ledger,
            self._registry.names,
            len(self._encoder.names),
            self._version,
        )

    def replay(
        self,
        frame: Any,
        target: str,
        jobs: int | None = None,
        progress: bool = False,
    ) -> FrameReplay:
        """Predict and learn every row of a frame in order, at compiled speed.

        The same numbers as the loop ``model.learn_one(row, y)``, bit for bit, and the model goes on
        from there. A call that raises leaves the model as it was.

        Parameters
        ----------
        frame : a frame of pandas, polars or pyarrow; or an iterable of frames, taken one after
            another, so that the stream need not fit in memory.
        target : the column of the labels.
        jobs : threads; one per core by default. The numbers do not depend on it.
        progress : show a progress bar.
        """
        refuse_replay(self.learners)
        return replay_frames(self, frame, target, jobs, progress)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model to one file, which :func:`groupwise.load` resumes from bit for bit."""
        snapshot.save(self, path)

    def _parts(self, play: str | None, always_on: bool) -> tuple[Encoder, Rounds]:
        """What turns rows into numbers, and what plays and records rounds."""
        if plays_actions(self.learners):
            encoder = action_encoder(self.learners, self.features, self.groups)
            return encoder, action_rounds(
                self.learners,
                self.aggregator,
                self.loss,
                play,
                self.seed,
                self.features,
                always_on,
            )
        reduction = Reduction(self.learners, self.aggregator, self.loss, play, self.clip, self.seed)
        ledger = Ledger(len(self.learners), keeps_sums(self.learners, self.loss))
        encoder = Encoder(self.features, self.indicators, self.groups)
        return encoder, rounds_for(reduction, ledger, always_on)

    def _ticket(self, row: Mapping[str, Any]) -> Ticket:
        members, weights = self.groups.read(row)
        encoder, number = self._encoder, self._next
        encoded = encoder.encode(row, members)
        known = self._registry.remembered(members)
        if known is not None and not encoded.new:
            play = self._rounds.predict(number, known, encoded)
            owner: object = encoder
        elif members:
            known, new = self._registry.awake(members, weights)
            self._reserve(new, len(encoded.names))
            play = self._rounds.predict(number, known, encoded)
            owner = None if new or encoded.new else encoder
        else:
            play = self._rounds.rest(encoded)
            owner = None
        prediction = play[0]
        if type(prediction) is float and prediction != prediction:
            raise encoder.refusal(row)
        return Ticket(
            number,
            dict(row),
            members,
            weights,
            play,
            self.loss,
            self._version,
            self._key,
            owner,
            known,
            encoded,
        )

    def _check_issued(self, ticket: Ticket) -> None:
        if not isinstance(ticket, Ticket):
            raise TicketError(f"{ticket!r} is not a ticket. Give what model.predict returned.")
        number = ticket.number
        if ticket.issuer is self._key:
            issued = number < self._next
        else:  # through a file or as text, perhaps after the snapshot that this model came from
            issued = ticket.issuer in (self._key, ticket.signature(self._key))
        if not issued:
            raise TicketError(
                f"Ticket {number} was not issued by this model. Settle it with the model that "
                "issued it, or with one loaded from that model's snapshot."
            )

    def _check(self, ticket: Ticket) -> None:
        self._check_issued(ticket)
        if ticket.number in self._settled:
            raise TicketError(f"Ticket {ticket.number} is settled already; it is settled once.")

    def _settle(self, number: int) -> None:
        self._settled.add(number)
        if number >= self._next:
            self._next = number + 1

    def _learn(self, ticket: Ticket, label: Any) -> None:
        late = None if ticket.version == self._version else ticket.play
        if ticket.encoder is self._encoder:
            assert ticket.awake is not None
            assert ticket.encoded is not None
            self._rounds.settle(ticket.number, ticket.awake, ticket.encoded, label, late)
        else:
            members = self._members(ticket)
            awake, new = self._registry.awake(members, ticket.memberships)
            row = self._encoder.encode(ticket.row, members)
            self._reserve(new, len(row.names))
            self._rounds.settle(ticket.number, awake, row, label, late)
            self._registry.admit(new)
            self._encoder.admit(row)
        self._version += 1

    def _members(self, ticket: Ticket) -> list[Member]:
        """The groups of a ticket; it may have come as text, from another copy of the model."""
        if ticket.by_name:
            return self._registry.named(ticket.names, ticket.row)
        return self._registry.own(ticket.members)

    def _reserve(self, new: Sequence[Member], features: int) -> None:
        count = len(self._registry) + len(new)
        self._rounds.reserve(count, features, self._registry.masses(new))

    def _restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self._reduction.restart(len(self._registry), len(self._encoder.names))
        self._rounds.refresh()

    @property
    def _names(self) -> list[str]:
        return self._registry.names

    @property
    def _index(self) -> dict[str, int]:
        return self._registry.first

    def _replayed(self, rows: int, learned: int) -> None:
        self._settled.add_range(self._next, self._next + rows)
        self._next += rows
        self._version += learned
        self._rounds.refresh()

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        before = copy.deepcopy(self.__dict__)
        try:
            yield
        except BaseException:
            self.__dict__.update(before)
            raise


def load(path: str | os.PathLike[str]) -> Groupwise:
    """The model that its ``save`` wrote, wrappers included; it continues bit for bit."""
    model: Groupwise = snapshot.load(path, Groupwise)
    return model
