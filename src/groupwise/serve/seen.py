"""Which ids are surely new: most are, and need not be looked up in the store."""

from collections.abc import Sequence

import numpy as np

BITS, PROBES = 16, 4
"""For every key; so 1 in 400 that are new is looked up all the same."""
FIRST = 1 << 16
"""Keys that the first filter has room for; each further one has room for twice as many."""


class Seen:
    """Texts that were added: it may take others for one of them, but forgets none (Bloom 1970).

    >>> seen = Seen()
    >>> seen.add("order-17")
    >>> "order-17" in seen, "order-18" in seen
    (True, False)
    """

    def __init__(self) -> None:
        self._filters = [bytearray(FIRST * BITS // 8)]
        self._room = FIRST

    def __len__(self) -> int:
        """Bytes of memory."""
        return sum(map(len, self._filters))

    def add(self, key: str) -> None:
        """Remember a text."""
        if key in self:
            return
        if not self._room:
            self._filters.append(bytearray(2 * len(self._filters[-1])))
            self._room = len(self._filters[-1]) * 8 // BITS
        self._room -= 1
        last = self._filters[-1]
        for place in _places(hash(key), len(last)):
            last[place >> 3] |= 1 << (place & 7)

    def none_of(self, keys: Sequence[str]) -> bool:
        """Are all of these surely new? Mostly it takes a look at one bit of each."""
        known = np.fromiter(map(hash, keys), np.int64, len(keys))
        for one in self._filters:
            first = known & (8 * len(one) - 1)
            bits = np.frombuffer(one, np.uint8)[first >> 3] >> (first & 7).astype(np.uint8)
            if any(keys[place] in self for place in np.flatnonzero(bits & 1).tolist()):
                return False
        return True

    def __contains__(self, key: str) -> bool:
        known = hash(key)
        for one in self._filters:
            first = known & (8 * len(one) - 1)  # mostly this one is not set
            if one[first >> 3] & (1 << (first & 7)) and all(
                one[place >> 3] & (1 << (place & 7)) for place in _places(known, len(one))
            ):
                return True
        return False


def _places(known: int, length: int) -> list[int]:
    """Bits in a filter of so many bytes, which is a power of 2, for a text with this hash."""
    step = (known >> 32) | 1
    mask = 8 * length - 1
    return [(known + turn * step) & mask for turn in range(PROBES)]
