"""Whole streams of arrays at compiled speed (``gw.replay``): the loop's numbers.

They are read and checked chunk by chunk.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from groupwise import segmented
from groupwise.arrays import LARGEST, Index, Vector
from groupwise.assignment import PerGroup, of_columns
from groupwise.class_names import ClassName
from groupwise.dyadic import Windows, as_windows, open_windows
from groupwise.errors import ConfigurationError, FeatureError, GroupError, LabelError
from groupwise.features.experts import Experts
from groupwise.figures import KEEP, Gathered, path_of, refuse_actions, run
from groupwise.groups import ALWAYS_ON
from groupwise.intervals import CoverageTable, Intervals, as_intervals
from groupwise.kernels import cells
from groupwise.kernels.cells import Cells
from groupwise.kernels.schedule import compress
from groupwise.layers import coverage_table, recalibration_table
from groupwise.learners.logged import Logged
from groupwise.losses import Loss
from groupwise.protocols import AnyAggregator, Engine
from groupwise.recalibration import AnyMap, GapTable, as_layer
from groupwise.reduction import Reduction
from groupwise.regret.calibration import CalibrationTable, calibration_table
from groupwise.regret.curves import Curve, Recorder, moments
from groupwise.regret.table import RegretTable, regret_table
from groupwise.segments import Parts, Segment
from groupwise.stream import Chunk, Outcome, Stream, rows_at_a_time
from groupwise.validation import (
    MASSES,
    AnyLearner,
    as_aggregator,
    as_experts,
    as_loss,
    checked_seed,
    is_mass,
    mass_of_everybody,
)


class Inputs(NamedTuple):
    """The arrays of a replay; what is in a chunk is checked when its turn comes."""

    features: Any
    labels: Vector
    members: Any
    feature_names: tuple[str, ...]
    logged: Vector
    """What experts predict, scaled, with a column for each."""

    def entries(self) -> int:
        """How many pairs of a row and a group that it is in there are."""
        dense = isinstance(self.members, np.ndarray)
        return int(np.count_nonzero(self.members)) if dense else self.members.nnz


@dataclass(frozen=True, eq=False)
class Replay:
    """What :func:`replay` returns. Predictions and losses are in the label's units, one per row.

    ``loss`` is that of the prediction; ``expected_loss`` its expectation over the aggregator's
    draw, the same where nothing is drawn. ``advice`` and ``weights`` have a row for every non-zero
    of the membership, row by row (CSR order), and a column per learner where there are several,
    then per expert; None where not kept. ``path`` says which way was taken: "compiled" or "python".
    Where the loss names classes, ``prediction`` has a column for each of ``classes``, and
    ``advice`` a last axis. ``interval`` has the ends of the intervals, or is None; see
    :class:`FrameReplay`.
    """

    prediction: Vector
    loss: Vector
    expected_loss: Vector
    advice: Vector | None
    weights: Vector | None
    interval: Vector | None
    names: tuple[str, ...]
    path: str
    classes: Sequence[ClassName] | None
    _inputs: Inputs
    _start: Callable[[int | None], Stream]
    _reduction: Reduction

    def regret(self, against: str | None = None, last: int | None = None) -> RegretTable:
        """The regret table over the whole stream; perhaps ``against`` an expert.

        With windows, ``last`` asks for so many of the last rounds of each group, or a few more.
        """
        return self._table(self._reduction, against, last)

    def calibration(self, of: Any = None) -> CalibrationTable:
        """Calibration of every group, where predictions are probabilities: of one class."""
        names, settled = list(self.names), self._inputs.labels.size
        return calibration_table(self._reduction, names, settled, of=of)

    def recalibration(self) -> RegretTable | GapTable:
        """What recalibration promises on every group: regret to its best map, or its gap."""
        return recalibration_table(self._reduction, list(self.names), self._inputs.labels.size)

    def coverage(self) -> CoverageTable:
        """How often the labels of every group were in their intervals."""
        return coverage_table(self._reduction, list(self.names), self._inputs.labels.size)

    def curves(self, points: int = 100) -> dict[str, Curve]:
        """Regret and certificate over time, per group, at ``points`` evenly spaced moments.

        The stream is replayed once more, stopping at each of them.
        """
        if isinstance(points, bool) or not isinstance(points, int) or points < 1:
            raise ConfigurationError(f"points must be a positive whole number, not {points!r}.")
        recorder = Recorder()
        stream = self._start(None)
        start = 0
        for stop in moments(self._inputs.labels.size, points).tolist():
            stream.run(_chunks(stream.reduction, self._inputs, start, stop), _ignore)
            recorder.record(stop, self._table(stream.reduction))
            start = stop
        curves = recorder.curves()
        return {name: curves[name] for name in self.names}

    def _table(
        self, reduction: Reduction, against: str | None = None, last: int | None = None
    ) -> RegretTable:
        inputs = self._inputs
        features, settled = len(inputs.feature_names), inputs.labels.size
        names = list(self.names)
        return regret_table(reduction, names, features, settled, against=against, last=last)


def replay(
    X: ArrayLike,
    y: ArrayLike,
    membership: ArrayLike,
    *,
    learner: AnyLearner | Sequence[AnyLearner] | PerGroup | None = None,
    aggregator: AnyAggregator | None = None,
    loss: Loss | None = None,
    play: str | None = None,
    clip: bool = True,
    prior: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    keep: Sequence[str] = KEEP,
    progress: bool = False,
    recalibrate: bool | AnyMap | None = False,
    experts: Mapping[str, ArrayLike] | None = None,
    intervals: float | Intervals | None = None,
    windows: bool | Windows | None = False,
    segment: int | None = None,
    aggregators_at: str = segmented.STREAM,
    engine: str | Engine | None = None,
) -> Replay:
    """Run Algorithm 1 over a whole stream of arrays, taken as they are.

    Parameters
    ----------
    X : T × d features, dense or scipy sparse. Nothing is appended or scaled: a column of ones, for
        an intercept, is yours to give.
    y : T labels within the loss's range, or names of its classes.
    membership : T × N, dense or scipy sparse, each entry in [0, 1]; an always-on column is yours to
        give. The baseline is the column named "always_on", or else the first that is always 1.
    learner, aggregator, loss, play, clip, seed, recalibrate, intervals, windows : as in
        :class:`groupwise.Groupwise`.
    prior : a positive mass per group; 1 by default, or for the baseline 4 as in ``Groupwise``.
    names : the groups' names; "0", "1", … by default.
    jobs : threads; one per core by default. The numbers do not depend on it.
    keep : which of "advice" and "weights" to keep.
    progress : show a progress bar.
    experts : T predictions of other models, in the label's units, by the models' names; see
        :class:`groupwise.Groupwise`.
    segment, aggregators_at, engine : as in :meth:`groupwise.Groupwise.replay`.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((100, 3)), rng.random(100)
    >>> groups = np.column_stack([rng.random(100) < 0.5, np.ones(100)])
    >>> result = replay(X, y, groups, names=["half", "always_on"])
    >>> result.regret()["half"]["status"] in ("proved", "loose", "vacuous")
    True
    """
    loss = as_loss(loss)
    inputs, names = _validate(X, y, membership, names, loss)
    theirs = {} if experts is None else experts
    if not isinstance(theirs, Mapping):
        raise ConfigurationError("experts must be a mapping from name to predictions.")
    unknown = [item for item in keep if item not in KEEP]
    if unknown:
        raise ConfigurationError(f"keep takes {' and '.join(KEEP)}, not {unknown[0]!r}.")
    baseline = _baseline(names, inputs)
    assignment = of_columns(learner, loss, names, baseline)
    learners = assignment.learners
    chosen = as_aggregator(aggregator, loss, play, clip)
    masses = _masses(prior, len(names), baseline, mass_of_everybody(learners))
    seed, layer = checked_seed(seed), as_layer(recalibrate, loss, learners)
    within = as_intervals(intervals, loss)
    recent = as_windows(windows, loss, chosen, layer)
    logged = Experts(as_experts(list(theirs), loss, learners), loss, clip)
    inputs = inputs._replace(logged=logged.of_arrays(theirs, inputs.labels.size))
    everyone = [Logged(one) for one in logged.columns]
    everybody = np.arange(len(names))
    width = len(inputs.feature_names)

    parts = Parts(
        *(layer or within, assignment.made(everyone), chosen, loss, play, clip, seed),
        *(0, False, False),
        keep=bool(keep),
        afresh=aggregators_at == segmented.SEGMENT,
    )

    def start(jobs: int | None) -> Stream:
        reduction = parts._replace(learners=assignment.made(everyone)).reduction()
        refuse_actions(reduction)
        open_windows(reduction, recent)
        rosters = assignment.of_names(names, reduction.enlist)
        reduction.reserve(everybody, width, everybody, masses, rosters)
        return Stream(reduction, baseline, 0, jobs)

    stream = start(jobs)
    rows = inputs.labels.size
    if size := segmented.checked(segment, aggregators_at, stream.reduction, engine):
        with Gathered(loss, progress, rows) as gathered:
            cut = _segments(stream.reduction, inputs, size, baseline)
            about = engine, jobs, gathered.add
            carried = segmented.replay(parts, stream.reduction, len(names), cut, *about)
        figures = gathered.figures(keep)
        stream.reduction = segmented.after(parts, stream.reduction, carried, width)
    else:
        shape = rows, inputs.entries() if keep else 0
        figures = run(stream, _chunks(stream.reduction, inputs, 0, rows), shape, keep, progress)
    return Replay(
        *figures,
        names=names,
        path=path_of(stream.reduction),
        classes=loss.classes,
        _inputs=inputs,
        _start=start,
        _reduction=stream.reduction,
    )


def _validate(
    X: ArrayLike, y: ArrayLike, membership: ArrayLike, names: Sequence[str] | None, loss: Loss
) -> tuple[Inputs, tuple[str, ...]]:
    features = _matrix(X, "X", FeatureError)
    members = _matrix(membership, "membership", GroupError)
    if loss.classes is None:
        labels = _array(y, "y", LabelError)
    else:
        labels = np.asarray(y, dtype=object)
    if labels.ndim != 1:
        raise LabelError(f"y must have one dimension, not {labels.ndim}.")
    if not features.shape[0] == members.shape[0] == labels.size:
        raise FeatureError(
            "X, y and membership must have the same number of rows, not "
            f"{features.shape[0]}, {labels.size} and {members.shape[0]}."
        )
    if labels.size == 0:
        raise FeatureError("The stream is empty: X, y and membership have no rows.")
    scaled = np.ascontiguousarray(loss.encode_many(labels))
    count = members.shape[1]
    if names is None:
        names = tuple(map(str, range(count)))
    elif len(names) != count or len(set(names)) != count:
        raise GroupError(
            f"names must be {count} different texts, one per column of membership; "
            f"there are {len(names)}, {len(set(names))} of them different."
        )
    feature_names = tuple(f"x{i}" for i in range(features.shape[1]))
    return Inputs(features, scaled, members, feature_names, np.zeros((0, 0))), tuple(names)


def _array(values: ArrayLike, name: str, error: type[Exception]) -> Vector:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        how = "convert it before the replay"
        if name == "membership":
            how = "a column for every group, 1 in its rows. model.replay makes them of a frame"
        raise error(f"{name} must be numbers: {how}.") from None
    return array


def _matrix(values: ArrayLike, name: str, error: type[Exception]) -> Any:
    """A dense array or a scipy CSR matrix without explicit zeros, indices in order."""
    if hasattr(values, "tocsr"):
        try:
            matrix = values.tocsr().astype(np.float64)
            matrix.check_format(full_check=True)
        except (TypeError, ValueError) as problem:
            raise error(f"{name} is not a sound sparse matrix of numbers: {problem}.") from None
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix
    array = _array(values, name, error)
    if array.ndim != 2:
        raise error(f"{name} must have two dimensions (rows × columns), not {array.ndim}.")
    return array


def _masses(prior: ArrayLike | None, count: int, baseline: int, mass: float) -> Vector:
    if prior is None:
        return np.where(np.arange(count) == baseline, mass, 1.0)
    masses = _array(prior, "prior", ConfigurationError)
    if masses.shape != (count,) or not is_mass(masses).all():
        raise ConfigurationError(
            f"prior must be {count} positive numbers, one per group, {MASSES}."
        )
    return masses


def _baseline(names: tuple[str, ...], inputs: Inputs) -> int:
    if ALWAYS_ON in names:
        return names.index(ALWAYS_ON)
    members = inputs.members
    if isinstance(members, np.ndarray):
        candidates = np.flatnonzero(members[0] == 1.0).tolist()
        return next((g for g in candidates if (members[:, g] == 1.0).all()), -1)
    full = np.bincount(members.indices, weights=members.data, minlength=len(names))
    always = np.flatnonzero(full == inputs.labels.size)
    return int(always[0]) if always.size else -1


def _chunks(reduction: Reduction, inputs: Inputs, first: int, last: int) -> Iterator[Chunk]:
    step = rows_at_a_time(reduction, inputs.members.shape[1], len(inputs.feature_names))
    return _cut(inputs, first, last, step)


def _cut(inputs: Inputs, first: int, last: int, step: int) -> Iterator[Chunk]:
    for start in range(first, last, step):
        rows = slice(start, min(start + step, last))
        yield Chunk(
            _cells(inputs.features, rows),
            *_members(inputs.members, rows),
            inputs.labels[rows],
            inputs.feature_names,
            inputs.logged[rows],
        )


def _segments(reduction: Reduction, inputs: Inputs, size: int, baseline: int) -> Iterator[Segment]:
    count = inputs.members.shape[1]
    cutter = segmented.Cutter(size, 0, count)
    step = rows_at_a_time(reduction, count, len(inputs.feature_names))
    for rows in _cut(inputs, 0, inputs.labels.size, size):
        yield from cutter.cut(rows, (), baseline, step)
    yield from cutter.rest()


def _cells(matrix: Any, rows: slice) -> Cells:
    """The features of some rows, checked."""
    if isinstance(matrix, np.ndarray):
        found = Cells.of_dense(_dense(matrix, rows))
    else:
        found = Cells(*cells.of_sparse(*_sparse(matrix, rows)))
    bad = cells.first_outside(found.values, -LARGEST, LARGEST)
    if bad >= 0:
        row, column = found.cell(bad)
        value = f"X[{rows.start + row}, {column}] = {found.values[bad]:g}"
        what = "is not finite" if not np.isfinite(found.values[bad]) else f"is beyond {LARGEST:g}"
        raise FeatureError(f"{value} {what}.", row=rows.start + row)
    return found


def _members(matrix: Any, rows: slice) -> tuple[Index, Index, Vector]:
    """The awake groups of some rows, checked."""
    if isinstance(matrix, np.ndarray):
        indptr, groups, weights = compress(_dense(matrix, rows))
    else:
        indptr, groups, weights = _sparse(matrix, rows)
    bad = cells.first_outside(weights, 0.0, 1.0)
    if bad >= 0:
        row = rows.start + int(np.searchsorted(indptr, bad, "right")) - 1
        value = f"membership[{row}, {groups[bad]}] = {weights[bad]:g}"
        raise GroupError(f"{value} is not in [0, 1].", row=row)
    return indptr, groups, weights


def _dense(matrix: Vector, rows: slice) -> Vector:
    return np.ascontiguousarray(matrix[rows], dtype=np.float64)


def _sparse(matrix: Any, rows: slice) -> tuple[Index, Index, Vector]:
    indptr = matrix.indptr[rows.start : rows.stop + 1].astype(np.int64)
    part = slice(indptr[0], indptr[-1])
    return indptr - indptr[0], matrix.indices[part].astype(np.int64), matrix.data[part]


def _ignore(outcome: Outcome) -> None:
    del outcome
