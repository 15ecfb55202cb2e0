"""The order of the rows: by one column or several, numbers, dates, true and false, or text."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from groupwise.errors import DataError
from groupwise.files.dates import forms_of, times_of
from groupwise.files.profile import Kind
from groupwise.files.scan import Scan, as_kind, leniently
from groupwise.files.text import listed, quoted, shown

MOSTLY = 0.8
"""From this share of its texts on, a column holds dates, and the others are slips."""
LOOKED_AT = 500
"""So many different texts tell."""
LAST = np.iinfo(np.int64).max
"""The place of what has none."""


def places(scan: Scan, order: Sequence[str]) -> Any:
    """For each row its place in the order; None where the rows are in order already.

    Rows are sorted by the first column, those alike in it by the next, and rows alike in all stay
    in file order. What has no place comes last.
    """
    keys = [_keys(scan, name)[0] for name in order]
    sequence = np.lexsort(keys[::-1])
    if (np.diff(sequence.astype(np.int64)) > 0).all():
        return None
    ranks = np.empty(scan.rows, dtype=np.int64)
    ranks[sequence] = np.arange(scan.rows)
    return ranks


def misplaced(scan: Scan, order: Sequence[str]) -> Iterator[tuple[int, str]]:
    """The rows, counted from 0, that have no place in the order, and why."""
    for name in order:
        texts = scan.keys[name]
        for row in np.flatnonzero(_keys(scan, name)[1]).tolist():
            value = texts[row].as_py()
            what = f"{quoted(name)} is missing"
            if value is not None:
                holds = "numbers" if scan.columns[name].kind == "number" else "dates"
                what = (
                    f"{quoted(str(value))} stands in {quoted(name)}, which holds {holds} elsewhere"
                )
            yield row, f"{what}, and rows are sorted by it."


def check_order(scan: Scan, order: Sequence[str], skip: bool) -> None:
    """Refuse columns by which rows cannot be sorted; some that have no place may be skipped."""
    for name in order:
        profile = scan.columns[name]
        if profile.dated > 1:
            raise DataError(
                f"Column {quoted(name)} holds dates that can be read in two ways, such as "
                f"{quoted(profile.text)}, and rows are to be sorted by it. Write them as "
                "2024-12-31."
            )
        if profile.missing and not skip:
            raise DataError(
                f"{profile.gaps} Rows are to be sorted by {quoted(name)}: fill it in; --skip-bad "
                "leaves such rows out."
            )
    for row, why in () if skip else misplaced(scan, order):
        raise DataError(
            f"Row {row + 1} of {shown(scan.source.name)}: {why} --skip-bad leaves such rows out."
        )


def order_warnings(scan: Scan, order: Sequence[str], target: str) -> list[str]:
    """What to know of an order: that it is one of the alphabet, or of the label itself."""
    said = []
    texts = [
        name for name in order if scan.columns[name].reading == "text" and not _form(scan, name)
    ]
    if texts:
        said.append(
            f"Rows are sorted by {listed(texts)} as text: in the order of the alphabet, in which "
            "'10' comes before '9'."
        )
    if target in order:
        said.append(
            f"Rows are sorted by the label {quoted(target)} itself, which is not known beforehand: "
            "how well it is predicted so says little."
        )
    return said


def _form(scan: Scan, name: str) -> str | None:
    """How the dates of a column are written, also where a few of its texts are none."""
    profile = scan.columns[name]
    if profile.kind != "text" or profile.reading == "boolean" or profile.date is not None:
        return profile.date
    texts = scan.keys[name].slice(0, LOOKED_AT).cast(pa.string()).unique().drop_null().to_pylist()
    read = [form for text in texts for form in forms_of([text])]
    form = max(dict.fromkeys(read), key=read.count, default=None)
    return form if form is not None and read.count(form) >= MOSTLY * len(texts) else None


def _keys(scan: Scan, name: str) -> tuple[Any, Any]:
    """What to sort by, and where there is no such thing; it is the largest there."""
    profile, column, form = scan.columns[name], scan.keys[name], _form(scan, name)
    if profile.kind == "number":
        numbers = leniently(column)[0] if profile.bad else as_kind(column, "number")
        return numbers.fill_null(np.inf).to_numpy(), numbers.is_null().to_numpy()
    if form is not None:
        keys = times_of(column, form, LAST)
    else:
        kind: Kind = "boolean" if profile.reading == "boolean" else "text"
        coded = as_kind(column, kind).cast(pa.string()).combine_chunks().dictionary_encode()
        ranks = np.argsort(np.argsort(np.array(coded.dictionary.to_pylist(), dtype=object)))
        codes = coded.indices.fill_null(len(ranks)).to_numpy()
        keys = np.append(ranks, LAST)[codes]
    return keys, keys == LAST
