"""Classes that have names: what is shown of two, and Algorithm 1 for three and more."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.class_names import loss_of_class
from groupwise.errors import ConfigurationError
from groupwise.kernels import classes, rounds
from groupwise.kernels.stretch import addressed
from groupwise.losses import Loss
from groupwise.protocols import AnyAggregator, Awake, Play, Row, Said, Settlement
from groupwise.reduction import NAN, Reduction

HAPPENED = 1.0
"""The label of the class that came."""


class ClassReduction(Reduction):
    """Algorithm 1 for three classes and more: nested dichotomies, mixed as vectors, once.

    An expert is a chain of K − 1 binary learners over the declared classes, in their order. Node k
    says π_k, the probability of class k where it is k or a later one, and learns from the rounds
    that reach it, y ≥ k, whether y = k. So its probabilities are

        a[c] = π_c Π_{j<c} (1 − π_j),    a[K − 1] = Π_j (1 − π_j),

    log loss adds up along the chain, −ln a[y] being that of the nodes that y has reached, and so do
    the regrets of its learners. The vectors of all awake experts are mixed by Specialists: the play
    is Σ p_i a_i and is charged −ln Σ p_i a_i[y].

    Of a label the aggregator needs to know no more than what every expert said of the class that
    came. With a_i[y] for advice and 1 for a label, a round is settled as that of two classes.

    Guarantee
    ---------
    The regret on a group to the best chain of models in hindsight is at most the sum of the
    learners' on the nodes plus ln(1/q).

    References
    ----------
    Frank and Kramer, "Ensembles of nested dichotomies for multi-class problems", ICML 2004.
    """

    def __init__(
        self, learners: Sequence[Any], aggregator: AnyAggregator, loss: Loss, *settings: Any
    ) -> None:
        super().__init__(learners, aggregator, loss, *settings)
        assert loss.classes is not None
        count = len(loss.classes)
        if self._settings.aggregator != rounds.SPECIALISTS:
            raise ConfigurationError(
                f"{type(aggregator).__name__} cannot mix {count} classes: use "
                "aggregators.Specialists(), or losses.Log() for two."
            )
        self.classes = count
        self.nobody = 1.0 / count
        self._crew = None  # its advice are nodes

    def advice(self, number: int, attempt: int, awake: Awake, row: Row) -> Said:
        """What all awake experts say of every class, with room for the weights over them."""
        nodes = self._nodes(awake)
        for bank in self.banks:
            nodes[:, bank.columns] = bank.advise(number, attempt, awake, row)
        return self._said(nodes)

    def updated(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Said:
        """The same as of now, and then the learners are updated; all of them or, on error, none."""
        nodes = self._nodes(awake)
        for bank in reversed(self.banks):  # the compiled ones last: they cannot fail
            nodes[:, bank.columns] = bank.step(number, attempt, awake, row, label, stands_for)
        return self._said(nodes)

    def settle(
        self, number: int, awake: Awake, said: Said, label: Any, late: Play | None = None
    ) -> None:
        """The second half of step (c): with what was said of the class that came."""
        event = np.empty((3, *said.probabilities.shape))
        event[0] = said.advice[:, :, int(label)]
        before = None if late is None else _event(late, label)
        super().settle(number, awake, event, HAPPENED, before)
        issued = self._mixed(said.advice, event[1]) if late is None else late.prediction
        _, _, lost = super().score(before or Play(NAN, event[:2]), HAPPENED)
        row = issued[None, :], np.array([label]), np.array([lost])
        ends, members = np.array([0, len(awake)]), (awake.groups, awake.weights)
        classes.count(self._bins, ends, *members, self.stands_for, *row)

    def score(self, play: Play, label: Any) -> Settlement:
        """The losses of an earlier play on its label. Changes nothing."""
        return super().score(_event(play, label), HAPPENED)

    def loss_of(self, prediction: Any, label: Any) -> float:
        """The loss of one prediction: probabilities by class, or in the order of the classes."""
        assert self.loss.classes is not None
        return loss_of_class(prediction, self.loss.classes, int(label))

    def rest(self, row: Row) -> Play:
        """The play where nobody is awake: all classes alike."""
        shape = 0, self.experts
        none = np.empty((*shape, self.classes)), np.empty(shape)
        return Play(np.full(self.classes, self.nobody), none)

    # Whole stretches.

    def room(self, rows: int, entries: int) -> tuple[Vector, Vector, Vector]:
        """Room for predictions, for the probabilities of all classes, and for nodes."""
        nodes = np.empty((entries, self.experts, self.loss.nodes))
        return np.empty((rows, self.classes)), self._vectors(nodes), nodes

    def read(self, said: Vector, advice: Vector) -> None:
        """The probabilities of all classes, from what the nodes say."""
        classes.spread(said, self.loss.advice_range[0], advice)

    def settle_stream(self, *rows: Any) -> int:
        """The second half of step (c) for many rows: plays, books, and what is shown."""
        indptr, groups, weights, labels, *numbers, shown, expected, realised, said, odds, lost = (
            rows
        )
        event, play = np.empty(odds.shape), np.empty(labels.size)
        classes.chosen(indptr, labels, said, event)
        members = indptr, groups, weights, np.full(labels.size, HAPPENED)
        figures = play, expected, realised, event, odds, lost
        settled = super().settle_stream(*members, *numbers, *figures)
        classes.mixtures(indptr, said, odds, shown)
        if settled == labels.size:
            counted = groups, weights, 1.0, shown, labels, realised
            classes.count(self._bins, indptr, *counted)
        return settled

    # What the steps are made of.

    def _nodes(self, awake: Awake) -> Vector:
        """Room for what the chains of all awake experts say."""
        return np.empty((len(awake.groups), self.experts, self.loss.nodes))

    def _vectors(self, nodes: Vector) -> Vector:
        return np.empty((*nodes.shape[:2], self.classes))

    def _said(self, nodes: Vector) -> Said:
        vectors = self._vectors(nodes)
        self.read(nodes, vectors)
        return Said(vectors, np.empty(nodes.shape[:2]))

    def _played(self, number: int, awake: Awake, said: Said) -> Play:
        """The weights over the awake experts, and the mixture that they make."""
        advice, probabilities = said.advice, said.probabilities
        rounds.follow(self._address, addressed(awake), number, probabilities)
        play = self._mixed(advice, probabilities)
        if not play[0] > 0.0:
            raise self.refusal(advice, awake.groups)
        return Play(play, (advice, probabilities))

    def _mixed(self, advice: Vector, probabilities: Vector) -> Vector:
        """Σ p_i a_i."""
        play = np.empty(self.classes)
        ends = np.array([0, len(advice)])
        classes.mixtures(ends, advice, probabilities, play[None, :])
        return play

    @property
    def _bins(self) -> Any:
        assert self.bins is not None
        return self.bins.address

    def refusal(self, advice: Vector, groups: Index) -> ConfigurationError:
        """The error for advice of groups of which some is not a number."""
        return super().refusal(advice.sum(axis=-1) if advice.ndim > 2 else advice, groups)


def _event(play: Play, label: Any) -> Play:
    """A play as one of two classes: that which came, and all others."""
    came = int(label)
    return Play(
        float(play.prediction[came]), np.array([play.advice[:, :, came], play.probabilities])
    )


def reduction_for(
    learners: Sequence[Any], aggregator: AnyAggregator, loss: Loss, *settings: Any
) -> Reduction:
    """Algorithm 1 as the loss wants it."""
    kind = ClassReduction if loss.nodes > 1 else Reduction
    return kind(learners, aggregator, loss, *settings)


def shown(loss: Loss, indptr: Index, prediction: Vector, advice: Vector, odds: Vector) -> Vector:
    """The predictions of some rows; where classes are named, with a column for each of them.

    Advice and the weights over it are those of row t from ``indptr[t]`` to ``indptr[t + 1]``.
    """
    if loss.classes is None or loss.nodes > 1:
        return prediction
    out = np.empty((prediction.size, 2))
    classes.pairs(indptr, prediction, advice, odds, out)
    return out


def shown_one(loss: Loss, play: Play) -> Any:
    """The prediction of one play, in the label's units."""
    if loss.classes is None or loss.nodes > 1:
        return loss.decode(play.prediction)
    ends = np.array([0, len(play.advice)])
    rows = shown(loss, ends, np.array([play.prediction]), play.advice, play.probabilities)
    return loss.decode(rows[0])
