"""Columns of dates in files: how they are written, and which parts of them are worth something."""

import datetime
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pyarrow.compute as compute

from groupwise.arrays import Index
from groupwise.errors import FeatureError
from groupwise.features.calendar import ELAPSED, LEVELS, Calendar, Moment, calendar, moment_of

ISO = "ISO 8601"
DAYS = (
    *("%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%Y/%m/%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%m/%d/%y", "%d/%m/%y", "%d.%m.%y", "%d-%b-%Y", "%d-%b-%y", "%d %b %Y", "%b %d, %Y"),
    *("%d %B %Y", "%B %d, %Y"),
)
TIMES_OF_DAY = ("", " %H:%M", " %H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
FORMS = (ISO, *map("".join, product(DAYS, TIMES_OF_DAY)))
"""How dates may be written. Where it could be either of two, it is none."""
LOOKED_AT = 100_000
"""So many dates tell what there is to know of a column."""
TIMES = 96
"""So many times of the day, quarters of an hour, may each have a past of their own."""
DAY = 86_400e6
"""Microseconds."""


def forms_of(values: Iterable[str], forms: Collection[str] = FORMS) -> tuple[str, ...]:
    """Those of some ways to write dates in which all values are written.

    >>> forms_of(["1/2/2024", "1/31/2024"])
    ('%m/%d/%Y',)
    """
    left = list(forms)
    for value in values:
        left = [form for form in left if _reads(value, form)]
        if not left:
            break
    return tuple(left)


def _reads(value: str, form: str) -> bool:
    with suppress(ValueError):
        if form == ISO:
            datetime.datetime.fromisoformat(value.strip())
        else:
            datetime.datetime.strptime(value.strip(), form)
        return True
    return False


def maker_for(
    column: str, form: str, parts: Sequence[str] = (ELAPSED,), aside: Sequence[str] = ()
) -> Calendar:
    """The maker that reads dates so written."""
    return calendar(column, parts, aside, None if form == ISO else form)


def times_of(column: Any, form: str, nothing: int) -> Index:
    """A column of dates as microseconds, to sort by; ``nothing`` where there is none."""
    coded = column.combine_chunks().dictionary_encode()
    maker = maker_for("", form)
    known = [_time(one, maker, nothing) for one in coded.dictionary.to_pylist()]
    codes = coded.indices.fill_null(len(known)).to_numpy()
    found: Index = np.array([*known, nothing], dtype=np.int64)[codes]
    return found


def _time(value: str, maker: Calendar, nothing: int) -> int:
    with suppress(FeatureError):
        return _moment(value, maker).moment
    return nothing


def _moment(value: str, maker: Calendar) -> Moment:
    found = moment_of(value, maker)
    if found is None:
        raise FeatureError("The date is missing.")
    return found


def worthwhile(
    column: str, form: str, values: Any, taken: Collection[str] = ()
) -> tuple[Calendar | None, dict[str, set[str]]]:
    """The parts of a date to use, and the levels they have; no maker where there are none.

    Hours where dates are closer than a day, weekdays below a week, months below a season; times of
    the day beside hours, as levels of the past alone. ``values`` are dates of the column; names of
    fields that are ``taken`` are not used.
    """
    texts = compute.unique(values.slice(0, LOOKED_AT)).drop_null().to_pylist()
    maker = maker_for(column, form)
    moments = [_moment(one, maker) for one in texts]
    times = np.unique(np.array([one.moment for one in moments]))
    step = float(np.median(np.diff(times))) / DAY if len(times) > 1 else np.inf
    found: dict[str, set[str]] = {}
    for part, longest in (("hour", 0.9), ("time", 0.9), ("weekday", 6.0), ("month", 100.0)):
        levels = {
            LEVELS[part][getattr(one, part)]
            for one in moments
            if one.hour >= 0 or part in ("weekday", "month")
        }
        if step < longest and len(levels) > 1:
            found[part] = levels
    many = len(found.get("time", ()))
    free = [part for part in (*found, ELAPSED) if f"{column} {part}" not in taken]
    parts = [part for part in free if part != "time"]
    finer = "time" in free and len(found.get("hour", ())) < many <= TIMES
    aside = ["time"] if finer else []
    made = maker_for(column, form, parts, aside) if parts or aside else None
    known = [part for part in (*parts, *aside) if part != ELAPSED]
    return made, {f"{column} {part}": found[part] for part in known}
