"""Groupwise: the object people hold."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise import archive
from groupwise.assignment import PerGroup, as_assignment
from groupwise.carrying import Carrying
from groupwise.configuration import arguments_from, configuration_of
from groupwise.dyadic import Windows, as_windows, open_windows
from groupwise.errors import TicketError, TooLargeError
from groupwise.features import COLUMNS, AnyFeatures, Derived, Encoder, split
from groupwise.features.declared import FieldKind
from groupwise.features.experts import Experts
from groupwise.groups import Group, Groups, Member
from groupwise.intervals import Intervals, as_intervals
from groupwise.kernels import compiling
from groupwise.learners.logged import Logged
from groupwise.losses import Loss
from groupwise.protocols import AnyAggregator, Awake, Play, Row, same_play
from groupwise.recalibration import AnyMap, as_layer
from groupwise.registry import Registry
from groupwise.segments import Parts
from groupwise.ticket import Settled, Ticket
from groupwise.turns import LAST, Turn
from groupwise.validation import (
    AnyLearner,
    as_aggregator,
    as_experts,
    as_loss,
    as_prior,
    checked_seed,
    encoder_for,
    with_intersections,
)

KEY_BYTES = 16


class Groupwise(Carrying):
    """Predictions for a stream of individuals, with a regret guarantee for every group at once.

    One no-regret learner per group and one aggregator over the awake ones (Algorithm 1 of the
    paper; ``groupwise.reduction``).

    Parameters
    ----------
    groups : declarations by ``gw.by``, ``gw.cut``, ``gw.where``, ``gw.weight``, ``gw.pairs``.
    learner : the per-group learner, or a list of them: the guarantee is then against the best of
        them on each group. The best known by default: ``learners.portfolio(loss)``. Groups may have
        different ones: {"sex=male": ..., gw.by("region"): [...], ...: the others'}, or a function
        of the group (:class:`groupwise.learners.NamedGroup`).
    aggregator : the best known by default: ``aggregators.Prod()`` for square loss, ``Specialists``
        for log loss, ``AdaNormalHedge`` where they do not apply (other losses, plays, no clipping).
    loss : ``losses.Square(low, high)``, the range of your labels; ``losses.Log()``, probabilities.
    features : None for every field; a list of names; or {name: (low, high)} to scale to [0, 1],
        {name: None} for text or for a number as it is, {name: gw.hashed(n)} for text with very many
        values. Makers (``gw.past``, ``gw.hinges``, ``gw.encoded``, ``gw.calendar``) and mappings
        may stand in the list; makers alone mean every field and what they make.
    indicators : append a 0/1 feature for each declared group that is not a one-hot level already.
    intercept : put a feature first that is 1 in every row, so that linear models have an intercept,
        whatever the other features are. Learners of actions have none.
    max_levels : how many values of a text field have a 0/1 feature of their own, and how many of
        the groups that ``gw.by`` makes have an indicator. Further ones are hashed into as many
        features, which they share, with a warning (see ``hashed_fields``); groups stay one per
        value. Of a field that is named in ``features`` they are an error. None for no bound.
    play : None for the aggregator's preferred play; "mean" or "sample" where that is sound.
    clip : clip advice to the label range.
    always_on : add a group that every row is in; its learner is the single-model baseline.
    seed : names all the randomness there is.
    prior : {group name: mass}. A mass is fixed when its group appears: the one named here, or 1, or
        for the n-th group from ``gw.pairs`` or ``intersections`` 1/n(n + 1). All pairs together
        then weigh less than one declared group. None gives always-on 4 where learners lean to it.
    recalibrate : True to map probabilities to better ones, with a map per group (``gw.Platt``), or
        ``gw.Gap(rate)``, which brings every group's mean gap to 0; for ``losses.Log()``.
    intersections : 2 adds the intersection of every two declared groups, as they are first seen.
    experts : columns with predictions of other models, in the label's units; with log loss, of the
        probability of 1, or of the second class. Each is an expert of every group, and no feature
        unless named among these: ``model.regret(against=column)`` is what it loses less at most.
    intervals : the share of labels that an interval around every prediction is to cover, such as
        0.9, on every group; or ``gw.Intervals(...)``. Tickets have one then (``ticket.interval``),
        and ``model.coverage()`` shows how often labels were inside.
    windows : True for small regret on every recent stretch of every group too, with certificates
        (``model.regret(last=1000)``): learners that begin anew again and again, of which each group
        has log₂ of its rounds at a time. Or ``gw.windows(shortest)``.
    missing : "indicator" makes None and NaN in features a 0 with a 0/1 feature beside; else errors.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([gw.by("sex"), gw.by("smoker")], loss=gw.losses.Square(0, 50_000))
    >>> ticket = model.predict({"sex": "male", "smoker": "no", "age": 0.4})
    >>> list(ticket.groups)
    ['sex=male', 'smoker=no', 'always_on']
    >>> model.learn(ticket, 4_500)
    >>> model.regret()["sex=male"]["rounds"]
    1.0

    Several threads may use one model: calls hold ``model.lock``, so they find it between two rounds
    and leave it so. ``with model.lock:`` makes one call of several.

    Guarantee
    ---------
    After every label and for every group, regret ≤ certificate, as ``model.regret()`` shows both.
    """

    _short_signatures = True
    """May it have issued tickets whose signature is short? Those of earlier versions may."""
    changing = ("_encoder", "_derived", "_registry", "_reduction", "_settled", "_next", "_version")

    def __init__(
        self,
        groups: Sequence[Group],
        learner: AnyLearner | Sequence[AnyLearner] | PerGroup | None = None,
        aggregator: AnyAggregator | None = None,
        loss: Loss | None = None,
        features: AnyFeatures = None,
        indicators: bool = True,
        play: str | None = None,
        clip: bool = True,
        always_on: bool = True,
        seed: int = 0,
        prior: Mapping[str, float] | None = None,
        intersections: int | None = None,
        intercept: bool = True,
        max_levels: int | None = COLUMNS,
        recalibrate: bool | AnyMap | None = False,
        experts: Sequence[str] | None = None,
        missing: str | None = None,
        intervals: float | Intervals | None = None,
        windows: bool | Windows | None = False,
    ) -> None:
        self.intersections = intersections
        self.declarations = tuple(groups) if isinstance(groups, (list, tuple)) else groups
        self.groups = Groups(with_intersections(self.declarations, intersections), always_on)
        self.loss = as_loss(loss)
        self.assignment = as_assignment(learner, self.loss, self.groups)
        self.learners = self.assignment.learners
        self.aggregator = as_aggregator(aggregator, self.loss, play, clip)
        self.recalibrate = as_layer(recalibrate, self.loss, self.learners)
        self.intervals = as_intervals(intervals, self.loss)
        self.windows = as_windows(windows, self.loss, self.aggregator, self.recalibrate)
        self.experts = as_experts(experts, self.loss, self.learners)
        self.features = features
        self.indicators, self.intercept = indicators, intercept
        self.max_levels, self.missing, self.clip = max_levels, missing, clip
        self.seed = checked_seed(seed)
        self.prior = as_prior(prior, self.learners)
        declared, makers = split(features)
        made = makers, declared, self.groups, self.loss, self.experts
        self._derived = Derived(*made) if makers else None
        self._logged = Experts(self.experts, self.loss, clip) if self.experts else None
        parts = declared, indicators, self.groups, intercept, max_levels, self._derived
        self._encoder = encoder_for(self.learners, *parts, self.experts, missing)
        with compiling():
            width = len(self._encoder.declared or ())
            self._parts = Parts(
                self.recalibrate or self.intervals,
                self.assignment.made([Logged(one) for one in self.experts]),
                *(self.aggregator, self.loss, play, clip),
                *(self.seed, width, bool(always_on), self._encoder.intercept),
            )
            self._reduction = self._parts.reduction()
            open_windows(self._reduction, self.windows)
        self.play = self._reduction.play
        self._registry = Registry(self.groups, self.prior)
        self._key = os.urandom(KEY_BYTES)
        self._short_signatures = False
        self._next = 0
        self._settled = Settled()
        self._version = 0
        self.lock = Turn()

    # Rounds. What is called most takes the lock in the quick way (``groupwise.turns``).

    def predict(self, row: Mapping[str, Any], issue: bool = True) -> Ticket:
        """The prediction for a row, as a ticket to settle with its label. Changes nothing else."""
        lock = self.lock
        try:
            del lock.free[LAST]
            mine = True
        except IndexError:
            mine = lock.wait()
        try:
            whole: Mapping[str, Any] = row
            derived = None
            if self._derived is not None:
                whole, derived = self._derived.make(row)
            members, weights = self.groups.read(whole)
            encoder, number = self._encoder, self._next
            encoded = encoder.encode(whole, members, derived or ())
            if self._logged is not None:
                encoded = Row(*encoded[:4], self._logged.of_row(row))
            awake = self._registry.together.get(tuple(members))
            owner: object = encoder
            if awake is None or encoded.new:
                owner = None
                if members:
                    awake, new = self._registry.awake(members, weights)
                    self._reserve(awake, new, encoded)
                    owner = None if new or encoded.new else encoder
            try:
                if awake is None:
                    play = self._reduction.rest(encoded)
                else:
                    play = self._reduction.predict(number, awake, encoded)
            except TooLargeError:
                raise encoder.refusal(whole, derived or ()) from None
            self._next = number + issue
            loss, version, key = self.loss, self._version, self._key
            ticket = Ticket(
                number, dict(row), members, weights, play, loss, version, key, owner, awake, encoded
            )
            if derived is not None:
                ticket.derived = derived
            return ticket
        finally:
            if mine:
                lock.free.append(True)
                if lock.waiting:
                    mine = False
                    lock.pass_on()

    def preview(self, row: Mapping[str, Any]) -> Ticket:
        """The ticket that ``predict`` would issue. Changes nothing."""
        return self.predict(row, issue=False)

    def predict_one(self, row: Mapping[str, Any]) -> Any:
        """The prediction that the next ticket would hold; no ticket is issued."""
        return self.preview(row).prediction

    def learn(self, ticket: Ticket, y: Any) -> None:
        """Settle a ticket with its label: now or much later, in any order, once."""
        lock = self.lock
        try:
            del lock.free[LAST]
            mine = True
        except IndexError:
            mine = lock.wait()
        try:
            self._check(ticket)
            label, number = self.loss.encode(y), ticket.number
            if ticket.members:
                late = None if ticket.version == self._version else ticket.play
                awake, row = ticket.awake, ticket.encoded
                if ticket.encoder is self._encoder and awake is not None and row is not None:
                    self._reduction.learn(number, awake, row, label, late)
                else:
                    self._learn_anew(ticket, label, late)
                self._version += 1
            self._settle(number)
            if self._derived is not None:
                self._derived.settle(ticket.row, ticket.derived or {}, label)
        finally:
            if mine:
                lock.free.append(True)
                if lock.waiting:
                    mine = False
                    lock.pass_on()
        if self._encoder.unsaid:
            self._encoder.announce()

    def _learn_anew(self, ticket: Ticket, label: Any, late: Play | None) -> None:
        """The same where groups or features of the ticket may be new, or known by other numbers."""
        members = self._registry.of_ticket(ticket)
        awake, new = self._registry.awake(members, ticket.memberships)
        row = self._encoder.encode(ticket.whole, members, ticket.derived or ())
        if self._logged is not None:
            row = Row(*row[:4], self._logged.of_row(ticket.row))
        self._reserve(awake, new, row)
        if ticket.loss != self.loss:  # its range was widened since, and what was issued is cut
            late = ticket.play
        if late is None and new and self.assignment.asks:  # was the answer the same both times?
            play = self._reduction.predict(ticket.number, awake, row)
            late = None if same_play(play, ticket.play) else ticket.play
        self._reduction.learn(ticket.number, awake, row, label, late)
        self._registry.admit(new)
        self._encoder.admit(row)

    def learn_one(self, row: Mapping[str, Any], y: Any) -> None:
        """Learn from a row whose label is known at once; no ticket to keep."""
        self.learn(self.predict(row), y)

    def forget(self, ticket: Ticket) -> None:
        """Drop a ticket whose label will never come; its number counts as settled."""
        with self.lock:
            self._check(ticket)
            self._settle(ticket.number)

    def check(self, ticket: Ticket, settled: bool = False) -> None:
        """Raise TicketError unless this model issued the ticket and, if asked, has it open.

        ``settled`` allows for one that is settled.
        """
        with self.lock:
            self._check(ticket, settled)

    def _check(self, ticket: Ticket, settled: bool = False) -> None:
        if not isinstance(ticket, Ticket):
            raise TicketError(f"{ticket!r} is not a ticket. Give what model.predict returned.")
        number = ticket.number
        if ticket.issuer is self._key:
            issued = number < self._next
        else:  # through a file or as text, perhaps after the snapshot that this model came from
            issued = ticket.is_of(self._key, self._short_signatures)
        if not issued:
            raise TicketError(
                f"Ticket {number} was not issued by this model. Settle it with the model that "
                "issued it, or with one loaded from that model's snapshot."
            )
        if not settled and number in self._settled:
            raise TicketError(f"Ticket {number} is settled already; it is settled once.")

    def _settle(self, number: int) -> None:
        self._settled.add(number)
        if number >= self._next:
            self._next = number + 1

    def _reserve(self, awake: Awake, new: Sequence[Member], row: Row) -> None:
        known = len(self._registry)
        numbers = np.arange(known, known + len(new))
        masses, rosters = self._registry.masses(new), self._rosters(new)
        self._reduction.reserve(awake.groups, len(row.names), numbers, masses, rosters)

    # What is known.

    def __repr__(self) -> str:
        """In one line: how far it is, and what it is made of.

        >>> Groupwise([])
        <Groupwise: 0 settled, 0 groups, Square(low=0.0, high=1.0), Prod>
        """
        with self.lock:
            groups, rounds = len(self._registry), len(self._settled)
        kind = type(self.aggregator).__name__
        return f"<Groupwise: {rounds:,} settled, {groups:,} groups, {self.loss!r}, {kind}>"

    @property
    def issued(self) -> int:
        """How many tickets were issued."""
        with self.lock:
            return self._next

    @property
    def feature_names(self) -> list[str]:
        """The features so far: the numbers that a row is turned into."""
        with self.lock:
            return list(self._encoder.names)

    @property
    def field_kinds(self) -> Mapping[str, FieldKind]:
        """What the fields of rows hold that were turned into features: "number" or "text"."""
        with self.lock:
            return dict(self._encoder.kinds)

    @property
    def hashed_fields(self) -> Mapping[str, int]:
        """The columns whose values, all or beyond ``max_levels``, share features; how many."""
        with self.lock:
            return dict(self._encoder.hashed)

    # For models whose feedback is partial (``groupwise.partial_feedback``).

    def learn_for(self, ticket: Ticket, y: Any, rounds: float) -> None:
        """``learn`` from a label that stands for so many rounds in the books."""
        with self.lock:
            self._reduction.stands_for = rounds
            try:
                self.learn(ticket, y)
            finally:
                self._reduction.stands_for = 1.0

    def restart(self) -> None:
        """Forget what was learned, not what was recorded; certificates are estimates then."""
        with self.lock:
            self._reduction.restart()

    def bounds_learners(self, group: str) -> bool:
        """Is the learner term of a group's certificate a bound, and not what was realised?"""
        with self.lock:
            return self._reduction.bounds(self._registry.first[group]) is not None

    # Whole streams.

    # Snapshots.

    def save(self, path: str | os.PathLike[str], **about: Any) -> None:
        """Write the model to one file, which :func:`groupwise.load` resumes from bit for bit.

        Other threads that want the model wait until its state is copied, not for the disk.
        ``about`` is kept beside it, in plain values, for whoever wraps the model.
        """
        archive.write(path, *self.contents(**about))

    def contents(self, **about: Any) -> tuple[dict[str, Any], archive.Arrays]:
        """What ``save`` writes: a header and arrays, which nobody changes any more."""
        with self.lock:
            groups, features = len(self._registry), len(self._encoder.names)
            derived, made = (None, {}) if self._derived is None else self._derived.save()
            header = {**self._header(), "derived": derived, "around": None, **about}
            return header, self._reduction.save(groups, features) | made

    def saved_rosters(self) -> list[tuple[Any, ...]]:
        """The learners that a file holds, where groups have different ones."""
        return self._reduction.saved_rosters(len(self._registry))

    def _header(self) -> dict[str, Any]:
        return {
            "model": configuration_of(self),
            **self._registry.to_dict(),
            "encoder": self._encoder.to_dict(),
            "key": self._key.hex(),
            "short_signatures": self._short_signatures,
            "next": self._next,
            "settled": [list(pair) for pair in self._settled.intervals],
            "version": self._version,
        }

    @classmethod
    def restored(
        cls, header: Mapping[str, Any], arrays: archive.Arrays, learner: Any = None
    ) -> "Groupwise":
        """The model whose header and arrays ``save`` wrote; ``learner`` as for ``gw.load``."""
        model = cls(**arguments_from(header["model"], learner))
        model._encoder = Encoder.from_dict(header["encoder"], model.groups)
        if model._derived is not None:
            model._derived.load(header["derived"], arrays)
        model._registry.restore(header)
        model._key = bytes.fromhex(header["key"])
        model._short_signatures = bool(header.get("short_signatures", True))
        model._next = int(header["next"])
        model._settled = Settled(header["settled"])
        model._version = int(header["version"])
        model._reduction.load(dict(arrays), len(model._registry), len(model._encoder.names))
        return model
