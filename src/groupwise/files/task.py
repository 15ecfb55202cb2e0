"""Numbers, probabilities and classes in files: how labels are read, and predictions written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as compute

from groupwise.arrays import Vector
from groupwise.class_names import ClassName
from groupwise.errors import DataError
from groupwise.files.profile import NO_LABEL, Kind
from groupwise.files.rows import Piece
from groupwise.files.settings import CLASSES, NUMBER, PROBABILITY
from groupwise.files.source import Source
from groupwise.files.text import listed, quoted
from groupwise.groups.values import value_name
from groupwise.losses import CERTAINTY, Log, Loss

TEXT: Kind = "text"


@dataclass(frozen=True)
class Task:
    """What files know of a model's loss: how labels are read, and predictions written."""

    loss: Loss

    @property
    def name(self) -> str:
        """As ``--task`` has it."""
        if not self.is_chance:
            return NUMBER
        return PROBABILITY if self.loss.nodes == 1 else CLASSES

    @property
    def is_chance(self) -> bool:
        """Are predictions probabilities?"""
        return isinstance(self.loss, Log)

    @property
    def classes(self) -> tuple[ClassName, ...]:
        """The classes as the model has them; of two, the second is the positive one."""
        return (0, 1) if self.loss.classes is None else tuple(self.loss.classes)

    @property
    def names(self) -> list[str]:
        """The classes as text."""
        return [value_name(one, "class") for one in self.classes]

    @property
    def events(self) -> list[str]:
        """What has a probability in a prediction: the second of two classes, else all of them."""
        if not self.is_chance:
            return []
        return self.names[1:] if self.loss.nodes == 1 else self.names

    @property
    def columns(self) -> list[str]:
        """The columns of a prediction in a file."""
        if not self.is_chance:
            return ["prediction"]
        return [f"probability:{name}" for name in self.events]

    @property
    def kind(self) -> Kind:
        """What the label's column holds."""
        return TEXT if isinstance(self.classes[0], str | bool) else "number"

    def kind_of(self, found: Kind) -> Kind:
        """How a column that looks so is read: 0 and 1 may be called false and true."""
        if found in ("boolean", "levels") and self.kind == TEXT:
            return "levels"
        return found if self.is_chance and self.loss.classes is None else self.kind

    def of_prediction(self, prediction: Any) -> Vector:
        """Predictions of a replay, or one of ``predict_one``, with a last axis for columns."""
        if isinstance(prediction, Mapping):
            prediction = np.array([*prediction.values()])
        if self.loss.classes is None:
            return np.asarray(prediction)[..., None]
        shares: Vector = np.asarray(prediction)[..., -len(self.events) :]
        return shares

    def unmarked(self, piece: Piece, target: str) -> Piece:
        """The rows of a piece, labels missing where a text says so that is no class."""
        column = piece.frame.column(target)
        marks = [one for one in NO_LABEL if one not in self.classes]
        if not self.is_chance or not pa.types.is_string(column.type):
            return piece
        absent = compute.is_in(compute.utf8_trim_whitespace(column), value_set=pa.array(marks))
        place = piece.frame.schema.get_field_index(target)
        nothing = pa.scalar(None, pa.string())
        kept = compute.if_else(absent, nothing, column)
        return piece._replace(frame=piece.frame.set_column(place, target, kept))

    def labelled(self, piece: Piece, target: str, source: Source) -> Any:
        """The rows of a piece, labels as the model has them; an error where one is none."""
        for row, reason in self.refused(piece, target):
            advice = (
                "All classes are declared when a model is made: with groupwise run --classes, "
                "before they come."
                if self.is_chance
                else "groupwise learn --widen makes the range wider; groupwise run --range "
                "LOW,HIGH gives one beforehand."
            )
            place = source.located(int(piece.numbers[row]))
            raise DataError(f"{place}: {reason} {advice} --skip-bad leaves such rows out.")
        place = piece.frame.schema.get_field_index(target)
        return piece.frame.set_column(place, target, self._column(piece, target))

    def refused(self, piece: Piece, target: str) -> Iterator[tuple[int, str]]:
        """The rows whose label is none, by their place, and why; a missing one is none either."""
        column, loss = self._column(piece, target), self.loss
        if loss.classes is not None:
            try:
                classes = pa.array(self.classes).cast(column.type)
            except (pa.ArrowInvalid, pa.ArrowTypeError):
                raise DataError(
                    f"The classes {listed(self.names)} are not all texts, nor all numbers, which "
                    "files cannot tell apart. Learn such labels in Python."
                ) from None
            fine = compute.is_in(column, value_set=classes).to_numpy()
        elif pa.types.is_floating(column.type):
            values = column.to_numpy()
            low, high = (0.0, 1.0) if self.is_chance else loss.reach
            fine = (values >= low) & (values <= high)
        else:
            return
        for row in np.flatnonzero(~fine).tolist():
            value = column[row].as_py()
            if loss.classes is not None:
                said = "missing" if value is None else quoted(value_name(value, target))
                yield row, f"the label is {said}, none of the classes {listed(self.names)}."
            else:
                said = "missing" if value is None else f"{value:g}"
                yield row, f"the label is {said}, outside the range {low:g} to {high:g}."

    def _column(self, piece: Piece, target: str) -> Any:
        column = piece.frame.column(target)
        text = isinstance(self.classes[0], str)
        return column if text or not self.is_chance else _truth(column)

    def encode(self, column: Any) -> Vector:
        """Labels as numbers: from 0 to 1, or those of the classes."""
        if self.loss.classes is not None:
            return self.loss.encode_many(column.to_pylist())
        found: Vector = column.cast(pa.float64()).to_numpy()
        return found

    def losses(self, predictions: Vector, labels: Vector) -> Vector:
        """What predictions lose, with a last axis for columns; no probability is below 1e-15."""
        if not self.is_chance:
            with np.errstate(over="ignore"):  # of what another model predicted
                squares: Vector = (predictions[:, 0] - labels) ** 2
            return squares
        if self.loss.nodes > 1:
            chance = predictions[np.arange(labels.size), labels.astype(np.int64)]
            found: Vector = -np.log(np.maximum(chance, CERTAINTY))
            return found
        yes = np.clip(predictions[:, 0], CERTAINTY, 1.0 - CERTAINTY)
        binary: Vector = -labels * np.log(yes) - (1.0 - labels) * np.log1p(-yes)
        return binary


def _truth(column: Any) -> Any:
    """A column of true and false as such; any other as it is."""
    if not pa.types.is_string(column.type):
        return column
    lowered = compute.utf8_lower(column)
    said = compute.is_in(lowered, value_set=pa.array(["true", "false"]))
    return compute.equal(lowered, "true") if compute.all(said).as_py() else column
