"""What comes of a replay: a figure per row, in the label's units."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError
from groupwise.intervals import ends_of
from groupwise.kernels import compiling
from groupwise.losses import Loss
from groupwise.progress import progress_bar
from groupwise.reduction import Reduction
from groupwise.stream import NONE, Chunk, Outcome, Stream

KEEP = ("advice", "weights")


class Figures(NamedTuple):
    """A figure per row, in the label's units, and what was kept of the rest."""

    prediction: Vector
    loss: Vector
    expected_loss: Vector
    advice: Vector | None
    weights: Vector | None
    interval: Vector | None


def run(
    stream: Stream, chunks: Iterator[Chunk], shape: tuple[int, int], keep: Sequence[str], show: bool
) -> Figures:
    """Drive a stream over chunks, of so many rows and entries in all, and collect what comes."""
    rows, entries = shape
    reduction, loss = stream.reduction, stream.reduction.loss
    realised, expected = np.empty(rows), np.empty(rows)
    ends: list[Vector] = []
    prediction = np.empty(rows if loss.classes is None else (rows, len(loss.classes)))
    room = reduction.room(0, entries)[1], np.empty((entries, reduction.experts))
    kept = {item: part for item, part in zip(KEEP, room, strict=True) if item in keep}
    position = entry = 0
    with compiling(), progress_bar(rows, "replay", show) as advance:

        def done(outcome: Outcome) -> None:
            nonlocal position, entry
            part = slice(position, position + outcome.expected.size)
            prediction[part] = outcome.prediction
            expected[part] = outcome.expected
            realised[part] = outcome.realised
            if outcome.ends.size:
                ends.append(outcome.ends)
            last = entry + len(outcome.advice)
            for item, values in zip(KEEP, (outcome.advice, outcome.probabilities), strict=True):
                if item in kept:
                    kept[item][entry:last] = values
            advance(part.stop - position)
            position, entry = part.stop, last

        stream.run(chunks, done)

    advice, weights = (kept.get(item, NONE) for item in KEEP)
    issued = np.concatenate(ends) if ends else NONE
    whole = Outcome(prediction, expected, realised, advice, weights, issued)
    return figures_of(loss, whole, keep)


class Gathered:
    """Collects the outcomes of segments, of which nobody knows how many come."""

    def __init__(self, loss: Loss, show: bool, total: int | None = None) -> None:
        self.loss, self.rows = loss, 0
        self._found: list[Outcome] = []
        self._around = ExitStack()
        self._show = total or 0, "replay", show

    def __enter__(self) -> "Gathered":
        self._around.enter_context(compiling())
        self._advance = self._around.enter_context(progress_bar(*self._show))
        return self

    def __exit__(self, *error: Any) -> None:
        self._around.close()

    def add(self, outcome: Outcome) -> None:
        """Take the next outcome."""
        self._found.append(outcome)
        self.rows += outcome.expected.size
        self._advance(outcome.expected.size)

    def figures(self, keep: Sequence[str] = ()) -> Figures:
        """All of them, one after another."""
        whole = Outcome(*(np.concatenate(parts) for parts in zip(*self._found, strict=True)))
        return figures_of(self.loss, whole, keep)


def figures_of(loss: Loss, outcome: Outcome, keep: Sequence[str]) -> Figures:
    """What happened, in the label's units."""

    def flat(values: Vector) -> Vector:
        return values[:, 0] if values.shape[1] == 1 else values

    prediction = outcome.prediction
    return Figures(
        prediction if loss.classes is not None else loss.decode_many(prediction),
        loss.unit * outcome.realised,
        loss.unit * outcome.expected,
        flat(loss.decode_many(outcome.advice)) if KEEP[0] in keep else None,
        flat(outcome.probabilities) if KEEP[1] in keep else None,
        ends_of(loss, outcome.ends) if outcome.ends.size else None,
    )


def refuse_actions(reduction: Reduction) -> None:
    """Learners of actions cannot enter a replay: their plays and labels are vectors."""
    if reduction.actions:
        raise ConfigurationError(
            f"{type(reduction.learners[0]).__name__} cannot enter a replay: loop over "
            "model.predict and model.learn."
        )


def path_of(reduction: Reduction) -> str:
    """Which way a replay takes."""
    return "compiled" if reduction.compiled else "python"
