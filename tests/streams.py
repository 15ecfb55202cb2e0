"""Algorithm 1 from its definition, and streams to run it on; shared by the tests.

Nothing here uses groupwise: every quantity is recomputed from the whole past in every round, with
plain formulas.
"""

import math
from typing import NamedTuple

import numpy as np

WIDTH = 48
"""More features than any stream of the tests has."""


def philox(counter, key):
    """Philox4x32-10 in Python's integers (Salmon and others, 2011)."""
    c, k = list(counter), list(key)
    for _ in range(10):
        high_0, low_0 = divmod(0xD2511F53 * c[0], 1 << 32)
        high_1, low_1 = divmod(0xCD9E8D57 * c[2], 1 << 32)
        c = [high_1 ^ c[1] ^ k[0], low_1, high_0 ^ c[3] ^ k[1], low_0]
        k = [(k[0] + 0x9E3779B9) % (1 << 32), (k[1] + 0xBB67AE85) % (1 << 32)]
    return c


def aggregator_level(seed, number):
    """The number in [0, 1) that decides which expert a ticket's draw takes."""
    words = philox(
        [number % (1 << 32), number >> 32, 0xFFFFFFFF, 0], [seed % (1 << 32), seed >> 32]
    )
    return ((words[0] >> 5) * (1 << 26) + (words[1] >> 6)) / (1 << 53)


def hedge_weight(regret, absolute):
    """AdaNormalHedge's w(R, C), by its definition."""

    def potential(r, c):
        return math.exp(max(r, 0.0) ** 2 / (3 * c))

    return (potential(regret + 1, absolute + 1) - potential(regret - 1, absolute + 1)) / 2


class Said(NamedTuple):
    """A round as it was played, scaled to [0, 1]: a row per awake group, a column per learner."""

    groups: dict
    advice: np.ndarray
    weights: np.ndarray
    prediction: float


class BruteForce:
    """One ridge per group and learner, refitted from scratch each round, under an aggregator.

    ``learners`` are (penalty, forward) pairs; ``aggregator`` is "mean" or "sample" (AdaNormalHedge
    with that play) or "specialists". Rows are {feature: value}, memberships {group: weight}.
    """

    def __init__(
        self,
        learners=((1.0, False),),
        aggregator="mean",
        low=0.0,
        high=1.0,
        clip=True,
        prior=(),
        seed=0,
    ):
        self.learners, self.aggregator, self.clip = learners, aggregator, clip
        self.low, self.span, self.seed = low, high - low, seed
        self.mass = dict(prior)
        self.columns, self.seen = {}, []
        self.rows, self.memberships, self.labels = [], [], []
        self.gains, self.expert_losses = [], []
        self.played_losses, self.drawn_losses, self.recomputed_losses = [], [], []

    def predict(self, number, row, groups):
        """Advice, weights and play as of now; changes nothing but the numbering of columns."""
        x = self._dense(row)
        if not groups:
            return Said({}, np.empty((0, len(self.learners))), np.empty(0), 0.5)
        advice = np.array(
            [[self._ridge(g, x, w, *k) for k in self.learners] for g, w in groups.items()]
        )
        if self.clip:
            advice = np.clip(advice, 0.0, 1.0)
        weights = np.array(
            [
                [
                    self.mass.get(g, 1.0) * w * self._potential(g, k)
                    for k in range(len(self.learners))
                ]
                for g, w in groups.items()
            ]
        )
        if not weights.any():
            weights = np.array(
                [[self.mass.get(g, 1.0) * w] * len(self.learners) for g, w in groups.items()]
            )
        weights = weights / weights.sum()
        return Said(dict(groups), advice, weights, self._play(number, advice, weights))

    def learn(self, number, row, groups, label, said):
        """Settle a round that was played as ``said``; the update uses the advice as of now."""
        y = (label - self.low) / self.span
        now = self.predict(number, row, groups)
        if not groups:
            return
        charged = self._charged(now, y)
        losses = (now.advice - y) ** 2
        weights = np.array(list(groups.values()))
        for group in groups:
            if group not in self.seen:
                self.seen.append(group)
        self.gains.append(dict(zip(groups, weights[:, None] * (charged - losses), strict=True)))
        self.expert_losses.append(dict(zip(groups, weights[:, None] * losses, strict=True)))
        self.rows.append(self._dense(row))
        self.memberships.append(dict(groups))
        self.labels.append(y)
        self.played_losses.append(self._charged(said, y))
        self.drawn_losses.append((said.prediction - y) ** 2)
        self.recomputed_losses.append(charged)

    def table(self):
        """What the regret table should say, by group."""
        unit = self.span**2
        count = len(self.learners)
        masses = {g: self.mass.get(g, 1.0) for g in self.seen}
        prior = {g: m / sum(masses.values()) / count for g, m in masses.items()}
        absolute = {g: self._sum(np.abs, g) for g in self.seen}
        b = 1 + 1.5 * sum(prior[g] * np.sum(1 + np.log1p(absolute[g])) for g in self.seen)
        table = {}
        for g in self.seen:
            weight = np.array([m.get(g, 0.0) for m in self.memberships])
            root = np.sqrt(weight)[:, None]
            x, y = root * np.array(self.rows), root[:, 0] * np.array(self.labels)
            best = float(np.sum((x @ np.linalg.lstsq(x, y, rcond=None)[0] - y) ** 2))
            own = sum(losses[g] for losses in self.expert_losses if g in losses) - best
            if self.aggregator == "specialists":
                bound = np.full(count, math.log(1 / prior[g]) / 2)
            else:
                bound = np.sqrt(3 * absolute[g] * np.log(b / prior[g]))
            k = int(np.argmin(own + bound))
            loss = weight @ self.played_losses
            delay = loss - weight @ self.recomputed_losses
            table[g] = {
                "rounds": weight.sum(),
                "loss": unit * loss,
                "realised_loss": unit * (weight @ self.drawn_losses),
                "best_loss": unit * best,
                "regret": unit * (loss - best),
                "certificate": unit * (own[k] + bound[k] + delay),
                "learner": unit * own[k],
                "aggregator": unit * bound[k],
                "delay": unit * delay,
            }
        return table

    def decode(self, scaled):
        """In the label's units."""
        return self.low + self.span * scaled

    def _dense(self, row):
        x = np.zeros(WIDTH)
        for name, value in row.items():
            x[self.columns.setdefault(name, len(self.columns))] = value
        return x

    def _ridge(self, group, x, weight, penalty, forward):
        inside = [t for t, m in enumerate(self.memberships) if group in m]
        w = np.array([self.memberships[t][group] for t in inside])
        past = np.array([self.rows[t] for t in inside]).reshape(-1, WIDTH)
        y = np.array([self.labels[t] for t in inside])
        a = penalty * np.eye(WIDTH) + past.T @ (w[:, None] * past)
        theta, spread = np.linalg.solve(a, np.column_stack([past.T @ (w * y), x])).T
        return theta @ x / (1 + weight * (x @ spread)) if forward else theta @ x

    def _sum(self, function, group):
        parts = [function(gain[group]) for gain in self.gains if group in gain]
        return sum(parts, np.zeros(len(self.learners)))

    def _potential(self, group, k):
        regret = self._sum(lambda gain: gain, group)[k]
        if self.aggregator == "specialists":
            return math.exp(2 * regret)
        return hedge_weight(regret, self._sum(np.abs, group)[k])

    def _play(self, number, advice, weights):
        if self.aggregator == "mean":
            return float(np.sum(weights * advice))
        if self.aggregator == "specialists":
            at_low = -np.log(np.sum(weights * np.exp(-2 * advice**2))) / 2
            at_high = -np.log(np.sum(weights * np.exp(-2 * (advice - 1) ** 2))) / 2
            return float(np.clip(0.5 + (at_low - at_high) / 2, 0.0, 1.0))
        place = np.searchsorted(
            np.cumsum(weights.ravel()), aggregator_level(self.seed, number), side="right"
        )
        return float(advice.ravel()[min(int(place), advice.size - 1)])

    def _charged(self, said, y):
        if self.aggregator == "sample":
            return float(np.sum(said.weights * (said.advice - y) ** 2))
        return (said.prediction - y) ** 2


