"""What is noticed of columns before a run: those to leave out, those that are alike, and leaks."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.files.making import Dates, parts_of
from groupwise.files.profile import Kind, Profile
from groupwise.files.rows import first_rows
from groupwise.files.scan import Scan
from groupwise.files.source import column_of
from groupwise.files.text import argument, listed, quoted
from groupwise.groups import Group, cut

CAPITAL = re.compile(r"[a-z](?:Id|ID)$")
NAMING = re.compile(r"(?:^|[\W_])(?:id|uuid|guid)$", re.IGNORECASE)
"""What columns are called that name rows: customerId, customer_id, not valid."""
UNNAMED = re.compile(
    r"column \d+|Unnamed: \d+|index|row|rownames|row\.names|rownum|row_?number|obs|#|no\.?|nr\.?",
    re.IGNORECASE,
)
"""What a column is called that has no name, or is the index of a frame."""
INDEX = re.compile(r"Unnamed: 0|__index_level_\d+__")
"""What the index of a frame is called where it is written as a column."""
AGE = re.compile(r"(?:^|[\W_])age(?:$|[\W_])", re.IGNORECASE)
BANDS = (17, 24, 34, 44, 54, 64, 74, 84)
"""Where bands of age end: 18 to 24, 25 to 34, and so on."""
OLDEST = 120
ROWS = 2_000
"""So many of the first rows tell whether columns give the label."""
MOST = 60
"""So many columns are looked at for that."""
NOTHING = 1e-9
"""What is left of the label, as a share, where columns give it exactly."""


def is_identifier(profile: Profile) -> bool:
    """Does a column of whole numbers or text name rows, or things, judged by what it is called?"""
    name = profile.name.strip()
    called = bool(CAPITAL.search(name) or NAMING.search(name))
    return called and (profile.kind == "text" or profile.whole)


def left_out(scan: Scan, others: Collection[str], order: Sequence[str]) -> dict[str, str]:
    """Columns that say nothing of the label, and why, in a clause.

    Those of one value, row numbers, identifiers.
    """
    found = {}
    for name, profile in scan.columns.items():
        many, present = profile.distinct, profile.rows - profile.missing
        if name in others or (name in order and many > 1):
            continue
        if many < 2:
            found[name] = profile.constancy
        elif profile.counts and present > 2 and UNNAMED.fullmatch(name):
            found[name] = "it numbers the rows"
        elif (is_identifier(profile) or INDEX.fullmatch(name)) and (
            many >= present or profile.values is None
        ):
            found[name] = "it has another value in every row"
    return found


def age_bands(profile: Profile) -> Group | None:
    """Bands of age, for a column that is called so and holds such numbers."""
    fits = profile.kind == "number" and 0.0 <= profile.low < profile.high <= OLDEST
    edges = [one for one in BANDS if profile.low < one < profile.high]
    if not fits or not AGE.search(profile.name) or not edges:
        return None
    return cut(profile.name, edges)


def alike(scan: Scan, names: Sequence[str], dates: Dates) -> dict[str, str]:
    """Columns that part the rows as another before them does, and which.

    One pass, which ends as soon as all columns are told apart.
    """
    left = _together({name: (scan.columns[name].distinct,) for name in names})
    made = {field: maker for maker in dates.values() for field in maker.fields}
    codes: dict[str, dict[Any, int]] = {name: {} for name in left}
    hashes = {name: hashlib.blake2b(digest_size=16) for name in left}
    wanted = {made[name].column if name in made else name for name in left}
    for table, _ in scan.source.chunks(sorted(wanted)) if left else ():
        for name in left:
            if name in made:
                maker = made[name]
                values = parts_of(maker, column_of(table, maker.column).to_pylist())[name]
            else:
                values = column_of(table, name).to_pylist()
            hashes[name].update(_coded(values, codes[name]).tobytes())
        left = _together({name: hashes[name].digest() for name in left})
        if not left:
            break
    first: dict[bytes, str] = {}
    found = {}
    for name in (name for name in names if name in left):
        same = first.setdefault(hashes[name].digest(), name)
        if same != name:
            found[name] = same
    return found


def _together(marks: Mapping[str, Any]) -> list[str]:
    """Those whose mark another has too."""
    by_mark = defaultdict(list)
    for name, mark in marks.items():
        by_mark[mark].append(name)
    return [name for names in by_mark.values() if len(names) > 1 for name in names]


def _coded(values: Sequence[Any], known: dict[Any, int]) -> Index:
    """Values by the order in which they first came; -1 where one is missing."""
    found = [-1 if one is None else known.setdefault(one, len(known)) for one in values]
    return np.array(found, dtype=np.int64)


def leaks(scan: Scan, target: str, others: Collection[str]) -> list[str]:
    """Says which columns of numbers, together, give a label that is a number."""
    names = [
        p.name
        for p in scan.columns.values()
        if p.kind == "number" and p.low < p.high and not p.infinite and p.name not in others
    ]
    if target in names or not 1 < len(names) <= MOST:
        return []
    kinds: dict[str, Kind] = dict.fromkeys([*names, target], "number")
    rows = first_rows(scan, kinds, (), ROWS)
    whole = np.column_stack([rows.column(name).to_numpy() for name in kinds])
    whole = whole[~np.isnan(whole).any(axis=1)]
    if len(whole) < 3 * len(names) + 10:
        return []
    found = given_by(whole[:, :-1], whole[:, -1])
    if found is None or len(found[0]) < 2:
        return []
    columns, summed = [names[place] for place in found[0]], found[1]
    do = "sum to" if summed else "together give"
    return [
        f"Columns {listed(columns)} {do} the label {quoted(target)}. If they become known only "
        f"with it, leave them out: --drop {argument(', '.join(columns))}."
    ]


def given_by(columns: Vector, label: Vector) -> tuple[list[int], bool] | None:
    """The columns of which the label is a linear function, as few as can be; do they sum to it?

    None where it is none.
    """
    from scipy.linalg import lstsq

    spread = columns.std(axis=0)
    kept = np.flatnonzero(spread > 0.0).tolist()
    whole = float(np.linalg.norm(label - label.mean()))
    if whole == 0.0:
        return None

    def fitted(places: list[int]) -> tuple[float, Vector]:
        scaled = (columns[:, places] - columns[:, places].mean(axis=0)) / spread[places]
        # By QR, which has no iteration that may not end.
        solved: Vector = lstsq(scaled, label - label.mean(), lapack_driver="gelsy")[0]
        left = float(np.linalg.norm(label - label.mean() - scaled @ solved))
        return left / whole, solved / spread[places]

    left, solved = fitted(kept)
    if left > NOTHING:
        return None
    for place in sorted(kept, key=lambda one: abs(solved[kept.index(one)]) * spread[one]):
        fewer = [one for one in kept if one != place]
        if fewer and fitted(fewer)[0] <= NOTHING:
            kept = fewer
    solved = fitted(kept)[1]
    constant = float(np.mean(label - columns[:, kept] @ solved))
    summed = bool(np.allclose(solved, 1.0, atol=1e-6)) and abs(constant) <= NOTHING * whole
    return kept, summed


def order_hint(dates: Dates, order: Sequence[str], target: str) -> list[str]:
    """Says that rows could be taken in the order of time."""
    if order or not dates:
        return []
    name = next(iter(dates))
    return [
        f"Column {quoted(name)} holds dates. If rows are to be learned in the order of time, say "
        f"--order {argument(name)}: what {quoted(target)} was before is then a feature too."
    ]
