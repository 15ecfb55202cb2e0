"""Adaptive adversaries against every certificate, with the best model known exactly.

    python -m tests.fuzz.adversary --seconds 600 --seed 1 --jobs 2

After a label: for every group whose certificate is proved, the true regret (what the plays lost,
less what the best linear model of the group did, in whole numbers) is at most the certificate, up
to 1e-9 (1 + Σ w y²) in squares of the range; best_loss is right up to 1e-9 Σ w y² + 1e-6 best.
Every prediction is finite and in range, and so is all that a snapshot holds. Some streams are then
played again in segments, with the same labels, and the same is claimed of that.
"""

import copy
import io
import math
import pickle
import tempfile
import zipfile
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.exact import least_squares
from tests.fuzz.runner import main

ROUNDING, TINY, EPSILON = 1e-9, 1e-250, 2.0**-52
BLUR, BENEATH = Fraction(1, 2**80), ", beneath rounding"
"""A claim that is wrong only against models whose terms are 1e12 times as large as the labels, as
where a column is what others add up to, rounded, is a violation of a kind of its own."""
GROUPS, MEANWHILE = 8, 3
"""So many groups are looked at in the end, and in a moment before: those of the smallest slack."""
STRETCHES = 1, 4, 9, 30
"""Lengths of the latest stretches that are asked for: two in the end, one in a moment before."""
PROVED = ("proved", "loose")
CLAIMED = (*PROVED, "vacuous")
"""The statuses under which the best loss must be right."""
DATE, TARGET = "when", "the label"
SCRATCH = Path("/dev/shm") if Path("/dev/shm").is_dir() else Path(tempfile.gettempdir())
MAY_BE_NAN = {"ledger.baseline_loss.npy", "recalibration.ledger.baseline_loss.npy"}
"""Where nobody is always on there is no baseline."""


def farthest(play, turn):
    """The end of the range that is farther from the prediction."""
    return 0.0 if play.prediction > 0.5 else 1.0


def nearest(play, turn):
    """The other one, until certainty has grown; then a blow."""
    return farthest(play, turn) if turn % 17 == 16 else 1.0 - farthest(play, turn)


def leader(play, turn):
    """What hurts the heaviest expert most."""
    return 0.0 if play.advice.ravel()[np.argmax(play.weights)] > 0.5 else 1.0


def target(play, turn):
    """What makes the play lose most to one expert."""
    return float(play.advice.ravel()[-1] > play.prediction)


def advised(play, turn):
    """Just what one expert says, and the others do not."""
    return float(np.clip(play.advice.ravel()[0], 0.0, 1.0))


