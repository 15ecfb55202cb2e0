"""Certificates that hold in expectation, over many seeds of the same game.

    python -m tests.fuzz.expectation --seconds 600 --seed 1 --jobs 2

Follow the perturbed leader with actions and with policies, against opponents who know all earlier
plays; a learner in Python that draws; labels that are paid for. The mean over the seeds of regret
less certificate, both by our own books where there are any, is at most 0, up to five standard
errors; what the table says that was lost, and that the best would have lost, is so.
"""

import math

import numpy as np

import groupwise as gw
from tests.fuzz import draws
from tests.fuzz.exact import least_squares
from tests.fuzz.runner import main

SEEDS = 24
DEVIATIONS = 5.0
ROUNDING = 1e-9
GROUPS = ("a", "w")


def people(draw, count):
    """Rows: a group by name, and a fractional one."""
    names = draw.choice(["x", "y"], count).tolist()
    weights = draws.choose(draw, [draw.random(count), np.round(draw.random(count))]).tolist()
    return [{"a": a, "w": w} for a, w in zip(names, weights, strict=True)]


def declared():
    """The groups of every game."""
    return [gw.by("a"), gw.weight("w")]


class Books:
    """What was lost in each group, and what each of the class would have lost."""

    def __init__(self):
        self.lost, self.rivals = {}, {}

    def add(self, groups, lost, rivals):
        """A round."""
        for name, weight in groups.items():
            self.lost[name] = self.lost.get(name, 0.0) + weight * lost
            self.rivals[name] = self.rivals.get(name, 0.0) + weight * np.asarray(rivals)


def check_mean(found, name, excess, *about):
    """The mean over seeds of what must be at most 0 in expectation."""
    mean, spread = np.mean(excess), np.std(excess) / math.sqrt(len(excess))
    text = f"mean {mean:.4g}, standard error {spread:.4g};"
    fine = mean <= DEVIATIONS * spread + ROUNDING
    found.count("means")
    found.require(fine, name, text, *about)


def of_actions(draw, found):
    """Actions or policies, with a class that can be listed."""
    count = int(draw.integers(10, 80))
    rows = people(draw, count)
    game = (Actions if draw.random() < 0.5 else Policies)(draw, rows)
    bad = draws.choose(draw, [0.0, 0.5, 1.0])  # how often the opponent answers the last play
    excess: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        model, books, last = game.model(seed), Books(), None
        for t, row in enumerate(rows):
            ticket = model.predict(row)
            label = game.labels[t]
            if last is not None and draw.random() < bad:
                label = game.against(last, row)
            model.learn(ticket, label)
            books.add(ticket.groups, game.loss(ticket.prediction, label), game.rivals(row, label))
            last = ticket.prediction
        for line in model.regret():
            name = line["group"]
            lost, best = books.lost[name], books.rivals[name].min()
            scale = 1.0 + abs(lost)
            about = f"{game.about}, {count} rounds, seed {seed}, {line}"
            fine = abs(line["realised_loss"] - lost) <= ROUNDING * scale
            found.require(fine, "realised loss", f"{lost};", about)
            found.require(
                abs(line["best_loss"] - best) <= ROUNDING * scale, "best loss", f"{best};", about
            )
            known = line["status"].startswith(("in expectation", "vacuous"))
            found.require(known, "status", about)
            excess.setdefault(name, []).append(lost - best - line["certificate"])
    for name, values in excess.items():
        check_mean(found, f"certificate of {game.about}", values, name, f"{count} rounds")


class Actions:
    """Online linear optimisation over a table of actions."""

    about = "actions"

    def __init__(self, draw, rows):
        self.size = int(draw.integers(1, 5))
        table = draw.integers(0, 2, (int(draw.integers(2, 6)), self.size)).astype(float)
        self.table = table if draw.random() < 0.5 else np.eye(max(2, self.size))
        self.size = self.table.shape[1]
        self.high = float(max(1.0, self.table.sum(axis=1).max()))
        self.labels = draw.random((len(rows), self.size)).tolist()
        self.horizon = draws.choose(draw, [None, float(len(rows))])

    def model(self, seed):
        oracle = gw.oracles.Finite(self.table)
        learner = gw.learners.FTPL(oracle, cost_norm=float(self.size), horizon=self.horizon)
        loss = gw.losses.Linear(0.0, self.high)
        return gw.Groupwise(declared(), learner, loss=loss, seed=seed)

    def against(self, last, row):
        return np.asarray(last, dtype=float).tolist()

    def loss(self, action, label):
        return float(np.dot(action, label))

    def rivals(self, row, label):
        return self.table @ np.asarray(label)


class Policies:
    """Classification by a table of policies; the context is the number of its column."""

    about = "policies"

    def __init__(self, draw, rows):
        contexts = int(draw.integers(1, 5))
        self.table = draw.integers(0, 2, (int(draw.integers(2, 7)), contexts))
        self.labels = draw.integers(0, 2, len(rows)).tolist()
        for row in rows:
            row["x"] = int(draw.integers(contexts))

    def model(self, seed):
        oracle = gw.oracles.FiniteClass(self.table.tolist())
        contexts = [[x] for x in range(self.table.shape[1])]
        learner = gw.learners.ContextualFTPL(oracle, contexts)
        return gw.Groupwise(
            declared(), learner, loss=gw.losses.ZeroOne(), features=["x"], seed=seed
        )

    def against(self, last, row):
        return 1 - int(last)

    def loss(self, action, label):
        return float(action != label)

    def rivals(self, row, label):
        return self.table[:, row["x"]] != label


