"""What groupwise raises. Every message says what is wrong and what to do about it."""


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
        """What is wrong, without the row."""
        return super().__str__()


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


class MissingPackageError(ConfigurationError, ModuleNotFoundError):
    """A package that only some uses need is not installed; the message names the extra."""

    def __init__(self, *arguments: object, row: int | None = None, name: str | None = None) -> None:
        super().__init__(*arguments, row=row)
        self.name = name