def switching(play, turn):
    """One end for a long time, then the other."""
    return float(turn // 13 % 2)


def constant(play, turn):
    """Always the same."""
    return 1.0


def flip(play, turn):
    """Always the same, until it is not."""
    return float(turn < 20)


ADVERSARIES = (farthest, nearest, leader, target, advised, switching, constant, flip)


class Scaled:
    """A ticket's prediction, advice and weights, in units of the range."""

    def __init__(self, ticket, loss):
        low, span = loss.low, loss.high - loss.low
        self.prediction = (ticket.prediction - low) / span
        self.advice = (ticket.advice - low) / span
        self.weights = ticket.weights


class Labels:
    """Labels in units of the range, adaptive or a linear function of a column."""

    def __init__(self, draw, table):
        self.draw = draw
        self.adversary = draws.choose(draw, ADVERSARIES)
        self.share = draws.choose(draw, [0.0, 0.0, 0.05, 0.5])  # of pure noise
        self.truth = None
        if draw.random() < 0.4:
            column = draws.choose(draw, list(table.values()))
            low, high = column.min(), column.max()
            with np.errstate(all="ignore"):
                values = (column - low) / (high - low) if high > low else np.full(len(column), 0.3)
            if np.isfinite(values).all():
                self.truth = np.clip(
                    values + draws.choose(draw, [0.0, 0.0, 0.01]) * draw.normal(size=len(column)),
                    0,
                    1,
                )

    def __call__(self, ticket, loss, turn):
        if self.draw.random() < self.share or not ticket.names:
            return self.draw.random()
        if self.truth is not None:
            return float(self.truth[turn])
        return self.adversary(Scaled(ticket, loss), turn)


class Groups:
    """Declarations, their columns, and what of them becomes a feature."""

    def __init__(self, draw, rows):
        self.draw, self.rows = draw, rows
        self.declared: list[Any] = []
        self.fields: dict[str, list[Any]] = {}
        self.weights: list[str] = []
        self.texts: list[str] = []
        for _ in range(draws.choose(draw, [1, 2, 3], [4, 2, 1])):
            self.by(draws.choose(draw, [1, 2, 3, rows], [8, 8, 4, 1]))
        for _ in range(draws.choose(draw, [0, 1, 2])):
            self.weight()
        if draw.random() < 0.12:
            self.look_alikes(draws.choose(draw, [1, 3, 40, 300], [8, 8, 0.3, 0.05]))

    def by(self, values):
        """A column of text; later values appear later."""
        name = f"t{len(self.texts)}"
        newest = 1 + np.arange(self.rows) * values // self.rows
        column = [f"v{int(k)}" for k in self.draw.integers(0, newest)]
        absent = draws.choose(self.draw, [0.0, 0.0, 0.3])
        kept = self.draw.random(self.rows) >= absent
        self.fields[name] = [x if k else None for x, k in zip(column, kept, strict=True)]
        self.texts.append(name)
        self.declared.append(gw.by(name))

    def weight(self):
        """A fractional group, or one that is 0 or 1."""
        name = f"w{len(self.weights)}"
        values = self.draw.random(self.rows)
        kind = draws.choose(self.draw, ["fraction", "whole", "tiny"], [3, 2, 1])
        if kind == "whole":
            values = np.round(values)
        elif kind == "tiny":
            values = np.maximum(values ** draws.choose(self.draw, [5, 40, 5000]), 5e-324)
        self.fields[name] = values.tolist()
        self.weights.append(name)
        self.declared.append(gw.weight(name))

    def look_alikes(self, count):
        """Groups with the same rows as one that is there."""
        for _ in range(count):
            name = f"t{len(self.texts)}"
            self.fields[name] = self.fields["t0"]
            self.texts.append(name)
            self.declared.append(gw.by(name))


class Stream:
    """A model, the rows that it will get, and its features as they are defined."""

    def __init__(self, draw, kinds=draws):
        rows = int(
            draws.choose(draw, [draw.integers(4, 24), draw.integers(24, 60), 200], [14, 3, 0.05])
        )
        self.table = draws.columns(draw, rows, draws.choose(draw, [1, 2, 3, 4, 6]))
        self.groups = Groups(draw, rows)
        self.rows = rows
        self.loss = kinds.loss(draw)
        names = list(self.table)
        with_texts = bool(draw.random() < 0.5) and len(self.groups.texts) < 10
        self.makers = draws.makers(draw, self.groups.texts[:2], names, DATE)
        self.dates = draws.dates(draw, rows, draws.choose(draw, draws.DATES))
        taken = {name for one in self.makers for name in one.takes}
        self.features = [
            *names,
            *[name for name in self.groups.texts[:2] * with_texts if name not in taken],
        ]
        options: dict[str, Any] = {
            "groups": self.groups.declared,
            "learner": kinds.learners(draw),
            "loss": self.loss,
            "features": [*self.features, *self.makers],
            "indicators": bool(draw.random() < 0.4) and len(self.groups.texts) < 10,
            "clip": bool(draw.random() < 0.97),
            "always_on": bool(draw.random() < 0.8),
            "intersections": 2
            if 1 < len(self.groups.declared) < 4 and draw.random() < 0.15
            else None,
            "seed": int(draw.integers(1000)),
            **kinds.aggregation(draw, self.loss),
        }
        self.said = draws.predictions(draw, rows, self.loss.low, self.loss.high)
        options["experts"] = list(self.said)
        if with_texts:  # a text that is a feature is always there
            for name in self.groups.texts[:2]:
                self.groups.fields[name] = [value or "v0" for value in self.groups.fields[name]]
        if not isinstance(self.loss, gw.losses.Log) and draw.random() < 0.15:  # all by default
            options |= {"learner": None, "aggregator": None, "play": None}
        if draw.random() < 0.2:
            options["prior"] = {
                name: draws.choose(
                    draw, [draws.power_of_ten(draw, -6, 6), 1e308, 1e-308], [30, 1, 1]
                )
                for name in ("always_on", "t0=v0", "w0")
            }
        options.update(draws.intercept(draw.random() < 0.6))
        self.intercept = options.get("intercept", False)
        self.options = options
        if not isinstance(options["aggregator"], (gw.aggregators.AdaNormalHedge, draws.OwnHedge)):
            options["clip"] = True
        options["windows"] = draws.windows(options)
        self.model = gw.Groupwise(**options)

    @property
    def can_be_saved(self):
        """Are all its parts the library's own?"""
        parts = [*self.model.learners, self.model.aggregator]
        return not any(isinstance(part, (draws.Mean, draws.OwnHedge)) for part in parts)

    def row(self, t):
        """The t-th row as the model gets it."""
        numbers = {name: float(values[t]) for name, values in (self.table | self.said).items()}
        texts = {name: values[t] for name, values in self.groups.fields.items()}
        return {**numbers, **texts, **({DATE: self.dates[t]} if self.makers else {})}

    def defined(self, ticket):
        """The row of a ticket as its features are defined, {feature: number}; 0 is left out."""
        row, options = ticket.row, self.options
        found = {name: row[name] for name in self.table}
        made = {name: value for name, value in (ticket.derived or {}).items() if self.is_made(name)}
        found |= {name: value for name, value in made.items() if isinstance(value, float)}
        texts = self.groups.texts if options["indicators"] else self.features[len(self.table) :]
        levels = {name: row[name] for name in texts if row[name] is not None} | made
        found |= {(name, value): 1.0 for name, value in levels.items() if isinstance(value, str)}
        if options["indicators"]:
            found |= {(name,): float(row[name] > 0.0) for name in self.groups.weights}
        return {**found, "": 1.0} if self.intercept else found

    def is_made(self, name):
        """Is a field that was made a feature?"""
        return all(name not in one.takes for one in self.makers)


class Books:
    """Our own account of one group: every settled round, in units of the range.

    Rows are {feature: number}; what is not there is 0.
    """

    def __init__(self):
        self.rows, self.labels, self.weights = [], [], []
        self.lost, self.power, self.experts, self.said = [], [], [], []

    def add(self, weight, row, label, power, lost, experts, said=()):
        """A round: its features and label, what was played, what each learner lost, and others."""
        self.rows.append(row)
        self.labels.append(label)
        self.weights.append(weight)
        self.power.append(weight * power)
        self.lost.append(weight * lost)
        self.experts.append([weight * one for one in experts])
        self.said.append([weight * one for one in said])

    def part(self, start, stop):
        """That of some rounds."""
        found = Books()
        for name, values in vars(self).items():
            setattr(found, name, values[start:stop])
        return found

    def numbers(self):
        """The rows as lists, all of one length."""
        names = dict.fromkeys(name for row in self.rows for name in row)
        return [[row.get(name, 0.0) for name in names] for row in self.rows]

    def best(self, linear, span, blur=0):
        """What the best linear model, or else the best of the group's learners, lost."""
        if linear:
            exact = least_squares(self.numbers(), self.labels, self.weights, blur)
            return float(exact / Fraction(span) ** 2)
        return min(math.fsum(one) for one in zip(*self.experts, strict=True))


def loss_of(loss, prediction, label):
    """What a prediction loses, in the loss's units over those of ``unit``: squares of the range,
    the range, or nats; both numbers in the label's units.
    """
    if isinstance(loss, gw.losses.Log):
        parts = [(label, prediction, math.log), (1.0 - label, -prediction, math.log1p)]
        try:
            return -math.fsum(share * log(value) for share, value, log in parts if share > 0.0)
        except ValueError:
            return math.inf
    away = abs(prediction - label) / (loss.high - loss.low)
    return away * away if isinstance(loss, gw.losses.Square) else away


def lost_by_pair(play, label):
    """What a mean of probabilities loses: p = Σ p_i a_i and 1 − p = Σ p_i (1 − a_i), the pair that
    the guarantee is about. The prediction shown is the first of them, rounded.
    """
    pairs = list(
        zip(play.probabilities.ravel().tolist(), play.advice.ravel().tolist(), strict=True)
    )
    p, rest = math.fsum(c * a for c, a in pairs), math.fsum(c * (1.0 - a) for c, a in pairs)
    sides = (label, p, rest), (1.0 - label, rest, p)
    if any(share > 0.0 and value <= 0.0 for share, value, _ in sides):
        return math.inf
    return -math.fsum(
        share * (math.log1p(-other) if value > 0.5 else math.log(value))
        for share, value, other in sides
        if share > 0.0
    )


def unit_of(loss):
    """What ``loss_of`` is measured in."""
    if isinstance(loss, gw.losses.Log):
        return 1.0
    span = loss.high - loss.low
    return span * span if isinstance(loss, gw.losses.Square) else span


def said_now(model, ticket):
    """What learners say now of a ticket's row, with what was made of the row when it was issued."""

    class AsIssued:
        def make(self, row):
            return ticket.whole, ticket.derived

    makers = model._derived
    try:
        model._derived = None if makers is None else AsIssued()
        return model.preview(ticket.row)
    finally:
        model._derived = makers


def slack(line):
    """How far a certificate is from breaking, by the model's own account; what is vacuous last."""
    return line["status"] not in PROVED, line["certificate"] - line["regret"]


class Trial:
    """A stream being played, with our own books beside the model's."""

    def __init__(self, stream, found):
        self.stream, self.model, self.loss, self.found = stream, stream.model, stream.loss, found
        self.linear = "linear model" in self.model.regret().comparator
        self.books: dict[str, Books] = {}
        self.settled = 0

    def settle(self, ticket, label):
        """Give a ticket its label, and note the round."""
        now = ticket if self.linear else said_now(self.model, ticket)
        self.model.learn(ticket, label)
        loss, lost = self.loss, self.lost(ticket, label)
        row = self.stream.defined(ticket)
        power = (label / (loss.high - loss.low)) ** 2
        own = now.advice.shape[-1] - len(self.model.experts) if now.advice.ndim > 1 else 1
        advice = now.advice.reshape(len(now.names), own + len(self.model.experts))
        for (name, weight), said in zip(ticket.groups.items(), advice, strict=True):
            each = [loss_of(loss, float(a), label) for a in said]
            sums = weight, row, label, power, lost, each[:own], each[own:]
            self.books.setdefault(name, Books()).add(*sums)
        self.settled += 1

    def lost(self, ticket, label):
        """What was lost in a round, in expectation over the play's draw."""
        loss = self.loss
        if self.model.play == "sample":
            advice, odds = loss.decode_many(ticket.play.advice), ticket.play.probabilities
            each = [loss_of(loss, float(a), label) for a in advice.ravel()]
            chances = odds.ravel().tolist()
            return math.fsum(c * one for c, one in zip(chances, each, strict=True) if c > 0.0)
        if isinstance(loss, gw.losses.Log) and ticket.play.advice.size:
            return lost_by_pair(ticket.play, label)
        return loss_of(loss, ticket.prediction, label)

    def check(self, groups=GROUPS, stretches=STRETCHES[::2]):
        """Every claim of the regret table, now, for some groups and latest stretches."""
        table, linear = self.model.regret(), self.linear
        unit, span = unit_of(self.loss), self.loss.high - self.loss.low
        kind = type(self.loss).__name__
        for line in table:
            self.found.count(line["status"])
            if not 0.0 < unit < math.inf or not math.isfinite(line["certificate"]):
                fine = line["status"] not in PROVED
                self.found.require(fine, f"not finite, {kind}", line, self.describe())
        if not 0.0 < unit < math.inf:
            return
        claims = [line for line in table if line["status"] in CLAIMED]
        for line in sorted(claims, key=slack)[:groups]:
            books = self.books[line["group"]]
            best, power = books.best(linear, span), math.fsum(books.power)
            claimed, certificate = line["best_loss"] / unit, line["certificate"] / unit
            self.found.count("checked")
            about = (
                f"[{kind}, {self.settled} labels, {line['group']}, {line['status']}]",
                f"best {best:.6g}, claimed {claimed:.6g}, certificate {certificate:.6g},",
                f"lost {math.fsum(books.lost):.6g}; {self.describe()}",
            )
            size = power if linear else 1 + math.fsum(books.weights)
            near = ROUNDING * size + 1e-6 * best + TINY
            room = certificate - math.fsum(books.lost) + ROUNDING * (1 + size)
            right = abs(claimed - best) <= near
            held = line["status"] not in PROVED or -best <= room
            if right and held:
                continue
            blurred = books.best(linear, span, BLUR)
            if not right:
                beneath = best <= claimed + near and claimed <= blurred + near
                self.found.require(False, f"best loss, {kind}{BENEATH * beneath}", *about)
            if not held:
                beneath = -blurred <= room
                self.found.require(False, f"certificate, {kind}{BENEATH * beneath}", *about)

        self.check_experts(unit)
        if self.model.windows is not None:
            for last in stretches:
                self.check_recent(last, unit, span)

    def check_recent(self, last, unit, span):
        """What is claimed of the last rounds of every group, by the definition of windows."""
        for line in self.model.regret(last=last):
            books = self.books[line["group"]]
            clock, found = len(books.lost), [(len(books.lost), 0)]
            for level in range(10):
                length = self.model.windows.shortest << level
                rest = clock % length
                found += [(rest, 0)] if clock >= length else []
                found += [(rest + length, rest)] if clock >= 2 * length else []
            size, rest = min((one for one in found if one[0] >= last), default=found[0])
            about = f"[last {last}: {size}, {self.settled} labels]", line, self.describe()
            self.found.require(line["length"] == size, "length of a stretch", *about)
            self.found.count(f"recently: {line['status']}")
            lost = math.fsum(books.lost[clock - size :])
            weighed = math.fsum(books.weights[clock - size :])
            near = ROUNDING * (1 + weighed) + 1e-9 * lost + TINY
            # What was charged, and what was returned: as a double of the range it is coarser.
            coarse = EPSILON * max(abs(self.loss.low), abs(self.loss.high)) / span
            told = near + weighed * (2.0 + coarse) * coarse
            self.found.require(abs(line["loss"] / unit - lost) <= told, "recent loss", *about)
            if not self.linear or line["status"] not in CLAIMED:
                continue
            ends = [clock - size, *([clock - rest] if rest else []), clock]
            parts = [books.part(*pair) for pair in pairwise(ends)]
            power = math.fsum(math.fsum(part.power) for part in parts)
            near = ROUNDING * (1 + power) + TINY
            best = math.fsum(part.best(True, span) for part in parts)
            claimed, certificate = line["best_loss"] / unit, line["certificate"] / unit
            right = abs(claimed - best) <= near + 1e-6 * best
            held = lost - best <= certificate + near or line["status"] not in PROVED
            if right and held:
                continue
            blurred = math.fsum(part.best(True, span, BLUR) for part in parts)
            fine = best - near - 1e-6 * best <= claimed <= blurred + near + 1e-6 * blurred
            self.found.require(fine, "best of a stretch", best, blurred, *about)
            held = lost - blurred <= certificate + near or line["status"] not in PROVED
            self.found.require(held, "certificate of a stretch", lost, best, *about)

    def check_experts(self, unit):
        """The same of what is claimed against other models."""
        for k, name in enumerate(self.model.experts):
            for line in self.model.regret(against=name):
                books = self.books[line["group"]]
                theirs, ours = math.fsum(one[k] for one in books.said), math.fsum(books.lost)
                near = ROUNDING * (1 + math.fsum(books.weights)) + 1e-9 * (theirs + ours) + TINY
                about = f"[{name}, {self.settled} labels]", line, theirs, ours, self.describe()
                right = abs(line["best_loss"] / unit - theirs) <= near
                self.found.require(right or not self.model.clip, "expert's loss", *about)
                held = ours - theirs <= line["certificate"] / unit + near
                claimed = line["status"] in PROVED
                self.found.require(held or not claimed, "certificate against an expert", *about)
                self.found.count(f"against: {line['status']}")

    def describe(self):
        """The stream, in a few words."""
        learners = ", ".join(
            f"Ridge({one.penalty:.2g}{', forward' * one.forward}, {one.forgetting}"
            f"{f', {one.everybody}' if one.everybody else ''})"
            if isinstance(one, gw.learners.Ridge)
            else type(one).__name__
            for one in self.model.learners
        )
        makers = f"; {self.stream.makers}" if self.stream.makers else ""
        low, high = self.loss.low, self.loss.high
        return f"{learners}; {', '.join(self.stream.table)}{makers}; range {low:.3g} to {high:.3g}"

    def predict(self, t):
        """A ticket, or None where the row was refused."""
        try:
            ticket = self.model.predict(self.stream.row(t))
        except gw.errors.FeatureError:
            self.found.count("refused")
            return None
        p, loss = ticket.prediction, self.loss
        beyond = 1e-12 * (abs(loss.low) + abs(loss.high))
        fine = math.isfinite(p) and np.isfinite(ticket.advice).all()
        self.found.require(fine, "prediction not finite", p, self.describe())
        if self.model.clip:
            fine = loss.low - beyond <= p <= loss.high + beyond
            self.found.require(fine, "prediction out of range", p, self.describe())
        return ticket


def check_state(model, found, *about):
    """All that a snapshot holds is finite."""
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        path = Path(folder) / "model.gw"
        model.save(path)
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".npy") and name not in MAY_BE_NAN:
                    array = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
                    found.require(np.isfinite(array).all(), "state not finite", name, *about)
        if not found.violations:
            gw.load(path)
    found.count("states")