class Drawing:
    """A learner in Python that draws: the mean of the labels so far, shaken."""

    randomised = True

    def __init__(self, noise=0.3):
        self.noise, self.shift = noise, 0.0
        self.weight, self.total = 1.0, 0.5

    def draw(self, key):
        self.shift = self.noise * np.random.default_rng(key).uniform(-1, 1)

    def advise(self, row, weight):
        return self.total / self.weight + self.shift

    def update(self, row, label, weight):
        self.weight += weight
        self.total += weight * label


def of_python(draw, found):
    """Learners and an aggregator in Python, one of them drawing, against their own best."""
    count = int(draw.integers(5, 40))
    rows, labels = people(draw, count), draw.random(count)
    aggregator = draws.choose(draw, [draws.OwnHedge(), gw.aggregators.AdaNormalHedge()])
    excess: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        model = gw.Groupwise(
            declared(), [Drawing(), draws.Mean()], aggregator, gw.losses.Absolute(), seed=seed
        )
        books = Books()
        for row, label in zip(rows, labels.tolist(), strict=True):
            ticket = model.predict(row)
            label = label if draw.random() < 0.5 else float(ticket.prediction < 0.5)
            model.learn(ticket, label)
            lost = abs(ticket.prediction - label)
            for name, said in zip(ticket.names, ticket.advice.reshape(-1, 2), strict=True):
                books.add({name: ticket.groups[name]}, lost, np.abs(said - label))
        for line in model.regret():
            best = books.rivals[line["group"]].min()
            regret = books.lost[line["group"]] - best
            fine = abs(line["best_loss"] - best) <= ROUNDING * (1 + best)
            found.require(fine, "best loss", best, line)
            found.require(line["status"].startswith(("in expectation", "vacuous")), "status", line)
            excess.setdefault(line["group"], []).append(regret - line["certificate"])
    for name, values in excess.items():
        check_mean(found, "certificate of Python parts", values, name, f"{count} rounds")


def of_payments(draw, found):
    """Labels that are paid for: one round of each block, drawn in advance, stands for the block."""
    count = draws.choose(draw, [27, 64, 125])
    rows = people(draw, count)
    width = int(draw.integers(1, 4))
    x = draw.uniform(-1, 1, (count, width))
    x[:, 0] = 1.0
    labels = np.clip(x @ draw.normal(size=width) + 0.3 * draw.normal(size=count), 0, 1).tolist()
    names = [f"x{j}" for j in range(width)]
    for row, values in zip(rows, x.tolist(), strict=True):
        row.update(zip(names, values, strict=True))
    learner, aggregation = draws.ridge(draw), draws.aggregation(draw, gw.losses.Square())
    excess: dict[str, list[float]] = {}
    bias: dict[str, list[float]] = {}
    for seed in range(SEEDS):
        model = gw.Groupwise(
            declared(),
            learner,
            features=names,
            indicators=False,
            seed=seed,
            **aggregation,
            **draws.intercept(False),
        )
        paying, books = gw.PayForFeedback(model, horizon=count), Books()
        for row, label in zip(rows, labels, strict=True):
            ticket = paying.predict(row)
            books.add(ticket.groups, expected(ticket, label, model.play), 0.0)
            if ticket.wants_label:
                paying.learn(ticket, label)
        for line in paying.regret():
            known = line["status"] in ("estimated", "vacuous", "numerically uncertain")
            found.require(known, "status", line)
            name = line["group"]
            room = line["certificate"] - line["payments"]
            excess.setdefault(name, []).append(
                books.lost[name] - best_of(rows, x, labels, name) - room
            )
            bias.setdefault(name, []).append(line["loss"] - books.lost[name])
    about = f"{learner}, {type(aggregation['aggregator']).__name__}, {count} rounds"
    for name, values in excess.items():
        if len(values) == SEEDS:  # groups that every seed has explored
            check_mean(found, "certificate of paid labels", values, name, about)
            check_mean(found, "estimate of paid labels", bias[name], name, about)
            check_mean(found, "estimate of paid labels", [-b for b in bias[name]], name, about)


def expected(ticket, label, play):
    """What a ticket loses, over the aggregator's draw where there is one."""
    if play == "sample":
        return float(np.sum(ticket.weights * (ticket.advice - label) ** 2))
    return (ticket.prediction - label) ** 2


def best_of(rows, x, labels, group):
    """The best linear model of a group on all its rows."""
    if group == "always_on":
        weights = [1.0] * len(rows)
    elif group == "w":
        weights = [row["w"] for row in rows]
    else:
        weights = [float(f"a={row['a']}" == group) for row in rows]
    return float(least_squares(x.tolist(), labels, weights))


def case(draw, found):
    """One game, many seeds."""
    draws.choose(draw, [of_actions, of_python, of_payments], [4, 1, 2])(draw, found)


if __name__ == "__main__":
    main("tests.fuzz.expectation")
