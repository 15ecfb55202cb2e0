"""Partial feedback around any model: pay for every label seen, or see labels only when accepting.

Blum and Lykouris, "Advancing subgroup fairness via sleeping experts", ITCS 2020. The stream is cut
into blocks of ⌈T^{1/3}⌉ rounds. Within a block the model is frozen; one round of it, drawn in
advance, is *explored*: its label is seen, and learned from at the block's end.
"""

import copy
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from groupwise import archive
from groupwise.errors import ConfigurationError, LabelError, TicketError, is_finite
from groupwise.kernels.philox import uniform
from groupwise.losses import ZeroOne
from groupwise.model import Groupwise
from groupwise.regret.calibration import CalibrationTable
from groupwise.regret.certificate import ESTIMATED, UNCERTAIN, VACUOUS, VOID
from groupwise.regret.table import CERTIFIED, RegretTable
from groupwise.ticket import Settled, Ticket

ACCEPT = 1
EXPLORATION = -2
"""The stream of these draws, beside the learners' (from 0 on) and the aggregator's (−1)."""
FIRST_HORIZON = 64
"""Where the horizon is unknown, the first guess; each later one is twice as long."""


class Blocks:
    """The present block of rounds: where it starts, how long it is, and which round is explored.

    Blocks have length ⌈T^{1/3}⌉ for a horizon T. Where the horizon is unknown it is guessed, and
    doubled at the end of a block once that many rounds have gone by: a new epoch. A known horizon
    that is exceeded changes nothing.
    """

    def __init__(self, horizon: int | None, seed: int) -> None:
        self.known = horizon is not None
        self.horizon = FIRST_HORIZON if horizon is None else horizon
        self.seed = seed
        self.number = self.start = self.epoch_start = 0
        self.epochs: list[list[int]] = []
        """Where each epoch starts, and how long its blocks are."""
        self._lay_out()

    def _lay_out(self) -> None:
        self.length = block_length(self.horizon)
        if not self.epochs or self.epochs[-1][1] != self.length:
            self.epochs.append([self.start, self.length])
        self.explored = self.start + int(
            uniform(self.seed, self.number, EXPLORATION, 0) * self.length
        )

    @property
    def end(self) -> int:
        """The first round after the block."""
        return self.start + self.length

    def advance(self) -> bool:
        """Go to the next block; True where it begins a new epoch."""
        self.start = self.end
        self.number += 1
        doubled = not self.known and self.start - self.epoch_start >= self.horizon
        if doubled:
            self.horizon *= 2
            self.epoch_start = self.start
        self._lay_out()
        return doubled

    def length_at(self, number: int) -> int:
        """How long the block of a round is or was."""
        return [length for start, length in self.epochs if start <= number][-1]


def block_length(horizon: int) -> int:
    """⌈T^{1/3}⌉, exact on cubes.

    >>> [block_length(horizon) for horizon in (1, 8, 9, 1_000, 100_000)]
    [1, 2, 3, 10, 47]
    """
    length: int = round(horizon ** (1.0 / 3.0))
    while length**3 < horizon:
        length += 1
    while length > 1 and (length - 1) ** 3 >= horizon:
        length -= 1
    return max(1, length)


