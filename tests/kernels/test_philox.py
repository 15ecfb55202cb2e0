"""Philox4x32-10 against its published vectors, and the uniform numbers made from it."""

import numpy as np
import pytest

from groupwise.kernels.philox import AGGREGATOR, philox, uniform
from tests import streams

# Random123's known answers for philox4x32 with 10 rounds: counter, key, output.
VECTORS = [
    (
        [0x00000000, 0x00000000, 0x00000000, 0x00000000],
        [0x00000000, 0x00000000],
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
    ),
    (
        [0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF],
        [0xFFFFFFFF, 0xFFFFFFFF],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
    ),
    (
        [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
        [0xA4093822, 0x299F31D0],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ),
]


@pytest.mark.parametrize(("counter", "key", "output"), VECTORS)
def test_the_published_vectors(counter, key, output):
    assert [int(word) for word in philox(*map(np.uint64, [*counter, *key]))] == output
    assert streams.philox(counter, key) == output  # the tests' own, which other tests rely on


@pytest.mark.parametrize("seed", [0, 1, 12345678901234567, 2**63 - 1])
@pytest.mark.parametrize("number", [0, 7, 2**32 - 1, 2**32, 2**40 + 3])
def test_a_draw_is_named_by_seed_and_ticket(seed, number):
    assert uniform(seed, number, AGGREGATOR, 0) == streams.aggregator_level(seed, number)


def test_every_argument_matters():
    base = uniform(3, 4, 5, 6)
    assert uniform(3, 4, 5, 6) == base
    others = [(2, 4, 5, 6), (3, 3, 5, 6), (3, 4, 4, 6), (3, 4, 5, 5), (3 + 2**32, 4, 5, 6),
              (3, 4 + 2**32, 5, 6), (3, 4, AGGREGATOR, 6)]  # fmt: skip
    values = [uniform(*other) for other in others]
    assert len({base, *values}) == 1 + len(values)


def test_the_numbers_are_uniform():
    drawn = np.array([uniform(1, number, AGGREGATOR, 0) for number in range(20_000)])
    assert drawn.min() >= 0.0
    assert drawn.max() < 1.0
    counts = np.histogram(drawn, bins=50, range=(0, 1))[0]
    assert np.sum((counts - 400) ** 2 / 400) < 100  # χ² with 49 degrees of freedom: p ≈ 2e-5
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.03
    by_stream = np.array([uniform(1, 9, stream, 0) for stream in range(20_000)])
    counts = np.histogram(by_stream, bins=50, range=(0, 1))[0]
    assert np.sum((counts - 400) ** 2 / 400) < 100


def test_all_53_bits_are_used():
    drawn = [int(uniform(2, number, 0, 0) * 2**53) for number in range(2_000)]
    for bit in range(53):
        ones = sum(value >> bit & 1 for value in drawn)
        assert 850 < ones < 1150, bit
