"""Which rounds to explore: one of every block, drawn in advance."""

from typing import Any

from groupwise.kernels.philox import uniform

EXPLORATION = -2
"""The stream of these draws, beside the learners' (from 0 on) and the aggregator's (−1)."""
FIRST_HORIZON = 64
"""Where the horizon is unknown, the first guess; each later one is twice as long."""


class Blocks:
    """The present block of rounds: where it starts, how long it is, and which round is explored.

    Blocks have length ⌈T^{1/3}⌉ for a horizon T. Where the horizon is unknown it is guessed, and
    doubled at the end of a block once that many rounds have gone by: a new epoch. A known horizon
    that is exceeded changes nothing.
    """

    def __init__(self, horizon: int | None, seed: int) -> None:
        self.known = horizon is not None
        self.horizon = FIRST_HORIZON if horizon is None else horizon
        self.seed = seed
        self.number = 0
        self.start = 0
        self.epoch_start = 0
        self.epochs: list[list[int]] = []
        """Where each epoch starts, and how long its blocks are."""
        self._lay_out()

    def _lay_out(self) -> None:
        self.length = block_length(self.horizon)
        if not self.epochs or self.epochs[-1][1] != self.length:
            self.epochs.append([self.start, self.length])
        level = uniform(self.seed, self.number, EXPLORATION, 0)
        self.explored = self.start + int(level * self.length)

    @property
    def end(self) -> int:
        """The first round after the block."""
        return self.start + self.length

    def advance(self) -> bool:
        """Go to the next block; True where it begins a new epoch."""
        self.start = self.end
        self.number += 1
        doubled = not self.known and self.start - self.epoch_start >= self.horizon
        if doubled:
            self.horizon *= 2
            self.epoch_start = self.start
        self._lay_out()
        return doubled

    def length_at(self, number: int) -> int:
        """How long the block of a round is or was."""
        return [length for start, length in self.epochs if start <= number][-1]

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON keeps it."""
        return dict(self.__dict__)

    def restore(self, fields: dict[str, Any]) -> None:
        """Take over what :meth:`to_dict` gave."""
        for name in self.__dict__:
            setattr(self, name, fields[name])


def block_length(horizon: int) -> int:
    """⌈T^{1/3}⌉, exact on cubes.

    >>> [block_length(horizon) for horizon in (1, 8, 9, 1_000, 100_000)]
    [1, 2, 3, 10, 47]
    """
    length: int = round(horizon ** (1.0 / 3.0))
    while length**3 < horizon:
        length += 1
    while length > 1 and (length - 1) ** 3 >= horizon:
        length -= 1
    return max(1, length)
