"""The contracts that the parts of a round keep to. Read this first.

A round flows row → groups, features → learners → aggregator → ticket → label → ledger. The
reduction (``groupwise.reduction``) talks to learners through a :class:`Bank` only: one kind of
learner, a copy for every group. Three parts can be your own: a :class:`Learner` in plain Python
(one object per group; the library makes the bank), a learner with a bank of its own, compiled or
not (``docs/new_learner.md``), and an :class:`Aggregator`. ``groupwise.checks`` tests whether a part
keeps its contract.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, runtime_checkable

import numpy as np

from groupwise.arrays import Index, Vector
from groupwise.losses import Loss

NOTHING: Vector = np.zeros(0)


class Row(NamedTuple):
    """One individual as numbers: features by position in ``names``, those left out are 0."""

    indices: Index
    values: Vector
    names: Sequence[str]
    new: tuple[Any, ...] = ()
    """The features that this row is the first to have; their names come last in ``names``."""
    logged: Vector = NOTHING
    """What other models predict for it, scaled; not features."""

    def without_zeros(self) -> "Row":
        """The same row, zeros left out."""
        kept = self.values != 0.0
        if kept.all():
            return self
        return self._replace(indices=self.indices[kept], values=self.values[kept])

    def dense(self) -> Vector:
        """All features seen so far, zeros included."""
        x = np.zeros(len(self.names))
        x[self.indices] = self.values
        return x

    def mapping(self) -> dict[str, float]:
        """The non-zero features by name."""
        cells = zip(self.indices.tolist(), self.values.tolist(), strict=True)
        return {self.names[i]: value for i, value in cells}


class Awake:
    """The groups that a row is in: their numbers, and I_g(t) in (0, 1] for each.

    Both arrays are to be left as they are: compiled code remembers where they lie.
    """

    __slots__ = ("address", "groups", "message", "weights")

    def __init__(self, groups: Index, weights: Vector) -> None:
        self.groups = groups
        self.weights = weights
        self.message: Any = None
        self.address: Any = 0
        """Where compiled code finds both; 0 until it has asked (``kernels.stretch``)."""

    def __iter__(self) -> Iterator[Any]:
        return iter((self.groups, self.weights))

    def __len__(self) -> int:
        return len(self.groups)

    def __reduce__(self) -> tuple[Any, ...]:
        return Awake, (self.groups, self.weights)


class Play(NamedTuple):
    """What was played, and why. Numbers are scaled to [0, 1]; actions are as they are."""

    prediction: Any
    said: Any
    """What each awake expert advised, and the aggregator's weights over them: a row per group, a
    column per learner, and for actions that are vectors a last axis."""

    @property
    def advice(self) -> Any:
        """What each awake expert advised."""
        return self.said[0]

    @property
    def probabilities(self) -> Vector:
        """The aggregator's weights over them."""
        probabilities: Vector = self.said[1]
        return probabilities


def same_play(one: Play, other: Play) -> bool:
    """Are the prediction, the advice and the weights of two plays the same?"""
    mine = one.prediction, one.advice, one.probabilities
    theirs = other.prediction, other.advice, other.probabilities
    return all(map(np.array_equal, mine, theirs))


class Said(NamedTuple):
    """Advice that are actions, on their way to a play."""

    advice: Vector
    probabilities: Vector
    chosen: int = 0
    losses: Vector = NOTHING
    charged: float = 0.0


class Ends(NamedTuple):
    """An interval as it was issued: scaled, cut to the range of then, empty unless low ≤ high."""

    low: float
    high: float


class Layered(NamedTuple):
    """A play that went through a layer over the model (``groupwise.layers``)."""

    prediction: float
    before: Play
    """The play of the model itself."""
    after: Any
    """How the layer mixed what is predicted, None where it does not mix; or the :class:`Ends` of
    the interval around it."""

    @property
    def said(self) -> Any:
        """What the model's experts advised, and the weights over them."""
        return self.before.said

    @property
    def advice(self) -> Any:
        """What each awake expert of the model advised."""
        return self.before.advice

    @property
    def probabilities(self) -> Vector:
        """The aggregator's weights over them."""
        return self.before.probabilities


