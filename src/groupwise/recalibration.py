"""Recalibration: layers over Algorithm 1 that turn its probability p into what is predicted, q.

There are two. ``learners.platt.Platt`` learns a map of the logit for every group, a learner like
any other, and mixes the maps of the awake groups by Algorithm 1 once more. :class:`Gap` adds an
offset to the logit for every group, and with it drives the group's mean gap to 0.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.errors import ConfigurationError, is_finite, named
from groupwise.kernels import recalibration
from groupwise.kernels.cells import Cells
from groupwise.kernels.losses import LOG, value
from groupwise.kernels.stretch import addressed
from groupwise.learners.platt import Platt
from groupwise.losses import Log, Loss
from groupwise.protocols import Awake, Layered, Play, Row, Settlement
from groupwise.reduction import Reduction
from groupwise.regret.calibration import bins_for
from groupwise.regret.printed import Printed
from groupwise.regret.table import RegretTable, in_order, regret_table
from groupwise.store import Store
from groupwise.stream import Chunk, Outcome, Stream, Work
from groupwise.validation import as_aggregator

FEATURES = ("logit", "one")
_PLACES = np.arange(len(FEATURES))
FASTEST = 10.0
PREFIX = "recalibration."
"""What the names of a layer's arrays begin with in a file."""


@dataclass(frozen=True)
class Gap:
    """Recalibration by offsets: every group's mean gap goes to 0, whatever the data are.

    Group g has an offset b_g, which starts at 0. What is predicted in place of p is

        q = σ(logit p + Σ w b_g)    over the awake groups, of weights w,

    and a label updates b_g += η w (y − q), late ones with the q that was issued.

    Parameters
    ----------
    rate : η. A larger one closes gaps sooner, and makes predictions less steady.

    >>> Gap(rate=0.05)
    Gap(rate=0.05)

    Guarantee
    ---------
    At every moment and for every group Σ w (y − q) = b_g / η: the gap of a group is known from its
    offset alone, and goes to 0 like b_g / (η T_g) as its rounds go by. ``model.recalibration()``
    shows both. This is about means: of the log loss nothing is promised.
    """

    rate: float = 0.01

    def __post_init__(self) -> None:
        if not (is_finite(self.rate) and 0.0 < self.rate <= FASTEST):
            raise ConfigurationError(
                f"rate must be a number above 0, and at most {FASTEST:g}, not {self.rate!r}."
            )


AnyMap = Platt | Gap
KINDS = {kind.__name__: kind for kind in (Platt, Gap)}


def as_layer(recalibrate: Any, loss: Loss, learners: Sequence[Any]) -> AnyMap | None:
    """The layer that ``recalibrate`` asks for, checked; None where it asks for none."""
    if recalibrate is None or recalibrate is False:
        return None
    if not isinstance(loss, Log):
        raise ConfigurationError(
            f"recalibrate is about probabilities, and {loss} is not: use loss=losses.Log()."
        )
    if loss.nodes > 1:
        raise ConfigurationError(
            f"recalibrate is for two classes, and there are {loss.nodes + 1}: leave it out."
        )
    if recalibrate is True:
        bounds = [one.bound for one in learners if hasattr(one, "bound")]
        return Platt(bound=max(bounds, default=Platt.bound))
    if not isinstance(recalibrate, AnyMap):
        raise ConfigurationError(
            f"recalibrate={recalibrate!r}: give True, gw.Platt(...), gw.Gap(...) or False."
        )
    return recalibrate


def layer_to_dict(layer: AnyMap | None) -> dict[str, Any] | None:
    """The layer by name and parameters, for files."""
    return None if layer is None else {"type": type(layer).__name__, **asdict(layer)}


def layer_from_dict(fields: Mapping[str, Any] | None) -> AnyMap | None:
    """The layer that :func:`layer_to_dict` wrote."""
    return None if fields is None else named(KINDS, fields, "recalibration")


