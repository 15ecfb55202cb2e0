"""What a run is asked for, on the command line and in a TOML file."""

import difflib
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from groupwise.class_names import ClassName
from groupwise.errors import ConfigurationError, FeatureError, GroupError
from groupwise.features.past import Past
from groupwise.files.following import makers
from groupwise.files.text import listed, quoted, shown
from groupwise.groups import Group, from_dict
from groupwise.groups.text import (
    DATE_WORD,
    ENCODED_WORD,
    HASHED_WORD,
    Unknown,
    parse_features,
    parse_groups,
    parse_names,
    parse_past,
)
from groupwise.groups.values import value_name

LEVELS_WORD = "levels"
"""In the table of features: text, one 0/1 feature for each level."""
NUMBER, PROBABILITY, CLASSES = TASKS = ("number", "probability", "classes")
"""What the label may be."""
PAPER = "paper"
"""The preset that is Algorithm 1 as published."""
ERROR, INDICATOR, DROP = MISSING_VALUES = ("error", "indicator", "drop")
"""What a missing value may be: an error, a 0 with an indicator, or why a row is left out."""
NONE_WORD, ALL_WORD = "none", "all"
"""Of the past: nothing, or that of the whole file."""


@dataclass(frozen=True)
class Request:
    """What was asked for; None where it is to be looked up or proposed."""

    target: str | None = None
    task: str | None = None
    classes: tuple[ClassName, ...] | None = None
    positive: str | None = None
    range: tuple[float, float] | None = None
    order: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    experts: tuple[str, ...] = ()
    preset: str | None = None
    learner: str | None = None
    aggregator: str | None = None
    intersections: int | None = None
    interval: float | None = None
    """The share of labels that intervals are to cover."""
    windows: bool | None = None
    """Is regret to be small on recent stretches too?"""
    penalty: float | None = None
    bound: float | None = None
    indicators: bool | None = None
    intercept: bool = True
    features: Mapping[str, Any] | None = None
    groups: Sequence[Group] | None = None
    past: Sequence[Mapping[str, Any]] | None = None
    """The parameters of each part of the past; the label is the target."""
    hinges: bool | None = None
    missing: str | None = None
    skip_bad: bool = False
    """Asked for on the command line alone."""
    text: Mapping[str, str] = field(default_factory=dict)
    """Groups and features as the command line has them, to be read when the columns are known."""

    def with_options(self, **given: Any) -> "Request":
        """The same, with what the command line says instead where it says something."""
        said = {key: value for key, value in given.items() if value is not None}
        texts = ("groups", "features", "past")
        text: dict[str, str] = {key: said.pop(key) for key in texts if key in said}
        return replace(self, text=text, **said)

    def preset_read(self) -> "Request":
        """The same, with what a preset says where nothing else was said."""
        if self.preset is None:
            return self
        said = {"learner": "ridge", "penalty": 1.0, "aggregator": "adanormalhedge"}
        said |= {"hinges": False, "past": ()}
        asked = {key for key in said if getattr(self, key) is not None} | set(self.text)
        if self.learner not in (None, "ridge"):
            asked.add("penalty")
        missing: Any = {key: value for key, value in said.items() if key not in asked}
        return replace(self, intercept=False, **missing)

    def read(self, columns: Sequence[str], unknown: Unknown) -> "Request":
        """The same, groups and features on the command line read as ``parse_groups`` has it."""
        parsers: dict[str, Any] = {
            "groups": parse_groups,
            "features": parse_features,
            "past": _past_from,
        }
        found = {key: parsers[key](text, columns, unknown) for key, text in self.text.items()}
        return replace(self, **found)


def request_from(config: Path | None, **options: Any) -> Request:
    """What the command line and the file together ask for; the command line comes first."""
    options["range"] = as_range(options.get("range"))
    for key in ("drop", "classes"):
        if options.get(key) is not None:
            options[key] = tuple(parse_names(options[key]))
    for key in ("experts", "order"):
        given = options.get(key) or ()
        options[key] = ((given,) if isinstance(given, str) else tuple(given)) or None
    request = read_config(config).with_options(**options)
    if request.task not in (None, *TASKS):
        raise ConfigurationError(f"There is no task {quoted(request.task)}: {', '.join(TASKS)}.")
    if request.missing not in (None, *MISSING_VALUES):
        raise ConfigurationError(
            f"--missing {shown(request.missing)} is none of {', '.join(MISSING_VALUES)}."
        )
    if request.preset not in (None, PAPER):
        raise ConfigurationError(f"There is no preset {quoted(request.preset)}: {PAPER}.")
    if request.intersections not in (None, 1, 2) or isinstance(request.intersections, bool):
        raise ConfigurationError(
            f"intersections is {request.intersections!r}. Give 2 for every two groups, or 1."
        )
    if request.interval is not None and not 0.0 < request.interval < 1.0:
        raise ConfigurationError(
            f"An interval cannot cover a share of {request.interval:g}: give one between 0 and 1, "
            "such as 0.9."
        )
    return request


def read_config(path: Path | None) -> Request:
    """The request that a TOML file holds."""
    if path is None:
        return Request()
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"Cannot read {path}: {error.strerror or error}.") from None
    return request_of(content, str(path))


