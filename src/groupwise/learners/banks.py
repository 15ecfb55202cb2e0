"""From the learners of a configuration to the banks that the reduction talks to."""

from collections.abc import Sequence
from typing import Any

from groupwise.learners.crew import Crew
from groupwise.learners.divided import Divided
from groupwise.learners.kinds import banks_by_kind
from groupwise.learners.rosters import Rosters, experts_of
from groupwise.losses import Loss
from groupwise.protocols import Bank, Setting


def banks_of(
    learners: Sequence[Any] | Rosters,
    loss: Loss,
    seed: int,
    width: int,
    intercept: bool = False,
    always_on: bool = False,
) -> list[Bank]:
    """The banks of some learners: compiled ones together in a crew, objects in one of theirs."""
    if isinstance(learners, Rosters):
        return [Divided(learners, loss, seed, width, intercept, always_on)]
    setting = Setting(loss, seed, sum(map(experts_of, learners)), width)
    compiled, others = banks_by_kind(learners, setting)
    if others and others[0].actions:
        return others
    return [Crew(compiled, loss, intercept, always_on), *others]