class Settlement(NamedTuple):
    """What a label said about a round; scaled losses."""

    losses: Vector
    """ℓ_i of the experts' advice."""
    charged: float
    """ℓ̂ of the play, which the aggregator is updated with."""
    realised: float
    """The loss of the prediction itself; differs from ``charged`` where the play is sampled."""


EXACT, BRACKET = "exact", "bracket"


class Hindsight(NamedTuple):
    """The scaled loss of the best of a class on a group, as far as it can be told."""

    best: float
    """Where it is known to lie between two numbers, the lower: regret is at most loss − best."""
    error: float = 0.0
    """How far ``best`` may be from the truth, by rounding."""
    uncertain: bool = False
    """Is that too far for a certificate to be proved?"""
    high: float | None = None
    """The upper of the two; None where there is one number."""
    kind: str = EXACT
    """``EXACT``, or ``BRACKET`` where not all rows were kept."""
    note: str = ""
    """What to know about the class."""
    columns: int = 0
    """How many features the rows have had: on no more rounds, any labels may be fitted."""
    power: float = 0.0
    """Σ w‖x‖² of the rows, where bounds that are known before the first row need it."""


class Setting(NamedTuple):
    """What a bank needs to know of the model that it serves."""

    loss: Loss
    seed: int
    experts: int
    """How many learners a group has in all; with the group's number this names an expert."""
    width: int
    """How many features are declared; 0 where they come with the rows."""
    leading: Sequence[Any] | None = None
    """The learners of the always-on group, to which others may lean; None where it has the same."""


