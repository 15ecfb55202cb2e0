"""What a sentence of the paper says, how it was checked, and whether it is so."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.paper.figures import curves_of
from groupwise.paper.tables import Result
from groupwise.report.tables import Cell, Column, Table, number

HOLDS, FAILS, UNCHECKED = "holds", "not as written", "not checked"
MARKS = {HOLDS: "good", FAILS: "bad", UNCHECKED: "faint"}

SUBSTANTIAL = 0.1
"""The least part of the baseline's loss that "substantially" and "significantly" are taken for."""
LINEAR = 0.8
"""The exponent of growth, over the last three quarters, from which on it is called linear."""


@dataclass(frozen=True)
class Statement:
    """``holds`` is None where it cannot be checked here; ``found`` then says why.

    ``numbers`` are those of ``found`` that do not depend on the machine.
    """

    name: str
    section: str
    claim: str
    how: str
    found: str
    holds: bool | None
    numbers: Mapping[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """In words."""
        return UNCHECKED if self.holds is None else HOLDS if self.holds else FAILS

    def record(self) -> dict[str, Any]:
        """For files."""
        named = ("name", "section", "claim", "how", "found", "verdict")
        return {what: getattr(self, what) for what in named}

    def figures(self) -> dict[str, float]:
        """For ``expected.json``: the verdict as 1 or 0 where there is one, and the numbers."""
        verdict = {} if self.holds is None else {"holds": float(self.holds)}
        return {f"{self.name}/{key}": value for key, value in {**verdict, **self.numbers}.items()}


class Judgement(NamedTuple):
    """What was found, and whether the claim is so; None where that cannot be said here."""

    found: str
    holds: bool | None
    numbers: Mapping[str, float] = {}


def stated(section: str, name: str, claim: str, how: str, judgement: Judgement) -> Statement:
    """A claim with what became of it."""
    return Statement(name, section, claim, how, *judgement)


def tables_of(statements: Iterable[Statement]) -> list[Table]:
    """A table for every section, in the order in which they first occur."""
    sections: dict[str, list[Statement]] = {}
    for one in statements:
        sections.setdefault(one.section, []).append(one)
    columns = tuple(
        Column(title, numeric=False, wraps=title != "Verdict")
        for title in ("The paper says", "Checked by", "Found", "Verdict")
    )
    return [
        Table(
            section,
            columns,
            tuple(
                (Cell(one.claim), Cell(one.how), Cell(one.found), _mark(one.verdict))
                for one in some
            ),
        )
        for section, some in sections.items()
    ]


def counted(statements: Sequence[Statement]) -> Table:
    """How many there are of each verdict."""
    columns = (Column("Verdict", numeric=False), Column("Claims"))
    verdicts = [one.verdict for one in statements]
    rows = tuple((_mark(word), Cell(f"{verdicts.count(word)}")) for word in MARKS)
    return Table("Claims of the paper’s prose", columns, rows)


def _mark(verdict: str) -> Cell:
    return Cell(verdict, MARKS[verdict])


class Seen(NamedTuple):
    """A group of a table: the regrets over its rounds, means over the seeds, and its best loss."""

    table: str
    group: str
    rounds: Vector
    baseline: Vector
    ours: Vector
    best: Vector

    @property
    def place(self) -> str:
        """Where it is."""
        return f"{self.group} ({self.table})"

    @property
    def decrease(self) -> float:
        """Our final loss below the baseline's, as a part of the baseline's."""
        gap = float(self.baseline[-1] - self.ours[-1])
        return gap / float(self.baseline[-1] + self.best[-1])

    @property
    def lower_from(self) -> float:
        """The fraction of the group's rounds from which on our regret is the lower one."""
        above = np.flatnonzero(self.ours >= self.baseline)
        if not above.size:
            return 0.0
        last = int(above[-1])
        return float(self.rounds[last] / self.rounds[-1])

    def over_last_half(self, what: Vector) -> float:
        """By how much a curve grows over the last half of the group's rounds."""
        return float(what[-1] - what[self._at(0.5)])

    def exponent(self, what: Vector) -> float:
        """1 where a curve grows linearly over the last three quarters, 0 where like a logarithm.

        Growth from half of the rounds to all of them over that from a quarter to half, as a power
        of 2; whatever was lost at the start has no part in it. −∞ where it does not grow.
        """
        earlier = float(what[self._at(0.5)] - what[self._at(0.25)])
        later = self.over_last_half(what)
        if later <= 0.0:
            return float("-inf")
        return float(np.log2(later / earlier)) if earlier > 0.0 else float("inf")

    def _at(self, fraction: float) -> int:
        return int(np.searchsorted(self.rounds, fraction * self.rounds[-1]))


def seen(result: Result) -> list[Seen]:
    """Every group of a table."""
    title = f"{result.experiment.name.removeprefix('synthetic-')}, {result.order}"
    found = []
    for g, group in enumerate(result.groups):
        rounds, curves = curves_of(result, g)
        best = np.array([run.best_loss[g] for run in result.runs]).mean(axis=0)
        means = {kind: values.mean(axis=0) for kind, values in curves.items()}
        found.append(Seen(title, group, rounds, means["baseline"], means["ours"], best))
    return found


def least(groups: Sequence[Seen], what: Callable[[Seen], float]) -> tuple[float, str]:
    """The least value of something, and where it is."""
    one = min(groups, key=what)
    return what(one), one.place


def most(groups: Sequence[Seen], what: Callable[[Seen], float]) -> tuple[float, str]:
    """The largest value of something, and where it is."""
    one = max(groups, key=what)
    return what(one), one.place


def among(groups: Sequence[Seen], fits: Callable[[Seen], bool], few: int = 3) -> str:
    """How many groups something is true of, and which it is not true of."""
    not_so = [one.place for one in groups if not fits(one)]
    text = f"{len(groups) - len(not_so)} of {len(groups)}"
    if not not_so:
        return text
    more = f" and {len(not_so) - few} more" if len(not_so) > few else ""
    return f"{text}; not {', '.join(not_so[:few])}{more}"


def percent(value: float) -> str:
    """A part of a whole."""
    return f"{number(100.0 * value, 1)} %"
