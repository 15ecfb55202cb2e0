"""Files of rows, predicted and learned by a service: ``groupwise predict`` and ``learn --url``."""

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import numpy as np

from groupwise.client import MANY, Client, ClientError, Predicted
from groupwise.errors import DataError
from groupwise.features.declared import Hashed
from groupwise.files.predictions import SEPARATOR, guarded, prediction_file
from groupwise.files.profile import Kind
from groupwise.files.rows import in_file_order
from groupwise.files.scan import scan
from groupwise.files.source import Source
from groupwise.files.task import Task
from groupwise.files.text import quoted
from groupwise.groups.declarations import By
from groupwise.model import Groupwise
from groupwise.serve.declared import declared_model
from groupwise.serve.warm import declared_fields
from groupwise.writing import replaced


class Remote:
    """A model of a service, and how rows of files are read for it."""

    def __init__(self, client: Client, id: str | None = None) -> None:
        self._client = client
        self._id = id
        about = client.about()
        self.model = declared_model(about["settings"], about["name"])
        self.target: str | None = about["target"]
        self.task = Task(self.model.loss)

    def remarks(self, target: str | None) -> list[str]:
        """What to say before rows are sent to be predicted."""
        if target is not None or self.target is not None:
            return []
        others = "every column" if self._id is None else f"every column but {quoted(self._id)}"
        return [
            f"the model's settings name no target: {others} is sent as a field. Where one is the "
            "label, name it with --target."
        ]

    def predict(self, source: Source, target: str | None, out: Path | None) -> int:
        """Issue a ticket for every row, and write the predictions; how many there were.

        Labels can be sent for those whose id a column holds.
        """
        count = 0
        with ExitStack() as opened:
            stream: IO[bytes] = sys.stdout.buffer
            if out is not None:
                stream = opened.enter_context(opened.enter_context(replaced(out)).open("wb"))
            write = opened.enter_context(prediction_file(stream, self.task.columns))
            for numbers, _, found in self._predicted(source, target or self.target):
                groups = [guarded(SEPARATOR.join(one.groups)) for one in found]
                write(numbers, np.array([self._shares(one) for one in found]), groups)
                count += len(found)
        return count

    def learn(self, source: Source, target: str | None) -> dict[str, int]:
        """Predict and label every row; how many labels had which outcome."""
        target = target or self.target
        if target is None:
            raise DataError("Which column holds the label? Name it with --target COLUMN.")
        outcomes: dict[str, int] = {}
        for _, labels, found in self._predicted(source, target, labelled=True):
            given = {one.id: label for one, label in zip(found, labels, strict=True)}
            for outcome in self._client.label_many(given).values():
                outcomes[outcome] = outcomes.get(outcome, 0) + 1
        return outcomes

    def _predicted(
        self, source: Source, target: str | None, labelled: bool = False
    ) -> Iterator[tuple[Any, list[Any], list[Predicted]]]:
        """The rows' numbers, their labels and what is predicted, a thousand at a time."""
        kinds = self._kinds(source, target, labelled)
        for piece in in_file_order(source, kinds, MANY, target if labelled else None, "send"):
            frame = piece.frame
            labels: list[Any] = []
            if labelled and target is not None:
                frame = self.task.labelled(piece, target, source)
                labels = frame.column(target).to_pylist()
            left_out = {target, self._id}
            rows = [
                {name: value for name, value in row.items() if name not in left_out}
                for row in frame.to_pylist()
            ]
            ids = None
            if self._id is not None:
                ids = [str(one) for one in frame.column(self._id).to_pylist()]
            try:
                yield piece.numbers, labels, self._client.predict_many(rows, ids)
            except ClientError as error:
                raise ClientError(
                    f"Rows {piece.numbers[0]} to {piece.numbers[-1]} of {source.name}: {error}",
                    error.status,
                    error.problem,
                ) from error

    def _kinds(self, source: Source, target: str | None, labelled: bool) -> dict[str, Kind]:
        """What the columns hold: as the settings say, or else as the file looks."""
        found = scan(source, None, progress=True).kinds
        for name in (target if labelled else None, self._id):
            if name is not None and name not in found:
                raise DataError(f"{source.name} has no column {quoted(name)}.")
        kinds: dict[str, Kind] = {**found, **declared_kinds(self.model)}
        kinds = {name: kind for name, kind in kinds.items() if name in found}
        if self._id is not None:
            kinds[self._id] = "text"
        if target in kinds:
            if labelled:
                kinds[str(target)] = self.task.kind_of(found[str(target)])
            else:
                del kinds[str(target)]
        return kinds

    def _shares(self, one: Predicted) -> list[float]:
        if one.probabilities is None:
            return [float(one.prediction)]
        return [one.probabilities[name] for name in self.task.events]


def declared_kinds(model: Groupwise) -> Mapping[str, Kind]:
    """What the settings say of columns: text where they name values, numbers where they scale."""
    named = [one.column for one in model.declarations if isinstance(one, By)]
    kinds: dict[str, Kind] = dict.fromkeys(named, "levels")
    for name, bounds in declared_fields(model).items():
        if isinstance(bounds, tuple):
            kinds[name] = "number"
        elif isinstance(bounds, Hashed):
            kinds[name] = "text"
    return kinds
