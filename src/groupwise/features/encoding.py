"""Text with very many values as a number: the mean label of each value, online."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.errors import FeatureError, is_finite
from groupwise.features.declared import Floats
from groupwise.features.makers import (
    KEYS,
    Arrays,
    Key,
    Records,
    Setting,
    check_counts,
    check_sums,
    checked_keys,
    key_of,
    keys_of,
)
from groupwise.groups.columns import Column, Table

STRENGTH = 10.0
"""So many labels of the mean of all are what a value starts from."""
STRONGEST = 1e9


@dataclass(frozen=True)
class Encoded:
    """The mean label of each value of a column; see :func:`encoded`."""

    column: str
    strength: float = STRENGTH
    keys: int = KEYS
    kind: ClassVar[str] = "encoded"
    labelled: ClassVar[bool] = True
    forbids: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise FeatureError(f"encoded({self.column!r}). Give the name of a column.")
        if not is_finite(self.strength) or not 1.0 / STRONGEST <= self.strength <= STRONGEST:
            raise FeatureError(f"strength={self.strength!r}. Give a positive number of labels.")
        object.__setattr__(self, "strength", float(self.strength))
        checked_keys(self.keys)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are made of every row."""
        return f"{self.column} encoded", f"{self.column} known"

    @property
    def reads(self) -> tuple[str, ...]:
        """The field that it reads."""
        return (self.column,)

    @property
    def takes(self) -> tuple[str, ...]:
        """The column is a feature through its means."""
        return (self.column,)

    def start(self, setting: Setting) -> "EncodedMemory":
        """Nothing remembered."""
        return EncodedMemory(self, setting)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters."""
        return {"column": self.column, "strength": self.strength, "keys": self.keys}


def encoded(column: str, strength: float = STRENGTH, keys: int = KEYS) -> Encoded:
    """A feature declaration: each value of a column by the mean of its labels so far.

    Of a value with the labels y_1 … y_n, scaled to [0, 1], that were settled before a row was
    predicted, two features are made: (Σ y_i + m ȳ) / (n + m), where ȳ is the mean of all labels
    settled so far (½ before the first), and n / (n + m), how much is known of it. For text with
    more values than there should be features; where every field is a feature, the column is none
    besides. Groups by the column stay one per value.

    Parameters
    ----------
    column : text, or numbers that are names. A value that is missing has the mean of all labels.
    strength : m, how many labels the mean of all counts for.
    keys : how many values are remembered, those that were settled last: two numbers each.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([], features=[gw.encoded("city", strength=1)])
    >>> for city, y in (("Rome", 1.0), ("Paris", 0.0)):
    ...     model.learn_one({"city": city}, y)
    >>> model.predict({"city": "Rome"}).derived
    {'city encoded': 0.75, 'city known': 0.5}
    """
    return Encoded(column, strength, keys)


class EncodedMemory:
    """How many labels each value had, and their sum."""

    def __init__(self, maker: Encoded, setting: Setting) -> None:
        self.maker = maker
        self.setting = setting
        self.fields = maker.fields
        self.records = Records(maker.keys, [0.0, 0.0])
        self.overall = [0.0, 0.0]

    def make(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that are made of a row."""
        return dict(zip(self.fields, self.made(self._key(row)), strict=True))

    def settle(self, row: Mapping[str, Any], made: Mapping[str, Any], label: float) -> None:
        """Take note of a label."""
        self.note(self._key(row), float(label))

    def _key(self, row: Mapping[str, Any]) -> Key | None:
        return key_of(row, (self.maker.column,), "gw.encoded")

    def made(self, key: Key | None) -> tuple[float, float]:
        """What is made of rows with this value."""
        count, total = self.overall
        usual, strength = total / count if count > 0.0 else self.setting.middle, self.maker.strength
        if key is None:
            return usual, 0.0
        count, total = self.records.get(key, self.records.blank)
        return (total + strength * usual) / (count + strength), count / (count + strength)

    def note(self, key: Key | None, label: float) -> None:
        """Take note of a label of this value."""
        if key is not None:
            count, total = self.records.get(key, self.records.blank)
            self.records.put(key, [count + 1.0, total + label])
        count, total = self.overall
        self.overall = [count + 1.0, total + label]

    def of_frame(self, table: Table, labels: Floats) -> "EncodedMemory":
        """Add what is made of every row to a table; the memory after its labels."""
        keys, codes = keys_of(table, (self.maker.column,), "gw.encoded")
        after = self.copy()
        made = np.empty((len(self.fields), table.length))
        if after.records.have_room(keys):
            from groupwise.kernels.past import run_encoded

            records, overall = after.records.gathered(keys), np.array(self.overall)
            settings = self.maker.strength, self.setting.middle
            run_encoded(codes, labels, *settings, records, overall, made)
            after.records.scatter(keys, codes, records)
            after.overall = overall.tolist()
        else:  # what comes may push out what is there: one by one
            for t, label in enumerate(labels.tolist()):
                key = None if codes[t] < 0 else keys[codes[t]]
                made[:, t] = after.made(key)
                after.note(key, label)
        for name, values in zip(self.fields, made, strict=True):
            table.add(Column(name, "number", table.length, values=values))
        return after

    def copy(self) -> "EncodedMemory":
        """One that changes apart from this one."""
        twin = EncodedMemory(self.maker, self.setting)
        twin.records, twin.overall = self.records.copy(), self.overall
        return twin

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """All that is remembered."""
        keys, records = self.records.save()
        return {"keys": keys}, {"records": records, "overall": np.array(self.overall)}

    def load(self, fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what ``save`` gave."""
        self.records.load(fields["keys"], arrays["records"], 1)
        overall = arrays["overall"]
        if overall.shape != (2,) or overall.dtype != np.float64:
            raise FeatureError("The saved sum of all labels is none.")
        for counts, sums in ((overall[:1], overall[1:]), arrays["records"].T):
            check_counts(counts)
            check_sums(sums, counts, self.setting.largest)
        self.overall = overall.tolist()