class _PartialFeedback:
    """What both settings share. Several threads may use one: its calls hold the model's lock."""

    def __init__(
        self, model: Groupwise, horizon: int | None = None, keep_state: bool = False
    ) -> None:
        if not isinstance(model, Groupwise):
            raise ConfigurationError(f"{model!r} is not a model: wrap a gw.Groupwise(...).")
        if model.issued:
            raise ConfigurationError(
                "The model has issued tickets already. Wrap a fresh one: from its first round on "
                "it must learn from explored rounds alone."
            )
        if model.intervals is not None:
            raise ConfigurationError(
                "Intervals promise something of every label, and here few are seen: leave "
                "intervals out."
            )
        if model.windows is not None:
            raise ConfigurationError(
                "Windows are of a group's last rounds, and here few are learned from: leave "
                "windows out."
            )
        if horizon is not None and not (is_finite(horizon, int) and horizon > 0):
            raise ConfigurationError(
                f"horizon must be a positive whole number or None, not {horizon!r}."
            )
        empty = dict.fromkeys(("blocks", "waiting", "logged", "payments", "earlier"), ())
        given = {"horizon": horizon, "keep_state": keep_state, "free": (0, 0.0)}
        self.begin(model, {**empty, **given})

    def begin(self, model: Groupwise, fields: Mapping[str, Any]) -> None:
        """Take a model over, with what ``save`` wrote around it."""
        self.model = model
        self.horizon, self.keep_state = fields["horizon"], fields["keep_state"]
        self._blocks = Blocks(self.horizon, model.seed)
        vars(self._blocks).update(fields["blocks"])
        tickets = [(Ticket.from_json(text), y) for text, y in fields["waiting"]]
        self._waiting: dict[int, tuple[Ticket, Any]] = {t.number: (t, y) for t, y in tickets}
        self._logged = Settled(fields["logged"])
        self._payments: dict[str, float] = dict(fields["payments"])
        self._earlier: dict[str, list[float]] = dict(fields["earlier"])
        self.free_labels, self.free_loss = fields["free"]
        """How many labels came for rounds that were not explored, and what was lost on those; they
        are not learned from."""

    def predict(self, row: Mapping[str, Any]) -> Ticket:
        """The prediction for a row, as a ticket; ``ticket.wants_label`` says if it is explored."""
        with self.model.lock:
            ticket = self._marked(self.model.predict(row))
            if not ticket.wants_label:
                self.model.forget(ticket)  # the model itself never hears of it again
            if self.model.issued >= self._blocks.end:
                self._close_block()
            return ticket

    def predict_one(self, row: Mapping[str, Any]) -> Any:
        """The prediction that the next ticket would hold; no ticket is issued."""
        with self.model.lock:
            return self._marked(self.model.preview(row)).prediction

    def learn(self, ticket: Ticket, y: Any) -> None:
        """Settle a ticket: explored, it is learned from at its block's end; else it is logged."""
        with self.model.lock:
            self.model.check(ticket, settled=True)
            if not ticket.wants_label:
                self._log(ticket, y)
                return
            self._check_open(ticket)
            self.model.check_label(ticket, y)
            if ticket.number < self._blocks.start:
                self._feed(ticket, y)
            else:
                self._waiting[ticket.number] = ticket, y

    def learn_one(self, row: Mapping[str, Any], y: Any) -> None:
        """Predict, and learn if the label is seen; ``y`` is not looked at where it is not."""
        with self.model.lock:
            ticket = self.predict(row)
            if ticket.wants_label or self._is_seen(ticket):
                self.learn(ticket, y)

    def forget(self, ticket: Ticket) -> None:
        """Drop a ticket whose label will never come."""
        with self.model.lock:
            self.model.check(ticket, settled=True)
            self._check_open(ticket)
            if ticket.wants_label:
                self.model.forget(ticket)
            else:
                self._logged.add(ticket.number)

    def replay(self, *frames: Any, **options: Any) -> NoReturn:
        """Refused, in segments or not: which labels are seen is decided row by row."""
        raise ConfigurationError(
            f"{type(self).__name__} decides row by row which labels are seen, and cannot replay "
            "frames, whole or in segments. Call learn_one(row, y) for every row, or replay the "
            "model by itself where all labels are seen."
        )

    def regret(self) -> RegretTable:
        """An estimate from the explored rounds, each standing for its block; payments included."""
        with self.model.lock:
            return self._estimated(self.model.regret())

    def calibration(self, of: Any = None) -> CalibrationTable:
        """That of the explored rounds, each standing for its block, which ``ece_95`` allows for."""
        return self.model.calibration(of=of)

    def _estimated(self, table: RegretTable) -> RegretTable:
        rows = []
        for row in table:
            learner, aggregator = self._terms(row, self._blocks.length)
            paid = self._payments.get(row["group"], 0.0)
            measured = row["delay"] + row.get("recalibration", 0.0)
            certificate = learner + aggregator + measured + paid
            vacuous = certificate > self.model.loss.unit * row["rounds"]
            found = {
                "payments": paid,
                "regret": row["regret"] + paid,
                "certificate": certificate,
                "learner": learner,
                "aggregator": aggregator,
                "a_priori": None,  # it is of the labels that were learned from since a restart
                "learner_a_priori": None,
            }
            if row["status"] not in (VOID, UNCERTAIN):
                found["status"] = VACUOUS if vacuous else ESTIMATED
            kept = {key: one for key, one in row.items() if not key.startswith(CERTIFIED)}
            rows.append({**kept, **found})
        comparator = f"{table.comparator}; estimated from explored rounds, payments included"
        told = "No a_priori: see bounds.apple_tasting."
        return RegretTable(rows, comparator, table.settled, table.experts, table.unit, told)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the model and what is explored to one file; :func:`groupwise.load` reads it."""
        with self.model.lock:
            waiting = self._waiting.values()
            around = {
                "type": type(self).__name__,
                "horizon": self.horizon,
                "keep_state": self.keep_state,
                "blocks": vars(self._blocks),
                "waiting": [[ticket.to_json(), np.asarray(y).tolist()] for ticket, y in waiting],
                "logged": self._logged.intervals,
                "payments": self._payments,
                "earlier": self._earlier,
                "free": [self.free_labels, self.free_loss],
            }
            contents = self.model.contents(around=copy.deepcopy(around))
        archive.write(path, *contents)

    @classmethod
    def restored(cls, model: Groupwise, fields: Mapping[str, Any]) -> Any:
        """What was around a model when it was saved."""
        wrapped = cls.__new__(cls)
        wrapped.begin(model, fields)
        return wrapped

    def __getstate__(self) -> dict[str, Any]:
        with self.model.lock:
            return copy.deepcopy(self.__dict__)

    def _marked(self, ticket: Ticket) -> Ticket:
        return replace(ticket, wants_label=ticket.number == self._blocks.explored)

    def _is_seen(self, ticket: Ticket) -> bool:
        """Is the label of a round that was not explored seen all the same?"""
        return False

    def _payment(self, ticket: Ticket, y: Any) -> float:
        """What exploring has cost, in the label's units: the largest loss there is."""
        return self.model.loss.unit

    def _check_open(self, ticket: Ticket) -> None:
        if ticket.wants_label:
            self.model.check(ticket)
        if ticket.number in (self._waiting if ticket.wants_label else self._logged):
            raise TicketError(f"Ticket {ticket.number} is settled already; it is settled once.")

    def _log(self, ticket: Ticket, y: Any) -> None:
        self._check_open(ticket)
        lost = self.model.loss_of_ticket(ticket, y)
        self._logged.add(ticket.number)
        self.free_labels += 1
        self.free_loss += self.model.loss.unit * lost

    def _feed(self, ticket: Ticket, y: Any) -> None:
        self.model.learn_for(ticket, y, float(self._blocks.length_at(ticket.number)))
        if ticket.names:
            paid = self._payment(ticket, y)
            for group, weight in ticket.groups.items():
                self._payments[group] = self._payments.get(group, 0.0) + weight * paid

    def _close_block(self) -> None:
        for ticket, y in list(self._waiting.values()):
            self._feed(ticket, y)
        self._waiting.clear()
        length = self._blocks.length
        if self._blocks.advance() and not self.keep_state:
            for row in self.model.regret():
                self._earlier[row["group"]] = list(self._terms(row, length))
            self.model.restart()

    def _terms(self, row: dict[str, Any], length: int) -> tuple[float, float]:
        """The bounds of learner and aggregator on explored rounds as bounds on all rounds."""
        learner, aggregator = self._earlier.get(row["group"], (0.0, 0.0))
        proved = self.model.bounds_learners(row["group"])
        learner = (row["learner"] * length if proved else row["learner"]) + learner
        return learner, row["aggregator"] * length + aggregator


