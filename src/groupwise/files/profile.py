"""What one column of a file holds, as a first pass finds it."""

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from groupwise.errors import DataError
from groupwise.files.dates import FORMS
from groupwise.files.text import amount, quoted

Kind = Literal["number", "text", "boolean", "levels"]
"""How a column is read: as numbers, text as it stands, true and false, or names of values, in which
1 and 1.0 are the same and so are True and true."""
KINDS: tuple[Kind, ...] = get_args(Kind)
NO_LABEL = ("NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "null", "NULL")
"""What stands for a missing label among classes: not None, which may be one of them."""
MISSING = (*NO_LABEL, "na", "None", "none", "?", "-", "--", ".")
"""What stands for a missing number, besides an empty cell."""
ABSENT = {"", *(text.lower() for text in MISSING)}
"""The same in small letters, among true and false."""
TRUTH = {"true": True, "false": False}
COUNTED = 20_000
"""Distinct values are counted up to here."""


def is_number(text: str | None, finite: bool = True) -> bool:
    """Is it a number, written out, and a finite one?"""
    try:
        number = float("nan" if text is None or "_" in text or not text.isascii() else text)
    except ValueError:
        return False
    return number - number == 0.0 if finite else number == number


@dataclass
class Profile:
    """What one column holds. Rows are counted from 1.

    ``low`` and ``high`` are in ``low_row`` and ``high_row``; ``infinite`` is the first row that
    holds no finite number, ``text_row`` the first that holds ``text``. ``values`` are the distinct
    values as text, None where there are more than are counted; ``sums`` those of x, x², xy, y, y²
    against the label, where both are numbers (a label of text counts as 1 where it is ``text``).
    ``seen`` is for the label alone: how often each of its values is there, and in which row first;
    None where there are more than could be classes.
    ``bad`` cells of a column of numbers hold none, in rows that are skipped. ``forms`` are the ways
    to write dates in which all its texts are written; ``truth`` says whether all its texts are true
    and false, ``absent`` how many stand for a missing value if they are.
    """

    name: str
    kind: Kind = "number"
    rows: int = 0
    missing: int = 0
    first_missing: int = 0
    low: float = float("inf")
    high: float = float("-inf")
    low_row: int = 0
    high_row: int = 0
    whole: bool = True
    infinite: int = 0
    values: set[str] | None = field(default_factory=set)
    text_row: int = 0
    text: str = ""
    sums: Any = None
    seen: dict[str, tuple[int, int]] | None = field(default_factory=dict)
    forms: tuple[str, ...] = FORMS
    bad: int = 0
    at_least: int = 0
    """So many different numbers there are, which ``values`` does not hold all."""
    base: float | None = None
    """Where the numbers count the rows in file order, what they begin with; None where not."""
    marks: tuple[str, ...] = ()
    """Texts that stand for a missing label."""
    truth: bool = True
    absent: int = 0
    first_absent: int = 0

    @property
    def counts(self) -> bool:
        """Does it number the rows, from 0 or 1?"""
        return self.kind == "number" and self.base is not None and not self.missing

    @property
    def reading(self) -> Kind:
        """How the column is read where it is a feature or a group."""
        return "boolean" if self.kind == "text" and self.truth else self.kind

    def finish(self) -> None:
        """Decide what it holds when all rows were looked at."""
        if self.missing == self.rows:
            self.kind, self.truth, self.values = "text", False, set()
        if self.kind == "number":
            self.values = self.values and {one for one in self.values if is_number(one, False)}
            self.seen = self.seen and {
                k: one for k, one in self.seen.items() if is_number(k, False)
            }
        elif self.truth:
            self.values = {value.strip().lower() for value in self.values or ()} - ABSENT
            self.missing += self.absent
            first = [row for row in (self.first_missing, self.first_absent) if row]
            self.first_missing = min(first, default=0)
            self.text = self.text.strip().lower()
            seen: dict[str, tuple[int, int]] = {}
            for value, (count, row) in (self.seen or {}).items():
                name = value.strip().lower()
                if name not in ABSENT:
                    before, first_row = seen.get(name, (0, row))
                    seen[name] = before + count, min(row, first_row)
            self.seen = seen

    def unmark(self, classes: Collection[object]) -> None:
        """Count texts that stand for a missing label as missing, but for classes."""
        marks = [one for one in sorted(self.values or ()) if one.strip() in NO_LABEL]
        self.marks = tuple(one for one in marks if self.kind == "text" and one not in classes)
        for mark in self.marks:
            count, row = (self.seen or {}).pop(mark, (0, 0))
            self.missing += count
            first = [one for one in (self.first_missing, row) if one]
            self.first_missing = min(first, default=0)
        self.values = self.values and self.values - {*self.marks}

    @property
    def date(self) -> str | None:
        """How its dates are written; None where it holds none, or they could be read two ways."""
        return self.forms[0] if self.dated == 1 else None

    @property
    def dated(self) -> int:
        """In how many ways all its texts can be read as dates; May is May, in short or not."""
        there = self.kind == "text" and self.missing < self.rows
        return len({form.replace("%B", "%b") for form in self.forms}) if there else 0

    @property
    def distinct(self) -> int:
        """How many values there are, as far as they are counted."""
        return COUNTED + 1 if self.values is None else max(len(self.values), self.at_least)

    @property
    def count(self) -> str:
        """How many values there are, in words."""
        return f"over {COUNTED:,}" if self.values is None else amount(self.distinct)

    @property
    def scale(self) -> tuple[float, float] | None:
        """The range that numbers are scaled from; None for text."""
        return None if self.kind == "text" else (self.low, self.high)

    @property
    def correlation(self) -> float:
        """With the label; 0 where it is not known."""
        if self.sums is None:
            return 0.0
        n, x, xx, xy, y, yy = self.sums.tolist()
        spread = (n * xx - x * x) * (n * yy - y * y)
        return float((n * xy - x * y) / spread**0.5) if spread > 0.0 else 0.0

    @property
    def constancy(self) -> str:
        """Says, in a clause, that there is one value, or none."""
        value = next(iter(self.values or ()), None)
        holds = "no value at all" if value is None else f"one value only ({quoted(value)})"
        return f"it holds {holds}"

    @property
    def sameness(self) -> str:
        """Says that the column says nothing."""
        holds = self.constancy.removeprefix("it ")
        return f"Column {quoted(self.name)} {holds}, so nothing can be learned from it."

    @property
    def gaps(self) -> str:
        """Says how many values are missing, and where."""
        count = "a missing value" if self.missing == 1 else f"{self.missing:,} missing values"
        where = "in" if self.missing == 1 else "the first in"
        return f"Column {quoted(self.name)} has {count}, {where} row {self.first_missing}."

    @property
    def infinity(self) -> str:
        """Says where a number is infinite."""
        return f"Column {quoted(self.name)} holds an infinite number in row {self.infinite}."

    def check_numbers(self, what: str) -> None:
        """Refuse a column of text, or with infinite numbers."""
        if self.kind == "text":
            raise DataError(
                f"The {what} column {quoted(self.name)} holds {quoted(self.text)} in row "
                f"{self.text_row}, which is no number."
            )
        if self.infinite:
            raise DataError(self.infinity)

    def check_complete(self, advice: str) -> None:
        """Refuse a column with missing values, with some advice, or infinite ones."""
        if self.missing:
            raise DataError(f"{self.gaps} {advice}")
        if self.infinite:
            raise DataError(self.infinity)
