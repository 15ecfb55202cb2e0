"""A CSV file as columns, and columns as numbers; no data frame library needed."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import DatasetError

Table = Mapping[str, Sequence[Any]]


def read_csv(path: Path) -> dict[str, list[str]]:
    """The columns of a file with a header, as text without surrounding blanks."""
    with path.open(newline="", encoding="utf-8-sig") as stream:
        lines = csv.reader(stream, skipinitialspace=True)
        header = [name.strip() for name in next(lines, [])]
        rows = [[cell.strip() for cell in line] for line in lines if line]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(header):
            raise DatasetError(
                f"{path}: row {number} has {len(row)} fields, the header {len(header)}."
            )
    return {name: [row[i] for row in rows] for i, name in enumerate(header)}


def require_columns(table: Iterable[str], expected: Iterable[str], source: str) -> None:
    """Raise unless the columns are exactly these, in any order."""
    found, wanted = set(table), set(expected)
    if found != wanted:
        parts = [
            f"{what} {', '.join(sorted(names))}"
            for what, names in (("missing", wanted - found), ("unexpected", found - wanted))
            if names
        ]
        raise DatasetError(f"{source} has other columns than expected: {'; '.join(parts)}.")


def require_rows(table: Table, expected: int, source: str) -> None:
    """Raise unless there are exactly this many rows."""
    found = len(next(iter(table.values())))
    if found != expected:
        raise DatasetError(f"{source} has {found:,} rows, expected {expected:,}.")


def require_levels(table: Table, column: str, known: Iterable[str]) -> None:
    """Raise if a column from which groups are made has a level that belongs to none."""
    unknown = sorted({str(cell) for cell in table[column]}.difference(known))
    if unknown:
        raise DatasetError(
            f"Column {column} has levels that are no group: {', '.join(map(repr, unknown))}; "
            f"expected only {', '.join(known)}."
        )


def numbers(table: Table, column: str) -> NDArray[np.float64]:
    """A column as finite numbers; anything else is an error that names the row."""
    values = np.empty(len(table[column]))
    for row, cell in enumerate(table[column]):
        try:
            values[row] = float(cell)
        except (TypeError, ValueError):
            values[row] = np.nan
        if not np.isfinite(values[row]):
            raise DatasetError(f"Column {column}, row {row + 1}: {cell!r} is not a number.")
    return values


def scaled(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Least value to 0, largest to 1; a constant column becomes 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)


def one_hot(table: Table, column: str) -> dict[str, NDArray[np.bool_]]:
    """An indicator for each level, named ``column=level``, levels in alphabetical order."""
    values = np.array(table[column], dtype=str)
    return {f"{column}={level}": values == level for level in np.unique(values).tolist()}


def age_groups(age: NDArray[np.float64]) -> dict[str, NDArray[np.bool_]]:
    """The paper's three ages of life."""
    return {"young": age <= 35, "middle": (age > 35) & (age <= 50), "old": age > 50}


def stacked(columns: Iterable[NDArray[Any]], dtype: type) -> NDArray[Any]:
    """Columns side by side, row-major."""
    return np.ascontiguousarray(np.column_stack(list(columns)), dtype=dtype)
