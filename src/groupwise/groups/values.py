"""How a value is written in a name, and which values count as missing."""

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np

from groupwise.errors import GroupError

# Two equal values of one of these types have the same name, so a name may be remembered by type
# and value. It is not so for every type: equal moments in two time zones print differently.
REMEMBERED_TYPES: tuple[type, ...] = (
    str,
    bool,
    int,
    float,
    np.str_,
    np.bool_,
    np.int64,
    np.int32,
    np.float64,
)

# Known by name, so that pandas is not imported to recognise its missing values.
_MISSING_TYPE_NAMES = frozenset({"NAType", "NaTType"})

# What float() reads, or would cut a part off, though it is no number.
_NO_NUMBERS = (str, bytes, bytearray, np.timedelta64, np.datetime64, np.complexfloating)


def is_missing(value: object) -> bool:
    """Say whether a value stands for "unknown": None, NaN, or the NA and NaT of numpy and pandas.

    >>> is_missing(None), is_missing(float("nan")), is_missing(0), is_missing("")
    (True, True, False, False)
    """
    if value is None or isinstance(value, (str, int)):
        return value is None
    if isinstance(value, (float, np.floating)):
        return bool(value != value)
    if isinstance(value, Decimal):
        return value.is_nan()
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return bool(np.isnat(value))
    return type(value).__name__ in _MISSING_TYPE_NAMES


def value_name(value: object, column: str) -> str:
    """Write a value the way group and feature names write it.

    1, 1.0 and "1" are the same value and have the same name; booleans are ``true`` and ``false``.

    >>> [value_name(value, "x") for value in (1, 1.0, "1", True, 0.5, "north")]
    ['1', '1', '1', 'true', '0.5', 'north']
    """
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if is_number(value) and isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating, Decimal)):
        number = float(value)
        return str(int(value)) if number.is_integer() else repr(number)
    if isinstance(value, np.datetime64):
        # Finer units than microseconds have no Python counterpart and would print as an integer.
        unit = np.datetime_data(value.dtype)[0]
        return str((value.astype("M8[us]") if unit in ("ns", "ps", "fs", "as") else value).item())
    if isinstance(value, datetime.date):
        return str(value)
    raise GroupError(
        f"Column {column!r} holds {value!r} of type {type(value).__name__}, which names no group. "
        "Use text, a number, true/false or a date there."
    )


def is_number(value: object) -> bool:
    """Say whether a value is a number that can be ordered; true and false are not.

    >>> is_number(1.5), is_number(True), is_number("1.5")
    (True, False, False)
    """
    numbers = (int, float, np.integer, np.floating, Decimal)
    return isinstance(value, numbers) and not isinstance(value, (bool, np.timedelta64))


def as_float(value: Any) -> float | None:
    """A number of any kind as a float, infinite where it is too large; None where it is none.

    >>> as_float(Decimal("1.5")), as_float(True), as_float("1.5"), as_float(10**400)
    (1.5, 1.0, None, inf)
    """
    if isinstance(value, _NO_NUMBERS):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf
    except (TypeError, ValueError):
        return None


def comparable(value: Any) -> Any:
    """Give a number a form that compares exactly with Python floats."""
    if isinstance(value, np.integer):
        return int(value)
    return float(value) if isinstance(value, np.floating) else value