class PlattLayer:
    """Algorithm 1 on rows (logit p, 1)."""

    prefix: ClassVar[str] = PREFIX

    def __init__(self, kind: Platt, loss: Log, seed: int, always_on: bool) -> None:
        self.bound = kind.bound
        loss = Log(loss.floor)
        aggregator = as_aggregator(None, loss)
        self.reduction = Reduction(
            [kind], aggregator, loss, seed=seed, width=len(FEATURES), always_on=always_on
        )
        assert self.reduction.bins is not None
        self.bins = self.reduction.bins

    def _rows(self, predictions: Vector) -> Vector:
        rows = np.empty((predictions.size, len(FEATURES)))
        recalibration.features(predictions, self.bound, rows)
        return rows

    def _row(self, p: float) -> Row:
        return Row(_PLACES, self._rows(np.array([p]))[0], FEATURES)

    def issue(self, number: int, awake: Awake, p: float) -> tuple[float, Play]:
        """What is predicted in place of p, and how that was mixed. Changes nothing."""
        play = self.reduction.predict(number, awake, self._row(p))
        return play.prediction, play

    def learn(
        self,
        number: int,
        awake: Awake,
        p: float,
        label: float,
        late: Layered | None,
        stands_for: float,
    ) -> None:
        """Learn from the label of p; ``late`` is what was issued, where others came since."""
        self.reduction.stands_for = stands_for
        issued = None if late is None else late.after
        self.reduction.learn(number, awake, self._row(p), label, issued)

    def run(self, work: Work, baseline: int) -> Outcome:
        """Both for all rows of a chunk, after the model is through with it."""
        rows = Cells.of_dense(self._rows(work.outcome.prediction))
        chunk = Chunk(rows, work.indptr, work.groups, work.weights, work.labels, FEATURES)
        found: list[Outcome] = []
        Stream(self.reduction, baseline, work.number, 1).run([chunk], found.append)
        return found[0]

    def lost(self, group: int) -> float:
        """What was lost on a group, scaled."""
        own = self.reduction.books.of(group)
        return float(own.loss[0] + own.loss_rest[0])

    def table(self, names: list[str], settled: int, largest: int | None) -> RegretTable:
        """Regret against the best map of every group."""
        return regret_table(self.reduction, names, len(FEATURES), settled, largest)

    def score(self, play: Layered, label: float) -> Settlement:
        """What was lost by what was issued."""
        assert play.after is not None
        return self.reduction.score(play.after, label)

    def reserve(self, groups: Index, new: Index, masses: Sequence[float] | Vector) -> None:
        """Make room for these groups."""
        self.reduction.reserve(groups, len(FEATURES), new, masses)

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.reduction.restart()

    def save(self, groups: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name."""
        return self.reduction.save(groups, len(FEATURES))

    def load(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what :meth:`save` gave."""
        self.reduction.load(arrays, groups, len(FEATURES))


class GapLayer:
    """An offset for every group."""

    prefix: ClassVar[str] = PREFIX

    def __init__(self, kind: Gap, loss: Log) -> None:
        self.loss, self.rate = loss, kind.rate
        parameters = np.array([kind.rate, loss.scale, *loss.advice_range])
        self.offsets = Store(recalibration.OFFSETS, parameters=parameters)
        self.bins = bins_for(1)

    def issue(self, number: int, awake: Awake, p: float) -> tuple[float, None]:
        """What is predicted in place of p. Changes nothing."""
        return float(recalibration.issue(self.offsets.address, addressed(awake), p)), None

    def learn(
        self,
        number: int,
        awake: Awake,
        p: float,
        label: float,
        late: Layered | None,
        stands_for: float,
    ) -> None:
        """Learn from the label of p; ``late`` is what was issued, where others came since."""
        q = self.issue(number, awake, p)[0] if late is None else late.prediction
        stores = self.offsets.address, self.bins.address
        recalibration.learn(*stores, addressed(awake), stands_for, q, label)

    def run(self, work: Work, baseline: int) -> Outcome:
        """Both for all rows of a chunk, after the model is through with it."""
        outcome = work.outcome
        rows = work.indptr, work.groups, work.weights, work.labels
        stores = self.offsets.address, self.bins.address
        figures = outcome.prediction, outcome.realised
        recalibration.learn_stream(*stores, *rows, *figures)
        return outcome._replace(expected=outcome.realised)

    def lost(self, group: int) -> float:
        """What was lost on a group, scaled."""
        return float(self.bins.of(group).loss[0])

    def table(self, names: list[str], settled: int, largest: int | None) -> "GapTable":
        """Gap and offset of every group."""
        rows = []
        for group in in_order(self.offsets, names, largest):
            own = self.offsets.of(group)
            rounds, missed = float(own.rounds[0]), float(own.missed[0])
            rows.append(
                {
                    "group": names[group],
                    "rounds": rounds,
                    "gap": -missed,
                    "mean_gap": -missed / rounds if rounds > 0.0 else None,
                    "offset": self.rate * missed,
                }
            )
        return GapTable(rows, self.rate, settled)

    def score(self, play: Layered, label: float) -> Settlement:
        """What was lost by what was issued."""
        q = play.prediction
        loss = float(value(LOG, self.loss.scale, q, label))
        return Settlement(np.zeros((0, 0)), loss, loss)

    def reserve(self, groups: Index, new: Index, masses: Sequence[float] | Vector) -> None:
        """Make room for these groups."""
        self.offsets.reserve(groups, 0)
        self.bins.reserve(groups, 0)

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.offsets.clear(("rounds", "missed"))

    def save(self, groups: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name."""
        found = {f"gap.{name}": a for name, a in self.offsets.save(groups, 0).items()}
        return found | {f"calibration.{name}": a for name, a in self.bins.save(groups, 0).items()}

    def load(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what :meth:`save` gave."""
        for name, store in (("gap.", self.offsets), ("calibration.", self.bins)):
            own = {k.removeprefix(name): a for k, a in arrays.items() if k.startswith(name)}
            store.load(own, groups, 0, 0)


@dataclass(frozen=True, repr=False)
class GapTable(Printed):
    """The gap of every group and its offset.

    ``rows`` is a list of dictionaries with the keys group, rounds, gap (Σ w (q − y), of predictions
    q as they were issued), mean_gap (per round) and offset (b_g, which is −η times the gap).
    """

    rate: float = 0.0
    settled: int = 0
    keys: ClassVar[tuple[str, ...]] = ("group", "rounds", "gap", "mean_gap", "offset")

    def shown(self) -> list[str]:
        """The keys to print."""
        return list(self.keys)

    def remarks(self) -> list[str]:
        """How to read it."""
        return [f"{self.settled} settled rounds; the offset is −{self.rate:g} times the gap."]
