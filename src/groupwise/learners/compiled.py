"""A compiled learner: a table of axes and two kernels, run without the interpreter."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from groupwise.arrays import Index, Vector
from groupwise.kernels.compiled import Kernel
from groupwise.kernels.layout import Layout
from groupwise.learners.recorders import Recorder
from groupwise.losses import Loss
from groupwise.protocols import Hindsight
from groupwise.store import Arrays, Store


class CompiledBank:
    """One kind of compiled learner, a copy for every group. To be derived from.

    Parameters
    ----------
    columns : which of a group's experts these are.
    parameters : what the kernels need of the configuration, as ``place.parameters``.
    """

    name: ClassVar[str]
    """What its arrays are called in a file."""
    layout: ClassVar[Layout]
    """The table of a group's record (``kernels.layout``)."""
    advise: ClassVar[Kernel]
    """Advice on the one round of a stretch (``kernels.stretch``); changes nothing."""
    learn: ClassVar[Kernel]
    """Advice, then the update, for every round of a stretch."""
    lead: ClassVar[Kernel | None] = None
    """Writes what the always-on group's learners think to ``stretch.leading``, where those of other
    groups lean to it; ``learn`` does so before every update. None where nobody can."""
    leans: bool = False
    """Do some of its learners lean to those of the always-on group?"""
    nodes: int = 1
    """How many of the kernels' learners make one of ``columns``: its chain of dichotomies."""

    def __init__(self, columns: Sequence[int], parameters: ArrayLike) -> None:
        self.columns = list(columns)
        self.parameters = np.ascontiguousarray(parameters, dtype=np.float64).ravel()
        self.store = self.fresh()

    def kernels(self) -> tuple[Kernel, Kernel]:
        """For advice and for learning: those that this configuration needs."""
        return self.advise, self.learn

    @property
    def size(self) -> int:
        """How many learners the kernels see in a group."""
        return len(self.columns) * self.nodes

    def fresh(self) -> Store:
        """Room for learners that have seen nothing."""
        return Store(self.layout, self.size, 0, self.parameters, self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.store.kept_by(self)

    def work_size(self, width: int) -> int:
        """How many numbers the kernels work with, in ``stretch.work``, for groups so wide."""
        return width

    def recorder(self, loss: Loss) -> Recorder | None:
        """What keeps the hindsight of this kind's own class; None where it has none."""
        return None

    def restart(self) -> None:
        """Forget what was learned, not what was recorded."""
        self.store = self.fresh()

    def upkeep(self, group: int) -> None:
        """What is rarely needed; called where a kernel calls ``place.upkeep``."""

    def begun(self, groups: Index) -> None:
        """Some groups are new: their records hold the first values."""

    def opened(self, groups: Index, first: int) -> None:
        """Some groups have new columns, from ``first`` on, which are 0."""

    def completed(self, arrays: Arrays, counts: Index) -> Arrays:
        """The arrays of a file, checked; with what an older version did not write."""
        return arrays

    def bounds(self, group: int) -> Vector | None:
        """See :meth:`groupwise.protocols.Bank.bounds`."""
        return None

    measured = True

    def a_priori(self, group: int, rounds: float, known: Hindsight, clipped: bool) -> float | None:
        """See :meth:`groupwise.protocols.Bank.a_priori`."""
        return None