def request_of(content: bytes, name: str) -> Request:
    """The request that the content of a TOML file holds; ``name`` is for messages."""
    try:
        return _request(tomllib.loads(content.decode()))
    except (ConfigurationError, GroupError, FeatureError) as error:
        raise ConfigurationError(f"{name}: {error}") from None
    except (ValueError, OverflowError) as error:  # what is no TOML, no text, or no number
        raise ConfigurationError(f"{name}: this is not valid TOML: {error}.") from None
    except RecursionError:
        raise ConfigurationError(f"{name}: this is nested too deeply.") from None


def _request(found: dict[str, Any]) -> Request:
    known = [one.name for one in fields(Request) if one.name not in ("text", "skip_bad")]
    unknown = [key for key in found if key not in known]
    if unknown:
        close = difflib.get_close_matches(unknown[0], known, 1)
        guess = f" Did you mean {quoted(close[0])}?" if close else ""
        every = listed(known, len(known))
        raise ConfigurationError(f"unknown key {quoted(unknown[0])}.{guess} Known are {every}.")
    for key in ("target", "task", "preset", "learner", "aggregator", "missing"):
        if key in found and not isinstance(found[key], str):
            raise ConfigurationError(f"{key} holds {found[key]!r}. Give text.")
    for key in ("penalty", "bound", "interval"):
        if key in found and not _is_number(found[key]):
            raise ConfigurationError(f"{key} holds {shown(repr(found[key]))}. Give a number.")
    for key in ("indicators", "intercept", "hinges", "windows"):
        if key in found and not isinstance(found[key], bool):
            raise ConfigurationError(f"{key} is true or false.")
    readers: dict[str, Any] = {
        "classes": _classes,
        "positive": _positive,
        "range": _pair,
        "order": _order,
        "drop": _texts,
        "experts": _texts,
        "features": _features,
        "groups": _groups,
        "past": _past,
    }
    return Request(
        **{key: readers[key](one, key) if key in readers else one for key, one in found.items()}
    )


def _is_number(given: Any) -> bool:
    return isinstance(given, (int, float)) and not isinstance(given, bool)


def _classes(given: Any, key: str) -> tuple[ClassName, ...]:
    if not isinstance(given, list) or not all(isinstance(x, (str, int, float)) for x in given):
        raise ConfigurationError(f"{key} holds {shown(repr(given))}. Give texts or numbers.")
    return tuple(given)


def _positive(given: Any, key: str) -> str:
    return value_name(_classes([given], key)[0], key)


def _order(given: Any, key: str) -> tuple[str, ...]:
    """A column, or several."""
    if isinstance(given, str):
        return (given,)
    return tuple(_texts(given, key))


def _groups(given: Any, key: str) -> list[Group]:
    if not isinstance(given, list):
        raise ConfigurationError(f"{key} is no list. Write [[groups]] tables.")
    return [from_dict(table) for table in given]


def _features(given: Any, key: str) -> dict[str, tuple[float, float] | str | None]:
    if isinstance(given, list):
        return dict.fromkeys(_texts(given, key))
    if not isinstance(given, dict):
        raise ConfigurationError(f"{key} is a list of names or a table of ranges.")
    words = (LEVELS_WORD, HASHED_WORD, ENCODED_WORD, DATE_WORD)
    return {
        name: value if isinstance(value, dict) or value in words else _pair(value, f"{key}.{name}")
        for name, value in given.items()
    }


def _past(given: Any, key: str) -> list[dict[str, Any]]:
    if not isinstance(given, list) or not all(isinstance(one, dict) for one in given):
        raise ConfigurationError(f"{key} is no list. Write [[{key}]] tables.")
    known = [one.name for one in fields(Past) if one.name != "label"]
    for one in given:
        unknown = [name for name in one if name not in known]
        if unknown:
            raise ConfigurationError(
                f"unknown key {quoted(unknown[0])} in {key}. Known are {listed(known)}."
            )
        Past("label", **one)
    return given


def _past_from(text: str, columns: Sequence[str], unknown: Unknown) -> list[dict[str, Any]]:
    """The past as ``--past`` has it."""
    if text.strip() == NONE_WORD and NONE_WORD not in columns:
        return []
    whole = text.strip() == ALL_WORD and ALL_WORD not in columns
    of, by = ([], []) if whole else parse_past(text, columns, unknown)
    return [maker.to_dict() for maker in makers("label", of, by)]


def _texts(given: Any, key: str) -> tuple[str, ...]:
    if not isinstance(given, list) or not all(isinstance(one, str) for one in given):
        raise ConfigurationError(f"{key} is a list of column names.")
    return tuple(given)


def _pair(given: Any, key: str) -> tuple[float, float]:
    numbers = isinstance(given, list) and all(map(_is_number, given))
    words = f'"{LEVELS_WORD}", "{HASHED_WORD}", "{ENCODED_WORD}" or "{DATE_WORD}"'
    if not numbers or len(given) != 2:
        raise ConfigurationError(
            f"{shown(key)} holds {shown(repr(given))}. Give [low, high]"
            + (f", or {words}." if key != "range" else ".")
        )
    return float(given[0]), float(given[1])


def as_range(text: str | None) -> tuple[float, float] | None:
    """The value of ``--range``.

    >>> as_range("0,100")
    (0.0, 100.0)
    """
    if text is None:
        return None
    try:
        low, high = (float(part) for part in text.split(","))
    except ValueError:
        raise ConfigurationError(
            f"--range {shown(text)} is not LOW,HIGH: two numbers with a comma between them."
        ) from None
    return low, high
