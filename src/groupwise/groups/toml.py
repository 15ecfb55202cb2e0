"""Group declarations as TOML text, and back."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import GroupError
from ..extras import needed_by
from .base import Group
from .declarations import by, cut, pairs, weight, where

_KINDS = ("by", "cut", "where", "weight", "and", "or", "not", "pairs")
_REQUIRED = {"cut": ("edges",), "where": ("op", "value")}
_OPTIONAL = {"cut": ("labels", "closed")}


def dumps(declarations: Iterable[Group]) -> str:
    """Write declarations as TOML text, one `[[groups]]` table each.

    >>> from groupwise.groups import by
    >>> print(dumps([by("sex")]), end="")
    [[groups]]
    by = "sex"
    """
    tables = []
    for declaration in declarations:
        content = declaration.to_dict()
        lines = [f"{key} = {_inline(value)}" for key, value in content.items()]
        tables.append("\n".join(("[[groups]]", *lines, "")))
    return "\n".join(tables) if tables else "groups = []\n"


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
    """Read declarations from TOML text with `[[groups]]` tables.

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


def from_dict(table: Mapping[str, Any]) -> Group:
    """Read one declaration from plain values.

    >>> from_dict({"where": "bmi", "op": ">=", "value": 30}).names
    ('bmi >= 30',)
    """
    if not isinstance(table, Mapping):
        raise GroupError(f"{table!r} is no group declaration. Write a table such as by = 'sex'.")
    kinds = [kind for kind in _KINDS if kind in table]
    if len(kinds) != 1:
        listed = ", ".join(repr(key) for key in table)
        raise GroupError(
            f"A group declaration with the keys {listed or 'none'} has {len(kinds)} kinds. "
            f"Use exactly one of {', '.join(_KINDS)}."
        )
    kind = kinds[0]
    required, optional = _REQUIRED.get(kind, ()), _OPTIONAL.get(kind, ())
    for key in table:
        if key not in (kind, *required, *optional):
            known = ", ".join((*required, *optional)) or "no other key"
            raise GroupError(f"Unknown key {key!r} next to {kind!r}. Known there: {known}.")
    for key in required:
        if key not in table:
            raise GroupError(f"The key {key!r} is missing next to {kind!r}.")
    return _build(kind, table)


def _build(kind: str, table: Mapping[str, Any]) -> Group:
    content = table[kind]
    if kind == "by":
        return by(content)
    if kind == "weight":
        return weight(content)
    if kind == "cut":
        for key in ("edges", "labels"):
            if key in table and not isinstance(table[key], list):
                raise GroupError(f"The key {key!r} holds {table[key]!r}. Give a list.")
        return cut(content, table["edges"], table.get("labels"), table.get("closed", "right"))
    if kind == "where":
        return where(content, table["op"], table["value"])
    if kind == "not":
        return ~from_dict(content)
    if not isinstance(content, list):
        raise GroupError(f"The key {kind!r} holds {content!r}. Give a list of declarations.")
    parts = [from_dict(part) for part in content]
    if kind == "pairs":
        return pairs(*parts)
    if len(parts) < 2:
        raise GroupError(f"The key {kind!r} combines two declarations or more.")
    combined = parts[0]
    for part in parts[1:]:
        combined = combined & part if kind == "and" else combined | part
    return combined
