"""Prod's rounds: what it keeps of every expert, its play, and what a label does.

Notation is that of ``aggregators.Prod``. Weights are W_ik = w_ik 2^x_i, the largest w_ik of an
expert near 1, so that no stream makes them too small; the prior over rates is 2^−k here, without
the division by its sum 255/128.

What is proved is proved of the numbers as they are rounded. S_ik is never below the sum of its
charges, nor D_i above that of its squares, and by how much the potential Σ m_i γ_k W_ik has really
grown, because a play is a root only up to rounding, is measured and kept: ``excess``.
"""

import math
from typing import NamedTuple

from groupwise.arrays import Index, Vector
from groupwise.kernels.compiled import inlined
from groupwise.kernels.experts import experts_of
from groupwise.kernels.layout import LEARNER, Layout, open_place
from groupwise.kernels.rates import COUNT, power_of_two, pull, rescale, turn
from groupwise.kernels.reference import UNIT

COMMON = ("error", "excess")
"""What is kept of all experts together: B, and Σ m_i γ_k W_ik less the masses, at most."""
ERROR, EXCESS = range(2)
QUARTER = 0.25
"""c/2: what a round may take from a weight is at most the share c = ½ of it."""
STEPS = 100
CLOSE = 2.0**-36
"""A step of Newton's that is shorter is the last: what it leaves is beyond rounding."""
LOW, HIGH, POWER = 2.0**-64, 2.0**64, 64
"""Where an expert's largest w leaves these, a power of two moves to x."""
TINY = 1e-100
"""Memberships below this, which a mass might make 0, are taken apart first."""


class Rates(NamedTuple):
    """What Prod keeps of a group's experts."""

    weight: Vector
    """w_ik."""
    charge: Vector
    """S_ik."""
    distance: Vector
    """D_i = Σ I_i (p − a_i)²."""
    free: Vector
    """The mean of w_ik with weights γ_k η_k: how an expert pulls where nothing is clipped."""
    exponent: Index
    """x_i."""


RECORDS = Layout(
    Rates,
    {
        "weight": (LEARNER, COUNT),
        "charge": (LEARNER, COUNT),
        "distance": (LEARNER,),
        "free": (LEARNER,),
        "exponent": (LEARNER,),
    },
    integers=("exponent",),
    ones=("weight", "free"),
)
SIZE = 2 * COUNT + 3
"""Numbers that are kept of an expert."""
rates_of = RECORDS.view


@inlined
def scaled(number, power):
    """number · 2^power; nothing where that power is none of a double."""
    return number * power_of_two(min(power, 1_023)) if power > -1_023 else 0.0


@inlined
def power_of(weight, mass, exponent):
    """The power of two that an expert's share m I 2^x is counted in."""
    if weight >= TINY:
        return exponent
    return exponent + math.frexp(weight)[1] + math.frexp(mass)[1]


@inlined
def share_of(weight, mass, exponent, highest):
    """m I 2^x / 2^highest; nothing where that is too small beside another's."""
    power = power_of(weight, mass, exponent) - highest
    if weight >= TINY:
        return scaled(mass * weight, power)
    return scaled(math.frexp(weight)[0] * math.frexp(mass)[0], power)


@inlined
def highest_power(settings, groups, weights, count, learners):
    """The highest power of two among the shares of the awake experts."""
    experts, own = open_place(settings.experts), open_place(settings.own)
    highest = -(1 << 60)
    for a in range(count):
        mass, exponent = experts_of(experts, groups[a]).mass, rates_of(own, groups[a]).exponent
        for k in range(learners):
            if mass[k] > 0.0:
                highest = max(highest, power_of(weights[a], mass[k], exponent[k]))
    return highest


@inlined
def side_of(settings, error, play, action):
    """μ: how large |e| may be at most where this expert loses by it, or B if that is less.

    Labels are in the range that advice is clipped to: [0, 1], or what it was widened to since.
    """
    low, high = settings.numbers[2], settings.numbers[3]
    return min(error, play - low if action > play else high - play)


@inlined
def ceiling_of(weight, side):
    """η_k times the most that |h_ik| may be: c/(2 I μ)."""
    product = weight * side
    return QUARTER / product if product > 0.0 else math.inf


