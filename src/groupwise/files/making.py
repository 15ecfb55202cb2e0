"""What to make of the columns of a file: parts of its dates, and its label's past."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from groupwise.errors import ConfigurationError
from groupwise.features.calendar import LEVELS, Calendar, moment_of
from groupwise.features.past import Past
from groupwise.files import following
from groupwise.files.dates import LOOKED_AT, maker_for, worthwhile
from groupwise.files.profile import Kind, Profile
from groupwise.files.rows import first_rows
from groupwise.files.scan import Scan
from groupwise.files.text import quoted

Dates = dict[str, Calendar]
TRIED = 50
"""So many columns at most are tried, to tell streams apart and as levels."""


def dates_in(
    scan: Scan, order: Sequence[str], others: Collection[str]
) -> tuple[Dates, dict[str, Profile]]:
    """A maker for each column of dates, and the columns that are made of them.

    One of them has parts that are levels: the column to sort by, or else the first. Of the others
    it is known how much time went by.
    """
    names = [p.name for p in scan.columns.values() if p.date and p.distinct > 1]
    names = [name for name in names if name not in others]
    if not names:
        return {}, {}
    chosen = next((name for name in order if name in names), names[0])
    form = scan.columns[chosen].date or ""
    kinds: dict[str, Kind] = {chosen: "text"}
    column = scan.keys.get(chosen)
    if column is None:
        column = first_rows(scan, kinds, (), LOOKED_AT).column(chosen)
    made, levels = worthwhile(chosen, form, column, scan.columns)
    dates = {name: maker_for(name, scan.columns[name].date or "") for name in names}
    dates = {name: one for name, one in dates.items() if one.fields[0] not in scan.columns}
    missing = scan.columns[chosen].missing
    parts = {
        name: Profile(name, "text", scan.rows, missing, values=values)
        for name, values in levels.items()
    }
    return dates if made is None else {**dates, chosen: made}, parts


def part_names(dates: Dates, aside: bool) -> set[str]:
    """The columns that are made of dates, those that are no features or all of them."""
    return {
        name for maker in dates.values() for name in (maker.takes[1:] if aside else maker.fields)
    }


def with_needed(
    features: Mapping[str, object], dates: Dates, needed: Collection[str]
) -> dict[str, Calendar]:
    """The makers of dates with all parts that groups and the past need, and no others aside."""
    found = {}
    for name, maker in dates.items():
        own = features.get(name)
        parts = own.parts if isinstance(own, Calendar) else ()
        named = dict(zip(maker.fields, maker.every, strict=True))
        aside = [part for field, part in named.items() if field in needed and part not in parts]
        if aside and name in features and not isinstance(own, Calendar):
            raise ConfigurationError(
                f"{quoted(name)} is a feature as it is, and groups or the past need its parts: "
                f"name it as {name}:date."
            )
        if aside or isinstance(own, Calendar):
            found[name] = replace(maker, parts=parts, aside=tuple(aside))
    return found


def proposed_past(
    scan: Scan,
    dates: Dates,
    target: str,
    order: Sequence[str],
    few: Sequence[str],
    others: Collection[str],
) -> tuple[Past, ...]:
    """The past of the label, of rows in an order, by what foretells best how it rises.

    Time is what is sorted by, but for text, which may tell streams apart. ``few`` are columns with
    few values, whose levels are tried; ``others`` have a role of their own.
    """
    made = part_names(dates, aside=False)
    keys: list[str] = []
    known = scan.columns
    time = [name for name in order if known[name].kind == "number" or known[name].date] or order
    alike = pa.table({name: scan.keys[name] for name in time}).group_by(list(time)).aggregate([])
    if alike.num_rows < scan.rows:
        aside = {*others, *made, *dates, *time}
        own = [p for p in scan.columns.values() if p.name not in aside]
        fit = [p for p in own if (p.kind == "text" or p.whole) and p.distinct > 1]
        keys = [p.name for p in sorted(fit, key=lambda p: (p.kind != "text", p.distinct))][:TRIED]
    columns = [name for name in few if name not in made][:TRIED]
    wanted = dict.fromkeys([target, *order, *keys, *columns, *dates])
    kinds: dict[str, Kind] = {name: scan.columns[name].reading for name in wanted}
    kinds[target] = "levels" if kinds[target] == "boolean" else kinds[target]
    rows = first_rows(scan, kinds, order, following.ROWS)
    held = {name: rows.column(name).to_pylist() for name in wanted}
    labels = held[target]
    if not all(isinstance(one, float) for one in labels):
        first = scan.columns[target].text
        labels = [float(one == first) for one in labels]
    for maker in dates.values():
        for name, values in parts_of(maker, held[maker.column]).items():
            if name in few or name in maker.takes[1:]:
                held[name] = values
                columns.append(name)
    moments = list(zip(*(held[name] for name in time), strict=True))
    of = following.streams_of(moments, {name: held[name] for name in keys})
    streams = [held[name] for name in of]
    tried = {name: held[name] for name in dict.fromkeys(columns) if name not in of}
    levels = following.levels_of(np.array(labels, dtype=np.float64), streams, tried)
    makers = following.makers(target, of, levels)
    return tuple(one for one in makers if not {*one.fields} & {*scan.columns})


def parts_of(maker: Calendar, values: Sequence[str | None]) -> dict[str, list[str | None]]:
    """The levels that are made of dates."""
    known = {one: moment_of(one, maker) for one in dict.fromkeys(values)}
    found: dict[str, list[str | None]] = {}
    for part, name in zip(maker.every, maker.fields, strict=True):
        if part in LEVELS:
            places = {k: -1 if m is None else getattr(m, part) for k, m in known.items()}
            level = {k: LEVELS[part][at] if at >= 0 else None for k, at in places.items()}
            found[name] = [level[one] for one in values]
    return found