COLOURS = ("red", "green", "blue", "black")
SHAPES = ("round", "square")


def random_row(generator, progress):
    """A row, its features and its groups, as of ``progress`` in [0, 1] through the stream.

    Groups overlap (colour, shape, two weights, always_on); colours, the feature ``late`` and the
    weight ``new`` appear as the stream goes on.
    """
    known = 1 + int(progress * (len(COLOURS) - 1) + 0.5)
    colour = COLOURS[generator.integers(known)]
    row = {"colour": colour, "u": generator.uniform(-1, 1), "one": 1.0}
    features = {f"colour={colour}": 1.0, "u": row["u"], "one": 1.0}
    groups = {f"colour={colour}": 1.0}
    row["shape"], row["new"] = None, None
    if generator.random() < 0.7:
        row["shape"] = SHAPES[generator.integers(2)]
        features[f"shape={row['shape']}"] = 1.0
        groups[f"shape={row['shape']}"] = 1.0
    row["part"] = [0.0, 1.0, generator.random()][generator.integers(3)]
    if row["part"] > 0:
        groups["part"] = row["part"]
    if progress > 0.4:
        row["late"] = features["late"] = generator.normal()
        row["new"] = generator.random()
        groups["new"] = row["new"]
    groups["always_on"] = 1.0
    return row, features, groups


def random_arrays(seed=0, rows=120, groups=4, width=5, fractional=False, zeros=0.0):
    """X, y in [0, 1] and membership for a replay; the first row is in every group."""
    generator = np.random.default_rng(seed)
    features = generator.normal(size=(rows, width))
    features[generator.random((rows, width)) < zeros] = 0.0
    truth = generator.normal(size=(groups, width)) / width
    membership = (generator.random((rows, groups)) < 0.5).astype(float)
    membership[0] = 1.0
    label = np.clip(0.5 + np.sum((membership @ truth) * features, axis=1), 0.0, 1.0)
    if fractional:
        membership *= 1.0 - generator.random((rows, groups))
    return features, label, membership
