"""Shapes: hinges, with which a linear model bends at knots that are found online."""

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from groupwise.arrays import LARGEST
from groupwise.errors import FeatureError, is_finite
from groupwise.features.declared import Floats
from groupwise.features.makers import Arrays, Setting, field_of, names_in
from groupwise.groups.columns import Booleans, Column, Table
from groupwise.groups.values import as_float, is_missing, value_name

KNOTS = ((256, (0.05, 0.275, 0.5, 0.725, 0.95)),)
"""After so many rows, knots at these quantiles. The tails matter; more knots gain little."""
MOST_ROWS = 100_000
MOST_KNOTS = 1_000
DIGITS = 8
"""Binary digits of a knot: so few that ratios of differences of knots are simple fractions."""
MOST_COLUMNS = 256
"""So many number fields have hinges where none are named: those that come first."""


@dataclass(frozen=True)
class Hinges:
    """Hinges of number fields; see :func:`hinges`."""

    columns: tuple[str, ...] | None = None
    knots: tuple[tuple[int, tuple[float, ...]], ...] = KNOTS
    kind: ClassVar[str] = "hinges"
    labelled: ClassVar[bool] = False
    fields: ClassVar[tuple[str, ...]] = ()
    takes: ClassVar[tuple[str, ...]] = ()
    forbids: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if self.columns is not None:
            object.__setattr__(self, "columns", names_in(self.columns, "columns"))
            if not self.columns:
                raise FeatureError("hinges(columns=[]) makes nothing. Name one, or leave it out.")
        try:
            given = self.knots.items() if isinstance(self.knots, Mapping) else self.knots
            found = tuple((rows, _quantiles(knots)) for rows, knots in given)
            stages = [rows for rows, _ in found]
            fine = all(is_finite(rows, int) and 2 <= rows <= MOST_ROWS for rows in stages)
            fine = fine and len(stages) > 0 and stages == sorted(set(stages))
        except (TypeError, ValueError):
            fine = False
        if not fine:
            raise FeatureError(
                f"knots={self.knots!r}. Give pairs (rows, knots): rows ascending, at most "
                f"{MOST_ROWS}; knots a number up to {MOST_KNOTS}, or quantiles in (0, 1)."
            )
        object.__setattr__(self, "knots", found)

    @property
    def reads(self) -> tuple[str, ...]:
        """The fields that it reads by name."""
        return self.columns or ()

    def start(self, setting: Setting) -> "HingesMemory":
        """Nothing remembered."""
        return HingesMemory(self, setting)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters."""
        columns = None if self.columns is None else list(self.columns)
        return {"columns": columns, "knots": [[rows, list(knots)] for rows, knots in self.knots]}


def _quantiles(knots: object) -> tuple[float, ...]:
    """Quantiles as they are, or so many even ones."""
    if is_finite(knots, int):
        count = cast(int, knots)
        found = tuple(part / (count + 1) for part in range(1, count + 1))
    else:
        found = tuple(map(float, cast(Sequence[float], knots)))
    if not 1 <= len(found) <= MOST_KNOTS or not all(0.0 < one < 1.0 for one in found):
        raise ValueError
    return found


def hinges(
    columns: str | Sequence[str] | None = None,
    knots: Sequence[tuple[int, int | Sequence[float]]] | Mapping[int, Any] = KNOTS,
) -> Hinges:
    """A feature declaration: number fields bend at knots c, by the features [x − c]₊.

    x is the field as the model has it: scaled, where a range is declared for it. Where none is,
    the hinge is divided by a power of 2 that is at least the range of these values. Once a field
    was settled in so many rows, knots are put at quantiles of its values, to 8 binary digits (of
    their own, or of the range of these values where that is finer), and stay: the difference is
    then an exact one as a rule, so that where a group lies on one side of a knot, its columns are
    dependent to the last digit, and hindsight can tell. At a later stage only quantiles are added
    that no earlier stage had. A knot lies strictly inside the range of these values, so that a
    field that is constant or 0/1 has none. A knot that is set along the stream is a feature that
    was 0 before: the best linear model in hindsight is one of all features that there are by then.

    Parameters
    ----------
    columns : names, also of fields that makers before this one make; None for the number fields
        among the features (the first 256 of them).
    knots : pairs (rows, knots), knots being quantiles, or a number of even ones. So many values are
        kept of each field until its last knots are set.

    >>> import groupwise as gw
    >>> model = gw.Groupwise([], features=[gw.hinges("age", knots=[(4, 1)])])
    >>> for age in (20, 30, 40, 70):
    ...     model.learn_one({"age": age}, 0.5)
    >>> model.predict({"age": 65}).derived
    {'age above 40': 0.390625}
    """
    return Hinges(columns, knots)  # type: ignore[arg-type]


class Knot(NamedTuple):
    """Where a field bends: at ``place``, in units of ``span`` from ``low``."""

    name: str
    low: float
    span: float
    place: float
    unit: float
    """By which the hinge is divided: a power of 2."""


Number = TypeVar("Number", float, Floats)


def above(x: Number, knot: Knot) -> Number:
    """x − c, of a number or of all of a column."""
    return ((x - knot.low) / knot.span - knot.place) / knot.unit


def coarse(x: float, width: float) -> float:
    """A number to so many binary digits of its own, or of a width where that is finer."""
    power = min(math.frexp(x)[1], math.frexp(width)[1]) - DIGITS
    return math.ldexp(round(math.ldexp(x, -power)), power)


def heights(x: Floats, knot: Knot) -> Floats:
    """The hinge [x − c]₊ of every number of a column."""
    with np.errstate(over="ignore"):
        return np.clip(above(x, knot), 0.0, LARGEST)


def number_in(value: Any) -> float | None:
    """A value as a number that can be computed with; None where it is none."""
    if type(value) is not float:
        value = None if isinstance(value, (bool, np.bool_)) else as_float(value)
    return value if value is not None and -LARGEST <= value <= LARGEST else None


class Numbers(NamedTuple):
    """A column of a frame: its numbers, which of them there are, and their rows."""

    x: Floats
    present: Booleans
    rows: npt.NDArray[np.int64]

    @classmethod
    def none(cls, length: int) -> "Numbers":
        """A column without any."""
        return cls(np.zeros(length), np.zeros(length, dtype=np.bool_), np.zeros(0, dtype=np.int64))


class HingesMemory:
    """The values of each field until its last knots are set, and the knots."""

    def __init__(self, maker: Hinges, setting: Setting) -> None:
        self.maker = maker
        self.setting = setting
        self.values: dict[str, list[float] | None] = {}
        """The fields that are looked at; None where all knots are set."""
        self.knots: dict[str, tuple[Knot, ...]] = {}
        self.stages = dict(maker.knots)
        self.last = maker.knots[-1][0]

    def make(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The hinges of a row; of a field that is missing they are 0."""
        if self.maker.columns is not None:
            for column in self.maker.columns:
                self.check(column, field_of(row, column, "gw.hinges"))
        made: dict[str, Any] = {}
        for field, knots in self.knots.items():
            x = number_in(row.get(field))
            for knot in knots:
                made[knot.name] = 0.0 if x is None else min(max(above(x, knot), 0.0), LARGEST)
        return made

    def check(self, column: str, value: Any) -> None:
        """Refuse what is no number; one that is missing is none to bend."""
        fine = number_in(value) is not None or isinstance(value, (bool, np.bool_))
        if not fine and not is_missing(value):
            raise FeatureError(
                f"Field {column!r} holds {value!r}, which gw.hinges cannot bend: it is for numbers "
                f"of at most {LARGEST:g}."
            )

    def settle(self, row: Mapping[str, Any], made: Mapping[str, Any], label: float) -> None:
        """Take note of a row."""
        for field in self._candidates([field for field in row if field not in made]):
            known = field in self.values
            values = self.values[field] if known else []
            if values is None:
                continue
            x = number_in(row.get(field))
            if x is None or not (known or self._room()):
                continue
            values.append(x)
            self.values[field] = values if len(values) < self.last else None
            if len(values) in self.stages:
                self.fix(field, self.knots_of(field, np.array(values), row))

    def _room(self) -> bool:
        return self.maker.columns is not None or len(self.values) < MOST_COLUMNS

    def _candidates(self, fields: Sequence[str]) -> Iterator[str]:
        """The fields of rows that may have hinges."""
        setting = self.setting
        if self.maker.columns is not None:
            yield from self.maker.columns
            return
        for field in fields if setting.declared is None else setting.declared:
            if field not in setting.apart:
                yield field

    def knots_of(self, field: str, values: Floats, taken: Container[object]) -> list[Knot]:
        """The knots to set when a field has these values: quantiles that no stage before had."""
        values = np.sort(values)
        low, high = float(values[0]), float(values[-1])
        least, most = self.setting.ranges.get(field, (0.0, 1.0))
        unit = 1.0
        if field not in self.setting.ranges:
            unit = math.ldexp(1.0, math.frexp(high - low)[1])
        span, had = most - least, self.knots.get(field, ())
        before = [one for rows, some in self.maker.knots if rows < len(values) for one in some]
        found: list[Knot] = []
        ends, width = ((low - least) / span, (high - least) / span), (high - low) / span
        for quantile in self.stages[len(values)]:
            place = float(values[int(quantile * len(values))])
            name = f"{field} above {value_name(place, field)}"
            at = coarse((place - least) / span, width)
            inside = low < place < high and ends[0] < at < ends[1]
            again = any(at == one.place or name == one.name for one in (*had, *found))
            if inside and not again and quantile not in before and name not in taken:
                found.append(Knot(name, least, span, at, unit))
        return found

    def fix(self, field: str, knots: Sequence[Knot]) -> None:
        """Set knots for good."""
        if knots:
            self.knots[field] = (*self.knots.get(field, ()), *knots)

    def of_frame(self, table: Table, labels: Floats) -> "HingesMemory":
        """Add the hinges of every row to a table; the memory after its rows."""
        after = self.copy()
        columns = {field: _numbers(table, field, self) for field in self._candidates(table.names)}
        new = [field for field in columns if field not in self.values and columns[field].rows.size]
        new.sort(key=lambda field: int(columns[field].rows[0]))  # as rows bring them
        room = len(new) if self.maker.columns is not None else MOST_COLUMNS - len(self.values)
        after.values.update((field, []) for field in new[: max(room, 0)])
        start: dict[str, int] = {}
        stages = []
        for place, (field, column) in enumerate(columns.items()):
            values = after.values.get(field)
            if values is None:
                continue
            whole = np.array([*values, *column.x[column.rows[: self.last]].tolist()])[: self.last]
            for rows in self.stages:
                if len(values) < rows <= len(whole):
                    settled = int(column.rows[rows - len(values) - 1])
                    stages.append((settled, place, field, whole[:rows]))
            after.values[field] = whole.tolist() if len(whole) < self.last else None
        for settled, _, field, whole in sorted(stages, key=lambda one: one[:2]):
            new_knots = after.knots_of(field, whole, table.names)
            after.fix(field, new_knots)
            start.update((knot.name, settled + 1) for knot in new_knots)
        for field, knots in after.knots.items():
            column = columns[field] if field in columns else Numbers.none(table.length)
            for knot in knots:
                self._add(table, column, knot, start.get(knot.name, 0))
        return after

    def _add(self, table: Table, column: Numbers, knot: Knot, first: int) -> None:
        """Add the hinge of a column that has its knot from a row on."""
        if first < table.length:
            counted = np.arange(table.length)
            x = np.where(column.present & (counted >= first), heights(column.x, knot), 0.0)
            nulls = counted < first if first else None
            made = Column(knot.name, "number", table.length, values=x, nulls=nulls)
            table.add(made, lasting=False)

    def copy(self) -> "HingesMemory":
        """One that changes apart from this one."""
        twin = HingesMemory(self.maker, self.setting)
        twin.values = {k: None if one is None else one.copy() for k, one in self.values.items()}
        twin.knots = dict(self.knots)
        return twin

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """All that is remembered."""
        waiting = {field: values for field, values in self.values.items() if values is not None}
        knots = [[field, *knot] for field, knots in self.knots.items() for knot in knots]
        fields = {
            "fields": list(self.values),
            "waiting": [[field, len(values)] for field, values in waiting.items()],
            "knots": [[field, name] for field, name, *_ in knots],
        }
        arrays = {
            "values": np.array([x for values in waiting.values() for x in values], dtype=float),
            "knots": np.array([one[2:] for one in knots], dtype=float).reshape(len(knots), 4),
        }
        return fields, arrays

    def load(self, fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what ``save`` gave."""
        values, knots = arrays["values"], arrays["knots"]
        names = [str.__str__(field) for field in fields["fields"]]
        waiting = dict(fields["waiting"])
        counts = list(waiting.values())
        fits = all(type(one) is int and 0 < one < self.last for one in counts)
        fits = fits and set(waiting) <= set(names) and len(waiting) == len(fields["waiting"])
        if not fits or values.shape != (sum(counts),) or values.dtype != np.float64:
            raise FeatureError("The saved values of fields with hinges do not fit them.")
        if knots.shape != (len(fields["knots"]), 4) or knots.dtype != np.float64:
            raise FeatureError("The saved knots do not fit their fields.")
        if (np.abs(values) > LARGEST).any() or (np.abs(knots) > 2.0 * LARGEST).any():
            raise FeatureError("A saved value of a field with hinges is beyond what there is.")
        ends = np.cumsum([0, *counts]).tolist()
        self.values = dict.fromkeys(names)
        for field, first, last in zip(waiting, ends[:-1], ends[1:], strict=True):
            self.values[field] = values[first:last].tolist()
        for (field, name), numbers in zip(fields["knots"], knots.tolist(), strict=True):
            knot = Knot(name, *numbers)
            fine = isinstance(name, str) and min(knot.span, knot.unit) > 0.0
            if field not in self.values or not fine:
                raise FeatureError("A saved knot is none.")
            self.fix(field, [knot])
        every = [knot.name for knots in self.knots.values() for knot in knots]
        if len(set(every)) < len(every) or len(names) > len(self.values):
            raise FeatureError("A saved knot or field occurs twice.")


def _numbers(table: Table, field: str, memory: HingesMemory) -> Numbers:
    """The numbers of a column; where it is named, anything else is an error."""
    if field not in table:
        raise FeatureError(f"The frame has no column {field!r}, which gw.hinges reads. Add it.")
    column = table.column(field)
    if column.kind == "number":
        x = column.values.astype(np.float64)
        present = np.abs(x) <= LARGEST
        if column.nulls is not None:
            present &= ~column.nulls
    elif column.kind == "objects":
        found = [number_in(value) for value in column.objects]
        present = np.array([one is not None for one in found], dtype=np.bool_)
        x = np.array([0.0 if one is None else one for one in found])
    else:
        x, present = Numbers.none(table.length)[:2]
    if memory.maker.columns is not None and not present.all():
        for row in np.flatnonzero(~present).tolist():
            try:
                memory.check(field, column.value(row))
            except FeatureError as error:
                error.row = row
                raise
    return Numbers(np.where(present, x, 0.0), present, np.flatnonzero(present))
