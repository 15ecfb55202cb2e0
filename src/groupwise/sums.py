"""Sums of rows, apart from any model: the best in hindsight of every group, and an audit."""

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, FeatureError
from groupwise.features import COLUMNS, AnyFeatures, Encoder, split
from groupwise.features.experts import Experts
from groupwise.groups import ALWAYS_ON, Group, Groups
from groupwise.kernels import compiling
from groupwise.kernels.layout import room
from groupwise.learners.recorders import LinearRecorder
from groupwise.losses import Loss
from groupwise.reading import frames_of, read_frame
from groupwise.registry import Registry
from groupwise.regret.certificate import UNCERTAIN
from groupwise.regret.printed import Printed
from groupwise.regret.sums import GroupSums, merged, placed
from groupwise.regret.threads import one_thread
from groupwise.segments import Parts, Segment, add_up
from groupwise.stream import Chunk
from groupwise.validation import as_loss, with_intersections

MEASURED = "measured"
STEP = 4_096
"""Rows at a time."""


class Sums:
    """What is needed of rows to tell the best linear model of every group: it adds up.

    Any engine can do it: each worker adds the rows it has, and sums are added in the order of the
    rows. Of logged predictions, what they lost on every group is added up beside. No model learns
    anything meanwhile, so that this is quick.

    Parameters
    ----------
    groups, features, loss, indicators, intercept, always_on, intersections, max_levels, missing :
        as in :class:`groupwise.Groupwise`; makers of features, which follow the order of rows, are
        for models. The loss is ``losses.Square(low, high)``.
    target : the column of the labels.
    predictions : columns with predictions of any models, in the label's units; no features.

    >>> import polars, groupwise as gw
    >>> rows = polars.DataFrame({"sex": ["f", "m"] * 4, "x": range(8), "y": [1.0, 2] * 4})
    >>> rows = rows.with_columns(mine=1.5)
    >>> sums = gw.Sums([gw.by("sex")], loss=gw.losses.Square(0, 2), predictions=["mine"])
    >>> whole = sums.add(rows[:4]) + sums.empty().add(rows[4:])
    >>> [(row["group"], row["loss"], row["status"]) for row in whole.regret("mine")]
    [('sex=f', 1.0, 'measured'), ('sex=m', 1.0, 'measured'), ('always_on', 2.0, 'measured')]

    Guarantee
    ---------
    ``best_loss`` is that of one pass over all rows, within ``best_error`` of the truth where the
    status is not "numerically uncertain": numbers of groups and features, and so everything that
    follows from their order, are those of the stream.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        features: AnyFeatures = None,
        loss: Loss | None = None,
        target: str = "y",
        predictions: Sequence[str] = (),
        indicators: bool = True,
        intercept: bool = True,
        always_on: bool = True,
        intersections: int | None = None,
        max_levels: int | None = COLUMNS,
        missing: str | None = None,
    ) -> None:
        self.loss = as_loss(loss)
        if not self.loss.linear_hindsight:
            raise ConfigurationError(
                f"Sums tell the best linear model by square loss, and {self.loss} is another. Use "
                "losses.Square(low, high)."
            )
        declared, makers = split(features)
        if makers:
            raise ConfigurationError(
                "What makers make of rows depends on the rows before, so that it does not add up: "
                "make these columns first, or replay a model."
            )
        if isinstance(predictions, str):
            raise ConfigurationError(
                f"predictions is a list of columns: [{predictions!r}], not {predictions!r}."
            )
        if target in predictions:
            raise ConfigurationError(f"{target!r} is the label, and cannot be a prediction of it.")
        declarations = tuple(groups) if isinstance(groups, (list, tuple)) else groups
        self.target, self.predictions = target, tuple(predictions)
        self._about = (
            *(declarations, features, self.loss, target, self.predictions),
            *(indicators, intercept, always_on, intersections, max_levels, missing),
        )
        self.groups = Groups(with_intersections(declarations, intersections), always_on)
        self._encoder = Encoder(
            declared, indicators, self.groups, intercept, max_levels, self.predictions, missing
        )
        self._registry = Registry(self.groups, {})
        self._experts = Experts(self.predictions, self.loss, clip=False)
        self._sums: dict[int, GroupSums] = {}
        self._totals = np.zeros((0, 1 + len(self.predictions)))
        """Σ w of every group, and what each prediction lost, scaled."""
        self.rows = 0
        """How many rows were added."""

    def __repr__(self) -> str:
        """In one line: how far they are, and of what.

        >>> from groupwise.groups import by
        >>> Sums([by("sex")])
        <Sums: 0 rows, 0 groups, Square(low=0.0, high=1.0), label 'y'>
        """
        groups = len(self._registry)
        return f"<Sums: {self.rows} rows, {groups} groups, {self.loss}, label {self.target!r}>"

    def empty(self) -> "Sums":
        """The same without any rows."""
        return Sums(*self._about)

    @property
    def group_names(self) -> list[str]:
        """The groups so far, in the order in which they appeared."""
        return list(self._registry.names)

    @property
    def feature_names(self) -> list[str]:
        """The features so far."""
        return list(self._encoder.names)

    def add(self, frame: Any) -> "Sums":
        """Add the rows of a frame, or of an iterable of them, after all others; returns itself.

        On an error nothing is added.
        """
        before = dict(vars(self))
        self._encoder, self._registry = copy.deepcopy((self._encoder, self._registry))
        try:
            with compiling():
                for one in frames_of(frame):
                    self._add(one)
        except BaseException:
            vars(self).update(before)
            raise
        self._encoder.announce()
        return self

    def _add(self, frame: Any) -> None:
        parts = self.loss, self.groups, self._encoder, self._registry
        read = read_frame(frame, self.target, *parts, None, self._experts)
        self._registry.admit(read.groups)
        self._encoder.admit(read.encoded)
        rows, count = read.rows, len(self._registry)
        if not rows.labels.size:
            return
        losses = self._losses(rows)
        entries = np.repeat(np.arange(rows.labels.size), np.diff(rows.member_indptr))
        columns = [np.ones(rows.labels.size), *losses.T]
        more = [
            np.bincount(rows.groups, rows.weights * c[entries], count).astype(np.float64)
            for c in columns
        ]
        nothing = np.zeros(0)
        segment = Segment((rows,), 0, 0, -1, count, np.zeros(0, dtype=np.int64), nothing, STEP)
        added = add_up(self._parts(), segment)
        sums = dict(self._sums)
        for group, own in zip(added.groups.tolist(), added.sums, strict=True):
            sums[group] = merged(sums.get(group), own[0])
        self._sums, self.rows = sums, self.rows + rows.labels.size
        self._totals = _summed(self._totals, np.column_stack(more), count)

    def _parts(self) -> Parts:
        linear = LinearRecorder(self.loss, self._encoder.intercept)
        offset = float(linear.stores["hindsight"].parameters[0])
        nobody: Any = None
        settings = None, True, 0, 0, False, self._encoder.intercept
        return Parts(None, (), nobody, self.loss, *settings, offset)

    def _losses(self, rows: Chunk) -> Vector:
        with np.errstate(over="ignore"):
            losses: Vector = (rows.logged - rows.labels[:, None]) ** 2
        if not np.isfinite(losses).all():
            row, column = np.argwhere(~np.isfinite(losses))[0].tolist()
            name = self.predictions[column]
            raise FeatureError(f"The prediction in {name!r} is too large to compute with.", row=row)
        return losses if self.predictions else np.zeros((rows.labels.size, 0))

    def __add__(self, other: "Sums") -> "Sums":
        """The sums of the rows of both, those of the other after these."""
        if not isinstance(other, Sums):
            return NotImplemented
        if other._about != self._about:
            raise ConfigurationError(
                "Sums add up where groups, features, loss, target and predictions are the same: "
                "make the other with sums.empty()."
            )
        found = copy.copy(self)
        found._encoder, found._registry = copy.deepcopy((self._encoder, self._registry))
        for field, columns in self._encoder.hashed.items() | other._encoder.hashed.items():
            if field not in self._encoder.declared_hashed:
                raise FeatureError(
                    f"Column {field!r} has more than {columns} values, of which the further ones "
                    "share features in the order they came: that does not add up. Raise "
                    "max_levels, or declare gw.hashed(n)."
                )
        found._encoder.admit(other._encoder.features)
        if crowded := found._encoder.crowded():
            raise FeatureError(
                f"Column {crowded!r} has more than {self._encoder.max_levels} values in both parts "
                "together: raise max_levels, or declare gw.hashed(n)."
            )
        mine = [self.groups.member(*one.key) for one in other._registry.members]
        numbers, new = found._registry.look_up(mine)
        found._registry.admit(new)
        index = found._encoder.index
        names = np.array([index[one] for one in other._encoder.features])
        found._sums = dict(self._sums)
        for group, own in other._sums.items():
            number = int(numbers[group])
            found._sums[number] = merged(self._sums.get(number), _renamed(own, names))
        count = len(found._registry)
        theirs = np.zeros((count, self._totals.shape[1]))
        theirs[numbers[: len(other._totals)]] = other._totals
        found._totals = _summed(self._totals, theirs, count)
        found.rows = self.rows + other.rows
        return found

    def regret(self, prediction: str | None = None) -> "SumsTable":
        """What the predictions in a column lost on every group, beside the best linear model.

        Without a column, what the best has lost.
        """
        if prediction is not None and prediction not in self.predictions:
            named = ", ".join(map(repr, self.predictions)) or "none"
            raise ConfigurationError(
                f"There are no predictions {prediction!r}. Known are {named}: name them with "
                "predictions=[...]."
            )
        unit, rows = self.loss.unit, []
        names = self._registry.names
        with compiling(), one_thread():
            for group in sorted(range(len(names)), key=lambda g: names[g] == ALWAYS_ON):
                known = self._sums[group].hindsight()
                rounds = float(self._totals[group, 0])
                row: dict[str, Any] = {
                    "group": names[group],
                    "rounds": rounds,
                    "few_rows": bool(0.0 < rounds <= known.columns),
                    "best_loss": unit * known.best,
                    "best_error": unit * known.error,
                    "status": UNCERTAIN if known.uncertain else MEASURED,
                }
                if prediction is not None:
                    place = 1 + self.predictions.index(prediction)
                    loss = unit * float(self._totals[group, place])
                    row |= {"loss": loss, "regret": loss - row["best_loss"]}
                rows.append(row)
        return SumsTable(rows, self.rows, self.loss.measure, prediction or "")


@dataclass(frozen=True, repr=False)
class SumsTable(Printed):
    """What the best linear model has lost on every group, and what predictions have.

    ``rows`` is a list of dictionaries with the keys group, rounds, few_rows, best_loss, best_error
    and status, and of predictions loss and regret; as in a :class:`RegretTable`. The status is
    "measured", or "numerically uncertain" where the best loss cannot be told.
    """

    settled: int = 0
    unit: str = "label"
    prediction: str = ""
    words: ClassVar[frozenset[str]] = frozenset({"group", "status"})

    def shown(self) -> list[str]:
        """The keys to print."""
        own = ("loss", "best_loss", "regret") if self.prediction else ("best_loss",)
        return ["group", "rounds", *own, "best_error", "status"]

    @property
    def units(self) -> dict[str, str]:
        """What the figures are in."""
        return dict.fromkeys(("loss", "best_loss", "best_error", "regret"), self.unit)

    def remarks(self) -> list[str]:
        """What regret is against."""
        whose = f" of {self.prediction!r}" if self.prediction else ""
        best = "the best linear model in hindsight"
        return [f"{self.settled} rows; regret{whose} is against {best}."]


def _summed(first: Vector, second: Vector, groups: int) -> Vector:
    """Totals of so many groups, the first of which there may be fewer."""
    out: Vector = second.copy()
    out[: len(first)] += first
    return out


def _renamed(sums: GroupSums, names: Index) -> GroupSums:
    """Sums whose features have other numbers; columns that no row has used are left out."""
    used = np.flatnonzero(sums.features < names.size)
    width, places = room(used.size), np.arange(used.size)
    fields: Mapping[str, Any] = {
        name: placed(getattr(sums, name)[..., used], places, width)
        for name in ("rows", "lengths", "sketch", "sample")
    }
    firm = int(np.searchsorted(used, sums.firm))
    return sums._replace(features=names[sums.features[used]], firm=firm, **fields)