def case(draw, found):
    """One stream."""
    play(draw, found, draws, Trial)


def play(draw, found, kinds, trial_of):
    """A stream with losses and learners of some kinds, looked at by a trial."""
    try:
        stream = Stream(draw, kinds)
    except gw.errors.ConfigurationError:
        found.count("configurations refused")
        return
    trial, labels = trial_of(stream, found), Labels(draw, stream.table)
    segment = draws.segment(draw, stream.rows, 0.1)
    late = draws.choose(draw, [0.0, 0.5, 0.9], [4, 1, 1])
    often = draws.choose(draw, [1.0, 0.05, 0.0], [0.1, 4, 4])
    outstanding: list[Any] = []
    rounds: list[Any] = []
    span = stream.loss.high - stream.loss.low
    for t in range(stream.rows):
        ticket = trial.predict(t)
        if ticket is None:
            continue
        label = stream.loss.low + span * labels(ticket, stream.loss, t)
        outstanding.append((ticket, min(max(label, stream.loss.low), stream.loss.high)))
        while outstanding and draw.random() >= late:
            rounds.append(outstanding.pop(int(draw.integers(len(outstanding)))))
            trial.settle(*rounds[-1])
            if draw.random() < often:
                trial.check(MEANWHILE, [draws.choose(draw, STRETCHES)])
    for place in draw.permutation(len(outstanding)).tolist():
        trial.settle(*outstanding[place])
    trial.check(GROUPS, draw.choice(STRETCHES, 2, replace=False).tolist())
    if draw.random() < 0.06 and stream.can_be_saved:
        check_state(stream.model, found, trial.describe())
    found.count("labels", trial.settled)
    comparable = trial.linear and late == 0.0 and 0.0 < unit_of(stream.loss) < math.inf
    if segment and rounds and comparable:
        in_segments(draw, trial, trial_of, rounds, segment)


