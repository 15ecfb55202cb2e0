"""Columns that hold predictions of other models: in the label's units in rows, scaled inside."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import FeatureError
from groupwise.groups.columns import Column, Kind, Table
from groupwise.groups.values import as_float
from groupwise.losses import Loss


class Experts:
    """Reads the predictions that rows and frames bring with them.

    Parameters
    ----------
    columns : the fields, each with the predictions of one model.
    loss : whose labels they predict: numbers of its range or, with log loss, probabilities.
    clip : whether a prediction beyond the range is taken for the end of the range.

    >>> from groupwise.losses import Square
    >>> Experts(["theirs"], Square(0.0, 10.0), clip=True).of_row({"theirs": 12, "age": 41})
    array([1.])
    """

    def __init__(self, columns: Sequence[str], loss: Loss, clip: bool) -> None:
        self.columns = tuple(columns)
        self.loss = loss
        self.clip = clip and loss.ranged
        self._low, self._span = (loss.low, loss.high - loss.low) if loss.ranged else (0.0, 1.0)

    def of_row(self, row: Mapping[str, Any]) -> Vector:
        """The predictions of a row, scaled."""
        found = [self._number(row, name) for name in self.columns]
        if self.clip:
            low, high = self.loss.reach
            found = [low if one < low else high if one > high else one for one in found]
        return np.array([(one - self._low) / self._span for one in found])

    def of_frame(self, table: Table) -> Vector:
        """Those of every row: the same, bit for bit, as row by row."""
        found = np.empty((table.length, len(self.columns)))
        for place, name in enumerate(self.columns):
            if name not in table:
                raise FeatureError(f"The frame has no column {name!r}, {_REMEDY}")
            found[:, place] = self._of_column(table.column(name))
        return self._scaled(found)

    def of_arrays(self, predictions: Mapping[str, Any], rows: int) -> Vector:
        """Those of as many rows, from an array for each."""
        found = np.empty((rows, len(self.columns)))
        for place, name in enumerate(self.columns):
            own = np.asarray(predictions[name])
            if own.shape != (rows,) or own.dtype.kind not in "biuf":
                raise FeatureError(
                    f"Expert {name!r} must have {rows} predictions, one for each row, not an array "
                    f"of {own.dtype} of shape {own.shape}."
                )
            kind: Kind = "boolean" if own.dtype.kind == "b" else "number"
            found[:, place] = self._of_column(Column(name, kind, rows, values=own))
        return self._scaled(found)

    def _scaled(self, found: Vector) -> Vector:
        """The same as for one row."""
        if self.clip:
            low, high = self.loss.reach
            found = np.where(found < low, low, np.where(found > high, high, found))
        with np.errstate(over="ignore"):  # what is too large is refused with all other advice
            return (found - self._low) / self._span

    def _of_column(self, column: Column) -> Vector:
        if column.kind != "number":
            values = {"objects": column.objects, "boolean": column.values.tolist()}.get(column.kind)
            nulls = [] if column.nulls is None else np.flatnonzero(column.nulls).tolist()
            if values is None:
                values = [[*map(str, column.levels), None][code] for code in column.codes.tolist()]
            for row in nulls:
                values[row] = None
            return np.array([self._in_row(column.name, row, one) for row, one in enumerate(values)])
        values = column.values.astype(np.float64)
        if column.nulls is not None:
            values[column.nulls] = np.nan
        bad = np.flatnonzero(~np.isfinite(values))
        if bad.size:
            self._in_row(column.name, int(bad[0]), float(values[bad[0]]))
        return values

    def _in_row(self, name: str, row: int, value: Any) -> float:
        try:
            return self._number({name: value}, name)
        except FeatureError as error:
            error.row = row
            raise

    def _number(self, row: Mapping[str, Any], name: str) -> float:
        """One prediction; an error where it is not a finite number."""
        if not isinstance(row, Mapping) or name not in row:
            raise FeatureError(f"The row has no field {name!r}, {_REMEDY}")
        value = row[name]
        if type(value) is float and -math.inf < value < math.inf:
            return value
        truth = isinstance(value, (bool, np.bool_))
        number = as_float(value)
        if number is not None and math.isfinite(number) and (self.loss.booleans or not truth):
            return number
        raise FeatureError(
            f"Field {name!r} is {value!r}, and an expert predicts a finite number in every row. "
            "Leave out the rows without a prediction, or fill it in with another model's."
        )


_REMEDY = (
    "which holds an expert's predictions. Put it in every row, or take it off the list of experts."
)
