"""A frame, read and checked for a replay: rows as numbers, groups, labels, and what is new."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import FeatureError, LabelError
from groupwise.features import Derived, EncodedFrame, Encoder
from groupwise.features.experts import Experts
from groupwise.groups import FrameMembership, Groups, Member, Table
from groupwise.kernels.cells import Cells, of_sparse
from groupwise.losses import Loss
from groupwise.reduction import Reduction
from groupwise.registry import Registry
from groupwise.stream import Chunk, rows_at_a_time


class ReadFrame(NamedTuple):
    """A frame that was read and checked: its rows, and what is new in them."""

    rows: Chunk
    membership: FrameMembership
    encoded: EncodedFrame
    groups: tuple[Member, ...]
    """The groups that it is the first to have."""
    derived: Derived | None
    """The makers after its labels."""

    @property
    def learned(self) -> int:
        """How many rows have somebody awake."""
        return int((np.diff(self.membership.indptr) > 0).sum())

    def chunks(self, reduction: Reduction, groups: int) -> Iterator[Chunk]:
        """Its rows in shorter chunks, for a model with so many groups."""
        whole = self.rows
        step = rows_at_a_time(reduction, groups, len(whole.features))
        for start in range(0, whole.labels.size, step):
            yield whole.part(start, min(start + step, whole.labels.size))


def frames_of(frames: Any) -> Any:
    """Frames as an iterable: one, several, or the files and row groups of a pyarrow dataset."""
    if hasattr(frames, "get_fragments"):
        return _fragments(frames)
    one = hasattr(frames, "columns") or hasattr(frames, "column_names")
    return [frames] if one else frames


def _fragments(dataset: Any) -> Iterator[Any]:
    for file in dataset.get_fragments():
        split = getattr(file, "split_by_row_group", None)  # of Parquet; others are read as files
        for part in [file] if split is None else split():
            table = part.to_table(schema=dataset.schema)
            if table.num_rows:
                yield table


def read_frame(
    frame: Any,
    target: str,
    loss: Loss,
    groups: Groups,
    encoder: Encoder,
    registry: Registry,
    derived: Derived | None,
    experts: Experts | None,
) -> ReadFrame:
    """Read and check a frame. Changes nothing."""
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
    labels = _labels(native[target], target, loss)
    table = Table(native.drop(target).to_native())
    derived = None if derived is None else derived.of_frame(table, labels)
    membership = groups.of_frame(table)
    encoded = encoder.encode_frame(table, membership)
    numbers, new = registry.of_frame(membership)
    names = [*encoder.names, *(feature.name for feature in encoded.new)]
    features = Cells(*of_sparse(encoded.indptr, encoded.indices, encoded.values))
    rows = Chunk(features, membership.indptr, numbers, membership.weights, labels, names)
    if experts is not None:
        rows = rows._replace(logged=experts.of_frame(table))
    return ReadFrame(rows, membership, encoded, new, derived)


def _labels(column: Any, target: str, loss: Loss) -> Vector:
    kind = column.dtype
    named = loss.classes is not None
    true_or_false = loss.booleans and str(kind) in ("Boolean", "Object")
    if not (named or true_or_false or kind.is_numeric() or kind.is_decimal()):
        raise LabelError(
            f"The label column {target!r} holds {kind}, not numbers. "
            "Name its classes with losses.Log(classes=[...])."
        )
    nulls = column.is_null().to_numpy()
    if nulls.any():
        row = int(np.flatnonzero(nulls)[0])
        raise LabelError(f"The label {target!r} is missing. Drop the row or fill it in.", row=row)
    if named:
        return loss.encode_many(column.to_list())
    if str(kind) == "Object":
        return _one_by_one(column.to_list(), loss)
    return loss.encode_many(np.asarray(column.to_numpy(), dtype=np.float64))


def _one_by_one(labels: list[Any], loss: Loss) -> Vector:
    """Labels of which nobody has looked at the types yet."""
    out = np.empty(len(labels))
    for row, label in enumerate(labels):
        try:
            out[row] = loss.encode(label)
        except LabelError as error:
            error.row = row
            raise
    return out