class Bank(ABC):
    """One kind of learner, a copy for every group: the contract between reduction and learners.

    Groups are numbers from 0 on. Advice has a row per awake group, a column per learner of the
    bank, and where actions are vectors a last axis of length ``dimension``. A label is scaled to
    [0, 1] or, for actions, comes as the pair that ``Loss.linear`` makes of it. With three classes
    and more (``groupwise.classes``) each learner is a chain of ``nodes``, the last axis of advice
    is for what they say, and a label is the number of a class. What is not needed need not be
    written: the methods with a body here do what is right for most.
    """

    columns: Sequence[int]
    """Which of a group's experts this bank advises for."""
    dimension: int = 1
    """The length of one advice: 1 for numbers, n for n labels, d for points of a decision set."""
    nodes: int = 1
    """How many dichotomies a learner decides: K − 1 for K ≥ 3 classes, else 1."""
    actions: ClassVar[bool] = False
    """Are advice actions, of which one is played, and not numbers, which may be averaged?"""
    compiled: bool = False
    """Does :meth:`run` do without the interpreter?"""
    sparse: ClassVar[bool] = False
    """Can ``save`` and ``load`` be given the numbers of some groups, and not of the first alone?"""
    comparator: str = "the group's own best learner"
    """What :meth:`hindsight` is the loss of."""
    measured: bool = False
    """Is some of :meth:`a_priori` measured, as nobody declares it?"""
    frees: ClassVar[bool] = False
    """Can groups be given up (:meth:`free`), as windows are when they end?"""

    def reserve(self, groups: Index, features: int) -> None:
        """Make room for these groups and so many features. Changes no advice."""
        return None

    def reserve_as(self, groups: Index, others: Index) -> None:
        """Make room for groups whose rows will be some of those of others."""
        self.reserve(groups, 1)

    @abstractmethod
    def advise(self, number: int, attempt: int, awake: Awake, row: Row) -> Vector:
        """The advice of every awake group. Changes nothing.

        Randomness is a function of (seed, ticket number, expert, attempt): the same call gives the
        same advice, and another attempt draws again.
        """

    @abstractmethod
    def update(self, awake: Awake, row: Row, label: Any) -> None:
        """Every awake group's learners learn from a label; all or, with an error, none."""

    def step(
        self, number: int, attempt: int, awake: Awake, row: Row, label: Any, stands_for: float
    ) -> Vector:
        """The advice as of now, then the update, then hindsight."""
        advice = self.advise(number, attempt, awake, row)
        self.update(awake, row, label)
        self.record(awake, row, label, stands_for)
        return advice

    def lay_out(self, rounds: "Rounds") -> Any:
        """Get the rounds of a stretch ready, while others may yet be at those before them.

        ``run`` finds what is returned in ``rounds.laid_out``.
        """
        return None

    def remembered(self, features: int) -> int:
        """How many numbers ``run`` remembers of every row."""
        return 0

    def run(self, rounds: "Rounds", out: Vector) -> None:
        """``step`` for every round of a stretch of the stream; writes the advice to ``out``.

        Learners do not depend on what is played, so a bank may go through the rounds of each group
        by itself. Several threads may call this at once for the same rounds where ``compiled``.
        """
        for t, number, awake, row, label in rounds:
            out[t] = self.step(number, 0, awake, row, label, 1.0)

    def finish(self, rounds: "Rounds", out: Vector) -> None:
        """Called once when ``run`` is through with a stretch, in however many threads."""
        return None

    def record(self, awake: Awake, row: Row, label: Any, stands_for: float) -> None:
        """Add a label, which stands for so many rounds, to what hindsight needs."""
        return None

    def check(self, label: Any) -> None:
        """Raise LabelError where a label cannot be learned from."""
        return None

    def score(self, advice: Any, probabilities: Vector, label: Any) -> tuple[Vector, float]:
        """Actions only: the scaled losses of advice on a label, and their mean over the draw."""
        raise NotImplementedError

    def rest(self, row: Row) -> Any:
        """Actions only: what to play where no group is awake."""
        raise NotImplementedError

    def hindsight(self, group: int, features: int) -> Hindsight | float | None:
        """The scaled loss of the best of the class on a group; None where it is not known."""
        return None

    def elsewhere(self, group: int, of: int) -> float:
        """What the best of the class for the group ``of`` would have lost on ``group``, scaled."""
        raise NotImplementedError

    def bounds(self, group: int) -> Vector | None:
        """What each learner's regret on a group is at most; None: what it realised is used."""
        return None

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """A learner's regret by its bound of before the first row; None where it has none.

        Given the group's rounds and, if ``measured``, what the bound is in: the size of the rows
        and of the best model, as they were. ``clipped``: advice is held to the range of labels.
        """
        return None

    @abstractmethod
    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""

    def free_learners(self, groups: Index) -> None:
        """Give up what some groups have learned, not what was recorded of them."""
        raise NotImplementedError

    def free(self, groups: Index) -> None:
        """Give up all that is kept of some groups, which then have learned nothing."""
        raise NotImplementedError

    def renumber(self, start: int, old: Index, new: Index) -> None:
        """Groups get other numbers; all others from ``start`` on are given up."""
        raise NotImplementedError

    @abstractmethod
    def save(self, groups: int, features: int) -> dict[str, Any]:
        """The state of the first groups, as arrays by name; an error where it cannot be saved."""

    @abstractmethod
    def load(self, arrays: Mapping[str, Any], groups: int, features: int) -> None:
        """Take over what :meth:`save` gave."""


class Rounds(Protocol):
    """Some consecutive rounds of a stream whose labels come at once."""

    laid_out: "dict[Bank, Any]"
    """What each bank's ``lay_out`` gave."""

    def __iter__(self) -> Iterator[tuple[slice, int, Awake, Row, Any]]:
        """For each round with somebody awake: where its advice goes, its number, and its parts."""
        ...


@runtime_checkable
class Learner(Protocol):
    """A no-regret learner for one group. The object given is a prototype, copied per group.

    Labels and advice are scaled to [0, 1]. With K ≥ 3 classes there are K − 1 objects per group, of
    which the k-th says how likely class k is where it is k or a later one, and learns from such
    rounds alone, with the label 1 where it is k, else 0. A learner may also set these attributes:

    - ``takes_weights = False``: fractional groups are refused.
    - ``randomised = True``: its certificates hold in expectation. It must not draw by itself:
      ``draw(key)``, if it is defined, is called before ``advise`` with the four numbers (seed,
      ticket number, expert, attempt) that name its randomness for this round.
    """

    def advise(self, row: Row, weight: float) -> float:
        """A prediction for the row, which weighs ``weight`` in this group. Changes nothing."""
        ...

    def update(self, row: Row, label: float, weight: float) -> None:
        """Learn from the row's label."""
        ...


