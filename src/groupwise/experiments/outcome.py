"""What an experiment is asked for, and what it gives."""

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from groupwise.report.figures import Figure
from groupwise.report.tables import Table


@dataclass(frozen=True)
class Plan:
    """``seeds`` and ``rounds`` are the experiment's own where they are None."""

    out: Path = field(default_factory=lambda: Path("reproduction"))
    seeds: int | None = None
    rounds: int | None = None
    jobs: int | None = None
    data: str | os.PathLike[str] | None = None

    @property
    def whole(self) -> bool:
        """Is it the experiment as it is described, so that it can be judged?"""
        return self.seeds is None and self.rounds is None


@dataclass(frozen=True)
class Check:
    """A claim that the experiment puts to the test."""

    claim: str
    holds: bool
    found: str


@dataclass(frozen=True)
class Outcome:
    """Tables and figures, the claims, and the numbers that ``expected.json`` is compared with."""

    tables: Sequence[Table]
    figures: Sequence[Figure]
    checks: Sequence[Check]
    numbers: dict[str, float]
    notes: Sequence[str] = ()
