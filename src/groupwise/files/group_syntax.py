"""Groups and features in one line of text, as the command line takes them.

    sex, age:35|50, smoker, region & smoker, bmi>=30, "a name, with a comma"

A column alone is a group per value; numbers after a colon cut it; a comparison is one group; ``&``
takes intersections. A column's name that has one of these signs in it goes in double quotes.
"""

import re
from collections.abc import Iterator, Sequence

from groupwise.errors import DataError, GroupError
from groupwise.files.scan import unknown_column
from groupwise.files.text import quoted
from groupwise.groups import Group, by, cut, where

_PIECE = re.compile(r'"(?:[^"]|"")*"|[^",&]+|[,&]|"')
_COMPARISON = re.compile(r"(.+?)\s*(==|!=|<=|>=|=|<|>)\s*(.+)", re.DOTALL)


def parse_groups(text: str, columns: Sequence[str], source: str) -> list[Group]:
    """The declarations in a line of text."""
    found = []
    for item in _split(_pieces(text), ","):
        terms = [_group(term, columns, source) for term in _split(item, "&")]
        declaration = terms[0]
        for term in terms[1:]:
            declaration = declaration & term
        found.append(declaration)
    return found


def parse_features(
    text: str, columns: Sequence[str], source: str
) -> dict[str, tuple[float, float] | None]:
    """Names, with a range such as ``age:18|64`` where it is not to be looked up."""
    found: dict[str, tuple[float, float] | None] = {}
    for item in _split(_pieces(text), ","):
        name, rest = _name(item, columns)
        if name not in columns:
            raise unknown_column(name, list(columns), source, "for a feature")
        bounds = _numbers(rest, name) if rest else None
        if bounds is not None and len(bounds) != 2:
            raise DataError(f"The range of {quoted(name)} has two ends: {quoted(name)}:low|high.")
        found[name] = None if bounds is None else (bounds[0], bounds[1])
    return found


def parse_names(text: str) -> list[str]:
    """Names with commas between them."""
    return [_name(item, ())[0] for item in _split(_pieces(text), ",")]


def _pieces(text: str) -> list[str]:
    pieces = _PIECE.findall(text)
    if '"' in pieces:
        raise DataError(f"A double quote is not closed in {quoted(text)}.")
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


def _group(pieces: list[str], columns: Sequence[str], source: str) -> Group:
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
    raise unknown_column(name, list(columns), source, "for a group")


def _numbers(text: str, name: str) -> list[float]:
    return [_number(part, name) for part in text.removeprefix(":").split("|")]


def _number(text: str, name: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise GroupError(
            f"{quoted(text)} after {quoted(name)} is no number. Write {name}:35|50 to cut it."
        ) from None
