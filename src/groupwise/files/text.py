"""Text from data, for people to read."""

import shlex
from collections.abc import Collection, Iterable

LONGEST = 200


def shown(text: str, longest: int = LONGEST) -> str:
    """Text on one line, control characters made visible, and not too long.

    >>> shown("two" + chr(10) + "lines")
    'two\\\\nlines'
    """
    visible = "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)
    return visible if len(visible) <= longest else visible[: longest - 1] + "…"


def listed(names: Iterable[str], most: int = 20) -> str:
    """Names in a sentence, the first few of them.

    >>> listed(["age", "sex"])
    "'age', 'sex'"
    """
    every = list(names)
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(map(quoted, every[:most])) + more


def quoted(text: str) -> str:
    """A name or value in a message."""
    return f"'{shown(text, 60)}'"


def rows_in(count: int) -> str:
    """So many rows.

    >>> rows_in(1), rows_in(0), rows_in(40_000)
    ('1 row', '0 rows', '40,000 rows')
    """
    return f"{count:,} row{'s' * (count != 1)}"


def argument(name: str) -> str:
    """A name as a shell takes it.

    >>> argument("age"), argument("column 3")
    ('age', "'column 3'")
    """
    return shlex.quote(shown(name))


def spellings(names: Collection[str]) -> list[tuple[str, str]]:
    """Pairs of names that are the same but for capitals, and spaces and full stops around.

    >>> spellings(["<=50K", ">50K", ">50K.", "no", "No "])
    [('>50K', '>50K.'), ('no', 'No ')]
    """
    known: dict[str, str] = {}
    found = []
    for name in names:
        bare = name.casefold().strip(" \t.")
        if bare in known:
            found.append((known[bare], name))
        known.setdefault(bare, name)
    return found


def amount(value: float) -> str:
    """A figure with at most four digits that matter, thousands set apart.

    >>> amount(63770.4), amount(0.01234), amount(12.0), amount(-3.14159)
    ('63,770', '0.01234', '12', '−3.142')
    """
    if value != value or abs(value) == float("inf"):
        return "–"
    whole = abs(value) < 1e9 and (abs(value) >= 1000 or value == int(value))
    return (f"{value:,.0f}" if whole else f"{value:.4g}").replace("-", "−")
