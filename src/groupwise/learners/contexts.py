"""The distinct contexts that a learner knows, numbered."""

from groupwise.arrays import capacity, enlarge
from groupwise.states import Vector


class Contexts:
    """Contexts by number; the ones given first come first, others are added as they are met."""

    def __init__(self, first: Vector) -> None:
        self.matrix = first.copy()
        self.count = len(first)
        self._numbers = {_key(row): i for i, row in enumerate(first)}

    def find(self, x: Vector) -> int:
        """The number of a context; −1 where it is unknown."""
        return self._numbers.get(_key(x), -1)

    def add(self, x: Vector) -> int:
        """The number of a context, a new one where it was unknown."""
        number = self._numbers.setdefault(_key(x), self.count)
        if number == self.count:
            size = capacity(self.count + 1, len(self.matrix))
            self.matrix = enlarge(self.matrix, (size, self.matrix.shape[1]))
            self.matrix[number] = x
            self.count += 1
        return number


def _key(x: Vector) -> bytes:
    return (x + 0.0).tobytes()  # −0 is 0
