"""Dates and moments as features: the hour, the weekday, the month, and the time that went by."""

import datetime
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from groupwise.errors import FeatureError
from groupwise.features.declared import Floats, Integers
from groupwise.features.makers import Arrays, Setting, field_of, names_in
from groupwise.groups.columns import Column, Table
from groupwise.groups.values import is_missing

LEVELS: dict[str, tuple[str, ...]] = {
    "hour": tuple(map(str, range(24))),
    "day": tuple(map(str, range(1, 32))),
    "weekday": (*("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),),
    "month": tuple(map(str, range(1, 13))),
    "time": tuple(f"{minute // 60:02}:{minute % 60:02}" for minute in range(24 * 60)),
}
"""The parts that are levels, and which these are."""
ELAPSED = "elapsed"
PARTS = ("hour", "weekday", "month", ELAPSED)
YEAR = 365.25 * 86_400e6
"""Microseconds in a year."""
EPOCH = datetime.datetime(1970, 1, 1)
UTC = datetime.UTC
MICROSECOND = datetime.timedelta(microseconds=1)
CLOCKS = ("%H", "%I", "%X", "%c", "%T", "%R")
"""What says in a format that there is an hour."""
FARTHEST = 1 << 59
"""No date is so many microseconds from 1970."""


@dataclass(frozen=True)
class Calendar:
    """The parts of a date; see :func:`calendar`."""

    column: str
    parts: tuple[str, ...] = PARTS
    aside: tuple[str, ...] = ()
    format: str | None = None
    kind: ClassVar[str] = "calendar"
    labelled: ClassVar[bool] = False
    forbids: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise FeatureError(f"calendar({self.column!r}). Give the name of a column.")
        for name, known in (("parts", (*LEVELS, ELAPSED)), ("aside", tuple(LEVELS))):
            found = names_in(getattr(self, name), name)
            if any(one not in known for one in found):
                raise FeatureError(f"{name}={found!r}. Give some of {', '.join(known)}.")
            object.__setattr__(self, name, found)
        if self.format is not None:
            day = datetime.datetime(2001, 2, 3)
            try:
                again = datetime.datetime.strptime(day.strftime(self.format), self.format)
            except (TypeError, ValueError):
                again = EPOCH
            if again != day:
                raise FeatureError(
                    f"format={self.format!r}. Give one with day, month and year, as %d/%m/%Y."
                )
        every = self.every
        if not every or len(set(every)) < len(every):
            raise FeatureError(f"calendar makes {every!r}. Give at least one part, and each once.")

    @property
    def every(self) -> tuple[str, ...]:
        """All parts, features or not."""
        return (*self.parts, *self.aside)

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that are made of every row."""
        return tuple(f"{self.column} {part}" for part in self.every)

    @property
    def reads(self) -> tuple[str, ...]:
        """The field that it reads."""
        return (self.column,)

    @property
    def takes(self) -> tuple[str, ...]:
        """The column is a feature through its parts, and some of these are none."""
        return (self.column, *self.fields[len(self.parts) :])

    def start(self, setting: Setting) -> "CalendarMemory":
        """Nothing remembered."""
        return CalendarMemory(self)

    def to_dict(self) -> dict[str, Any]:
        """Its parameters."""
        parts = {"parts": list(self.parts), "aside": list(self.aside)}
        return {"column": self.column, **parts, "format": self.format}


def calendar(
    column: str,
    parts: Sequence[str] = PARTS,
    aside: Sequence[str] = (),
    format: str | None = None,
) -> Calendar:
    """A feature declaration: a date or moment by its parts.

    ``hour``, ``day``, ``weekday``, ``month`` and ``time`` (hours and minutes) are levels, as of
    text, which groups can be made of too, as in ``gw.by("date hour")``; ``elapsed`` is the number
    of years since the first date that was settled (0 before). A date without a time has no hour.
    Where every field is a feature, the column is none besides.

    Parameters
    ----------
    column : datetimes, dates, or text as ISO 8601 has it (2024-05-01, 2024-05-01T13:30). Parts are
        those of the clock that it was written by; where it says no zone, UTC. One that is missing
        has no parts.
    parts : some of hour, day, weekday, month, time, elapsed.
    aside : parts that are no features: they are there for groups, and for ``gw.past(by=...)``.
    format : how text is written where it is not as ISO 8601 has it, such as ``%d/%m/%Y %H:%M``.

    >>> import datetime
    >>> import groupwise as gw
    >>> model = gw.Groupwise([gw.by("start hour")], features=[gw.calendar("start")])
    >>> ticket = model.predict({"start": datetime.datetime(2024, 5, 1, 13, 30)})
    >>> ticket.derived
    {'start hour': '13', 'start weekday': 'wednesday', 'start month': '5', 'start elapsed': 0.0}
    >>> ticket.names
    ['start hour=13', 'always_on']
    """
    return Calendar(column, parts, aside, format)  # type: ignore[arg-type]


class Moment(NamedTuple):
    """A date as its parts need it: which of their levels, -1 for no hour."""

    hour: int
    day: int
    weekday: int
    month: int
    time: int
    moment: int
    """Microseconds since 1970, in UTC."""


def moment_of(value: Any, maker: Calendar) -> Moment | None:
    """A date's parts; None where it is missing."""
    if is_missing(value):
        return None
    if isinstance(value, np.datetime64):
        value = value.astype("M8[us]").item()
    timed = True
    if isinstance(value, str):
        try:
            moment, timed = _written(value.strip(), maker.format)
        except ValueError:
            raise _no_date(maker, value) from None
    elif isinstance(value, datetime.datetime):
        moment = value
    elif isinstance(value, datetime.date):
        moment, timed = datetime.datetime(value.year, value.month, value.day), False
    else:
        raise _no_date(maker, value)
    if type(moment) is not datetime.datetime:  # which may be finer than microseconds
        exact = moment.hour, moment.minute, moment.second, moment.microsecond, moment.tzinfo
        moment = datetime.datetime(moment.year, moment.month, moment.day, *exact, fold=moment.fold)
    try:
        plain = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    except OverflowError:  # in UTC it is no year from 1 to 9999
        raise _no_date(maker, value) from None
    clock = (moment.hour, 60 * moment.hour + moment.minute) if timed else (-1, -1)
    day = moment.day - 1, moment.weekday(), moment.month - 1
    return Moment(clock[0], *day, clock[1], (plain - EPOCH) // MICROSECOND)


def _written(text: str, form: str | None) -> tuple[datetime.datetime, bool]:
    """A date that is written out, and whether it has a time; ValueError where it is none.

    As ISO 8601 has it a date is read beside any other form: so files write those that have a type.
    """
    if form is not None:
        with suppress(ValueError):
            moment = datetime.datetime.strptime(text, form)
            return moment, any(sign in form for sign in CLOCKS)
    return datetime.datetime.fromisoformat(text), ":" in text


def _no_date(maker: Calendar, value: object) -> FeatureError:
    texts = "2024-05-01 or 2024-05-01T13:30" if maker.format is None else f"{maker.format} has it"
    return FeatureError(
        f"Field {maker.column!r} holds {value!r}, which is no date that can be read. Give a "
        f"date, or text such as {texts}."
    )


def moments_of(table: Table, maker: Calendar) -> dict[str, Integers]:
    """The same of a column: an array per part, -1 where a date is missing."""
    column = maker.column
    if column not in table:
        raise FeatureError(f"The frame has no column {column!r}, which gw.calendar reads. Add it.")
    series = table.series(column)
    kind = str(series.dtype)
    if kind == "Date" or kind.startswith("Datetime"):
        return _vectorised(series, kind != "Date")
    read = table.column(column)
    values, codes = read.distinct
    found: list[Moment | None] = [None] * len(values)
    known, rows = np.unique(codes, return_index=True)
    for row, code in sorted(zip(rows.tolist(), known.tolist(), strict=True)):
        try:
            if code >= 0:
                found[code] = moment_of(values[code], maker)
        except FeatureError as error:
            error.row = row
            raise
    nothing = Moment(*[-1] * len(Moment._fields))
    parts = np.array([nothing if one is None else one for one in (*found, nothing)], dtype=np.int64)
    there = np.array([*(one is not None for one in found), False])[codes]
    return {**dict(zip(Moment._fields, parts[codes].T, strict=True)), "there": there}


def _vectorised(series: Any, timed: bool) -> dict[str, Integers]:
    there = ~series.is_null().to_numpy().astype(np.bool_)
    kept = series.filter(there.tolist()) if not there.all() else series

    def laid(values: Any, nothing: int = -1) -> Integers:
        found = np.full(len(there), nothing, dtype=np.int64)
        found[there] = np.asarray(values, dtype=np.int64)
        return found

    hour = kept.dt.hour().to_numpy() if timed else np.zeros(0)
    return {
        "hour": laid(hour if timed else -1),
        "day": laid(kept.dt.day().to_numpy() - 1),
        "weekday": laid(kept.dt.weekday().to_numpy() - 1),
        "month": laid(kept.dt.month().to_numpy() - 1),
        "time": laid(60 * hour.astype(np.int64) + kept.dt.minute().to_numpy() if timed else -1),
        "moment": laid(kept.dt.timestamp("us").to_numpy()),
        "there": there,
    }


class CalendarMemory:
    """The first date that was settled."""

    def __init__(self, maker: Calendar, origin: int | None = None) -> None:
        self.maker = maker
        self.origin = origin
        self.named = list(zip(maker.every, maker.fields, strict=True))

    def make(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The parts of a row's date."""
        moment = moment_of(field_of(row, self.maker.column, "gw.calendar"), self.maker)
        if moment is None:
            return dict.fromkeys(self.maker.fields)
        made: dict[str, Any] = {}
        for part, name in self.named:
            if part == ELAPSED:
                origin = moment.moment if self.origin is None else self.origin
                made[name] = float(moment.moment - origin) / YEAR
            else:
                level = getattr(moment, part)
                made[name] = LEVELS[part][level] if level >= 0 else None
        return made

    def settle(self, row: Mapping[str, Any], made: Mapping[str, Any], label: float) -> None:
        """Take note of the first date."""
        if self.origin is None:
            moment = moment_of(row[self.maker.column], self.maker)
            self.origin = None if moment is None else moment.moment

    def of_frame(self, table: Table, labels: Floats) -> "CalendarMemory":
        """Add the parts of every row's date to a table; the memory after its labels."""
        found = moments_of(table, self.maker)
        there, times = found["there"].astype(np.bool_), found["moment"]
        origin, first = self.origin, np.flatnonzero(there)
        if origin is None and len(first):
            origin = int(times[first[0]])
        for part, name in self.named:
            if part == ELAPSED:
                years = (times - (origin or 0)).astype(np.float64) / YEAR
                nulls = None if there.all() else ~there
                table.add(Column(name, "number", table.length, values=years, nulls=nulls))
            else:
                codes = np.where(there, found[part], -1)
                levels = list(LEVELS[part])
                table.add(Column(name, "text", table.length, codes=codes, levels=levels))
        return CalendarMemory(self.maker, origin)

    def copy(self) -> "CalendarMemory":
        """One that changes apart from this one."""
        return CalendarMemory(self.maker, self.origin)

    def save(self) -> tuple[dict[str, Any], Arrays]:
        """All that is remembered."""
        return {"origin": self.origin}, {}

    def load(self, fields: Mapping[str, Any], arrays: Arrays) -> None:
        """Take over what ``save`` gave."""
        origin = fields["origin"]
        if origin is not None and (type(origin) is not int or abs(origin) > FARTHEST):
            raise FeatureError("The saved first date is none.")
        self.origin = origin
