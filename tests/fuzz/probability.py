"""Adaptive adversaries against probabilities: logistic learners, and the best model of their class.

    python -m tests.fuzz.probability --seconds 600 --seed 1 --jobs 2

After a label: for every group whose certificate is proved, what the plays lost less what the best
logistic model with |x·θ| ≤ b did is at most the certificate, and that best is between best_low and
best_high. The reference (``tests.fuzz.exact.best_logistic``) makes columns orthonormal to 400
digits and finds the best model with a barrier, within 1e-9 of what its multipliers prove.
"""

import math

import groupwise as gw
from tests.fuzz import adversary, draws
from tests.fuzz.exact import best_logistic
from tests.fuzz.runner import main

ROUNDING = 1e-9
GROUPS = 3
"""So many groups are looked at in one moment, those of the smallest slack among them."""
AT_MOST = 14
"""With more features than this the reference takes too long."""
WIDEST = 60
"""With more rows as well."""


class Kinds:
    """Logistic learners and log loss in the place of others."""

    @staticmethod
    def loss(draw):
        """Without a floor."""
        return gw.losses.Log()

    @staticmethod
    def learners(draw):
        """One or a few; the bound that counts is the largest."""
        return [draws.logistic(draw) for _ in range(draws.choose(draw, [1, 2], [3, 1]))]

    @staticmethod
    def aggregation(draw, loss):
        """Specialists."""
        return {"aggregator": gw.aggregators.Specialists(), "play": None}


class Trial(adversary.Trial):
    """A stream being played, with the best logistic model known."""

    def settle(self, ticket, label):
        """Give a ticket its label, and note the round."""
        self.model.learn(ticket, label)
        # What was played is a pair of p and 1 − p, the second with digits that p has not.
        weights, advice = ticket.weights.ravel(), ticket.advice.ravel()
        rest = math.fsum((weights * (1.0 - advice)).tolist())
        p = math.fsum((weights * advice).tolist()) if advice.size else 0.5
        parts = ((label, p, rest), (1.0 - label, rest, p)) if advice.size else ()
        lost = -math.fsum(
            share * (math.log(one) if one < 0.5 else math.log1p(-other))
            for share, one, other in parts
            if share > 0.0
        )
        row = self.stream.defined(ticket)
        for name, weight in ticket.groups.items():
            own = self.books.setdefault(name, adversary.Books())
            own.add(weight, row, label, 1.0, lost, [])
        self.settled += 1

    def check(self, groups=GROUPS, stretches=()):
        """Every claim of the regret table, now; these models have no windows."""
        table = self.model.regret()
        bound = max(one.bound for one in self.model.learners)
        for line in table:
            self.found.count(f"{line['status']}, {line['best_kind']}")
            fine = math.isfinite(line["certificate"]) or line["status"] not in adversary.PROVED
            self.found.require(fine, "not finite", line, self.describe())
            ordered = 0.0 <= line["best_low"] <= line["best_high"]
            self.found.require(ordered, "sides", line, self.describe())
        claims = [line for line in table if line["status"] in adversary.CLAIMED]
        for line in sorted(claims, key=adversary.slack)[: min(groups, GROUPS)]:
            own = self.books[line["group"]]
            rows = own.numbers()
            if len(rows) > WIDEST or len(rows[0]) > AT_MOST:
                continue
            low, high = best_logistic(rows, own.labels, own.weights, bound)
            lost, total = math.fsum(own.lost), math.fsum(own.weights)
            near = ROUNDING * (1.0 + total) + 1e-6 * high
            about = (
                f"[{self.settled} labels, {line['group']}, {line['status']}, {line['best_kind']}]",
                f"best {low:.9g} to {high:.9g}, claimed {line['best_low']:.9g} to",
                f"{line['best_high']:.9g}, certificate {line['certificate']:.6g}, lost {lost:.6g};",
                self.describe(),
            )
            self.found.count("checked")
            self.found.require(line["best_low"] <= high + near, "lower side", *about)
            self.found.require(line["best_high"] >= low - near, "upper side", *about)
            if line["best_kind"] == "exact":
                tight = line["best_high"] - line["best_low"] <= near + 1e-6 * total
                self.found.require(tight, "exact and loose", *about)
            if line["status"] in adversary.PROVED:
                held = lost - high <= line["certificate"] + near
                self.found.require(held, "certificate", *about)
                if line["certificate"] > 0.0:
                    self.found.measure("ratio", (lost - high) / line["certificate"])

    def describe(self):
        """The stream, in a few words."""
        learners = ", ".join(
            f"Logistic({one.penalty:.2g}, {one.bound:g}, {one.keep_rows})"
            for one in self.stream.options["learner"]
        )
        return f"{learners}; {', '.join(self.stream.table)}"


def case(draw, found):
    """One stream."""
    adversary.play(draw, found, Kinds, Trial)


if __name__ == "__main__":
    main("tests.fuzz.probability")
