"""Rows of a file that are not learned from, and why."""

from dataclasses import dataclass, field

from groupwise.files.source import Source
from groupwise.files.text import rows_in

NAMED = 5
"""So many bad rows are named one by one."""


@dataclass
class Aside:
    """Rows that are not learned from: how many for which reason, and which are bad.

    ``skip`` says whether bad rows are skipped; without it they are an error.
    """

    source: Source
    skip: bool = False
    bad: dict[int, str] = field(default_factory=dict)
    dropped: int = 0
    unlabelled: int = 0

    def add(self, number: int, reason: str) -> None:
        """A row that is bad."""
        self.bad.setdefault(int(number), reason)

    @property
    def told(self) -> list[str]:
        """What was set aside, in sentences."""
        said = []
        for number, reason in (self.source.ragged or {}).items():
            self.add(number, reason)
        if self.unlabelled:
            has = "has" if self.unlabelled == 1 else "have"
            said.append(f"{rows_in(self.unlabelled)} {has} no label and taught nothing.")
        if self.dropped:
            said.append(
                f"{rows_in(self.dropped)} {_was(self.dropped)} left out: a value is missing "
                "(--missing indicator keeps such rows)."
            )
        for number, reason in sorted(self.bad.items())[:NAMED]:
            said.append(f"{self.source.located(number)} was skipped: {reason}")
        if len(self.bad) > NAMED:
            last = ", ".join(str(number) for number in sorted(self.bad)[NAMED : NAMED + 20])
            more = len(self.bad) - NAMED
            said.append(
                f"{rows_in(more)} {_was(more)} skipped besides: {last}{', …' * (more > 20)}."
            )
        return said


def _was(count: int) -> str:
    return "was" if count == 1 else "were"
