"""From a published CSV file to a data set, as the paper does it; no data frame library needed."""

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from groupwise.datasets._files import DataFile, PathLike, locate
from groupwise.datasets.dataset import Dataset
from groupwise.errors import DatasetError
from groupwise.groups import ALWAYS_ON

Table = Mapping[str, Sequence[Any]]
Numbers = NDArray[np.float64]
Indicators = dict[str, NDArray[np.bool_]]


class Layout(NamedTuple):
    """What a published file holds, and the features and groups that the paper makes of it."""

    name: str
    file: DataFile
    rows: int
    numeric: Sequence[str]
    categorical: Sequence[str]
    label: str
    levels: Mapping[str, Mapping[str, str]]
    """By column, in the order of the groups: all levels that it may have, each with its group."""
    indicators: Callable[[Mapping[str, Numbers]], Indicators]
    """From numeric columns: groups besides those of age, which are features as well."""
    dropped: Sequence[str] = ()
    synonyms: Mapping[str, str] = {}
    """Other names of columns, to be read as the ones above."""

    def load(self, path: PathLike | None, data_dir: PathLike | None) -> Dataset:
        """The data of the file, wherever it is; it must have just these columns and rows."""
        found = locate(self.file, path, data_dir)
        return self.dataset(read_csv(found), str(found), self.rows)

    def dataset(self, table: Table, source: str = "", expected: int | None = None) -> Dataset:
        """The paper's preprocessing of any table with the file's columns, of any length."""
        source = source or f"The {self.name} table"
        names = {name: self.synonyms.get(name, name) for name in table}
        if len(set(names.values())) == len(names):
            table = {names[name]: table[name] for name in table}
        found, wanted = set(table), {*self.numeric, *self.categorical, *self.dropped, self.label}
        if found != wanted:
            parts = [
                f"{what} {', '.join(sorted(columns))}"
                for what, columns in (("missing", wanted - found), ("unexpected", found - wanted))
                if columns
            ]
            raise DatasetError(f"{source} has other columns than expected: {'; '.join(parts)}.")
        if expected not in (None, len(table[self.label])):
            raise DatasetError(
                f"{source} has {len(table[self.label]):,} rows, expected {expected:,}."
            )
        for column, known in self.levels.items():
            unknown = sorted({str(cell) for cell in table[column]}.difference(known))
            if unknown:  # groups are made of this column, and such a level would be in none
                raise DatasetError(
                    f"Column {column} has levels that are no group: "
                    f"{', '.join(map(repr, unknown))}; expected only {', '.join(known)}."
                )
        raw = {column: numbers(table, column) for column in (*self.numeric, self.label)}
        texts = {column: np.array(table[column], dtype=str) for column in self.categorical}
        one_hot = {
            f"{column}={level}": values == level
            for column, values in texts.items()
            for level in np.unique(values).tolist()
        }
        age = raw["age"]
        indicators = {
            "young": age <= 35,
            "middle": (age > 35) & (age <= 50),
            "old": age > 50,
            **self.indicators(raw),
        }
        groups = indicators | {
            group: texts[column] == level
            for column, known in self.levels.items()
            for level, group in known.items()
        }
        groups[ALWAYS_ON] = np.ones(len(age), dtype=bool)
        features = {**{c: scaled(raw[c]) for c in self.numeric}, **one_hot, **indicators}
        return Dataset(
            name=self.name,
            features=np.ascontiguousarray(np.column_stack(list(features.values())), np.float64),
            feature_names=tuple(features),
            label=scaled(raw[self.label]),
            label_name=self.label,
            membership=np.ascontiguousarray(np.column_stack(list(groups.values())), np.uint8),
            group_names=tuple(groups),
            sort_key=age,
        )


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


def numbers(table: Table, column: str) -> Numbers:
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


def scaled(values: Numbers) -> Numbers:
    """Least value to 0, largest to 1; a constant column becomes 0."""
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros_like(values)