@inlined
def balance(settings, groups, weights, advice, highest, play, odds):
    """Σ m_i I_i γ_k η_k W_ik h_ik(p) and its derivative at p; with what weights p is the mean."""
    experts, own = open_place(settings.experts), open_place(settings.own)
    error = settings.common[ERROR]
    force, growth = 0.0, 0.0
    for a in range(advice.shape[0]):
        mass, record = experts_of(experts, groups[a]).mass, rates_of(own, groups[a])
        for k in range(advice.shape[1]):
            if mass[k] == 0.0:  # no expert: its group has fewer learners than another
                odds[a, k] = 0.0
                continue
            difference = play - advice[a, k]
            side = side_of(settings, error, play, advice[a, k])
            ceiling = ceiling_of(weights[a], side)
            slope = ceiling / side if side < error and side > 0.0 else 0.0
            reach = abs(difference)
            drawn, grows = pull(record.weight, k, reach, ceiling, slope)
            share = share_of(weights[a], mass[k], record.exponent[k], highest)
            drawn *= share
            grows *= share
            odds[a, k] = drawn / reach if reach > TINY else grows
            force += drawn if difference > 0.0 else -drawn
            growth += grows
    return force, growth


@inlined
def play(settings, groups, weights, advice, odds):
    """The root p of the balance, which rises with p; ``odds`` are the weights it is the mean with.

    Newton's method between the least and the most advice, which halves where it would leave them,
    from the weighted mean that is the root where nothing is clipped.
    """
    experts, own = open_place(settings.experts), open_place(settings.own)
    highest = highest_power(settings, groups, weights, *advice.shape)
    low, high = advice[0, 0], advice[0, 0]
    total, mean = 0.0, 0.0
    for a in range(advice.shape[0]):
        mass, record = experts_of(experts, groups[a]).mass, rates_of(own, groups[a])
        for k in range(advice.shape[1]):
            if mass[k] == 0.0:
                continue
            low, high = min(low, advice[a, k]), max(high, advice[a, k])
            share = share_of(weights[a], mass[k], record.exponent[k], highest) * record.free[k]
            total += share
            mean += share * advice[a, k]
    now = min(max(mean / total, low), high) if total > 0.0 else 0.5 * (low + high)
    for _ in range(STEPS):
        force, growth = balance(settings, groups, weights, advice, highest, now, odds)
        if force == 0.0:
            break
        if force > 0.0:
            high = now
        else:
            low = now
        then = now - force / growth if growth > 0.0 else math.inf
        if abs(then - now) <= CLOSE:
            now = min(max(then, low), high)
            break
        # The balance has kinks: from an end of what is left, a step may lead to the other and back.
        if not (low < then and then < high):
            then = 0.5 * (low + high)
        if then == now:
            break
        now = then
    total = 0.0
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            total += odds[a, k]
    for a in range(advice.shape[0]):
        for k in range(advice.shape[1]):
            odds[a, k] = odds[a, k] / total
    return now


@inlined
def update(settings, groups, weights, advice, prediction, y):
    """W_ik ×= 1 + 2 η_k I ẽ h_ik, S_ik += its charge, D_i += I d², and B = max(B, |e|)."""
    experts, own = open_place(settings.experts), open_place(settings.own)
    error = settings.common[ERROR]
    miss = prediction - y
    size = abs(miss)
    known = min(size, error)
    gained, moved, count = 0.0, 0.0, 0
    for a in range(advice.shape[0]):
        mass, record = experts_of(experts, groups[a]).mass, rates_of(own, groups[a])
        for k in range(advice.shape[1]):
            if mass[k] == 0.0:
                continue
            count += 1
            difference = prediction - advice[a, k]
            reach = abs(difference)
            side = side_of(settings, error, prediction, advice[a, k])
            against = (miss > 0.0) != (difference > 0.0)
            step, whole = 2.0 * (weights[a] * known), 2.0 * (weights[a] * size) * reach
            change, absolute, top, record.free[k] = turn(
                record.weight,
                record.charge,
                k,
                step,
                -1.0 if against else 1.0,
                reach,
                ceiling_of(weights[a], side),
                whole,
                1 if against or known <= side else 0,
            )
            square = weights[a] * (difference * difference) * (1.0 - 16 * UNIT)
            record.distance[k] = (record.distance[k] + square) * (1.0 - 8 * UNIT)
            unit = scaled(mass[k], record.exponent[k])
            gained += unit * change
            moved += unit * absolute
            if top < LOW:
                rescale(record.weight, k, HIGH)
                record.free[k] *= HIGH
                record.exponent[k] -= POWER
            elif top > HIGH:
                rescale(record.weight, k, LOW)
                record.free[k] *= LOW
                record.exponent[k] += POWER
    rounding = (16.0 + count) * UNIT * moved + 2.0 * UNIT * abs(settings.common[EXCESS])
    settings.common[EXCESS] += gained + rounding
    settings.common[ERROR] = max(error, size)
