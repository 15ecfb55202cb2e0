"""Layers over Algorithm 1: what is done with its prediction before it is issued.

A layer depends on the prediction alone, so that it comes after everything else: in single rounds
after the play, in whole stretches after those of the model. A label that comes late finds what was
issued in its ticket. There are recalibration of probabilities (``groupwise.recalibration``) and
intervals around numbers (``groupwise.intervals``).
"""

from collections.abc import Mapping, Sequence
from typing import Any

from groupwise.arrays import Index, Vector
from groupwise.classes import reduction_for as plain
from groupwise.errors import ConfigurationError
from groupwise.intervals import CoverageTable, IntervalLayer, Intervals
from groupwise.learners.platt import Platt
from groupwise.losses import Log, Loss
from groupwise.protocols import AnyAggregator, Awake, Layered, Row, Settlement
from groupwise.recalibration import Gap, GapLayer, GapTable, PlattLayer
from groupwise.reduction import NONE, Reduction
from groupwise.regret.table import RegretTable
from groupwise.store import Store
from groupwise.stream import Outcome, Work

AnyLayer = Platt | Gap | Intervals
Over = PlattLayer | GapLayer | IntervalLayer


def layer_over(kind: AnyLayer, loss: Loss, seed: int, always_on: bool) -> Over:
    """The layer of a kind, for a model of this loss."""
    if isinstance(kind, Intervals):
        return IntervalLayer(kind, loss)
    assert isinstance(loss, Log)
    return (
        PlattLayer(kind, loss, seed, always_on) if isinstance(kind, Platt) else GapLayer(kind, loss)
    )


class LayeredReduction(Reduction):
    """Algorithm 1 with a layer over it.

    Regret is that of what is predicted: to the terms of a certificate comes what the layer has lost
    more than the predictions before it, as measured (below 0 where it has gained).
    """

    def __init__(
        self,
        layer: AnyLayer,
        learners: Sequence[Any],
        aggregator: AnyAggregator,
        loss: Loss,
        play: str | None = None,
        clip: bool = True,
        seed: int = 0,
        width: int = 0,
        always_on: bool = False,
        intercept: bool = False,
    ) -> None:
        settings = play, clip, seed, width, always_on, intercept
        super().__init__(learners, aggregator, loss, *settings)
        self.layer = layer_over(layer, loss, seed, always_on)
        self.bins = None  # the layer has those of what is predicted
        self._hand_over()

    @property
    def issued_bins(self) -> Store | None:
        """Those of what was predicted."""
        return self.layer.bins

    def issued_loss(self, group: int) -> float | None:
        """The scaled loss of what was predicted."""
        return self.layer.lost(group)

    def predict(self, number: int, awake: Awake, row: Row) -> Any:
        """Steps (a) and (b), and the layer. Changes nothing."""
        before = super().predict(number, awake, row)
        issued, after = self.layer.issue(number, awake, before.prediction)
        return Layered(issued, before, after)

    def learn(self, number: int, awake: Awake, row: Row, label: Any, late: Any = None) -> Any:
        """Step (c), and the layer's."""
        p = super().learn(number, awake, row, label, None if late is None else late.before)
        if late is not None:
            p = late.before.prediction
        self.layer.learn(number, awake, p, label, late, self.stands_for)
        return p

    def follow_up(self, work: Work, baseline: int) -> Outcome:
        """The layer, over the rows of a chunk that are settled."""
        outcome = self.layer.run(work, baseline)
        said = {"advice": work.outcome.advice, "probabilities": work.outcome.probabilities}
        return outcome._replace(**said)

    def score(self, play: Any, label: Any) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        if not isinstance(play, Layered):
            return super().score(play, label)
        found = self.layer.score(play, label)
        return super().score(play.before, label) if found is None else found

    def reserve(
        self,
        groups: Index,
        features: int,
        new: Index = NONE,
        masses: Sequence[float] | Vector = (),
        rosters: Sequence[int] = (),
    ) -> None:
        """Make room, for the layer too."""
        super().reserve(groups, features, new, masses, rosters)
        self.layer.reserve(groups, new, masses)

    def restart(self) -> None:
        """Make everybody forget, as if no label had come."""
        super().restart()
        self.layer.restart()

    def save_settled(self, groups: int) -> dict[str, Any]:
        """Everything but the learners, as arrays by name: aggregator, books and layer."""
        prefix = self.layer.prefix
        layer = {f"{prefix}{name}": array for name, array in self.layer.save(groups).items()}
        return super().save_settled(groups) | layer

    def load_settled(self, arrays: dict[str, Any], groups: int) -> None:
        """Take over what :meth:`save_settled` gave."""
        own, layer = parts_of(arrays)
        super().load_settled(own, groups)
        self.layer.load(layer, groups)


def parts_of(arrays: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of a model itself and those of its layer, by the names they have there."""
    own, layer = dict(arrays), {}
    for prefix in (PlattLayer.prefix, IntervalLayer.prefix):
        for name in [name for name in own if name.startswith(prefix)]:
            layer[name.removeprefix(prefix)] = own.pop(name)
    return own, layer


def reduction_for(layer: AnyLayer | None, *parts: Any) -> Reduction:
    """Algorithm 1 of these parts, with a layer over it where there is one."""
    return plain(*parts) if layer is None else LayeredReduction(layer, *parts)


def recalibration_table(
    reduction: Reduction, names: list[str], settled: int, largest: int | None = None
) -> RegretTable | GapTable:
    """What recalibration promises on every group."""
    layer = reduction.layer if isinstance(reduction, LayeredReduction) else None
    if layer is None or isinstance(layer, IntervalLayer):
        raise ConfigurationError(
            "This model does not recalibrate: make it with recalibrate=True, for probabilities."
        )
    return layer.table(names, settled, largest)


def coverage_table(
    reduction: Reduction, names: list[str], settled: int, largest: int | None = None
) -> CoverageTable:
    """How often the labels of every group were in their intervals."""
    layer = reduction.layer if isinstance(reduction, LayeredReduction) else None
    if not isinstance(layer, IntervalLayer):
        raise ConfigurationError(
            "This model has no intervals: make it with intervals=0.9, for labels that are numbers."
        )
    return layer.table(names, settled, largest)
