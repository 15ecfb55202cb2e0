"""What groupwise raises. Every message says what is wrong and what to do about it."""

import sys
from collections.abc import Mapping
from numbers import Real
from typing import Any

LONGEST, CUT = 2_000, 900
"""So long may a message be; of a longer one so much at each end is shown."""


class GroupwiseError(Exception):
    """Base of all errors of this library.

    One that knows which row of a stream, frame or array is to blame carries its number, from 0, as
    ``row``; the message then begins with it.

    >>> print(LabelError("Label 3 is outside [0, 1].", row=5))
    row 5: Label 3 is outside [0, 1].
    """

    def __init__(self, *arguments: object, row: int | None = None) -> None:
        super().__init__(*arguments)
        self.row = row

    def __str__(self) -> str:
        return self.message if self.row is None else f"row {self.row}: {self.message}"

    @property
    def message(self) -> str:
        """What is wrong, without the row; of values that go on and on, the ends are quoted."""
        whole = super().__str__()
        return whole if len(whole) <= LONGEST else f"{whole[:CUT]} … {whole[-CUT:]}"


class ConfigurationError(GroupwiseError, ValueError):
    """Parts that do not fit together, or a parameter outside its range."""


class GroupError(GroupwiseError, ValueError):
    """A group declaration, a group column or a membership weight is not usable."""


class FeatureError(GroupwiseError, ValueError):
    """A row or frame cannot be turned into numbers."""


class TooLargeError(FeatureError):
    """A feature is beyond what can be computed with."""


class LabelError(GroupwiseError, ValueError):
    """A label is missing, of the wrong type, or outside the declared range."""


class TicketError(GroupwiseError, ValueError):
    """A ticket is unknown, was settled before, or is not one of this model's."""


class SnapshotError(GroupwiseError):
    """A snapshot cannot be written or read."""


class DatasetError(GroupwiseError):
    """A data set is missing, or is not the file that was expected."""


class DataError(GroupwiseError):
    """A file of rows cannot be read, or its columns cannot be used as asked."""


class OutputError(GroupwiseError):
    """A result cannot be written where it should go."""


class EngineError(GroupwiseError):
    """A cluster cannot be reached, has no room, or has machines that compute otherwise."""


class MissingPackageError(ConfigurationError, ModuleNotFoundError):
    """A package that only some uses need is not installed; the message names the extra."""

    def __init__(self, *arguments: object, row: int | None = None, name: str | None = None) -> None:
        super().__init__(*arguments, row=row)
        self.name = name


class ManyLevelsWarning(UserWarning):
    """A field or a family of groups has more values than may have features of their own."""


def is_finite(value: Any, kind: Any = Real) -> bool:
    """Is it a finite number, and no truth value? With ``kind=int``: a whole number?

    >>> is_finite(1.5), is_finite(1.5, int), is_finite(True), is_finite("1")
    (True, False, False, False)
    """
    if not isinstance(value, kind) or isinstance(value, bool):
        return False
    if hasattr(value, "item"):  # numpy's may be too short for the bounds
        value = value.item()
    return bool(-sys.float_info.max <= value <= sys.float_info.max)


def named(kinds: Mapping[str, Any], fields: Mapping[str, Any], what: str, remedy: str = "") -> Any:
    """What a file holds by the name of its kind, with the parameters to make it from.

    >>> named({"complex": complex}, {"type": "complex", "real": 2.0}, "number")
    (2+0j)
    """
    parameters = dict(fields)
    name = parameters.pop("type", None)
    if name not in kinds:
        raise ConfigurationError(f"There is no {what} called {name!r}.{remedy}")
    kind = kinds[name]
    return kind.from_dict(parameters) if hasattr(kind, "from_dict") else kind(**parameters)
