"""Labels that are names of declared classes, and the numbers that stand for them."""

from typing import Any, cast

import numpy as np

from groupwise.arrays import Vector
from groupwise.errors import ConfigurationError, LabelError, is_finite

ClassName = str | bool | int | float
"""What may be the name of a class: what JSON keeps and gives back as it was."""
MOST = 1_000
"""A chain has a learner for each class but the last: beyond this there is no room for them."""
LISTED = 20
"""So many classes are listed in a message."""


class ClassNames:
    """The classes by name; they are numbered from 0 on.

    As dictionaries have it, 1, 1.0 and True are the same name, and "1" is another.

    >>> ClassNames(["red", "green", "blue"]).number("blue")
    2.0
    """

    def __init__(self, names: Any) -> None:
        if isinstance(names, (str, bytes)) or not hasattr(names, "__iter__"):
            raise ConfigurationError(f"classes must be a list of names, not {names!r}.")
        self.names: tuple[ClassName, ...] = tuple(
            x.item() if isinstance(x, np.generic) else x for x in names
        )
        for name in self.names:
            if not isinstance(name, (str, bool)) and not is_finite(name, (int, float)):
                raise ConfigurationError(
                    f"{name!r} cannot be the name of a class: give texts, numbers or booleans."
                )
        count = len(self.names)
        if not 2 <= count <= MOST:
            raise ConfigurationError(f"classes has {count} names; give from 2 to {MOST} of them.")
        self._numbers = {name: float(number) for number, name in enumerate(self.names)}
        if len(self._numbers) < count:
            twice = next(x for number, x in enumerate(self.names) if self._numbers[x] > number)
            raise ConfigurationError(f"{twice!r} is twice in classes; classes must be different.")

    def number(self, label: object) -> float:
        """The number of a class, as a float; LabelError where there is no such class."""
        try:
            return self._numbers[cast(ClassName, label)]
        except (KeyError, TypeError):  # no class, or nothing that could name one
            raise self._undeclared(label) from None

    def numbers(self, labels: Any) -> Vector:
        """``number`` for an array; the error names the first bad row."""
        names = np.asarray(labels, dtype=object).tolist()
        try:
            return np.array([self._numbers[name] for name in names], dtype=np.float64)
        except (KeyError, TypeError):
            known = [self._has(name) for name in names]
            error = self._undeclared(names[known.index(False)])
            error.row = known.index(False)
            raise error from None

    def _has(self, label: object) -> bool:
        try:
            return label in self._numbers
        except TypeError:
            return False

    def _undeclared(self, label: object) -> LabelError:
        if isinstance(label, np.generic):
            label = label.item()
        if label is None or (isinstance(label, float) and label != label):
            return unknown(label)
        listed = ", ".join(map(repr, self.names[:LISTED]))
        more = f" and {len(self.names) - LISTED} more" if len(self.names) > LISTED else ""
        return LabelError(
            f"Label {label!r} is none of the classes {listed}{more}. "
            "Name every class that can come, as in losses.Log(classes=[...])."
        )


def unknown(label: object) -> LabelError:
    """The error for a label that says that there is none."""
    return LabelError(
        f"The label is {'NaN' if label != label else label}. Settle the ticket when the label is "
        "known, or drop it with model.forget(ticket)."
    )
