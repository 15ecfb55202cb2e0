"""What programs draw: columns of every kind, learners, aggregators, models."""

import datetime
import inspect
from typing import Any
from zlib import crc32

import numpy as np

import groupwise as gw

HAS_INTERCEPT = "intercept" in inspect.signature(gw.Groupwise).parameters
"""Do models have a constant feature of their own?"""


def intercept(wanted) -> dict[str, Any]:
    """The option of models that says so."""
    return {"intercept": bool(wanted)} if HAS_INTERCEPT else {}


def choose(draw, options, weights=None):
    """One of a list, which may hold anything; with odds where they differ."""
    odds = None if weights is None else np.array(weights) / sum(weights)
    return options[int(draw.choice(len(options), p=odds))]


def power_of_ten(draw, low, high):
    """10 to a power between ``low`` and ``high``."""
    return 10.0 ** draw.uniform(low, high)


def calm(draw, rows, known):
    """Between −1 and 1."""
    return draw.uniform(-1, 1, rows)


def constant(draw, rows, known):
    """The same everywhere, small or large."""
    return np.full(rows, choose(draw, [1.0, -3.0, 0.1, power_of_ten(draw, -20, 20)]))


def offset(draw, rows, known):
    """Far from 0, for how much it varies; to a hundred million times."""
    return power_of_ten(draw, 1, 8) + draw.uniform(0, 1, rows)


def timestamp(draw, rows, known):
    """Seconds since 1970, in order or not, and 0 where they are missing."""
    times = 1.7e9 + np.cumsum(draw.exponential(power_of_ten(draw, 0, 5), rows))
    times = times if draw.random() < 0.7 else draw.permutation(times)
    times = np.round(times) if draw.random() < 0.5 else times
    return np.where(draw.random(rows) < choose(draw, [0.0, 0.0, 0.2]), 0.0, times)


def scaled(draw, rows, known, low=-150, high=100):
    """In units that are far too small or large."""
    return power_of_ten(draw, low, high - 1) * draw.normal(size=rows)


def amounts(draw, rows, known):
    """Over many orders of magnitude."""
    return np.exp(draw.normal(0, power_of_ten(draw, 0, 0.8), rows))


def counts(draw, rows, known):
    """Whole numbers."""
    return draw.integers(0, choose(draw, [2, 10, 3000]), rows).astype(float)


def sparse(draw, rows, known):
    """Mostly 0."""
    return np.where(draw.random(rows) < 0.2, power_of_ten(draw, -3, 6), 0.0)


def duplicate(draw, rows, known):
    """Another column again, perhaps in other units."""
    return choose(draw, known) * choose(draw, [1.0, 1.0, 2.0, -1.0, 1e-3, 1e6, 1 / 3])


def combination(draw, rows, known):
    """What other columns add up to, rounded."""
    return choose(draw, known) + draw.choice([1.0, -1.0, 0.3]) * choose(draw, known)


def complement(draw, rows, known):
    """What is missing to 1."""
    return 1.0 - choose(draw, known)


def faint(draw, rows, known):
    """So small that squares vanish, and digits of the numbers themselves; zeros of either sign."""
    values = draw.integers(-5, 6, rows) * power_of_ten(draw, -323, -160)
    return np.where(draw.random(rows) < choose(draw, [0.0, 0.0, 0.9]), -0.0, values)


def jump(draw, rows, known):
    """In other units from some row on."""
    sizes = [power_of_ten(draw, -8, 12), power_of_ten(draw, -8, 12)]
    return draw.normal(size=rows) * np.where(np.arange(rows) < draw.integers(rows + 1), *sizes)


FIRST = (calm, constant, offset, timestamp, scaled, amounts, counts, sparse)
RARE = (faint, jump)
FURTHER = (duplicate, combination, complement)
NEED_OTHERS = tuple(kind.__name__ for kind in FURTHER)


def columns(draw, rows, width, limits=(-150, 100)):
    """Columns as {name: numbers}; a name says of which kind a column is."""
    gentle = draw.random() < 0.25
    found: dict[str, np.ndarray] = {}
    while len(found) < width:
        kinds = (calm, counts, constant) if gentle else FIRST if draw.random() < 0.95 else RARE
        kind = choose(draw, kinds if not found or draw.random() < 0.7 else FURTHER)
        about = {"low": limits[0], "high": limits[1]} if kind is scaled else {}
        values = kind(draw, rows, list(found.values()), **about)
        if np.abs(values).max(initial=0.0) < 10.0 ** limits[1]:
            found[f"{kind.__name__}{len(found)}"] = values
    return found


