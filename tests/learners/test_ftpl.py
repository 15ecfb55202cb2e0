"""Follow the perturbed leader: its regret bounds, and that fresh noise is what they need."""

import math
from collections.abc import Callable

import numpy as np
import pytest

import groupwise as gw
from groupwise.errors import ConfigurationError, LabelError
from groupwise.learners.ftpl import FTPL, FTPLBank
from groupwise.oracles import Finite
from groupwise.protocols import Awake, Row, Setting
from tests.few import few
from tests.states import assert_same_arrays, state_of

ROUNDS, SEEDS = 300, 50
ONE_GROUP = Awake(np.zeros(1, dtype=np.int64), np.ones(1))
NO_ROW = Row(np.zeros(0, dtype=np.int64), np.zeros(0), [])

Adversary = Callable[[int, int, int, int, np.random.Generator], int]
"""The action to punish, from (round, actions, last played, present leader, randomness).

The leader is what would be played if the noise were that of the last round again: all that an
adversary can know who has seen everything but the next noise.
"""

ADVERSARIES: dict[str, Adversary] = {
    "random": lambda t, m, last, leader, rng: int(rng.integers(m)),
    "cyclic": lambda t, m, last, leader, rng: t % m,
    "last-played": lambda t, m, last, leader, rng: last,
    "leader-punishing": lambda t, m, last, leader, rng: leader,
}


def bank_of(actions: int, horizon: int | None, seed: int) -> FTPLBank:
    learner = FTPL(Finite(np.eye(actions)), cost_norm=1.0, horizon=horizon)
    setting = Setting(gw.losses.Linear(0.0, 1.0), seed, experts=1, width=0)
    (bank,) = FTPL.banks([learner], [0], setting)
    bank.reserve(np.arange(1), 0)
    return bank


def regret(actions: int, horizon: int | None, name: str, seed: int, noise: str = "fresh") -> float:
    """The regret of one run on unit costs."""
    bank = bank_of(actions, horizon, seed)
    if noise == "none":
        bank.rate = math.inf
    rng = np.random.default_rng(seed)
    lost, last = 0.0, 0
    total = np.zeros(actions)
    for t in range(ROUNDS):
        number = t if noise == "fresh" else 0
        said = bank.advise(max(number - 1, 0), 0, ONE_GROUP, NO_ROW)
        leader = int(said[0, 0].argmax())
        said = bank.advise(number, 0, ONE_GROUP, NO_ROW)
        costs = np.zeros(actions)
        costs[ADVERSARIES[name](t, actions, last, leader, rng)] = 1.0
        last = int(said[0, 0].argmax())
        lost += costs[last]
        total += costs
        bank.update(ONE_GROUP, NO_ROW, (costs, 0.0))
    return lost - float(total.min())


def bound(factor: float) -> float:
    return factor * math.sqrt(2.0 * ROUNDS)  # D = 2, R = A = 1


@pytest.mark.parametrize("actions", few([10, 2], 1))
@pytest.mark.parametrize("name", ADVERSARIES)
@pytest.mark.parametrize(("horizon", "factor"), [(ROUNDS, 2.0), (None, 3.0)])
def test_mean_regret_is_below_its_bound(
    actions: int, name: str, horizon: int | None, factor: float
) -> None:
    regrets = [regret(actions, horizon, name, seed) for seed in range(SEEDS)]
    assert np.mean(regrets) < bound(factor)


@pytest.mark.parametrize("noise", ["none", "once"])
@pytest.mark.parametrize("actions", [2, 10])
def test_without_fresh_noise_the_bound_is_broken(actions: int, noise: str) -> None:
    for horizon, factor in ((ROUNDS, 2.0), (None, 3.0)):
        regrets = [
            max(regret(actions, horizon, name, seed, noise) for name in ADVERSARIES)
            for seed in range(5)
        ]
        assert np.mean(regrets) > bound(factor)


@pytest.mark.parametrize("name", ADVERSARIES)
def test_run_time_bound(name: str) -> None:
    regrets = [regret(3, None, name, seed) for seed in range(20)]
    bank = bank_of(3, None, 0)
    for t in range(ROUNDS):
        bank.update(ONE_GROUP, NO_ROW, (np.eye(3)[t % 3], 0.0))
    bounds = bank.bounds(0)
    assert bounds is not None
    (certified,) = bounds.tolist()
    assert np.mean(regrets) <= certified
    # Stability Σ ε_t ‖c_t‖₁ ≤ 2 √(D/RA) √T, and W ≤ D: the a-priori bound is never smaller.
    assert certified <= bound(3.0) + 1e-9


def test_noise_is_named_by_ticket_expert_and_attempt() -> None:
    bank = bank_of(10, 10_000, 3)
    bank.reserve(np.arange(2), 0)

    def advice(number: int, attempt: int, group: int) -> list[float]:
        awake = Awake(np.array([group]), np.ones(1))
        found: list[float] = bank.advise(number, attempt, awake, NO_ROW)[0, 0].tolist()
        return found

    assert advice(7, 0, 0) == advice(7, 0, 0)
    others = {tuple(advice(n, a, g)) for n in range(20) for a in (0, 1) for g in (0, 1)}
    assert len(others) == 10  # every action comes up