@runtime_checkable
class Banked(Protocol):
    """A learner that brings a bank of its own: a configuration, with all state in the bank."""

    @classmethod
    def banks(
        cls, learners: Sequence[Any], columns: Sequence[int], setting: Setting
    ) -> Sequence[Bank]:
        """The banks of these learners, all of this kind, which are the experts ``columns``."""
        ...


@runtime_checkable
class Aggregator(Protocol):
    """A sleeping-experts algorithm, given by its potential.

    Expert i has cumulative regret R_i = Σ I_i(ℓ̂ − ℓ_i) and C_i = Σ |I_i(ℓ̂ − ℓ_i)|, in scaled
    losses; its weight in a round is p_i ∝ q_i I_i exp(log_weights(R_i, C_i)), q the prior. It may
    also have ``before(rounds, prior, loss)``: what each R_i can be at most in so many rounds, by
    what is known before the first; without it there is no ``a_priori``.
    """

    def log_weights(self, regret: Vector, absolute: Vector, loss: Loss) -> Vector:
        """The logarithm of each expert's weight before prior and membership."""
        ...

    def bound(self, regret: Vector, absolute: Vector, prior: Vector, loss: Loss) -> Vector:
        """What each R_i can be at most, now; all experts seen so far are given."""
        ...

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """The plays ("mean", "sample", "substitution") sound for this loss, the preferred first.

        Raises ConfigurationError, naming the alternative, where the loss has no guarantee.
        """
        ...


@runtime_checkable
class Stateful(Protocol):
    """A sleeping-experts algorithm that keeps more of an expert than R_i and C_i.

    It is one of groupwise's own: its rounds are compiled.
    """

    kernel: ClassVar[str]
    """What ``groupwise.kernels.rounds`` calls it."""
    records: ClassVar[Any]
    """The layout (``groupwise.kernels.layout``) of what it keeps of a group's experts."""
    common: ClassVar[tuple[str, ...]]
    """The names of the numbers that it keeps of all experts together."""

    def bound_of(self, records: Any, common: Vector, mass: Vector) -> Vector:
        """What each R_i can be at most, now, from the records and prior masses of all experts."""
        ...

    def plays(self, loss: Loss) -> tuple[str, ...]:
        """As for ``Aggregator``."""
        ...


AnyAggregator = Aggregator | Stateful


class Oracle(Protocol):
    """An offline optimiser that ``learners.FTPL`` calls: the best action for accumulated costs.

    It may also have ``diameter`` (D = max ‖a − a'‖₁; else d is taken), ``integral`` (True where
    actions are 0/1 vectors), ``any_sign`` (False where costs must be at least 0) and ``exact``
    (False for a heuristic, whose certificates are estimates).
    """

    dimension: int
    """d, the length of actions and cost vectors."""

    def minimise(self, costs: Vector) -> Vector:
        """argmin over the actions a in [0, 1]^d of ⟨a, costs⟩."""
        ...


class PolicyOracle(Protocol):
    """An ERM oracle, which ``learners.ContextualFTPL`` calls: the best policy for given costs.

    It may also have ``exact``, as above, ``independent`` (True where the best policy for several
    labels is the best for each) and ``least`` (the best policy's cost itself).
    """

    def minimise(self, contexts: Vector, costs: Vector) -> Callable[[Vector], Any]:
        """argmin over policies f of Σ_x ⟨f(x), costs_x⟩; a policy maps a context to an action.

        ``costs`` has an entry per context, or a row with an entry per label.
        """
        ...


class Engine(Protocol):
    """Where the tasks of a segmented replay run (``groupwise.segments``).

    A task is a function of a module with plain arguments, which leaves them as they are.
    """

    workers: int
    """How many tasks run at a time."""

    def put(self, value: Any) -> Any:
        """A handle to a value that several tasks need."""
        ...

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """A handle to what the function gives; arguments may be handles, and are awaited."""
        ...

    def get(self, handle: Any) -> Any:
        """The value, once it is there; or the error that it came to."""
        ...