def ridge(draw):
    """A ridge learner; penalties are mostly moderate."""
    return gw.learners.Ridge(
        penalty=choose(draw, [1.0, power_of_ten(draw, -3, 3), power_of_ten(draw, -9, 9)]),
        forward=bool(draw.random() < 0.4),
        forgetting=choose(draw, [1.0, 0.5, 0.9, 0.99, 0.9999], [6, 1, 1, 1, 1]),
        everybody=choose(draw, [False, True, "only"], [3, 1, 1]),
    )


def logistic(draw):
    """A logistic learner; some keep hardly any rows."""
    return gw.learners.Logistic(
        penalty=choose(draw, [1.0, power_of_ten(draw, -3, 3), power_of_ten(draw, -9, 9)]),
        bound=choose(draw, [8.0, 8.0, 4.0, 1.0, 12.0, 20.0]),
        keep_rows=int(choose(draw, [2000, 0, 5, 20])),
    )


def learners(draw, one=ridge):
    """One learner of a kind or a few, and rarely one that is written in Python."""
    found: list[Any] = [one(draw) for _ in range(choose(draw, [1, 2, 3], [5, 2, 1]))]
    return [*found, Mean()] if draw.random() < 0.03 else found


class ByName:
    """A function that names the learners of a group: one of some lists, by the group's name."""

    def __init__(self, lists, everybody):
        self.lists, self.everybody = lists, everybody

    def __call__(self, group):
        if group.name == "always_on":
            return self.everybody
        return self.lists[crc32(group.name.encode()) % len(self.lists)]


def learners_by_group(draw, declarations, always_on, one=ridge):
    """Different learners for different groups: by declaration and by name, or by a function.

    The always-on group has all of those that others lean to.
    """
    lists = [learners(draw, one) for _ in range(int(draw.integers(2, 5)))]
    lean = [x for some in lists for x in some if getattr(x, "everybody", False)]
    everybody = [*learners(draw, one), *lean]
    if lean and not any(isinstance(x, gw.learners.Ridge) for x in everybody):
        everybody = lean
    if draw.random() < 0.4:
        return ByName(lists, everybody)
    keys = [*(x for x in declarations if draw.random() < 0.6), ...]
    keys += ["a=v0"] if gw.by("a") in declarations else []
    keys += ["b=v1"] if gw.by("b") in declarations else []
    found = {key: choose(draw, lists) for key in keys}
    return {**found, "always_on": everybody} if always_on else found


def makers(draw, texts, numbers, date, often=0.35):
    """Makers of features: mostly none; of columns of text, of numbers, and one of dates.

    Keys are few at times, and knots are set early: streams are short.
    """
    if draw.random() >= often:
        return []
    found: list[Any] = []
    makes = [draw.random() < 0.4 for _ in range(4)]
    if makes[0]:
        parts = choose(draw, [("weekday",), ("hour", "elapsed"), ("month", "elapsed"), ()])
        found.append(gw.calendar(date, parts=parts, aside=("day",)))
    levels: list[Any] = [None, *texts, *(("weekday",) if makes[0] and "weekday" in parts else ())]
    levels = [f"{date} {one}" if one == "weekday" else one for one in levels]
    if makes[1] or not any(makes):
        of = choose(draw, [None, *texts])
        by = choose(draw, [one for one in levels if one is None or one != of])
        keys = choose(draw, [1 << 16, 2])
        found.append(past(draw, by, of, keys))
    if makes[2] and texts:
        strength = choose(draw, [10.0, 0.5, power_of_ten(draw, -9, 9)])
        found.append(gw.encoded(choose(draw, list(texts)), strength, choose(draw, [1 << 16, 2])))
    if makes[3]:
        made = [name for one in found for name in one.fields if one.kind in ("past", "encoded")]
        columns = [name for name in (*numbers, *made) if draw.random() < 0.5]
        knots = choose(draw, [[(3, 2)], [(2, 1), (9, 4)], [(8, [0.05, 0.5, 0.95])]])
        found.append(gw.hinges(columns or None, knots))
    return found


def past(draw, by, of, keys):
    """The past of the label."""
    lags: Any = choose(draw, [[1], [1, 2], [3], [1, 2, 3], []])
    mean: Any = choose(draw, [[0.9], [0.5, 0.99], [1.0], []])
    if not lags and not mean:
        lags = [2]
    return gw.past("y", lags, mean, by, of, rises=bool(draw.random() < 0.4), keys=keys)


DATES = "moment", "day", "text"


