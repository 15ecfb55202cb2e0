"""Intervals around predictions whose coverage is known on every group (``groupwise.intervals``).

Everything is scaled like the labels. A group's *base* is the half-width κ_g σ_g: σ_g is its recent
mean error, and κ_g follows the quantile of its errors in that unit. The bases of the awake groups
are mixed by AdaNormalHedge on the pinball loss, and the mixture is stretched or shrunk by the awake
groups' excess of misses.
"""

import math
from typing import NamedTuple

from groupwise.arrays import Vector
from groupwise.kernels.adanormalhedge import exponent, spread
from groupwise.kernels.compiled import entry, inlined, lean
from groupwise.kernels.layout import ONE, Layout, open_place
from groupwise.kernels.rounds import clipped
from groupwise.kernels.stretch import open_awake

ALPHA, RATE, LOW, HIGH = range(4)
"""In ``parameters``: the share of misses asked for, η, and the range that intervals are cut to."""
FIRST = 0.25
"""σ before there is an error, as a share of the range: the first interval is all of it."""
LEAST = 2.0**-40
"""A base is no smaller share of the range: a bounded excess of misses makes it cover all of it."""
SMALLEST = 0.1
"""κ is no less: where all errors are alike it is 1, and a group is to find back from none."""
MEMORY = 200.0
"""σ is a mean over so many rounds of its group, or over all while they are fewer."""
STEP = 0.05
"""κ moves by this share at least, and by 1/√n in the n-th round of its group."""


class Widths(NamedTuple):
    """What a group knows of its intervals."""

    rounds: Vector
    """T_g = Σ w, over the settled rounds that had an interval."""
    missed: Vector
    """M_g = Σ w over those whose label was outside, of intervals as they were issued."""
    width: Vector
    """Σ w (width of the interval)."""
    clock: Vector
    """How many rounds σ and κ have seen."""
    scale: Vector
    """σ_g."""
    ratio: Vector
    """κ_g."""
    regret: Vector
    absolute: Vector
    """R and C of its base, for AdaNormalHedge."""


WIDTHS = Layout(Widths, dict.fromkeys(Widths._fields, ONE))
widths_of = WIDTHS.view


@inlined
def _weight(regret, absolute, top):
    """AdaNormalHedge's w(R, C), relative to e^top."""
    if regret <= -1.0:
        return 0.0
    return spread(regret, absolute) * math.exp(exponent(regret, absolute) - top)


@inlined
def _base(place, groups, weights, awake):
    """The mixture of the awake groups' bases, that of their scales, and the largest base."""
    whole = place.parameters[HIGH] - place.parameters[LOW]
    top, least = -math.inf, LEAST * whole
    largest = least
    for a in range(awake):
        own = widths_of(place, groups[a])
        if own.clock[0] > 0.0:
            top = max(top, exponent(own.regret[0], own.absolute[0]))
            largest = max(largest, own.ratio[0] * own.scale[0])
    for alike in range(2):  # the second time where all weights were 0
        total = base = scale = 0.0
        for a in range(awake):
            own = widths_of(place, groups[a])
            if own.clock[0] > 0.0:
                share = weights[a]
                if alike == 0:
                    share *= _weight(own.regret[0], own.absolute[0], top)
                total += share
                base += share * (own.ratio[0] * own.scale[0])
                scale += share * own.scale[0]
        if total > 0.0:
            return max(base / total, least), max(scale / total, least), largest
    return 4.0 * FIRST * whole, FIRST * whole, 4.0 * FIRST * whole


@inlined
def _excess(place, groups, weights, awake):
    """Σ w (M_g − α T_g) over the awake groups."""
    excess, alpha = 0.0, place.parameters[ALPHA]
    for a in range(awake):
        own = widths_of(place, groups[a])
        excess += weights[a] * (own.missed[0] - alpha * own.rounds[0])
    return excess


@inlined
def _around(place, p, base, excess):
    """The ends around p, cut to the range: base · e^(η excess) away, or base · (1 + η excess)."""
    low, high = place.parameters[LOW], place.parameters[HIGH]
    shift = place.parameters[RATE] * excess
    if shift < -1.0:  # empty, even where so small a width would be lost beside p
        return high, low
    half = base * (math.exp(min(shift, 64.0)) if shift > 0.0 else 1.0 + shift)
    centre = clipped(p, low, high)
    return max(centre - half, low), min(centre + half, high)


