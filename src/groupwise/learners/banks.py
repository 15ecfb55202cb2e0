"""From the learners of a configuration to the banks that the reduction talks to."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.learners.compiled import CompiledBank, Crew
from groupwise.learners.wrapped import WrappedBank
from groupwise.losses import Loss
from groupwise.protocols import Bank, Banked, Setting


def banks_of(
    learners: Sequence[Any],
    loss: Loss,
    seed: int,
    width: int,
    intercept: bool = False,
    always_on: bool = False,
) -> list[Bank]:
    """The banks of some learners: compiled ones together in a crew, objects in one of theirs."""
    kinds: dict[Any, list[int]] = {}
    experts = [getattr(x, "experts", 1) if isinstance(x, Banked) else 1 for x in learners]
    for learner, column in zip(learners, np.cumsum([0, *experts]).tolist(), strict=False):
        kinds.setdefault(type(learner) if isinstance(learner, Banked) else None, []).append(column)
    setting = Setting(loss, seed, sum(experts), width)
    whose = [
        learner for learner, count in zip(learners, experts, strict=True) for _ in range(count)
    ]
    made: list[Any] = []
    for kind, columns in kinds.items():
        some = [whose[k] for k in columns]
        if kind is None:
            made.append(WrappedBank(some, columns, setting))
        else:
            made.extend(kind.banks(some, columns, setting))
    for bank in made:
        if bank.nodes != loss.nodes:
            raise ConfigurationError(
                f"{type(whose[bank.columns[0]]).__name__} cannot tell {loss.nodes + 1} classes "
                "apart: use learners.Logistic(), or a learner of your own in plain Python."
            )
    actions = {bank.actions for bank in made if not isinstance(bank, CompiledBank)}
    crew = [bank for bank in made if isinstance(bank, CompiledBank)]
    if True in actions:
        lengths = {bank.dimension for bank in made if not isinstance(bank, CompiledBank)}
        if crew or False in actions:
            raise ConfigurationError(
                "FTPL and ContextualFTPL advise actions, other learners advise numbers: "
                "they cannot serve in one model."
            )
        if len(lengths) > 1:
            raise ConfigurationError(
                f"The learners' actions have {sorted(lengths)} coordinates: give learners of "
                "the same decision set."
            )
        return made
    return [
        Crew(crew, loss, intercept, always_on),
        *(bank for bank in made if not isinstance(bank, CompiledBank)),
    ]
