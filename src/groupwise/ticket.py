"""Tickets: what was played, and for whom; settled later, in any order, once."""

import bisect
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from hashlib import blake2b
from typing import Any

import numpy as np

from groupwise.errors import TicketError
from groupwise.protocols import Awake, Row, Vector

SIGNATURE_BYTES = 8


@dataclass(frozen=True, slots=True, eq=False)
class Ticket:
    """One prediction, to be settled when its label is known.

    ``groups`` maps the awake groups, new ones included, to their weights; ``advice`` and
    ``weights`` (the aggregator's) have a row per awake group, in that order, and a column per
    learner where a group has several. ``prediction`` and ``advice`` are in the label's units.
    """

    number: int
    row: Mapping[str, Any]
    groups: Mapping[str, float]
    advice: Vector
    weights: Vector
    prediction: float
    version: int
    """How many labels the model had learned from when it played."""
    signature: bytes = field(repr=False)
    """Proof that this model issued this number."""
    encoded: tuple[Awake, Row] | None = field(default=None, repr=False)
    """The row and its groups as numbers, where all were known to the model; saves doing it twice."""

    def to_json(self) -> str:
        """The ticket as text, to be settled by another process."""
        return json.dumps(
            {
                "number": self.number,
                "row": {name: _plain(name, value) for name, value in self.row.items()},
                "groups": dict(self.groups),
                "advice": self.advice.tolist(),
                "weights": self.weights.tolist(),
                "prediction": self.prediction,
                "version": self.version,
                "signature": self.signature.hex(),
            }
        )

    @classmethod
    def from_json(cls, text: str) -> "Ticket":
        """A ticket written by :meth:`to_json`."""
        try:
            fields = json.loads(text)
            return cls(
                number=_integer(fields["number"]),
                row=dict(fields["row"]),
                groups={str(name): float(weight) for name, weight in fields["groups"].items()},
                advice=np.array(fields["advice"], dtype=np.float64),
                weights=np.array(fields["weights"], dtype=np.float64),
                prediction=float(fields["prediction"]),
                version=_integer(fields["version"]),
                signature=bytes.fromhex(fields["signature"]),
            )
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise TicketError(
                f"This text is not a ticket written by Ticket.to_json: {error!r}."
            ) from None


def _integer(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a whole number")
    return value


def _plain(name: str, value: Any) -> Any:
    """A field's value in a form that JSON keeps and that encodes to the same numbers."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):
        return str(value)
    raise TicketError(
        f"Field {name!r} holds {type(value).__name__}, which JSON cannot keep. "
        "Leave the field out of the row, or turn it into a number or text."
    )


def sign(key: bytes, number: int) -> bytes:
    """The signature of a number under a model's key: 8 bytes of BLAKE2."""
    return blake2b(number.to_bytes(8, "little"), key=key, digest_size=SIGNATURE_BYTES).digest()


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
        place = bisect.bisect_right(self.intervals, number, key=lambda pair: pair[0]) - 1
        return place >= 0 and number < self.intervals[place][1]

    def __len__(self) -> int:
        return sum(last - first for first, last in self.intervals)

    def add(self, number: int) -> None:
        """Add one number that is not in the set."""
        self.add_range(number, number + 1)

    def add_range(self, first: int, last: int) -> None:
        """Add the numbers first … last − 1, none of which is in the set."""
        if first == last:
            return
        intervals = self.intervals
        if intervals and intervals[-1][1] == first:  # by far the most common case
            intervals[-1][1] = last
            return
        place = bisect.bisect_right(intervals, first, key=lambda pair: pair[0])
        joins_left = place > 0 and intervals[place - 1][1] == first
        joins_right = place < len(intervals) and intervals[place][0] == last
        if joins_left and joins_right:
            intervals[place - 1][1] = intervals[place][1]
            del intervals[place]
        elif joins_left:
            intervals[place - 1][1] = last
        elif joins_right:
            intervals[place][0] = first
        else:
            intervals.insert(place, [first, last])
