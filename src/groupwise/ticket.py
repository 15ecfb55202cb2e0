"""Tickets: what was played, and for whom; settled later, in any order, once."""

import bisect
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from hashlib import blake2b
from hmac import compare_digest
from operator import itemgetter
from types import NoneType
from typing import Any

import numpy as np

from groupwise.arrays import Vector
from groupwise.classes import shown_one
from groupwise.errors import TicketError
from groupwise.groups import Member
from groupwise.groups.values import as_float, is_missing, value_name
from groupwise.intervals import interval_of
from groupwise.losses import Loss, loss_from_dict
from groupwise.protocols import Awake, Ends, Layered, Play, Row

SIGNATURE_BYTES = 16
SHORT_BYTES = 8
"""So long were signatures once; models of that time still know theirs."""
LONGEST = 300
"""So much is quoted of what is wrong with a text."""
UNKNOWN = -2
"""The declaration of a group in a ticket that knows it by name alone."""


@dataclass(slots=True, eq=False, repr=False)
class Ticket:
    """One prediction, to be settled when its label is known.

    Read it, keep it, do not change it. ``groups`` maps the awake groups, new ones included, to the
    row's weights in them, by name; where two have the same name, ``names`` and ``memberships`` show
    both. ``advice`` and ``weights`` (the aggregator's) have a row per awake group,
    in that order, and a column per learner where a group has several, then per expert.
    ``prediction`` and ``advice`` are in the label's units; where classes are named, they are a
    mapping from these to their probabilities, and have a last axis for them.
    """

    number: int
    row: Mapping[str, Any]
    members: Sequence[Member]
    """The awake groups, new ones included."""
    memberships: Sequence[float]
    """The row's weights in them."""
    play: Any
    """The play as the reduction made it; numbers are scaled to [0, 1]."""
    loss: Loss
    version: int
    """How many labels the model had learned from when it played."""
    issuer: bytes
    """The issuing model's key or, after a passage through JSON, a signature made with it."""
    encoder: object = None
    """Whose numbers ``awake`` and ``encoded`` are; None where they are to be found again."""
    awake: Awake | None = None
    encoded: Row | None = None
    wants_label: bool = True
    """Will its label be learned from? Always, unless feedback is partial."""
    by_name: bool = False
    """Was it written by groupwise 0.1, which knew groups by name alone?"""
    derived: Any = None
    """What makers made of the row, by name, from the labels settled then; None without makers."""
    signed: bool = False
    """Is ``issuer`` a signature?"""

    @property
    def whole(self) -> Mapping[str, Any]:
        """The row with what was made of it."""
        return self.row if self.derived is None else {**self.row, **self.derived}

    @property
    def prediction(self) -> Any:
        """The prediction, in the label's units."""
        return shown_one(self.loss, self.play)

    @property
    def interval(self) -> tuple[float, float] | None:
        """The interval around the prediction, in the label's units; None where there is none.

        With ``intervals`` there is one unless nobody is awake, or it is empty.
        """
        return interval_of(self.loss, self.play)

    @property
    def names(self) -> list[str]:
        """The names of the awake groups."""
        return [member.name for member in self.members]

    @property
    def groups(self) -> dict[str, float]:
        """The awake groups and the row's weights in them."""
        each = zip(self.members, self.memberships, strict=True)
        return {member.name: weight for member, weight in each}

    @property
    def advice(self) -> Vector:
        """What each awake expert advised."""
        return _flat(self._own(self.loss.decode_many(self.play.advice)))

    @property
    def weights(self) -> Vector:
        """The aggregator's weights over the awake experts; they sum to 1, with those of windows."""
        return _flat(self._own(self.play.probabilities.copy()))

    def _own(self, values: Vector) -> Vector:
        """The rows of the groups themselves, which those of their windows come before."""
        return values[len(values) - len(self.members) :]

    def content(self) -> dict[str, Any]:
        """All that the ticket says, in a form that JSON keeps."""
        groups = zip(self.members, self.memberships, strict=True)
        members = [[one.name, weight, one.declaration, list(one.values)] for one, weight in groups]
        return {
            "number": self.number,
            "row": {name: _plain(name, value) for name, value in self.row.items()},
            "groups": self.groups,
            "play": play_to_dict(self.play),
            "loss": self.loss.to_dict(),
            "version": self.version,
            "wants_label": self.wants_label,
            **({} if self.by_name else {"members": members}),
            **({} if self.derived is None else {"derived": dict(self.derived)}),
        }

    def signature(self, key: bytes, length: int = SIGNATURE_BYTES) -> bytes:
        """What proves that the model with this key issued a ticket with this content."""
        text = json.dumps(self.content(), sort_keys=True)
        return blake2b(text.encode(), key=key, digest_size=length).digest()

    def is_of(self, key: bytes, short: bool = False) -> bool:
        """Did the model with this key issue it? ``short`` allows for a signature as they once were.

        How long the answer takes says nothing of the key.
        """
        if not self.signed and len(self.issuer) == len(key):
            return compare_digest(self.issuer, key)
        lengths = (SIGNATURE_BYTES, SHORT_BYTES)[: 1 + short]
        known = len(self.issuer) in lengths
        return known and compare_digest(self.issuer, self.signature(key, len(self.issuer)))

    def __repr__(self) -> str:
        groups = ", ".join(self.names)
        return f"Ticket(number={self.number}, prediction={self.prediction!r}, groups=[{groups}])"

    def to_json(self) -> str:
        """The ticket as text, to be settled by another process."""
        signed = self.signed or len(self.issuer) == SHORT_BYTES
        signature = self.issuer if signed else self.signature(self.issuer)
        return json.dumps({**self.content(), "signature": signature.hex()})

    @classmethod
    def from_json(cls, text: str) -> "Ticket":
        """A ticket written by :meth:`to_json`."""
        try:
            fields = json.loads(text)
            named = [(*one, UNKNOWN, ()) for one in fields["groups"].items()]
            groups = fields.get("members", named)
            play = play_from_dict(fields["play"])
            if play.advice.ndim < 2 or play.advice.shape[0] < len(groups):
                raise ValueError("a play has a row per group")
            return cls(
                number=_integer(fields["number"]),
                row=dict(fields["row"]),
                members=[
                    Member(_integer(declaration), tuple(values), str(name))
                    for name, _, declaration, values in groups
                ],
                memberships=[float(weight) for _, weight, _, _ in groups],
                play=play,
                loss=loss_from_dict(fields["loss"]),
                version=_integer(fields["version"]),
                issuer=bytes.fromhex(fields["signature"]),
                wants_label=bool(fields["wants_label"]),
                by_name="members" not in fields,
                derived=_derived(fields.get("derived")),
                signed=True,
            )
        except Exception as error:  # whatever a text can be made to hold
            raise TicketError(
                f"This text is not a ticket written by Ticket.to_json: {repr(error)[:LONGEST]}."
            ) from error

    def __reduce__(self) -> tuple[type["Ticket"], tuple[Any, ...]]:
        return Ticket, (
            self.number,
            dict(self.row),
            [Member(*one.key, one.name) for one in self.members],
            list(self.memberships),
            self.play,
            self.loss,
            self.version,
            self.issuer,
            None,
            None,
            None,
            self.wants_label,
            self.by_name,
            None if self.derived is None else dict(self.derived),
            self.signed,
        )


