"""An experiment beyond the paper's tables: what it is asked for, what it claims and what it finds.

``expected.json`` has the figures that every experiment must find, and by how much they may differ.
"""

import json
import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from groupwise.report.figures import Figure
from groupwise.report.tables import Cell, Column, Table


@dataclass(frozen=True)
class Request:
    """``seeds`` and ``rounds`` are the experiment's own where they are None.

    ``say`` is told what its reader has to know before it is run, ``what`` names it in the bar that
    says how far it is; without a name there is none.
    """

    out: Path = field(default_factory=lambda: Path("reproduction"))
    seeds: int | None = None
    rounds: int | None = None
    jobs: int | None = None
    data: str | os.PathLike[str] | None = None
    say: Callable[[str], None] = lambda note: None
    what: str = ""

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
    records: Sequence[dict[str, Any]] = ()
    """What is written as CSV besides, a line each."""

    def claims(self) -> Table:
        """What was claimed, and what was found."""
        marks = {True: Cell("yes", "good"), False: Cell("no", "bad")}
        return Table(
            "Claims",
            tuple(
                Column(title, numeric=False, wraps=title != "Holds")
                for title in ("Claim", "Found", "Holds")
            ),
            tuple(
                (Cell(check.claim), Cell(check.found), marks[bool(check.holds)])
                for check in self.checks
            ),
        )

    def compared(self, wanted: dict[str, Any]) -> "Outcome":
        """The outcome with one claim more: its numbers are the expected ones."""
        tolerance = wanted["tolerance"]
        far = [
            f"{key}: {self.numbers.get(key, math.nan):.4g}, expected {value:.4g}"
            for key, value in wanted["numbers"].items()
            if not abs(self.numbers.get(key, math.nan) - value)
            <= tolerance["absolute"] + tolerance["relative"] * abs(value)
        ]
        found = "; ".join(far[:3]) or f"all {len(wanted['numbers'])} are"
        check = Check("The numbers are those in expected.json", not far, found)
        return replace(self, checks=[*self.checks, check])


@dataclass(frozen=True)
class Study:
    """An experiment: its title, a paragraph on what it shows, and what runs it."""

    title: str
    about: str
    run: Callable[[Request], Outcome]


def expected(name: str) -> dict[str, Any]:
    """What ``expected.json`` says: numbers, and by how much they may differ."""
    text = files("groupwise.paper").joinpath("expected.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)[name]
    return found
