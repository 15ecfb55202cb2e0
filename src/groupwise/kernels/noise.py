"""The perturbations of perturbed leaders, named like every draw by (seed, ticket, expert, place).

One Philox call gives four 32-bit words, hence four perturbations; the last argument of the counter
is the number of the block of four, its top bit the attempt: 1 where a late label makes the learner
draw again.
"""

import numpy as np

from groupwise.kernels.compiled import compiled, inlined, lean
from groupwise.kernels.logarithm import log_in_place
from groupwise.kernels.philox import philox

WIDTH = 4
_LOW = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_ATTEMPT = np.uint64(31)
_STEP = 2.0**-32


@inlined
def words(seed, number, expert, attempt, block):
    """Four numbers in (0, 1), multiples of 2⁻³² plus half of one."""
    key = np.uint64(seed)
    ticket = np.uint64(number)
    a, b, c, d = philox(
        ticket & _LOW,
        ticket >> _HALF,
        np.uint64(expert) & _LOW,
        (np.uint64(attempt) << _ATTEMPT) | np.uint64(block),
        key & _LOW,
        key >> _HALF,
    )
    return (a + 0.5) * _STEP, (b + 0.5) * _STEP, (c + 0.5) * _STEP, (d + 0.5) * _STEP


@lean
def add_uniform(seed, number, expert, attempt, scale, out):
    """out += scale · u, u uniform on [0, 1]^d."""
    count = out.size
    for block in range((count + WIDTH - 1) // WIDTH):
        a, b, c, d = words(seed, number, expert, attempt, block)
        i = WIDTH * block
        out[i] += scale * a
        if i + 1 < count:
            out[i + 1] += scale * b
        if i + 2 < count:
            out[i + 2] += scale * c
        if i + 3 < count:
            out[i + 3] += scale * d


@compiled
def add_laplace(seed, number, expert, attempt, scale, out):
    """out += Laplace(scale) entries, independent.

    A level u in (0, 1) says the sign, that of u − ½, and the size, −ln(1 − 2|u − ½|). Levels are
    odd multiples of 2⁻³³, so the logarithm is finite.
    """
    blocks = (out.size + WIDTH - 1) // WIDTH
    centred = np.empty(WIDTH * blocks)
    for block in range(blocks):
        a, b, c, d = words(seed, number, expert, attempt, block)
        i = WIDTH * block
        centred[i] = a - 0.5
        centred[i + 1] = b - 0.5
        centred[i + 2] = c - 0.5
        centred[i + 3] = d - 0.5
    sizes = np.empty(out.size)
    for i in range(out.size):
        sizes[i] = 1.0 - 2.0 * abs(centred[i])
    log_in_place(sizes)
    for i in range(out.size):
        out[i] += scale * (sizes[i] if centred[i] < 0.0 else -sizes[i])