def test_fractional_rounds_scale_costs() -> None:
    bank = bank_of(2, None, 0)
    awake = Awake(np.zeros(1, dtype=np.int64), np.array([0.25]))
    bank.update(awake, NO_ROW, (np.array([1.0, 0.0]), 0.0))
    assert bank.store.of(0).costs.tolist() == [0.25, 0.0]
    assert bank.store.of(0).clock.tolist() == [0.25]


class Cheapest:
    """A user's own oracle: the single cheapest coordinate."""

    dimension = 3

    def minimise(self, costs: np.ndarray) -> np.ndarray:
        return np.eye(3)[int(np.argmin(costs))]


def test_an_oracle_written_in_python_plays_like_ours() -> None:
    plays = []
    for oracle in (Finite(np.eye(3)), Cheapest()):
        learner = FTPL(oracle, cost_norm=3.0)
        model = gw.Groupwise([gw.by("day")], learner, loss=gw.losses.Linear(0, 1), seed=5)
        (bank,) = model._reduction.banks
        assert isinstance(bank, FTPLBank)
        bank.rate = 0.5
        played = []
        rng = np.random.default_rng(1)
        for t in range(60):
            ticket = model.predict({"day": t % 2})
            model.learn(ticket, rng.random(3))
            played.append(ticket.prediction.tolist())
        plays.append(played)
    assert plays[0] == plays[1]


def model() -> gw.Groupwise:
    learner = FTPL(Finite(np.eye(2)), cost_norm=4.0)
    return gw.Groupwise([gw.by("rain")], learner, loss=gw.losses.Linear(0.0, 1.0))


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ([1.0], "1 costs"),
        ([1.0, np.nan], "Cost 1 is NaN"),
        ([np.inf, 0.0], "Cost 0 is infinite"),
        ([4.0, 1.0], "more than cost_norm"),
        (0.5, "not a vector of costs"),
        ("costs", "not a vector of costs"),
        ([[1.0, 0.0]], "not a vector of costs"),
        ([1.5, 1.5], "outside"),
    ],
)
def test_bad_labels_change_nothing(label: object, message: str) -> None:
    wet = model()
    wet.learn_one({"rain": True}, [0.9, 0.1])
    before = state_of(wet)
    ticket = wet.predict({"rain": True})
    with pytest.raises(LabelError, match=message):
        wet.learn(ticket, label)
    assert_same_arrays(before, state_of(wet))
    wet.learn(ticket, [0.3, 0.4])


@pytest.mark.parametrize(
    "make",
    [
        lambda: FTPL(object(), cost_norm=1.0),
        lambda: FTPL(Finite([[1]]), cost_norm=0.0),
        lambda: FTPL(Finite([[1]]), cost_norm=True),
        lambda: FTPL(Finite([[1]]), cost_norm=1.0, horizon=-1),
        lambda: FTPL(Finite([[1]]), cost_norm=1e151),  # with which regret() could say nothing
        lambda: FTPL(Finite([[1]]), cost_norm=1.0, horizon=1e61),
        lambda: FTPL(Finite([[1]]), cost_norm=1.0, horizon=1e-61),
        lambda: gw.Groupwise([gw.by("a")], FTPL(Finite([[1]]), 1.0), loss=gw.losses.Square()),
        lambda: gw.Groupwise([gw.by("a")], FTPL(Finite([[1]]), 1.0)),
        lambda: gw.Groupwise(
            [gw.by("a")], FTPL(Finite([[1]]), 1.0), loss=gw.losses.Linear(0, 1), play="mean"
        ),
        lambda: gw.Groupwise(
            [gw.by("a")], FTPL(Finite([[1]]), 1.0), loss=gw.losses.Linear(0, 1), features=["b"]
        ),
        lambda: gw.Groupwise(
            [gw.by("a")],
            FTPL(Finite([[1]]), 1.0),
            aggregator=gw.aggregators.Specialists(),
            loss=gw.losses.Linear(0, 1),
        ),
        lambda: gw.Groupwise(
            [gw.by("a")],
            [FTPL(Finite([[1]]), 1.0), gw.learners.Ridge()],
            loss=gw.losses.Linear(0, 1),
        ),
        lambda: gw.Groupwise(
            [gw.by("a")],
            [FTPL(Finite([[1]]), 1.0), FTPL(Finite([[1, 0]]), 1.0)],
            loss=gw.losses.Linear(0, 1),
        ),
        lambda: gw.replay(
            [[1.0]],
            [0.5],
            [[1.0]],
            learner=FTPL(Finite([[1]]), 1.0),
            loss=gw.losses.Linear(0, 1),
        ),
    ],
)
def test_refused(make: Callable[[], object]) -> None:
    with pytest.raises(ConfigurationError):
        make()
