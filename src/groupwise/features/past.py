"""The past as features: last labels, how they rose, and their exponentially weighted means."""

from collections.abc import Mapping, Sequence
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
    names_in,
)
from groupwise.groups.columns import Column, Table

LONGEST = 10_000
"""No lag is longer: a key remembers so many labels."""
GRID = 2.0**40
"""Labels are rounded to this part of their range, so that differences of them are exact: where
features depend on one another, they do so to the last digit, and hindsight can tell."""
COUNT, SUM, LAST = range(3)
"""What is remembered of everybody with the same ``of``."""


@dataclass(frozen=True)
class Past:
    """The past of the label; see :func:`past`."""

    label: str
    lags: tuple[int, ...] = (1,)
    mean: tuple[float, ...] = (0.9,)
    by: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    rises: bool = False
    keys: int = KEYS
    kind: ClassVar[str] = "past"
    labelled: ClassVar[bool] = True
    takes: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.label, str):
            raise FeatureError(f"past({self.label!r}). Give what the label is called.")
        for name in ("by", "of"):
            object.__setattr__(self, name, names_in(getattr(self, name), name))
        for name, what in (("lags", "whole numbers"), ("mean", "numbers in (0, 1]")):
            given = getattr(self, name)
            found = tuple(given) if isinstance(given, (Sequence, set)) else (given,)
            fine = _are_lags(found) if name == "lags" else _are_decays(found)
            if not fine or len(set(found)) < len(found):
                raise FeatureError(
                    f"{name}={given!r}. Give different {what}"
                    + (f" from 1 to {LONGEST}." if name == "lags" else ".")
                )
            object.__setattr__(self, name, tuple(map(int if name == "lags" else float, found)))
        if not (self.lags or self.mean):
            raise FeatureError("past without lags and without mean makes nothing. Give one.")
        if set(self.by) & set(self.of):
            raise FeatureError(f"by={self.by!r} and of={self.of!r} have a column in common.")
        if not isinstance(self.rises, bool):
            raise FeatureError(f"rises={self.rises!r}. Give True or False.")
        checked_keys(self.keys)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are made of every row."""
        about = f" by {', '.join(self.by)}" if self.by else ""
        about += f" of {', '.join(self.of)}" if self.of else ""
        what = [f"{lag} ago" for lag in self.lags] + [f"mean {one!r}" for one in self.mean]
        labels = [f"{self.label} {one}{about}" for one in what]
        rises = [f"{self.label} rise {one}{about}" for one in what] if self.rises else []
        return (*labels, *rises)

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it reads by name."""
        return (*self.of, *self.by)

    @property
    def forbids(self) -> tuple[str, ...]:
        """The label itself is not known when its row is predicted."""
        return (self.label,)

    def start(self, setting: Setting) -> "PastMemory":
        """Nothing remembered."""
        return PastMemory(self, setting)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters."""
        plain = {name: list(getattr(self, name)) for name in ("lags", "mean", "by", "of")}
        return {"label": self.label, **plain, "rises": self.rises, "keys": self.keys}


def _are_lags(given: tuple[Any, ...]) -> bool:
    return all(is_finite(one, int) and 1 <= one <= LONGEST for one in given)


def _are_decays(given: tuple[Any, ...]) -> bool:
    return all(is_finite(one) and 0.0 < one <= 1.0 for one in given)


def past(
    label: str,
    lags: Sequence[int] = (1,),
    mean: Sequence[float] = (0.9,),
    by: str | Sequence[str] | None = None,
    of: str | Sequence[str] | None = None,
    rises: bool = False,
    keys: int = KEYS,
) -> Past:
    """A feature declaration: the labels settled so far, as features of the rows that follow.

    With y_1 … y_n the labels, scaled to [0, 1] by the loss's range, that were settled before a row
    was predicted, in the order in which they were settled, and of rows with the same ``by`` and
    ``of``: a lag k is y_{n+1−k} (the first, where n < k), and a mean with decay γ is
    Σ γ^{n−i} y_i / Σ γ^{n−i}. Where n = 0 they are the mean of all labels of the same ``of``; where
    there are none of these either, of all labels; at the very start ½. A *rise* is a label less the
    one before it of the same ``of``; rises have lags and means like labels, and are 0 where there
    are none.

    Parameters
    ----------
    label : what the label is called, for the names of the features. No row has such a field.
    lags : how many labels ago: 1 is the last one.
    mean : decays of exponentially weighted means, in (0, 1]; 1 is the plain mean.
    by : columns of levels, such as the hour of the day, each with a past of its own.
    of : columns that tell streams apart, such as stores: each has its own past, by each level.
    rises : rises beside the labels. "Yesterday at this hour it rose by so much": where streams
        have seasons, no period need be known.
    keys : how many combinations of ``by`` and ``of`` are remembered, those that were settled last;
        each takes 1 + max(lags) + 2 len(mean) numbers, and with rises twice that.

    >>> import groupwise as gw
    >>> features = [gw.past("sales", lags=[1, 7], mean=[0.9], by="store")]
    >>> model = gw.Groupwise([gw.by("store")], features=features, loss=gw.losses.Square(0, 200))
    >>> for sales in (50, 100):
    ...     model.learn_one({"store": "a"}, sales)
    >>> ticket = model.predict({"store": "a"})
    >>> ticket.derived["sales 1 ago by store"], ticket.derived["sales 7 ago by store"]
    (0.5, 0.25)
    """
    return Past(label, lags, mean, by, of, rises, keys)  # type: ignore[arg-type]


class PastMemory:
    """The labels that were settled, as far as they are needed."""

    def __init__(self, maker: Past, setting: Setting) -> None:
        self.maker = maker
        self.setting = setting
        self.fields = maker.fields
        self.length = max(maker.lags, default=0)
        self.width = 1 + self.length + 2 * len(maker.mean)
        parts = 2 if maker.rises else 1
        self.levels = Records(maker.keys, [0.0] * (parts * self.width))
        """By ``of`` and ``by``: a count, the last labels in a ring, sums and their weights."""
        self.owners = Records(maker.keys, [0.0] * 3)
        """By ``of``: a count, the sum of the labels, the last one."""
        self.overall = [0.0, 0.0]
        self.columns = (*maker.of, *maker.by)

    def make(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The fields that are made of a row."""
        return dict(zip(self.fields, self.made(*self._keys(row)), strict=True))

    def settle(self, row: Mapping[str, Any], made: Mapping[str, Any], label: float) -> None:
        """Take note of a label."""
        self.note(*self._keys(row), float(label))

    def _keys(self, row: Mapping[str, Any]) -> tuple[Key | None, Key | None]:
        level = key_of(row, self.columns, "gw.past")
        owner = key_of(row, self.maker.of, "gw.past") if level is None else level[: self._cut]
        return level, owner

    @property
    def _cut(self) -> int:
        return len(self.maker.of)

    def made(self, level: Key | None, owner: Key | None) -> list[float]:
        """What is made of rows with these keys."""
        record = None if level is None else self.levels.get(level)
        if record is None:
            count = len(self.maker.lags) + len(self.maker.mean)
            return [self._usual(owner)] * count + [0.0] * (len(self.fields) - count)
        found = self._read(record, 0)
        if self.maker.rises:
            found += self._read(record, self.width)
        return found

    def _usual(self, owner: Key | None) -> float:
        """What is made of a label where the level has none yet."""
        known = None if owner is None else self.owners.get(owner)
        if known is not None:
            return known[SUM] / known[COUNT]
        count, total = self.overall
        return total / count if count > 0.0 else self.setting.middle

    def _read(self, record: list[float], first: int) -> list[float]:
        """Lags and means of what a record holds from a place on."""
        count, length = int(record[first]), self.length
        if count == 0:
            return [0.0] * (len(self.maker.lags) + len(self.maker.mean))
        ring = first + 1
        found = [record[ring + (count - min(lag, count)) % length] for lag in self.maker.lags]
        sums = ring + length
        for place in range(sums, sums + 2 * len(self.maker.mean), 2):
            found.append(record[place] / record[place + 1])
        return found

    def note(self, level: Key | None, owner: Key | None, label: float) -> None:
        """Take note of a label of these keys."""
        label = np.rint(label * GRID).item() / GRID
        overall = self.overall
        self.overall = [overall[COUNT] + 1.0, overall[SUM] + label]
        if owner is None:
            return
        known = self.owners.get(owner, self.owners.blank)
        if level is not None:
            record = self.levels.get(level, self.levels.blank)[:]
            self._write(record, 0, label)
            if self.maker.rises and known[COUNT] > 0.0:
                self._write(record, self.width, label - known[LAST])
            self.levels.put(level, record)
        self.owners.put(owner, [known[COUNT] + 1.0, known[SUM] + label, label])

    def _write(self, record: list[float], first: int, value: float) -> None:
        """Add what came last to a record, from a place on."""
        if self.length:
            record[first + 1 + int(record[first]) % self.length] = value
        record[first] += 1.0
        place = first + 1 + self.length
        for decay in self.maker.mean:
            record[place] = decay * record[place] + value
            record[place + 1] = decay * record[place + 1] + 1.0
            place += 2

    def of_frame(self, table: Table, labels: Floats) -> "PastMemory":
        """Add what is made of every row to a table; the memory after its labels."""
        levels, level = keys_of(table, self.columns, "gw.past")
        owners, owner = keys_of(table, self.maker.of, "gw.past")
        after = self.copy()
        made = np.empty((len(self.fields), table.length))
        if after.levels.have_room(levels) and after.owners.have_room(owners):
            from groupwise.kernels.past import run_past

            records, owned = after.levels.gathered(levels), after.owners.gathered(owners)
            overall = np.array(self.overall)
            lags = np.array(self.maker.lags, dtype=np.int64)
            decays = np.array(self.maker.mean, dtype=np.float64)
            settings = self.maker.rises, self.setting.middle, lags, decays
            rounded = np.rint(labels * GRID) / GRID
            run_past(level, owner, rounded, *settings, records, owned, overall, made)
            after.levels.scatter(levels, level, records)
            after.owners.scatter(owners, owner, owned)
            after.overall = overall.tolist()
        else:  # what comes may push out what is there: one by one
            for t, label in enumerate(labels.tolist()):
                keys = (
                    None if level[t] < 0 else levels[level[t]],
                    None if owner[t] < 0 else owners[owner[t]],
                )
                made[:, t] = after.made(*keys)
                after.note(*keys, label)
        for name, values in zip(self.fields, made, strict=True):
            table.add(Column(name, "number", table.length, values=values))
        return after

    def copy(self) -> "PastMemory":
        """One that changes apart from this one."""
        twin = PastMemory(self.maker, self.setting)
        twin.levels, twin.owners = self.levels.copy(), self.owners.copy()
        twin.overall = self.overall
        return twin

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """All that is remembered."""
        levels, records = self.levels.save()
        owners, owned = self.owners.save()
        arrays = {"levels": records, "owners": owned, "overall": np.array(self.overall)}
        return {"levels": levels, "owners": owners}, arrays

    def load(self, fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what ``save`` gave."""
        self.levels.load(fields["levels"], arrays["levels"], len(self.columns))
        self.owners.load(fields["owners"], arrays["owners"], self._cut)
        overall, owned = arrays["overall"], arrays["owners"]
        if overall.shape != (2,) or overall.dtype != np.float64:
            raise FeatureError("The saved sum of all labels is none.")
        largest = self.setting.largest
        for counts, sums in ((overall[:1], overall[1:]), (owned[:, COUNT], owned[:, SUM])):
            check_counts(counts)
            check_sums(sums, counts, largest)
        check_sums(owned[:, LAST], np.ones(len(owned)), largest)
        if not owned[:, COUNT].all():
            raise FeatureError("A saved key has no labels.")
        for first in range(0, len(self.levels.blank), self.width):
            part = arrays["levels"][:, first : first + self.width]
            check_counts(part[:, 0])
            ring, sums = part[:, 1 : 1 + self.length], part[:, 1 + self.length :: 2]
            weights = part[:, 2 + self.length :: 2]
            check_sums(ring, np.ones_like(ring), (1 + (first > 0)) * largest)
            check_sums(sums, weights, (1 + (first > 0)) * largest)
            if (weights[part[:, 0] > 0.0] < 1.0).any() or (first == 0 and not part[:, 0].all()):
                raise FeatureError("A saved weight of labels is none.")
        self.overall = overall.tolist()
