"""Group declarations as text: as TOML, and in the one line that the command line takes.

    sex, age:35|50, smoker, region & smoker, bmi>=30, "a name, with a comma"

A column alone is a group per value; numbers after a colon cut it; a comparison is one group; ``&``
takes intersections. A column's name that has one of these signs in it goes in double quotes.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

from groupwise.errors import DataError, GroupError
from groupwise.extras import needed_by
from groupwise.groups.algebra import Group, from_dict
from groupwise.groups.declarations import by, cut, where

Unknown = Callable[[str, str], DataError]

HASHED_WORD = "hashed"
"""After a feature: its values share columns."""
ENCODED_WORD = "encoded"
"""After a feature: its values stand for their mean label."""
DATE_WORD = "date"
"""After a feature: it is one through its parts."""
_PIECE = re.compile(r'"(?:[^"]|"")*"|[^",&]+|[,&]|"')
_COMPARISON = re.compile(r"(.+?)\s*(==|!=|<=|>=|=|<|>)\s*(.+)", re.DOTALL)


def dumps(declarations: Iterable[Group]) -> str:
    """Write declarations as TOML text, one ``[[groups]]`` table each.

    >>> from groupwise.groups import by
    >>> print(dumps([by("sex")]), end="")
    [[groups]]
    by = "sex"
    """
    tables = [
        [f"{key} = {_inline(value)}\n" for key, value in declaration.to_dict().items()]
        for declaration in declarations
    ]
    return "\n".join("".join(["[[groups]]\n", *lines]) for lines in tables) or "groups = []\n"


def _inline(value: Any) -> str:
    """Write a value on one line, nested declarations as inline tables."""
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_inline(one)}" for key, one in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(_inline(one) for one in value) + "]"
    with needed_by("Writing group declarations"):
        import tomli_w

    return tomli_w.dumps({"value": value}).removeprefix("value = ").rstrip("\n")


def loads(text: str) -> list[Group]:
    """Read declarations from TOML text with ``[[groups]]`` tables.

    >>> loads('''
    ... [[groups]]
    ... cut = "age"
    ... edges = [35, 50]
    ... ''')
    [Cut(column='age', edges=(35.0, 50.0), labels=None, closed='right')]
    """
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise GroupError(f"The group declarations are not valid TOML: {error}.") from None
    for key in document:
        if key != "groups":
            raise GroupError(f"Unknown key {key!r} in the group declarations. Use [[groups]].")
    tables = document.get("groups")
    if not isinstance(tables, list):
        raise GroupError("The key 'groups' is missing or no list. Write [[groups]] tables.")
    return [from_dict(table) for table in tables]


def parse_groups(text: str, columns: Sequence[str], unknown: Unknown) -> list[Group]:
    """The declarations in a line of text.

    Parameters
    ----------
    text : as the command line takes it.
    columns : the names of the columns there are.
    unknown : gives the error for a column that is not among them; it is told what it was meant for.

    >>> parse_groups("sex, age:35|50", ["sex", "age"], lambda name, what: DataError(name))
    [By(column='sex'), Cut(column='age', edges=(35.0, 50.0), labels=None, closed='right')]
    """
    return [
        reduce(and_, [_group(term, columns, unknown) for term in _split(item, "&")])
        for item in _split(_pieces(text), ",")
    ]


def parse_features(
    text: str, columns: Sequence[str], unknown: Unknown
) -> dict[str, tuple[float, float] | str | None]:
    """Names, with a range such as ``age:18|64`` where it is not to be looked up, or ``:hashed``.

    >>> parse_features("age:18|64, sex", ["sex", "age"], lambda name, what: DataError(name))
    {'age': (18.0, 64.0), 'sex': None}
    """
    found: dict[str, tuple[float, float] | str | None] = {}
    for item in _split(_pieces(text), ","):
        name, rest = _name(item, columns)
        if name not in columns:
            raise unknown(name, "for a feature")
        said = rest.removeprefix(":").strip()
        if said in (HASHED_WORD, ENCODED_WORD, DATE_WORD):
            found[name] = said
            continue
        bounds = _numbers(rest, name) if rest else None
        if bounds is not None and len(bounds) != 2:
            raise DataError(f"The range of {name!r} has two ends: {name}:low|high.")
        found[name] = None if bounds is None else (bounds[0], bounds[1])
    return found


def parse_past(
    text: str, columns: Sequence[str], unknown: Unknown
) -> tuple[list[str], list[list[str]]]:
    """Columns that tell streams apart, and after a colon levels, each of one or more columns.

    >>> parse_past("a: b, b & c", ["a", "b", "c"], lambda name, what: DataError(name))
    (['a'], [['b'], ['b', 'c']])
    """
    pieces = _pieces(text)
    before: list[str] = []
    while pieces and (
        ":" not in pieces[0] or pieces[0].startswith('"') or pieces[0].strip() in columns
    ):
        before.append(pieces.pop(0))
    after: list[str] = []
    if pieces:
        last, _, first = pieces[0].partition(":")
        before += [last] if last.strip() else []
        after = [first, *pieces[1:]] if first.strip() else pieces[1:]
    of = [_name(item, columns)[0] for item in _split(before, "&")] if before else []
    levels = list(_split(after, ",")) if after else []
    by = [[_name(item, columns)[0] for item in _split(level, "&")] for level in levels]
    for name in (*of, *(one for level in by for one in level)):
        if name not in columns:
            raise unknown(name, "for the past")
    return of, by


def parse_names(text: str) -> list[str]:
    """Names with commas between them.

    >>> parse_names('red, 10:30, "green, or blue"')
    ['red', '10:30', 'green, or blue']
    """
    return ["".join(_name(item, ())) for item in _split(_pieces(text), ",")]


def _pieces(text: str) -> list[str]:
    pieces = _PIECE.findall(text)
    if '"' in pieces:
        raise DataError(f"A double quote is not closed in {text!r}.")
    return [piece for piece in pieces if piece.strip()]


def _split(pieces: list[str], sign: str) -> Iterator[list[str]]:
    part: list[str] = []
    for piece in [*pieces, sign]:
        if piece != sign:
            part.append(piece)
        elif part:
            yield part
            part = []
        else:
            raise DataError(f"Nothing stands before a {sign!r} or at the end. Name a column there.")


def _name(pieces: list[str], columns: Sequence[str]) -> tuple[str, str]:
    """The column at the start of a term, and what comes after it."""
    first, rest = pieces[0].strip(), "".join(pieces[1:]).strip()
    if first.startswith('"'):
        return first[1:-1].replace('""', '"'), rest
    whole = "".join(pieces).strip()
    if whole in columns or ":" not in whole:
        return whole, ""
    name, _, after = whole.rpartition(":")
    return name.strip(), f":{after}"


def _group(pieces: list[str], columns: Sequence[str], unknown: Unknown) -> Group:
    name, rest = _name(pieces, columns)
    if name in columns and not rest:
        return by(name)
    if name in columns and rest.startswith(":"):
        return cut(name, _numbers(rest, name))
    comparison = _COMPARISON.fullmatch(f"{name}{rest}")
    if comparison and comparison[1].strip() in columns:
        name, operator, value = (part.strip() for part in comparison.groups())
        if operator in ("<", "<=", ">", ">="):
            return where(name, operator, _number(value, name))
        return where(name, "!=" if operator == "!=" else "==", value)
    raise unknown(name, "for a group")


def _numbers(text: str, name: str) -> list[float]:
    return [_number(part, name) for part in text.removeprefix(":").split("|")]


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise GroupError(
            f"{text!r} after {name!r} is no number. Write {name}:35|50 to cut it."
        ) from None