def dates(draw, rows, kind):
    """Moments of one kind, mostly in order, and some of them missing."""
    start = datetime.datetime(2023, 12, 29, 20, 15)
    step = choose(draw, [1.0, 95.0, 1440.0, 43_200.0])
    minutes = np.cumsum(draw.exponential(step, rows)).round()
    minutes = minutes if draw.random() < 0.7 else draw.permutation(minutes)
    found: list[Any] = [start + datetime.timedelta(minutes=one) for one in minutes.tolist()]
    if kind == "day":
        found = [one.date() for one in found]
    elif kind == "text":
        found = [one.isoformat() for one in found]
    absent = choose(draw, [0.0, 0.0, 0.3])
    return [None if draw.random() < absent else one for one in found]


def predictions(draw, rows, low, high):
    """What other models say of rows, {name: numbers}: mostly none, near the range or far off."""
    span, found = high - low, {}
    for k in range(choose(draw, [0, 1, 2], [6, 2, 1])):
        wide = choose(draw, [0.2, 1.0, 1e6])
        said = low + span * (0.5 + wide * draw.normal(size=rows))
        found[f"said{k}"] = np.where(np.isfinite(said), said, high)
    return found


def windows(options):
    """Windows in one of eight models that can have them, very short ones; by the model's seed."""
    seed, own = options["seed"], options["aggregator"]
    chance = isinstance(options["loss"], gw.losses.Log) or isinstance(own, OwnHedge)
    return False if chance or seed % 8 else gw.Windows(1 << seed // 8 % 3)


def segment(draw, rows, often=1 / 3):
    """The rows of a segment, so often, else None; nothing else is drawn otherwise."""
    (aside,) = draw.spawn(1)
    if aside.random() >= often:
        return None
    return choose(aside, [1, 2, 7, 31, rows, 2 * rows], [1, 1, 1, 1, 0.5, 0.5])


class Mean:
    """A learner in Python: the mean of the labels so far."""

    def __init__(self):
        self.weight, self.total = 1.0, 0.5

    def advise(self, row, weight):
        return self.total / self.weight

    def update(self, row, label, weight):
        self.weight += weight
        self.total += weight * label


class OwnHedge:
    """An aggregator in Python: AdaNormalHedge from its definition, in logarithms of base e."""

    def log_weights(self, regret, absolute, loss):
        after, before = (
            np.maximum(regret + d, 0.0) ** 2 / (3.0 * (absolute + 1.0)) for d in (1, -1)
        )
        with np.errstate(divide="ignore"):
            return after + np.log(-np.expm1(before - after))

    def bound(self, regret, absolute, prior, loss):
        potential = 1.0 + 1.5 * np.sum(prior * (1.0 + np.log1p(absolute)))
        return np.sqrt(3.0 * absolute * np.log(potential / prior))

    def plays(self, loss):
        return "mean", "sample"


def label_range(draw):
    """Ends of a range; often not 0 and 1."""
    width = choose(
        draw, [1.0, 7.0, power_of_ten(draw, -3, 4), power_of_ten(draw, -320, 308)], [20, 20, 20, 1]
    )
    near = choose(draw, [0.0, 0.0, -0.5, -2.0, 3.0, 40.0])
    far = choose(draw, [-1.0, 1.0]) * power_of_ten(draw, 3, 15)
    low = width * choose(draw, [near, far], [30, 1])
    return low, low + width


def loss(draw):
    """Square loss mostly."""
    low, high = label_range(draw)
    return choose(
        draw,
        [
            gw.losses.Square(low, high),
            gw.losses.Absolute(low, high),
            gw.losses.Log(),
            gw.losses.Log(floor=choose(draw, [0.3, 0.01, 1e-6])),
        ],
        [12, 2, 3, 2],
    )


def aggregation(draw, loss):
    """An aggregator and its play, sound for a loss."""
    hedge: list[Any] = [(gw.aggregators.AdaNormalHedge(), play) for play in ("mean", "sample")]
    special = (gw.aggregators.Specialists(), None)
    prod = (gw.aggregators.Prod(), None)
    if loss.bounded and draw.random() < 0.03:
        hedge = [(OwnHedge(), play) for play in ("mean", "sample")]
    floored = isinstance(loss, gw.losses.Log) and loss.bounded
    options = hedge * loss.bounded + [special] * 2 * (loss.eta is not None and not floored)
    options += [prod] * 2 * isinstance(loss, gw.losses.Square)
    aggregator, play = choose(draw, options)
    return {"aggregator": aggregator, "play": play}