@inlined
def _pinball(alpha, base, error):
    """What a half-width loses on an error; its mean is least at the (1 − α)-quantile of errors."""
    return (1.0 - alpha) * (error - base) if error > base else alpha * (base - error)


@inlined
def _learn(place, groups, weights, awake, p, low, high, y, base, scale, largest):
    """What a label does where low to high was issued, and the others are those of now."""
    alpha = place.parameters[ALPHA]
    missed = 0.0 if low <= y <= high else 1.0
    width = max(high - low, 0.0)
    error = abs(y - clipped(p, place.parameters[LOW], place.parameters[HIGH]))
    lost = _pinball(alpha, base, error)
    for a in range(awake):
        own, weight = widths_of(place, groups[a]), weights[a]
        own.rounds[0] += weight
        own.missed[0] += weight * missed
        own.width[0] += weight * width
        if own.clock[0] == 0.0:  # a newcomer begins with what the others say
            own.scale[0], own.ratio[0] = scale, clipped(base / scale, SMALLEST, 1.0 / alpha)
        own_base = own.ratio[0] * own.scale[0]
        gained = weight * ((lost - _pinball(alpha, own_base, error)) / largest)
        own.regret[0] += gained
        own.absolute[0] += abs(gained)
        own.clock[0] += weight
        clock = max(own.clock[0], 1.0)
        moved = weight * (1.0 - alpha if error > own_base else -alpha)
        ratio = own.ratio[0] * (1.0 + max(STEP, 1.0 / math.sqrt(clock)) * moved)
        own.ratio[0] = clipped(ratio, SMALLEST, 1.0 / alpha)
        share = weight * max(1.0 / (clock + 1.0), 1.0 / MEMORY)  # what it began with is one round
        own.scale[0] += share * (error - own.scale[0])


@entry
def issue(message, awake_message, p):
    """The ends of the interval around p, in order unless it is empty. Changes nothing."""
    place, awake = open_place(message), open_awake(awake_message)
    members = awake.groups, awake.weights, awake.count
    return _around(place, p, _base(place, *members)[0], _excess(place, *members))


@entry
def learn(message, awake_message, p, low, high, y):
    """What a label does where low to high was issued around p, now or long ago."""
    place, awake = open_place(message), open_awake(awake_message)
    members = awake.groups, awake.weights, awake.count
    _learn(place, *members, p, low, high, y, *_base(place, *members))


@lean
def learn_stream(message, indptr, groups, weights, labels, predictions, issued):
    """Both for every row of a stream whose labels come at once; NaN where nobody is awake."""
    place = open_place(message)
    for t in range(labels.size):
        part, awake = slice(indptr[t], indptr[t + 1]), indptr[t + 1] - indptr[t]
        issued[t, 0] = issued[t, 1] = math.nan
        if awake > 0:
            members = groups[part], weights[part], awake
            now = _base(place, *members)
            ends = _around(place, predictions[t], now[0], _excess(place, *members))
            issued[t, 0], issued[t, 1] = ends
            _learn(place, *members, predictions[t], *ends, labels[t], *now)


# The ends in the label's units.


@inlined
def _least(end, near, low, span):
    """The least y with (y − low) / span ≥ end, which is near: the first that counts as inside.

    Scaling rounds, and so does its inverse: without it a label could be inside by one count and
    outside by the other.
    """
    step = max((abs(near) + abs(low)) * 2.0**-54, 2.0**-1022)
    if (near - low) / span >= end:
        over, under = near, near - step
        while (under - low) / span >= end:
            step *= 2.0
            over, under = under, under - step
    else:
        under, over = near, near + step
        while (over - low) / span < end:
            step *= 2.0
            under, over = over, over + step
    while True:
        middle = under + 0.5 * (over - under)
        if not under < middle < over:
            return over
        if (middle - low) / span >= end:
            over = middle
        else:
            under = middle


@lean
def unscaled(issued, scaled, reach, low, span, out):
    """The ends of intervals in the label's units, where it is in ``reach``; NaN where empty.

    So are those between two doubles, which no label is in.
    """
    for t in range(issued.shape[0]):
        first, last = issued[t, 0], issued[t, 1]
        least, most = math.nan, math.nan
        if first <= last:
            least, most = reach
            if first > scaled[0]:
                least = _least(first, low + span * first, low, span)
            if last < scaled[1]:  # the greatest that is inside: mirrored, the least
                most = -_least(-last, -(low + span * last), -low, span)
            if least > most:
                least = most = math.nan
        out[t, 0], out[t, 1] = least, most
