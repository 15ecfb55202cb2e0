"""Makers: what turns a row, and the labels settled so far, into further fields of the row.

A *maker* is a configuration; what it remembers along a stream is a *memory*, one per model. Fields
are made when a row is predicted and stay with its ticket. Only a label that is settled changes a
memory, so what is made of a row is known before its label, however late labels come. A whole frame,
whose labels come at once, gives the same bits.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from groupwise.errors import FeatureError, GroupError
from groupwise.features.declared import Floats, Integers
from groupwise.groups.columns import Table, compress
from groupwise.groups.values import is_missing, value_name

Arrays: TypeAlias = dict[str, npt.NDArray[Any]]
Key: TypeAlias = tuple[str, ...]

KEYS = 1 << 16
"""How many keys are remembered by default."""
MOST_KEYS = 1 << 24
COUNTED = float(1 << 53)
"""Counts that are kept as numbers stay below."""


class Setting(NamedTuple):
    """What a maker is told about the model it is for."""

    declared: tuple[str, ...] | None
    """The fields that are features; None for all of them."""
    apart: frozenset[str]
    """Fields that are no features, or none as they are."""
    ranges: Mapping[str, tuple[float, float]]
    """Of the fields that are scaled, from where to where."""
    middle: float
    """What a label is taken to be while none is known."""
    largest: float
    """Scaled labels are no larger."""


class Memory(Protocol):
    """What a maker remembers, and what it makes of rows."""

    def make(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that are made of a row: numbers, text, or None where nothing is known."""

    def settle(self, row: Mapping[str, Any], made: Mapping[str, Any], label: float) -> None:
        """Take note of a row's scaled label; ``made`` are those of its fields that were made."""

    def of_frame(self, table: Table, labels: Floats) -> "Memory":
        """Add what is made of every row to a table; the memory after its labels, a new one."""

    def copy(self) -> "Memory":
        """One that changes apart from this one."""

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """All of it, in values that JSON holds, and arrays."""

    def load(self, fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what ``save`` gave, checked."""


@runtime_checkable
class Maker(Protocol):
    """A configuration of fields to make."""

    kind: ClassVar[str]
    """What files call it."""
    labelled: ClassVar[bool]
    """Does it need labels that are numbers?"""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are made of every row, whatever is remembered."""

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it reads by name."""

    @property
    def takes(self) -> tuple[str, ...]:
        """Fields that are no features as they are, but through what is made of them."""

    @property
    def forbids(self) -> tuple[str, ...]:
        """Fields that no row may have."""

    def start(self, setting: Setting) -> Memory:
        """An empty memory."""

    def to_dict(self) -> dict[str, Any]:
        """Its parameters, in values that JSON holds."""


def names_in(given: object, what: str) -> tuple[str, ...]:
    """One name, or several, or None for none of them."""
    found = (given,) if isinstance(given, str) else () if given is None else given
    if not isinstance(found, Sequence) or not all(isinstance(one, str) for one in found):
        raise FeatureError(f"{what}={given!r}. Give the name of a column, or a list of names.")
    if len(set(found)) < len(found):
        raise FeatureError(f"{what}={given!r} names a column twice.")
    return tuple(found)


def checked_keys(keys: object) -> None:
    """Refuse what is no bound on how much is remembered."""
    if isinstance(keys, bool) or not isinstance(keys, int) or not 1 <= keys <= MOST_KEYS:
        raise FeatureError(f"keys={keys!r}. Give how many keys to remember: 1 to {MOST_KEYS}.")


def field_of(row: Mapping[str, Any], column: str, reader: str) -> Any:
    """A field that a maker reads."""
    try:
        return row[column]
    except KeyError:
        raise FeatureError(
            f"The row has no field {column!r}, which {reader} reads. "
            "Put the field in every row (None where it is unknown)."
        ) from None


def key_of(row: Mapping[str, Any], columns: Sequence[str], reader: str) -> Key | None:
    """The values of some columns by name; None where one of them is missing."""
    found = []
    for column in columns:
        value = field_of(row, column, reader)
        if type(value) is not str:
            if is_missing(value):
                return None
            try:
                value = value_name(value, column)
            except GroupError as error:
                raise FeatureError(error.message) from None
        found.append(value)
    return tuple(found)


def keys_of(table: Table, columns: Sequence[str], reader: str) -> tuple[list[Key], Integers]:
    """The keys that occur in a frame, and which of them every row has: -1 where it has none."""
    keys: list[Key] = [()]
    codes = np.zeros(table.length, dtype=np.int64)
    for name in columns:
        names, own = _names(table, name, reader)
        width = max(len(names), 1)
        both = np.where((codes < 0) | (own < 0), -1, codes * width + own)
        present = both >= 0
        found, places = compress(both[present], len(keys) * width)
        keys = [(*keys[one // width], names[one % width]) for one in found.tolist()]
        codes = np.full(table.length, -1, dtype=np.int64)
        codes[present] = places
    return keys, codes


def _names(table: Table, name: str, reader: str) -> tuple[list[str], Integers]:
    """The distinct values of a column by name, and which of them every row has."""
    if name not in table:
        raise FeatureError(
            f"The frame has no column {name!r}, which {reader} reads. Add it (null where it is "
            "unknown)."
        )
    column = table.column(name)
    try:
        answers = column.answers(lambda value: value_name(value, name))
    except GroupError as error:
        raise FeatureError(error.message, row=error.row) from None
    names = [one for one in dict.fromkeys(answers) if one is not None]
    places: dict[str | None, int] = {one: place for place, one in enumerate(names)}
    numbers = [places.get(one, -1) for one in answers]
    return names, np.array([*numbers, -1], dtype=np.int64)[column.distinct[1]]


class Records(OrderedDict[Key, list[float]]):
    """A record of numbers for each key: of so many keys, those that were settled last.

    Records are replaced, never changed, so that a copy costs little.
    """

    def __init__(self, most: int, blank: Sequence[float]) -> None:
        super().__init__()
        self.most = most
        self.blank = list(blank)

    def put(self, key: Key, record: list[float]) -> None:
        """Replace a record: it is the latest now, and the oldest goes if there is no room."""
        self[key] = record
        self.move_to_end(key)
        if len(self) > self.most:
            self.popitem(last=False)

    def have_room(self, keys: Sequence[Key]) -> bool:
        """Is there room for these keys, whatever the order?"""
        return len(self) + sum(key not in self for key in keys) <= self.most

    def gathered(self, keys: Sequence[Key]) -> Floats:
        """The records of keys, a row each."""
        found = [self.get(key, self.blank) for key in keys]
        return np.array(found, dtype=np.float64).reshape(len(keys), len(self.blank))

    def scatter(self, keys: Sequence[Key], codes: Integers, records: Floats) -> None:
        """Put records back, in the order in which rows settled them last."""
        last = np.full(len(keys) + 1, -1, dtype=np.int64)
        last[codes] = np.arange(len(codes))  # of equal places the last one is written last
        found = records.tolist()
        for place in np.argsort(last[:-1], kind="stable").tolist():
            if last[place] >= 0:
                self.put(keys[place], found[place])

    def copy(self) -> "Records":
        """One that changes apart from this one."""
        twin = Records(self.most, self.blank)
        twin.update(self)
        return twin

    def __reduce__(self) -> tuple[Any, ...]:
        return _records, (self.most, self.blank, list(self.items()))

    def save(self) -> tuple[list[list[str]], Floats]:
        """The keys, in order, and a row of numbers for each."""
        return [list(key) for key in self], self.gathered(list(self))

    def load(self, keys: Any, records: npt.NDArray[Any], columns: int) -> None:
        """Take over what ``save`` gave."""
        found = [tuple(key) for key in keys]
        texts = all(isinstance(one, str) for key in found for one in key)
        fits = all(len(key) == columns for key in found) and len(set(found)) == len(found)
        if not (texts and fits and len(found) <= self.most):
            raise FeatureError("The saved keys do not fit the columns they are of.")
        if records.shape != (len(found), len(self.blank)) or records.dtype != np.float64:
            raise FeatureError("The saved records do not fit their keys.")
        self.clear()
        self.update(zip(found, records.tolist(), strict=True))


def _records(most: int, blank: list[float], items: list[tuple[Key, list[float]]]) -> Records:
    found = Records(most, blank)
    found.update(items)
    return found


def check_counts(counts: npt.NDArray[Any]) -> None:
    """Refuse saved numbers that are no counts."""
    if ((counts < 0.0) | (counts >= COUNTED) | (counts != np.floor(counts))).any():
        raise FeatureError("A saved count is none.")


def check_sums(sums: npt.NDArray[Any], weights: npt.NDArray[Any], largest: float) -> None:
    """Refuse saved sums of labels, with weights, that no labels have."""
    if (np.abs(sums) > 1.000001 * largest * weights).any():
        raise FeatureError("A saved sum of labels is beyond what labels are.")
