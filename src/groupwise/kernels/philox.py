"""Philox4x32-10: randomness as a pure function of a key and a counter.

Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC 2011). A draw is
named by (seed, ticket number, expert, coordinate), so it is the same whatever was drawn before it.
"""

import numpy as np

from groupwise.kernels.compiled import inlined

_MULTIPLIER_0 = np.uint64(0xD2511F53)
_MULTIPLIER_1 = np.uint64(0xCD9E8D57)
_WEYL_0 = np.uint64(0x9E3779B9)
_WEYL_1 = np.uint64(0xBB67AE85)
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ROUNDS = 10

AGGREGATOR = -1
"""The stream of the aggregator's own draw; learners use their expert's number, from 0 on."""


@inlined
def philox(c0, c1, c2, c3, k0, k1):
    """Four 32-bit words from a counter of four and a key of two."""
    for _ in range(_ROUNDS):
        product_0 = _MULTIPLIER_0 * c0
        product_1 = _MULTIPLIER_1 * c2
        c0, c1, c2, c3 = (
            (product_1 >> _HALF) ^ c1 ^ k0,
            product_1 & _LOW,
            (product_0 >> _HALF) ^ c3 ^ k1,
            product_0 & _LOW,
        )
        k0 = (k0 + _WEYL_0) & _LOW
        k1 = (k1 + _WEYL_1) & _LOW
    return c0, c1, c2, c3


@inlined
def uniform(seed, number, stream, coordinate):
    """A number in [0, 1) with 53 random bits, named by its four arguments.

    ``seed`` is the 64-bit key; ``number`` (the ticket), ``stream`` (the expert) and ``coordinate``
    are the counter, 64 + 32 + 32 bits.
    """
    key = np.uint64(seed)
    ticket = np.uint64(number)
    a, b, _, _ = philox(
        ticket & _LOW,
        ticket >> _HALF,
        np.uint64(stream & 0xFFFFFFFF),  # may be negative, which plain Python would not take
        np.uint64(coordinate & 0xFFFFFFFF),
        key & _LOW,
        key >> _HALF,
    )
    return ((a >> np.uint64(5)) * 67108864.0 + (b >> np.uint64(6))) / 9007199254740992.0
