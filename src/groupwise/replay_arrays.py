"""A whole stream at compiled speed, from arrays: the same numbers as the loop."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from groupwise.action_models import refuse_replay
from groupwise.configuration import as_aggregator, as_learners, as_loss, checked_seed
from groupwise.errors import ConfigurationError, FeatureError, GroupError, LabelError
from groupwise.kernels import cells, compiling
from groupwise.kernels.cells import Cells
from groupwise.kernels.schedule import compress
from groupwise.learners.ridge import Ridge
from groupwise.losses import Loss
from groupwise.progress import progress_bar
from groupwise.protocols import Aggregator, Learner
from groupwise.reduction import Reduction
from groupwise.regret.curves import Curve, Recorder, moments
from groupwise.regret.ledger import Ledger, keeps_sums
from groupwise.regret.table import ALWAYS_ON, RegretTable, regret_table
from groupwise.states import LARGEST, Index, Vector
from groupwise.stream import Chunk, Outcome, Stream, rows_at_a_time

KEEP = ("advice", "weights")


class Inputs(NamedTuple):
    """The arrays of a replay; what is in a chunk is checked when its turn comes."""

    features: Any
    labels: Vector
    members: Any
    feature_names: tuple[str, ...]

    def entries(self) -> int:
        """How many pairs of a row and a group that it is in there are."""
        dense = isinstance(self.members, np.ndarray)
        return int(np.count_nonzero(self.members)) if dense else self.members.nnz


@dataclass(frozen=True, eq=False)
class Replay:
    """What :func:`replay` returns. Predictions and losses are in the label's units, one per row.

    ``loss`` is that of the prediction; ``expected_loss`` its expectation over the aggregator's
    draw, the same where nothing is drawn. ``advice`` and ``weights`` have a row for every non-zero
    of the membership, row by row (CSR order), and a column per learner where there are several;
    None where not kept. ``path`` says which way was taken: "compiled" or "python".
    """

    prediction: Vector
    loss: Vector
    expected_loss: Vector
    advice: Vector | None
    weights: Vector | None
    names: tuple[str, ...]
    path: str
    _inputs: Inputs
    _engine: Callable[[], "tuple[Reduction, Ledger, int]"]
    _reduction: Reduction
    _ledger: Ledger

    def regret(self) -> RegretTable:
        """The regret table over the whole stream."""
        return self._table(self._reduction, self._ledger)

    def curves(self, points: int = 100) -> dict[str, Curve]:
        """Regret and certificate over time, per group, at ``points`` evenly spaced moments.

        The stream is replayed once more, stopping at each of them.
        """
        if isinstance(points, bool) or not isinstance(points, int) or points < 1:
            raise ConfigurationError(f"points must be a positive whole number, not {points!r}.")
        reduction, ledger, baseline = self._engine()
        recorder = Recorder()
        stream = Stream(reduction, ledger, baseline, 0, None)
        start = 0
        for stop in moments(self._inputs.labels.size, points).tolist():
            stream.run(_chunks(self._inputs, start, stop), _ignore)
            recorder.record(stop, self._table(reduction, ledger))
            start = stop
        curves = recorder.curves()
        return {name: curves[name] for name in self.names}

    def _table(self, reduction: Reduction, ledger: Ledger) -> RegretTable:
        features, settled = len(self._inputs.feature_names), self._inputs.labels.size
        return regret_table(reduction, ledger, list(self.names), features, settled)


def replay(
    X: ArrayLike,
    y: ArrayLike,
    membership: ArrayLike,
    *,
    learner: Ridge | Learner | Sequence[Ridge | Learner] | None = None,
    aggregator: Aggregator | None = None,
    loss: Loss | None = None,
    play: str | None = None,
    clip: bool = True,
    prior: ArrayLike | None = None,
    names: Sequence[str] | None = None,
    seed: int = 0,
    jobs: int | None = None,
    keep: Sequence[str] = KEEP,
    progress: bool = False,
) -> Replay:
    """Run Algorithm 1 over a whole stream of arrays, taken as they are.

    Parameters
    ----------
    X : T × d features, dense or scipy sparse. Nothing is appended or scaled.
    y : T labels within the loss's range.
    membership : T × N, dense or scipy sparse, each entry in [0, 1]; an always-on column is yours to
        give. The baseline is the column named "always_on", or else the first that is always 1.
    learner, aggregator, loss, play, clip, seed : as in :class:`groupwise.Groupwise`.
    prior : a positive mass per group; uniform by default.
    names : the groups' names; "0", "1", … by default.
    jobs : threads; one per core by default. The numbers do not depend on it.
    keep : which of "advice" and "weights" to keep.
    progress : show a progress bar.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.random((100, 3)), rng.random(100)
    >>> groups = np.column_stack([rng.random(100) < 0.5, np.ones(100)])
    >>> result = replay(X, y, groups, names=["half", "always_on"])
    >>> result.regret()["half"]["status"] in ("proved", "vacuous")
    True
    """
    loss = as_loss(loss)
    inputs, names = _validate(X, y, membership, names, loss)
    masses = _masses(prior, len(names))
    unknown = [item for item in keep if item not in KEEP]
    if unknown:
        raise ConfigurationError(f"keep takes {' and '.join(KEEP)}, not {unknown[0]!r}.")
    learners = as_learners(learner)
    refuse_replay(learners)
    chosen = as_aggregator(aggregator)
    seed = checked_seed(seed)

    def engine() -> tuple[Reduction, Ledger, int]:
        reduction = Reduction(learners, chosen, loss, play, clip, seed)
        ledger = Ledger(len(learners), keeps_sums(learners, loss))
        width = len(inputs.feature_names)
        reduction.reserve(len(names), width, masses)
        ledger.reserve(len(names), width)
        return reduction, ledger, _baseline(names, inputs)

    reduction, ledger, baseline = engine()
    total = inputs.labels.size
    shape = (inputs.entries() if keep else 0, len(learners))
    prediction, realised, expected = (np.empty(total) for _ in range(3))
    kept = {item: np.empty(shape) for item in KEEP if item in keep}
    stream = Stream(reduction, ledger, baseline, 0, jobs)
    position = entry = 0

    with compiling(), progress_bar(total, "replay", progress) as advance:

        def done(outcome: Outcome) -> None:
            nonlocal position, entry
            stop = position + outcome.prediction.size
            prediction[position:stop] = outcome.prediction
            expected[position:stop] = outcome.expected
            realised[position:stop] = outcome.realised
            last = entry + len(outcome.advice)
            for item, values in (("advice", outcome.advice), ("weights", outcome.probabilities)):
                if item in kept:
                    kept[item][entry:last] = values
            advance(stop - position)
            position, entry = stop, last

        stream.run(_chunks(inputs, 0, total), done)

    def flat(values: Vector) -> Vector:
        return values[:, 0] if values.shape[1] == 1 else values

    return Replay(
        prediction=loss.decode_many(prediction),
        loss=loss.unit * realised,
        expected_loss=loss.unit * expected,
        advice=flat(loss.decode_many(kept["advice"])) if "advice" in kept else None,
        weights=flat(kept["weights"]) if "weights" in kept else None,
        names=names,
        path="compiled" if reduction.compiled else "python",
        _inputs=inputs,
        _engine=engine,
        _reduction=reduction,
        _ledger=ledger,
    )


def _validate(
    X: ArrayLike, y: ArrayLike, membership: ArrayLike, names: Sequence[str] | None, loss: Loss
) -> tuple[Inputs, tuple[str, ...]]:
    features = _matrix(X, "X", FeatureError)
    members = _matrix(membership, "membership", GroupError)
    labels = _array(y, "y", LabelError)
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
    return Inputs(features, scaled, members, feature_names), tuple(names)


def _array(values: ArrayLike, name: str, error: type[Exception]) -> Vector:
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf":
            raise TypeError
    except (TypeError, ValueError):
        raise error(f"{name} must be numbers; convert it before the replay.") from None
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


def _masses(prior: ArrayLike | None, count: int) -> Vector:
    masses = np.ones(count) if prior is None else _array(prior, "prior", ConfigurationError)
    if masses.shape != (count,) or not (np.isfinite(masses).all() and (masses > 0).all()):
        raise ConfigurationError(f"prior must be {count} positive numbers, one per group.")
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


def _chunks(inputs: Inputs, first: int, last: int) -> Iterator[Chunk]:
    step = rows_at_a_time(inputs.members.shape[1])
    for start in range(first, last, step):
        rows = slice(start, min(start + step, last))
        yield Chunk(
            _cells(inputs.features, rows),
            *_members(inputs.members, rows),
            inputs.labels[rows],
            inputs.feature_names,
        )


def _cells(matrix: Any, rows: slice) -> Cells:
    """The features of some rows, checked."""
    if isinstance(matrix, np.ndarray):
        found = Cells(*cells.of_matrix(_dense(matrix, rows)))
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