def play_to_dict(play: Any) -> dict[str, Any]:
    """A play as JSON keeps it."""
    if isinstance(play, Layered):
        after = play_to_dict(play.after) if isinstance(play.after, Play) else play.after
        before = play_to_dict(play.before)
        return {"prediction": play.prediction, "before": before, "after": after}
    action = play.prediction
    if isinstance(play.said, np.ndarray):
        return {"prediction": action, "said": play.said.tolist()}
    return {
        "prediction": action.tolist() if isinstance(action, np.ndarray) else action,
        "advice": play.advice.tolist(),
        "shape": list(play.advice.shape),
        "probabilities": play.probabilities.tolist(),
    }


def play_from_dict(fields: Mapping[str, Any]) -> Any:
    """The play that :func:`play_to_dict` wrote."""
    if "before" in fields:
        after = fields["after"]
        if isinstance(after, Mapping):
            after = play_from_dict(after)
        elif after is not None:
            low, high = _numbers(after).astype(np.float64).tolist()
            after = Ends(float(low), float(high))
        return Layered(float(fields["prediction"]), play_from_dict(fields["before"]), after)
    action = _numbers(fields["prediction"])
    if "said" in fields:
        said = _numbers(fields["said"]).astype(np.float64)
        said = said if said.size else said.reshape(2, 0, 1)  # nobody was awake
        if said.ndim != 3 or len(said) != 2:
            raise ValueError("what was said is advice and weights")
        return Play(float(action), said)
    advice = _numbers(fields["advice"]).reshape(fields["shape"])
    probabilities = _numbers(fields["probabilities"]).astype(np.float64).reshape(advice.shape[:2])
    return Play(action if action.ndim else action.item(), (advice, probabilities))