def in_segments(draw, trial, trial_of, rounds, segment):
    """The same rows and labels in segments, by a model that also learns in loops and is copied."""
    stream, found, model = trial.stream, trial.found, gw.Groupwise(**trial.stream.options)
    at = draws.choose(draw, ["stream", "segment"])
    told = [{**ticket.row, TARGET: label} for ticket, label in rounds]
    rows = polars.DataFrame(told, infer_schema_length=None)
    lost: list[float] = []
    while len(lost) < len(rounds):
        start = len(lost)
        if draw.random() < 0.3:
            row, label = rounds[start][0].row, rounds[start][1]
            ticket = model.predict(row)
            model.learn(ticket, label)
            lost.append(trial.lost(ticket, label))
        else:
            stop = len(rows) if draw.random() < 0.5 else int(draw.integers(start, len(rows))) + 1
            about = {"segment": segment, "aggregators_at": at, "jobs": int(draw.integers(1, 3))}
            try:
                result = model.replay(rows[start:stop], TARGET, **about)
            except gw.errors.ConfigurationError:
                found.count("segments refused")
                return
            lost += (result.expected_loss / unit_of(stream.loss)).tolist()
        if draw.random() < 0.2:
            model = pickle.loads(pickle.dumps(model))
    again = trial_of(stream, found)
    again.model, again.settled, again.books = model, len(rounds), copy.deepcopy(trial.books)
    for books in again.books.values():
        books.lost = []
    for (ticket, _), one in zip(rounds, lost, strict=True):
        for name, weight in ticket.groups.items():
            again.books[name].lost.append(weight * one)
    again.check()
    found.count(f"in segments, aggregators at {at}")


if __name__ == "__main__":
    main("tests.fuzz.adversary")
