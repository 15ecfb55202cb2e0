"""The divisions of a crew, and what a file calls their arrays."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from groupwise.arrays import Index
from groupwise.learners.recorders import Recorder
from groupwise.store import Store

if TYPE_CHECKING:
    from groupwise.learners.compiled import CompiledBank


class Division(NamedTuple):
    """The compiled banks of groups that have the same learners, and what records for hindsight."""

    banks: "list[CompiledBank]"
    recorder: Recorder

    def stores(self) -> dict[str, Store]:
        """The stores by the names that they have in a file."""
        return self.recorder.stores | {bank.name: bank.store for bank in self.banks}

    def columns(self) -> list[int]:
        """Which of a group's experts the banks advise for, in the order in which they do."""
        return [column for bank in self.banks for column in bank.columns]

    def parts(self, leads: bool) -> list[tuple[Any, ...]]:
        """For the kernels: store, advise, learn, first column and lead, in their order."""
        sizes = [len(bank.columns) * bank.nodes for bank in self.banks]
        firsts = np.cumsum([0, *sizes]).tolist()[:-1]
        heard = []
        for bank, first in zip(self.banks, firsts, strict=True):
            advise, learn = bank.kernels()
            lead = bank.lead.pointer if leads and bank.lead is not None else 0
            heard.append((bank.store, advise.pointer, learn.pointer, first, lead))
        recorded = zip(self.recorder.stores.values(), self.recorder.kernels, strict=True)
        silent = [(store, 0, kernel.pointer, 0, 0) for store, kernel in recorded]
        return [*heard, *silent] if self.recorder.afterwards else [*silent, *heard]


def roster_prefix(number: int) -> str:
    """What comes before the names of the arrays of one roster, where there are several."""
    return f"roster{number}:"


def named_from(prefix: str, arrays: Mapping[str, Any]) -> dict[str, Any]:
    """The arrays whose names begin so, by what comes after that."""
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


def check_columns(counts: Index, kept: Index, groups: int, features: int) -> None:
    """Numbers that kernels take for features and columns must be ones."""
    if counts.shape != (groups,) or counts.dtype != np.int64 or kept.dtype != np.int64:
        raise ValueError("columns are not one count per group")
    if (counts < 0).any() or (counts > features).any() or kept.shape != (counts.sum(),):
        raise ValueError("columns do not fit their counts")
    pairs = np.repeat(np.arange(groups), counts) * features + kept
    if (kept < 0).any() or (kept >= features).any() or np.unique(pairs).size < pairs.size:
        raise ValueError("columns are not different features")
