"""W, what noise adds to a perturbed leader's regret: by closed form, or sampled with a margin.

A mean of n draws is below the true one by more than the margin with a probability of at most
``FAILURE``, over the draws alone: no data enter. Of values in an interval of length b with the
sample's variance v the margin is (Maurer and Pontil, "Empirical Bernstein bounds", COLT 2009)

    √(2 v L / n) + 7 b L / (3 (n − 1)),   L = ln(2 / ``FAILURE``).

Laplace noise is not bounded. What a maximum F of k entries' noise, over |H| policies, is above c on
the average is at most

    ∫ P(F > t) dt from c on  ≤  min{|H| (1 − λ²)^{−k}, (½ + ½/(1 − λ))^k} e^{−λc} / λ,  0 < λ < 1,

of which the second counts all positive noise; so F is cut off where that is next to nothing.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from groupwise.arrays import Vector
from groupwise.bounds import noise_width

FAILURE = 1e-6
BEYOND = 1e-3
"""What noise that is cut off may be worth on the average; it is added again."""
DRAWS = 20_000
"""Where all policies can be asked at once."""
CELLS = 1 << 22
"""Numbers that are held at a time."""


class Width(NamedTuple):
    """W, or what it is at most; and whether it was sampled."""

    value: float
    sampled: bool = False


def above_mean(values: Vector, span: float) -> float:
    """What the mean of values within ``span`` of each other is at most, but for ``FAILURE``.

    >>> draws = np.random.default_rng(0).random(10_000)
    >>> 0.5 < above_mean(draws, 1.0) < 0.53
    True
    """
    n, log = len(values), math.log(2.0 / FAILURE)
    margin = math.sqrt(2.0 * float(np.var(values, ddof=1)) * log / n)
    return float(np.mean(values)) + margin + 7.0 * span * log / (3.0 * (n - 1))


def beyond(cut: float, entries: int, policies: float) -> float:
    """What a maximum of Laplace noise is above ``cut`` on the average, at most."""
    rates = np.linspace(0.01, 0.99, 99)
    by_policy = math.log(policies) - entries * np.log1p(-(rates**2))
    by_noise = entries * np.log(0.5 + 0.5 / (1.0 - rates))
    exponents = np.minimum(by_policy, by_noise) - rates * cut - np.log(rates)
    return float(np.exp(np.minimum(exponents, 700.0)).min())


def cut_off(entries: int, policies: float) -> float:
    """Where noise is cut off: the least whole number beyond which there is next to nothing."""
    cut = 1.0
    while beyond(cut, entries, policies) > BEYOND:
        cut += 1.0
    return cut


def sampled_maximum(draws: Vector, entries: int, policies: float) -> float:
    """What E max is at most, from draws of the maximum; cutting off below 0 only adds to it."""
    cut = cut_off(entries, policies)
    return above_mean(np.clip(draws, 0.0, cut), cut) + beyond(cut, entries, policies)


def of_table(table: Vector) -> Width:
    """W of policies that are rows of 0 and 1, an entry for each place that has noise.

    One policy has none. Two that differ in k places have E max(0, Σ of k) = k C(2k, k) / 4^k. All
    2^k that there are take all positive noise, k/2.

    >>> round(of_table(np.array([[0.0], [1.0]])).value, 9)
    0.5
    """
    return _of_rows(np.packbits(table.astype(bool)).tobytes(), *table.shape)


@lru_cache
def _of_rows(bits: bytes, count: int, entries: int) -> Width:
    """The same, once for every table."""
    packed = np.frombuffer(bits, dtype=np.uint8)
    whole = np.unpackbits(packed, count=count * entries).reshape(count, entries)
    rows: Vector = np.unique(whole, axis=0).astype(np.float64)
    count = len(rows)
    free = int((rows.min(axis=0) != rows.max(axis=0)).sum())
    if count == 1:
        return Width(0.0)
    if count == 2:
        return Width(math.exp(_log_central(free) + math.log(free)) * (1.0 + 1e-12))
    if free < 60 and count == 1 << free:
        return Width(0.5 * free)
    generator, found = np.random.default_rng(0), []
    for start in range(0, DRAWS, step := max(1, CELLS // max(count, entries))):
        noise = generator.laplace(size=(min(step, DRAWS - start), entries))
        found.append((noise @ rows.T).max(axis=1))
    by_size = noise_width(entries, count)
    by_draws = sampled_maximum(np.concatenate(found), entries, count)
    return Width(by_draws, True) if by_draws < by_size else Width(by_size)


def of_oracle(
    least: Callable[[Vector], float], shape: tuple[int, int], draws: int, policies: float = math.inf
) -> Width:
    """W of a class that only its oracle knows: −E min, with symmetric noise."""
    generator = np.random.default_rng(1)
    found = np.array([-least(generator.laplace(size=shape)) for _ in range(draws)])
    return Width(sampled_maximum(found, shape[0] * shape[1], policies), True)


def _log_central(k: int) -> float:
    """ln of C(2k, k) / 4^k."""
    return math.lgamma(2 * k + 1) - 2.0 * math.lgamma(k + 1) - 2 * k * math.log(2.0)