def _flat(values: Vector) -> Vector:
    return values[:, 0] if values.shape[1] == 1 else values


def _numbers(values: Any) -> Vector:
    """Numbers from JSON, in whatever shape."""
    found = np.array(values)
    if found.size and found.dtype.kind not in "fiub":
        raise TypeError(f"{found.dtype} holds more than numbers")
    return found


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _derived(fields: Any) -> dict[str, Any] | None:
    """What was made of a row: numbers and text by name."""
    if fields is not None and not all(
        type(one) in (float, str, NoneType) for one in fields.values()
    ):
        raise TypeError("what is made of a row is numbers and text")
    return fields and dict(fields)


def _plain(name: str, value: Any) -> Any:
    """A field's value in a form that JSON keeps and that encodes to the same numbers."""
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        return value_name(value, name)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, date):
        return str(value)
    number = as_float(value)
    if number is not None:
        return number
    raise TicketError(
        f"Field {name!r} holds {type(value).__name__}, which JSON cannot keep. "
        "Leave the field out of the row, or turn it into a number or text."
    )


class Settled:
    """The set of settled ticket numbers, as disjoint intervals: small while few are outstanding.

    >>> settled = Settled()
    >>> for number in (0, 2, 1, 5):
    ...     settled.add(number)
    >>> settled.intervals
    [[0, 3], [5, 6]]
    """

    def __init__(self, intervals: list[list[int]] | None = None) -> None:
        self.intervals = [] if intervals is None else [list(pair) for pair in intervals]

    def __contains__(self, number: int) -> bool:
        intervals = self.intervals
        if not intervals or number >= intervals[-1][1]:  # by far the most common case
            return False
        place = bisect.bisect_right(intervals, number, key=itemgetter(0)) - 1
        return place >= 0 and number < intervals[place][1]

    def __len__(self) -> int:
        return sum(last - first for first, last in self.intervals)

    def add(self, number: int) -> None:
        """Add one number that is not in the set."""
        intervals = self.intervals
        if intervals and intervals[-1][1] == number:  # by far the most common case
            intervals[-1][1] = number + 1
        else:
            self.add_range(number, number + 1)

    def add_range(self, first: int, last: int) -> None:
        """Add the numbers first … last − 1, none of which is in the set."""
        if first < last:
            intervals = self.intervals
            place = bisect.bisect_right(intervals, first, key=itemgetter(0))
            low = place - (place > 0 and intervals[place - 1][1] == first)
            high = place + (place < len(intervals) and intervals[place][0] == last)
            ends = [first, last, *itertools.chain(*intervals[low:high])]
            intervals[low:high] = [[min(ends), max(ends)]]
