"""``Groupwise.replay``: a frame, or frames one after another, through a model at compiled speed."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from groupwise.errors import FeatureError, LabelError
from groupwise.groups import FrameMembership, Table
from groupwise.kernels import compiling
from groupwise.kernels.cells import Cells, of_sparse
from groupwise.losses import Loss
from groupwise.progress import progress_bar
from groupwise.arrays import Vector
from groupwise.stream import Chunk, Outcome, Stream, rows_at_a_time

if TYPE_CHECKING:
    from groupwise.model import Groupwise


@dataclass(frozen=True, eq=False)
class FrameReplay:
    """What ``Groupwise.replay`` returns: a figure per row, in the label's units.

    ``loss`` is that of the prediction, ``expected_loss`` its expectation over the aggregator's
    draw. ``groups(t)`` are the awake groups of row t. ``path`` says which way was taken: "compiled"
    or "python". Regret is the model's: ``model.regret()``.
    """

    prediction: Vector
    loss: Vector
    expected_loss: Vector
    path: str
    memberships: tuple[FrameMembership, ...]

    def groups(self, row: int) -> list[str]:
        """The names of the groups that a row was in."""
        for membership in self.memberships:
            rows = membership.indptr.size - 1
            if row < rows:
                first, last = membership.indptr[row : row + 2]
                return [membership.names[g] for g in membership.indices[first:last].tolist()]
            row -= rows
        raise IndexError(row)


def replay_frames(
    model: "Groupwise", frames: Any, target: str, jobs: int | None, progress: bool
) -> FrameReplay:
    """See :meth:`Groupwise.replay`."""
    if hasattr(frames, "columns") or hasattr(frames, "column_names"):
        frames = [frames]
    parts: list[tuple[Vector, Vector, Vector]] = []
    memberships = []
    with compiling():
        for frame in frames:
            part, membership = _replay_frame(model, frame, target, jobs, progress)
            parts.append(part)
            memberships.append(membership)
    if not parts:
        raise FeatureError("There is no frame to replay.")
    prediction, loss, expected = (np.concatenate(column) for column in zip(*parts, strict=True))
    path = "compiled" if model._reduction.compiled else "python"
    return FrameReplay(prediction, loss, expected, path, tuple(memberships))


def _replay_frame(
    model: "Groupwise", frame: Any, target: str, jobs: int | None, progress: bool
) -> tuple[tuple[Vector, Vector, Vector], FrameMembership]:
    """One frame: all of it is read and checked before anything changes."""
    import narwhals as nw

    try:
        native = nw.from_native(frame, eager_only=True)
    except TypeError:
        raise FeatureError(
            f"A {type(frame).__name__} is not a frame. Give one of pandas, polars or pyarrow."
        ) from None
    if target not in native.columns:
        raise LabelError(
            f"The frame has no column {target!r} for the label. It has: "
            f"{', '.join(map(repr, native.columns[:20]))}."
        )
    labels = _labels(native[target], target, model.loss)
    table = Table(native.drop(target).to_native())
    membership = model.groups.of_frame(table)
    encoded = model._encoder.encode_frame(table, membership)
    groups, new = model._registry.of_frame(membership)
    names = [*model._encoder.names, *(feature.name for feature in encoded.new)]
    whole = Chunk(
        Cells(*of_sparse(encoded.indptr, encoded.indices, encoded.values)),
        membership.indptr,
        groups,
        membership.weights,
        labels,
        names,
    )
    model._reserve(new, len(names))
    with model._undone_on_error():
        model._registry.admit(new)
        model._encoder.admit(encoded)
        figures = _run(model, whole, jobs, progress)
        model._replayed(labels.size, int((np.diff(membership.indptr) > 0).sum()))
    return figures, membership


def _run(
    model: "Groupwise", whole: Chunk, jobs: int | None, progress: bool
) -> tuple[Vector, Vector, Vector]:
    loss, total = model.loss, whole.labels.size
    prediction, realised, expected = (np.empty(total) for _ in range(3))
    stream = Stream(model._reduction, model._ledger, model._registry.everybody, model._next, jobs)
    position = 0
    with progress_bar(total, "replay", progress) as advance:

        def done(outcome: Outcome) -> None:
            nonlocal position
            stop = position + outcome.prediction.size
            prediction[position:stop] = outcome.prediction
            realised[position:stop] = outcome.realised
            expected[position:stop] = outcome.expected
            advance(stop - position)
            position = stop

        stream.run(pieces(whole, rows_at_a_time(len(model._registry))), done)
    return loss.decode_many(prediction), loss.unit * realised, loss.unit * expected


def pieces(whole: Chunk, rows: int) -> Iterator[Chunk]:
    """A long chunk in shorter ones."""
    for start in range(0, whole.labels.size, rows):
        stop = min(start + rows, whole.labels.size)
        entries = slice(whole.member_indptr[start], whole.member_indptr[stop])
        yield Chunk(
            whole.cells.part(start, stop),
            whole.member_indptr[start : stop + 1] - whole.member_indptr[start],
            whole.groups[entries],
            whole.weights[entries],
            whole.labels[start:stop],
            whole.features,
        )


def _labels(column: Any, target: str, loss: Loss) -> Vector:
    if not column.dtype.is_numeric() and not column.dtype.is_decimal():
        raise LabelError(f"The label column {target!r} holds {column.dtype}, not numbers.")
    nulls = column.is_null().to_numpy()
    if nulls.any():
        row = int(np.flatnonzero(nulls)[0])
        raise LabelError(f"The label {target!r} is missing. Drop the row or fill it in.", row=row)
    return loss.encode_many(np.asarray(column.to_numpy(), dtype=np.float64))
