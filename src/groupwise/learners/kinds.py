"""The banks of the learners of a group, one for every kind of learner."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from groupwise.errors import ConfigurationError
from groupwise.learners.compiled import CompiledBank
from groupwise.learners.rosters import experts_of
from groupwise.learners.wrapped import WrappedBank
from groupwise.protocols import Bank, Banked, Setting


def banks_by_kind(
    learners: Sequence[Any], setting: Setting
) -> tuple[list[CompiledBank], list[Bank]]:
    """The compiled banks of some learners, and the others; an error where they do not fit."""
    loss = setting.loss
    kinds: dict[Any, list[int]] = {}
    experts = list(map(experts_of, learners))
    for learner, column in zip(learners, np.cumsum([0, *experts]).tolist(), strict=False):
        kinds.setdefault(type(learner) if isinstance(learner, Banked) else None, []).append(column)
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
    compiled = [bank for bank in made if isinstance(bank, CompiledBank)]
    others = [bank for bank in made if not isinstance(bank, CompiledBank)]
    actions = {bank.actions for bank in others}
    if True in actions:
        if compiled or False in actions:
            raise ConfigurationError(
                "FTPL and ContextualFTPL advise actions, other learners advise numbers: "
                "they cannot serve in one model."
            )
        lengths = {bank.dimension for bank in others}
        if len(lengths) > 1:
            raise ConfigurationError(
                f"The learners' actions have {sorted(lengths)} coordinates: give learners of "
                "the same decision set."
            )
    return compiled, others
