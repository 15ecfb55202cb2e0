"""Which ids are surely new: most are, and need not be looked up in the store."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from groupwise.arrays import Index

BITS, PROBES = 16, 4
"""For every key; so 1 in 400 that are new is looked up all the same."""
FIRST = 1 << 16
"""Keys that the first filter has room for; each further one has room for twice as many."""


class Seen:
    """Texts that were added: it may take others for one of them, but forgets none (Bloom 1970).

    >>> seen = Seen()
    >>> seen.add(["order-17"])
    >>> seen.doubtful(["order-17", "order-18"])
    ['order-17']
    """

    def __init__(self) -> None:
        self._filters = [bytearray(FIRST * BITS // 8)]
        self._room = FIRST

    def __len__(self) -> int:
        """Bytes of memory."""
        return sum(map(len, self._filters))

    def add(self, keys: Iterable[str]) -> None:
        """Remember texts."""
        known = _hashes([*keys])
        known = known[~self._holds(known)]
        while known.size:
            if not self._room:
                self._filters.append(bytearray(2 * len(self._filters[-1])))
                self._room = len(self._filters[-1]) * 8 // BITS
            some, known = known[: self._room], known[self._room :]
            self._room -= len(some)
            last = np.frombuffer(self._filters[-1], np.uint8)
            for turn in range(PROBES):
                place = _places(some, turn, len(last))
                np.bitwise_or.at(last, place >> 3, np.uint8(1) << (place & 7).astype(np.uint8))

    def doubtful(self, keys: Sequence[str]) -> list[str]:
        """Those that may have been added; all others are new."""
        return [keys[place] for place in np.flatnonzero(self._holds(_hashes(keys))).tolist()]

    def _holds(self, known: Index) -> "np.ndarray[Any, np.dtype[np.bool_]]":
        """Which of these hashes may be there."""
        found = np.zeros(len(known), np.bool_)
        for one in self._filters:
            bits, left = np.frombuffer(one, np.uint8), np.arange(len(known))
            for turn in range(PROBES):  # after the first, few are left
                place = _places(known[left], turn, len(one))
                left = left[(bits[place >> 3] >> (place & 7).astype(np.uint8)) & 1 == 1]
                if not left.size:
                    break
            found[left] = True
        return found

    def __contains__(self, key: str) -> bool:
        known = hash(key)
        for one in self._filters:
            first = known & (8 * len(one) - 1)  # mostly this one is not set
            places = (_places(known, turn, len(one)) for turn in range(1, PROBES))
            if one[first >> 3] & (1 << (first & 7)) and all(
                one[place >> 3] & (1 << (place & 7)) for place in places
            ):
                return True
        return False


def _hashes(keys: Sequence[str]) -> Index:
    return np.fromiter(map(hash, keys), np.int64, len(keys))


def _places(known: Any, turn: int, length: int) -> Any:
    """A bit in a filter of so many bytes, which is a power of 2, for texts with these hashes."""
    return (known + turn * ((known >> 32) | 1)) & (8 * length - 1)
