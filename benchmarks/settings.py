"""A round over all awake learners beyond regression, against plain NumPy and SciPy.

Ours is what a model runs between a row and its ticket, and again at its label: advice of every
awake learner, and their update. The plain version does the same with library calls, one learner at
a time, as one would write it at first.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from groupwise.learners import FTPL, ContextualFTPL
from groupwise.losses import Hamming, Linear, ZeroOne
from groupwise.oracles import Stumps
from groupwise.paper.classification import BITS, CONTEXTS, FIELDS
from groupwise.paper.routing import grid_edges, grid_oracle
from groupwise.protocols import Awake, Bank, Row, Setting

SIZE = 10
ROUNDS = 2_000
REPEATS = 3
TARGET = 5.0


class PlainRouting:
    """FTPL on the grid with NumPy's noise and SciPy's Dijkstra."""

    def __init__(self, groups: int, rate: float) -> None:
        edges = grid_edges(SIZE)
        self.tails = np.array([r * SIZE + c for (r, c), _ in edges])
        self.heads = np.array([r * SIZE + c for _, (r, c) in edges])
        self.number = {pair: e for e, pair in enumerate(zip(self.tails, self.heads, strict=True))}
        self.costs = np.zeros((groups, len(edges)))
        self.clock = np.zeros(groups)
        self.rate = rate
        self.rng = np.random.default_rng(0)

    def round(self, awake: np.ndarray, label: np.ndarray) -> list[np.ndarray]:
        """Advice and update of every awake learner."""
        said = []
        for group in awake:
            scale = np.sqrt(self.clock[group] + 1.0) / self.rate
            costs = self.costs[group] + self.rng.uniform(0.0, scale, self.tails.size)
            graph = csr_array((costs, (self.tails, self.heads)), shape=(SIZE**2, SIZE**2))
            _, via = dijkstra(graph, indices=0, return_predecessors=True)
            path = np.zeros(self.tails.size)
            node = SIZE**2 - 1
            while node:
                path[self.number[via[node], node]] = 1.0
                node = via[node]
            said.append(path)
            self.costs[group] += label
            self.clock[group] += 1.0
        return said


class PlainStumps:
    """Contextual FTPL on stumps with NumPy, one learner and one label at a time."""

    def __init__(self, groups: int, labels: int, fakes: int, rate: float) -> None:
        self.costs = np.zeros((groups, len(CONTEXTS), labels))
        self.clock = np.zeros(groups)
        self.fakes, self.rate = fakes, rate
        self.table = np.vstack([np.zeros(64), np.ones(64), CONTEXTS.T, 1.0 - CONTEXTS.T])
        self.rng = np.random.default_rng(0)

    def round(self, awake: np.ndarray, context: int, costs: np.ndarray) -> list[np.ndarray]:
        """Advice and update of every awake learner."""
        said = []
        for group in awake:
            scale = np.sqrt(self.clock[group] + 1.0) / self.rate
            history = self.costs[group].copy()
            history[: self.fakes] += self.rng.laplace(0.0, scale, (self.fakes, costs.size))
            advice = np.empty(costs.size)
            for label in range(costs.size):
                policy = np.argmin(self.table @ history[:, label])
                advice[label] = self.table[policy, context]
            said.append(advice)
            self.costs[group, context] += costs
            self.clock[group] += 1.0
        return said


def measure() -> list[dict[str, Any]]:
    """Seconds a round, ours and plain, for routing and both classification experiments."""
    results = [_routing()]
    for setting in ("transductive", "separator"):
        for labels in (1, 3):
            results.append(_classification(setting, labels))
    return results


def _routing() -> dict[str, Any]:
    groups = 4  # rain or not, rush hour or not, weekend or not, always on
    learner = FTPL(grid_oracle(SIZE), cost_norm=180.0)
    (bank,) = FTPL.banks([learner], [0], Setting(Linear(0.0, 18.0), 0, 1, 0))
    bank.reserve(np.arange(groups), 0)
    plain = PlainRouting(groups, bank.rate)
    rng = np.random.default_rng(1)
    labels = rng.random((ROUNDS, 180))
    awake = Awake(np.arange(groups), np.ones(groups))
    nothing = Row(np.zeros(0, dtype=np.int64), np.zeros(0), [])
    ours = _seconds(lambda t: _our_round(bank, t, awake, nothing, (labels[t], 0.0)))
    theirs = _seconds(lambda t: plain.round(awake.groups, labels[t]), ROUNDS // 10)
    return _result("routing, 10 × 10 grid, 4 awake", ours, theirs)


def _classification(setting: str, labels: int) -> dict[str, Any]:
    groups = 2
    contexts = CONTEXTS if setting == "transductive" else Stumps().separator(BITS)
    loss = ZeroOne() if labels == 1 else Hamming(labels)
    learner = ContextualFTPL(Stumps(), contexts, setting)
    (bank,) = ContextualFTPL.banks([learner], [0], Setting(loss, 0, 1, BITS))
    bank.reserve(np.arange(groups), BITS)
    plain = PlainStumps(groups, labels, len(contexts), bank.rate)
    rng = np.random.default_rng(1)
    places = rng.integers(len(CONTEXTS), size=ROUNDS)
    every = np.arange(BITS)
    rows = [Row(every, CONTEXTS[place], FIELDS) for place in places]
    truth = rng.integers(0, 2, (ROUNDS, labels)).astype(float)
    costs = 1.0 - 2.0 * truth
    answers = [(one, 0.0) for one in costs]
    awake = Awake(np.arange(groups), np.ones(groups))
    ours = _seconds(lambda t: _our_round(bank, t, awake, rows[t], answers[t]))
    theirs = _seconds(lambda t: plain.round(awake.groups, int(places[t]), costs[t]))
    return _result(f"classification, {setting}, {labels} label(s), 2 awake", ours, theirs)


def _our_round(bank: Bank, number: int, awake: Awake, row: Row, label: Any) -> np.ndarray:
    said = bank.advise(number, 0, awake, row)
    bank.update(awake, row, label)
    return said


def _seconds(one_round: Callable[[int], object], rounds: int = ROUNDS) -> float:
    """The least mean time of a round over a few repeats."""
    one_round(0)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        for t in range(rounds):
            one_round(t)
        times.append((time.perf_counter() - start) / rounds)
    return min(times)


def _result(work: str, ours: float, plain: float) -> dict[str, Any]:
    return {"work": work, "seconds_ours": ours, "seconds_plain": plain, "ratio": plain / ours}


def main() -> None:
    """Print the table."""
    print(f"{'a round over all awake learners':48s} {'ours':>10s} {'plain':>10s} {'ratio':>7s}")
    for row in measure():
        ours, plain = 1e6 * row["seconds_ours"], 1e6 * row["seconds_plain"]
        met = "" if row["ratio"] >= TARGET else f"  below {TARGET:g}"
        print(f"{row['work']:48s} {ours:8.1f}µs {plain:8.1f}µs {row['ratio']:7.1f}{met}")


if __name__ == "__main__":
    main()