class PayForFeedback(_PartialFeedback):
    """A model whose every label costs 1 (the largest loss there is).

    Parameters
    ----------
    model : a fresh ``gw.Groupwise``; from here on it belongs to this object.
    horizon : how many rounds there will be; None to guess and double.
    keep_state : with an unknown horizon, keep what was learned when the guess doubles. Does better
        in practice; the guarantee is for starting afresh, the default.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([gw.by("sex")], loss=gw.losses.Square(0, 1))
    >>> paying = gw.PayForFeedback(model, horizon=1_000)
    >>> tickets = [paying.predict({"sex": "male"}) for _ in range(10)]
    >>> sum(ticket.wants_label for ticket in tickets)
    1

    Guarantee
    ---------
    In expectation, with B the model's bound on a group's regret over the explored rounds and
    L = ⌈T^{1/3}⌉: regret on the group ≤ L B plus the payments on its explored rounds, in all
    O(T^{1/6} √T_g) times what B has beside √T_g. Regret itself cannot be observed here, so
    ``regret()`` shows an estimate: explored rounds, each standing for its block.
    """


class AppleTasting(_PartialFeedback):
    """A model that sees a label only where it predicts 1, "accept". Exploring means accepting.

    The label of a round that was accepted anyway is seen for free; it may be given to ``learn``,
    which logs it and does not learn from it. The label of a rejected round does not exist, and
    giving one is an error. The payment for an explored round is what accepting lost more than the
    model's own play would have (less than nothing where accepting was right).

    Parameters
    ----------
    model : a fresh ``gw.Groupwise`` with ``losses.ZeroOne()``; it belongs to this object now.
    horizon, keep_state : as in :class:`PayForFeedback`.

    >>> import groupwise as gw
    >>> learner = gw.learners.ContextualFTPL(gw.oracles.Stumps(), [[0], [1]])
    >>> model = gw.Groupwise([gw.by("sex")], learner, loss=gw.losses.ZeroOne(), features=["owns"])
    >>> lender = gw.AppleTasting(model, horizon=1_000)
    >>> tickets = [lender.predict({"sex": "male", "owns": 0}) for _ in range(10)]
    >>> [ticket.prediction for ticket in tickets if ticket.wants_label]
    [1]

    Guarantee
    ---------
    As for :class:`PayForFeedback`, of which this is a case: accepting costs at most 1.
    """

    def __init__(
        self, model: Groupwise, horizon: int | None = None, keep_state: bool = False
    ) -> None:
        super().__init__(model, horizon, keep_state)
        if not isinstance(model.loss, ZeroOne):
            raise ConfigurationError(
                f"Apple tasting is for labels 0 and 1: use losses.ZeroOne(), not {model.loss}."
            )

    def _marked(self, ticket: Ticket) -> Ticket:
        marked = super()._marked(ticket)
        if not marked.wants_label:
            return marked
        return replace(marked, play=marked.play._replace(prediction=ACCEPT))

    def _is_seen(self, ticket: Ticket) -> bool:
        return bool(ticket.prediction == ACCEPT)

    def _log(self, ticket: Ticket, y: Any) -> None:
        if not self._is_seen(ticket):
            raise LabelError(
                f"Ticket {ticket.number} was rejected, so its label was never seen. "
                "Give labels only where ticket.prediction is 1."
            )
        super()._log(ticket, y)

    def _payment(self, ticket: Ticket, y: Any) -> float:
        accepting = self.model.loss_of(ACCEPT, y)
        return accepting - self.model.loss_of_ticket(ticket, y, expected=True)


KINDS: dict[str, Any] = {"PayForFeedback": PayForFeedback, "AppleTasting": AppleTasting}
"""By the names that files have for them."""
